//! Going back: the whole tree as it was at a checkpoint, seen at once by live mounts, and taken back again.

use crate::common::Farm;
use crate::common::tree::{fill, same, tree};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

const WRECK: &str = r#"rm -rf d1 d2 && sed -i 's/./X/' d3/e*/f* && mv d4 d4moved && chmod 600 d0/e0/f0.txt
    echo new > untracked && rm .env && ln -sf nowhere link && git commit -qam two
    python3 -c 'open("big","wb").write(b"z"*3000000)' && mkdir d5/newdir && rm d6/e1/*"#;

#[test]
fn rollback_and_undo_on_a_live_mount() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 200);
    farm.sh(&m, "git init -q . && git add -A && git commit -qm one && echo secret > .env && echo .env > .gitignore");
    let want = tree(&m);
    let made = farm.json(&["checkpoint", "create", &space, "--name", "before"]);
    assert!(made["seq"].as_u64() > Some(0) && made["name"] == "before", "{made}");

    farm.sh(&m, WRECK);
    let after = tree(&m);
    let diff = farm.json(&["diff", &space, "before"]);
    let change = |path: &str| {
        let entry = diff.as_array().unwrap().iter().find(|e| e["path"].as_str().unwrap().trim_matches('/') == path);
        entry.map(|e| e["change"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    assert_eq!([change("untracked"), change(".env"), change("big")], ["added", "deleted", "added"]);
    assert_eq!([change("d0/e0/f0.txt"), change("link")], ["mode", "modified"]);
    let modified =
        diff.as_array().unwrap().iter().any(|e| {
            e["change"] == "modified" && e["path"].as_str().unwrap().trim_start_matches('/').starts_with("d3/")
        });
    assert!(modified, "{diff}");

    let went = farm.json(&["rollback", &space, "before"]);
    assert!(went["op"].is_string() && went["seq"].is_u64(), "{went}");
    same(&want, &tree(&m), "after the rollback, on the live mount");
    farm.sh(&m, "git fsck --full && git status --porcelain");
    // Git writes its index anew when files in it are of the same second; what was done after the rollback comes back, too.
    let went_on = tree(&m);
    farm.json(&["undo", &space]);
    same(&after, &tree(&m), "after the undo");
    farm.json(&["redo", &space]);
    same(&went_on, &tree(&m), "after the redo");
    farm.json(&["undo", &space]);
    same(&after, &tree(&m), "after the second undo");

    farm.json(&["rollback", &space, "before"]);
    fs::write(m.join("again"), "x").unwrap();
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    fs::remove_file(m.join("again")).unwrap();
    same(&want, &tree(&m), "rollback, then a fresh mount");
}

#[test]
fn every_mount_follows_and_open_files_keep_what_they_had() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    fill(&a, 200);
    let want = tree(&b);
    farm.json(&["checkpoint", "create", &space, "--name", "c"]);
    let mut open = File::open(b.join("d1/e1/f1.txt")).unwrap();
    let content = fs::read(b.join("d1/e1/f1.txt")).unwrap();
    farm.sh(&a, "rm -rf d1 && echo x > d2/n && mkdir later");
    assert!(b.join("later").is_dir() && !b.join("d1").exists());
    farm.json(&["rollback", &space, "c"]);
    for m in [&a, &b] {
        settles(m, &want);
    }
    let mut got = Vec::new();
    match open.read_to_end(&mut got) {
        Ok(_) => assert!(got == content, "an open handle shows other bytes than its own"),
        Err(error) => assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::STALE.raw_os_error()), "{error}"),
    }
}

/// Waits until the mount shows the tree: a rollback has to be seen by every mount within a second.
fn settles(m: &Path, want: &crate::common::tree::Tree) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) && tree(m) != *want {
        std::thread::sleep(Duration::from_millis(50));
    }
    same(want, &tree(m), "a second after the rollback");
}

#[test]
fn a_working_directory_that_was_not_there_is_gone_cleanly() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("kept"), "x").unwrap();
    farm.json(&["checkpoint", "create", &space, "--name", "c"]);
    fs::create_dir_all(m.join("later/deep")).unwrap();
    let handle = File::open(m.join("later/deep")).unwrap();
    farm.json(&["rollback", &space, "c"]);
    assert!(!m.join("later").exists());
    let made = rustix::fs::mkdirat(&handle, "x", rustix::fs::Mode::RWXU);
    assert!(matches!(made, Err(rustix::io::Errno::NOENT | rustix::io::Errno::STALE)), "{made:?}");
    fs::create_dir(m.join("later")).unwrap();
    assert_eq!(fs::read_dir(m.join("later")).unwrap().count(), 0);
}

#[test]
fn many_rounds_of_checkpoint_and_rollback() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 60);
    let mut states = Vec::new();
    for round in 0..12 {
        farm.json(&["checkpoint", "create", &space, "--name", &format!("c{round}")]);
        states.push(tree(&m));
        let script =
            format!("mkdir n{round}; echo {round} > n{round}/f; echo {round} >> d{round}/e*/f{round}.txt || true");
        farm.sh(&m, &script);
    }
    for round in [7usize, 0, 11, 3, 10] {
        farm.json(&["rollback", &space, &format!("c{round}")]);
        same(&states[round], &tree(&m), &format!("rolled back to c{round}"));
    }
    let kept = farm.json(&["checkpoint", "list", &space]);
    let causes: Vec<_> = kept.as_array().unwrap().iter().filter(|c| c["cause"] == "before-rollback").collect();
    assert_eq!(causes.len(), 5, "the state before each rollback is kept: {kept}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "1").unwrap();
    farm.json(&["checkpoint", "create", &space, "--name", "c"]);
    fs::write(m.join("f"), "2").unwrap();
    let head = |farm: &Farm| farm.json(&["space", "show", &space])["head_seq"].clone();
    let before = head(&farm);
    farm.json(&["rollback", &space, "c", "--dry-run"]);
    assert_eq!((fs::read_to_string(m.join("f")).unwrap().as_str(), head(&farm)), ("2", before));
}
