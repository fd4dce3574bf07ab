//! Random operations, checkpoints, rollbacks, undos and forks against pictures that were taken at the time.

use crate::harness::{Farm, Picture, Work};
use agfs_core::op::{NewNode, Op, RenameMode};

/// A small generator of numbers: seeded, so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn path(&mut self) -> String {
        let depth = 1 + self.below(3);
        (0..depth).map(|_| format!("/{}", ["a", "b", "c", "d"][self.below(4)])).collect()
    }
}

/// One random operation; most fail on what they find, which is part of the test.
fn step(work: &Work<'_>, random: &mut Random) {
    let (path, other) = (random.path(), random.path());
    let place = |p: &str| {
        let (dir, name) = p.rsplit_once('/')?;
        let node = work.node(dir).ok().filter(|n| n.kind().is_dir())?;
        Some((node.file_id, agfs_core::Name::new(name.as_bytes()).ok()?))
    };
    let Some((parent, name)) = place(&path) else { return };
    let op = match random.below(9) {
        0 | 1 => Op::Create {
            parent,
            name,
            file_id: work.id(),
            node: NewNode::Dir { shadow: false },
            mode: 0o755,
            uid: 0,
            gid: 0,
        },
        2 | 3 => Op::Create { parent, name, file_id: work.id(), node: NewNode::File, mode: 0o644, uid: 0, gid: 0 },
        4 => Op::Unlink { parent, name },
        5 => Op::Rmdir { parent, name },
        6 | 7 => {
            let Some((new_parent, new_name)) = place(&other) else { return };
            let mode = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange][random.below(3)];
            Op::Rename { parent, name, new_parent, new_name, mode }
        }
        _ => match (work.node(&path), place(&other)) {
            (Ok(node), Some((parent, name))) if random.below(2) == 0 => {
                Op::Link { file_id: node.file_id, parent, name }
            }
            (Ok(node), _) if node.content().is_some() => {
                work.set(node.file_id, &format!("text {}", random.below(1000)));
                return;
            }
            _ => return,
        },
    };
    let _refused = work.apply(vec![op]);
}

fn run(farm: &Farm, seed: u64, rounds: usize) {
    let mut random = Random(seed | 1);
    let work = farm.space(&format!("s{seed}"));
    let mut taken: Vec<(String, Picture)> = Vec::new();
    for round in 0..rounds {
        for _ in 0..random.below(20) {
            step(&work, &mut random);
        }
        match random.below(8) {
            0..=2 => {
                let name = format!("c{round}");
                work.checkpoint(&name);
                taken.push((name, work.picture("")));
            }
            3 if !taken.is_empty() => {
                let (name, want) = &taken[random.below(taken.len())];
                work.rollback(name);
                assert_eq!(&work.picture(""), want, "seed {seed} round {round}: rollback to {name}");
            }
            4 => {
                let before = work.picture("");
                if work.undo().is_ok() {
                    work.redo().unwrap();
                    assert_eq!(work.picture(""), before, "seed {seed} round {round}: undo and redo");
                }
            }
            5 if !taken.is_empty() => {
                let (name, want) = &taken[random.below(taken.len())];
                work.restore(name, &["/"]).unwrap();
                let strip = |p: &Picture| {
                    p.iter()
                        .map(|(k, v)| {
                            (k.clone(), v.split(" x").next().unwrap().to_owned() + v.rsplit('"').nth(1).unwrap_or(""))
                        })
                        .collect::<Picture>()
                };
                assert_eq!(
                    strip(&work.picture("")),
                    strip(want),
                    "seed {seed} round {round}: restore of all to {name}"
                );
            }
            6 if !taken.is_empty() => {
                let (name, want) = &taken[random.below(taken.len())];
                let diff = work.engine().diff(&work.cell, name, "", &[]).unwrap();
                assert_eq!(
                    diff.is_empty(),
                    same(want, &work.picture("")),
                    "seed {seed} round {round}: diff to {name}: {diff:?}"
                );
            }
            _ => {}
        }
    }
    for (name, want) in &taken {
        assert_eq!(&work.picture(name), want, "seed {seed}: checkpoint {name} at the end");
    }
}

/// Equal but for link counts, which a difference of other paths brings with it.
fn same(a: &Picture, b: &Picture) -> bool {
    let strip = |p: &Picture| {
        p.iter()
            .map(|(k, v)| {
                (k.clone(), v.split(" x").next().unwrap_or("").to_owned() + v.rsplit('"').nth(1).unwrap_or(""))
            })
            .collect::<Picture>()
    };
    strip(a) == strip(b)
}

#[test]
fn many_histories_in_memory() {
    let farm = Farm::memory();
    for seed in 1..=40 {
        run(&farm, seed * 0x9e37_79b9, 40);
    }
}

#[test]
fn a_long_history_on_rocksdb() {
    let farm = Farm::rocks();
    run(&farm, 0x1234_5678, 200);
}
