"""Permission bits and owners: set-id bits taken away and handed down, umask, sticky directories, files that forbid."""

import ctypes
import os
import subprocess

from alike import as_user, attempt, look, make, mode, run, wreck, write

libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, how, offset, length):
    if libc.fallocate(fd, how, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def change(path, how):
    fd = os.open(path, os.O_RDWR)
    how(fd)
    os.close(fd)


CHANGES = {
    "write": lambda path: change(path, lambda fd: os.write(fd, b"y")),
    "append": lambda path: open(path, "ab").write(b"z"),
    "write nothing": lambda path: change(path, lambda fd: os.write(fd, b"")),
    "truncate": lambda path: os.truncate(path, 3),
    "ftruncate": lambda path: change(path, lambda fd: os.ftruncate(fd, 4)),
    "open to truncate": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_TRUNC)),
    "allocate": lambda path: change(path, lambda fd: fallocate(fd, 0, 0, 9000)),
    "punch": lambda path: change(path, lambda fd: fallocate(fd, 3, 0, 4096)),
    "copy_file_range": lambda path: change(path, lambda fd: os.copy_file_range(os.open("source", os.O_RDONLY), fd, 4)),
    "chmod": lambda path: os.chmod(path, os.stat(path).st_mode & 0o7777),
    "chown to itself": lambda path: os.chown(path, -1, -1),
    "chgrp to itself": lambda path: os.chown(path, -1, os.stat(path).st_gid),
    "utime": lambda path: os.utime(path, (1, 1)),
    "rename": lambda path: os.rename(path, path + "r") or os.rename(path + "r", path),
}


def each_change(owner):
    for bits in (0o6755, 0o6777, 0o6644, 0o2745, 0o4711):
        for name, how in CHANGES.items():
            path = f"s{bits:o}-{owner}-{name.replace(' ', '-')}"
            write(path, b"content")
            if os.geteuid() == 0 and owner == "user":
                os.chown(path, 65534, 65534)
            os.chmod(path, bits)
            caller = as_user if owner == "user" else lambda call: call()
            caller(lambda: attempt(f"{bits:o} {name}", lambda: how(path)))
            print("  ", mode(path), os.stat(path).st_size)


@make
def set_id_bits_as_root():
    write("source", b"source")
    os.chmod(".", 0o777)
    each_change("root")


@make
def set_id_bits_as_their_owner():
    each_change("user")


@make
def set_id_bits_written_by_another():
    for bits in (0o6777, 0o6776, 0o4757):
        path = f"other{bits:o}"
        write(path)
        os.chmod(path, bits)
        as_user(lambda: attempt("write", lambda: CHANGES["write"](path)))
        print(mode(path))


@make
def owners():
    write("owned")
    os.chmod("owned", 0o6755)
    attempt("chown", lambda: os.chown("owned", 1234, 4321))
    print(mode("owned"), os.stat("owned").st_uid, os.stat("owned").st_gid)
    as_user(lambda: attempt("chown of another's", lambda: os.chown("owned", 65534, 65534)))
    as_user(lambda: attempt("chmod of another's", lambda: os.chmod("owned", 0o777)))
    os.mkdir("owned-dir")
    os.chmod("owned-dir", 0o7777)
    attempt("chown of a directory keeps its bits", lambda: os.chown("owned-dir", 5, 6))
    print(mode("owned-dir"))
    os.symlink("owned", "owned-link")
    attempt("lchown", lambda: os.lchown("owned-link", 7, 8))
    print(os.lstat("owned-link").st_uid, os.stat("owned").st_uid)


@make
def handed_down():
    os.mkdir("group")
    os.chown("group", -1, 4321) if os.geteuid() == 0 else None
    os.chmod("group", 0o2777)

    def fill():
        me = os.getuid()
        write(f"group/f{me}")
        os.mkdir(f"group/d{me}")
        os.mkdir(f"group/d{me}/e")
        os.close(os.open(f"group/g{me}", os.O_CREAT | os.O_WRONLY, 0o2777))
        os.symlink("x", f"group/l{me}")
        os.mkfifo(f"group/p{me}")

    fill()
    as_user(fill)
    as_user(lambda: attempt("chmod g+s of another group's", lambda: os.chmod("group/f65534", 0o2755)))
    for dir, dirs, files in os.walk("group"):
        dirs.sort()
        for name in sorted(dirs + files):
            s = os.lstat(os.path.join(dir, name))
            print(os.path.join(dir, name), oct(s.st_mode), s.st_gid)


@make
def sticky():
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    write("sticky/mine")
    os.chmod("sticky/mine", 0o666)
    as_user(lambda: write("sticky/theirs"))
    as_user(lambda: attempt("unlink another's", lambda: os.unlink("sticky/mine")))
    as_user(lambda: attempt("rename another's", lambda: os.rename("sticky/mine", "sticky/m2")))
    as_user(lambda: attempt("rename over another's", lambda: os.rename("sticky/theirs", "sticky/mine")))
    as_user(lambda: attempt("unlink one's own", lambda: os.unlink("sticky/theirs")))


@make
def forbidding_files():
    def user():
        fd = os.open("readonly", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
        attempt("write through the first descriptor", lambda: os.write(fd, b"content"))
        attempt("fchmod of it", lambda: os.fchmod(fd, 0o400))
        os.close(fd)
        attempt("open to write", lambda: os.open("readonly", os.O_WRONLY))
        attempt("read", lambda: open("readonly").read())
        fd = os.open("nothing", os.O_RDWR | os.O_CREAT, 0)
        attempt("write", lambda: os.write(fd, b"c"))
        os.close(fd)
        attempt("read a file of mode 0", lambda: open("nothing").read())
        attempt("stat it", lambda: os.stat("nothing").st_size)
        os.mkdir("closed", 0o600)
        attempt("list", lambda: os.listdir("closed"))
        attempt("look in", lambda: os.stat("closed/x"))
        os.chmod("closed", 0o300)
        attempt("list", lambda: os.listdir("closed"))
        attempt("create", lambda: write("closed/x"))
        attempt("access", lambda: [os.access("readonly", how) for how in (os.R_OK, os.W_OK, os.X_OK)])

    as_user(user)


@make
def groups():
    write("shared")
    if os.geteuid() == 0:
        os.chown("shared", 0, 4321)
    os.chmod("shared", 0o660)
    as_user(lambda: attempt("a member writes", lambda: write("shared", b"m")), groups=(4321,))
    as_user(lambda: attempt("a stranger writes", lambda: write("shared", b"s")))


@make
def masks():
    for mask in (0o000, 0o022, 0o077, 0o777):
        os.umask(mask)
        os.close(os.open(f"mask{mask:o}", os.O_CREAT | os.O_WRONLY, 0o666))
        os.mkdir(f"maskdir{mask:o}")
        print(oct(mask), mode(f"mask{mask:o}"), mode(f"maskdir{mask:o}"))
    os.umask(0o022)


@make
def programs():
    for name, bits in (("run", 0o755), ("runx", 0o711), ("norun", 0o644)):
        with open(name, "w") as f:
            f.write("#!/bin/sh\necho ran\n")
        os.chmod(name, bits)
        attempt(name, lambda: subprocess.run([f"./{name}"], capture_output=True).stdout)


@look
def everything():
    for dir, dirs, files in os.walk("."):
        dirs.sort()
        for name in sorted(dirs + files):
            s = os.lstat(os.path.join(dir, name))
            print(os.path.join(dir, name), oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, s.st_size if not dirs else "")


@wreck
def everything_open():
    for dir, dirs, files in os.walk("."):
        for name in dirs + files:
            path = os.path.join(dir, name)
            if not os.path.islink(path):
                os.chmod(path, 0o777)
            os.lchown(path, os.geteuid(), os.getegid())


run()
