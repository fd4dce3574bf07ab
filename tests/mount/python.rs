//! Python and SQLite on one mount: virtual environments, both journal modes, several writers, copies that hold.

use crate::common::Farm;

#[test]
fn a_virtual_environment_runs() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"python3 -m venv env && env/bin/python -c 'import json, sqlite3, ssl, ctypes'
           env/bin/python -m pip --version && printf 'import sys\nprint(sys.prefix)\n' > where.py
           [ "$(env/bin/python where.py)" = "$PWD/env" ]"#,
    );
}

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
    let check = |m: &std::path::Path, farm: &Farm, mode: &str| {
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

#[test]
fn a_shared_mapping_reaches_the_file() {
    let mut farm = Farm::new();
    let space = farm.space();
    let m = farm.mount(&space, &[]);
    farm.sh(
        &m,
        r#"python3 - <<'PY'
import mmap, os
fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644); os.ftruncate(fd, 1 << 20)
with mmap.mmap(fd, 1 << 20) as view:
    for at in range(0, 1 << 20, 4096): view[at:at + 8] = at.to_bytes(8, "big")
    view.flush()
    for at in range(0, 1 << 20, 4096): assert os.pread(fd, 8, at) == at.to_bytes(8, "big")
    os.close(fd)
    view[100:105] = b"after"
PY
           [ "$(dd if=f bs=1 skip=100 count=5 status=none)" = after ]"#,
    );
    farm.umount(&m);
    let m = farm.mount(&space, &[]);
    assert_eq!(&std::fs::read(m.join("f")).unwrap()[100..105], b"after", "written through a mapping after the close");
}
