//! The versions of a path: joined across what editors and git do (write a temporary file, rename it over).
//!
//! Going back from the present: the versions of the node at the path; where it came there by a rename over another node,
//! on with the versions of that one, which was the path before; where it came by a rename onto a free name, on with its
//! own versions at its former path; where it was created at a name that had been taken away, on with what had the name.

use crate::engine::{Engine, SpaceCell};
use crate::model::view::View;
use crate::model::{keys, paths, record, timelines};
use agfs_core::error::{Error, Result};
use agfs_core::event::{EventKind, LogRecord};
use agfs_core::id::{ChunkHash, FileId, Seq};
use agfs_core::node::{Content, Link, Node};
use agfs_core::op::Author;
use agfs_core::space::Point;
use agfs_core::time::Timestamp;
use agfs_core::timeline::Lineage;
use std::ops::ControlFlow;

/// One content that a path had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// The node that held it.
    pub file_id: FileId,
    /// Its number in the history of the path, from 1.
    pub version_no: u64,
    /// The change that put it there.
    pub seq: Seq,
    /// When.
    pub time: Timestamp,
    /// Size in bytes.
    pub size: u64,
    /// Hash of the content.
    pub hash: ChunkHash,
    /// Who.
    pub author: Author,
    /// The path at that time.
    pub path: Vec<u8>,
}

/// Where a walk through history stands.
struct Cursor {
    id: FileId,
    place: Link,
    /// The last seq to look at.
    until: Seq,
}

/// An empty content that the same author replaced within this time, in nanoseconds, is no version of its own.
const PASSING: i64 = 1_000_000_000;

/// The most steps back that are followed: a guard against damaged records.
const MAX_HOPS: usize = 100_000;

impl Engine {
    /// The versions of the file at `path` as of `at`, newest first; when nothing is there, of what was there last. Fails
    /// with `NotFound` when nothing ever was, and with `IsADirectory`.
    pub fn file_log(&self, cell: &SpaceCell, at: &str, path: &[u8]) -> Result<Vec<FileVersion>> {
        let names = agfs_core::path::parse(path)?;
        let (point, lineage) = self.at(cell, at)?;
        let way = paths::walk(View::new(self.read(), &lineage), FileId::ROOT, &names)?;
        let Some(name) = names.last() else {
            return Err(Error::is_a_directory("/ is a directory; versions are of files"));
        };
        // The directory of the path must be there; the file itself may be gone.
        let Some(parent) = way.get(names.len() - 1).filter(|dir| dir.kind().is_dir()) else {
            return Err(paths::missing(&names, way.last(), way.len().saturating_sub(1)));
        };
        let place = Link { parent: parent.file_id, name: name.clone() };
        let mut walker = Walker { engine: self, point, out: Vec::new() };
        let mut next = match way.get(names.len()) {
            Some(node) if node.kind().is_dir() => {
                let path = String::from_utf8_lossy(path);
                return Err(Error::is_a_directory(format!("{path} is a directory; versions are of files")));
            }
            Some(node) => Some(Cursor { id: node.file_id, place, until: point.seq }),
            None => walker.earlier_holder(&place, point.seq)?,
        };
        if next.is_none() {
            return Err(paths::missing(&names, way.last(), way.len().saturating_sub(1)));
        }
        for _ in 0..MAX_HOPS {
            let Some(cursor) = next else { break };
            next = walker.node(cursor)?;
        }
        let mut versions = walker.out;
        let count = versions.len() as u64;
        for (index, version) in versions.iter_mut().enumerate() {
            version.version_no = count - index as u64;
        }
        Ok(versions)
    }
}

struct Walker<'a> {
    engine: &'a Engine,
    point: Point,
    out: Vec<FileVersion>,
}

impl Walker<'_> {
    /// Collects the versions of one node while it was at the cursor's place, and returns where to go on.
    fn node(&mut self, cursor: Cursor) -> Result<Option<Cursor>> {
        let lineage = self.lineage(cursor.until)?;
        let view = View::new(self.engine.read(), &lineage);
        let mut versions: Vec<(Seq, Node)> = Vec::new();
        let mut place = cursor.place;
        let (mut next, mut gone) = (None, false);
        view.versions(cursor.id, |seq, node| {
            let Some(node) = node else {
                // A tombstone below versions: the node came back by a restore, and was something else before.
                gone = !versions.is_empty();
                return Ok(false);
            };
            let saved_once = node.version_no <= 1;
            versions.push((seq, node));
            let Some(log) = self.log_record(seq)? else { return Ok(true) };
            // A save that moves the old file away to a backup, or deletes it, and then renames the new one to the free
            // name: the history is that of the name. A file with a history of its own keeps that.
            if saved_once && came_by_rename(&log, cursor.id, &place) {
                next = self.earlier_holder(&place, Seq(seq.0.saturating_sub(1)))?;
                if next.is_some() {
                    return Ok(false);
                }
            }
            Ok(match step_back(&log, cursor.id, &mut place) {
                ControlFlow::Continue(()) => true,
                ControlFlow::Break(Back::Replaced(id)) => {
                    next = Some(Cursor { id, place: place.clone(), until: Seq(seq.0.saturating_sub(1)) });
                    false
                }
                ControlFlow::Break(Back::Began) => {
                    gone = true;
                    false
                }
            })
        })?;
        self.emit(&versions, &place)?;
        if next.is_none()
            && gone
            && let Some((seq, _)) = versions.last()
        {
            next = self.earlier_holder(&place, Seq(seq.0.saturating_sub(1)))?;
        }
        Ok(next)
    }

    /// Turns the node versions, newest first, into versions of the path: one for each content, at the seq where it
    /// first was there.
    fn emit(&mut self, versions: &[(Seq, Node)], place: &Link) -> Result<()> {
        let written = versions.first().is_some_and(|(_, newest)| newest.version_no > 0);
        for (index, (seq, node)) in versions.iter().enumerate() {
            let older = versions.get(index + 1).map(|(_, n)| n.version_no);
            // A file that was created and then written never showed its emptiness to anybody who waits for a close.
            let passing = node.version_no == 0 && written;
            if older == Some(node.version_no) || passing {
                continue;
            }
            let Some(log) = self.log_record(*seq)? else { continue };
            // `echo text > file` closes the emptied file once before it writes: the shell moves the descriptor. That
            // emptiness is no version that anybody made.
            let soon = |newer: &FileVersion| {
                newer.file_id == node.file_id
                    && newer.author == log.author
                    && newer.time.0.saturating_sub(log.time.0) < PASSING
            };
            if node.size() == 0 && node.version_no > 0 && self.out.last().is_some_and(soon) {
                continue;
            }
            let content = node.content().cloned().unwrap_or_else(Content::empty);
            let lineage = self.lineage(*seq)?;
            let view = View::new(self.engine.read(), &lineage);
            let path = match log.event.link.as_ref().filter(|_| log.event.file_id == node.file_id) {
                Some(link) => paths::of_link(view, link)?,
                None => paths::of_link(view, place)?,
            };
            self.out.push(FileVersion {
                file_id: node.file_id,
                version_no: 0,
                seq: *seq,
                time: log.time,
                size: content.size,
                hash: content.hash,
                author: log.author,
                path: path.unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// Who had the name before `until`, when it was free since: looks through the bindings of the name, and through
    /// entry sets from before the directory was written afresh.
    fn earlier_holder(&self, place: &Link, until: Seq) -> Result<Option<Cursor>> {
        let lineage = self.lineage(until)?;
        let view = View::new(self.engine.read(), &lineage);
        let Some(dir) = view.node(place.parent)? else { return Ok(None) };
        let Some(info) = dir.dir() else { return Ok(None) };
        let (mut set, mut until) = (info.entry_set, until);
        for _ in 0..MAX_HOPS {
            let lineage = self.lineage(until)?;
            let view = View::new(self.engine.read(), &lineage);
            match view.binding(set, &place.name)? {
                Some((_, Some(id))) => return Ok(Some(Cursor { id, place: place.clone(), until })),
                Some((seq, None)) => until = Seq(seq.0.saturating_sub(1)),
                None => match self.earlier_set(&lineage, set)? {
                    Some((earlier, seq)) => (set, until) = (earlier, until.min(Seq(seq.0.saturating_sub(1)))),
                    None => return Ok(None),
                },
            }
        }
        Ok(None)
    }

    fn earlier_set(&self, lineage: &Lineage, set: FileId) -> Result<Option<(FileId, Seq)>> {
        for point in &lineage.0 {
            if let Some(bytes) = self.engine.meta.get(&keys::earlier_set(set, point.timeline))? {
                let (id, seq) =
                    bytes.split_at_checked(8).ok_or_else(|| Error::corrupt("a stored entry set is damaged"))?;
                return Ok(Some((
                    FileId(record::decode_number(id, "entry set")?),
                    Seq(record::decode_number(seq, "entry set")?),
                )));
            }
        }
        Ok(None)
    }

    /// Where to look for what was visible at `seq`. Goes on below flattened timelines, which have copies of the newest
    /// versions only.
    fn lineage(&self, seq: Seq) -> Result<Lineage> {
        let at = Point { seq: seq.min(self.point.seq), ..self.point };
        let all = timelines::ancestry(self.engine.read(), at)?;
        Ok(Lineage(all.into_iter().map(|(t, last)| Point { timeline: t.id, seq: last }).collect()))
    }

    /// The log record of a seq in the ancestry of the point.
    fn log_record(&self, seq: Seq) -> Result<Option<LogRecord>> {
        for (timeline, last) in timelines::ancestry(self.engine.read(), self.point)? {
            if timeline.first <= seq && seq <= last {
                return timelines::log_record(self.engine.read(), timeline.id, seq);
            }
        }
        Ok(None)
    }
}

/// What was there before a node came to a place.
enum Back {
    /// Another node, which it replaced.
    Replaced(FileId),
    /// Nothing: it was made there.
    Began,
}

/// Whether a node came to a place by a rename onto a free name.
fn came_by_rename(log: &LogRecord, id: FileId, place: &Link) -> bool {
    let event = &log.event;
    event.kind == EventKind::Rename
        && event.file_id == id
        && event.link.as_ref() == Some(place)
        && event.replaced.is_none()
}

/// Follows one event of `id` backwards. `place` becomes where the node was before it.
fn step_back(log: &LogRecord, id: FileId, place: &mut Link) -> ControlFlow<Back> {
    let event = &log.event;
    let here = event.link.as_ref() == Some(place) && event.file_id == id;
    match event.kind {
        EventKind::Rename if here => match (event.replaced, &event.from) {
            (Some(replaced), _) => ControlFlow::Break(Back::Replaced(replaced)),
            (None, Some(from)) => {
                *place = from.clone();
                ControlFlow::Continue(())
            }
            (None, None) => ControlFlow::Continue(()),
        },
        EventKind::Exchange if here => {
            event.replaced.map_or(ControlFlow::Continue(()), |r| ControlFlow::Break(Back::Replaced(r)))
        }
        EventKind::Exchange if event.replaced == Some(id) && event.from.as_ref() == Some(place) => {
            ControlFlow::Break(Back::Replaced(event.file_id))
        }
        EventKind::Create | EventKind::Link if here => ControlFlow::Break(Back::Began),
        _ => ControlFlow::Continue(()),
    }
}
