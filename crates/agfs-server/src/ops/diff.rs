//! The difference between two points: found from the log, so that it costs what changed and not what is there.

use crate::engine::{Engine, SpaceCell};
use crate::model::view::View;
use crate::model::{paths, timelines};
use agfs_core::diff::{DiffEntry, Placed, compare};
use agfs_core::error::Result;
use agfs_core::event::LogRecord;
use agfs_core::id::{FileId, Seq, TimelineId};
use agfs_core::node::Link;
use agfs_core::path;
use agfs_core::space::Point;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// What the log between two points touched.
#[derive(Default)]
struct Touched {
    links: FxHashSet<Link>,
    nodes: FxHashSet<FileId>,
}

impl Touched {
    fn add(&mut self, record: LogRecord) {
        let event = record.event;
        self.nodes.insert(event.file_id);
        self.nodes.extend(event.replaced);
        self.links.extend(event.link);
        self.links.extend(event.from);
    }
}

impl Engine {
    /// How `b` differs from `a`, in order of path; only at and below `only` unless that is empty. Paths are as in `b`, of
    /// what is gone as in `a`. What lies below a renamed directory is not listed unless it changed itself.
    pub fn diff(&self, cell: &SpaceCell, a: &str, b: &str, only: &[Vec<u8>]) -> Result<Vec<DiffEntry>> {
        let only = only.iter().map(|p| Ok(path::join(&path::parse(p)?))).collect::<Result<Vec<_>>>()?;
        let (a, a_lineage) = self.at(cell, a)?;
        let (b, b_lineage) = self.at(cell, b)?;
        let touched = self.touched_between(a, b)?;
        let before = placed(View::new(self.read(), &a_lineage), &touched)?;
        let after = placed(View::new(self.read(), &b_lineage), &touched)?;
        let mut entries = compare(before, after);
        let within = |path: &[u8]| {
            only.is_empty()
                || only.iter().any(|p| {
                    p == b"/" || path == p || path.strip_prefix(p.as_slice()).is_some_and(|r| r.first() == Some(&b'/'))
                })
        };
        entries.retain(|e| within(&e.path) || e.from.as_deref().is_some_and(within));
        Ok(entries)
    }

    /// What was touched on the way from the last common point to either.
    fn touched_between(&self, a: Point, b: Point) -> Result<Touched> {
        let mut touched = Touched::default();
        for (timeline, first, last) in not_shared(&self.reach(a)?, &self.reach(b)?) {
            timelines::log_range(self.read(), timeline, first, last, &mut |record| {
                touched.add(record);
                Ok(())
            })?;
        }
        Ok(touched)
    }

    /// The seqs of each timeline that count at a point: first and last.
    fn reach(&self, point: Point) -> Result<BTreeMap<TimelineId, (Seq, Seq)>> {
        Ok(timelines::ancestry(self.read(), point)?.into_iter().map(|(t, last)| (t.id, (t.first, last))).collect())
    }
}

/// The stretches of the log that count at one point and not at the other.
fn not_shared(
    a: &BTreeMap<TimelineId, (Seq, Seq)>,
    b: &BTreeMap<TimelineId, (Seq, Seq)>,
) -> Vec<(TimelineId, Seq, Seq)> {
    let mut out = Vec::new();
    let ids: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    for id in ids {
        match (a.get(id), b.get(id)) {
            (Some(&(_, x)), Some(&(_, y))) if x != y => out.push((*id, x.min(y).next(), x.max(y))),
            (Some(_), Some(_)) | (None, None) => {}
            (Some(&(first, last)), None) | (None, Some(&(first, last))) => out.push((*id, first, last)),
        }
    }
    out
}

/// Every touched place that exists in a state, by path.
fn placed(view: View<'_>, touched: &Touched) -> Result<Vec<Placed>> {
    let mut found: BTreeMap<Vec<u8>, FileId> = BTreeMap::new();
    for link in &touched.links {
        let Some(dir) = view.node(link.parent)? else { continue };
        let Some(info) = dir.dir() else { continue };
        if let Some((id, _)) = view.child(info.entry_set, &link.name)?
            && let Some(path) = paths::of_link(view, link)?
        {
            found.insert(path, id);
        }
    }
    for id in touched.nodes.iter().filter(|id| **id != FileId::ROOT) {
        let Some(node) = view.node(*id)? else { continue };
        for link in node.links() {
            if let Some(path) = paths::of_link(view, link)? {
                found.insert(path, *id);
            }
        }
    }
    let place = |(path, id): (Vec<u8>, FileId)| Ok(view.node(id)?.map(|node| Placed { path, node }));
    found.into_iter().filter_map(|entry| place(entry).transpose()).collect()
}
