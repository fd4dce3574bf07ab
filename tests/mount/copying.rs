//! Tools that copy whole trees, onto the mount, from it and within it: rsync, tar and cp, with holes, links and times.

use crate::common::Farm;
use crate::common::tree::{fill, same, tree};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
    assert!(std::fs::metadata(m.join("hard")).unwrap().nlink() == 2);
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

#[test]
fn rsync_through_a_temporary_directory_is_whole_after_a_remount() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, source) = (farm.mount(&space, &[]), farm.plain());
    fill(&source, 1000);
    farm.sh(
        &m,
        &format!(
            "mkdir data .tmp && rsync -a --temp-dir=\"$PWD/.tmp\" '{}/' data/ && [ -z \"$(ls -A .tmp)\" ]",
            source.display()
        ),
    );
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    let again = format!("rsync -acn --delete --itemize-changes '{}/' data/", source.display());
    assert_eq!(farm.sh(&m, &again).trim(), "", "rsync -c finds a difference");
    same(&tree(&source), &tree(&m.join("data")), "after a remount with an empty cache");
    assert_eq!(std::fs::read_dir(m.join(".tmp")).unwrap().count(), 0);
}

#[test]
fn rsync_changes_files_in_place() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, source) = (farm.mount(&space, &[]), farm.plain());
    fill(&source, 100);
    farm.sh(
        &source,
        "head -c 4M /dev/urandom > big; head -c 300000 /dev/urandom > grows; head -c 300000 /dev/urandom > shrinks",
    );
    let rsync =
        |how: &str| farm.sh(&m, &format!("rsync -a --no-whole-file --itemize-changes {how} '{}/' .", source.display()));
    rsync("");
    let inode = |name: &str| std::fs::metadata(m.join(name)).unwrap().ino();
    let names = ["big", "grows", "shrinks"];
    for (round, how) in ["--inplace", "--inplace --checksum", ""].into_iter().enumerate() {
        let before = names.map(inode);
        let edit = "printf changed | dd of=big bs=1 seek=2000000 conv=notrunc status=none; echo more >> grows; truncate -s -70000 shrinks";
        farm.sh(&source, &format!("{edit}; touch -d '2026-01-0{} 03:04:05.678901234' big grows shrinks", round + 1));
        let said = rsync(how);
        assert_eq!(said.lines().filter(|l| l.starts_with(['>', '.'])).count(), 3, "{how}: {said}");
        same(&tree(&source), &tree(&m), how);
        let kept = names.map(inode) == before;
        assert_eq!(kept, !how.is_empty(), "{how}: the same files, and not new ones");
        assert_eq!(rsync("--checksum").trim(), "", "{how}: a second run finds something to do");
    }
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    same(&tree(&source), &tree(&m), "after a remount");
}

/// Makes files that are mostly holes: at the start, at the end, everywhere, and one that is nothing else.
const HOLES: &str = r#"truncate -s 64M all; truncate -s 64M end; printf begin | dd of=end conv=notrunc status=none
    truncate -s 64M start; printf last >> start; truncate -s 64M many
    for i in $(seq 0 7); do head -c 5000 /dev/urandom | dd of=many bs=4096 seek=$((i * 2000)) conv=notrunc status=none; done"#;

/// The bytes that a file takes on the disk.
fn taken(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn sparse_files_stay_sparse() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, source) = (farm.mount(&space, &[]), farm.plain());
    farm.sh(&source, HOLES);
    let source_path = source.display().to_string();
    farm.sh(
        &m,
        &format!(
            r#"tar -S --format=posix -C '{source_path}' -cf - . | (mkdir tar && tar -S -xpf - -C tar)
               mkdir always auto rsync within && cp -p --sparse=always '{source_path}'/* always/
               cp -p --sparse=auto '{source_path}'/* auto/ && cp -p --sparse=always auto/* within/
               rsync -aS '{source_path}/' rsync/ && tar -S --format=posix -cf again.tar -C auto . && [ "$(stat -c %s again.tar)" -lt 1000000 ]
               mkdir again && tar -S -xpf again.tar -C again"#
        ),
    );
    let copies = ["tar", "always", "auto", "rsync", "within", "again"];
    let check = |m: &Path, when: &str| {
        for copy in copies {
            same(&tree(&source), &tree(&m.join(copy)), &format!("{copy} {when}"));
            for name in ["all", "end", "start", "many"] {
                let bytes = taken(&m.join(copy).join(name));
                assert!(bytes <= 512 << 10, "{copy}/{name} takes {bytes} bytes {when}");
            }
        }
    };
    check(&m, "at once");
    farm.sh(&m, "cp -p --sparse=never auto/end never && cmp auto/end never");
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    check(&m, "after a remount");
    farm.sh(&m, "cmp auto/end never && tar -df again.tar -C auto");
}
