//! What a killed mount has left is what it had not confirmed, wherever it was killed.

use super::{Journal, Left, LeftBatch};
use crate::chunking::encode;
use agfs_core::attr::AttrChange;
use agfs_core::op::{Author, Op, TimedOp};
use agfs_core::{FileId, OpId, SpaceId, Timestamp};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::path::Path;

fn author() -> Author {
    Author { agent: "a".into(), ..Author::default() }
}

/// An entry that can be told from the others.
fn entry(n: u64) -> LeftBatch {
    let change = AttrChange { mode: Some(n as u32), ..AttrChange::default() };
    let op = Op::SetAttr { file_id: FileId(n), change };
    let chunk = encode(Bytes::from(vec![n as u8; 300 + n as usize % 7]));
    LeftBatch { op_id: None, ops: vec![TimedOp { time: Timestamp(n as i64), op }], chunks: vec![chunk] }
}

fn id(counter: u64) -> OpId {
    OpId { client: 9, counter }
}

fn begin(dir: &Path, small: bool) -> Journal {
    let mut journal = Journal::begin(dir, SpaceId(3), author()).unwrap();
    if small {
        (journal.segment, journal.worth) = (300, 150);
    }
    journal
}

fn left(dir: &Path) -> Vec<LeftBatch> {
    Left::read(dir).unwrap().map(|left| left.batches).unwrap_or_default()
}

#[derive(Clone, Debug)]
enum Step {
    Append,
    /// Sends what was not sent.
    Send,
    /// Confirms so many of the batches that were sent.
    Confirm(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(prop_oneof![4 => Just(Step::Append), 1 => Just(Step::Send), 1 => (1usize..3).prop_map(Step::Confirm)], 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_is_what_was_not_confirmed(steps in steps(), small: bool) {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = begin(dir.path(), small);
        let (mut fresh, mut last) = (Vec::new(), 0);
        let mut sent: Vec<(OpId, Vec<u64>)> = Vec::new();
        for step in steps {
            match step {
                Step::Append => {
                    let LeftBatch { ops, chunks, .. } = entry(last + 1);
                    last = journal.append(&ops, &chunks).unwrap();
                    fresh.push(last);
                }
                Step::Send if fresh.is_empty() => {}
                Step::Send => {
                    let op_id = id(last);
                    journal.sent(op_id, last).unwrap();
                    sent.push((op_id, std::mem::take(&mut fresh)));
                }
                Step::Confirm(most) => {
                    let done: Vec<_> = sent.drain(..most.min(sent.len())).collect();
                    if let Some(through) = done.last().and_then(|(_, entries)| entries.last()) {
                        journal.confirm(*through).unwrap();
                    }
                }
            }
            let together = |(op_id, entries): &(OpId, Vec<u64>)| {
                let all = entries.iter().map(|n| entry(*n));
                let (ops, chunks) = all.fold((vec![], vec![]), |(mut ops, mut chunks), e| {
                    ops.extend(e.ops);
                    chunks.extend(e.chunks);
                    (ops, chunks)
                });
                LeftBatch { op_id: Some(*op_id), ops, chunks }
            };
            let want: Vec<LeftBatch> =
                sent.iter().map(together).chain(fresh.iter().map(|n| entry(*n))).collect();
            prop_assert_eq!(left(dir.path()), want);
            prop_assert_eq!(journal.unconfirmed() as usize, sent.iter().map(|s| s.1.len()).sum::<usize>() + fresh.len());
        }
        let clean = journal.unconfirmed() == 0;
        journal.end().unwrap();
        prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count() == 0, clean);
    }
}

#[test]
fn a_journal_cut_anywhere_is_a_shorter_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = begin(dir.path(), false);
    let mut ends = vec![(journal.current.len, 0)];
    for n in 1..=5 {
        let LeftBatch { ops, chunks, .. } = entry(n);
        journal.append(&ops, &chunks).unwrap();
        ends.push((journal.current.len, n as usize));
    }
    let path = journal.current.path.clone();
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..whole.len() as u64 {
        std::fs::write(&path, &whole[..cut as usize]).unwrap();
        let want = ends.iter().rev().find(|(end, _)| *end <= cut).map_or(0, |(_, n)| *n);
        let left = Left::read(dir.path()).unwrap();
        assert_eq!(left.as_ref().map_or(0, |left| left.batches.len()), want, "cut at {cut}");
        if let Some(left) = left {
            assert_eq!(left.damage.is_some(), ends.iter().all(|(end, _)| *end != cut), "cut at {cut}");
            assert_eq!((left.space, left.author), (SpaceId(3), author()));
        }
    }
    // A byte in the middle that changed: what comes after it is not taken for what follows on what comes before.
    let mut damaged = whole.clone();
    damaged[ends[2].0 as usize + 20] ^= 1;
    std::fs::write(&path, damaged).unwrap();
    assert_eq!(left(dir.path()).len(), 2);
}

#[test]
fn what_was_left_can_be_taken_away_and_nothing_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Left::read(&dir.path().join("none")).unwrap().is_none());
    assert!(Left::read(dir.path()).unwrap().is_none());
    let mut journal = begin(dir.path(), true);
    for n in 1..=9 {
        let LeftBatch { ops, chunks, .. } = entry(n);
        journal.append(&ops, &chunks).unwrap();
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().count() > 2, "several segments");
    journal.end().unwrap();
    let left = Left::read(dir.path()).unwrap().unwrap();
    assert_eq!((left.batches.len(), &left.damage), (9, &None));
    left.remove().unwrap();
    assert!(Left::read(dir.path()).unwrap().is_none());
}
