#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gininfo --probe: every pair has its line with a path and figures, alone it says what to do, and it
# ends when a rank dies. The programs of the build folder in which this runs.
LC_ALL=C
ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export LC_ALL ASAN_OPTIONS
bad=0
D=$(mktemp -d "${TMPDIR:-/tmp}/probe.XXXXXX")
trap 'rm -rf "$D"' EXIT

fail() {
    echo "FAIL $*"
    sed 's/^/    /' "$D/out" | head -n 20
    bad=1
}

# probe WHAT GINRUN-ARGUMENTS GININFO-ARGUMENTS: output in $D/out
probe() {
    # shellcheck disable=SC2086 # words
    timeout 100 ./ginrun $2 ./gininfo --probe $3 >"$D/out" 2>&1 || fail "$1: status $?"
}

# row WHAT PAIR PATH NUMBERS: the pair's line has that path, and so many figures above 0
row() {
    awk -v pair="  $2 " -v path="$3" -v want="$4" '
        index($0, pair) == 1 && index($0, " " path " ") {
            n = 0
            for (i = NF - 5; i <= NF; i++) n += $i > 0
            found += n >= want
        }
        END { exit !found }' "$D/out" || fail "$1: no line of $2 by $3 with $4 figures"
}

./gininfo --probe >"$D/out" 2>&1 || fail "alone: status $?"
grep -q 'ginrun -n 2 gininfo --probe' "$D/out" || fail "alone: it does not say what to do"
for wrong in '--rounds 5' -v '--probe --rounds none'; do
    # shellcheck disable=SC2086
    ./gininfo $wrong >"$D/out" 2>&1
    [ $? = 2 ] || fail "gininfo $wrong is taken"
done

probe "one host" "-n 3" "--rounds 20"
for p in "0 - 1" "0 - 2" "1 - 2"; do row "one host" "$p" LSA 6; done
! grep -q process_vm "$D/out" || row "memory outside the heap" "0 - 1 own memory" process_vm 5

probe "many ranks" "-n 9" "--rounds 3"
row "many ranks" "0 - 1" LSA 6
grep -q '^  pairs .*-v measures all' "$D/out" || fail "many ranks: it does not say which"
probe "many ranks, all" "-n 9" "--rounds 3 -v"
n=$(grep -c '^  [0-8] - [0-8]  .* LSA ' "$D/out")
[ "$n" = 36 ] || fail "many ranks, all: $n pairs of 36"

probe "two hosts" "-n 4 -H 2" "--rounds 20"
row "two hosts" "0 - 1" LSA 6
row "two hosts" "2 - 3" LSA 6
if grep -q ' 0-1  *none ' "$D/out"; then
    echo "no network here: its figures are left out"
else
    for p in "0 - 2" "0 - 3" "1 - 2" "1 - 3"; do row "two hosts" "$p" NET 6; done
    grep -q '^  0 - 2 .* NET  *[A-D]  *[a-z]' "$D/out" || fail "two hosts: no class and provider"
fi
if ./gininfo --json --env >/dev/null 2>&1; then
    probe json "-n 2" "--rounds 3 --json"
    grep -q '"path": "LSA"' "$D/out" || fail "json: no path"
    grep -q '"fetch-add": [0-9]' "$D/out" || fail "json: no figure"
fi

# rank 2 is killed in the middle, or sooner where the machine is slow
# shellcheck disable=SC2016 # the ranks' shells expand it
timeout 100 ./ginrun -k -n 3 sh -c 'echo $$ >"$0/pid.$PMI_RANK"; exec ./gininfo --probe --rounds 10000' "$D" \
    >"$D/out" 2>&1 &
job=$!
i=0
while ! [ -s "$D/pid.2" ] && [ $i -lt 600 ]; do sleep .05; i=$((i + 1)); done
sleep .7
if kill -KILL "$(cat "$D/pid.2")" 2>/dev/null; then
    wait $job
    st=$?
    if [ $st = 0 ] || [ $st = 124 ]; then fail "a death: status $st"; fi
    grep -q '^gininfo: rank [01]: ' "$D/out" || fail "a death: the others do not say so"
else
    wait $job
    echo "the probe was over before its rank could be killed"
fi
exit $bad
