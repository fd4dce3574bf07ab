//! What must not grow: counted in records visited, not in time. Times are for the benchmark.

use crate::harness::Farm;
use agfs_core::op::{NewNode, Op};

#[test]
fn a_directory_with_a_long_past_keeps_few_dead_names() {
    let farm = Farm::memory();
    let work = farm.space("s");
    work.mkdir("/d");
    work.write("/d/keep", "k");
    let parent = work.node("/d").unwrap().file_id;
    for round in 0..50 {
        let ids = work.engine().reserve_ids(&work.cell, 200).unwrap();
        let mut ops = Vec::new();
        for (n, id) in ids.enumerate() {
            let name = agfs_core::Name::new(format!("t{round}-{n}").as_bytes()).unwrap();
            ops.push(Op::Create {
                parent,
                name: name.clone(),
                file_id: agfs_core::FileId(id),
                node: NewNode::File,
                mode: 0,
                uid: 0,
                gid: 0,
            });
            ops.push(Op::Unlink { parent, name });
        }
        work.apply(ops).unwrap();
        let dir = *work.node("/d").unwrap().dir().unwrap();
        assert!(dir.dead <= 600, "{} dead names in round {round}", dir.dead);
        assert_eq!(dir.entries, 1);
    }
    assert_eq!(work.picture("").len(), 2);
}

#[test]
fn going_back_writes_the_same_few_records_at_any_size() {
    let farm = Farm::memory();
    let sizes: Vec<usize> = [1usize, 10, 2_000]
        .iter()
        .map(|&n| {
            let work = farm.space(&format!("s{n}"));
            let ids = work.engine().reserve_ids(&work.cell, n as u32).unwrap();
            let create = |(i, id): (usize, u64)| Op::Create {
                parent: agfs_core::FileId::ROOT,
                name: agfs_core::Name::new(format!("f{i}").as_bytes()).unwrap(),
                file_id: agfs_core::FileId(id),
                node: NewNode::File,
                mode: 0o644,
                uid: 0,
                gid: 0,
            };
            work.apply(ids.enumerate().map(create).collect()).unwrap();
            let records = || {
                let mut count = 0;
                work.engine()
                    .read()
                    .scan(&[0], &[0xff], &mut |_, _| {
                        count += 1;
                        Ok(agfs_server::store::Step::Next)
                    })
                    .unwrap();
                count
            };
            let before: usize = records();
            work.checkpoint("c");
            work.rollback("c");
            work.undo().unwrap();
            farm.engine.fork_space(&work.cell, "c", &format!("fork{n}"), farm.op(), Default::default()).unwrap();
            records() - before
        })
        .collect();
    // The first round also makes the counters that all share.
    assert_eq!(sizes[1], sizes[2]);
    assert!(sizes[2] < 40, "{} records", sizes[2]);
}
