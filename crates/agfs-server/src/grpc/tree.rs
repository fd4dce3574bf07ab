//! One tree: reading it, changing it. The stream that tells of changes is in `attach`.

use super::{Service, author, caller, checked, fail};
use crate::blob::EncodedChunk;
use crate::engine::SpaceCell;
use crate::ops::{Durable, Held};
use agfs_core::Error;
use agfs_core::id::{ChunkHash, FileId, OpId, Seq};
use agfs_core::op::{Batch, TimedOp};
use agfs_proto::v1::tree_server::Tree;
use agfs_proto::{ToWire, convert, status, v1};
use std::pin::Pin;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};

type Reply<T> = Result<Response<T>, Status>;
/// How many entries a part of a listing has.
const PART: usize = 1_024;
/// The most operations that are applied without leaving the serving thread.
const INLINE_OPS: usize = 16;
/// The metadata key that carries the head's seq on a failed Apply.
const SEQ_KEY: &str = "agfs-seq";

fn chunks(wire: Vec<v1::Chunk>) -> Result<Vec<EncodedChunk>, Status> {
    let chunk = |c: v1::Chunk| {
        Ok(EncodedChunk {
            hash: ChunkHash::from_slice(&c.hash).map_err(fail)?,
            data: c.data,
            zstd: c.zstd,
            raw_len: c.raw_len,
        })
    };
    wire.into_iter().map(chunk).collect()
}

fn hashes(wire: &[Vec<u8>]) -> Result<Vec<ChunkHash>, Status> {
    wire.iter().map(|h| ChunkHash::from_slice(h).map_err(fail)).collect()
}

/// A failure of Apply, with the head at that time: the caller waits for it, so that its tree shows why.
fn failed_apply(cell: &SpaceCell, error: Error) -> Status {
    let head = cell.lock().timeline.head;
    let mut failed = status::to_status(&error);
    if let Ok(value) = MetadataValue::try_from(head.0.to_string()) {
        failed.metadata_mut().insert(SEQ_KEY, value);
    }
    failed
}

#[tonic::async_trait]
impl Tree for Service {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<v1::AttachDown, Status>> + Send>>;
    type ListDirStream = ReceiverStream<Result<v1::ListDirPart, Status>>;
    type GetChunksStream = ReceiverStream<Result<v1::Chunk, Status>>;

    async fn attach(&self, request: Request<Streaming<v1::AttachUp>>) -> Reply<Self::AttachStream> {
        self.attach_mount(request.into_inner()).await.map(Response::new)
    }

    async fn resolve(&self, request: Request<v1::ResolveRequest>) -> Reply<v1::ResolveReply> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let resolved = self.engine.resolve(&cell, &r.at, &r.path, r.partial).map_err(fail)?;
        let nodes = resolved.nodes.iter().map(ToWire::to_wire).collect();
        Ok(Response::new(v1::ResolveReply { nodes, at: Some(resolved.at.to_wire()) }))
    }

    async fn get_nodes(&self, request: Request<v1::GetNodesRequest>) -> Reply<v1::GetNodesReply> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let ids: Vec<FileId> = r.file_ids.into_iter().map(FileId).collect();
        let (nodes, seq) = self.engine.nodes(&cell, &r.at, &ids).map_err(fail)?;
        Ok(Response::new(v1::GetNodesReply { nodes: nodes.iter().map(ToWire::to_wire).collect(), seq: seq.0 }))
    }

    async fn list_dir(&self, request: Request<v1::ListDirRequest>) -> Reply<Self::ListDirStream> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let mut listing = self.blocking(move |engine| engine.list_dir(&cell, &r.at, FileId(r.file_id))).await?;
        let (sender, receiver) = mpsc::channel(4);
        let engine = self.engine.clone();
        tokio::task::spawn_blocking(move || {
            let mut head = Some((listing.dir.to_wire(), listing.at.to_wire()));
            loop {
                let part = match engine.list_part(&mut listing, PART) {
                    Ok(part) => part,
                    Err(e) => {
                        let _ = sender.blocking_send(Err(fail(e)));
                        return;
                    }
                };
                if part.is_empty() && head.is_none() {
                    return;
                }
                let last = part.len() < PART;
                let (dir, at) = head.take().unzip();
                let entry = |(name, node): &(agfs_core::Name, agfs_core::node::Node)| v1::Entry {
                    name: name.as_bytes().to_vec(),
                    node: Some(node.to_wire()),
                };
                let part = v1::ListDirPart { dir, at, entries: part.iter().map(entry).collect() };
                if sender.blocking_send(Ok(part)).is_err() || last {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn get_segments(&self, request: Request<v1::GetSegmentsRequest>) -> Reply<v1::GetSegmentsReply> {
        let hashes = hashes(&request.into_inner().hashes)?;
        let segments = self
            .blocking(move |engine| {
                hashes
                    .into_iter()
                    .map(|h| Ok(engine.segment(h)?.as_slice().to_wire()))
                    .collect::<agfs_core::Result<Vec<_>>>()
            })
            .await?;
        Ok(Response::new(v1::GetSegmentsReply { segments }))
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Reply<v1::ApplyReply> {
        let r = request.into_inner();
        let cell = self.space(&r.space)?;
        let ops: Vec<TimedOp> = convert::all(r.ops).map_err(fail)?;
        let batch = Batch { op_id: checked::<_, OpId>(r.op_id)?, author: author(r.author)?, ops };
        let sent = chunks(r.chunks)?;
        if !sent.is_empty() {
            self.engine.chunks.put(sent).await.map_err(|e| failed_apply(&cell, e))?;
        }
        let by = batch.author.clone();
        let held = (r.epoch != 0).then_some(Held { epoch: r.epoch, follows: Seq(r.follows) });
        let _alone = match held {
            Some(_) => None,
            None => Some(cell.lease.exclude(by.mount).await),
        };
        let applied = if batch.ops.len() <= INLINE_OPS {
            self.engine.apply_held(&cell, &batch, held)
        } else {
            let (engine, at) = (self.engine.clone(), cell.clone());
            let done = tokio::task::spawn_blocking(move || engine.apply_held(&at, &batch, held)).await;
            done.unwrap_or_else(|e| Err(Error::internal(format!("the task of this batch failed: {e}"))))
        };
        let applied = applied.map_err(|e| failed_apply(&cell, e))?;
        let durable = match (r.sync_object, r.sync) {
            (true, _) => Durable::Object,
            (false, true) => Durable::Disk,
            (false, false) => Durable::No,
        };
        let (done, ()) = tokio::join!(self.engine.make_durable(durable), self.settle(&cell, applied.to, &by));
        done.map_err(|e| failed_apply(&cell, e))?;
        Ok(Response::new(v1::ApplyReply { from: applied.from.0, to: applied.to.0, repeated: applied.repeated }))
    }

    async fn reserve_ids(&self, request: Request<v1::ReserveIdsRequest>) -> Reply<v1::ReserveIdsReply> {
        let r = request.into_inner();
        let cell = self.space(&r.space)?;
        let range = self.engine.reserve_ids(&cell, r.count).map_err(fail)?;
        Ok(Response::new(v1::ReserveIdsReply { first: range.start, count: r.count }))
    }

    async fn put_chunks(&self, request: Request<Streaming<v1::PutChunksRequest>>) -> Reply<v1::PutChunksReply> {
        let (mut parts, mut stored) = (request.into_inner(), 0u64);
        while let Some(part) = parts.next().await {
            let count = self.engine.chunks.put(chunks(part?.chunks)?).await.map_err(fail)?;
            stored = stored.saturating_add(count as u64);
        }
        Ok(Response::new(v1::PutChunksReply { stored }))
    }

    async fn have_chunks(&self, request: Request<v1::HaveChunksRequest>) -> Reply<v1::HaveChunksReply> {
        let hashes = hashes(&request.into_inner().hashes)?;
        Ok(Response::new(v1::HaveChunksReply { have: self.engine.chunks.have(&hashes).map_err(fail)? }))
    }

    async fn get_chunks(&self, request: Request<v1::GetChunksRequest>) -> Reply<Self::GetChunksStream> {
        let hashes = hashes(&request.into_inner().hashes)?;
        let (sender, receiver) = mpsc::channel(4);
        let store = self.engine.chunks.clone();
        tokio::spawn(async move {
            for hash in hashes {
                let item = store
                    .get(hash)
                    .await
                    .map(|c| v1::Chunk { hash: c.hash.0.to_vec(), data: c.data, zstd: c.zstd, raw_len: c.raw_len })
                    .map_err(fail);
                let failed = item.is_err();
                if sender.send(item).await.is_err() || failed {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Reply<v1::SyncReply> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let durable = if r.object { Durable::Object } else { Durable::Disk };
        let seq = self.engine.sync(&cell, durable).await.map_err(fail)?;
        Ok(Response::new(v1::SyncReply { seq: seq.0 }))
    }
}
