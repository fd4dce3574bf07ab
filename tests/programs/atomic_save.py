"""One process saves a file by writing another and renaming it over; a second one reads it all the while.

    atomic_save.py DIRECTORY GENERATIONS SECONDS_BETWEEN

Every open gives exactly one whole generation, none older than the last save that had returned; a handle that is kept goes on
reading its own. The reader keeps one open across the next save about ten times.
"""

import hashlib
import mmap
import os
import struct
import sys
import time

SIZE = 1 << 20


def generation(number):
    head = struct.pack("<Q", number)
    return head + (hashlib.sha256(head).digest() * (SIZE // 32))[8:]


def whole(fd):
    """The number of the generation that the file is, all of it."""
    data = os.pread(fd, SIZE + 1, 0)
    number = struct.unpack("<Q", data[:8])[0]
    assert data == generation(number), f"{len(data)} bytes that are not generation {number}"
    return number


def save(directory, count, pause, saved):
    for number in range(1, count + 1):
        fd = os.open(f"{directory}/f.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        assert os.write(fd, generation(number)) == SIZE
        os.fsync(fd)
        os.close(fd)
        os.rename(f"{directory}/f.tmp", f"{directory}/f")
        saved[:8] = struct.pack("<Q", number)
        with open(f"{directory}/f", "rb") as file:
            assert whole(file.fileno()) == number, "the save has returned, and what was there before is read"
        time.sleep(pause)


def read(directory, count, saved):
    """Reads until the last generation is there; tells how often and how many handles were kept."""
    now = lambda: struct.unpack("<Q", saved[:8])[0]
    reads = kept = 0
    next_kept = 1
    while now() < count:
        least = now()
        fd = os.open(f"{directory}/f", os.O_RDONLY)
        number = whole(fd)
        assert least <= number <= now() + 1, f"read {number}; saved before {least}, after {now()}"
        reads += 1
        if number >= next_kept and number < count:
            while now() <= number:
                time.sleep(0.001)
            assert whole(fd) == number and os.fstat(fd).st_nlink == 0, "a kept handle reads something else"
            kept += 1
            next_kept = number + max(1, count // 10)
        os.close(fd)
    return reads, kept


def main(directory, count, pause):
    saved = mmap.mmap(-1, 4096)
    with open(f"{directory}/f", "wb") as file:
        file.write(generation(0))
    reader = os.fork()
    if reader == 0:
        reads, kept = read(directory, count, saved)
        print(f"{reads} reads, {kept} handles kept", flush=True)
        os._exit(0 if kept >= 5 else 1)
    save(directory, count, pause, saved)
    assert os.waitpid(reader, 0)[1] == 0, "the reader has failed"
    assert os.listdir(directory) == ["f"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
