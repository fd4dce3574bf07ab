//! Going back, and looking back.

use super::{NO_MOUNT, Service, author, caller, checked, fail, outside};
use crate::engine::Engine;
use crate::ops::{Durable, FileVersion, HistoryResult, LogFilter, LogLine, NewCheckpoint};
use agfs_core::id::{OpId, Seq};
use agfs_core::space::{Cause, Checkpoint};
use agfs_core::time::Timestamp;
use agfs_core::{Error, Result as CoreResult};
use agfs_proto::v1::history_server::History;
use agfs_proto::{ToWire, v1};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

type Reply<T> = Result<Response<T>, Status>;
/// How many items a part of a streamed answer has.
const PART: usize = 512;

fn checkpoint_reply(checkpoint: &Checkpoint) -> Response<v1::CheckpointReply> {
    Response::new(v1::CheckpointReply { checkpoint: Some(checkpoint.to_wire()) })
}

fn history_reply(r: &HistoryResult) -> Response<v1::HistoryReply> {
    Response::new(v1::HistoryReply {
        op_id: r.op_id.to_wire(),
        seq: r.seq.0,
        set_aside: r.set_aside,
        subject: r.subject.and_then(|s| s.to_wire()),
        changed: r.changed,
    })
}

fn entry(line: &LogLine) -> v1::LogEntry {
    v1::LogEntry {
        record: Some(line.record.to_wire()),
        path: line.path.clone(),
        from_path: line.from_path.clone().unwrap_or_default(),
    }
}

fn version(v: &FileVersion) -> v1::FileVersion {
    v1::FileVersion {
        file_id: v.file_id.0,
        version_no: v.version_no,
        seq: v.seq.0,
        time_ns: v.time.0,
        size: v.size,
        hash: v.hash.0.to_vec(),
        author: Some(v.author.to_wire()),
        path: v.path.clone(),
    }
}

/// The named operation of an undo or redo.
fn named(text: &str) -> Result<Option<OpId>, Status> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(fail) }
}

impl Service {
    /// After a call that moved the head: on disk, and noted by every mount.
    async fn finish_history(&self, space: &str, result: &HistoryResult, dry_run: bool) -> Result<(), Status> {
        if dry_run {
            return Ok(());
        }
        let cell = self.space(space)?;
        let (durable, ()) =
            tokio::join!(self.engine.make_durable(Durable::Disk), cell.hub.wait_acks(result.seq, Default::default()));
        durable.map_err(fail)
    }

    /// Streams what a blocking producer makes.
    fn stream<T: Send + 'static>(
        &self,
        produce: impl FnOnce(&Arc<Engine>, &mut dyn FnMut(T) -> bool) -> CoreResult<()> + Send + 'static,
    ) -> ReceiverStream<Result<T, Status>> {
        let (sender, receiver) = mpsc::channel(4);
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || {
            let mut send = |item| sender.blocking_send(Ok(item)).is_ok();
            if let Err(e) = produce(&engine, &mut send) {
                // The receiver is gone when the caller gave up; then nobody needs the error.
                let _ = sender.blocking_send(Err(fail(e)));
            }
        });
        ReceiverStream::new(receiver)
    }
}

#[tonic::async_trait]
impl History for Service {
    type DiffStream = ReceiverStream<Result<v1::DiffPart, Status>>;
    type LogStream = ReceiverStream<Result<v1::LogPart, Status>>;
    type WatchStream = ReceiverStream<Result<v1::LogEntry, Status>>;

    async fn create_checkpoint(&self, request: Request<v1::CreateCheckpointRequest>) -> Reply<v1::CheckpointReply> {
        let r = request.into_inner();
        let cause = if r.cause.is_empty() { Ok(Cause::Manual) } else { Cause::from_code(&r.cause) };
        let new = NewCheckpoint {
            op_id: checked::<_, OpId>(r.op_id)?,
            name: r.name,
            note: r.note,
            cause: cause.map_err(fail)?,
            author: outside(author(r.author)?),
        };
        let (cell, _alone) = self.space_alone(&r.space, NO_MOUNT).await?;
        let checkpoint = self.engine.create_checkpoint(&cell, new).map_err(fail)?;
        self.engine.make_durable(Durable::Disk).await.map_err(fail)?;
        Ok(checkpoint_reply(&checkpoint))
    }

    async fn get_checkpoint(&self, request: Request<v1::CheckpointRequest>) -> Reply<v1::CheckpointReply> {
        let r = request.into_inner();
        let cell = self.space(&r.space)?;
        Ok(checkpoint_reply(&self.engine.checkpoint(&cell, &r.r#ref).map_err(fail)?))
    }

    async fn list_checkpoints(&self, request: Request<v1::ListCheckpointsRequest>) -> Reply<v1::ListCheckpointsReply> {
        let cell = self.space(&request.into_inner().space)?;
        let all = self.blocking(move |engine| engine.list_checkpoints(&cell)).await?;
        Ok(Response::new(v1::ListCheckpointsReply { checkpoints: all.iter().map(ToWire::to_wire).collect() }))
    }

    async fn delete_checkpoint(&self, request: Request<v1::CheckpointRequest>) -> Reply<v1::CheckpointReply> {
        let r = request.into_inner();
        let (cell, op_id) = (self.space(&r.space)?, checked::<_, OpId>(r.op_id)?);
        let gone = self.engine.delete_checkpoint(&cell, op_id, &r.r#ref).map_err(fail)?;
        self.engine.make_durable(Durable::Disk).await.map_err(fail)?;
        Ok(checkpoint_reply(&gone))
    }

    async fn pin_checkpoint(&self, request: Request<v1::PinCheckpointRequest>) -> Reply<v1::CheckpointReply> {
        let r = request.into_inner();
        let (cell, op_id) = (self.space(&r.space)?, checked::<_, OpId>(r.op_id)?);
        let pinned = self.engine.pin_checkpoint(&cell, op_id, &r.r#ref, r.pinned).map_err(fail)?;
        self.engine.make_durable(Durable::Disk).await.map_err(fail)?;
        Ok(checkpoint_reply(&pinned))
    }

    async fn rollback(&self, request: Request<v1::RollbackRequest>) -> Reply<v1::HistoryReply> {
        let r = request.into_inner();
        let (op_id, author) = (checked::<_, OpId>(r.op_id)?, outside(author(r.author)?));
        let (cell, _alone) = self.space_alone(&r.space, NO_MOUNT).await?;
        let result = self.engine.rollback(&cell, op_id, &r.r#ref, author, r.dry_run).map_err(fail)?;
        self.finish_history(&r.space, &result, r.dry_run).await?;
        Ok(history_reply(&result))
    }

    async fn restore(&self, request: Request<v1::RestoreRequest>) -> Reply<v1::HistoryReply> {
        let r = request.into_inner();
        let (op_id, author) = (checked::<_, OpId>(r.op_id)?, outside(author(r.author)?));
        let (cell, _alone) = self.space_alone(&r.space, NO_MOUNT).await?;
        let (space, dry_run) = (r.space, r.dry_run);
        let result =
            self.blocking(move |engine| engine.restore(&cell, op_id, &r.r#ref, &r.paths, author, dry_run)).await?;
        self.finish_history(&space, &result, dry_run).await?;
        Ok(history_reply(&result))
    }

    async fn undo(&self, request: Request<v1::UndoRequest>) -> Reply<v1::HistoryReply> {
        let r = request.into_inner();
        let (op_id, author) = (checked::<_, OpId>(r.op_id)?, outside(author(r.author)?));
        let (cell, _alone) = self.space_alone(&r.space, NO_MOUNT).await?;
        let (named, dry_run) = (named(&r.op)?, r.dry_run);
        let result = self.blocking(move |engine| engine.undo(&cell, op_id, named, author, dry_run)).await?;
        self.finish_history(&r.space, &result, dry_run).await?;
        Ok(history_reply(&result))
    }

    async fn redo(&self, request: Request<v1::UndoRequest>) -> Reply<v1::HistoryReply> {
        let r = request.into_inner();
        let (op_id, author) = (checked::<_, OpId>(r.op_id)?, outside(author(r.author)?));
        let (cell, _alone) = self.space_alone(&r.space, NO_MOUNT).await?;
        let (named, dry_run) = (named(&r.op)?, r.dry_run);
        let result = self.blocking(move |engine| engine.redo(&cell, op_id, named, author, dry_run)).await?;
        self.finish_history(&r.space, &result, dry_run).await?;
        Ok(history_reply(&result))
    }

    async fn diff(&self, request: Request<v1::DiffRequest>) -> Reply<Self::DiffStream> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let entries = self.blocking(move |engine| engine.diff(&cell, &r.a, &r.b, &r.paths)).await?;
        Ok(Response::new(self.stream(move |_, send| {
            for part in entries.chunks(PART) {
                if !send(v1::DiffPart { entries: part.iter().map(ToWire::to_wire).collect() }) {
                    break;
                }
            }
            Ok(())
        })))
    }

    async fn log(&self, request: Request<v1::LogRequest>) -> Reply<Self::LogStream> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let since = (r.since_ns != 0).then_some(Timestamp(r.since_ns));
        let filter = LogFilter { agent: r.agent, task: r.task, since, limit: r.limit };
        Ok(Response::new(self.stream(move |engine, send| {
            let mut part = Vec::new();
            engine.log(&cell, &filter, &mut |line| {
                part.push(entry(&line));
                Ok(part.len() < PART || send(v1::LogPart { entries: std::mem::take(&mut part) }))
            })?;
            send(v1::LogPart { entries: part });
            Ok(())
        })))
    }

    async fn file_log(&self, request: Request<v1::FileLogRequest>) -> Reply<v1::FileLogReply> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let versions = self.blocking(move |engine| engine.file_log(&cell, &r.at, &r.path)).await?;
        Ok(Response::new(v1::FileLogReply { versions: versions.iter().map(version).collect() }))
    }

    async fn watch(&self, request: Request<v1::WatchRequest>) -> Reply<Self::WatchStream> {
        let by = caller(&request);
        let r = request.into_inner();
        let cell = self.space_now(&r.space, by).await?;
        let mut head = cell.hub.watch();
        let now = head.borrow_and_update().seq;
        let mut since = r.since.map_or(now, Seq);
        if since > now {
            return Err(fail(Error::invalid(format!("{since} is not there: the space is at {now}"))));
        }
        let (sender, receiver) = mpsc::channel(PART);
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move {
            loop {
                let (engine, at) = (Arc::clone(&engine), Arc::clone(&cell));
                let lines = tokio::task::spawn_blocking(move || engine.log_since(&at, since, PART as u64)).await;
                let lines =
                    lines.unwrap_or_else(|e| Err(Error::internal(format!("the task of the watch failed: {e}"))));
                match lines {
                    Ok(lines) if lines.is_empty() => {
                        tokio::select! {
                            changed = head.changed() => if changed.is_err() { return },
                            () = sender.closed() => return,
                        }
                    }
                    Ok(lines) => {
                        for line in lines {
                            since = line.record.seq;
                            if sender.send(Ok(entry(&line))).await.is_err() {
                                return;
                            }
                        }
                    }
                    Err(e) => {
                        let _ = sender.send(Err(fail(e))).await;
                        return;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
