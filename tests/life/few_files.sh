#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that may open few descriptors: either the job runs, or what is said tells of them. Runs in
# the build folder.
set -u
GINRUN=${GINRUN:-./ginrun}
log=$(mktemp "${TMPDIR:-/tmp}/few_files.XXXXXX")
trap 'rm -f "$log"' EXIT
failed=0 told=0

if ! "$GINRUN" -n 2 --hosts 2 ./gininfo --job 2>/dev/null | grep -q '^ *net  *yes'; then
    echo "SKIP: no network"
    exit 77
fi
for limit in 26 34 38 42 46 52; do
    # shellcheck disable=SC2016 # the rank expands it
    timeout 100 "$GINRUN" -k -n 2 --hosts 2 -t 90 bash -c \
        'if [ "$PMI_RANK" = 1 ]; then ulimit -n '$limit'; fi; exec examples/04_alltoall' \
        >"$log" 2>&1 </dev/null
    status=$?
    if [ $status = 0 ]; then continue; fi
    if [ $status != 124 ] && grep -qiE 'descriptors|too many open files' "$log"; then
        told=$((told + 1))
    else
        echo "FAIL: with $limit: status $status"
        head -n 10 "$log"
        failed=$((failed + 1))
    fi
done
if [ $told = 0 ]; then echo "FAIL: nothing was ever told"; fi
[ $failed = 0 ] && [ $told != 0 ]
