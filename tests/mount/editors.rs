//! Editors and tools that edit in place, each run on the mount and on a plain directory, with the same result and the same history.

use crate::common::tree::{Look, look, same};
use crate::common::{Farm, program};

/// Runs the script on a mount and on a plain directory and compares what they left; returns the mount and its space.
fn both(farm: &mut Farm, script: &str) -> (std::path::PathBuf, String) {
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    for dir in [&plain, &m] {
        farm.sh(dir, script);
    }
    let all = Look::default();
    same(&look(&plain, &all), &look(&m, &all), "the mount and a plain directory");
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    same(&look(&plain, &all), &look(&m, &all), "after a remount");
    (m, space)
}

/// The text at each version of a file, oldest first, as its history tells.
fn versions(farm: &Farm, space: &str, path: &str) -> Vec<String> {
    let log = farm.json(&["log", space, path]);
    let read = |v: &serde_json::Value| farm.cli(["cat", &format!("{space}@seq:{}:{path}", v["seq"])]).out();
    log.as_array().unwrap().iter().rev().map(read).collect()
}

#[test]
fn vim_saves_in_each_of_its_ways() {
    let mut farm = Farm::new();
    let (m, space) = both(
        &mut farm,
        r#"printf 'one\ntwo\n' > f && chmod 640 f
           save() { vim -N -u NONE -i NONE -es -c "set backupcopy=$1 backup writebackup undofile undodir=. $3" \
               -c "normal Go$2" -c wq f; }
           save yes three noswapfile && save no four noswapfile && save auto five swapfile
           vim -N -u NONE -i NONE -es -c 'set nobackup nowritebackup' -c '%s/two/2/' -c wq f
           rm -f *.un~ .*.un~"#,
    );
    assert_eq!(std::fs::read_to_string(m.join("f")).unwrap(), "one\n2\nthree\nfour\nfive\n");
    let versions = versions(&farm, &space, "/f");
    for text in ["one\ntwo\n", "one\ntwo\nthree\n", "one\ntwo\nthree\nfour\n", "one\n2\nthree\nfour\nfive\n"] {
        assert!(versions.iter().any(|v| v == text), "not in history: {text:?} in {versions:?}");
    }
}

#[test]
fn tools_that_edit_in_place() {
    let mut farm = Farm::new();
    let (_, space) = both(
        &mut farm,
        r#"for i in $(seq 50); do echo "line $i" >> f; done; cp f g; chmod 600 g
           sed -i 's/line/LINE/' f g && sed -i.bak '1d' f
           perl -pi -e 's/LINE/row/' f && perl -i.orig -ne 'print unless /7/' g
           printf 'new\n' | cat - f > f.new && mv f.new f
           git init -q p && cd p && seq 30 > n && git add n && git commit -qm n && seq 29 > n && git diff > ../d.patch
           git checkout -q n && git apply ../d.patch && [ "$(wc -l < n)" = 29 ] && rm -rf .git"#,
    );
    let versions = versions(&farm, &space, "/f");
    assert!(versions.len() >= 5, "each save is a version: {}", versions.len());
    assert!(versions.last().unwrap().starts_with("new\nrow 2\n"));
}

/// How often each editor saves.
const SAVES: usize = 20;

/// The text before the first save and after each.
fn texts() -> Vec<String> {
    let line = |i: &usize| format!("line {i}\n");
    (0..=SAVES)
        .map(|n| format!("start\n{}", (1..=n).collect::<Vec<_>>().iter().map(line).collect::<String>()))
        .collect()
}

/// Saves `f` again and again with `save` (a command that appends the line `line $i`), on the mount and on a plain directory,
/// which must end alike, with the backup files that are left; the mount's history has each text once or twice, in order,
/// under one name.
fn saves(farm: &mut Farm, what: &str, save: &str) {
    let script = format!(
        r#"umask 022; printf 'start\n' > f && chmod 751 f
           for i in $(seq {SAVES}); do export i; {save}
             [ "$(stat -c %a f)" = 751 ]; [ "$(tail -n 1 f)" = "line $i" ]; done"#
    );
    let (m, space) = both(farm, &script);
    let want = texts();
    assert_eq!(std::fs::read_to_string(m.join("f")).unwrap(), want[SAVES], "{what}");
    let log = farm.json(&["log", &space, "/f"]);
    let log = log.as_array().unwrap();
    assert!(log.iter().all(|v| v["path"] == "/f"), "{what}: {log:?}");
    assert!(log.len() <= 2 * SAVES + 2, "{what}: {} versions of {SAVES} saves", log.len());
    let mut versions = versions(farm, &space, "/f");
    versions.dedup();
    // An editor that writes in place may leave the empty file of its truncation between.
    versions.retain(|v| !v.is_empty());
    assert_eq!(versions, want, "{what}: the versions of the file");
}

#[test]
fn vim_saves_twenty_times() {
    let mut farm = Farm::new();
    for how in ["backupcopy=yes", "backupcopy=no", "backupcopy=auto", "backup backupcopy=yes", "backup backupcopy=no"] {
        let save = format!(r#"vim -N -u NONE -i NONE -es -c 'set {how}' -c "normal Goline $i" -c wq f"#);
        saves(&mut farm, &format!("vim, {how}"), &save);
    }
}

#[test]
fn editors_of_streams_save_twenty_times() {
    let mut farm = Farm::new();
    for (what, save) in [
        ("sed -i", r#"sed -i "\$a line $i" f"#),
        ("sed with a backup", r#"sed -i.bak "\$a line $i" f"#),
        ("perl -i", r#"perl -i -pe '$_ .= "line $ENV{i}\n" if eof' f"#),
        ("perl with a backup", r#"perl -i.orig -pe '$_ .= "line $ENV{i}\n" if eof' f"#),
    ] {
        saves(&mut farm, what, save);
    }
}

#[test]
fn nano_saves_twenty_times() {
    let mut farm = Farm::new();
    // To the last line, the text, write, yes to the name, leave. -B keeps what was before as f~.
    for how in ["-I", "-I -B"] {
        let save = format!(r#"python3 -B '{}' "\\x1b/line $i\\x0f\\r\\x18" nano {how} f"#, program("terminal.py"));
        saves(&mut farm, &format!("nano {how}"), &save);
    }
}

#[test]
fn git_applies_twenty_patches() {
    let mut farm = Farm::new();
    let space = farm.space();
    let script = r#"umask 022; printf 'start\n' > f
        for i in $(seq 20); do
            printf -- '--- a/f\n+++ b/f\n@@ -%d +%d,2 @@\n %s\n+line %d\n' $i $i "$(tail -n 1 f)" $i > p && git apply p
        done; rm p; stat -c '%a %s' f; cat f"#;
    let (plain, m) = (farm.plain(), farm.mount(&space, &[]));
    let want = farm.sh(&plain, script);
    assert!(want.contains("line 20"), "{want}");
    assert_eq!(farm.sh(&m, script), want);
}

/// The ways in which development environments and agents save: in place, by a new file renamed over the old, and by
/// renaming the old one away first.
#[test]
fn programs_save_in_their_own_ways() {
    let mut farm = Farm::new();
    for how in ["in-place", "rename-over", "rename-away", "private-temporary"] {
        saves(&mut farm, how, &format!("python3 -B '{}' {how} f \"line $i\"", program("save.py")));
    }
}

#[test]
fn a_crash_between_write_and_rename_leaves_the_old_text() {
    let mut farm = Farm::new();
    let script = format!(
        r#"printf 'start\n' > f && chmod 640 f
           save() {{ python3 -B '{}' "$1" f "$2"; }}
           save rename-over one
           (save rename-over-crash lost) && exit 1
           [ "$(cat f)" = "$(printf 'start\none')" ] && [ "$(tail -n 1 f.new)" = lost ]
           save rename-over two && [ ! -e f.new ]"#,
        program("save.py")
    );
    let (m, space) = both(&mut farm, &script);
    assert_eq!(std::fs::read_to_string(m.join("f")).unwrap(), "start\none\ntwo\n");
    let mut versions = versions(&farm, &space, "/f");
    versions.dedup();
    assert_eq!(versions, ["start\n", "start\none\n", "start\none\ntwo\n"]);
}
