//! Programs of tests/programs that print what they see: the same on a plain directory and on a mount, and what must last is
//! the same again after a remount with an empty cache, after a rollback over a wrecked tree, and in a fork.

use crate::common::{Farm, program};
use std::path::Path;

/// Where the mounts of a program are.
const OPTIONS: [&str; 3] = ["--allow-other", "--shadow", "none"];

fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
}

fn alike(name: &str) {
    let mut farm = Farm::new();
    let space = farm.space();
    let (plain, m) = (farm.plain(), farm.mount(&space, &OPTIONS));
    let ran = |farm: &Farm, dir: &Path, part: &str| {
        farm.sh(dir, &format!("python3 -B '{}' '{}' {part}", program(name), dir.display()))
    };
    for dir in [&plain, &m] {
        open_to_all(dir);
    }
    same(&ran(&farm, &plain, "make"), &ran(&farm, &m, "make"), "what was done");
    let want = ran(&farm, &plain, "look");
    assert!(want.lines().count() > 5, "{want}");
    same(&want, &ran(&farm, &m, "look"), "what lasts");
    farm.remount(&space, &OPTIONS, &m);
    same(&want, &ran(&farm, &m, "look"), "after a remount");
    farm.cli(["checkpoint", "create", &space, "--name", "made"]);
    farm.cli(["fork", &format!("{space}@made"), "forked"]);
    ran(&farm, &m, "wreck");
    assert!(want != ran(&farm, &m, "look"), "nothing was wrecked");
    farm.cli(["rollback", &space, "made"]);
    same(&want, &ran(&farm, &m, "look"), "after a rollback");
    let forked = farm.mount("forked", &OPTIONS);
    same(&want, &ran(&farm, &forked, "look"), "in a fork");
}

fn same(want: &str, got: &str, what: &str) {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (want, got) = (lines(want), lines(got));
    let differ: Vec<_> = want.iter().zip(&got).filter(|(a, b)| a != b).take(10).collect();
    assert!(differ.is_empty() && want.len() == got.len(), "{what} (plain, mount): {differ:#?}");
}

#[test]
fn modes_owners_and_set_id_bits() {
    alike("modes.py");
}

#[test]
fn times_and_what_changes_them() {
    alike("timestamps.py");
}

#[test]
fn extended_attributes_of_all_namespaces() {
    alike("xattrs.py");
}

#[test]
fn holes_of_many_shapes() {
    alike("sparse.py");
}

#[test]
fn fifos_sockets_devices_links_names_and_mappings() {
    alike("special.py");
}

#[test]
fn calls_that_few_programs_make() {
    alike("seldom.py");
}
