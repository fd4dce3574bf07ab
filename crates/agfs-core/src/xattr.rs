//! The rules of extended attributes: names, sizes, and what setting and removing one does to all of a node's.

use crate::error::{Error, ErrorKind, Result};
use crate::id::FileId;
use crate::node::{MAX_XATTR_NAME, MAX_XATTR_VALUE, Xattrs};
use crate::op::XattrMode;

/// The most bytes that all extended attributes of a node may have together, names included.
const MAX_XATTRS: usize = 1 << 20;

/// Sets an attribute of the node `id`, whose attributes are `xattrs`. Returns whether that changed anything: setting the value
/// that is there does not, as on ext4. When it fails, they are as before.
///
/// # Errors
/// `BufferTooSmall` (the name), `ValueTooLarge`, `AlreadyExists`, `NoAttribute` (by `mode`), `NoSpace` (all together).
pub fn set(xattrs: &mut Xattrs, id: FileId, name: &[u8], value: &[u8], mode: XattrMode) -> Result<bool> {
    if name.is_empty() || name.len() > MAX_XATTR_NAME || name.contains(&0) {
        return Err(Error::new(
            ErrorKind::BufferTooSmall,
            format!(
                "an extended attribute's name has 1 to {MAX_XATTR_NAME} bytes without NUL, this one {}",
                name.len()
            ),
        ));
    }
    if value.len() > MAX_XATTR_VALUE {
        return Err(Error::new(
            ErrorKind::ValueTooLarge,
            format!("an extended attribute has at most {MAX_XATTR_VALUE} bytes, this one {}", value.len()),
        ));
    }
    match (mode, xattrs.contains_key(name)) {
        (XattrMode::Create, true) => {
            return Err(Error::already_exists(format!("{id} already has the attribute {}", show(name))));
        }
        (XattrMode::Replace, false) => return Err(no_attribute(id, name)),
        _ => {}
    }
    let others = xattrs.iter().filter(|(n, _)| n.as_slice() != name).map(|(n, v)| n.len() + v.len());
    if others.sum::<usize>() + name.len() + value.len() > MAX_XATTRS {
        return Err(Error::new(
            ErrorKind::NoSpace,
            format!("the extended attributes of {id} would have over {MAX_XATTRS} bytes"),
        ));
    }
    Ok(xattrs.insert(name.to_vec(), value.to_vec()).is_none_or(|before| before != value))
}

/// Removes an attribute of the node `id`, whose attributes are `xattrs`.
///
/// # Errors
/// `NoAttribute`.
pub fn remove(xattrs: &mut Xattrs, id: FileId, name: &[u8]) -> Result<()> {
    xattrs.remove(name).map(drop).ok_or_else(|| no_attribute(id, name))
}

fn no_attribute(id: FileId, name: &[u8]) -> Error {
    Error::new(ErrorKind::NoAttribute, format!("{id} has no extended attribute {}", show(name)))
}

fn show(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
