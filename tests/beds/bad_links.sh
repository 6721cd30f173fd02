#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All-to-all and histogram on 2 hosts with networks of their own whose links lose packets, are slow,
# or both. The examples compare all that arrives. Runs in the build folder.
#
#   bad_links.sh          seconds           bad_links.sh all          more of it, minutes
set -u
GINRUN=${GINRUN:-./ginrun}
link=$(readlink -f "$(dirname "$0")/link")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bad_links.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failed=0 ran=0
text=${srcdir:-$(dirname "$0")/../..}/COPYING

if ! why=$("$GINRUN" -n 1 --hosts 1 --netns true 2>&1); then echo "SKIP: $why"; exit 77; fi
if ! "$GINRUN" -n 2 --hosts 2 ./gininfo --job 2>/dev/null | grep -q '^ *net  *yes'; then
    echo "SKIP: no network: $(./gininfo 2>&1 | sed -n '/^network/,/^$/p' | head -n 5)"
    exit 77
fi

# over WHAT LINK-OPTIONS PROGRAM [ARGUMENT...]: WHAT must have happened to packets: lost or held
over() {
    local what=$1 options=$2 began count status
    shift 2
    began=$(date +%s%N)
    # shellcheck disable=SC2086 # options are words
    timeout 240 "$GINRUN" -n 4 --hosts 2 --netns -t 200 "$link" $options "$@" >"$scratch/log" 2>&1
    status=$?
    if [ $status = 77 ]; then
        grep skipped "$scratch/log" | head -n 1
        return
    fi
    ran=$((ran + 1))
    count=$(sed -n "s/^link:.* $what \([0-9]*\).*/\1/p" "$scratch/log" | paste -sd+)
    count=$((${count:-0}))
    if [ $status = 0 ] && grep -q ': 4 ranks, OK$' "$scratch/log" && [ $count -gt 0 ]; then
        echo "ok ${1##*/}, $options: $count packets $what," \
            "$((($(date +%s%N) - began) / 100000000))e-1 s"
        return
    fi
    echo "FAIL ${1##*/}, $options: status $status, $count packets $what"
    sed 's/^/    /' "$scratch/log" | tail -n 20
    failed=$((failed + 1))
}

alltoall=examples/04_alltoall histogram=examples/07_histogram
over lost "-l 10" $alltoall
over lost "-l 10" $histogram "$text"
over held "-r 10mbit" $alltoall
over held "-r 1mbit" $histogram "$text"
if [ "${1-}" = all ]; then
    for example in 02_ring 03_signal_demo 04_alltoall 05_barrier_phases 16_hybrid; do
        example=examples/$example
        for options in "-l 10" "-l 50" "-l 10 -r 20mbit"; do over lost "$options" "$example"; done
    done
    over lost "-l 30" $histogram "$text"
fi
if [ $ran = 0 ]; then
    echo "SKIP: links cannot be spoilt here"
    exit 77
fi
echo "$ran runs, $failed failures"
[ $failed = 0 ]
