"""Files that are opened again the moment they are closed, also by a child that has them open still.

    reopen.py DIRECTORY ROUNDS

Each round: create, write 1 to 100 KiB, close, and at once open for reading and for appending; in every third round a child that
inherited the descriptor does so too, while and after the parent does. Nothing may be short, refused or lost.
"""

import os
import random
import sys

draw = random.Random(15)


def read(path):
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    data = os.read(fd, size + 1)
    os.close(fd)
    assert len(data) == size, f"{path}: {len(data)} bytes read, {size} in stat"
    return data


def append(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    assert os.write(fd, data) == len(data)
    os.close(fd)


def child(fd, path, data, go, done):
    """Has the file open by inheritance: writes through it after the parent's close, then comes by the name."""
    os.read(go, 1)
    assert os.fstat(fd).st_size == len(data)
    assert os.write(fd, b"child") == 5
    os.close(fd)
    assert read(path) == data + b"child"
    append(path, b"more")
    os.write(done, b"x")
    os._exit(0)


def one_round(path, inherited):
    data = draw.randbytes(draw.randrange(1 << 10, 100 << 10))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    if inherited:
        (go, start), (end, done) = os.pipe(), os.pipe()
        process = os.fork()
        if process == 0:
            try:
                child(fd, path, data, go, done)
            finally:
                os._exit(1)
    assert os.write(fd, data) == len(data)
    os.close(fd)
    assert read(path) == data
    if inherited:
        os.write(start, b"x")
        assert os.waitpid(process, 0)[1] == 0, "the child has failed"
        for pipe in (go, start, end, done):
            os.close(pipe)
        data += b"childmore"
    append(path, b"tail")
    assert read(path) == data + b"tail"


if __name__ == "__main__":
    for i in range(int(sys.argv[2])):
        # New names, and names that were there before.
        name = f"{sys.argv[1]}/f{i if i % 2 else i % 20}"
        one_round(name, i % 3 == 0)
        if i % 2:
            os.unlink(name)
