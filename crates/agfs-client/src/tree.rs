//! Calls that read and change one tree by node. Paths with meaning (symbolic links, parents) are `files`' business.

use crate::chunking::EncodedChunk;
use crate::connection::Connection;
use crate::retry::{Effort, Failure, malformed};
use agfs_core::manifest::{Extent, Manifest};
use agfs_core::node::{Content, Layout, Node, SegmentRef};
use agfs_core::op::{Author, TimedOp};
use agfs_core::space::Point;
use agfs_core::{ChunkHash, Error, FileId, Name, OpId, Result, Seq};
use agfs_proto::convert::{all, required};
use agfs_proto::{FromWire, Message, ToWire, v1};
use std::ops::Range;
use tonic::Status;

/// Chunks of up to this many bytes together travel inside the call that names them.
pub const INLINE_CHUNKS: usize = 1 << 20;
/// How many segments are asked for in one call.
const SEGMENTS_A_CALL: usize = 256;

/// When an applied batch must be safe before the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durable {
    /// Soon after.
    #[default]
    No,
    /// On the server's disk.
    Disk,
    /// In the object store.
    Object,
}

/// A path followed in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The nodes on the way, the root first.
    pub nodes: Vec<Node>,
    /// The state in which it was followed.
    pub at: Point,
}

/// A directory and what is in it, in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The directory.
    pub dir: Node,
    /// The state.
    pub at: Point,
    /// Its entries in order of name.
    pub entries: Vec<(Name, Node)>,
}

/// What a mount that has the space to itself says of what it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Under which grant.
    pub epoch: u64,
    /// The change that the first follows on.
    pub follows: Seq,
}

/// How operations are applied.
pub(crate) struct ApplyAs<'a> {
    pub op_id: OpId,
    pub space: &'a str,
    pub author: &'a Author,
    pub durable: Durable,
    pub held: Option<Held>,
}

/// What applying a batch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The space's last change before it.
    pub from: Seq,
    /// The last change it made; equal to `from` when it changed nothing.
    pub to: Seq,
    /// Whether it had been applied by an earlier attempt of the same call.
    pub repeated: bool,
}

fn resolved(reply: v1::ResolveReply) -> Result<Resolved> {
    let at = required(reply.at, "at").and_then(Point::from_wire)?;
    let nodes: Vec<Node> = all(reply.nodes)?;
    if nodes.is_empty() {
        return Err(Error::invalid("a resolved path without its root"));
    }
    Ok(Resolved { nodes, at })
}

/// The extents of a segment that was asked for by `wanted`. Fails with `Corrupt` when it is another one.
fn segment_extents(segment: v1::Segment, wanted: &SegmentRef) -> Result<Vec<Extent>> {
    let hash = ChunkHash::of(&segment.encode_to_vec());
    let list: Vec<Extent> = FromWire::from_wire(segment).map_err(malformed)?;
    let len = list.iter().fold(0u64, |sum, e| sum.saturating_add(e.len));
    if hash != wanted.hash || len != wanted.len {
        return Err(Error::corrupt(format!(
            "what came for the segment {} of {} bytes is the segment {hash} of {len} bytes",
            wanted.hash, wanted.len
        )));
    }
    Ok(list)
}

/// Reads the parts of a listing into one.
async fn listing(
    mut client: v1::tree_client::TreeClient<crate::connection::Calls>,
    request: v1::ListDirRequest,
) -> Result<Listing, Failure> {
    let mut stream = client.list_dir(request).await?.into_inner();
    let (mut head, mut entries) = (None, Vec::new());
    while let Some(part) = stream.message().await? {
        if let (Some(dir), Some(at)) = (part.dir, part.at) {
            head = Some((Node::from_wire(dir).map_err(malformed)?, Point::from_wire(at).map_err(malformed)?));
        }
        for entry in part.entries {
            let name = Name::new(&entry.name).map_err(malformed)?;
            let node = required(entry.node, "entry.node").and_then(Node::from_wire).map_err(malformed)?;
            entries.push((name, node));
        }
    }
    let (dir, at) = head.ok_or_else(|| malformed(Error::invalid("a listing without its directory")))?;
    Ok(Listing { dir, at, entries })
}

impl Connection {
    async fn resolve_call(&self, space: &str, at: &str, path: &[u8], partial: bool) -> Result<Resolved> {
        let request = v1::ResolveRequest { space: space.to_owned(), at: at.to_owned(), path: path.to_vec(), partial };
        let send = || {
            let (mut client, request) = (self.tree(), request.clone());
            async move { client.resolve(request).await }
        };
        let reply = self.call("following a path", Effort::Short, send).await?.into_inner();
        resolved(reply).map_err(malformed)
    }

    /// Follows an absolute path at the reference `at` (empty: now), without following symbolic links. Fails with
    /// `NotFound`, `NotADirectory`.
    pub async fn resolve(&self, space: &str, at: &str, path: &[u8]) -> Result<Resolved> {
        self.resolve_call(space, at, path, false).await
    }

    /// As [`Connection::resolve`], but returns what exists of the way, at least the root, where the rest does not.
    pub async fn resolve_partial(&self, space: &str, at: &str, path: &[u8]) -> Result<Resolved> {
        self.resolve_call(space, at, path, true).await
    }

    /// Those of the nodes that exist at the reference `at` (empty: now), and the change after which that was so.
    pub async fn get_nodes(&self, space: &str, at: &str, ids: &[FileId]) -> Result<(Vec<Node>, Seq)> {
        let request = v1::GetNodesRequest {
            space: space.to_owned(),
            at: at.to_owned(),
            file_ids: ids.iter().map(|id| id.0).collect(),
        };
        let send = || {
            let (mut client, request) = (self.tree(), request.clone());
            async move { client.get_nodes(request).await }
        };
        let reply = self.call("reading nodes", Effort::Short, send).await?.into_inner();
        Ok((all(reply.nodes).map_err(malformed)?, Seq(reply.seq)))
    }

    /// A directory with all its entries at the reference `at` (empty: now). Fails with `Stale`, `NotADirectory`.
    pub async fn list_dir(&self, space: &str, at: &str, dir: FileId) -> Result<Listing> {
        let request = v1::ListDirRequest { space: space.to_owned(), at: at.to_owned(), file_id: dir.0 };
        let send = || listing(self.tree(), request.clone());
        Ok(self.call("listing a directory", Effort::Long, send).await?)
    }

    /// Applies operations together or not at all, with the chunks that they name and the server may lack. Fails with the
    /// kind that a local file system would report.
    pub async fn apply(
        &self,
        space: &str,
        author: &Author,
        ops: Vec<TimedOp>,
        chunks: Vec<EncodedChunk>,
        durable: Durable,
    ) -> Result<Applied> {
        let call = ApplyAs { op_id: self.next_op_id(), space, author, durable, held: None };
        Ok(self.apply_as(call, &ops, chunks).await?)
    }

    /// [`Connection::apply`] under an operation id that the caller knows.
    pub(crate) async fn apply_as(
        &self,
        call: ApplyAs<'_>,
        ops: &[TimedOp],
        chunks: Vec<EncodedChunk>,
    ) -> Result<Applied, Failure> {
        let ApplyAs { op_id, space, author, durable, held } = call;
        let total: usize = chunks.iter().map(|c| c.data.len()).sum();
        let (inline, ahead) = if total <= INLINE_CHUNKS { (chunks, Vec::new()) } else { (Vec::new(), chunks) };
        let request = v1::ApplyRequest {
            space: space.to_owned(),
            op_id: op_id.to_wire(),
            author: Some(author.to_wire()),
            ops: ops.iter().map(ToWire::to_wire).collect(),
            chunks: inline.into_iter().map(EncodedChunk::into_wire).collect(),
            sync: durable != Durable::No,
            sync_object: durable == Durable::Object,
            epoch: held.map_or(0, |held| held.epoch),
            follows: held.map_or(0, |held| held.follows.0),
        };
        // A server that died between the two may have lost what went ahead, so both are repeated together.
        let send = || {
            let (mut client, request) = (self.tree(), request.clone());
            let ahead = &ahead;
            async move {
                self.send_ahead(ahead).await?;
                client.apply(request).await.map_err(Failure::from)
            }
        };
        let reply = self.call("applying changes", Effort::Short, send).await?.into_inner();
        Ok(Applied { from: Seq(reply.from), to: Seq(reply.to), repeated: reply.repeated })
    }

    /// Ids for new nodes, for this caller alone. Fails with `InvalidArgument` when `count` is 0.
    pub async fn reserve_ids(&self, space: &str, count: u32) -> Result<Range<u64>> {
        if count == 0 {
            return Err(Error::invalid("0 ids cannot be reserved: ask for 1 or more"));
        }
        let send = || {
            let (mut client, request) = (self.tree(), v1::ReserveIdsRequest { space: space.to_owned(), count });
            async move { client.reserve_ids(request).await }
        };
        let reply = self.call("reserving file ids", Effort::Short, send).await?.into_inner();
        let end = reply.first.checked_add(u64::from(reply.count));
        match end {
            Some(end) if reply.first > 0 && reply.count > 0 => Ok(reply.first..end),
            _ => Err(malformed(Error::invalid(format!("{} file ids from {}", reply.count, reply.first)))),
        }
    }

    /// Returns when everything applied before is on the server's disk, or with `object` in the object store; the last
    /// change that is.
    pub async fn sync(&self, space: &str, object: bool) -> Result<Seq> {
        let send = || {
            let (mut client, request) = (self.tree(), v1::SyncRequest { space: space.to_owned(), object });
            async move { client.sync(request).await }
        };
        Ok(Seq(self.call("syncing", Effort::Long, send).await?.into_inner().seq))
    }

    /// All extents of a file; asks the server for those that are kept apart from the node.
    pub async fn manifest_of(&self, content: &Content) -> Result<Manifest> {
        let refs = match &*content.layout {
            Layout::Inline(manifest) => return Ok(manifest.clone()),
            Layout::Segments(refs) => refs,
        };
        let mut extents = Vec::new();
        for part in refs.chunks(SEGMENTS_A_CALL) {
            let hashes: Vec<Vec<u8>> = part.iter().map(|r| r.hash.0.to_vec()).collect();
            let send = || {
                let (mut client, hashes) = (self.tree(), hashes.clone());
                async move { Ok::<_, Status>(client.get_segments(v1::GetSegmentsRequest { hashes }).await?.into_inner()) }
            };
            let reply = self.call("reading a file's extents", Effort::Short, send).await?;
            if reply.segments.len() != part.len() {
                return Err(malformed(Error::invalid("another number of segments than asked for")));
            }
            for (segment, wanted) in reply.segments.into_iter().zip(part) {
                extents.extend(segment_extents(segment, wanted)?);
            }
        }
        Manifest::new(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agfs_core::ErrorKind;

    #[test]
    fn a_segment_is_taken_only_for_the_one_it_is() {
        let extents = vec![Extent::whole(ChunkHash([1; 32]), 10), Extent::hole(5)];
        let segment = extents.to_wire();
        let wanted = SegmentRef { len: 15, hash: ChunkHash::of(&segment.encode_to_vec()) };
        assert_eq!(segment_extents(segment.clone(), &wanted), Ok(extents.clone()));
        let other = [Extent::whole(ChunkHash([2; 32]), 10), Extent::hole(5)].to_wire();
        for bad in [other, extents[..1].to_wire()] {
            assert_eq!(segment_extents(bad, &wanted).map_err(|e| e.kind()), Err(ErrorKind::Corrupt));
        }
        let long = SegmentRef { len: 16, ..wanted };
        assert_eq!(segment_extents(segment, &long).map_err(|e| e.kind()), Err(ErrorKind::Corrupt));
    }
}
