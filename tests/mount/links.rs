//! Hard links under concurrency: however many processes make, move and remove names of one file, the count of links is
//! possible at each moment and exact in the end, from wherever it is looked at.

use crate::common::{Farm, long, program};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

fn seconds() -> u32 {
    if long() { 60 } else { 3 }
}

/// Runs a part of the program of links on these directories.
fn change(farm: &Farm, part: &str, directories: &[&Path]) {
    let directories: Vec<String> = directories.iter().map(|d| format!("'{}'", d.display())).collect();
    let script = format!("python3 -B '{}' {part} {} {}", program("links.py"), seconds(), directories.join(" "));
    farm.sh_within(&farm.path("home"), &script, Duration::from_secs(180));
}

#[test]
fn a_link_can_be_made_whoever_looks_at_the_file() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    std::fs::create_dir(m.join("node_modules")).unwrap();
    for dir in [&plain, &m, &m.join("node_modules")] {
        change(&farm, "one", &[dir]);
    }
}

#[test]
fn links_are_counted_right_while_several_change_them() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, second, plain) = (farm.mount(&space, &[]), farm.mount(&space, &[]), farm.plain());
    change(&farm, "many", &[&plain]);
    change(&farm, "many", &[&m, &second]);
    let links = std::fs::metadata(m.join("keep")).unwrap().nlink();
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(std::fs::metadata(m.join("keep")).unwrap().nlink(), links, "after a remount");
}

#[test]
fn links_in_a_shadow_are_counted_right_while_several_change_them() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let shadow = m.join("node_modules");
    std::fs::create_dir(&shadow).unwrap();
    change(&farm, "many", &[&shadow]);
}

#[test]
fn links_are_counted_right_while_both_mounts_change_them() {
    let mut farm = Farm::new();
    let space = farm.space();
    let mounts = [farm.mount(&space, &[]), farm.mount(&space, &[])];
    std::fs::write(mounts[0].join("keep"), "kept").unwrap();
    let rounds = if long() { 2_000 } else { 200 };
    // Each has three names of its own at most, and ends with one.
    let change = |m: &Path, who: usize| {
        let name = |i: usize| m.join(format!("{who}-{i}"));
        for round in 0..rounds {
            for i in 0..3 {
                std::fs::hard_link(m.join("keep"), name(i)).unwrap();
                let seen = std::fs::metadata(m.join("keep")).unwrap().nlink();
                assert!(
                    (2 + i as u64..=7).contains(&seen),
                    "round {round}: {seen} links, {} of them this mount's",
                    i + 2
                );
            }
            std::fs::rename(name(0), name(3)).unwrap();
            for i in 1..4 {
                std::fs::remove_file(name(i)).unwrap();
            }
        }
        std::fs::hard_link(m.join("keep"), name(0)).unwrap();
    };
    std::thread::scope(|scope| {
        for (who, m) in mounts.iter().enumerate() {
            scope.spawn(move || change(m, who));
        }
    });
    for m in &mounts {
        assert_eq!(std::fs::metadata(m.join("keep")).unwrap().nlink(), 3);
        assert_eq!(std::fs::metadata(m.join("0-0")).unwrap().nlink(), 3);
        assert_eq!(std::fs::read_dir(m).unwrap().count(), 3);
    }
}
