//! Attributes of a node and changes to them. Who may change what is the kernel's business, not this room's.

use crate::time::Timestamp;

/// The permission bits of a mode: rwx for three classes, set-user-id, set-group-id, sticky.
pub const PERMISSION_BITS: u32 = 0o7777;
/// The set-user-id bit.
pub const SET_UID: u32 = 0o4000;
/// The set-group-id bit.
pub const SET_GID: u32 = 0o2000;

/// Attributes that every kind of node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Permission bits (0 to 0o7777).
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last access, as far as it is kept (relatime by explicit calls only).
    pub atime: Timestamp,
    /// Last change of content, or of the entries of a directory.
    pub mtime: Timestamp,
    /// Last change of anything.
    pub ctime: Timestamp,
    /// Creation.
    pub btime: Timestamp,
}

/// A change of attributes: what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttrChange {
    /// New permission bits.
    pub mode: Option<u32>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New time of last access.
    pub atime: Option<Timestamp>,
    /// New time of last change of content.
    pub mtime: Option<Timestamp>,
}

impl AttrChange {
    /// Whether nothing would change.
    pub const fn is_empty(&self) -> bool {
        self.mode.is_none() && self.uid.is_none() && self.gid.is_none() && self.atime.is_none() && self.mtime.is_none()
    }

    /// Applies the change at time `now`, which becomes the ctime.
    pub fn apply(&self, attr: &mut Attr, now: Timestamp) {
        if let Some(mode) = self.mode {
            attr.mode = mode & PERMISSION_BITS;
        }
        attr.uid = self.uid.unwrap_or(attr.uid);
        attr.gid = self.gid.unwrap_or(attr.gid);
        attr.atime = self.atime.unwrap_or(attr.atime);
        attr.mtime = self.mtime.unwrap_or(attr.mtime);
        attr.ctime = attr.ctime.then(now);
    }
}
