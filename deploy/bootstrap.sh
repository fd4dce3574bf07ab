#!/usr/bin/env bash
# Installs with apt what building, running or testing AGFS needs and this Debian machine does not have.
#
#     deploy/bootstrap.sh [build|test] [--check]
#
# `build` (default): what compiles and runs agfs. `test`: also the programs that the system tests drive.
# With everything there it does nothing at all and needs no network and no rights. --check only names what is missing
# and exits 1 if anything is.
set -euo pipefail

what=build check=no
for arg in "$@"; do
    case $arg in
        build | test) what=$arg ;;
        --check) check=yes ;;
        *) echo "bootstrap.sh: unknown argument '$arg'; usage: deploy/bootstrap.sh [build|test] [--check]" >&2; exit 2 ;;
    esac
done

packages=()
have() { command -v "$1" >/dev/null 2>&1; }
# need COMMAND PACKAGE...: the packages are missing when the command is.
need() { local command=$1; shift; have "$command" || packages+=("$@"); }
any_file() { compgen -G "$1" >/dev/null; }

# RocksDB is C++, and its Rust bindings are made by libclang (looked for where clang-sys looks).
need make make
need gcc gcc libc6-dev
need g++ g++
need pkg-config pkg-config
need clang clang
if ! any_file "${LIBCLANG_PATH:-/nowhere}/libclang*.so*" && ! any_file '/usr/lib/llvm-*/lib/libclang*.so*' &&
    ! any_file '/usr/lib/*/libclang*.so*' && ! any_file '/usr/local/lib/libclang*.so*'; then
    packages+=(libclang-dev)
fi
# A mount without root, and `umount` by the user who mounted.
need fusermount3 fuse3
# Crates come over TLS.
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -n "${SSL_CERT_FILE:-}" ] || packages+=(ca-certificates)

if [ "$what" = test ]; then
    need git git
    need rsync rsync
    need vim vim
    need nano nano
    need perl perl
    need flock util-linux
    need tar tar
    have mke2fs || [ -x /sbin/mke2fs ] || packages+=(e2fsprogs)
    need node nodejs
    need npm npm
    need python3 python3
    if ! have python3 || ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then packages+=(python3-venv); fi
    if have python3 && ! python3 -c 'import sqlite3' >/dev/null 2>&1; then
        echo "bootstrap.sh: $(command -v python3) was built without sqlite3, which the system tests use;" \
            "put another python3 first in PATH" >&2
        exit 1
    fi
    # CPython's own tests, of the system's Python.
    python=/usr/bin/python3
    if [ -x "$python" ] &&
        ! "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("test.test_os") is None)' >/dev/null 2>&1; then
        packages+=("lib$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')-testsuite")
    fi
fi

if ! have cargo && [ ! -x "$HOME/.cargo/bin/cargo" ]; then
    echo "bootstrap.sh: no cargo in PATH nor in ~/.cargo/bin: install a Rust toolchain (rustc 1.95 or newer) with rustup" >&2
    exit 1
fi
PATH=$PATH:$HOME/.cargo/bin
components=()
if [ "$what" = test ]; then
    have rustfmt && cargo fmt --version >/dev/null 2>&1 || components+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || components+=(clippy)
fi

if [ ${#packages[@]} -eq 0 ] && [ ${#components[@]} -eq 0 ]; then exit 0; fi
if [ "$check" = yes ]; then
    echo "missing: ${packages[*]-} ${components[*]-}"
    exit 1
fi

if [ ${#components[@]} -gt 0 ]; then
    if ! have rustup; then
        echo "bootstrap.sh: the Rust toolchain lacks ${components[*]} and there is no rustup to add them" >&2
        exit 1
    fi
    rustup component add "${components[@]}"
fi
[ ${#packages[@]} -gt 0 ] || exit 0

if ! have apt-get; then
    echo "bootstrap.sh: missing (as Debian calls them): ${packages[*]}; there is no apt-get here: install them by hand" >&2
    exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
    # Without a terminal to ask on, only a sudo that needs no password helps.
    if have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
        root=(sudo)
    else
        echo "bootstrap.sh: missing: ${packages[*]}; installing them needs root: run as root, or" \
            "'apt-get install ${packages[*]}' once" >&2
        exit 1
    fi
fi
echo "bootstrap.sh: installing ${packages[*]}" >&2
"${root[@]+"${root[@]}"}" apt-get update -q
"${root[@]+"${root[@]}"}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"
