//! Editors and copying tools, each run on the mount and on a plain directory, with the same result and the same history.

use crate::common::Farm;
use crate::common::tree::{Look, fill, look, same, tree};
use std::ffi::OsStr;
use std::path::Path;

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

#[test]
fn rsync_copies_there_and_back() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, source, back) = (farm.mount(&space, &[]), farm.plain(), farm.plain());
    fill(&source, 300);
    farm.sh(
        &source,
        "mkfifo pipe; ln d0/e0/f0.txt hard; chmod 2750 d2; touch -h -d 2019-01-01 link; mkdir empty; truncate -s 3M hole",
    );
    let rsync = |from: &Path, to: &Path, more: &str| {
        let script = format!("rsync -aHS {more} '{}/' '{}/'", from.display(), to.display());
        farm.sh(&source, &script)
    };
    rsync(&source, &m, "");
    same(&tree(&source), &tree(&m), "copied to the mount, times too");
    let again = rsync(&source, &m, "-c --delete --itemize-changes");
    assert_eq!(again.trim(), "", "a second run finds nothing to do");
    std::fs::create_dir(m.join(".tmp")).unwrap();
    farm.sh(&source, "echo changed >> d1/e1/f1.txt && rm -rf d3 && mv d4 d44");
    rsync(&source, &m, "--delete --delay-updates --temp-dir=.tmp --exclude=.tmp");
    std::fs::remove_dir(m.join(".tmp")).unwrap();
    rsync(&source, &m, "--delete");
    same(&tree(&source), &tree(&m), "after a second copy");
    rsync(&m, &back, "");
    same(&tree(&source), &tree(&back), "copied back");
}

#[test]
fn tar_packs_and_unpacks_the_same() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, source) = (farm.mount(&space, &[]), farm.plain());
    fill(&source, 300);
    farm.sh(&source, "ln d0/e0/f0.txt hard; chmod 2750 d2; mkdir -p deep/a/b/c; truncate -s 5M hole; echo x >> hole");
    let tar = farm.path("a.tar");
    let pack = |dir: &Path, to: &Path| {
        let script = format!("tar -S --format=posix --sort=name --numeric-owner -cf '{}' .", to.display());
        farm.sh(dir, &script);
        std::fs::read(to).unwrap()
    };
    let want = pack(&source, &tar);
    farm.sh(&m, &format!("tar -S -xpf '{}'", tar.display()));
    same(&tree(&source), &tree(&m), "unpacked on the mount");
    assert!(std::os::unix::fs::MetadataExt::nlink(&std::fs::metadata(m.join("hard")).unwrap()) == 2);
    farm.sh(&m, &format!("tar -df '{}'", tar.display()));
    // Packed again from the mount: the same entries with the same metadata.
    let list = |tar: &Path| farm.sh(&source, &format!("tar --full-time -tvf '{}'", tar.display()));
    let again = farm.path("b.tar");
    let got = pack(&m, &again);
    assert_eq!(list(&tar).lines().count(), list(&again).lines().count());
    assert!(got.len().abs_diff(want.len()) < 64 << 10, "{} and {} bytes", got.len(), want.len());
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    farm.sh(&m, &format!("tar -df '{}'", tar.display()));
    farm.cli([OsStr::new("sync"), m.as_os_str()]);
}
