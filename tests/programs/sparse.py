"""Holes: what SEEK_HOLE, SEEK_DATA and st_blocks say of files of many shapes, and tools that keep them."""

import ctypes
import errno
import hashlib
import os
import subprocess

from alike import attempt, look, make, run, wreck

KEEP, PUNCH, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32
K, M, G = 1 << 10, 1 << 20, 1 << 30
libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, how, offset, length):
    if libc.fallocate(fd, how, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def data(fd):
    """The ranges of data."""
    ranges, at = [], 0
    while True:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as e:
            assert e.errno == errno.ENXIO, e
            return ranges
        at = os.lseek(fd, start, os.SEEK_HOLE)
        ranges.append((start, at))


def digest(fd, size):
    """Of the data alone: the holes are known to be zeros by reading a little of each."""
    sha, end = hashlib.sha256(), 0
    for a, b in data(fd) + [(size, size)]:
        for at in {end, max(end, a - 4096)}:
            assert not any(os.pread(fd, min(4096, a - at), at)), "a hole that is not zeros"
        for at in range(a, b, M):
            sha.update(os.pread(fd, min(M, b - at), at))
        end = b
    return sha.hexdigest()[:16]


def show(path):
    fd = os.open(path, os.O_RDONLY)
    s = os.fstat(fd)
    print(path, s.st_size, s.st_blocks, data(fd), digest(fd, s.st_size))
    os.close(fd)


def filled(n):
    return bytes(i % 251 + 1 for i in range(4096)) * (n // 4096 + 1)


# Each is a list of (pwrite, at, length), (size, n) or (fallocate mode, at, length).
SHAPES = {
    "empty": [],
    "all-hole": [("size", M)],
    "small-all-hole": [("size", 10_000)],
    "one-byte": [("size", M), ("write", 500_000, 1)],
    "small-one-byte": [("size", 100_000), ("write", 50_000, 1)],
    "beyond": [("write", 10 * M + 5, 10)],
    "border": [("write", 4095, 2), ("write", 256 * K - 1, 2), ("write", 512 * K - 1, 2)],
    "full": [("write", 0, 2 * M)],
    "punched": [("write", 0, 2 * M), (PUNCH | KEEP, 8 * K, 8 * K)],
    "punched-64k": [("write", 0, 2 * M), (PUNCH | KEEP, 64 * K, 128 * K)],
    "punched-odd": [("write", 0, 300 * K), (PUNCH | KEEP, 5_000, 20_000)],
    "punched-small": [("write", 0, 100 * K), (PUNCH | KEEP, 8 * K, 8 * K)],
    "punched-all": [("write", 0, M), (PUNCH | KEEP, 0, M)],
    "punched-hole": [("size", M), (PUNCH | KEEP, 0, M), (PUNCH | KEEP, 4 * K, 4 * K)],
    "punched-end": [("write", 0, 100 * K), (PUNCH | KEEP, 90 * K, M)],
    "cut-and-grown": [("write", 0, M), ("size", 10_000), ("size", M)],
    "cut-in-a-hole": [("write", 0, M), (PUNCH | KEEP, 64 * K, 512 * K), ("size", 128 * K), ("size", M)],
    "written-again": [("write", 0, M), (PUNCH | KEEP, 0, M), ("write", 64 * K, 4 * K)],
    "runs": [step for i in range(40) for step in [("write", i * 64 * K, 4 * K)]],
}


def do(fd, step):
    how, at, *length = step
    if how == "size":
        os.ftruncate(fd, at)
    elif how == "write":
        os.pwrite(fd, filled(length[0])[: length[0]], at)
    else:
        fallocate(fd, how, at, *length)


@make
def shapes():
    for close in (False, True):
        for name, steps in SHAPES.items():
            path = f"{name}{'-closed' if close else ''}"
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            for step in steps:
                do(fd, step)
                if close:
                    os.close(fd)
                    fd = os.open(path, os.O_RDWR)
            show(path)
            os.close(fd)
            show(path)


@make
def sizes_and_zeros():
    # Allocated blocks are not compared: nothing is reserved on the mount.
    fd = os.open("alloc", os.O_RDWR | os.O_CREAT, 0o644)
    for how in (0, KEEP, PUNCH | KEEP, ZERO, ZERO | KEEP, PUNCH, 64):
        for at, n in ((0, 1000), (500, 100_000), (2 * M, 4096), (M, 0), (-1, 5), (0, -1)):
            attempt(f"fallocate {how} {at} {n}", lambda: fallocate(fd, how, at, n))
            print("  ", os.fstat(fd).st_size, hashlib.sha256(os.pread(fd, 4 * M, 0)).hexdigest()[:16])
        os.pwrite(fd, filled(300 * K)[: 300 * K], 100)
    os.close(fd)
    attempt("of a file opened for reading", lambda: fallocate(os.open("alloc", os.O_RDONLY), 0, 0, 10))
    attempt("seek beyond the end", lambda: os.lseek(os.open("alloc", os.O_RDONLY), 1 << 40, os.SEEK_DATA))
    attempt("seek for a hole beyond the end", lambda: os.lseek(os.open("alloc", os.O_RDONLY), 1 << 40, os.SEEK_HOLE))


@make
def huge():
    fd = os.open("huge", os.O_RDWR | os.O_CREAT, 0o644)
    os.ftruncate(fd, 34 * G)
    for i in range(8):
        os.pwrite(fd, b"x", i * 4 * G + 12_345)
    show("huge")
    os.close(fd)
    show("huge")
    for line in ("cp --sparse=auto huge copied", "tar -Scf huge.tar huge && mkdir out && tar -Sxf huge.tar -C out"):
        print(line, subprocess.run(["sh", "-c", line], capture_output=True).stderr)
    show("copied")
    show("out/huge")
    print(os.stat("huge.tar").st_size < M)
    fd = os.open("huge", os.O_RDWR)
    for i in range(8):
        fallocate(fd, PUNCH | KEEP, i * 4 * G + 8192, 8192)
    os.close(fd)
    show("huge")
    os.remove("huge.tar")


@look
def all_shapes():
    for name in sorted(os.listdir(".")):
        if os.path.isfile(name) and name != "alloc":
            show(name)


@wreck
def fill():
    for name in os.listdir("."):
        if os.path.isfile(name):
            os.truncate(name, 5)
            with open(name, "r+b") as f:
                f.write(b"wreck")


run()
