//! Who did it: the identity given to a mount reaches every version and every record of the log.

use crate::common::Farm;
use std::ffi::OsStr;
use std::fs;

#[test]
fn every_version_and_record_names_its_author() {
    let mut farm = Farm::new();
    let space = farm.space();
    let a = farm.mount(&space, &["--agent", "researcher", "--task", "t1", "--step", "collect"]);
    let b = farm.mount(&space, &["--agent", "writer", "--task", "t2"]);
    fs::write(a.join("context.md"), "facts").unwrap();
    fs::write(b.join("report.md"), "text").unwrap();
    fs::write(b.join("context.md"), "facts, edited").unwrap();
    fs::create_dir(a.join("d")).unwrap();
    fs::rename(b.join("report.md"), b.join("d/report.md")).unwrap();
    for m in [&a, &b] {
        farm.cli([OsStr::new("sync"), m.as_os_str()]);
    }
    let who = |v: &serde_json::Value| format!("{}/{}", v["agent"].as_str().unwrap(), v["task"].as_str().unwrap());
    let context = farm.json(&["log", &space, "/context.md"]);
    let context: Vec<_> = context.as_array().unwrap().iter().filter(|v| v["size"] != 0).collect();
    assert_eq!(context.iter().map(|v| who(v)).collect::<Vec<_>>(), ["writer/t2", "researcher/t1"], "{context:?}");
    assert_eq!(context[1]["step"], "collect");
    let report = farm.json(&["log", &space, "/d/report.md"]);
    assert_eq!(who(&report[0]), "writer/t2");

    let log = farm.json(&["log", &space]);
    let log = log.as_array().unwrap();
    assert!(log.windows(2).all(|w| w[0]["seq"].as_u64() > w[1]["seq"].as_u64()), "newest first");
    let made = |path: &str| log.iter().find(|r| r["path"] == path).unwrap_or_else(|| panic!("no {path} in {log:?}"));
    assert_eq!(made("/d")["agent"], "researcher");
    let only = farm.json(&["log", &space, "--agent", "researcher"]);
    assert!(!only.as_array().unwrap().is_empty());
    assert!(only.as_array().unwrap().iter().all(|r| r["agent"] == "researcher"), "{only}");

    let mounts = farm.json(&["mounts"]);
    let mut agents: Vec<_> = mounts.as_array().unwrap().iter().map(|m| m["agent"].as_str().unwrap()).collect();
    agents.sort_unstable();
    assert_eq!(agents, ["researcher", "writer"]);
}

#[test]
fn the_environment_names_the_author_too() {
    let mut farm = Farm::new();
    let space = farm.space();
    let dir = farm.mountpoint();
    let mut command = farm.agfs(["mount", &space]);
    command.arg(&dir).arg("--cache-dir").arg(farm.path("cache")).envs([("AGFS_AGENT", "bot"), ("AGFS_TASK", "t9")]);
    farm.mount_by(&mut command, &dir);
    fs::write(dir.join("f"), "x").unwrap();
    farm.cli([OsStr::new("sync"), dir.as_os_str()]);
    let version = farm.json(&["log", &space, "/f"])[0].clone();
    assert_eq!((&version["agent"], &version["task"]), (&"bot".into(), &"t9".into()));
}
