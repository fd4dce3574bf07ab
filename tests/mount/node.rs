//! npm and node on a mount, and the shadow directory that takes in what they install.

use crate::common::Farm;
use crate::common::tree::{Look, look, same};
use std::fs;
use std::io::ErrorKind;

#[test]
fn what_npm_installs_stays_in_a_shadow() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh_online(
        &m,
        r#"mkdir app && cd app && npm init -y > /dev/null
           npm install --no-audit --no-fund --silent express@5 lodash@4 typescript@5
           [ "$(node -e "require('express'); console.log(require('lodash').chunk([1,2,3,4],2).length)")" = 2 ]
           npx tsc --version && npm ls > /dev/null"#,
    );
    let entries = farm.json(&["ls", &format!("{space}:/app")]);
    let entry = |name: &str| entries.as_array().unwrap().iter().find(|e| e["name"] == name).cloned();
    assert!(entry("package-lock.json").is_some_and(|e| e["shadow"] == false), "{entries}");
    assert!(entry("node_modules").is_some_and(|e| e["shadow"] == true), "{entries}");
    assert_eq!(farm.json(&["ls", &format!("{space}:/app/node_modules")]), serde_json::json!([]));
    assert!(m.join("app/node_modules/express/package.json").exists());

    let other = farm.mount(&space, &[]);
    assert!(other.join("app/package.json").exists());
    assert_eq!(fs::read_dir(other.join("app/node_modules")).unwrap().count(), 0);
}

/// Files in which pnpm notes when and where it worked.
const PNPM_NOTES: &[&str] = &[".modules.yaml", ".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json"];

/// Installs with pnpm, whose packages are hard links into its store, here beside the project.
fn pnpm_install(farm: &Farm, dir: &std::path::Path, pnpm: &str) {
    let script = format!(
        r#"mkdir app && cd app && npm init -y > /dev/null
           pnpm() {{ node '{pnpm}' --config.store-dir="$PWD/../store" --config.package-import-method=hardlink "$@"; }}
           pnpm add --silent express@5 lodash@4 typescript@5
           use() {{ [ "$(node -e "require('express'); console.log(require('lodash').chunk([1,2,3,4],2).length)")" = 2 ]; }}
           use && node_modules/.bin/tsc --version > /dev/null
           [ "$(stat -c %h node_modules/lodash/package.json)" -ge 2 ]
           rm -rf node_modules && pnpm install --silent --offline --frozen-lockfile && use
           pnpm store status > /dev/null && pnpm remove --silent typescript && [ ! -e node_modules/typescript ] && use"#
    );
    farm.sh_online(dir, &script);
}

#[test]
fn pnpm_installs_the_same_tree() {
    let mut farm = Farm::new();
    let tool = farm.plain();
    farm.sh_online(&tool, "npm install --prefix . --no-audit --no-fund --silent pnpm@9");
    let pnpm = tool.join("node_modules/pnpm/bin/pnpm.cjs").display().to_string();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &["--shadow", "none"]), farm.plain());
    for dir in [&plain, &m] {
        pnpm_install(&farm, dir, &pnpm);
    }
    // Its store's index has times in it.
    let what = Look { skip: &["store"], only_present: PNPM_NOTES, ..Look::default() };
    let want = look(&plain, &what);
    assert!(want.len() > 1_000, "{} paths", want.len());
    same(&want, &look(&m, &what), "pnpm on a mount");
    farm.umount(&m);
    let m = farm.mount(&space, &["--shadow", "none"]);
    same(&want, &look(&m, &what), "after a remount with an empty cache");
    farm.sh(&m, "cd app && node -e \"require('express'); require('lodash')\"");
}

#[test]
fn shadows_follow_their_rules() {
    let mut farm = Farm::new();
    let space = farm.space();
    let cache = farm.path("shadowcache");
    let m = farm.mount_with_cache(&space, &[], &cache);
    let shadow = |farm: &Farm, dir: &str, name: &str| {
        let entries = farm.json(&["ls", &format!("{space}:{dir}")]);
        let entry = entries.as_array().unwrap().iter().find(|e| e["name"] == name).cloned();
        entry.unwrap_or_else(|| panic!("no {name} in {dir}"))["shadow"] == true
    };
    fs::create_dir_all(m.join("crate/src")).unwrap();
    fs::write(m.join("crate/Cargo.toml"), "").unwrap();
    fs::create_dir(m.join("crate/target")).unwrap();
    fs::create_dir_all(m.join("linux/drivers/target")).unwrap();
    fs::write(m.join("linux/drivers/target/core.c"), "precious").unwrap();
    assert!(shadow(&farm, "/crate", "target"));
    assert!(!shadow(&farm, "/linux/drivers", "target"), "a directory without the sibling is an ordinary one");

    fs::create_dir_all(m.join("crate/target/release/deps")).unwrap();
    fs::write(m.join("crate/target/release/agfs"), "binary").unwrap();
    fs::write(m.join("plain"), "x").unwrap();
    for (from, to) in [("crate/target/release/agfs", "agfs"), ("plain", "crate/target/plain")] {
        assert_eq!(fs::rename(m.join(from), m.join(to)).unwrap_err().kind(), ErrorKind::CrossesDevices, "{from}");
        assert_eq!(fs::hard_link(m.join(from), m.join(to)).unwrap_err().kind(), ErrorKind::CrossesDevices, "{from}");
    }
    farm.sh(
        &m,
        "mv crate/target/release/agfs moved && [ $(cat moved) = binary ] && [ ! -e crate/target/release/agfs ]",
    );
    assert_eq!(farm.json(&["ls", &format!("{space}:/crate/target")]), serde_json::json!([]));
    assert_eq!(farm.cli(["cat", &format!("{space}:/linux/drivers/target/core.c")]).out(), "precious");

    // The same mount finds its shadow again; it goes when it is removed.
    farm.umount(&m);
    let mut command = farm.agfs(["mount", &space]);
    command.arg(&m).arg("--cache-dir").arg(&cache);
    farm.mount_by(&mut command, &m);
    assert!(m.join("crate/target/release/deps").is_dir());
    fs::remove_dir_all(m.join("crate/target")).unwrap();
    assert!(!m.join("crate/target").exists());
    fs::create_dir(m.join("crate/target")).unwrap();
    assert_eq!(fs::read_dir(m.join("crate/target")).unwrap().count(), 0);
}

#[test]
fn a_rollback_leaves_a_shadow_whose_parent_stays() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    fs::create_dir_all(m.join("app/node_modules/dep")).unwrap();
    fs::write(m.join("app/node_modules/dep/index.js"), "1").unwrap();
    fs::write(m.join("app/main.js"), "before").unwrap();
    farm.json(&["checkpoint", "create", &space, "--name", "c"]);
    fs::write(m.join("app/main.js"), "after").unwrap();
    fs::write(m.join("app/node_modules/dep/later.js"), "2").unwrap();
    farm.json(&["rollback", &space, "c"]);
    assert_eq!(fs::read_to_string(m.join("app/main.js")).unwrap(), "before");
    assert_eq!(fs::read_to_string(m.join("app/node_modules/dep/later.js")).unwrap(), "2");
}

#[test]
fn without_rules_everything_is_in_the_tree() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &["--shadow", "none"]);
    fs::create_dir_all(m.join("node_modules/dep")).unwrap();
    fs::write(m.join("node_modules/dep/index.js"), "kept").unwrap();
    assert_eq!(farm.cli(["cat", &format!("{space}:/node_modules/dep/index.js")]).out(), "kept");
}

#[test]
fn times_are_exact_also_before_1970() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let script = r#"touch -d '1969-12-31 23:59:58.25 UTC' a; touch -d '1970-01-01 00:00:00.000000001 UTC' b
        touch -d '1905-01-01 00:00:00.999999999 UTC' c; touch -d '2200-01-01 00:00:00.5 UTC' d
        stat -c '%n %.9Y' a b c d"#;
    let plain = farm.plain();
    let want = farm.sh(&plain, script);
    assert_eq!(farm.sh(&m, script), want);
    farm.umount(&m);
    let again = farm.mount(&space, &[]);
    assert_eq!(farm.sh(&again, "stat -c '%n %.9Y' a b c d"), want, "after a remount");
}
