"""For the programs that are run on a plain directory and on a mount and must print the same on both.

A program registers functions with @make (does things and prints what it sees), @look (prints what must outlast a remount, a
rollback and a fork) and @wreck (changes everything), and is called as `PROGRAM DIRECTORY make|look|wreck`.
"""

import errno
import os
import stat
import sys
import time

_parts = {"make": [], "look": [], "wreck": []}


def make(f):
    _parts["make"].append(f)
    return f


def look(f):
    _parts["look"].append(f)
    return f


def wreck(f):
    _parts["wreck"].append(f)
    return f


def attempt(what, call):
    """Prints what a call returns, or its errno."""
    try:
        result = call()
    except OSError as e:
        result = errno.errorcode.get(e.errno, e.errno)
    print(f"{what}: {result}", flush=True)


def mode(path):
    return oct(stat.S_IMODE(os.lstat(path).st_mode))


def write(path, data=b"x", at=None):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(fd, data, at or 0)
    os.close(fd)


def as_user(call, uid=65534, gid=65534, groups=()):
    """Runs a function as somebody else, in a child; as this user where this is not root."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups(list(groups))
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
            call()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status != 0:
        raise SystemExit(f"a child ended with {status}")


def tick():
    """Long enough for two changes to have two times on every file system."""
    time.sleep(0.012)


def run():
    os.chdir(sys.argv[1])
    os.umask(0o022)
    for part in _parts[sys.argv[2]]:
        print("--", part.__name__, flush=True)
        part()
