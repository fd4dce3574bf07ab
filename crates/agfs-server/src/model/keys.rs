//! Every key of the store, in one table.
//!
//! | tag | key | value | why in this order |
//! |---|---|---|---|
//! | `n` | timeline, file id, ~seq | node, or empty for a tombstone | the newest version at or before a seq is one seek |
//! | `d` | timeline, entry set, name, 0, ~seq | file id and kind, or empty | a directory's names are together and in order; 0 is in no name, so a name's versions end before the next name |
//! | `l` | timeline, seq | log record | a timeline's history in order |
//! | `h` | timeline | its last seq | written with every batch, so kept small and apart from the timeline's record |
//! | `t` | timeline | timeline | |
//! | `r` | entry set | entry set before it, seq | leads from a directory's entries written afresh to the older ones |
//! | `s` | space | space | |
//! | `S` | name | space id | names of spaces, unique |
//! | `H` | space, ~first seq | timeline | which timeline was the head of the space from which seq on, newest first |
//! | `k` | space, ~checkpoint | checkpoint | the last checkpoint is the first key |
//! | `K` | space, name | checkpoint id | names of checkpoints, unique in the space |
//! | `u` | space, ~seq | history operation | undo looks for the newest |
//! | `o` | client, counter | answer of an operation | looked up when an operation id comes again, or as a reference |
//! | `m` | hash | segment of a long manifest | content-addressed |
//! | `a` | counter name | the first number not yet given out | |
//! | `c` | hash | where the chunk is | owned by the room `blob` |
//!
//! All numbers are big-endian, so that the order of bytes is the order of numbers; `~` is the complement, so that the
//! newest comes first.

use agfs_core::id::{CheckpointId, ChunkHash, FileId, OpId, Seq, SpaceId, TimelineId};

/// A key under construction.
struct Key(Vec<u8>);

impl Key {
    fn new(tag: u8) -> Self {
        let mut bytes = Vec::with_capacity(40);
        bytes.push(tag);
        Key(bytes)
    }

    fn num(mut self, n: u64) -> Self {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    fn bytes(mut self, b: &[u8]) -> Self {
        self.0.extend_from_slice(b);
        self
    }

    fn done(self) -> Vec<u8> {
        self.0
    }
}

/// A version of a node.
pub fn node(timeline: TimelineId, id: FileId, seq: Seq) -> Vec<u8> {
    Key::new(b'n').num(timeline.0).num(id.0).num(!seq.0).done()
}

/// Before the first and after the last version of a node.
pub fn node_bounds(timeline: TimelineId, id: FileId) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'n').num(timeline.0).num(id.0).done();
    (base.clone(), after(base))
}

/// Before the first and after the last version of every node of a timeline.
pub fn all_nodes(timeline: TimelineId) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'n').num(timeline.0).done();
    (base.clone(), after(base))
}

/// The file id and seq in the key of a node.
pub fn parse_node(key: &[u8]) -> Option<(FileId, Seq)> {
    Some((FileId(number(key, 9)?), Seq(!number(key, 17)?)))
}

/// A version of a dentry.
pub fn dentry(timeline: TimelineId, set: FileId, name: &[u8], seq: Seq) -> Vec<u8> {
    Key::new(b'd').num(timeline.0).num(set.0).bytes(name).bytes(&[0]).num(!seq.0).done()
}

/// Before the first and after the last version of one dentry.
pub fn dentry_bounds(timeline: TimelineId, set: FileId, name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'd').num(timeline.0).num(set.0).bytes(name);
    (Key(base.0.clone()).bytes(&[0]).done(), base.bytes(&[1]).done())
}

/// Before the first and after the last dentry of an entry set.
pub fn entry_set(timeline: TimelineId, set: FileId) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'd').num(timeline.0).num(set.0).done();
    (base.clone(), after(base))
}

/// Before the first and after the last dentry of a timeline.
pub fn all_dentries(timeline: TimelineId) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'd').num(timeline.0).done();
    (base.clone(), after(base))
}

/// The entry set, name and seq in the key of a dentry.
pub fn parse_dentry(key: &[u8]) -> Option<(FileId, &[u8], Seq)> {
    let set = number(key, 9)?;
    let end = key.len().checked_sub(9)?;
    let name = key.get(17..end)?;
    (key.get(end) == Some(&0)).then_some(())?;
    Some((FileId(set), name, Seq(!number(key, end + 1)?)))
}

/// A log record.
pub fn log(timeline: TimelineId, seq: Seq) -> Vec<u8> {
    Key::new(b'l').num(timeline.0).num(seq.0).done()
}

/// The last seq of a timeline.
pub fn head(timeline: TimelineId) -> Vec<u8> {
    Key::new(b'h').num(timeline.0).done()
}

/// A timeline.
pub fn timeline(id: TimelineId) -> Vec<u8> {
    Key::new(b't').num(id.0).done()
}

/// The entry set before one that was written afresh.
pub fn earlier_set(set: FileId, timeline: TimelineId) -> Vec<u8> {
    Key::new(b'r').num(timeline.0).num(set.0).done()
}

/// A space.
pub fn space(id: SpaceId) -> Vec<u8> {
    Key::new(b's').num(id.0).done()
}

/// Before the first and after the last space.
pub fn spaces() -> (Vec<u8>, Vec<u8>) {
    (vec![b's'], vec![b's' + 1])
}

/// The id of the space with a name.
pub fn space_name(name: &str) -> Vec<u8> {
    Key::new(b'S').bytes(name.as_bytes()).done()
}

/// Which timeline was the head from `first` on.
pub fn head_since(space: SpaceId, first: Seq) -> Vec<u8> {
    Key::new(b'H').num(space.0).num(!first.0).done()
}

/// The heads of a space that began at or before `seq`, newest first.
pub fn heads_from(space: SpaceId, seq: Seq) -> (Vec<u8>, Vec<u8>) {
    (head_since(space, seq), after(Key::new(b'H').num(space.0).done()))
}

/// The first seq in the key of a head.
pub fn parse_head(key: &[u8]) -> Option<Seq> {
    Some(Seq(!number(key, 9)?))
}

/// A checkpoint.
pub fn checkpoint(space: SpaceId, id: CheckpointId) -> Vec<u8> {
    Key::new(b'k').num(space.0).num(!id.0).done()
}

/// The checkpoints of a space, newest first.
pub fn checkpoints(space: SpaceId) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'k').num(space.0).done();
    (base.clone(), after(base))
}

/// The id of the checkpoint with a name.
pub fn checkpoint_name(space: SpaceId, name: &str) -> Vec<u8> {
    Key::new(b'K').num(space.0).bytes(name.as_bytes()).done()
}

/// A history operation.
pub fn history_op(space: SpaceId, seq: Seq) -> Vec<u8> {
    Key::new(b'u').num(space.0).num(!seq.0).done()
}

/// The history operations of a space, newest first.
pub fn history_ops(space: SpaceId) -> (Vec<u8>, Vec<u8>) {
    let base = Key::new(b'u').num(space.0).done();
    (base.clone(), after(base))
}

/// The answer of an operation.
pub fn answer(op: OpId) -> Vec<u8> {
    Key::new(b'o').num(op.client).num(op.counter).done()
}

/// A segment of a long manifest.
pub fn segment(hash: ChunkHash) -> Vec<u8> {
    Key::new(b'm').bytes(&hash.0).done()
}

/// A counter.
pub fn counter(name: &str) -> Vec<u8> {
    Key::new(b'a').bytes(name.as_bytes()).done()
}

/// The first key after every key that begins with `prefix`.
pub fn after(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < 0xff {
            prefix.push(last + 1);
            return prefix;
        }
    }
    // Only a prefix of all 0xff has nothing after it; no tag is 0xff.
    vec![0xff]
}

fn number(key: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_of_nodes_and_dentries_parse_back(t: u64, id: u64, seq: u64, name in proptest::collection::vec(1u8.., 1..40)) {
            let (t, id, seq) = (TimelineId(t), FileId(id), Seq(seq));
            prop_assert_eq!(parse_node(&node(t, id, seq)), Some((id, seq)));
            let key = dentry(t, id, &name, seq);
            prop_assert_eq!(parse_dentry(&key), Some((id, &name[..], seq)));
            let (from, to) = dentry_bounds(t, id, &name);
            prop_assert!(from <= key && key < to);
        }

        #[test]
        fn newer_versions_come_first_and_names_do_not_mix(a: u64, b: u64, n in proptest::collection::vec(1u8.., 1..9), m in proptest::collection::vec(1u8.., 1..9)) {
            let key = |name: &[u8], seq| dentry(TimelineId(1), FileId(2), name, Seq(seq));
            prop_assert_eq!(key(&n, a).cmp(&key(&n, b)), b.cmp(&a));
            if n != m {
                let (_, end) = dentry_bounds(TimelineId(1), FileId(2), &n);
                prop_assert_eq!(key(&m, a) < end, m < n);
            }
        }

        #[test]
        fn no_key_makes_a_parser_panic(key: Vec<u8>) {
            let _ = (parse_node(&key), parse_head(&key));
            let _ = parse_dentry(&key).map(|(_, name, _)| name.len());
        }
    }
}
