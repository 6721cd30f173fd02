#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tests of put, get, signals, atomics, barriers and order once more, with every rank on a host
# of its own by name, so that all goes over the network. Runs in the build folder.
#
#   over_net.sh [PROVIDER...]       with these libfabric providers (default: the library's choice)
#
# Status 77 where there is no network. OVER_NET_RANKS: counts of ranks (default 2). OVER_NET=all:
# all of them, for minutes.
set -u
if grep -q -e '-fsanitize=thread' Makefile 2>/dev/null; then
    echo "SKIP: what orders a rank's progress thread after another rank's get is a message between"
    echo "processes, which the race detector does not see"
    exit 77
fi
ranks=${OVER_NET_RANKS:-2}
failed=0 ran=0

# over PROGRAM [ARGUMENT...]
over() {
    local program=$1
    shift
    ran=$((ran + 1))
    timeout 600 "tests/$program" -n "$ranks" -m procs -H ABCD "$@" >"$log" 2>&1 && return
    sed "s/^/${GINSHMEM_PROVIDER-the choice}: /" "$log" | grep -v ': ok ' | head -n 30
    failed=$((failed + 1))
}

# A get may overtake a put; pointers are load and store's.
only_near=count_puts_values_and_gets,readers_agree_on_the_order_of_quiet_writes

few() {
    over litmus/message -X $only_near strong_signal weak_signal
    over func/t_put_get
    over func/t_put_value
    over func/t_counter -X $only_near
}

most() {
    local program
    for program in litmus/message litmus/order litmus/reset litmus/sets litmus/waits func/t_put_get \
        func/t_put_value func/t_flush func/t_signal_basic func/t_counter; do
        over $program -X $only_near
    done
}

one() {
    if [ "${OVER_NET-}" = all ]; then most; else few; fi
}

log=$(mktemp "${TMPDIR:-/tmp}/over_net.XXXXXX")
trap 'rm -f "$log"' EXIT
tests/func/t_net -m procs -n 2 every_rank_far >"$log" 2>&1
if [ $? = 77 ]; then
    grep SKIP "$log"
    exit 77
fi
if [ $# = 0 ]; then one; fi
for provider in "$@"; do
    GINSHMEM_PROVIDER=$provider
    export GINSHMEM_PROVIDER
    one
done
echo "$ran programs, $failed failures"
[ $failed = 0 ]
