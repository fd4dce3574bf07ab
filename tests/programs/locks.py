"""What programs rely on of flock, fcntl and open file description locks, within one machine.

    locks.py DIRECTORY NAME...    tries these of the functions below, each in every kind of lock and place that it is about

Exits 0, or with a traceback at the first thing that is not so. Nothing here knows what file system DIRECTORY is on.
"""

import os
import select
import signal
import sys
import time

from actors import Actor, LIMIT, WAITS, dismiss, holder, lock

RW = os.O_RDWR | os.O_CREAT
made = 0


class Place:
    """A new file to lock, and a name by which any process can open it."""

    def __init__(self, directory, unlinked=False):
        global made
        made += 1
        self.path = f"{directory}/file{made}"
        self.fd = os.open(self.path, RW, 0o644)
        os.write(self.fd, b"x" * 100)
        if unlinked:
            os.unlink(self.path)
            self.path = f"/proc/{os.getpid()}/fd/{self.fd}"

    def actors(self, number, flags=os.O_RDWR):
        """So many processes that have it open, each by itself, as (process, descriptor)."""
        some = [Actor() for _ in range(number)]
        return [(actor, actor.do("open", self.path, flags)) for actor in some]


def places(directory):
    """Files in the tree, in a directory that installers of packages fill, and without a name."""
    modules = f"{directory}/node_modules"
    os.makedirs(modules, exist_ok=True)
    yield Place(directory)
    yield Place(directory, unlinked=True)
    yield Place(modules)
    yield Place(modules, unlinked=True)


def everywhere(directory, kinds=("flock", "posix", "ofd")):
    """Each kind in each place, on a file of its own, and with nobody left from the one before."""
    for kind in kinds:
        for place in places(directory):
            yield kind, place
            dismiss()


def expect(actor, want, *arguments):
    got = actor.do(*arguments)
    assert got == want, f"{arguments}: {got} and not {want}"


def comes(actor, want="ok"):
    """What waited returns with this, and soon."""
    begin = time.monotonic()
    got = actor.done()
    assert got == want, f"{got} and not {want}"
    assert time.monotonic() - begin < LIMIT / 4, "woken late"


def sharing_and_excluding(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y), (c, z) = place.actors(3)
        expect(a, "ok", "lock", kind, x, "r")
        expect(b, "ok", "lock", kind, y, "r")
        expect(c, "EAGAIN", "lock", kind, z, "w")
        expect(a, "ok", "lock", kind, x, "u")
        expect(c, "EAGAIN", "lock", kind, z, "w")
        expect(b, "ok", "lock", kind, y, "u")
        expect(c, "ok", "lock", kind, z, "w")
        expect(a, "EAGAIN", "lock", kind, x, "r")
        expect(b, "EAGAIN", "lock", kind, y, "w")


def upgrading_and_downgrading(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y) = place.actors(2)
        expect(a, "ok", "lock", kind, x, "r")
        expect(b, "ok", "lock", kind, y, "r")
        a.waits("lock", kind, x, "w", "wait")
        expect(b, "ok", "lock", kind, y, "u")
        comes(a)
        expect(b, "EAGAIN", "lock", kind, y, "r")
        b.waits("lock", kind, y, "r", "wait")
        expect(a, "ok", "lock", kind, x, "r")
        comes(b)
        expect(a, "EAGAIN", "lock", kind, x, "w")
        # The kernel takes a flock away before it tries the other kind; fcntl's stay as they were.
        if kind != "flock":
            expect(b, "EAGAIN", "lock", kind, y, "w")


def waiting_and_waking(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y), (c, z) = place.actors(3)
        expect(a, "ok", "lock", kind, x, "w")
        b.waits("lock", kind, y, "r", "wait")
        c.waits("lock", kind, z, "r", "wait")
        expect(a, "ok", "lock", kind, x, "u")
        comes(b)
        comes(c)


def interrupted(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y), (c, z) = place.actors(3)
        expect(a, "ok", "lock", kind, x, "w")
        b.do("alarm", 2 * WAITS, False)
        b.waits("lock", kind, y, "w", "wait")
        comes(b, "EINTR")
        # It does not stand in the queue any more.
        expect(a, "ok", "lock", kind, x, "u")
        expect(c, "ok", "lock", kind, z, "w")
        expect(c, "ok", "lock", kind, z, "u")


def restarted(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y) = place.actors(2)
        expect(a, "ok", "lock", kind, x, "w")
        b.do("alarm", WAITS / 2, True)
        b.waits("lock", kind, y, "w", "wait")
        expect(a, "ok", "lock", kind, x, "u")
        comes(b)


def killed(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y), (c, z), (d, w) = place.actors(4)
        expect(a, "ok", "lock", kind, x, "w")
        b.waits("lock", kind, y, "w", "wait")
        a.kill()
        comes(b)
        # One that is killed while it waits gets nothing later.
        c.waits("lock", kind, z, "w", "wait")
        c.kill()
        expect(b, "ok", "lock", kind, y, "u")
        expect(d, "ok", "lock", kind, w, "w")


def closing(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y) = place.actors(2)
        copy = a.do("dup", x)
        expect(a, "ok", "lock", kind, x, "w")
        expect(a, "ok", "close", x)
        if kind != "posix":
            # They belong to the open file, which the copy keeps open.
            expect(b, "EAGAIN", "lock", kind, y, "w")
            b.waits("lock", kind, y, "w", "wait")
            expect(a, "ok", "close", copy)
            comes(b)
            continue
        # These belong to the process, and any close of the file by it frees them all.
        expect(b, "ok", "lock", kind, y, "w")
        expect(b, "ok", "lock", kind, y, "u")
        other = a.do("open", place.path, os.O_RDONLY)
        expect(a, "ok", "lock", kind, copy, "w")
        expect(b, "EAGAIN", "lock", kind, y, "w")
        expect(a, "ok", "close", other)
        expect(b, "ok", "lock", kind, y, "w")


def inheriting(directory):
    for kind, place in everywhere(directory):
        mine = os.open(place.path, os.O_RDWR)
        assert lock(kind, mine, "w") == "ok"
        child = Actor()
        ((other, y),) = place.actors(1)
        # A child has the open file, and with it the locks of the open file; not those of its parent's process.
        expect(child, "EAGAIN" if kind == "posix" else "ok", "lock", kind, mine, "w")
        expect(other, "EAGAIN", "lock", kind, y, "w")
        os.close(mine)
        expect(other, "ok" if kind == "posix" else "EAGAIN", "lock", kind, y, "w")
        expect(child, "ok", "close", mine)
        # Here other has the open file too: it was made when it was open here.
        expect(other, "ok", "close", mine)
        if kind != "posix":
            expect(other, "ok", "lock", kind, y, "w")


def read_only(directory):
    for kind, place in everywhere(directory):
        (a, x), (b, y) = place.actors(2, os.O_RDONLY)
        ((c, z),) = place.actors(1, os.O_WRONLY)
        expect(a, "ok", "lock", kind, x, "r")
        expect(b, "ok", "lock", kind, y, "r")
        expect(b, "ok", "lock", kind, y, "u")
        if kind == "flock":
            expect(a, "ok", "lock", kind, x, "w")
            expect(b, "EAGAIN", "lock", kind, y, "w")
        else:
            # A lock for writing needs a file that can be written, one for reading a file that can be read.
            expect(a, "EBADF", "lock", kind, x, "w")
            expect(c, "EBADF", "lock", kind, z, "r")
            expect(c, "EAGAIN", "lock", kind, z, "w")


def ranges(directory):
    for kind, place in everywhere(directory, ("posix", "ofd")):
        (a, x), (b, y) = place.actors(2)
        locks = lambda who, fd, type, start, length, want="ok": expect(who, want, "lock", kind, fd, type, "try", start, length)
        locks(a, x, "w", 0, 10)
        locks(b, y, "w", 10, 10)
        locks(a, x, "w", 9, 2, "EAGAIN")
        # Taken out of the middle, and put together again.
        locks(a, x, "u", 3, 3)
        for start, want in [(2, "EAGAIN"), (3, "ok"), (5, "ok"), (6, "EAGAIN")]:
            locks(b, y, "r", start, 1, want)
        locks(b, y, "u", 3, 3)
        locks(a, x, "r", 4, 1)
        locks(b, y, "r", 4, 1)
        locks(b, y, "w", 4, 1, "EAGAIN")
        found = b.do("holder", kind, y, "w", 0, 3)
        assert found == ["w", os.SEEK_SET, 0, 3, a.pid if kind == "posix" else -1], found
        found = b.do("holder", kind, y, "r", 3, 3)
        assert found[0] == "u", found
        # Beyond the end, to infinity, and the last byte that there can be.
        locks(a, x, "w", 1 << 40, 0)
        locks(b, y, "w", (1 << 63) - 1, 1, "EAGAIN")
        locks(b, y, "w", (1 << 40) - 1, 1)
        locks(a, x, "w", (1 << 63) - 1, 2, "EOVERFLOW")
        # Backwards, from the end, and before the start.
        locks(a, x, "w", 60, -10)
        locks(b, y, "w", 49, 1)
        locks(b, y, "w", 50, 1, "EAGAIN")
        locks(b, y, "w", 60, 1)
        locks(a, x, "w", -1, 1, "EINVAL")
        expect(a, "ok", "lock", kind, x, "w", "try", -20, 5, os.SEEK_END)
        locks(b, y, "w", 79, 1)
        locks(b, y, "w", 80, 5, "EAGAIN")
        locks(b, y, "w", 85, 1)


def waiting_for_a_range(directory):
    for kind, place in everywhere(directory, ("posix", "ofd")):
        (a, x), (b, y), (c, z) = place.actors(3)
        expect(a, "ok", "lock", kind, x, "w", "try", 0, 10)
        expect(b, "ok", "lock", kind, y, "r", "try", 20, 10)
        c.waits("lock", kind, z, "w", "wait", 5, 20)
        expect(a, "ok", "lock", kind, x, "u", "try", 0, 10)
        assert c.done(WAITS) == "waits", "b holds a part of it still"
        expect(b, "ok", "lock", kind, y, "u", "try", 24, 1)
        assert c.done(WAITS) == "waits", "b holds a part of it still"
        expect(b, "ok", "lock", kind, y, "u", "try", 20, 4)
        comes(c)
        expect(b, "EAGAIN", "lock", kind, y, "w", "try", 24, 1)
        expect(b, "ok", "lock", kind, y, "w", "try", 25, 1)


def a_cycle(directory):
    """Each holds a byte and waits for the next one's. Exactly one is told, and the others go on when it gives up."""
    for number in (2, 3, 5):
        for place in places(directory):
            ring = place.actors(number)
            for i, (actor, fd) in enumerate(ring):
                expect(actor, "ok", "lock", "posix", fd, "w", "try", i, 1)
            for i, (actor, fd) in enumerate(ring):
                actor.begin("lock", "posix", fd, "w", "wait", (i + 1) % number, 1)
            lines = [actor.line for actor, _ in ring]
            told = [lines.index(line) for line in select.select(lines, [], [], LIMIT)[0]]
            assert len(told) == 1, f"told: {told}"
            comes(ring[told[0]][0], "EDEADLK")
            assert not select.select([line for i, line in enumerate(lines) if i != told[0]], [], [], WAITS)[0]
            # It still holds its byte, for which the one before it waits.
            for i in range(told[0], told[0] - number + 1, -1):
                actor, fd = ring[i]
                expect(actor, "ok", "lock", "posix", fd, "u")
                comes(ring[i - 1][0])
            dismiss()


def no_cycle(directory):
    """Waiting in a line, or for several in turn, is none."""
    for place in places(directory):
        (a, x), (b, y), (c, z) = place.actors(3)
        for i, (actor, fd) in enumerate([(a, x), (b, y), (c, z)]):
            expect(actor, "ok", "lock", "posix", fd, "w", "try", i, 1)
        a.waits("lock", "posix", x, "w", "wait", 2, 1)
        b.waits("lock", "posix", y, "w", "wait", 2, 1)
        expect(c, "ok", "lock", "posix", z, "w", "wait", 10, 1)
        expect(c, "ok", "lock", "posix", z, "u")
        comes(a)
        expect(a, "ok", "lock", "posix", x, "u")
        comes(b)


def one_process_twice(directory):
    for place in places(directory):
        x, y = os.open(place.path, os.O_RDWR), os.open(place.path, os.O_RDWR)
        for kind in ("ofd", "flock"):
            assert lock(kind, x, "w") == "ok"
            assert lock(kind, y, "w") == "EAGAIN", kind
            assert lock(kind, y, "r") == "EAGAIN", kind
            os.close(y)
            y = os.open(place.path, os.O_RDWR)
            assert lock(kind, y, "w") == "EAGAIN", f"{kind}: closing one has freed the other's"
            assert lock(kind, x, "u") == "ok"
            assert lock(kind, y, "w") == "ok"
            assert lock(kind, y, "u") == "ok"
        # To fcntl both are one process: nothing is in its way.
        assert lock("posix", x, "w") == "ok" and lock("posix", y, "w") == "ok"
        assert lock("posix", y, "u") == "ok"
        # A process that waits for itself can be interrupted.
        ((a, first),) = place.actors(1)
        second = a.do("open", place.path, os.O_RDWR)
        for kind in ("ofd", "flock"):
            expect(a, "ok", "lock", kind, first, "w")
            a.do("alarm", 2 * WAITS, False)
            a.waits("lock", kind, second, "w", "wait")
            comes(a, "EINTR")
            expect(a, "ok", "lock", kind, first, "u")
        os.close(x)
        os.close(y)


def kinds_beside_each_other(directory):
    for place in places(directory):
        (a, x), (b, y) = place.actors(2)
        expect(a, "ok", "lock", "posix", x, "w", "try", 0, 10)
        expect(b, "EAGAIN", "lock", "ofd", y, "r", "try", 9, 1)
        expect(b, "ok", "lock", "ofd", y, "w", "try", 10, 1)
        expect(a, "EAGAIN", "lock", "posix", x, "r", "try", 10, 1)
        # Even in one process.
        expect(a, "EAGAIN", "lock", "ofd", x, "w", "try", 5, 1)
        # flock knows nothing of the others.
        expect(b, "ok", "lock", "flock", y, "w")
        expect(a, "EAGAIN", "lock", "flock", x, "r")
        found = holder("posix", place.fd, "w", 0, 1)
        assert found == ["w", os.SEEK_SET, 0, 10, a.pid], found
        assert holder("posix", place.fd, "w", 10, 1)[4] == -1, "an open file has no process"


def names_that_move(directory):
    """A lock is the file's, not the name's."""
    for kind in ("flock", "posix", "ofd"):
        for place in (Place(directory), Place(f"{directory}/node_modules")):
            (a, x), (b, _) = place.actors(2)
            expect(a, "ok", "lock", kind, x, "w")
            moved, second = place.path + ".moved", place.path + ".second"
            os.rename(place.path, moved)
            os.link(moved, second)
            for name in (moved, second):
                y = b.do("open", name, os.O_RDWR)
                expect(b, "EAGAIN", "lock", kind, y, "w")
            # Another file under the old name has no lock, nor has one that replaces it.
            y = b.do("open", place.path, RW, 0o644)
            expect(b, "ok", "lock", kind, y, "w")
            os.rename(place.path, moved)
            y = b.do("open", second, os.O_RDWR)
            expect(b, "EAGAIN", "lock", kind, y, "w")


def counting(directory):
    """What is read and written under a lock is neither lost nor old."""
    for kind, place in everywhere(directory):
        assert together(kind, place.path, 200, count) == 8 * 200, kind


def counting_by_close(directory):
    """The same when a close gives the lock back."""
    for kind, place in everywhere(directory):
        assert together(kind, place.path, 10, open_and_count) == 8 * 10, kind


def together(kind, path, rounds, program, processes=8):
    """Runs so many processes that count in one file, and tells how far they came."""
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"%100d" % 0, 0)
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os._exit(program(kind, path, rounds))
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ends == [0] * processes, f"{kind}: {ends}"
    return int(os.pread(fd, 200, 0))


def count(kind, path, rounds, unlock=True):
    fd = os.open(path, os.O_RDWR)
    for _ in range(rounds):
        if lock(kind, fd, "w", "wait") != "ok":
            return 1
        os.pwrite(fd, b"%100d" % (int(os.pread(fd, 100, 0)) + 1), 0)
        if unlock and lock(kind, fd, "u") != "ok":
            return 2
    os.close(fd)
    return 0


def open_and_count(kind, path, rounds):
    return max(count(kind, path, 1, unlock=False) for _ in range(rounds))


def held(directory):
    """Files for each kind, in the tree and in a shadow."""
    for kind in ("flock", "posix", "ofd"):
        for where in (directory, f"{directory}/node_modules"):
            yield kind, os.open(f"{where}/held-{kind}", RW, 0o644)


def hold(directory):
    """Takes a lock of each kind, says so, and stays."""
    for kind, fd in held(directory):
        assert lock(kind, fd, "w", "wait") == "ok"
    print("held", flush=True)
    while True:
        signal.pause()


def somebody_holds(directory):
    for kind, fd in held(directory):
        assert lock(kind, fd, "r") == "EAGAIN", kind


def nobody_holds(directory):
    for kind, fd in held(directory):
        assert lock(kind, fd, "w") == "ok", f"{kind}: still held"


if __name__ == "__main__":
    os.makedirs(f"{sys.argv[1]}/node_modules", exist_ok=True)
    for name in sys.argv[2:]:
        globals()[name](sys.argv[1])
