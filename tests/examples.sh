#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every example at 1, 2 and 4 ranks: exit status 0, one line that ends in OK. Run in the build folder.
set -u
src=${srcdir:-$(dirname "$0")/..}
[ -x ./ginrun ] || { echo "no ./ginrun here: run this in the build folder" >&2; exit 1; }
failed=0 ran=0
try() {
    n=$1
    program=$2
    shift 2
    out=$(timeout 120 ./ginrun -n "$n" "$program" "$@" 2>&1)
    status=$?
    ran=$((ran + 1))
    case $status:$out in
    0:*": $n rank"*", OK") echo "ok $program, $n ranks" ;;
    *)
        echo "FAIL $program, $n ranks, status $status: $out"
        failed=$((failed + 1))
        ;;
    esac
}
for n in 1 2 4; do
    for source in "$src"/examples/[0-9]*.c; do
        name=${source##*/}
        name=${name%.c}
        case $name in
        *histogram) try "$n" "examples/$name" "$src/COPYING" ;;
        *) try "$n" "examples/$name" ;;
        esac
    done
done
if ./ginrun -n 2 examples/07_histogram /nonexistent 2>/dev/null; then
    echo "FAIL histogram of a missing file ends well"
    failed=$((failed + 1))
fi
echo "$ran runs, $failed failures"
[ "$failed" -eq 0 ] && [ "$ran" -ge 27 ]
