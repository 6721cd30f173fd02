#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every example at 1, 2 and 4 ranks, on one host and on two: exit status 0, a last line that ends in
# OK. Runs in the build folder.
set -u
src=${srcdir:-$(dirname "$0")/..}
[ -x ./ginrun ] || { echo "no ./ginrun here: run this in the build folder" >&2; exit 1; }
failed=0 ran=0
# try RANKS HOSTS PROGRAM [ARGUMENT...]
try() {
    n=$1
    hosts=$2
    program=$3
    shift 3
    out=$(timeout 120 ./ginrun -n "$n" --hosts "$hosts" "$program" "$@" 2>&1)
    status=$?
    ran=$((ran + 1))
    case $status:$out in
    0:*": $n rank"*", OK") echo "ok $program, $n ranks on $hosts" ;;
    *)
        echo "FAIL $program, $n ranks on $hosts, status $status: $out"
        failed=$((failed + 1))
        ;;
    esac
}
# each RANKS HOSTS
each() {
    for source in "$src"/examples/[0-9]*.c; do
        name=${source##*/}
        name=${name%.c}
        case $name in
        *histogram) try "$1" "$2" "examples/$name" "$src/COPYING" ;;
        *) try "$1" "$2" "examples/$name" ;;
        esac
    done
}
each 1 1
each 2 1
each 4 1
reason=$(./ginrun -n 2 --hosts 2 ./gininfo --job 2>&1 | sed -n 's/^ *net  *//p')
case $reason in
yes*)
    each 2 2
    each 4 2
    ;;
*) echo "not on two hosts: no network: $reason" ;;
esac
if ./ginrun -n 2 examples/07_histogram /nonexistent 2>/dev/null; then
    echo "FAIL histogram of a missing file ends well"
    failed=$((failed + 1))
fi
echo "$ran runs, $failed failures"
[ "$failed" -eq 0 ] && [ "$ran" -ge 30 ]
