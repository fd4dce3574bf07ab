"""1,000 one-row commits of a WAL database with synchronous=FULL, each beside an fsync of one block of another file, so
that both meet the same load of the machine.

    commit_cost.py DIR    prints JSON: wal_bytes, and in milliseconds commit_p50, commit_p99, fsync_p50, fsync_p99
"""

import json
import os
import sqlite3
import sys
import time

ROUNDS = 1000
BLOCK = 4096


def timed(what):
    begin = time.perf_counter()
    what()
    return (time.perf_counter() - begin) * 1000


def percentile(times, share):
    return sorted(times)[int(len(times) * share)]


def main(directory):
    db = sqlite3.connect(f"{directory}/cost.db", isolation_level=None)
    assert db.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    db.execute("pragma synchronous=full")
    db.execute("pragma wal_autocheckpoint=0")
    db.execute("create table t (n integer primary key, data blob)")
    beside = os.open(f"{directory}/beside", os.O_RDWR | os.O_CREAT, 0o644)
    commits, fsyncs = [], []
    for i in range(ROUNDS):
        row = (i, os.urandom(100))
        commits.append(timed(lambda: db.execute("insert into t values (?, ?)", row)))
        os.pwrite(beside, os.urandom(BLOCK), i * BLOCK)
        fsyncs.append(timed(lambda: os.fsync(beside)))
    figures = {"wal_bytes": os.path.getsize(f"{directory}/cost.db-wal")}
    for name, times in (("commit", commits), ("fsync", fsyncs)):
        figures |= {f"{name}_p50": percentile(times, 0.5), f"{name}_p99": percentile(times, 0.99)}
    assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1])
