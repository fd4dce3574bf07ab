"""Prints a history for `git fast-import`: the same every time, about 31 objects a commit.

    make_history.py COMMITS
"""

import random
import sys

FILES = 3000
CHANGES = 10


def block(out, text):
    out.write(b"data %d\n%s\n" % (len(text), text))


def main(commits):
    out = sys.stdout.buffer
    chance = random.Random(7)
    for c in range(commits):
        out.write(b"commit refs/heads/main\nmark :%d\n" % (c + 1))
        for who in (b"author", b"committer"):
            out.write(b"%s a <a@x> %d +0000\n" % (who, 1700000000 + c))
        block(out, b"change %d" % c)
        for _ in range(CHANGES):
            n = chance.randrange(FILES)
            mode = b"100755" if n % 50 == 0 else b"100644"
            out.write(b"M %s inline d%d/e%d/f%d.txt\n" % (mode, n % 40, n % 7, n))
            block(out, b"file %d at commit %d: %d\n" % (n, c, chance.getrandbits(40)) * (1 + n % 30))
    out.write(b"done\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
