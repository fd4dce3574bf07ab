//! Wire to core and back. `from_wire` refuses what is malformed with `InvalidArgument` and names the field;
//! `to_wire` cannot fail. Values of defaults that proto3 leaves out are given their meaning here and nowhere else.

mod change;
mod node;
mod op;
mod record;

use agfs_core::error::{Error, Result};
use agfs_core::id::{FileId, OpId};
use agfs_core::{Name, Timestamp};

/// A core value from its wire form, checked.
pub trait FromWire<W>: Sized {
    /// Fails with `InvalidArgument` and the name of the field that is malformed.
    fn from_wire(wire: W) -> Result<Self>;
}

/// The wire form of a core value.
pub trait ToWire<W> {
    /// Never fails.
    fn to_wire(&self) -> W;
}

/// A message field that must be there.
pub fn required<T>(field: Option<T>, name: &str) -> Result<T> {
    field.ok_or_else(|| Error::invalid(format!("the message lacks its field {name}")))
}

/// Checks and converts every item.
pub fn all<W, C: FromWire<W>>(items: Vec<W>) -> Result<Vec<C>> {
    items.into_iter().map(C::from_wire).collect()
}

fn name(bytes: &[u8]) -> Result<Name> {
    Name::new(bytes)
}

fn file_id(id: u64, field: &str) -> Result<FileId> {
    if id == 0 {
        return Err(Error::invalid(format!("the field {field} is 0, which is no file id")));
    }
    Ok(FileId(id))
}

impl FromWire<Option<crate::v1::OpId>> for OpId {
    fn from_wire(wire: Option<crate::v1::OpId>) -> Result<Self> {
        let wire = required(wire, "op_id")?;
        Ok(OpId { client: wire.client, counter: wire.counter })
    }
}

impl ToWire<Option<crate::v1::OpId>> for OpId {
    fn to_wire(&self) -> Option<crate::v1::OpId> {
        Some(crate::v1::OpId { client: self.client, counter: self.counter })
    }
}

fn time(ns: i64) -> Timestamp {
    Timestamp(ns)
}
