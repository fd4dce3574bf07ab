//! Two mounts of one space: what is closed on one is what the next open on the other reads. No sleep anywhere.

use crate::common::Farm;
use crate::common::tree::Random;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::sync::Barrier;

#[test]
fn close_to_open() {
    let mut farm = Farm::new();
    let space = farm.space();
    let mounts = [farm.mount(&space, &[]), farm.mount(&space, &[])];
    let mut random = Random::new(3);
    for i in 0..200 {
        let (x, y) = (&mounts[i % 2], &mounts[(i + 1) % 2]);
        let size = *random.pick(&[1, 100, 5000, 200_000]);
        let data = random.bytes(size);
        let name = format!("f{}", i % 7);
        match i % 4 {
            0 => fs::write(x.join(&name), &data).unwrap(),
            1 => {
                fs::write(x.join(".t"), &data).unwrap();
                fs::rename(x.join(".t"), x.join(&name)).unwrap();
            }
            2 => {
                let _ = fs::remove_file(x.join(&name));
                fs::write(x.join(&name), &data).unwrap();
            }
            _ => {
                let mut file = File::options().append(true).create(true).open(x.join(&name)).unwrap();
                file.write_all(&data).unwrap();
            }
        }
        let want = fs::read(x.join(&name)).unwrap();
        let got = fs::read(y.join(&name)).unwrap();
        assert!(got == want, "round {i}: {} bytes read, {} written", got.len(), want.len());
        assert_eq!(fs::metadata(y.join(&name)).unwrap().len(), want.len() as u64, "round {i}");
        let there = x.join("gone").exists();
        if there {
            fs::remove_file(x.join("gone")).unwrap()
        } else {
            fs::write(x.join("gone"), "1").unwrap()
        }
        assert_eq!(y.join("gone").exists(), !there, "round {i}: existence");
    }
}

#[test]
fn exclusive_create_has_one_winner() {
    let mut farm = Farm::new();
    let space = farm.space();
    let mounts = [farm.mount(&space, &[]), farm.mount(&space, &[])];
    for round in 0..100 {
        let barrier = Barrier::new(4);
        let race = |m: &std::path::Path| {
            barrier.wait();
            match File::options().write(true).create_new(true).open(m.join(format!("lock{round}"))) {
                Ok(_) => 1,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => 0,
                Err(e) => panic!("round {round}: {e}"),
            }
        };
        let wins: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|k| mounts[k % 2].as_path())
                .map(|m| {
                    scope.spawn({
                        let race = &race;
                        move || race(m)
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(wins, 1, "round {round}");
    }
}

#[test]
fn deleted_and_created_again() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    let mut random = Random::new(8);
    for round in 0..200 {
        let _ = fs::remove_file(a.join("f"));
        let size = (random.number() % 60_000) as usize;
        let mut data = random.bytes(size);
        fs::write(a.join("f"), &data).unwrap();
        let tail = random.bytes(32 << 10);
        File::options().append(true).open(a.join("f")).unwrap().write_all(&tail).unwrap();
        data.extend(tail);
        assert!(fs::read(b.join("f")).unwrap() == data, "round {round}");
    }
}

#[test]
fn a_missing_name_is_seen_when_it_appears() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    for round in 0..100 {
        let name = format!("n{round}");
        for _ in 0..3 {
            assert!(!b.join(&name).exists());
        }
        fs::write(a.join(&name), "x").unwrap();
        assert_eq!(fs::read_to_string(b.join(&name)).unwrap(), "x", "round {round}");
        let file = File::options().create(true).append(true).open(b.join(&name)).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1, "O_CREAT opened another file");
    }
}

#[test]
fn what_the_other_removed_is_gone() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    for round in 0..50 {
        fs::create_dir(a.join("d")).unwrap();
        fs::write(a.join("d/f"), "x").unwrap();
        assert_eq!(fs::read_dir(b.join("d")).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(b.join("d/f")).unwrap(), "x");
        fs::remove_dir_all(a.join("d")).unwrap();
        for error in [
            fs::read(b.join("d/f")).unwrap_err(),
            fs::read_dir(b.join("d")).map(|_| ()).unwrap_err(),
            fs::remove_file(b.join("d/f")).unwrap_err(),
            fs::write(b.join("d/g"), "").unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotFound, "round {round}: {error}");
        }
        assert_eq!(fs::read_dir(&b).unwrap().count(), 0);
    }
}

#[test]
fn appends_in_turn_lose_no_line() {
    let mut farm = Farm::new();
    let space = farm.space();
    let mounts = [farm.mount(&space, &[]), farm.mount(&space, &[])];
    let mut want = String::new();
    for i in 0..200 {
        let line = format!("line {i:06} from {}\n", i % 2);
        let mut file = File::options().append(true).create(true).open(mounts[i % 2].join("log")).unwrap();
        file.write_all(line.as_bytes()).unwrap();
        want.push_str(&line);
    }
    for m in &mounts {
        assert_eq!(fs::read_to_string(m.join("log")).unwrap(), want);
    }
}

#[test]
fn both_show_the_same_listing() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    assert_eq!(fs::read_dir(&b).unwrap().count(), 0);
    farm.sh(&a, r#"for i in $(seq 1500); do echo $i > f$i; done; touch -d '2020-02-02 02:02:02.123456789' f1 f1500"#);
    let list = |m| farm.sh(m, "ls -ln --full-time");
    assert!(list(&a) == list(&b), "the listings differ");
    assert!(list(&b).contains("02:02:02.123456789"));
}

#[test]
fn readers_see_whole_generations() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    let generation = |g: u64| {
        let mut bytes = Random::new(g).bytes(256 << 10);
        bytes[..8].copy_from_slice(&g.to_le_bytes());
        bytes
    };
    fs::write(a.join("f"), generation(0)).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for g in 1..60 {
                fs::write(a.join("f.tmp"), generation(g)).unwrap();
                fs::rename(a.join("f.tmp"), a.join("f")).unwrap();
            }
        });
        let (mut last, mut reads) = (0, 0);
        while !writer.is_finished() || reads == 0 {
            let bytes = fs::read(b.join("f")).unwrap();
            let g = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(bytes == generation(g), "a mixture of generations");
            assert!(g >= last, "went back from {last} to {g}");
            (last, reads) = (g, reads + 1);
        }
    });
    assert!(fs::read(b.join("f")).unwrap() == generation(59));
}
