"""Types into a program that wants a terminal.

    terminal.py KEYS COMMAND...    starts COMMAND on a terminal of its own, types KEYS (with Python's escapes: \\r, \\x18)
                                   once it has drawn its screen, and ends with its exit code; 1 when it does not end
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 30.0


def main(keys, command):
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    typed = False
    screen = b""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        ready = select.select([terminal], [], [], 0.05 if not typed else LIMIT)[0]
        if not ready:
            # It has drawn and now waits.
            if screen:
                os.write(terminal, keys)
                typed = True
            continue
        try:
            drawn = os.read(terminal, 65536)
        except OSError:  # the kernel's way to say that the program is gone
            drawn = b""
        if not drawn:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        screen += drawn
    os.kill(child, signal.SIGKILL)
    sys.stderr.write(f"{command[0]} did not end in {LIMIT} s; its screen: {screen[-2000:]!r}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].encode().decode("unicode_escape").encode("latin-1"), sys.argv[2:]))
