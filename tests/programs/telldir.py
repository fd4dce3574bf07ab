"""telldir, seekdir and rewinddir while names come and go: stricter than local file systems, so run on the mount alone."""

import ctypes
import os
import sys

from alike import write

os.chdir(sys.argv[1])
os.mkdir("many")
for i in range(3000):
    write(f"many/f{i}", b"")
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = libc.readdir64.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long
dir = ctypes.c_void_p(libc.opendir(b"many"))

def next_name():
    entry = libc.readdir64(dir)
    return ctypes.string_at(entry + 19).decode() if entry else None

seen = [next_name() for _ in range(1000)]
place = ctypes.c_long(libc.telldir(dir))
after = [next_name() for _ in range(10)]
for name in seen[2:500]:
    if name not in (".", ".."):
        os.unlink(f"many/{name}")
for i in range(100):
    write(f"many/new{i}", b"")
libc.seekdir(dir, place)
assert [next_name() for _ in range(10)] == after, "the same after seekdir"
rest = []
while (name := next_name()) is not None:
    rest.append(name)
all = seen + after + rest
old = [n for n in all if n.startswith("f")]
assert len(old) == len(set(old)) == 3000, "each old name once"
libc.rewinddir(dir)
now = set()
while (name := next_name()) is not None:
    now.add(name)
assert now - {".", ".."} == set(os.listdir("many")), "after rewinddir the present"
libc.closedir(dir)
