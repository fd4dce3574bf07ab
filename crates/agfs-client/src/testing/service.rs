//! The test server's calls about the tree.

use super::Service;
use super::world::{Down, World};
use agfs_core::op::{Author, TimedOp};
use agfs_core::{ChunkHash, Error, FileId, OpId, path};
use agfs_proto::convert::all;
use agfs_proto::status::to_status;
use agfs_proto::{FromWire, ToWire, v1};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::atomic::Ordering;
use tonic::{Request, Response, Status, Streaming};

fn fail(error: Error) -> Status {
    to_status(&error)
}

#[tonic::async_trait]
impl v1::tree_server::Tree for Service {
    type AttachStream = BoxStream<'static, Down>;
    type ListDirStream = BoxStream<'static, Result<v1::ListDirPart, Status>>;
    type GetChunksStream = BoxStream<'static, Result<v1::Chunk, Status>>;

    async fn attach(&self, request: Request<Streaming<v1::AttachUp>>) -> Result<Response<Self::AttachStream>, Status> {
        super::attach::attach(self.0.clone(), request.into_inner()).await.map(Response::new)
    }

    async fn resolve(&self, request: Request<v1::ResolveRequest>) -> Result<Response<v1::ResolveReply>, Status> {
        self.enter("resolve").map_err(fail)?;
        let (request, at) = (request.into_inner(), self.head());
        let inner = self.lock();
        let mut here = FileId::ROOT;
        let mut nodes = vec![inner.tree.nodes[&here].to_wire()];
        for name in path::parse(&request.path).map_err(fail)? {
            match inner.tree.names.get(&(here, name.clone())) {
                Some(id) => here = *id,
                None if request.partial => break,
                None => return Err(fail(Error::not_found(format!("no {name:?}")))),
            }
            nodes.push(inner.tree.nodes[&here].to_wire());
        }
        Ok(Response::new(v1::ResolveReply { nodes, at: Some(at.to_wire()) }))
    }

    async fn get_nodes(&self, request: Request<v1::GetNodesRequest>) -> Result<Response<v1::GetNodesReply>, Status> {
        let inner = self.lock();
        let ids = request.into_inner().file_ids;
        let nodes = ids.iter().filter_map(|id| inner.tree.nodes.get(&FileId(*id))).map(ToWire::to_wire).collect();
        Ok(Response::new(v1::GetNodesReply { nodes, seq: inner.seq }))
    }

    async fn list_dir(&self, request: Request<v1::ListDirRequest>) -> Result<Response<Self::ListDirStream>, Status> {
        let (dir, at) = (FileId(request.into_inner().file_id), self.head());
        let inner = self.lock();
        let node = inner.tree.nodes.get(&dir).ok_or_else(|| fail(Error::stale("gone")))?;
        let mut parts = vec![v1::ListDirPart { dir: Some(node.to_wire()), at: Some(at.to_wire()), entries: vec![] }];
        for ((parent, name), id) in &inner.tree.names {
            if *parent == dir {
                let entry = v1::Entry { name: name.as_bytes().to_vec(), node: Some(inner.tree.nodes[id].to_wire()) };
                parts.push(v1::ListDirPart { dir: None, at: None, entries: vec![entry] });
            }
        }
        Ok(Response::new(futures::stream::iter(parts.into_iter().map(Ok)).boxed()))
    }

    async fn get_segments(&self, _: Request<v1::GetSegmentsRequest>) -> Result<Response<v1::GetSegmentsReply>, Status> {
        Err(Status::unimplemented("segments"))
    }

    async fn apply(&self, request: Request<v1::ApplyRequest>) -> Result<Response<v1::ApplyReply>, Status> {
        self.enter("apply").map_err(fail)?;
        let request = request.into_inner();
        {
            let mut inner = self.lock();
            inner.last_held = (request.epoch, request.follows);
            inner.inline_bytes += request.chunks.iter().map(|c| c.data.len()).sum::<usize>();
            for chunk in request.chunks {
                inner.chunks.insert(ChunkHash::from_slice(&chunk.hash).map_err(fail)?, chunk);
            }
        }
        let op_id = OpId::from_wire(request.op_id).map_err(fail)?;
        let author = Author::from_wire(request.author.unwrap_or_default()).map_err(fail)?;
        let ops: Vec<TimedOp> = all(request.ops).map_err(fail)?;
        let done = World::apply(&self.0, op_id, author, &ops);
        if self.swallow.try_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
            std::future::pending::<()>().await;
        }
        done.map(Response::new).map_err(|e| {
            let mut status = fail(e);
            status.metadata_mut().insert("agfs-seq", self.seq().into());
            status
        })
    }

    async fn reserve_ids(
        &self,
        request: Request<v1::ReserveIdsRequest>,
    ) -> Result<Response<v1::ReserveIdsReply>, Status> {
        self.enter("reserve_ids").map_err(fail)?;
        let by = request.metadata().get("agfs-mount").and_then(|v| v.to_str().ok()).map(str::to_owned);
        self.lock().reserved_by = by;
        let count = request.into_inner().count;
        let mut inner = self.lock();
        let first = inner.next_id;
        inner.next_id += u64::from(count);
        Ok(Response::new(v1::ReserveIdsReply { first, count }))
    }

    async fn put_chunks(
        &self,
        request: Request<Streaming<v1::PutChunksRequest>>,
    ) -> Result<Response<v1::PutChunksReply>, Status> {
        self.enter("put_chunks").map_err(fail)?;
        let (mut parts, mut stored) = (request.into_inner(), 0);
        while let Some(part) = parts.message().await? {
            for chunk in part.chunks {
                stored += 1;
                self.lock().chunks.insert(ChunkHash::from_slice(&chunk.hash).map_err(fail)?, chunk);
            }
        }
        Ok(Response::new(v1::PutChunksReply { stored }))
    }

    async fn have_chunks(
        &self,
        request: Request<v1::HaveChunksRequest>,
    ) -> Result<Response<v1::HaveChunksReply>, Status> {
        self.enter("have_chunks").map_err(fail)?;
        let inner = self.lock();
        let has = |h: &Vec<u8>| ChunkHash::from_slice(h).is_ok_and(|h| inner.chunks.contains_key(&h));
        Ok(Response::new(v1::HaveChunksReply { have: request.into_inner().hashes.iter().map(has).collect() }))
    }

    async fn get_chunks(
        &self,
        request: Request<v1::GetChunksRequest>,
    ) -> Result<Response<Self::GetChunksStream>, Status> {
        self.enter("get_chunks").map_err(fail)?;
        let limit = self.break_after.load(Ordering::SeqCst);
        let mut out = Vec::new();
        for hash in request.into_inner().hashes {
            let hash = ChunkHash::from_slice(&hash).map_err(fail)?;
            if limit > 0 && out.len() as u32 >= limit {
                out.push(Err(Status::unavailable("broken on purpose")));
                break;
            }
            let chunk = self.lock().chunks.get(&hash).cloned();
            out.push(chunk.ok_or_else(|| fail(Error::not_found(format!("no chunk {hash}")))));
        }
        Ok(Response::new(futures::stream::iter(out).boxed()))
    }

    async fn sync(&self, _: Request<v1::SyncRequest>) -> Result<Response<v1::SyncReply>, Status> {
        self.enter("sync").map_err(fail)?;
        Ok(Response::new(v1::SyncReply { seq: self.seq() }))
    }
}
