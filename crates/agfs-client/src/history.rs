//! Calls that go back, and calls that look back: checkpoints, rollback, restore, undo, differences, the log, events.

use crate::connection::Connection;
use crate::retry::{Effort, Failure, Policy, malformed};
use crate::system::random_u64;
use agfs_core::diff::DiffEntry;
use agfs_core::event::LogRecord;
use agfs_core::op::Author;
use agfs_core::space::{Cause, Checkpoint};
use agfs_core::{ChunkHash, Error, FileId, OpId, Result, Seq, Timestamp};
use agfs_proto::convert::{all, required};
use agfs_proto::{FromWire, ToWire, v1};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::Instant;
use tonic::{Status, Streaming};

/// What a rollback, restore, undo or redo did (or would do).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryResult {
    /// The operation's id, by which it can be undone.
    pub op: OpId,
    /// The space's last change after it.
    pub seq: Seq,
    /// How many changes it set aside; they stay in history.
    pub set_aside: u64,
    /// The operation that was undone or redone.
    pub subject: Option<OpId>,
    /// For a restore: how many nodes and names changed.
    pub changed: u64,
}

/// Which records of the log are wanted; the default is all.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Only by this agent.
    pub agent: Option<String>,
    /// Only for this task.
    pub task: Option<String>,
    /// Only from this time on.
    pub since: Option<Timestamp>,
    /// At most this many; 0 for all.
    pub limit: u64,
}

/// A record of the log with its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The record.
    pub record: LogRecord,
    /// The path concerned.
    pub path: Vec<u8>,
    /// For a rename or exchange: the path before.
    pub from_path: Option<Vec<u8>>,
}

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// The node that had it.
    pub file_id: FileId,
    /// Counted from 1 along the path's history.
    pub version_no: u64,
    /// The change that made it.
    pub seq: Seq,
    /// When.
    pub time: Timestamp,
    /// Size in bytes.
    pub size: u64,
    /// Hash of the content.
    pub hash: ChunkHash,
    /// Who made it.
    pub author: Author,
    /// Where the file was then.
    pub path: Vec<u8>,
}

/// Events as they happen.
pub type WatchStream = BoxStream<'static, Result<LogLine>>;

fn log_line(entry: v1::LogEntry) -> Result<LogLine> {
    let record = required(entry.record, "record").and_then(LogRecord::from_wire).map_err(malformed)?;
    Ok(LogLine { record, path: entry.path, from_path: (!entry.from_path.is_empty()).then_some(entry.from_path) })
}

fn checkpoint(reply: v1::CheckpointReply) -> Result<Checkpoint> {
    required(reply.checkpoint, "checkpoint").and_then(Checkpoint::from_wire).map_err(malformed)
}

fn history_result(reply: v1::HistoryReply) -> Result<HistoryResult> {
    Ok(HistoryResult {
        op: OpId::from_wire(reply.op_id).map_err(malformed)?,
        seq: Seq(reply.seq),
        set_aside: reply.set_aside,
        subject: reply.subject.map(|id| OpId { client: id.client, counter: id.counter }),
        changed: reply.changed,
    })
}

fn file_version(v: v1::FileVersion) -> Result<FileVersion> {
    Ok(FileVersion {
        file_id: FileId(v.file_id),
        version_no: v.version_no,
        seq: Seq(v.seq),
        time: Timestamp(v.time_ns),
        size: v.size,
        hash: ChunkHash::from_slice(&v.hash).map_err(malformed)?,
        author: v.author.map(Author::from_wire).transpose().map_err(malformed)?.unwrap_or_default(),
        path: v.path,
    })
}

/// Reads a stream to its end.
async fn collect<T>(mut stream: Streaming<T>) -> Result<Vec<T>, Status> {
    let mut parts = Vec::new();
    while let Some(part) = stream.message().await? {
        parts.push(part);
    }
    Ok(parts)
}

impl Connection {
    /// Names the present state; returns when it is durable. Fails with `AlreadyExists` when the name is taken.
    pub async fn create_checkpoint(
        &self,
        space: &str,
        name: &str,
        note: &str,
        cause: Cause,
        author: &Author,
    ) -> Result<Checkpoint> {
        let request = v1::CreateCheckpointRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            name: name.to_owned(),
            note: note.to_owned(),
            cause: cause.code().to_owned(),
            author: Some(author.to_wire()),
        };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.create_checkpoint(request).await }
        };
        checkpoint(self.call("making a checkpoint", Effort::Long, send).await?.into_inner())
    }

    fn checkpoint_request(&self, space: &str, reference: &str) -> v1::CheckpointRequest {
        v1::CheckpointRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            r#ref: reference.to_owned(),
        }
    }

    /// The checkpoint that a reference names. Fails with `NotFound`.
    pub async fn get_checkpoint(&self, space: &str, reference: &str) -> Result<Checkpoint> {
        let request = self.checkpoint_request(space, reference);
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.get_checkpoint(request).await }
        };
        checkpoint(self.call("looking up a checkpoint", Effort::Short, send).await?.into_inner())
    }

    /// The checkpoints of a space, newest first.
    pub async fn list_checkpoints(&self, space: &str) -> Result<Vec<Checkpoint>> {
        let send = || {
            let (mut client, request) = (self.history(), v1::ListCheckpointsRequest { space: space.to_owned() });
            async move { client.list_checkpoints(request).await }
        };
        let reply = self.call("listing the checkpoints", Effort::Short, send).await?.into_inner();
        let mut list: Vec<Checkpoint> = all(reply.checkpoints).map_err(malformed)?;
        list.sort_by_key(|c| std::cmp::Reverse(c.id));
        Ok(list)
    }

    /// Deletes a checkpoint; the state it named stays in history. Fails with `NotFound`.
    pub async fn delete_checkpoint(&self, space: &str, reference: &str) -> Result<Checkpoint> {
        let request = self.checkpoint_request(space, reference);
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.delete_checkpoint(request).await }
        };
        checkpoint(self.call("deleting a checkpoint", Effort::Short, send).await?.into_inner())
    }

    /// Keeps a checkpoint from expiry, or no longer. Fails with `NotFound`.
    pub async fn pin_checkpoint(&self, space: &str, reference: &str, pinned: bool) -> Result<Checkpoint> {
        let request = v1::PinCheckpointRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            r#ref: reference.to_owned(),
            pinned,
        };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.pin_checkpoint(request).await }
        };
        checkpoint(self.call("pinning a checkpoint", Effort::Short, send).await?.into_inner())
    }

    /// Takes the whole space back to a reference; what is left is kept. Fails with `NotFound`.
    pub async fn rollback(
        &self,
        space: &str,
        reference: &str,
        author: &Author,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        let request = v1::RollbackRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            r#ref: reference.to_owned(),
            author: Some(author.to_wire()),
            dry_run,
        };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.rollback(request).await }
        };
        history_result(self.call("rolling back", Effort::Long, send).await?.into_inner())
    }

    /// Puts these paths back as they were at a reference, as new changes. Fails with `NotFound`.
    pub async fn restore(
        &self,
        space: &str,
        reference: &str,
        paths: &[Vec<u8>],
        author: &Author,
        dry_run: bool,
    ) -> Result<HistoryResult> {
        let request = v1::RestoreRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            r#ref: reference.to_owned(),
            paths: paths.to_vec(),
            author: Some(author.to_wire()),
            dry_run,
        };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.restore(request).await }
        };
        history_result(self.call("restoring", Effort::Long, send).await?.into_inner())
    }

    fn undo_request(&self, space: &str, op: Option<OpId>, author: &Author, dry_run: bool) -> v1::UndoRequest {
        v1::UndoRequest {
            op_id: self.next_op_id().to_wire(),
            space: space.to_owned(),
            op: op.map(|op| op.to_string()).unwrap_or_default(),
            author: Some(author.to_wire()),
            dry_run,
        }
    }

    /// Takes back the last rollback, restore or merge, or the one given. Fails with `NotFound`, `Refused`.
    pub async fn undo(&self, space: &str, op: Option<OpId>, author: &Author, dry_run: bool) -> Result<HistoryResult> {
        let request = self.undo_request(space, op, author, dry_run);
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.undo(request).await }
        };
        history_result(self.call("undoing", Effort::Long, send).await?.into_inner())
    }

    /// Does again what was undone last, or the one given. Fails with `NotFound`, `Refused`.
    pub async fn redo(&self, space: &str, op: Option<OpId>, author: &Author, dry_run: bool) -> Result<HistoryResult> {
        let request = self.undo_request(space, op, author, dry_run);
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.redo(request).await }
        };
        history_result(self.call("redoing", Effort::Long, send).await?.into_inner())
    }

    /// How the tree differs between the references `a` and `b` (empty: now), at and below `paths` (none: everywhere),
    /// in order of path.
    pub async fn diff(&self, space: &str, a: &str, b: &str, paths: &[Vec<u8>]) -> Result<Vec<DiffEntry>> {
        let request =
            v1::DiffRequest { space: space.to_owned(), a: a.to_owned(), b: b.to_owned(), paths: paths.to_vec() };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { collect(client.diff(request).await?.into_inner()).await }
        };
        let parts: Vec<v1::DiffPart> = self.call("comparing", Effort::Long, send).await?;
        parts.into_iter().flat_map(|p| p.entries).map(|e| DiffEntry::from_wire(e).map_err(malformed)).collect()
    }

    /// The log of a space, newest first.
    pub async fn log(&self, space: &str, filter: &LogFilter) -> Result<Vec<LogLine>> {
        let request = v1::LogRequest {
            space: space.to_owned(),
            agent: filter.agent.clone().unwrap_or_default(),
            task: filter.task.clone().unwrap_or_default(),
            since_ns: filter.since.map_or(0, |t| t.0),
            limit: filter.limit,
        };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { collect(client.log(request).await?.into_inner()).await }
        };
        let parts: Vec<v1::LogPart> = self.call("reading the log", Effort::Long, send).await?;
        parts.into_iter().flat_map(|p| p.entries).map(log_line).collect()
    }

    /// The versions of what is at `path` at the reference `at` (empty: now), newest first. Fails with `NotFound`.
    pub async fn file_log(&self, space: &str, path: &[u8], at: &str) -> Result<Vec<FileVersion>> {
        let request = v1::FileLogRequest { space: space.to_owned(), path: path.to_vec(), at: at.to_owned() };
        let send = || {
            let (mut client, request) = (self.history(), request.clone());
            async move { client.file_log(request).await }
        };
        let reply = self.call("reading a file's versions", Effort::Long, send).await?.into_inner();
        reply.versions.into_iter().map(file_version).collect()
    }

    /// Events after `since`, or from now on. Connects again by itself, without a gap or a repetition; ends after an error,
    /// which comes when the server refuses or has been away for the connection's patience.
    pub fn watch(&self, space: &str, since: Option<Seq>) -> WatchStream {
        let watch = Watch {
            conn: self.clone(),
            space: space.to_owned(),
            since,
            stream: None,
            failures: 0,
            ended: false,
            lost: None,
        };
        futures::stream::unfold(watch, |mut watch| async move { watch.next().await.map(|item| (item, watch)) }).boxed()
    }
}

struct Watch {
    conn: Connection,
    space: String,
    since: Option<Seq>,
    stream: Option<Streaming<v1::LogEntry>>,
    failures: u32,
    /// Since when there has been no stream that delivered anything.
    lost: Option<Instant>,
    ended: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<Result<LogLine>> {
        while !self.ended {
            match self.step().await {
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) => {}
                Err(failure) => {
                    self.stream = None;
                    self.failures = self.failures.saturating_add(1);
                    let lost = self.lost.get_or_insert_with(Instant::now).elapsed();
                    let policy = Policy::new(self.conn.io_timeout());
                    match policy.pause(&failure, self.failures, lost, random_u64()) {
                        Some(pause) => tokio::time::sleep(pause).await,
                        None => {
                            self.ended = true;
                            return Some(Err(failure.error.context("watching the space")));
                        }
                    }
                }
            }
        }
        None
    }

    /// The next event that was not delivered before, if one comes with this step.
    async fn step(&mut self) -> Result<Option<LogLine>, Failure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                // Without a known beginning, what happens while the connection is away would be missed.
                let since = match self.since {
                    Some(since) => since,
                    None => self.conn.get_space(&self.space).await?.head,
                };
                self.since = Some(since);
                let request = v1::WatchRequest { space: self.space.clone(), since: Some(since.0) };
                self.stream.insert(self.conn.history().watch(request).await?.into_inner())
            }
        };
        let Some(entry) = stream.message().await? else {
            return Err(Error::unavailable("the server ended the stream of events").into());
        };
        self.lost = None;
        self.failures = 0;
        let line = log_line(entry)?;
        if self.since.is_some_and(|since| line.record.seq <= since) {
            return Ok(None);
        }
        self.since = Some(line.record.seq);
        Ok(Some(line))
    }
}
