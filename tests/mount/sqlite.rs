//! SQLite on one mount: both journal modes, several processes, writers that are killed, and what a commit costs.

use crate::common::{Farm, long, program};
use std::path::Path;
use std::time::Duration;

#[test]
fn sqlite_commits_in_both_journal_modes() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let program = r#"
import sqlite3, sys
mode = sys.argv[1]
db = sqlite3.connect(mode + ".db")
assert db.execute("pragma journal_mode=" + mode).fetchone() == (mode,)
db.execute("create table t(a)")
for i in range(300):
    db.execute("insert into t values(?)", (i,)); db.commit()
assert db.execute("select count(*), sum(a) from t").fetchone() == (300, 44850)
assert db.execute("pragma integrity_check").fetchone() == ("ok",)
db.close()
"#;
    std::fs::write(farm.path("commit.py"), program).unwrap();
    let check = |m: &Path, farm: &Farm, mode: &str| {
        let count = format!(
            "import sqlite3; d = sqlite3.connect('{mode}.db'); \
             print(d.execute('pragma integrity_check').fetchone()[0], d.execute('select count(*) from t').fetchone()[0])"
        );
        assert_eq!(farm.sh(m, &format!("python3 -c \"{count}\"")).trim(), "ok 300", "{mode}");
    };
    for mode in ["wal", "delete"] {
        farm.sh(&m, &format!("python3 '{}' {mode}", farm.path("commit.py").display()));
        check(&m, &farm, mode);
    }
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    for mode in ["wal", "delete"] {
        check(&m, &farm, mode);
    }
}

#[test]
fn sqlite_with_several_writers_loses_no_commit() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let program = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + ".db", timeout=120, isolation_level=None)
for i in range(50):
    db.execute("begin immediate"); db.execute("update n set v = v + 1"); db.execute("commit")
"#;
    std::fs::write(farm.path("count.py"), program).unwrap();
    for mode in ["wal", "delete"] {
        let script = format!(
            r#"python3 -c "import sqlite3; d = sqlite3.connect('{mode}.db'); d.execute('pragma journal_mode={mode}'); d.execute('create table n(v)'); d.execute('insert into n values(0)'); d.commit()"
               for w in 1 2 3 4; do python3 '{program}' {mode} & pids="${{pids-}} $!"; done; for p in $pids; do wait $p; done
               python3 -c "import sqlite3; d = sqlite3.connect('{mode}.db'); print(d.execute('select v from n').fetchone()[0], d.execute('pragma integrity_check').fetchone()[0])""#,
            program = farm.path("count.py").display()
        );
        assert_eq!(farm.sh(&m, &script).trim(), "200 ok", "{mode}");
    }
}

/// Four writers, of which one after the other is killed, and four readers; then the database is looked at where it is,
/// after a remount, and in a copy on the plain disk.
fn storm(mode: &str) {
    let mut farm = Farm::new();
    let space = farm.space();
    let (m, copy, acknowledged) = (farm.mount(&space, &[]), farm.plain(), farm.plain());
    let storm = program("sqlite_storm.py");
    let acknowledged = acknowledged.display();
    let seconds = if long() { 300 } else { 20 };
    let run = format!("python3 -B '{storm}' run db '{acknowledged}' {mode} {seconds}");
    let told = farm.sh_within(&m, &run, Duration::from_secs(seconds + 200));
    eprintln!("{mode}: {}", told.trim());
    let words: Vec<&str> = told.split([' ', ',']).collect();
    let (rows, kills): (u64, u64) = (words[0].parse().unwrap(), words[3].parse().unwrap());
    assert!(kills >= seconds / 3, "{told}");
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    // First the copy: a check would tidy up what the writers left.
    farm.sh(&m, &format!("cp -p db* '{}/'", copy.display()));
    for dir in [&m, &copy] {
        let check = format!("python3 -B '{storm}' check db '{acknowledged}'");
        assert_eq!(farm.sh_within(dir, &check, Duration::from_secs(100)).trim(), format!("{rows} rows"));
    }
}

#[test]
fn killed_writers_lose_no_commit_of_a_wal_database() {
    storm("wal");
}

#[test]
fn killed_writers_lose_no_commit_of_a_rollback_journal_database() {
    storm("delete");
}

#[test]
fn a_wal_commit_costs_about_an_fsync() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    let told = farm.sh(&m, &format!("python3 -B '{}' .", program("commit_cost.py")));
    eprintln!("{}", told.trim());
    let figures: serde_json::Value = serde_json::from_str(&told).unwrap();
    let figure = |name: &str| figures[name].as_f64().unwrap();
    assert!(figure("wal_bytes") > 4e6, "{told}");
    assert!(figure("commit_p99") < 3.0 * figure("fsync_p99"), "{told}");
    assert!(figure("commit_p50") < 3.0 * figure("fsync_p50"), "{told}");
    // A commit is not several versions.
    let versions = farm.json(&["log", &space, "/cost.db-wal"]).as_array().unwrap().len();
    assert!(versions <= 1_010, "{versions} versions of the log");
}
