//! git at work on one mount: its lock files, renames, packs and many small objects.

use crate::common::tree::{Look, look, same};
use crate::common::{Farm, program};
use std::path::{Path, PathBuf};

#[test]
fn a_repository_through_its_life() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"git init -q -b main r && cd r
           for i in $(seq 200); do mkdir -p d$((i%7)); echo "file $i" > d$((i%7))/f$i; done
           git add -A && git commit -qm one && git checkout -qb side && sed -i s/file/FILE/ d1/*
           git commit -qam two && git checkout -q main && git merge -q side && git gc -q && git fsck --full --strict
           [ -z "$(git status --porcelain)" ]
           git clone -q . ../r2 && cd ../r2 && [ "$(git log --oneline | wc -l)" = 2 ] && git stash list
           echo dirty > d2/f2 && git stash -q && [ "$(cat d2/f2)" = "file 2" ] && git stash pop -q && git checkout -q .
           git worktree add -q ../wt -b third origin/side && rm -rf ../wt && git worktree prune
           git rebase -q origin/side && git fsck --full --strict"#,
    );
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    farm.sh(&m, r#"cd r && git fsck --full --strict && [ -z "$(git status --porcelain)" ]"#);
}

/// A repository on the plain disk with at least 50,000 objects in one pack.
fn large_source(farm: &mut Farm) -> PathBuf {
    let dir = farm.plain();
    let script = format!(
        r#"git init -q --bare -b main . && python3 -B '{}' 1650 | git fast-import --quiet --done
           git rev-list --objects --all | wc -l"#,
        program("make_history.py")
    );
    let objects: usize = farm.sh(&dir, &script).trim().parse().unwrap();
    assert!(objects >= 50_000, "only {objects} objects");
    dir
}

/// Clones with most objects in a pack and thousands of loose ones, works on branches and work trees, and packs again;
/// the heads that come of it.
fn long_life(farm: &Farm, dir: &Path, source: &Path) -> String {
    let script = format!(
        r#"clean() {{ [ -z "$(git status --porcelain)" ] && git fsck --full --strict --no-progress; }}
           git init -q -b main r && cd r && git remote add origin 'file://{source}'
           git -C '{source}' tag -f early main~150 2> /dev/null
           git fetch -q origin tag early && git -c fetch.unpackLimit=1000000 fetch -q origin main
           [ "$(git count-objects | cut -d' ' -f1)" -gt 3000 ]
           git checkout -q -b main origin/main && clean
           git checkout -q -b topic main~20
           for i in $(seq 10); do echo $i > topic$i; git add topic$i; git commit -qm "topic $i"; done
           git rebase -q main && [ "$(git rev-list --count main..topic)" = 10 ] && clean
           git worktree add -q ../wt -b third main~100
           (cd ../wt && clean && echo x > new && git add new && git commit -qm third)
           git worktree move ../wt ../moved && git worktree lock ../moved && git worktree unlock ../moved
           (cd ../moved && clean) && git worktree remove ../moved && [ ! -e ../moved ]
           git checkout -q main && git repack -adq && clean
           [ "$(ls .git/objects/pack/*.pack | wc -l)" = 1 ] && [ "$(git count-objects)" = "0 objects, 0 kilobytes" ]
           git reflog expire --expire=now --all && git gc -q --prune=now && clean
           [ "$(git rev-list --objects --all | wc -l)" -ge 50000 ]
           [ -z "$(find .git -name '*.lock' -o -name 'tmp_*')" ]
           git rev-parse main topic third"#,
        source = source.display()
    );
    farm.sh(dir, &script)
}

#[test]
fn fifty_thousand_objects_are_cloned_rebased_and_packed() {
    let mut farm = Farm::new();
    let source = large_source(&mut farm);
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    let want = long_life(&farm, &plain, &source);
    assert_eq!(long_life(&farm, &m, &source), want);
    // Below .git are times and inode numbers.
    let what = Look { skip: &[".git"], ..Look::default() };
    let files = look(&plain, &what);
    assert!(files.len() > 2_000, "{} files", files.len());
    same(&files, &look(&m, &what), "the work tree");
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    same(&files, &look(&m, &what), "after a remount with an empty cache");
    let script = r#"cd r && git fsck --full --strict --no-progress && [ -z "$(git status --porcelain)" ]
        git rev-parse main topic third"#;
    assert_eq!(farm.sh(&m, script), want);
}

/// 200 rounds of config, add and commit through `write`, while another shell runs `status` all the time; returns how often
/// the two met at a lock.
fn lock_cycle(farm: &Farm, m: &Path, status: &str, write: &str) -> u32 {
    let script = format!(
        r#"git init -q -b main . && git commit -q --allow-empty -m root
           overlaps=0
           alone() {{ git "$@"; }}
           # Another writer that holds the index is waited for; nothing else may go wrong.
           patient() {{ until git "$@" 2> ../said; do
               grep -q "index.lock': File exists" ../said || {{ cat ../said >&2; return 1; }}
               overlaps=$((overlaps + 1)); [ $overlaps -lt 20000 ]; done; }}
           (until [ -e done ]; do {status} > /dev/null; done) & looker=$!
           trap 'touch done' EXIT
           for i in $(seq 200); do
             git config user.round $i; echo $i > f$i; {write} add f$i; {write} commit -qm "round $i"
           done
           touch done && wait $looker
           [ "$(git rev-list --count HEAD)" = 201 ] && [ "$(git config user.round)" = 200 ]
           [ -z "$(find . -name '*.lock')" ] && git fsck --full --no-progress
           rm done && [ -z "$(git status --porcelain)" ] && echo $overlaps"#
    );
    let dir = m.join("r");
    std::fs::create_dir(&dir).unwrap();
    farm.sh(&dir, &script).trim().parse().unwrap()
}

#[test]
fn lock_files_cycle_while_another_shell_looks() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let overlaps = lock_cycle(&farm, &m, "git --no-optional-locks status --porcelain", "alone");
    assert_eq!(overlaps, 0);
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    farm.sh(&m, r#"cd r && git fsck --full --no-progress && [ "$(git rev-list --count HEAD)" = 201 ]"#);
}

#[test]
fn lock_files_cycle_while_another_shell_refreshes_the_index() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    // This status takes the lock too, and goes without when it is taken.
    lock_cycle(&farm, &m, "git status --porcelain", "patient");
}
