"""Times: exact to the nanosecond wherever they are, and changed by what changes them on a local file system."""

import mmap
import os
import subprocess

from alike import attempt, look, make, run, tick, wreck, write

EXACT = {
    "now-ish": 1_700_000_000_123_456_789,
    "epoch": 0,
    "one": 1,
    "before": -1,
    "half-before": -1_500_000_000,
    "old": -1_234_567_890_987_654_321,
    "2038": 2_147_483_648_000_000_001,
    "2106": 4_294_967_296_999_999_999,
    "2200": 7_258_118_400_000_000_007,
}


@make
def exact():
    os.mkdir("exact")
    for name, ns in EXACT.items():
        write(f"exact/{name}")
        os.utime(f"exact/{name}", ns=(ns + 1, ns))
        os.mkdir(f"exact/dir-{name}")
        os.utime(f"exact/dir-{name}", ns=(ns, ns + 2))
        os.symlink("nowhere", f"exact/link-{name}")
        os.utime(f"exact/link-{name}", ns=(ns, ns + 3), follow_symlinks=False)
        fd = os.open(f"exact/open-{name}", os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, b"before")
        os.utime(fd, ns=(ns + 4, ns + 5))
        os.close(fd)
    subprocess.run(["touch", "-r", "exact/old", "exact/touched"], check=True)


def state(path):
    s = os.lstat(path)
    return s.st_mtime_ns, s.st_ctime_ns


def effect(what, call, *paths):
    """Which times of which paths a call changes: m for mtime, c for ctime."""
    before = {path: state(path) for path in paths}
    tick()
    call()
    seen = []
    for path in paths:
        try:
            after = state(path)
        except FileNotFoundError:
            seen.append("gone")
            continue
        seen.append("".join(l for l, a, b in zip("mc", before[path], after) if a != b) or "-")
    print(what, *seen)


def with_fd(path, flags, call):
    fd = os.open(path, flags)
    try:
        return call(fd)
    finally:
        os.close(fd)


def map_and_write(path):
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[0] = 65
        m.flush()


@make
def effects():
    os.makedirs("e/d")
    f, d, e = "e/f", "e/d", "e"
    write(f, b"content")
    for i in range(2):  # with uncommitted writes beside, then without
        effect("write", lambda: write(f, b"abc"), f, e)
        effect("write nothing", lambda: with_fd(f, os.O_WRONLY, lambda fd: os.write(fd, b"")), f, e)
        effect("read", lambda: open(f).read(), f, e)
        effect("open to write", lambda: with_fd(f, os.O_RDWR, lambda fd: None), f, e)
        effect("truncate", lambda: os.truncate(f, 5), f, e)
        effect("truncate to the same size", lambda: os.truncate(f, 5), f, e)
        effect("ftruncate to the same size", lambda: with_fd(f, os.O_RDWR, lambda fd: os.ftruncate(fd, 5)), f, e)
        effect("O_TRUNC", lambda: with_fd(f, os.O_WRONLY | os.O_TRUNC, lambda fd: None), f, e)
        effect("O_TRUNC of an empty file", lambda: with_fd(f, os.O_WRONLY | os.O_TRUNC, lambda fd: None), f, e)
        effect("posix_fallocate", lambda: with_fd(f, os.O_RDWR, lambda fd: os.posix_fallocate(fd, 0, 100)), f, e)
        effect("map and write", lambda: map_and_write(f), f, e)
        effect("chmod", lambda: os.chmod(f, 0o600), f, e)
        effect("chmod to the same", lambda: os.chmod(f, 0o600), f, e)
        effect("chown to nothing", lambda: os.chown(f, -1, -1), f, e)
        effect("chown to the same", lambda: os.chown(f, os.geteuid(), os.getegid()), f, e)
        effect("setxattr", lambda: os.setxattr(f, "user.a", b"1"), f, e)
        effect("setxattr to the same", lambda: os.setxattr(f, "user.a", b"1"), f, e)
        effect("removexattr", lambda: os.removexattr(f, "user.a"), f, e)
        effect("link", lambda: os.link(f, "e/d/g"), f, e, d)
        effect("rename of a link", lambda: os.rename("e/d/g", "e/d/h"), f, e, d)
        effect("unlink of a link", lambda: os.unlink("e/d/h"), f, e, d)
        effect("create", lambda: write("e/d/n"), d, e)
        effect("open of what exists with O_CREAT", lambda: with_fd("e/d/n", os.O_CREAT | os.O_RDWR, lambda fd: None), "e/d/n", d)
        effect("rename over", lambda: os.rename("e/d/n", f), f, d, e)
        effect("rename to itself", lambda: os.rename(f, f), f, e)
        effect("mkdir", lambda: os.mkdir("e/d/m"), d, e)
        effect("rename of a directory", lambda: os.rename("e/d/m", "e/m"), d, e)
        effect("rmdir", lambda: os.rmdir("e/m"), d, e)
        effect("symlink", lambda: os.symlink("x", "e/d/l"), d, e)
        effect("readlink", lambda: os.readlink("e/d/l"), "e/d/l", d)
        effect("unlink of a symlink", lambda: os.unlink("e/d/l"), d, e)
        effect("utime", lambda: os.utime(f, ns=(1, 2)), f, e)
        effect("touch", lambda: os.utime(f), f, e)
        effect("listdir", lambda: os.listdir(e), d, e)
        effect("failed open", lambda: os.path.exists("e/none"), d, e)


@make
def order():
    for i in range(50):
        write("first", b"1")
        write("second", b"2")
        if os.stat("first").st_mtime_ns > os.stat("second").st_mtime_ns:
            print("written later, but older")
    fd = os.open("held", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b"x")
    seen = os.fstat(fd)
    tick()
    os.close(fd)
    after = os.stat("held")
    print("close changes", after.st_mtime_ns == seen.st_mtime_ns, after.st_ctime_ns == seen.st_ctime_ns)


@make
def special_values():
    write("v")
    os.utime("v", ns=(10, 20))
    subprocess.run(["touch", "-a", "-d", "@30", "v"], check=True)
    print(os.stat("v").st_atime_ns, os.stat("v").st_mtime_ns)
    subprocess.run(["touch", "-m", "-d", "@40", "v"], check=True)
    print(os.stat("v").st_atime_ns, os.stat("v").st_mtime_ns)
    attempt("of another", lambda: os.utime("none", ns=(1, 1)))


@look
def what_was_set():
    for name in sorted(os.listdir("exact")):
        s = os.lstat(f"exact/{name}")
        print(name, s.st_atime_ns, s.st_mtime_ns)


@wreck
def touch_all():
    for name in os.listdir("exact"):
        os.utime(f"exact/{name}", follow_symlinks=False)
        if os.path.isfile(f"exact/{name}"):
            write(f"exact/{name}", b"wrecked")


run()
