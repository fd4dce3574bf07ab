//! Places in a listing: telldir and seekdir while entries vanish and appear, with buffers of any size.

use crate::common::Farm;
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A name, and the place after it as telldir gives it.
type Entry = (String, u64);

fn open(dir: &Path) -> OwnedFd {
    rustix::fs::open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

/// The next entries, at most `limit`, read with a buffer of `size` bytes; the directory then stands after the last of them.
fn read(dir: &OwnedFd, size: usize, limit: usize) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut buffer = Vec::with_capacity(size);
    let mut listing = RawDir::new(dir, buffer.spare_capacity_mut());
    while found.len() < limit {
        let Some(entry) = listing.next() else { return found };
        let entry = entry.unwrap();
        found.push((entry.file_name().to_str().unwrap().to_owned(), entry.next_entry_cookie()));
    }
    if let Some((_, place)) = found.last() {
        seek(dir, *place);
    }
    found
}

fn seek(dir: &OwnedFd, place: u64) {
    rustix::fs::seek(dir, SeekFrom::Start(place)).unwrap();
}

fn names(entries: &[Entry]) -> BTreeSet<String> {
    let set: BTreeSet<String> = entries.iter().map(|(n, _)| n.clone()).filter(|n| n != "." && n != "..").collect();
    let all = entries.iter().filter(|(n, _)| n != "." && n != "..").count();
    assert_eq!(set.len(), all, "an entry is listed twice");
    set
}

fn fill(dir: &Path, count: usize) -> BTreeSet<String> {
    fs::create_dir_all(dir).unwrap();
    (0..count)
        .map(|i| {
            // Names of many lengths, so that the kernel's buffers end everywhere.
            let name = format!("{i}-{}", "n".repeat(i * 7 % 60));
            File::create(dir.join(&name)).unwrap();
            name
        })
        .collect()
}

/// The tree, a shadow, and a plain directory, each with what is tried in it.
fn everywhere(calls: fn(&Path)) {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    fs::create_dir(m.join("node_modules")).unwrap();
    for dir in [plain, m.join("tree"), m.join("node_modules/d")] {
        eprintln!("in {}", dir.display());
        calls(&dir);
    }
}

#[test]
fn every_place_in_a_listing_can_be_gone_back_to() {
    everywhere(|path| {
        let all = fill(path, 700);
        let dir = open(path);
        let entries = read(&dir, 2_000, usize::MAX);
        assert_eq!(names(&entries), all);
        assert!(read(&dir, 2_000, 1).is_empty(), "after the end");
        // Forwards, backwards, and from every place to the end of the next few.
        for i in (0..entries.len() - 1).step_by(13).chain((0..entries.len() - 1).rev().step_by(17)) {
            seek(&dir, entries[i].1);
            let next = read(&dir, 400, 3);
            assert_eq!(next, entries[i + 1..entries.len().min(i + 4)], "after entry {i}");
        }
        seek(&dir, entries.last().unwrap().1);
        assert!(read(&dir, 2_000, 1).is_empty(), "at the end");
        seek(&dir, 0);
        assert_eq!(read(&dir, 100_000, usize::MAX), entries, "from the start, with a larger buffer");
    });
}

#[test]
fn places_stay_good_while_entries_vanish_and_appear() {
    everywhere(|path| {
        let all: Vec<String> = fill(path, 1_500).into_iter().collect();
        let dir = open(path);
        let first = read(&dir, 1_000, 500);
        let rest = read(&dir, 30_000, usize::MAX);
        let order: Vec<Entry> = first.iter().chain(&rest).cloned().collect();
        assert_eq!(names(&order).len(), all.len());
        seek(&dir, first.last().unwrap().1);

        // Every third entry goes, among them those around the place; as many appear.
        let gone: BTreeSet<&String> =
            order.iter().map(|(n, _)| n).filter(|n| *n != "." && *n != "..").step_by(3).collect();
        for name in &gone {
            fs::remove_file(path.join(name)).unwrap();
        }
        for i in 0..gone.len() {
            File::create(path.join(format!("new{i}"))).unwrap();
        }
        let stayed =
            |part: &[Entry]| -> BTreeSet<String> { names(part).into_iter().filter(|n| !gone.contains(n)).collect() };
        let old = |part: &[Entry]| -> BTreeSet<String> {
            names(part).into_iter().filter(|n| !n.starts_with("new") && !gone.contains(n)).collect()
        };
        let after = read(&dir, 700, usize::MAX);
        assert_eq!(old(&after), stayed(&rest), "what stays and comes after the place is listed once");
        // Back to places whose own entry is gone, and to others.
        let places: BTreeMap<usize, u64> = order.iter().enumerate().step_by(101).map(|(i, e)| (i, e.1)).collect();
        for (i, place) in places.into_iter().rev() {
            seek(&dir, place);
            assert_eq!(old(&read(&dir, 5_000, usize::MAX)), stayed(&order[i + 1..]), "from after entry {i}");
        }
        // From the start the present is listed: without what is gone, with what is new.
        seek(&dir, 0);
        let now = names(&read(&dir, 3_000, usize::MAX));
        let present: BTreeSet<String> =
            fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(now, present);
        assert!(present.len() == all.len() && gone.iter().all(|n| !now.contains(*n)));
    });
}

#[test]
fn a_directory_is_emptied_while_it_is_listed() {
    everywhere(|path| {
        fill(path, 1_000);
        let dir = open(path);
        let mut removed = 0;
        loop {
            let part = read(&dir, 600, 20);
            if part.is_empty() {
                break;
            }
            for name in names(&part) {
                fs::remove_file(path.join(name)).unwrap();
                removed += 1;
            }
        }
        assert_eq!((removed, fs::read_dir(path).unwrap().count()), (1_000, 0));
        fs::remove_dir(path).unwrap();
    });
}
