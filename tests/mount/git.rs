//! git at work on one mount: its lock files, renames, packs and many small objects.

use crate::common::Farm;

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

#[test]
fn lock_files_cycle_while_another_shell_looks() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"git init -q -b main . && git commit -q --allow-empty -m root
           (until [ -e done ]; do git --no-optional-locks status --porcelain > /dev/null; done) & looker=$!
           for i in $(seq 100); do
             git config user.round $i; echo $i > f$i; git add f$i; git commit -qm "round $i"
           done
           touch done && wait $looker
           [ "$(git rev-list --count HEAD)" = 101 ] && [ "$(git config user.round)" = 100 ]
           [ -z "$(find . -name '*.lock')" ] && git fsck --full"#,
    );
}
