#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tests of deaths on other hosts once more, over networks that the library does not choose. Runs
# in the build folder.
#
#   net_kill.sh [SEED]               one of them over the usual ones, at random
#   net_kill.sh --all [PROVIDER...]  all of them
set -u
everywhere=('tcp;ofi_rxm' shm sockets)
usual=('tcp;ofi_rxm') # the others crash or hang now and then by themselves
log=$(mktemp "${TMPDIR:-/tmp}/net_kill.XXXXXX")
ran=0 failed=0
old=$(echo /dev/shm/*)

# What the shm provider's killed ranks leave behind.
sweep() {
    local f pid
    for f in /dev/shm/[0-9]*:*; do
        pid=${f##*/}
        case " $old " in *" $f "*) continue ;; esac
        if [ -e "$f" ] && [ ! -e "/proc/${pid%%:*}" ]; then rm -f "$f"; fi
    done
}
trap 'sweep; rm -f "$log"' EXIT

if grep -q -e '-fsanitize=thread' Makefile 2>/dev/null; then
    echo "SKIP: libfabric is not built for the race detector"
    exit 77
fi

# over PROVIDER WORD...: words for t_net_kill
over() {
    local rc
    export GINSHMEM_PROVIDER=$1
    shift
    timeout 600 tests/life/t_net_kill "$@" >"$log" 2>&1
    rc=$?
    if [ $rc = 77 ]; then
        echo "$GINSHMEM_PROVIDER: $(grep -m 1 SKIP "$log")"
        return
    fi
    ran=$((ran + 1))
    echo "$GINSHMEM_PROVIDER:" "$(grep -e '^ok ' -e '^FAIL ' "$log" | paste -sd, -)"
    if [ $rc != 0 ]; then
        failed=$((failed + 1))
        grep -v -e '^ok ' "$log" | head -n 20
    fi
}

if [ "${1-}" = --all ]; then
    shift
    if [ $# = 0 ]; then set -- "${everywhere[@]}"; fi
    for provider in "$@"; do over "$provider"; done
else
    seed=${1:-$RANDOM}
    echo "seed $seed"
    RANDOM=$seed
    # those that last as long as silence does are net_fate.sh's
    tests=(in_a_wait nothing_under_way in_a_barrier while_all_put in_gets_and_atomics
        in_a_collective_call before_it_finalizes after_it_finalized with_a_child_that_lives)
    for provider in "${usual[@]}"; do
        over "$provider" -n 3 "${tests[RANDOM % ${#tests[@]}]}"
    done
fi
if [ $ran = 0 ]; then exit 77; fi
echo "$ran runs, $failed failures"
[ $failed = 0 ]
