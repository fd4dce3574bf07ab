"""Saves a file with one more line at its end, in the way that the first argument names.

    save.py WAY FILE LINE

in-place             truncate and write (VS Code)
rename-over          write FILE.new with the mode of FILE, sync, rename it over FILE (most agents' edit tools)
rename-over-crash    the same, killed before the rename
rename-away          write a temporary file, rename FILE to FILE.old, the temporary file to FILE, remove FILE.old (JetBrains)
private-temporary    as rename-over, with a name that nobody guesses, and the directory synced too
"""

import os
import shutil
import signal
import sys
import tempfile


def write_synced(path, text):
    with open(path, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def rename_over(path, text, crash=False):
    new = path + ".new"
    write_synced(new, text)
    shutil.copymode(path, new)
    if crash:
        os.kill(os.getpid(), signal.SIGKILL)
    os.rename(new, path)


def rename_away(path, text):
    new, old = path + "___tmp___", path + "___old___"
    write_synced(new, text)
    shutil.copymode(path, new)
    os.rename(path, old)
    os.rename(new, path)
    os.remove(old)


def private_temporary(path, text):
    directory = os.path.dirname(os.path.abspath(path))
    handle, new = tempfile.mkstemp(dir=directory)
    os.write(handle, text)
    os.fchmod(handle, os.stat(path).st_mode & 0o7777)
    os.fsync(handle)
    os.close(handle)
    os.replace(new, path)
    directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


def in_place(path, text):
    with open(path, "r+b") as file:
        file.truncate(0)
        file.write(text)


def main(way, path, line):
    with open(path, "rb") as file:
        text = file.read() + line.encode() + b"\n"
    ways = {
        "in-place": in_place,
        "rename-over": rename_over,
        "rename-over-crash": lambda p, t: rename_over(p, t, crash=True),
        "rename-away": rename_away,
        "private-temporary": private_temporary,
    }
    ways[way](path, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
