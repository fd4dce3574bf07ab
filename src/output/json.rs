//! The JSON that is printed: one type a shape, with stable keys. Acceptance runs and programs read these.
//!
//! Times are RFC 3339. A path or name that is no text comes with its bytes in base64 beside the readable form.

use crate::location::encode;
use crate::when::rfc3339;
use agfs_client::{FileVersion, HistoryResult, LogLine, MountState, SpaceInfo};
use agfs_core::diff::DiffEntry;
use agfs_core::node::{Body, Link, Node, NodeKind};
use agfs_core::space::Checkpoint;
use agfs_core::{Error, FileId};
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes as text, and in base64 when the text is not the same.
pub fn lossy(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(encode(bytes))),
    }
}

/// The word for a kind of node.
pub const fn kind_word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::File => "file",
        NodeKind::Dir => "dir",
        NodeKind::Symlink => "symlink",
        NodeKind::Fifo => "fifo",
        NodeKind::Socket => "socket",
        NodeKind::CharDevice => "char_device",
        NodeKind::BlockDevice => "block_device",
    }
}

/// `{"error":{"code","message"}}`
#[derive(Serialize)]
pub struct ErrorShape<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: &'a str,
    message: &'a str,
}

impl<'a> ErrorShape<'a> {
    /// The shape of an error.
    pub fn new(error: &'a Error) -> Self {
        ErrorShape { error: ErrorBody { code: error.kind().code(), message: error.message() } }
    }

    /// The shape of a wrong command line.
    pub fn usage(message: &'a str) -> Self {
        ErrorShape { error: ErrorBody { code: "usage", message } }
    }
}

/// A space.
#[derive(Serialize)]
pub struct SpaceShape {
    id: String,
    name: String,
    r#type: &'static str,
    head_seq: u64,
    timeline: String,
    tenant_code: String,
    owner: String,
    created_at: String,
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow_rules: Option<Vec<String>>,
}

impl From<&SpaceInfo> for SpaceShape {
    fn from(info: &SpaceInfo) -> Self {
        let space = &info.space;
        SpaceShape {
            id: space.id.to_string(),
            name: space.name.clone(),
            r#type: space.space_type.code(),
            head_seq: info.head.0,
            timeline: space.head.to_string(),
            tenant_code: space.tenant_code.clone(),
            owner: space.owner.clone(),
            created_at: rfc3339(space.created),
            deleted: space.deleted,
            shadow_rules: space.shadow_rules.clone(),
        }
    }
}

/// A checkpoint.
#[derive(Serialize)]
pub struct CheckpointShape {
    id: String,
    name: String,
    space: String,
    timeline: String,
    seq: u64,
    cause: &'static str,
    agent: String,
    task: String,
    step: String,
    note: String,
    pinned: bool,
    created_at: String,
}

impl From<&Checkpoint> for CheckpointShape {
    fn from(checkpoint: &Checkpoint) -> Self {
        CheckpointShape {
            id: checkpoint.id.to_string(),
            name: checkpoint.name.clone(),
            space: checkpoint.space.to_string(),
            timeline: checkpoint.at.timeline.to_string(),
            seq: checkpoint.at.seq.0,
            cause: checkpoint.cause.code(),
            agent: checkpoint.author.agent.to_string(),
            task: checkpoint.author.task.to_string(),
            step: checkpoint.author.step.to_string(),
            note: checkpoint.note.clone(),
            pinned: checkpoint.pinned,
            created_at: rfc3339(checkpoint.created),
        }
    }
}

/// What rollback, restore, undo and redo did, or would do.
#[derive(Serialize)]
pub struct HistoryShape {
    op: String,
    seq: u64,
    set_aside: u64,
    changed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    dry_run: bool,
}

impl HistoryShape {
    /// The shape of a result.
    pub fn new(result: &HistoryResult, dry_run: bool) -> Self {
        HistoryShape {
            op: result.op.to_string(),
            seq: result.seq.0,
            set_aside: result.set_aside,
            changed: result.changed,
            subject: result.subject.map(|op| op.to_string()),
            dry_run,
        }
    }
}

/// One record of a space's log, as `log` and `watch` print it.
#[derive(Serialize)]
pub struct LogShape {
    seq: u64,
    time: String,
    kind: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_b64: Option<String>,
    file_id: u64,
    node_type: &'static str,
    version: u64,
    version_no: u64,
    agent: String,
    task: String,
    step: String,
    mount: String,
    op: String,
}

impl From<&LogLine> for LogShape {
    fn from(line: &LogLine) -> Self {
        let (record, event) = (&line.record, &line.record.event);
        let (path, path_b64) = lossy(&line.path);
        let (from, from_b64) = line.from_path.as_deref().map(lossy).map_or((None, None), |(f, b)| (Some(f), b));
        LogShape {
            seq: record.seq.0,
            time: rfc3339(record.time),
            kind: event.kind.code(),
            path,
            path_b64,
            from,
            from_b64,
            file_id: event.file_id.0,
            node_type: kind_word(event.node_kind),
            version: record.seq.0,
            version_no: event.version_no,
            agent: record.author.agent.to_string(),
            task: record.author.task.to_string(),
            step: record.author.step.to_string(),
            mount: record.author.mount.to_string(),
            op: record.op_id.to_string(),
        }
    }
}

/// One version of a file.
#[derive(Serialize)]
pub struct VersionShape {
    version_no: u64,
    seq: u64,
    time: String,
    size: u64,
    hash: String,
    agent: String,
    task: String,
    step: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    file_id: u64,
}

impl From<&FileVersion> for VersionShape {
    fn from(version: &FileVersion) -> Self {
        let (path, path_b64) = lossy(&version.path);
        VersionShape {
            version_no: version.version_no,
            seq: version.seq.0,
            time: rfc3339(version.time),
            size: version.size,
            hash: version.hash.to_string(),
            agent: version.author.agent.to_string(),
            task: version.author.task.to_string(),
            step: version.author.step.to_string(),
            path,
            path_b64,
            file_id: version.file_id.0,
        }
    }
}

/// One path that differs.
#[derive(Serialize)]
pub struct DiffShape {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insertions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

impl DiffShape {
    /// The shape of an entry, with its lines counted when they were, and its part of the patch when one is wanted.
    pub fn new(entry: &DiffEntry, stat: Option<&super::stat::FileStat>, patch: Option<&[u8]>) -> Self {
        let (path, path_b64) = lossy(&entry.path);
        let (from, from_b64) = entry.from.as_deref().map(lossy).map_or((None, None), |(f, b)| (Some(f), b));
        DiffShape {
            path,
            path_b64,
            change: entry.kind.code(),
            from,
            from_b64,
            node_type: entry.after.as_ref().or(entry.before.as_ref()).map(|n| kind_word(n.kind())),
            binary: stat.map(|s| s.binary),
            insertions: stat.map(|s| s.insertions),
            deletions: stat.map(|s| s.deletions),
            patch: patch.map(|p| String::from_utf8_lossy(p).into_owned()),
        }
    }
}

/// One entry of a directory.
#[derive(Serialize)]
pub struct EntryShape {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_b64: Option<String>,
    /// Relative to the directory that was asked for, where entries of several directories are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    r#type: &'static str,
    size: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    mtime: String,
    file_id: u64,
    version: u64,
    version_no: u64,
    shadow: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl EntryShape {
    /// The shape of an entry; with its path when it is one of a tree.
    pub fn new(name: &[u8], path: Option<&[u8]>, node: &Node) -> Self {
        let (name, name_b64) = lossy(name);
        let (path, path_b64) = path.map(lossy).map_or((None, None), |(p, b)| (Some(p), b));
        EntryShape {
            name,
            name_b64,
            path,
            path_b64,
            r#type: kind_word(node.kind()),
            size: node.size(),
            mode: node.attr.mode,
            uid: node.attr.uid,
            gid: node.attr.gid,
            nlink: node.nlink(),
            mtime: rfc3339(node.attr.mtime),
            file_id: node.file_id.0,
            version: node.version.0,
            version_no: node.version_no,
            shadow: node.is_shadow(),
            target: match &node.body {
                Body::Symlink(target) => Some(lossy(target).0),
                _ => None,
            },
        }
    }
}

/// Everything known of a node, by the names of the data model.
#[derive(Serialize)]
pub struct NodeShape {
    file_id: u64,
    parent_id: Option<u64>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_b64: Option<String>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    node_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u32,
    size: u64,
    atime: String,
    mtime: String,
    ctime: String,
    btime: String,
    /// Values in base64.
    xattrs: BTreeMap<String, String>,
    version: u64,
    version_no: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_b64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rdev: Option<u32>,
    shadow_flag: bool,
    delete_flag: bool,
    links: Vec<PlaceShape>,
}

#[derive(Serialize)]
struct PlaceShape {
    parent_id: u64,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_b64: Option<String>,
}

impl From<&Link> for PlaceShape {
    fn from(link: &Link) -> Self {
        let (name, name_b64) = lossy(link.name.as_bytes());
        PlaceShape { parent_id: link.parent.0, name, name_b64 }
    }
}

impl NodeShape {
    /// The shape of the node that was found at `path` in the directory `parent`.
    pub fn new(node: &Node, path: &[u8], parent: Option<FileId>, mime_type: Option<String>) -> Self {
        let (name, name_b64) = lossy(crate::location::last_name(path));
        let (path, path_b64) = lossy(path);
        let (target, target_b64) = match &node.body {
            Body::Symlink(target) => Some(lossy(target)).map_or((None, None), |(t, b)| (Some(t), b)),
            _ => (None, None),
        };
        NodeShape {
            file_id: node.file_id.0,
            parent_id: parent.map(|p| p.0),
            name,
            name_b64,
            path,
            path_b64,
            node_type: kind_word(node.kind()),
            mime_type,
            mode: node.attr.mode,
            uid: node.attr.uid,
            gid: node.attr.gid,
            nlink: node.nlink(),
            size: node.size(),
            atime: rfc3339(node.attr.atime),
            mtime: rfc3339(node.attr.mtime),
            ctime: rfc3339(node.attr.ctime),
            btime: rfc3339(node.attr.btime),
            xattrs: node.xattrs.iter().flat_map(|x| x.iter()).map(|(k, v)| (lossy(k).0, encode(v))).collect(),
            version: node.version.0,
            version_no: node.version_no,
            object_hash: node.content().map(|c| c.hash.to_string()),
            allocated: node.content().map(|c| c.allocated),
            entries: node.dir().map(|d| d.entries),
            target,
            target_b64,
            rdev: match &node.body {
                Body::Special { rdev, .. } => Some(*rdev),
                _ => None,
            },
            shadow_flag: node.is_shadow(),
            delete_flag: false,
            links: node.links().map(PlaceShape::from).collect(),
        }
    }
}

/// A live mount.
#[derive(Serialize)]
pub struct MountShape {
    id: String,
    space: String,
    space_id: String,
    root_file_id: u64,
    path: String,
    host: String,
    agent: String,
    task: String,
    step: String,
    tenant_code: String,
    user_id: String,
    conversation_id: String,
    lease: String,
    consistency: &'static str,
    read_only: bool,
    seen_seq: u64,
    head_seq: u64,
    lag: u64,
    pending: u64,
}

impl From<&MountState> for MountShape {
    fn from(state: &MountState) -> Self {
        let mount = &state.mount;
        MountShape {
            id: mount.id.to_string(),
            space: state.space_name.clone(),
            space_id: mount.space.to_string(),
            root_file_id: mount.root_file_id.0,
            path: mount.mount_path.clone(),
            host: mount.host.clone(),
            agent: mount.author.agent.to_string(),
            task: mount.author.task.to_string(),
            step: mount.author.step.to_string(),
            tenant_code: mount.tenant_code.clone(),
            user_id: mount.user_id.clone(),
            conversation_id: mount.conversation_id.clone(),
            lease: state.lease.clone(),
            consistency: mount.consistency.code(),
            read_only: mount.read_only,
            seen_seq: mount.seen.0,
            head_seq: state.head.0,
            lag: state.head.0.saturating_sub(mount.seen.0),
            pending: state.pending,
        }
    }
}
