#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ginperf --net measures every row between two ranks that only a network joins, and refuses others.
# Small puts of a burst share messages, with signals and without; a lone put is one write.
set -u
for options in '--net --scaling' '--net --format csv'; do
    # shellcheck disable=SC2086 # options are words
    ./ginperf $options >/dev/null 2>&1
    [ $? = 2 ] || { echo "FAIL: $options is taken"; exit 1; }
done
out=$(./ginrun -n 2 ./ginperf --net --rounds 1 --iters 20 2>&1) && {
    echo "FAIL: ranks that load and store were measured: $out"
    exit 1
}
if ! out=$(timeout 120 ./ginrun -n 2 -H 2 ./ginperf --net --rounds 1 --iters 20 2>&1); then
    case $out in
    *'there is no network'*)
        echo "SKIP: $out"
        exit 77
        ;;
    esac
    echo "FAIL: $out"
    exit 1
fi
echo "$out"
echo "$out" | grep -q '^ginperf: --net: 1 of 1 rounds' || { echo "FAIL: it tells of no round"; exit 1; }
for row in 'put 8 B + quiet ' 'get 8 B' 'fetch-add' 'put 8 B + weak signal' 'barrier' 'put 1 MiB, many' \
    'by the engine, waiter drives' 'by the engine, its thread drives' \
    'by the engine, its thread sleeps' 'engine, 4 threads post'; do
    echo "$out" | grep -q "^$row" || { echo "FAIL: no row '$row'"; exit 1; }
done
# write, read, message per operation; classes that have no bundles send one write each
echo "$out" | awk '
    /^# sent/ { counts = 1 }
    counts && /^64 puts/ { seen++; bad += $(NF-4) + $(NF-2) > 1.02 }
    END { exit seen != 3 || bad }' || { echo "FAIL: more than a message per put of a burst"; exit 1; }
