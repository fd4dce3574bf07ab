//! The test server's events and spaces; what no test needs is not offered.

use super::Service;
use agfs_proto::{ToWire, v1};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tonic::{Request, Response, Status};

macro_rules! refuse {
    ($($call:ident($request:ident) -> $reply:ty;)*) => { $(
        fn $call<'a, 'b>(&'a self, _: Request<v1::$request>)
            -> std::pin::Pin<Box<dyn Future<Output = Result<Response<$reply>, Status>> + Send + 'b>>
        where 'a: 'b, Self: 'b
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($call))) })
        }
    )* };
}

#[tonic::async_trait]
impl v1::history_server::History for Service {
    type DiffStream = BoxStream<'static, Result<v1::DiffPart, Status>>;
    type LogStream = BoxStream<'static, Result<v1::LogPart, Status>>;
    type WatchStream = BoxStream<'static, Result<v1::LogEntry, Status>>;

    refuse! {
        create_checkpoint(CreateCheckpointRequest) -> v1::CheckpointReply;
        get_checkpoint(CheckpointRequest) -> v1::CheckpointReply;
        list_checkpoints(ListCheckpointsRequest) -> v1::ListCheckpointsReply;
        delete_checkpoint(CheckpointRequest) -> v1::CheckpointReply;
        pin_checkpoint(PinCheckpointRequest) -> v1::CheckpointReply;
        rollback(RollbackRequest) -> v1::HistoryReply;
        restore(RestoreRequest) -> v1::HistoryReply;
        undo(UndoRequest) -> v1::HistoryReply;
        redo(UndoRequest) -> v1::HistoryReply;
        diff(DiffRequest) -> Self::DiffStream;
        log(LogRequest) -> Self::LogStream;
        file_log(FileLogRequest) -> v1::FileLogReply;
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let world = self.0.clone();
        let state = (world, request.into_inner().since.unwrap_or_default(), 0u32);
        let entries = futures::stream::unfold(state, |(world, since, sent)| async move {
            let limit = world.break_after.load(Ordering::SeqCst);
            if limit > 0 && sent >= limit {
                return Some((Err(Status::unavailable("broken on purpose")), (world, since, 0)));
            }
            loop {
                let next = world.lock().log.iter().find(|e| e.record.as_ref().is_some_and(|r| r.seq > since)).cloned();
                if let Some(entry) = next {
                    let seq = entry.record.as_ref().map_or(since, |r| r.seq);
                    return Some((Ok(entry), (world, seq, sent + 1)));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Ok(Response::new(entries.boxed()))
    }
}

#[tonic::async_trait]
impl v1::spaces_server::Spaces for Service {
    async fn get_space(&self, _: Request<v1::SpaceRequest>) -> Result<Response<v1::SpaceReply>, Status> {
        self.enter("get_space").map_err(|e| agfs_proto::status::to_status(&e))?;
        Ok(Response::new(v1::SpaceReply { space: Some(self.space().to_wire()), head_seq: self.seq() }))
    }

    refuse! {
        create_space(CreateSpaceRequest) -> v1::SpaceReply;
        list_spaces(ListSpacesRequest) -> v1::ListSpacesReply;
        delete_space(DeleteSpaceRequest) -> v1::SpaceReply;
        fork_space(ForkSpaceRequest) -> v1::SpaceReply;
        list_mounts(ListMountsRequest) -> v1::ListMountsReply;
        server_info(ServerInfoRequest) -> v1::ServerInfoReply;
    }
}
