"""Makes small Python packages, ready to install, each with a module and a command of the package's name.

    make_wheels.py DIR COUNT    writes small1 .. smallCOUNT
"""

import base64
import hashlib
import sys
import zipfile

MODULE = """import sys


def main():
    print("{name} in", sys.prefix)
"""


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def make(directory, name):
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}/__init__.py": MODULE.format(name=name),
        f"{name}/data/text.txt": f"{name}\n" * 1000,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: make_wheels\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = [f"{path},sha256={digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(f"{directory}/{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


if __name__ == "__main__":
    for i in range(int(sys.argv[2])):
        make(sys.argv[1], f"small{i + 1}")
