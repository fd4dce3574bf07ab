//! Mounts and servers that come and go in good order: remount, restart, `agfs up`, clean stops, what `mounts` tells.

use crate::common::Farm;
use crate::common::process::is_mounted;
use crate::common::tree::{fill, same, tree};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn everything_survives_remount_and_restart() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 200);
    let want = tree(&m);
    farm.umount(&m);
    farm.stop_server();
    farm.start_server();
    let m = farm.mount(&space, &[]);
    same(&want, &tree(&m), "after a server restart, with another cache");
    farm.umount(&m);
    farm.kill_server();
    farm.start_server();
    let m = farm.mount(&space, &[]);
    same(&want, &tree(&m), "after the server was killed");
}

#[test]
fn a_live_mount_survives_a_restart_of_the_server() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 60);
    let want = tree(&m);
    farm.stop_server();
    farm.start_server();
    same(&want, &tree(&m), "on the mount that lived through it");
    fs::write(m.join("after"), "x").unwrap();
    assert_eq!(farm.cli(["cat", &format!("{space}:/after")]).out(), "x");
}

#[test]
fn inode_numbers_stay() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir(m.join("d")).unwrap();
    fs::write(m.join("d/f"), "x").unwrap();
    let numbers = |m: &std::path::Path| ["", "d", "d/f"].map(|p| fs::metadata(m.join(p)).unwrap().ino());
    let want = numbers(&m);
    farm.umount(&m);
    assert_eq!(numbers(&farm.mount(&space, &[])), want);
}

#[test]
fn up_is_all_that_is_needed_and_stops_cleanly() {
    let mut farm = Farm::without_server();
    let dir = farm.path("workspace");
    for round in 0..2 {
        // Nothing runs: it starts the server, makes the space, and mounts.
        let mut command = farm.agfs([OsStr::new("up"), dir.as_os_str()]);
        farm.mount_by(&mut command, &dir);
        if round == 0 {
            fs::write(dir.join("f"), "kept").unwrap();
        }
        assert_eq!(fs::read_to_string(dir.join("f")).unwrap(), "kept");
        assert_eq!(farm.cli(["cat", "default:/f"]).out(), "kept");
        farm.interrupt(&dir);
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_mount_in_the_background() {
    let mut farm = Farm::new();
    let space = farm.space();
    let dir = farm.mountpoint();
    let cache = farm.path("bgcache");
    farm.cli(["mount", &space, dir.to_str().unwrap(), "-d", "--cache-dir", cache.to_str().unwrap()]);
    // It returns when the mount is there.
    assert!(is_mounted(&dir));
    fs::write(dir.join("f"), "x").unwrap();
    farm.cli([OsStr::new("umount"), dir.as_os_str()]);
    assert!(!is_mounted(&dir));
    assert_eq!(farm.cli(["cat", &format!("{space}:/f")]).out(), "x");
}

#[test]
fn an_interrupted_client_unmounts() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("f"), "last words").unwrap();
    farm.interrupt(&m);
    assert_eq!(farm.cli(["cat", &format!("{space}:/f")]).out(), "last words");
}

#[test]
fn live_mounts_are_listed() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &["--agent", "a1"]);
    let mounts = farm.json(&["mounts"]);
    assert_eq!(mounts.as_array().unwrap().len(), 1, "{mounts}");
    let mount = &mounts[0];
    assert_eq!((&mount["space"], &mount["agent"]), (&space.as_str().into(), &"a1".into()));
    assert_eq!(mount["path"], m.to_str().unwrap());
    assert!(["exclusive", "shared", "none"].contains(&mount["lease"].as_str().unwrap()), "{mount}");
    fs::write(m.join("f"), "x").unwrap();
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    // The mount tells the server what it has seen a moment after it has answered.
    let head = farm.json(&["space", "show", &space])["head_seq"].clone();
    let mut mount = serde_json::Value::Null;
    for _ in 0..100 {
        mount = farm.json(&["mounts"])[0].clone();
        if (&mount["seen_seq"], &mount["pending"]) == (&head, &0.into()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!((&mount["seen_seq"], &mount["pending"]), (&head, &0.into()), "{mount}");
    farm.umount(&m);
    assert_eq!(farm.json(&["mounts"]), serde_json::json!([]));
}

#[test]
fn inside_a_mount_the_space_need_not_be_named() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir(m.join("d")).unwrap();
    let mut command = farm.agfs(["checkpoint", "create", "--name", "here", "--json"]);
    let done = crate::common::run::run(command.current_dir(m.join("d")), b"", std::time::Duration::from_secs(30));
    assert!(done.status.success(), "{}", done.tail());
    assert_eq!(farm.json(&["checkpoint", "show", &space, "here"])["name"], "here");
}
