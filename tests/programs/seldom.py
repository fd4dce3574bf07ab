"""Calls that few programs make: flags changed on an open file, odd ways to read and write, limits, mappings, watching, running."""

import array
import ctypes
import fcntl
import hashlib
import mmap
import os
import resource
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios

from alike import as_user, attempt, look, make, run, wreck, write

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW = -100, 0x1000, 0x100
RWF_DSYNC, RWF_SYNC, RWF_APPEND = 2, 4, 16
OPENAT2, FCHMODAT2, COPY_FILE_RANGE = 437, 452, 326


def call(name, *args):
    """A function of libc, which raises what it fails with."""
    result = getattr(libc, name)(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def opened(path, flags=os.O_RDWR | os.O_CREAT, content=None):
    fd = os.open(path, flags, 0o644)
    if content is not None:
        os.ftruncate(fd, 0)
        os.pwrite(fd, content, 0)
    return fd


def content(path):
    with open(path, "rb") as f:
        return f.read()


@make
def flags_that_change():
    fd = opened("append", os.O_RDWR | os.O_CREAT | os.O_APPEND, b"0123456789")
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    attempt("pwrite after O_APPEND was taken away", lambda: os.pwrite(fd, b"AB", 0))
    print(os.pread(fd, 100, 0))
    os.lseek(fd, 5, os.SEEK_SET)
    attempt("write", lambda: os.write(fd, b"cd"))
    print(os.pread(fd, 100, 0))
    other = opened("append", os.O_RDWR)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    os.pwrite(other, b"x" * 20, 0)
    attempt("write after O_APPEND was set", lambda: os.write(fd, b"END"))
    attempt("pwrite appends too", lambda: os.pwrite(fd, b"PEND", 3))
    attempt("pwritev too", lambda: os.pwritev(fd, [b"1", b"2"], 3))
    print(os.pread(fd, 100, 0), os.lseek(fd, 0, os.SEEK_CUR))
    attempt("RWF_APPEND", lambda: os.pwritev(other, [b"rwf", b"!"], 0, RWF_APPEND))
    attempt("RWF_DSYNC", lambda: os.pwritev(other, [b"D"], 0, RWF_DSYNC))
    attempt("RWF_SYNC", lambda: os.pwritev(other, [b"S"], 1, RWF_SYNC))
    attempt("flags not known", lambda: os.pwritev(other, [b"S"], 1, 1 << 30))
    print(os.pread(fd, 100, 0))
    for name in ("O_SYNC", "O_DSYNC"):
        with_flag = opened("append", os.O_RDWR | getattr(os, name))
        attempt(name, lambda: os.pwrite(with_flag, name.encode(), 0))
    print(os.pread(fd, 100, 0))
    attempt("F_GETFL", lambda: oct(fcntl.fcntl(fd, fcntl.F_GETFL) & ~0o100000))


@make
def ways_to_open():
    write("f", b"content")
    os.mkdir("d")
    os.symlink("f", "l")
    os.symlink("none", "broken")
    for path, flags in [
        ("f/", os.O_RDONLY), ("new/", os.O_CREAT | os.O_WRONLY), ("d/", os.O_RDONLY), ("d", os.O_RDWR), ("", os.O_RDONLY),
        ("d", os.O_CREAT | os.O_RDONLY), ("d", os.O_CREAT | os.O_EXCL), ("l", os.O_NOFOLLOW), ("l", os.O_NOFOLLOW | os.O_PATH),
        ("broken", os.O_CREAT | os.O_EXCL | os.O_WRONLY), ("f", os.O_DIRECTORY), ("f", os.O_DIRECTORY | os.O_PATH),
        ("d", os.O_DIRECTORY | os.O_TRUNC), ("f", os.O_EXCL), ("f", os.O_ACCMODE), ("d", os.O_PATH), ("d/..", os.O_RDONLY),
        ("f/..", os.O_RDONLY), ("d/.", os.O_RDONLY | os.O_CREAT), (".", os.O_WRONLY),
    ]:  # fmt: skip
        attempt(f"open {path!r} {flags:o}", lambda: stat.S_IFMT(os.fstat(os.open(path, flags)).st_mode))
    held = os.open("f", os.O_PATH)
    attempt("read by a path", lambda: os.read(held, 1))
    attempt("fchmod by a path", lambda: os.fchmod(held, 0o600))
    attempt("stat by a path", lambda: os.fstat(held).st_size)
    attempt("open a path again", lambda: os.read(os.open(f"/proc/self/fd/{held}", os.O_RDONLY), 9))
    as_user(lambda: attempt("O_NOATIME of another's", lambda: os.open("f", os.O_RDONLY | os.O_NOATIME)))
    attempt("O_NOATIME", lambda: os.read(os.open("f", os.O_RDONLY | os.O_NOATIME), 3))
    for name, path, resolve in [
        ("beneath", "d/../f", 8), ("beneath", "../f", 8), ("beneath", "/etc/passwd", 8), ("no links", "l", 4), ("in root", "/f", 16),
        ("no crossing", "d", 1), ("flag not known", "f", 1 << 20),
    ]:  # fmt: skip
        how = ctypes.create_string_buffer(struct.pack("QQQ", os.O_RDONLY, 0, resolve))
        attempt(f"openat2 {name} {path}", lambda: call("syscall", OPENAT2, os.open(".", os.O_PATH), path.encode(), how, 24) > 0)
    for name, how in [
        ("rmdir", os.rmdir), ("unlink", os.unlink), ("rename", lambda p: os.rename(p, "renamed/")), ("readlink", os.readlink),
        ("link", lambda p: os.link(p, "linked/")), ("stat", os.stat),
    ]:  # fmt: skip
        for path in ("f/", "d/", "l/", "none/", ".", ".."):
            attempt(f"{name} {path}", lambda: bool(how(path)))
        print(sorted(os.listdir(".")))
        os.makedirs("d", exist_ok=True)
    attempt("rename of the mount's root", lambda: os.rename(".", "x"))


@make
def odd_reads_and_writes():
    fd = opened("odd", content=bytes(range(256)) * 40)
    buffers = [bytearray(n) for n in (0, 1, 4096, 0, 7, 9000)]
    attempt("preadv", lambda: (os.preadv(fd, buffers, 1), [bytes(b[:3]) for b in buffers]))
    attempt("writev of 1,024", lambda: os.pwritev(fd, [b"ab"] * 1024, 100))
    attempt("writev of 1,025", lambda: os.pwritev(fd, [b"ab"] * 1025, 100))
    attempt("write before the start", lambda: os.pwrite(fd, b"x", -1))
    attempt("read before the start", lambda: os.pread(fd, 1, -1))
    attempt("seek before the start", lambda: os.lseek(fd, -1, os.SEEK_SET))
    attempt("read past the end", lambda: os.pread(fd, 10, 1 << 40))
    attempt("read over the end", lambda: len(os.pread(fd, 100, 10_200)))
    attempt("seek with no meaning", lambda: os.lseek(fd, 0, 9))
    attempt("write to what is open to read", lambda: os.write(os.open("odd", os.O_RDONLY), b"x"))
    attempt("read what is open to write", lambda: os.read(os.open("odd", os.O_WRONLY), 1))
    attempt("from no memory", lambda: call("pwrite", fd, ctypes.c_void_p(0), 10, 0))
    attempt("into no memory", lambda: call("pread", fd, ctypes.c_void_p(0), 10, 0))
    attempt("copy_file_range within", lambda: os.copy_file_range(fd, fd, 100, 0, 5000))
    attempt("copy_file_range over itself", lambda: os.copy_file_range(fd, fd, 100, 0, 50))
    attempt("copy_file_range from the end", lambda: os.copy_file_range(fd, opened("odd2"), 100, 1 << 30))
    attempt("copy_file_range to append", lambda: os.copy_file_range(fd, opened("odd2", os.O_WRONLY | os.O_APPEND), 5))
    attempt("copy_file_range of a directory", lambda: os.copy_file_range(os.open(".", os.O_RDONLY), fd, 5))
    attempt("copy_file_range with flags", lambda: call("syscall", COPY_FILE_RANGE, fd, None, fd, None, 5, 1))
    print(hash_of("odd"), hash_of("odd2"))


def hash_of(path):
    return hashlib.sha256(content(path)).hexdigest()[:12], os.stat(path).st_size


@make
def moved_by_the_kernel():
    data = bytes(i * 7 % 251 for i in range(200_000))
    fd = opened("from", content=data)
    to = opened("sent", content=b"")
    attempt("sendfile to a file", lambda: sum(iter(lambda: os.sendfile(to, fd, None, 65_536), 0)))
    print(content("sent") == data[: os.stat("sent").st_size], os.stat("sent").st_size)
    one, two = socket.socketpair()
    attempt("sendfile to a socket", lambda: os.sendfile(one.fileno(), fd, 1_000, 5_000))
    print(two.recv(5_000, socket.MSG_WAITALL) == data[1_000:6_000])
    r, w = os.pipe()
    spliced = opened("spliced", content=b"")
    moved = 0
    while moved < len(data):
        n = os.splice(fd, w, 50_000, offset_src=moved)
        while n > 0:
            m = os.splice(r, spliced, n, offset_dst=moved)
            n, moved = n - m, moved + m
    print("splice", moved, content("spliced") == data)
    attempt("splice file to file", lambda: os.splice(fd, spliced, 10))
    attempt("splice to append", lambda: (os.write(w, b"x"), os.splice(r, opened("spliced", os.O_WRONLY | os.O_APPEND), 1)))
    for advice in range(6):
        attempt(f"fadvise {advice}", lambda: os.posix_fadvise(fd, 0, 0, advice))
    attempt("fadvise not known", lambda: os.posix_fadvise(fd, 0, 0, 77))
    attempt("readahead", lambda: call("readahead", fd, 0, 100_000))
    attempt("sync_file_range", lambda: call("sync_file_range", fd, 0, 0, 7))
    attempt("fsync of a directory", lambda: os.fsync(os.open(".", os.O_RDONLY)))
    attempt("fdatasync of a file open to read", lambda: os.fdatasync(os.open("from", os.O_RDONLY)))
    attempt("syncfs", lambda: call("syncfs", fd))


@make
def direct():
    block = mmap.mmap(-1, 16_384)
    block.write(b"d" * 16_384)
    fd = os.open("direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
    attempt("write", lambda: os.pwrite(fd, block, 0))
    attempt("write further", lambda: os.pwrite(fd, block, 65_536))
    attempt("read", lambda: (os.preadv(fd, [block], 8_192), block[:8], block[8_192:8_200]))
    attempt("read at the end", lambda: os.preadv(fd, [block], 81_920))
    beside = os.open("direct", os.O_RDWR)
    os.pwrite(beside, b"cached", 4_096)
    attempt("read what was written beside", lambda: (os.preadv(fd, [block], 4_096), block[:6]))
    os.pread(beside, 16_384, 0)
    block[:] = b"e" * 16_384
    os.pwrite(fd, block, 0)
    print("cached read", os.pread(beside, 3, 4_095))
    m = mmap.mmap(beside, 16_384)
    print("mapped", m[4_096:4_099])
    m[4_096:4_099] = b"MAP"
    attempt("read what was mapped", lambda: (os.preadv(fd, [block], 4_096), block[:4]))
    os.ftruncate(fd, 10_000)
    attempt("read over the end", lambda: os.preadv(fd, [block], 8_192))
    print(hash_of("direct"))


def limited(size, what, how):
    """Calls with a limit to the size of files, which is gone again when something is printed."""

    def within():
        signal.signal(signal.SIGXFSZ, lambda *_: signals.append("SIGXFSZ"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        try:
            return how()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    signals = []
    attempt(what, within)
    print("  ", signals)


@make
def limits():
    fd = opened("limited", content=b"0" * 9_990)
    appending = opened("limited", os.O_WRONLY | os.O_APPEND)
    limited(10_000, "write over the limit", lambda: os.pwrite(fd, b"1" * 100, 9_950))
    limited(10_000, "write at the limit", lambda: os.pwrite(fd, b"1" * 100, 10_000))
    limited(10_000, "write below the limit", lambda: os.pwrite(fd, b"2", 9_999))
    limited(10_000, "append at the limit", lambda: os.write(appending, b"3"))
    limited(10_000, "truncate over the limit", lambda: os.ftruncate(fd, 10_001))
    limited(10_000, "allocate over the limit", lambda: os.posix_fallocate(fd, 9_000, 2_000))
    limited(100, "write far over the limit", lambda: os.pwrite(fd, b"4", 500))
    limited(100, "truncate over the limit, but shorter", lambda: os.ftruncate(fd, 5_000))
    print(hash_of("limited"))


@make
def mappings():
    fd = opened("map", content=b"m" * 10_000)
    private = mmap.mmap(fd, 10_000, flags=mmap.MAP_PRIVATE)
    private[:4] = b"priv"
    os.pwrite(fd, b"W", 9_000)
    print("private", private[:5], content("map")[:5])
    read_only = os.open("map", os.O_RDONLY)
    attempt("shared and to write, of a file open to read", lambda: mmap.mmap(read_only, 4_096))
    attempt("private, of a file open to read", lambda: len(mmap.mmap(read_only, 4_096, flags=mmap.MAP_PRIVATE)))
    attempt("of a file open to write alone", lambda: mmap.mmap(os.open("map", os.O_WRONLY), 4_096))
    attempt("of a directory", lambda: mmap.mmap(os.open(".", os.O_RDONLY), 4_096, prot=mmap.PROT_READ))
    shared = mmap.mmap(fd, 8_192)
    shared[0:6] = b"shared"
    print("seen at once", os.pread(fd, 6, 0), content("map")[:6])
    os.pwrite(fd, b"back", 2)
    print("and back", shared[:8])
    shared.resize(10_000)
    shared[9_999] = 33
    print("resized", os.fstat(fd).st_size, content("map")[-1:])
    attempt("MADV_REMOVE", lambda: shared.madvise(mmap.MADV_REMOVE, 4_096, 4_096))
    print("removed", shared[4_095:4_098], os.fstat(fd).st_size, hash_of("map"))
    attempt("MADV_DONTNEED", lambda: shared.madvise(mmap.MADV_DONTNEED, 0, 4_096))
    print(shared[:8])
    # Through the mapping alone, when the descriptor is closed and the name is another.
    os.close(fd)
    os.rename("map", "map2")
    shared[1:3] = b"!!"
    shared.flush()
    print("after rename", content("map2")[:4])
    two = mmap.mmap(os.open("map2", os.O_RDWR), 4_096)
    two[3] = 63
    print("two mappings", shared[:4])
    del two, shared
    print(hash_of("map2"))


@make
def running():
    subprocess.run(["cp", "/bin/sleep", "sleeper"], check=True)
    os.chmod("sleeper", 0o755)
    child = subprocess.Popen(["./sleeper", "30"])
    attempt("write to what runs", lambda: os.open("sleeper", os.O_WRONLY))
    attempt("truncate what runs", lambda: os.truncate("sleeper", 5))
    attempt("rename what runs", lambda: os.rename("sleeper", "sleeping"))
    attempt("remove what runs", lambda: os.unlink("sleeping"))
    print(os.readlink(f"/proc/{child.pid}/exe").endswith("/sleeping (deleted)"))
    child.kill()
    child.wait()
    with open("busy", "wb") as f:
        f.write(b"#!/bin/sh\necho run\n")
        os.fchmod(f.fileno(), 0o755)
        f.flush()
        attempt("run what is being written", lambda: subprocess.run(["./busy"], capture_output=True).stdout)
    attempt("run it then", lambda: subprocess.run(["./busy"], capture_output=True).stdout)
    fd = os.open("busy", os.O_RDONLY)
    attempt("by descriptor", lambda: subprocess.run([f"/proc/self/fd/{fd}"], pass_fds=[fd], capture_output=True).stdout)
    with open("library.c", "w") as f:
        f.write("int seven(void) { return 7; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "library.so", "library.c"], check=True)
    attempt("a library", lambda: ctypes.CDLL("./library.so").seven())


@make
def names_of_what_is_open():
    os.makedirs("place/in")
    fd = opened("place/in/f", content=b"x")
    directory = os.open("place/in", os.O_RDONLY)
    here = os.getcwd()
    name = lambda fd: os.readlink(f"/proc/self/fd/{fd}").replace(here, "")
    print(name(fd), name(directory))
    os.rename("place", "moved")
    print(name(fd), name(directory))
    os.fchdir(directory)
    print(os.getcwd().replace(here, ""), os.listdir("."))
    attempt("by a directory's descriptor", lambda: os.open("f", os.O_RDONLY, dir_fd=directory) > 0)
    os.rename("f", "../g")
    print(name(fd))
    os.unlink("../g")
    print(name(fd))
    os.chdir(here)


@make
def entries():
    os.makedirs("e/sub/deeper")
    write("e/f", b"")
    os.link("e/f", "e/g")
    os.symlink("f", "e/l")
    os.mkfifo("e/p")
    for entry in sorted(os.scandir("e"), key=lambda e: e.name):
        print(entry.name, entry.is_file(follow_symlinks=False), entry.is_dir(), entry.is_symlink(), entry.inode() == os.lstat(entry.path).st_ino)
    for path in ("e", "e/sub", "e/sub/deeper"):
        print(path, os.stat(path).st_nlink, os.stat(path + "/..").st_ino == os.stat(os.path.dirname(path) or ".").st_ino, dots(path))
    attempt("getdents into too little", lambda: call("syscall", 217, os.open("e", os.O_RDONLY), ctypes.create_string_buffer(8), 8))
    attempt("getdents of a file", lambda: call("syscall", 217, os.open("e/f", os.O_RDONLY), ctypes.create_string_buffer(800), 800))


def dots(path):
    """Whether `.` and `..` of a listing have the inode numbers that stat shows."""
    buffer = ctypes.create_string_buffer(65_536)
    n = call("syscall", 217, os.open(path, os.O_RDONLY), buffer, 65_536)
    found, at = {}, 0
    while at < n:
        ino, _, length = struct.unpack_from("QQH", buffer, at)
        name = buffer.raw[at + 19 : at + length].split(b"\0")[0].decode()
        found[name] = ino
        at += length
    return found["."] == os.stat(path).st_ino, found[".."] == os.stat(path + "/..").st_ino


@make
def attributes_by_seldom_calls():
    write("a", b"x")
    os.symlink("a", "al")
    attempt("chmod of a link", lambda: call("syscall", FCHMODAT2, AT_FDCWD, b"al", 0o600, AT_SYMLINK_NOFOLLOW))
    attempt("chmod not followed", lambda: call("syscall", FCHMODAT2, AT_FDCWD, b"a", 0o640, AT_SYMLINK_NOFOLLOW))
    attempt("chown by descriptor", lambda: call("fchownat", os.open("a", os.O_PATH), b"", os.getuid(), os.getgid(), AT_EMPTY_PATH))
    attempt("utimensat of a descriptor", lambda: os.utime(os.open("a", os.O_RDONLY), ns=(5, 6)))
    for seconds, nanos in ((1, 10**9), (1, -1), (1, 999_999_999)):
        times = struct.pack("qqqq", seconds, nanos, seconds, nanos)
        attempt(f"utimensat {nanos}", lambda: call("utimensat", AT_FDCWD, b"a", times, 0))
    print(os.stat("a").st_mtime_ns, oct(os.stat("a").st_mode))
    before = os.stat("a").st_ctime_ns
    omit = struct.pack("qqqq", 0, 0x3FFFFFFE, 0, 0x3FFFFFFE)
    attempt("utimensat of neither", lambda: call("utimensat", AT_FDCWD, b"a", omit, 0))
    print(os.stat("a").st_ctime_ns == before)
    os.chmod("a", 0o666)
    as_user(lambda: attempt("now, of another's that may be written", lambda: os.utime("a")))
    as_user(lambda: attempt("then, of another's that may be written", lambda: os.utime("a", (1, 1))))
    as_user(lambda: attempt("link to another's that may not be written", lambda: os.link("e/g", "stolen")))
    for path in ("a", ".", "al"):
        s = os.statvfs(path)
        print(s.f_namemax, s.f_bsize > 0, s.f_frsize > 0, s.f_blocks >= s.f_bfree >= s.f_bavail > 0)
    print([os.pathconf("a", name) for name in ("PC_NAME_MAX", "PC_PATH_MAX", "PC_PIPE_BUF", "PC_CHOWN_RESTRICTED", "PC_NO_TRUNC")])
    left = array.array("i", [0])
    fcntl.ioctl(os.open("odd", os.O_RDONLY), termios.FIONREAD, left)
    print("FIONREAD", left[0])
    attempt("an ioctl of terminals", lambda: fcntl.ioctl(os.open("a", os.O_RDONLY), termios.TCGETS, b" " * 100))
    attempt("truncate a fifo", lambda: os.truncate("e/p", 1))
    attempt("truncate to less than nothing", lambda: os.truncate("a", -1))
    attempt("truncate a link", lambda: os.truncate("al", 3))
    attempt("mkfifo over a name", lambda: os.mkfifo("a"))
    attempt("mknod of no kind", lambda: os.mknod("kind", 0o170000 | 0o600))
    as_user(lambda: attempt("mknod of a device by a user", lambda: os.mknod("/proc/self/cwd/dev", stat.S_IFCHR | 0o600, os.makedev(1, 3))))
    attempt("mknod of a file without a kind", lambda: (os.mknod("kind", 0o600), oct(os.stat("kind").st_mode)))


EVENTS = "access modify attrib close_write close open from to create delete delete_self move_self".split()
EVENTS = {1 << i: name for i, name in enumerate(EVENTS)} | {0x8000: "ignored"}


@make
def watching():
    os.mkdir("watched")
    write("watched/held", b"x")
    fd = libc.inotify_init1(os.O_NONBLOCK)
    watches = {libc.inotify_add_watch(fd, b"watched", 0xFFF): "dir", libc.inotify_add_watch(fd, b"watched/held", 0xFFF): "file"}

    def seen():
        text, cookies = [], {}
        while select.select([fd], [], [], 0.05)[0]:
            data, at = os.read(fd, 65_536), 0
            while at < len(data):
                watch, mask, cookie, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                number = cookies.setdefault(cookie, len(cookies)) if cookie else ""
                text.append(f"{watches[watch]} {EVENTS.get(mask & 0xFFFF)}{'/' if mask >> 30 & 1 else ''} {name}{number}")
                at += 16 + length
        return text

    for what, how in [
        ("write", lambda: write("watched/f", b"1")),
        ("read", lambda: content("watched/f")),
        ("truncate", lambda: os.truncate("watched/f", 0)),
        ("chmod", lambda: os.chmod("watched/f", 0o600)),
        ("setxattr", lambda: os.setxattr("watched/f", "user.w", b"1")),
        ("allocate", lambda: os.posix_fallocate(opened("watched/f"), 0, 10)),
        ("link", lambda: os.link("watched/held", "watched/second")),
        ("rename", lambda: os.rename("watched/f", "watched/g")),
        ("exchange", lambda: call("renameat2", AT_FDCWD, b"watched/g", AT_FDCWD, b"watched/second", 2)),
        ("rename over", lambda: os.rename("watched/g", "watched/second")),
        ("mkdir", lambda: os.mkdir("watched/sub")),
        ("rename out", lambda: os.rename("watched/sub", "out")),
        ("rename in", lambda: os.rename("out", "watched/sub")),
        ("rmdir", lambda: os.rmdir("watched/sub")),
        ("unlink", lambda: os.unlink("watched/held")),
        ("unlink the rest", lambda: os.unlink("watched/second")),
        ("rmdir of it", lambda: os.rmdir("watched")),
    ]:
        how()
        print(what, seen())


@make
def a_file_system_in_a_file():
    """A disk image with a file system in it, as containers and virtual machines keep them."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    with open("image", "wb") as f:
        f.truncate(16 << 20)
    attempt("mkfs", lambda: subprocess.run(["mkfs.ext4", "-q", "-F", "image"], capture_output=True).returncode)
    for line in ("write /etc/passwd p", "mkdir d", "symlink l p"):
        subprocess.run(["debugfs", "-w", "-R", line, "image"], capture_output=True)
    attempt("fsck", lambda: subprocess.run(["e2fsck", "-fn", "image"], capture_output=True).returncode)
    print(subprocess.run(["debugfs", "-R", "cat p", "image"], capture_output=True).stdout == content("/etc/passwd"))


@make
def messages():
    """A descriptor that goes to another process, and one that several processes share."""
    fd = opened("passed", content=b"0123456789")
    one, two = socket.socketpair()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _, fds, _, _ = socket.recv_fds(two, 1, 1)
        os.close(fd)
        os.lseek(fds[0], 4, os.SEEK_SET)
        os.write(fds[0], b"CHILD")
        os.close(fds[0])
        os._exit(0)
    socket.send_fds(one, [b"x"], [fd])
    os.waitpid(child, 0)
    print(os.lseek(fd, 0, os.SEEK_CUR), os.pread(fd, 20, 0))
    attempt("a lease", lambda: (fcntl.fcntl(fd, 1024, fcntl.F_WRLCK), fcntl.fcntl(fd, 1025), fcntl.fcntl(fd, 1024, fcntl.F_UNLCK)))


@look
def everything():
    for dir, dirs, files in os.walk("."):
        dirs.sort()
        for name in sorted(dirs + files):
            path = os.path.join(dir, name)
            s = os.lstat(path)
            if name in ("sleeper", "library.so", "image"):
                continue
            print(path, oct(s.st_mode), s.st_nlink, hash_of(path) if stat.S_ISREG(s.st_mode) else "")


@wreck
def all_files():
    for dir, dirs, files in os.walk("."):
        for name in files:
            if os.path.isfile(os.path.join(dir, name)):
                write(os.path.join(dir, name), b"wrecked", 3)


run()
