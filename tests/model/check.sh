#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Exhaustive checks of the models beside this file, and of their mutations, which must be refused.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cc=cc
command -v $cc >/dev/null || { echo "skipped: no cc"; exit 77; }
command -v spin >/dev/null || { echo "skipped: no spin (package spin)"; exit 77; }
D=$(mktemp -d "${TMPDIR:-/tmp}/model.XXXXXX")
trap 'rm -rf "$D"' EXIT
cd "$D" || exit 1
failed=0

# check MODEL MUTATION: prints the numbers of errors and states
check() {
    spin -DMUTATION="$2" -a "$here/$1.pml" >spin.log 2>&1 || { cat spin.log >&2; return 1; }
    "$cc" -O1 -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c || return 1
    timeout 60 ./pan -m1000000 >pan.log 2>&1
    sed -n 's/.* errors: \([0-9]*\)$/\1/p; s/^ *\([0-9.e+]*\) states, stored$/\1/p' pan.log | tac | xargs
}

for model in ring:7 strategy_s:4 strategy_epoch:5; do
    name=${model%:*}
    read -r states errors <<<"$(check "$name" 0)"
    if [ "${errors:-x}" = 0 ]; then
        echo "$name: $states states, no error"
    else
        echo "FAIL $name: ${errors:-no result}"
        tail -n 20 pan.log
        failed=1
    fi
    for ((m = 1; m <= ${model#*:}; m++)); do
        read -r states errors <<<"$(check "$name" "$m")"
        if [ "${errors:-0}" -gt 0 ]; then
            echo "$name: mutation $m is found"
        else
            echo "FAIL $name: mutation $m is not found"
            failed=1
        fi
    done
done
exit $failed
