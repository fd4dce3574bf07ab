#!/usr/bin/env bash
# Runs its arguments as a command with AGFS_TEST_SMALL_DISK naming a directory with two disks of 12 MiB, `meta` and `chunks`,
# that the tests of a full disk may fill. The disks are memory, mounted for the time of the command; that needs root (or sudo
# without a password). Without either the tests of a full disk are left out, which is said here, unless CI=true: then it is a
# failure.
set -euo pipefail

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
dir=$(mktemp -d)
mkdir "$dir/meta" "$dir/chunks"
unmount() {
    for disk in meta chunks; do "${as_root[@]}" umount -l "$dir/$disk" 2>/dev/null || true; done
    rmdir "$dir/meta" "$dir/chunks" "$dir"
}
trap unmount EXIT
for disk in meta chunks; do
    if ! "${as_root[@]}" mount -t tmpfs -o size=12m,mode=1777 agfs-small-disk "$dir/$disk"; then
        echo "small-disk: cannot mount a small disk without root: the tests of a full disk are left out" >&2
        [ "${CI:-}" != true ] || exit 1
        "$@"
        exit
    fi
done
AGFS_TEST_SMALL_DISK=$dir "$@"
