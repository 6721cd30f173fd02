#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The examples of the manual run, on 1, 2 and 3 ranks, and find what they should.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
ginrun=
for try in ./ginrun lib/tools/ginrun; do
    [ -x $try ] && ginrun=$try
done
[ -n "$ginrun" ] || skip "ginrun is not built here"
work_folder

ran=0
for source in "$top"/man/examples/*.c; do
    program=man/examples/$(basename "$source" .c)
    [ -x "$program" ] || continue
    ran=$((ran + 1))
    for ranks in 1 2 3; do
        timeout 60 $ginrun -n "$ranks" "$program" >"$work/log" 2>&1 </dev/null || {
            complain "$program on $ranks ranks: status $?"
            head -n 20 "$work/log"
        }
    done
done
[ "$ran" -gt 0 ] || skip "the examples are not built here (make check)"
echo "$ran programs ran"
finish
