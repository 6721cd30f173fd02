#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A host is cut off while the ranks meet. If its link comes back soon the job runs; else all ranks
# end, long before the time limit, with a rank and the phase. Runs in the build folder.
set -u
GINRUN=${GINRUN:-./ginrun}
link=$(readlink -f "$(dirname "$0")/link")
log=$(mktemp "${TMPDIR:-/tmp}/cut_bringup.XXXXXX")
trap 'rm -f "$log"' EXIT
failed=0

if ! why=$("$GINRUN" -n 1 --hosts 1 --netns true 2>&1); then echo "SKIP: $why"; exit 77; fi
if ! "$GINRUN" -n 2 --hosts 2 ./gininfo --job 2>/dev/null | grep -q '^ *net  *yes'; then
    echo "SKIP: no network: $(./gininfo 2>&1 | sed -n '/^network/,/^$/p' | head -n 5)"
    exit 77
fi

# cut NAME WANT LINK-OPTION...: WANT is a regular expression of what is said
cut() {
    local name=$1 want=$2 status
    shift 2
    timeout 120 "$GINRUN" -k -n 4 --hosts 2 --netns -t 100 "$link" "$@" examples/04_alltoall \
        >"$log" 2>&1 </dev/null
    status=$?
    if [ $status = 77 ]; then
        echo "SKIP: $(grep skipped "$log" | head -n 1)"
        exit 77
    fi
    if [ $status != 124 ] && grep -qE "$want" "$log"; then return; fi
    echo "FAIL $name: status $status, not said: $want"
    sed 's/^/    /' "$log" | tail -n 20
    failed=$((failed + 1))
}

cut "a moment at the start" ': 4 ranks, OK$' -C 1
cut "a moment, soon" ': 4 ranks, OK$' -c 1
export GINSHMEM_INIT_TIMEOUT=4s GINSHMEM_COLL_TIMEOUT=20s GINSHMEM_PEER_TIMEOUT=10s
cut "for good, at the start" 'network up: rank 2 has but .* does not leave its own machine' -C 0
# by a bootstrap over the link, which never comes to be
# shellcheck disable=SC2016 # the rank expands it
root='exec env -u PMI_FD -u PMI_RANK -u PMI_SIZE GINSHMEM_RANK=$PMI_RANK GINSHMEM_SIZE=$PMI_SIZE \
    GINSHMEM_ROOT=10.99.0.1:7777 "$0"'
cut "for good, with the bootstrap" 'rank 2-3|ranks? [23] .*has not found rank 0' \
    -C 0 bash -c "$root"
# stays WANT VARIABLE=VALUE: a network that ends at the machine, and ranks on two
stays() {
    timeout 60 env GINSHMEM_INIT_TIMEOUT=4s "$2" "$GINRUN" -n 2 --hosts 2 --netns -t 50 \
        examples/04_alltoall >"$log" 2>&1 </dev/null
    if [ $? != 124 ] && grep -qE "$1" "$log"; then return; fi
    echo "FAIL $2: not said: $1"
    sed 's/^/    /' "$log" | tail -n 20
    failed=$((failed + 1))
}
stays 'rank 0 has but .*does not leave its own machine .* rank 1 is on another' GINSHMEM_NIC=lo
! ./gininfo | grep -q '^ *shm  *yes' ||
    stays 'rank 0 has but shm, .*does not leave its own machine' GINSHMEM_PROVIDER=shm
if [ $failed = 0 ]; then echo "ok"; else exit 1; fi
