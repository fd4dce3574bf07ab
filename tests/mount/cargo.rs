//! cargo with its target directory on a mount: a build, and the builds after it that have nothing to do.

use crate::common::Farm;
use std::path::Path;

/// Crates of this repository's own lock file: what built the test has them at hand.
const DEPENDENCIES: &[&str] = &["itoa", "memchr", "scopeguard", "smallvec", "thiserror"];

const MAIN: &str = r#"
#[derive(Debug, thiserror::Error)]
#[error("at {0}")]
struct At(usize);

fn main() {
    let mut digits = itoa::Buffer::new();
    let list: smallvec::SmallVec<[u8; 4]> = (0..9).collect();
    let _guard = scopeguard::guard((), |()| println!("end"));
    let at = At(memchr::memchr(7, &list).unwrap());
    println!("{} {at} {}", digits.format(list.len()), include_str!(concat!(env!("OUT_DIR"), "/made")));
}
"#;
const BUILD: &str = r#"
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("made"), "made").unwrap();
}
"#;

/// The newest version of a package in this repository's lock file.
fn locked(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock").parse::<toml::Table>().unwrap();
    let package = lock["package"].as_array().unwrap().iter().rfind(|p| p["name"].as_str() == Some(name));
    package.unwrap_or_else(|| panic!("{name} is not in Cargo.lock"))["version"].as_str().unwrap().to_owned()
}

/// Writes the crate `app` with copies of its dependencies.
fn write_app(farm: &Farm, m: &Path) {
    let app = m.join("app");
    std::fs::create_dir_all(app.join("src")).unwrap();
    let needs: String = DEPENDENCIES.iter().map(|d| format!("{d} = \"={}\"\n", locked(d))).collect();
    let manifest = format!(
        "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\n{needs}\n[workspace]\n"
    );
    for (name, text) in [("Cargo.toml", manifest.as_str()), ("src/main.rs", MAIN), ("build.rs", BUILD)] {
        std::fs::write(app.join(name), text).unwrap();
    }
    let vendor = "mkdir .cargo && (cargo vendor -q --offline || cargo vendor -q) > .cargo/config.toml 2> ../vendor.log";
    farm.sh_online(&app, vendor);
}

/// Writes a workspace of so many small crates, each of which needs two before it.
fn write_workspace(m: &Path, crates: usize) {
    let root = m.join("many");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("Cargo.toml"), "[workspace]\nresolver = \"2\"\nmembers = [\"c*\"]\n").unwrap();
    for i in 0..crates {
        let below: Vec<usize> = [i / 2, i / 3]
            .into_iter()
            .filter(|b| *b < i)
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        let needs: String = below.iter().map(|b| format!("c{b} = {{ path = \"../c{b}\" }}\n")).collect();
        let sum: String = below.iter().map(|b| format!(" + c{b}::value()")).collect();
        let dir = root.join(format!("c{i}"));
        std::fs::create_dir_all(dir.join("src")).unwrap();
        let head = format!("[package]\nname = \"c{i}\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\n");
        std::fs::write(dir.join("Cargo.toml"), head + &needs).unwrap();
        std::fs::write(dir.join("src/lib.rs"), format!("pub fn value() -> u64 {{ 1{sum} }}\n")).unwrap();
    }
}

/// Runs `cargo build -v` with the target directory beside the sources; returns what it said, a line a step.
fn build(farm: &Farm, dir: &Path) -> Vec<String> {
    let script = "env -u CARGO_TARGET_DIR -u CARGO_BUILD_TARGET_DIR -u RUSTFLAGS CARGO_PROFILE_DEV_DEBUG=0 \
                  cargo build -v --offline 2>&1";
    farm.sh_online(dir, script).lines().map(|l| l.trim().to_owned()).collect()
}

/// The crates that a build compiled, and those it found as they were.
fn steps(said: &[String]) -> (usize, usize) {
    let count = |word: &str| said.iter().filter(|l| l.starts_with(word)).count();
    assert_eq!(count("Dirty "), 0, "{}", said.join("\n"));
    (count("Compiling "), count("Fresh "))
}

/// Builds, and again with nothing changed; returns how many crates there are.
fn build_twice(farm: &Farm, dir: &Path) -> usize {
    let (compiled, fresh) = steps(&build(farm, dir));
    assert_eq!(fresh, 0);
    assert_unchanged(farm, dir, compiled);
    compiled
}

fn assert_unchanged(farm: &Farm, dir: &Path, crates: usize) {
    let said = build(farm, dir);
    assert_eq!(steps(&said), (0, crates), "a build of what has not changed: {}", said.join("\n"));
    assert!(!said.iter().any(|l| l.contains("rustc")), "{}", said.join("\n"));
}

#[test]
fn an_unchanged_crate_is_not_compiled_again() {
    let mut farm = Farm::new();
    let space = farm.space();
    let options = &["--shadow", "none"];
    let m = farm.mount(&space, options);
    write_app(&farm, &m);
    let app = m.join("app");
    let crates = build_twice(&farm, &app);
    assert!(crates > DEPENDENCIES.len(), "{crates} crates");
    let run = || farm.sh(&app, "target/debug/app");
    assert_eq!(run(), "9 at 7 made\nend\n");
    assert_eq!(farm.cli(["ls", &format!("{space}:/app/target/debug/app")]).code(), 0, "the target is in the tree");

    farm.remount(&space, options, &m);
    assert_unchanged(&farm, &app, crates);
    assert_eq!(farm.sh(&app, "target/debug/app"), "9 at 7 made\nend\n");
    // What has changed is compiled, and only that.
    farm.sh(&app, "sed -i s/end/END/ src/main.rs");
    let said = build(&farm, &app);
    let compiled: Vec<&String> = said.iter().filter(|l| l.starts_with("Compiling ")).collect();
    assert!(compiled.len() == 1 && compiled[0].contains(" app "), "{}", said.join("\n"));
    assert_eq!(farm.sh(&app, "target/debug/app"), "9 at 7 made\nEND\n");
}

#[test]
fn a_workspace_of_a_hundred_crates() {
    let mut farm = Farm::new();
    for options in [&["--shadow", "none"][..], &[]] {
        let space = farm.space();
        let m = farm.mount(&space, options);
        write_workspace(&m, 100);
        assert_eq!(build_twice(&farm, &m.join("many")), 100, "with {options:?}");
        if !options.is_empty() {
            farm.remount(&space, options, &m);
            assert_unchanged(&farm, &m.join("many"), 100);
        }
    }
}

#[test]
fn cargo_waits_for_the_lock_of_another() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &["--shadow", "none"]);
    write_workspace(&m, 3);
    let many = m.join("many");
    build(&farm, &many);
    let script = r#"unset CARGO_TARGET_DIR CARGO_BUILD_TARGET_DIR
        flock target/debug/.cargo-lock sh -c 'touch ../locked; until grep -q Blocking ../said; do sleep 0.05; done' & holder=$!
        until [ -e ../locked ]; do sleep 0.05; done
        timeout 60 cargo build --offline 2> ../said && wait $holder && cat ../said"#;
    let said = farm.sh_online(&many, script);
    assert!(said.contains("Blocking waiting for file lock") && said.contains("Finished"), "{said}");
}
