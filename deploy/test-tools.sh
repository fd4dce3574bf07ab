#!/usr/bin/env bash
# Installs the file system test suites that the system tests run, as programs of their own, into the cache directory:
# pjdfstest (POSIX conformance) and fsx (random reads, writes and mappings against a copy in memory).
#
#     deploy/test-tools.sh            installs what is missing or of another version
#     deploy/test-tools.sh --print    only says where they are
set -euo pipefail

tools=(pjdfstest@0.2.2 fsx@0.3.2)
root=${AGFS_TEST_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/agfs/tools}
PATH=$PATH:$HOME/.cargo/bin

if [ "${1-}" = --print ]; then
    echo "$root"
    exit 0
fi
for tool in "${tools[@]}"; do
    name=${tool%@*} version=${tool#*@}
    if [ "$("$root/bin/$name" --version 2>/dev/null)" = "$name $version" ]; then continue; fi
    echo "test-tools.sh: installing $name $version into $root" >&2
    CARGO_TARGET_DIR=$root/build cargo install --quiet --locked --force --root "$root" "$tool"
done
rm -rf "$root/build"
