#!/usr/bin/env bash
# Runs each argument as a shell command, one after the other, shows everything they print, and closes with
# `N passed, N failed` summed up over all of them. Exits 1 when a test failed or a command did.
#
# Counted are cargo's `test result:` lines and lines that consist of `N passed, N failed`. A command that fails without
# reporting a failed test (formatting, a compile error) counts as one failure. Every command runs, whatever came before.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 broken=()

for command in "$@"; do
    printf '\n--- %s\n' "$command"
    bash -euo pipefail -c "$command" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    read -r good bad < <(awk '
        { gsub(/\033\[[0-9;]*m/, "") }
        /^test result: / { split($0, part, /[.;] */); for (i in part) { n = split(part[i], w, " ")
            if (n == 2 && w[2] == "passed") good += w[1]; if (n == 2 && w[2] == "failed") bad += w[1] } }
        /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3 }
        END { print good + 0, bad + 0 }' "$log")
    if [ "$status" -ne 0 ]; then
        broken+=("$command")
        [ "$bad" -gt 0 ] || bad=1
    fi
    passed=$((passed + good)) failed=$((failed + bad))
done

echo
for command in "${broken[@]+"${broken[@]}"}"; do echo "failed: $command"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
