//! Looking back: versions of a file, differences, single paths restored, forks, the past without a mount and as a mount.

use crate::common::Farm;
use crate::common::tree::{fill, part, same, tree};
use std::ffi::OsStr;
use std::fs;

#[test]
fn every_generation_of_a_file_can_be_read_back() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let texts: Vec<String> = (0..6).map(|i| format!("generation {i}\n").repeat(i + 1)).collect();
    for (i, text) in texts.iter().enumerate() {
        // As editors do it, and in place.
        let name = if i % 2 == 1 { "t.tmp" } else { "doc.md" };
        fs::write(m.join(name), text).unwrap();
        if i % 2 == 1 {
            fs::rename(m.join(name), m.join("doc.md")).unwrap();
        }
    }
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    let versions = farm.json(&["log", &space, "/doc.md"]);
    let versions = versions.as_array().unwrap();
    assert!(versions.len() >= 6, "{versions:?}");
    assert!(versions.windows(2).all(|w| w[0]["seq"].as_u64() > w[1]["seq"].as_u64()), "newest first");
    let read = |v: &serde_json::Value| farm.cli(["cat", &format!("{space}@seq:{}:/doc.md", v["seq"])]).out();
    let got: Vec<String> = versions.iter().map(read).collect();
    for text in &texts {
        assert!(got.contains(text), "cannot be read back: {text:?}");
    }
    let third = versions.iter().find(|v| v["size"] == texts[2].len()).unwrap();
    farm.json(&["restore", &space, &format!("seq:{}", third["seq"]), "--", "/doc.md"]);
    assert_eq!(fs::read_to_string(m.join("doc.md")).unwrap(), texts[2]);
    farm.json(&["undo", &space]);
    assert_eq!(fs::read_to_string(m.join("doc.md")).unwrap(), texts[5]);
}

#[test]
fn history_follows_a_rename() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::write(m.join("draft"), "1").unwrap();
    fs::create_dir(m.join("d")).unwrap();
    fs::rename(m.join("draft"), m.join("d/final")).unwrap();
    fs::write(m.join("d/final"), "22").unwrap();
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    let versions = farm.json(&["log", &space, "/d/final"]);
    let sizes: Vec<u64> = versions.as_array().unwrap().iter().filter_map(|v| v["size"].as_u64()).collect();
    assert!(sizes.first() == Some(&2) && sizes.contains(&1), "{versions}");
    let first = versions.as_array().unwrap().iter().find(|v| v["size"] == 1).unwrap();
    assert_eq!(first["path"], "/draft");
}

#[test]
fn only_the_named_paths_are_restored() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 200);
    let want = tree(&m);
    farm.json(&["checkpoint", "create", &space, "--name", "c"]);
    farm.sh(&m, "rm -rf d1 && echo x >> d2/e2/f2.txt && echo keep > d3/mine");
    farm.json(&["restore", &space, "c", "--", "/d1"]);
    let got = tree(&m);
    assert!(got.contains_key(std::path::Path::new("d3/mine")));
    let changed = std::path::Path::new("d2/e2/f2.txt");
    assert_ne!(got[changed], want[changed]);
    let below = |t| part(t, |p| p.starts_with("d1"));
    same(&below(&want), &below(&got), "the restored directory");
}

#[test]
fn a_fork_is_independent() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 200);
    let want = tree(&m);
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
    farm.json(&["fork", &space, "twin"]);
    let twin = farm.mount("twin", &[]);
    same(&want, &tree(&twin), "the fork");
    farm.sh(&twin, "rm -rf d1 && echo a > only_fork");
    farm.sh(&m, "echo b > only_main");
    let original = part(&tree(&m), |p| p != std::path::Path::new("only_main"));
    same(&want, &original, "the original");
    assert!(!twin.join("only_main").exists() && !m.join("only_fork").exists());
}

#[test]
fn a_checkpoint_has_everything_closed_before_it() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (a, b) = (farm.mount(&space, &[]), farm.mount(&space, &[]));
    for round in 0..20 {
        let (x, name) = (if round % 2 == 0 { &a } else { &b }, format!("c{round}"));
        fs::write(x.join("f"), round.to_string()).unwrap();
        farm.json(&["checkpoint", "create", &space, "--name", &name]);
        assert_eq!(farm.cli(["cat", &format!("{space}@{name}:/f")]).out(), round.to_string());
    }
}

#[test]
fn the_past_can_be_read_without_a_mount_and_mounted() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fill(&m, 60);
    let want = tree(&m);
    farm.json(&["checkpoint", "create", &space, "--name", "then"]);
    farm.sh(&m, "rm -rf d1 && echo now > d2/e2/f2.txt && echo now > added");
    let past = farm.mount(&format!("{space}@then"), &[]);
    same(&want, &tree(&past), "a mount of the past");
    assert_eq!(fs::write(past.join("x"), "").unwrap_err().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let content = fs::read(past.join("d2/e2/f2.txt")).unwrap();
    let cat = |at: &str| farm.cli(["cat", &format!("{space}{at}:/d2/e2/f2.txt")]).stdout;
    assert!(cat("@then") == content && cat("@@-1") == content);
    assert_eq!(cat(""), b"now\n");
    let names = |at: &str| farm.json(&["ls", &format!("{space}{at}:/")]).to_string();
    assert!(names("").contains("\"added\"") && !names("@then").contains("\"added\""));

    let patch = farm.cli(["diff", &space, "then", "--patch", "--", "/d2/e2/f2.txt"]);
    assert!(patch.out().contains("Binary file d2/e2/f2.txt differs"), "{}", patch.out());
    let patch = farm.cli(["diff", &space, "then", "--patch", "--", "/added"]);
    assert!(patch.out().contains("+++ b/added") && patch.out().contains("+now"), "{}", patch.out());
    let stat = farm.cli(["diff", &space, "then", "--stat"]);
    assert!(stat.out().contains("added"), "{}", stat.out());
}

#[test]
fn the_command_line_changes_a_tree_that_is_mounted() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let at = |path: &str| format!("{space}:{path}");
    farm.cli(["mkdir", &at("/d")]);
    farm.cli_input(["put", &at("/d/f")], b"put by hand");
    assert_eq!(fs::read_to_string(m.join("d/f")).unwrap(), "put by hand");
    farm.cli(["mv", &at("/d/f"), &at("/d/g")]);
    assert!(!m.join("d/f").exists() && m.join("d/g").exists());
    farm.cli(["cp", "-r", &at("/d"), &at("/e")]);
    assert_eq!(fs::read_to_string(m.join("e/g")).unwrap(), "put by hand");
    farm.cli(["rm", "-y", &at("/d/g")]);
    assert_eq!(fs::read_dir(m.join("d")).unwrap().count(), 0);
    let stat = farm.json(&["stat", &at("/e/g")]);
    assert_eq!((&stat["size"], &stat["node_type"]), (&11.into(), &"file".into()));
    assert!(farm.cli(["tree", &at("/")]).out().contains('g'));
}
