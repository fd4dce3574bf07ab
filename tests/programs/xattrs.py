"""Extended attributes: the namespaces, values of all sizes, what clears security.capability, and what lists them."""

import os
import struct
import subprocess

from alike import as_user, attempt, look, make, run, wreck, write

# cap_net_raw+ep, in the form of version 2 that file systems keep.
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)


def get(path, name, **how):
    return os.getxattr(path, name, **how)


@make
def namespaces():
    write("f")
    os.chmod("f", 0o666)
    for name in ("user.a", "trusted.a", "security.a", "system.a", "other.a", "a", "user.", "trusted.", "user", "", "user." + "n" * 250, "user." + "n" * 251):
        attempt(f"set {name[:12]!r} ({len(name)})", lambda: os.setxattr("f", name, b"1"))
        attempt("get", lambda: get("f", name))
    attempt("list", lambda: sorted(n for n in os.listxattr("f") if not n.startswith("security.")))

    def user():
        attempt("list", lambda: sorted(n for n in os.listxattr("f") if not n.startswith("security.")))
        for name in ("user.a", "trusted.a"):
            attempt(f"get {name}", lambda: get("f", name))
            attempt(f"set {name}", lambda: os.setxattr("f", name, b"u"))
            attempt(f"remove {name}", lambda: os.removexattr("f", name))

    as_user(user)
    attempt("list", lambda: sorted(n for n in os.listxattr("f") if not n.startswith("security.")))


@make
def values():
    write("v")
    for size in (0, 1, 100, 2000):
        os.setxattr("v", f"user.s{size}", b"v" * size)
    attempt("too large", lambda: os.setxattr("v", "user.large", b"v" * 65_537))
    attempt("create again", lambda: os.setxattr("v", "user.s1", b"2", os.XATTR_CREATE))
    attempt("create", lambda: os.setxattr("v", "user.new", b"2", os.XATTR_CREATE))
    attempt("replace", lambda: os.setxattr("v", "user.new", b"\x00\xff\x00", os.XATTR_REPLACE))
    attempt("replace none", lambda: os.setxattr("v", "user.none", b"2", os.XATTR_REPLACE))
    attempt("both", lambda: os.setxattr("v", "user.both", b"2", os.XATTR_CREATE | os.XATTR_REPLACE))
    attempt("get none", lambda: get("v", "user.none"))
    attempt("remove none", lambda: os.removexattr("v", "user.none"))
    attempt("remove", lambda: os.removexattr("v", "user.s100"))
    attempt("of none", lambda: os.setxattr("none", "user.a", b"1"))
    print(sorted(os.listxattr("v")))


@make
def kinds():
    os.mkdir("dir")
    os.symlink("f", "link")
    os.mkfifo("fifo")
    for path in ("dir", "link", "fifo"):
        for name in ("user.k", "trusted.k"):
            attempt(f"{path} {name}", lambda: os.setxattr(path, name, path.encode(), follow_symlinks=False))
    write("names")
    os.link("names", "names2")
    os.setxattr("names", "user.n", b"both")
    os.rename("names2", "names3")
    print(get("names3", "user.n"))
    fd = os.open("names", os.O_RDWR)
    os.unlink("names")
    os.unlink("names3")
    attempt("without a name", lambda: os.setxattr(fd, "user.m", b"1"))
    attempt("without a name", lambda: sorted(os.listxattr(fd)))
    attempt("without a name", lambda: os.removexattr(fd, "user.n"))
    attempt("without a name", lambda: sorted(os.listxattr(fd)))
    os.close(fd)


CLEARING = {
    "write": lambda path: write(path, b"changed"),
    "truncate": lambda path: os.truncate(path, 1),
    "chown": lambda path: os.chown(path, 1, 1),
    "chmod": lambda path: os.chmod(path, 0o700),
    "rename": lambda path: os.rename(path, path + "r") or os.rename(path + "r", path),
}


@make
def capabilities():
    if os.geteuid() != 0:
        return
    for name, how in CLEARING.items():
        path = f"cap-{name}"
        write(path, b"program")
        os.setxattr(path, "security.capability", CAPABILITY)
        how(path)
        attempt(f"after {name}", lambda: get(path, "security.capability"))
    # Twice: the kernel remembers that there was none.
    write("cap-again", b"program")
    write("cap-again", b"more")
    os.setxattr("cap-again", "security.capability", CAPABILITY)
    write("cap-again", b"changed")
    attempt("set after a write", lambda: get("cap-again", "security.capability"))


@make
def tools():
    os.mkdir("from")
    write("from/a", b"a")
    os.setxattr("from/a", "user.tool", b"kept")
    for line in ("ls -l from", "cp -a from copied", "mkdir -p tarred && tar --xattrs -cf t.tar from && tar --xattrs -xf t.tar -C tarred",
                 "rsync -aX from/ synced", "mv from moved"):
        done = subprocess.run(["sh", "-c", line], capture_output=True)
        print(line.split()[0], done.returncode, done.stderr)
    for path in ("copied/a", "tarred/from/a", "synced/a", "moved/a"):
        attempt(path, lambda: get(path, "user.tool"))


@look
def everything():
    for dir, dirs, files in os.walk("."):
        dirs.sort()
        for name in sorted(dirs + files):
            path = os.path.join(dir, name)
            names = [n for n in os.listxattr(path, follow_symlinks=False) if not n.startswith("security.selinux")]
            if names:
                print(path, [(n, get(path, n, follow_symlinks=False)) for n in sorted(names)])


@wreck
def all_others():
    for dir, dirs, files in os.walk("."):
        for name in dirs + files:
            path = os.path.join(dir, name)
            for n in os.listxattr(path, follow_symlinks=False):
                os.removexattr(path, n, follow_symlinks=False)
            if os.path.isfile(path) and not os.path.islink(path):
                os.setxattr(path, "user.wrecked", b"1")


run()
