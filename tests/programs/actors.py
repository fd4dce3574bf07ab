"""Processes that take locks when told to, with the system calls' own results: for the programs here that are about locks.

Nothing here knows what file system the files are on, or what is expected of it.
"""

import atexit
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct

libc = ctypes.CDLL(None, use_errno=True)

LIMIT = 20.0
# A call that has not returned after this long is taken to wait.
WAITS = 0.04

POSIX = {"get": fcntl.F_GETLK, "try": fcntl.F_SETLK, "wait": fcntl.F_SETLKW}
OFD = {"get": 36, "try": 37, "wait": 38}
TYPES = {"r": fcntl.F_RDLCK, "w": fcntl.F_WRLCK, "u": fcntl.F_UNLCK}
FLOCK = {"r": fcntl.LOCK_SH, "w": fcntl.LOCK_EX, "u": fcntl.LOCK_UN}
# short type, short whence, off_t start, off_t len, pid_t pid
LAYOUT = "hhxxxxqqixxxx"


def result(returned):
    """"ok", or the name of errno; a number that has no name, such as one of the kernel's own, stays a number."""
    if returned == 0:
        return "ok"
    return name(ctypes.get_errno())


def name(number):
    return "EDEADLK" if number == errno.EDEADLK else errno.errorcode.get(number, str(number))


def lock(kind, fd, type, how="try", start=0, length=0, whence=os.SEEK_SET):
    """Takes or gives back one lock; kind is flock, posix or ofd. Not repeated when interrupted."""
    if kind == "flock":
        return result(libc.flock(fd, FLOCK[type] | (0 if how == "wait" else fcntl.LOCK_NB)))
    commands = POSIX if kind == "posix" else OFD
    request = ctypes.create_string_buffer(struct.pack(LAYOUT, TYPES[type], whence, start, length, 0))
    return result(libc.fcntl(fd, commands[how], request))


def holder(kind, fd, type, start=0, length=0):
    """What stands in the way of such a lock: (type, whence, start, length, pid); of type "u" when nothing does."""
    commands = POSIX if kind == "posix" else OFD
    request = ctypes.create_string_buffer(struct.pack(LAYOUT, TYPES[type], os.SEEK_SET, start, length, 0))
    assert libc.fcntl(fd, commands["get"], request) == 0, os.strerror(ctypes.get_errno())
    found = struct.unpack(LAYOUT, request.raw[: struct.calcsize(LAYOUT)])
    return [next(name for name, number in TYPES.items() if number == found[0]), *found[1:]]


def alarm(seconds, restart):
    """A signal after this time, with a handler that does nothing; system calls go on after it if `restart`."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, not restart)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return "ok"


VERBS = {"open": os.open, "close": os.close, "dup": os.dup, "lock": lock, "holder": holder, "alarm": alarm}


class Actor:
    """A process that does one of VERBS at a time. Ends with the process that made it."""

    alive = set()

    def __init__(self):
        parent = os.getpid()
        self.line, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
                self.line.close()
                if os.getppid() == parent:
                    obey(theirs)
            finally:
                os._exit(0)
        theirs.close()
        Actor.alive.add(self)

    def begin(self, verb, *arguments):
        """Tells it to do something, and does not wait for it."""
        self.line.sendall(json.dumps([verb, arguments]).encode() + b"\n")

    def done(self, within=LIMIT):
        """What came of it; "waits" when it has not returned within this time."""
        if not select.select([self.line], [], [], within)[0]:
            return "waits"
        answer = self.line.recv(4096)
        assert answer, "the process is gone"
        return json.loads(answer)

    def do(self, verb, *arguments):
        """Tells it to do something that does not wait."""
        self.begin(verb, *arguments)
        answer = self.done()
        assert answer != "waits", f"{verb} {arguments} has not returned after {LIMIT} s"
        return answer

    def waits(self, verb, *arguments):
        """Tells it to do something that has to wait."""
        self.begin(verb, *arguments)
        answer = self.done(WAITS)
        assert answer == "waits", f"{verb} {arguments}: {answer} and not waiting"

    def kill(self):
        """Kills it; its locks are gone when this returns."""
        Actor.alive.discard(self)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def obey(line):
    for order in line.makefile("r"):
        verb, arguments = json.loads(order)
        try:
            answer = VERBS[verb](*arguments)
        except OSError as error:
            answer = name(error.errno)
        line.sendall(json.dumps("ok" if answer is None else answer).encode())


@atexit.register
def dismiss():
    """Ends all of them."""
    for actor in list(Actor.alive):
        actor.kill()
