#!/usr/bin/env bash
# Runs the system tests that are not Rust: every tests/*_test.py and tests/*_test.sh, with the path of the agfs binary
# as argument. Prints `N passed, N failed` (a script counts as one test) and exits 1 when one failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
shopt -s nullglob

agfs=${1:?usage: deploy/system-tests.sh AGFS_BINARY}
passed=0 failed=0
for script in tests/*_test.py tests/*_test.sh; do
    case $script in
        *.py) run=(python3 -B "$script") ;;
        *.sh) run=(bash "$script") ;;
    esac
    if "${run[@]}" "$agfs"; then
        echo "ok    $script" && passed=$((passed + 1))
    else
        echo "FAIL  $script" && failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
