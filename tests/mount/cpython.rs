//! CPython's own tests of what touches the file system, with their working and temporary directory on a mount.

use crate::common::Farm;
use crate::common::run::run;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The Python whose tests deploy/bootstrap.sh installs.
const PYTHON: &str = "/usr/bin/python3";
const MODULES: &[&str] =
    &["test_os", "test_posix", "test_shutil", "test_tempfile", "test_mmap", "test_fcntl", "test_zipfile"];

/// Prints each test of a report with its outcome.
const OUTCOMES: &str = r#"
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    kinds = [c.tag + " " + (c.text or "").split("\n")[0] for c in case if c.tag in ("skipped", "failure", "error")]
    print(case.get("name"), *(kinds or ["passed"]), sep="\t")
"#;

/// Each test by its name with its outcome: passed, or skipped and why, or failed.
fn outcomes(farm: &Farm, dir: &Path) -> BTreeMap<String, String> {
    let (temporary, report) = (dir.join("tmp"), dir.join("report.xml"));
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(PYTHON);
    farm.isolate(&mut command);
    command.args(["-m", "test", "--junit-xml"]).arg(&report).arg("--tempdir").arg(&temporary).args(MODULES);
    command.env("TMPDIR", &temporary).current_dir(&temporary);
    // Some tests may fail on every file system: outcomes are compared, not the exit code.
    let done = run(&mut command, b"", Duration::from_secs(300));
    assert!(report.exists(), "no report\n{}", done.tail());
    let text = farm.sh(dir, &format!("{PYTHON} -c '{OUTCOMES}' report.xml"));
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    for line in text.lines() {
        let (name, outcome) = line.split_once('\t').unwrap();
        // One entry may stand for several parts of a test.
        all.entry(name.to_owned()).and_modify(|o| *o = format!("{o}, {outcome}")).or_insert_with(|| outcome.to_owned());
    }
    all
}

#[test]
fn the_tests_of_cpython_have_the_outcomes_of_a_plain_disk() {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, plain) = (farm.mount(&space, &[]), farm.plain());
    let want = outcomes(&farm, &plain);
    let passed = want.values().filter(|o| *o == "passed").count();
    assert!(want.len() > 1_000 && passed > 800, "{} tests, {passed} passed", want.len());
    let got = outcomes(&farm, &m);
    let differ: Vec<String> = want
        .keys()
        .chain(got.keys())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .filter(|name| want.get(*name) != got.get(*name))
        .map(|name| format!("{name}: plain {:?}, mount {:?}", want.get(name), got.get(name)))
        .collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
