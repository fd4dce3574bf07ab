//! Timelines: branches of history, and which records a reader of one may see.

use crate::id::{FamilyId, Seq, SpaceId, TimelineId};
use crate::space::Point;

/// One branch of history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Its id.
    pub id: TimelineId,
    /// The family whose tree it holds.
    pub family: FamilyId,
    /// The space that writes (or wrote) it.
    pub space: SpaceId,
    /// Where it branches off, if it has a parent.
    pub parent: Option<Point>,
    /// The sequence number of its first own change; greater than the parent's branch point.
    pub first: Seq,
    /// The sequence number of its last own change; `first - 1` while it has none.
    pub head: Seq,
    /// Whether everything visible at its branch point has been copied into it, so that readers need not go to the parent.
    pub flat: bool,
}

/// Where to look for a record: the timelines of a point, nearest first, each with the last seq that counts in it.
/// The newest record in the first timeline that has one is the one to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage(pub Vec<Point>);

/// The longest lineage, in timelines, before one in its middle is flattened in the background.
pub const FLATTEN_AT: usize = 16;

impl Lineage {
    /// The point itself.
    pub fn tip(&self) -> Option<Point> {
        self.0.first().copied()
    }

    /// The same lineage read as of `seq` in its tip (for a seq that the tip owns).
    #[must_use]
    pub fn as_of(&self, seq: Seq) -> Lineage {
        let mut points = self.0.clone();
        if let Some(tip) = points.first_mut() {
            tip.seq = seq;
        }
        Lineage(points)
    }
}

/// Builds the lineage of `point` by asking `get` for timelines.
///
/// A timeline contributes its own records up to the point; then, unless it is flat, the walk goes on at its branch point.
/// Fails with whatever `get` fails with.
pub fn lineage<E>(point: Point, mut get: impl FnMut(TimelineId) -> Result<Timeline, E>) -> Result<Lineage, E> {
    let mut points = Vec::new();
    let mut next = Some(point);
    while let Some(p) = next {
        let timeline = get(p.timeline)?;
        // A parent's id is always smaller than its child's; anything else is a damaged record and would not end.
        let parent = timeline.parent.filter(|parent| parent.timeline < p.timeline);
        // A point before the timeline's own first change sees nothing of it but what was copied in.
        if p.seq >= timeline.first || timeline.flat || parent.is_none() {
            points.push(p);
        }
        next = if timeline.flat { None } else { parent.map(|parent| Point { seq: parent.seq.min(p.seq), ..parent }) };
    }
    Ok(Lineage(points))
}

/// Where a new timeline should branch so that `point` is its parent view: a timeline without own changes up to the
/// point is skipped, so that going back and forth does not grow the chain. Fails with whatever `get` fails with.
pub fn branch_point<E>(mut point: Point, mut get: impl FnMut(TimelineId) -> Result<Timeline, E>) -> Result<Point, E> {
    loop {
        let timeline = get(point.timeline)?;
        match timeline.parent {
            Some(parent) if point.seq < timeline.first && !timeline.flat && parent.timeline < point.timeline => {
                point = Point { seq: parent.seq.min(point.seq), ..parent };
            }
            _ => return Ok(point),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn tl(id: u64, parent: Option<(u64, u64)>, first: u64, head: u64, flat: bool) -> Timeline {
        Timeline {
            id: TimelineId(id),
            family: FamilyId(1),
            space: SpaceId(1),
            parent: parent.map(|(t, s)| Point { timeline: TimelineId(t), seq: Seq(s) }),
            first: Seq(first),
            head: Seq(head),
            flat,
        }
    }

    fn at(t: u64, s: u64) -> Point {
        Point { timeline: TimelineId(t), seq: Seq(s) }
    }

    #[test]
    fn a_lineage_goes_down_to_the_first_timeline_or_a_flat_one() {
        let mut all = vec![
            tl(0, None, 0, 0, false),
            tl(1, None, 1, 100, false),
            tl(2, Some((1, 50)), 101, 120, false),
            tl(3, Some((2, 110)), 121, 130, false),
        ];
        let look = |all: &[Timeline], p| lineage(p, |id| Ok::<_, Infallible>(all[id.0 as usize])).unwrap().0;
        assert_eq!(look(&all, at(3, 125)), [at(3, 125), at(2, 110), at(1, 50)]);
        assert_eq!(look(&all, at(2, 101)), [at(2, 101), at(1, 50)]);
        assert_eq!(look(&all, at(2, 40)), [at(1, 40)], "a point before the branch is the parent's");
        all[2].flat = true;
        assert_eq!(look(&all, at(3, 125)), [at(3, 125), at(2, 110)]);
    }

    #[test]
    fn branching_skips_timelines_without_changes_of_their_own() {
        let all = [tl(0, None, 0, 0, false), tl(1, None, 1, 100, false), tl(2, Some((1, 50)), 101, 100, false)];
        let b = branch_point(at(2, 100), |id| Ok::<_, Infallible>(all[id.0 as usize])).unwrap();
        assert_eq!(b, at(1, 50));
    }
}
