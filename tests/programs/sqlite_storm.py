"""Several processes write and read one SQLite database while writers are killed at random; nothing that was
acknowledged may be missing at the end.

    sqlite_storm.py run DB ACKNOWLEDGED_DIR wal|delete SECONDS    exits 0 and prints what was done, or says what is wrong
    sqlite_storm.py check DB ACKNOWLEDGED_DIR                     the state left by an earlier run, at DB or a copy of it

The acknowledgements are kept in ACKNOWLEDGED_DIR, which is to be on another file system than DB. The SQLite module comes
with Python; nothing here knows what file system DB is on.
"""

import hashlib
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import time

WRITERS = 4
READERS = 4


def connect(path, mode=None):
    db = sqlite3.connect(path, timeout=120, isolation_level=None)
    if mode:
        assert db.execute(f"pragma journal_mode={mode}").fetchone() == (mode,), mode
    db.execute("pragma synchronous=full")
    return db


def payload(writer, n):
    """Content of row n: of a length that differs from row to row, and that shows which row it belongs to."""
    block = hashlib.sha256(f"{writer} {n}".encode()).digest()
    return block * (1 + n * 7 % 90)


def write(path, acknowledged, mode, writer):
    """Inserts the next row for ever; what is committed is noted in a file that only this writer has."""
    db = connect(path, mode)
    note = os.open(f"{acknowledged}/{writer}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    n = db.execute("select coalesce(max(n), 0) from rows where writer = ?", (writer,)).fetchone()[0]
    while True:
        n += 1
        db.execute("begin immediate")
        db.execute("insert into rows values (?, ?, ?)", (writer, n, payload(writer, n)))
        db.execute("update total set rows = rows + 1")
        db.execute("commit")
        os.write(note, struct.pack("<I", n))


def read(path, mode):
    """Looks at snapshots until told to end: each is whole, and none is older than the one before."""
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    db = connect(path, mode)
    seen = {}
    looks = 0
    while not ending:
        db.execute("begin")
        total = db.execute("select rows from total").fetchone()[0]
        rows = dict(db.execute("select writer, count(*) from rows group by writer"))
        last = db.execute("select writer, n, data from rows order by rowid desc limit 20").fetchall()
        db.execute("commit")
        assert sum(rows.values()) == total, f"a torn snapshot: {rows} and {total}"
        for writer, count in seen.items():
            assert rows.get(writer, 0) >= count, f"writer {writer} went back from {count} to {rows}"
        for writer, n, data in last:
            assert data == payload(writer, n), f"row {writer} {n} has the content of another"
        seen = rows
        looks += 1
        # Readers that never pause leave the writers no processor.
        time.sleep(0.002)
    print(looks)


def acknowledged_rows(acknowledged, writer):
    try:
        with open(f"{acknowledged}/{writer}", "rb") as note:
            return [n for (n,) in struct.iter_unpack("<I", note.read())]
    except FileNotFoundError:
        return []


def check(path, acknowledged):
    """Fails unless the database is sound and has every acknowledged row; returns the number of rows."""
    db = connect(path)
    assert db.execute("pragma integrity_check").fetchall() == [("ok",)], "integrity_check"
    total = 0
    for writer in range(WRITERS):
        rows = db.execute("select n, data from rows where writer = ? order by n", (writer,)).fetchall()
        numbers = [n for n, _ in rows]
        assert numbers == list(range(1, len(rows) + 1)), f"writer {writer}: the rows have gaps"
        noted = acknowledged_rows(acknowledged, writer)
        assert noted and max(noted) <= len(rows), f"writer {writer}: {max(noted)} acknowledged, {len(rows)} there"
        for n, data in rows:
            assert data == payload(writer, n), f"writer {writer}: row {n} is damaged"
        total += len(rows)
    assert db.execute("select rows from total").fetchone() == (total,)
    db.close()
    return total


def start(*args):
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), *map(str, args)], stdout=subprocess.PIPE)


def run(path, acknowledged, mode, seconds):
    db = connect(path, mode)
    db.execute("create table rows (writer integer, n integer, data blob, primary key (writer, n))")
    db.execute("create table total (rows integer)")
    db.execute("insert into total values (0)")
    db.close()
    chance = random.Random(1)
    writers = [start("write", path, acknowledged, mode, w) for w in range(WRITERS)]
    readers = [start("read", path, mode) for _ in range(READERS)]
    kills = 0
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.2, 1.2))
            for process in writers + readers:
                assert process.poll() is None, f"{process.args[2:]} ended by itself with {process.returncode}"
            victim = chance.randrange(WRITERS)
            writers[victim].kill()
            writers[victim].wait()
            kills += 1
            writers[victim] = start("write", path, acknowledged, mode, victim)
        # A writer that was started late gets the time for at least one row.
        late = time.monotonic() + 60
        while not all(acknowledged_rows(acknowledged, w) for w in range(WRITERS)):
            assert time.monotonic() < late, "a writer wrote nothing in a minute"
            time.sleep(0.1)
        looks = 0
        for reader in readers:
            reader.terminate()
            looks += int(reader.communicate(timeout=120)[0])
            assert reader.returncode == 0, f"a reader ended with {reader.returncode}"
    finally:
        for process in writers + readers:
            process.kill()
            process.wait()
    print(f"{check(path, acknowledged)} rows, {kills} kills, {looks} looks")


if __name__ == "__main__":
    verb, arguments = sys.argv[1], sys.argv[2:]
    if verb == "run":
        run(arguments[0], arguments[1], arguments[2], float(arguments[3]))
    elif verb == "check":
        print(f"{check(*arguments)} rows")
    elif verb == "write":
        write(*arguments[:3], int(arguments[3]))
    elif verb == "read":
        read(*arguments)
    else:
        sys.exit(f"unknown verb {verb}")
