"""Several processes make, move and remove names of one file while others look at it.

    links.py many SECONDS DIRECTORY...    changes names in the first, looks at the file in all of them
    links.py one SECONDS DIRECTORY        one process has one more name and takes it away again

Exits 0, or with a traceback, when more or fewer links are seen than there can be at that moment. The directories are to be one
and the same, seen from several places.
"""

import os
import random
import sys
import time

MAKERS = 4
EACH = 5


def change(directory, who, seconds):
    """Never has more than EACH names of its own; tells how many it leaves."""
    draw = random.Random(who)
    names = {}
    done = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done += 1
        name = f"{directory}/{draw.choice('ab')}/{who}-{draw.randrange(EACH)}"
        kind = draw.choice([0, 0, 0, 1, 2, 3])
        if kind == 0 and len(names) < EACH and name not in names:
            # From the name that is always there, or from another of one's own.
            os.link(draw.choice([f"{directory}/keep", *names]), name)
            names[name] = True
        elif kind == 1 and names:
            gone = draw.choice(sorted(names))
            os.unlink(gone)
            del names[gone]
        elif kind == 2 and names:
            old = draw.choice(sorted(names))
            os.rename(old, name)  # onto itself, or onto another link: then both names stay
            if name not in names:
                del names[old]
                names[name] = True
        elif kind == 3 and names:
            # Its own other file takes the place of a link.
            gone = draw.choice(sorted(names))
            other = f"{directory}/{who}.tmp"
            with open(other, "w") as file:
                file.write("other")
            os.rename(other, gone)
            assert os.stat(gone).st_nlink == 1
            os.unlink(gone)
            del names[gone]
        for mine in names:
            assert os.stat(mine).st_nlink >= 1 + len(names), f"{who} alone has {len(names)}"
    return len(names), done


def look(directory, seconds):
    """Looks by the name, and by an open file."""
    fd = os.open(f"{directory}/keep", os.O_RDONLY)
    end = time.monotonic() + seconds
    seen = set()
    while time.monotonic() < end:
        for found in (os.stat(f"{directory}/keep"), os.fstat(fd)):
            assert 1 <= found.st_nlink <= 1 + MAKERS * EACH, f"{found.st_nlink} links"
            seen.add(found.st_nlink)
    assert len(seen) > 2, f"nothing has changed: {seen}"


def real(directory, file):
    """The names that there are, found by walking."""
    found = [os.lstat(os.path.join(at, name)).st_ino for at, _, names in os.walk(directory) for name in names]
    return found.count(file)


def many(directories, seconds):
    first = directories[0]
    os.mkdir(f"{first}/a")
    os.mkdir(f"{first}/b")
    with open(f"{first}/keep", "w") as file:
        file.write("kept")
    children = {}
    for who in range(MAKERS):
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            left, done = change(first, who, seconds)
            os.write(writer, f"{left} {done}".encode())
            os._exit(0)
        children[child] = reader
        os.close(writer)
    for directory in directories:
        if (child := os.fork()) == 0:
            look(directory, seconds)
            os._exit(0)
        children[child] = None
    left = 1
    done = 0
    for child, reader in children.items():
        assert os.waitpid(child, 0)[1] == 0, "a process has failed"
        if reader is not None:
            mine, rounds = map(int, os.read(reader, 100).split())
            left += mine
            done += rounds
    for directory in directories:
        found = os.stat(f"{directory}/keep")
        assert found.st_nlink == left, f"{directory}: {found.st_nlink} links and not {left}"
        assert real(directory, found.st_ino) == left
    print(f"{done} changes, {left} links left")


def one(directory, seconds):
    """The counts after each step are known exactly, whoever looks and writes meanwhile."""
    keep, second = f"{directory}/keep", f"{directory}/second"
    fd = os.open(keep, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def stat():
        assert 1 <= os.stat(keep).st_nlink <= 2

    # What is written makes the kernel ask for the attributes anew.
    others = [for_ever(stat), for_ever(stat), for_ever(lambda: os.write(fd, b"x"))]
    rounds = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rounds += 1
        os.link(keep, second)
        assert os.stat(keep).st_nlink == 2, f"round {rounds}, linked"
        os.unlink(second)
        assert os.stat(keep).st_nlink == 1, f"round {rounds}, unlinked"
    for other in others:
        assert os.waitpid(other, os.WNOHANG) == (0, 0), "another has seen a count that cannot be"
    print(f"{rounds} rounds")


def for_ever(work):
    """A process that does this until the one that made it ends."""
    parent = os.getpid()
    if child := os.fork():
        return child
    while os.getppid() == parent:
        work()
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "one":
        one(sys.argv[3], float(sys.argv[2]))
    else:
        many(sys.argv[3:], float(sys.argv[2]))
