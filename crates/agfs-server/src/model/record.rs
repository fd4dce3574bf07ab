//! Values of the store: the wire messages, encoded. A value that cannot be decoded is `Corrupt` and says which record it is.

use crate::store::Read;
use agfs_core::error::{Error, ErrorKind, Result};
use agfs_core::id::FileId;
use agfs_core::node::NodeKind;
use agfs_proto::{FromWire, Message, ToWire};
use bytes::Bytes;

/// The encoded form of a core value.
pub fn encode<W: Message>(value: &(impl ToWire<W> + ?Sized)) -> Bytes {
    value.to_wire().encode_to_vec().into()
}

/// The core value of an encoded form; `what` names the record in the error.
pub fn decode<W: Message + Default, C: FromWire<W>>(bytes: &[u8], what: &str) -> Result<C> {
    let wire = message::<W>(bytes, what)?;
    C::from_wire(wire).map_err(|e| Error::new(ErrorKind::Corrupt, format!("the stored {what} is damaged: {e}")))
}

/// A stored message that has no core form.
pub fn message<W: Message + Default>(bytes: &[u8], what: &str) -> Result<W> {
    W::decode(bytes).map_err(|e| Error::new(ErrorKind::Corrupt, format!("the stored {what} is damaged: {e}")))
}

/// Reads and decodes the record at `key`.
pub fn get<W: Message + Default, C: FromWire<W>>(read: &dyn Read, key: &[u8], what: &str) -> Result<Option<C>> {
    read.get(key)?.map(|bytes| decode(&bytes, what)).transpose()
}

/// A number as a value.
pub fn encode_number(n: u64) -> Bytes {
    Bytes::copy_from_slice(&n.to_be_bytes())
}

/// The number in a value.
pub fn decode_number(bytes: &[u8], what: &str) -> Result<u64> {
    let array = bytes
        .try_into()
        .map_err(|_| Error::corrupt(format!("the stored {what} is damaged: {} bytes for a number", bytes.len())))?;
    Ok(u64::from_be_bytes(array))
}

/// A dentry's value: where it leads.
pub fn encode_dentry(id: FileId, kind: NodeKind) -> Bytes {
    let mut bytes = Vec::with_capacity(9);
    bytes.extend_from_slice(&id.0.to_be_bytes());
    let kind: i32 = kind.to_wire();
    bytes.push(kind as u8);
    bytes.into()
}

/// Where a dentry leads; `None` for a tombstone.
pub fn decode_dentry(bytes: &[u8]) -> Result<Option<(FileId, NodeKind)>> {
    match bytes {
        [] => Ok(None),
        [id @ .., kind] if id.len() == 8 => {
            let id = FileId(decode_number(id, "dentry")?);
            let kind = NodeKind::from_wire(i32::from(*kind))
                .map_err(|e| Error::corrupt(format!("the stored dentry is damaged: {e}")))?;
            Ok(Some((id, kind)))
        }
        _ => Err(Error::corrupt(format!("the stored dentry is damaged: {} bytes", bytes.len()))),
    }
}
