"""Fifos, sockets, devices, links of links, names of all kinds, and mappings: used, not only made."""

import os
import signal
import socket
import stat
import sys
import threading

from alike import attempt, look, make, mode, run, wreck, write

NAMES = [
    "caf\u00e9".encode(), "cafe\u0301".encode(), "caf\u00e9".encode("latin-1"), b"A", b"a", b"new\nline", b'"quoted"', b"'single'",
    b"%2F", b"-leading", b"--", b" space ", b"\\", b"\x01\x7f", b"n" * 255, b"\xff" * 255, b"...", b".hidden", b"*", b"$(x)",
]


@make
def fifos():
    os.mkfifo("fifo", 0o640)
    print(oct(os.lstat("fifo").st_mode))
    sys.stdout.flush()
    if os.fork() == 0:
        with open("fifo", "wb") as f:
            f.write(b"through the fifo" * 10_000)
        os._exit(0)
    with open("fifo", "rb") as f:
        print(len(f.read()))
    os.wait()
    attempt("write without a reader", lambda: os.open("fifo", os.O_WRONLY | os.O_NONBLOCK))
    os.rename("fifo", "renamed-fifo")
    os.link("renamed-fifo", "linked-fifo")
    print(os.lstat("linked-fifo").st_nlink)


@make
def sockets():
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    server.listen()
    print(stat.S_ISSOCK(os.lstat("socket").st_mode), mode("socket"))
    client = socket.socket(socket.AF_UNIX)
    client.connect("socket")
    served, _ = server.accept()
    client.sendall(b"hello")
    print(served.recv(10))
    attempt("bind again", lambda: socket.socket(socket.AF_UNIX).bind("socket"))
    server.close()
    attempt("connect to nobody", lambda: socket.socket(socket.AF_UNIX).connect("socket"))
    attempt("open a socket", lambda: os.open("socket", os.O_RDONLY))


@make
def devices():
    if os.geteuid() != 0:
        return
    for name, kind, device in (("null", stat.S_IFCHR, os.makedev(1, 3)), ("disk", stat.S_IFBLK, os.makedev(250, 70_000))):
        os.mknod(name, kind | 0o666, device)
        s = os.lstat(name)
        print(name, oct(s.st_mode), os.major(s.st_rdev), os.minor(s.st_rdev))
    os.mknod("regular", stat.S_IFREG | 0o600)
    print(oct(os.lstat("regular").st_mode))
    attempt("mknod of a directory", lambda: os.mknod("dir", stat.S_IFDIR | 0o700))


@make
def links():
    os.symlink("target", "link")
    os.link("link", "link2", follow_symlinks=False)
    print(os.lstat("link").st_nlink, os.readlink("link2"))
    for n in (1, 255, 4095):
        attempt(f"target of {n}", lambda: os.symlink("t" * n, f"long{n}"))
        attempt("read", lambda: len(os.readlink(f"long{n}")))
        print(os.lstat(f"long{n}").st_size)
    attempt("target of 4096", lambda: os.symlink("t" * 4096, "long4096"))
    attempt("empty target", lambda: os.symlink("", "none"))
    os.symlink(b"\xff\xfe", b"bytes")
    print(os.readlink(b"bytes"))
    os.symlink("loop", "loop")
    attempt("loop", lambda: open("loop"))
    attempt("through many", lambda: [os.symlink(f"c{i}", f"c{i + 1}") for i in range(45)] and open("c45"))


@make
def names():
    os.mkdir("names")
    for i, name in enumerate(NAMES):
        path = os.path.join(b"names", name)
        write(path, name)
        os.rename(path, path + b"" if len(name) > 250 else path + b".r")
    print(len(os.listdir(b"names")), sorted(os.listdir(b"names")))
    attempt("256 bytes", lambda: write("n" * 256))
    attempt("a path of 4096", lambda: os.stat("d/" * 2048))
    for i in range(16):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    write("deep", b"deep")
    print(open("deep").read())
    for i in range(16):
        os.chdir("..")


@make
def mappings():
    import mmap

    size = 4 << 20
    with open("mapped", "w+b") as f:
        os.posix_fallocate(f.fileno(), 0, size)
        m = mmap.mmap(f.fileno(), size)

        def fill(part):
            for at in range(part * size // 8, (part + 1) * size // 8, 64):
                m[at : at + 64] = bytes([part + 1]) * 64

        threads = [threading.Thread(target=fill, args=(i,)) for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        m.flush()
        sys.stdout.flush()
        if os.fork() == 0:
            fd = os.open("mapped", os.O_RDONLY)
            print("read elsewhere", [os.pread(fd, 1, i * size // 8) for i in range(8)])
            sys.stdout.flush()
            os.truncate("mapped", size // 2 + 100)
            os._exit(0)
        os.wait()
        print("within", m[size // 2 + 99], "in the last page", m[size // 2 + 101])
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            m[size // 2 + 8192]
            os._exit(0)
        print("beyond the end", signal.Signals(os.WTERMSIG(os.waitpid(child, 0)[1])).name)
        m.close()


@look
def everything():
    for dir, dirs, files in os.walk(b"."):
        dirs.sort()
        for name in sorted(dirs + files):
            s = os.lstat(os.path.join(dir, name))
            print(os.path.join(dir, name)[-60:], oct(s.st_mode), s.st_nlink, s.st_rdev)
            if stat.S_ISLNK(s.st_mode):
                print("  ->", os.readlink(os.path.join(dir, name))[:60])
            elif stat.S_ISREG(s.st_mode) and s.st_size < 1000:
                with open(os.path.join(dir, name), "rb") as f:
                    print("  ", f.read())


@wreck
def most():
    for name in NAMES[:10]:
        for n in (name, name + b".r"):
            if os.path.exists(os.path.join(b"names", n)):
                os.unlink(os.path.join(b"names", n))
    for name in ("renamed-fifo", "link2", "socket", "long255"):
        os.unlink(name)
    os.rename("mapped", "link")


run()
