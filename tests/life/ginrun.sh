#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ginrun: statuses, who ends whom, signals, input and output, hosts, PMI. Runs in the build folder.
# shellcheck disable=SC2015,SC2016 # the ranks' shells expand what is quoted here
set -u
GINRUN=$(readlink -f "${GINRUN:-./ginrun}")
TRY=$(readlink -f "${TRY:-tests/beds/boot_try}")
export TRY
D=$(mktemp -d "${TMPDIR:-/tmp}/ginrun.XXXXXX")
trap 'rm -rf "$D"' EXIT
failed=0

fail() {
    echo "FAIL $*"
    sed 's/^/    /' "$D/err" 2>/dev/null | head -n 5
    failed=$((failed + 1))
}

# expect STATUS NAME ARGUMENT...: run ginrun, output in $D/out and $D/err.
expect() {
    local want=$1 name=$2 got
    shift 2
    timeout 30 "$GINRUN" "$@" >"$D/out" 2>"$D/err" </dev/null
    got=$?
    if [ $got != "$want" ]; then fail "$name: status $got, not $want"; fi
}

# has FILE TEXT NAME
has() {
    grep -qF -- "$2" "$D/$1" || fail "$3: no \"$2\" in $1"
}

# is FILE TEXT NAME: the whole file
is() {
    [ "$(cat "$D/$1")" = "$2" ] || fail "$3: $1 is \"$(cat "$D/$1")\", not \"$2\""
}

# soon NAME COMMAND...: the command succeeds within 5 s
soon() {
    local name=$1 i
    shift
    for ((i = 0; i < 600; i++)); do
        "$@" 2>/dev/null && return
        sleep .05
    done
    fail "$name: never came true: $*"
}

gone() { # no process of that number, or a zombie
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status"
}

state_is() {
    grep -q "^State:.$2" "/proc/$1/status"
}

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# ---- misuse ----
expect 2 "no arguments"
expect 2 "no program" -n 2
expect 2 "no number" true
has err "-n N" "no number"
for n in 0 -1 x 2x 1025 ""; do expect 2 "-n '$n'" -n "$n" true; done
expect 2 "unknown option" -n 2 --nonsense true
has err "nonsense" "unknown option"
expect 2 "missing value" -n
expect 2 "more hosts than ranks" -n 2 --hosts 3 true
expect 2 "bad timeout" -n 2 -t 0 true
expect 2 "bad timeout" -n 2 -t 1x true
expect 2 "bad timeout" -n 2 -t ms true
has err "see ginrun --help" "bad timeout"
expect 2 "bad variable" -n 2 -x NAME true
expect 0 "help" --help
has out "usage: ginrun" help
expect 0 "version" --version
has out "ginrun " version

# ---- statuses ----
expect 0 "true" -n 3 true
expect 7 "one fails" -n 3 sh -c 'exit $((PMI_RANK == 1 ? 7 : 0))'
has err "rank 1 (process " "one fails"
has err "status 7" "one fails"
expect 137 "killed" -n 2 sh -c 'test $PMI_RANK = 0 || kill -9 $$'
has err "signal 9" "killed"
expect 127 "not found" -n 2 ./no-such-program
has err "cannot run ./no-such-program: No such file" "not found"
[ "$(wc -l <"$D/err")" = 1 ] || fail "not found: told more than once"
cp /bin/true "$D/here"
(cd "$D" && timeout 30 "$GINRUN" -n 1 here 2>"$D/err")
has err "./here" "not in PATH"
(
    exec <&- >&-
    timeout 30 "$GINRUN" -n 2 -l sh -c 'cat; echo x; exec "$TRY" 2' 2>"$D/err"
) || fail "standard descriptors closed"
touch "$D/plain"
expect 126 "not executable" -n 2 "$D/plain"
expect 127 "the program's own 127" -n 2 sh -c 'exit 127'
has err "status 127" "the program's own 127"

# ---- one dies, the others end ----
t0=$(milliseconds)
expect 3 "others end" -n 3 sh -c 'test $PMI_RANK = 1 && exit 3; sleep 60'
[ $(($(milliseconds) - t0)) -lt 20000 ] || fail "others end: took $(($(milliseconds) - t0)) ms"
t0=$(milliseconds)
expect 3 "deaf to TERM" -n 2 bash -c 'trap "" TERM; test $PMI_RANK = 1 && { until test -s '"$D"'/child; do sleep .05; done; exit 3; }
    echo $$ >'"$D"'/deaf; sleep 60 & echo $! >'"$D"'/child; wait; sleep 60'
t0=$(($(milliseconds) - t0))
if [ $t0 -lt 1900 ] || [ $t0 -gt 25000 ]; then fail "deaf to TERM: took $t0 ms"; fi
gone "$(cat "$D/deaf")" || fail "deaf to TERM: still there"
gone "$(cat "$D/child")" || fail "deaf to TERM: its child is still there"
expect 3 "keep going" -k -n 3 sh -c 'test $PMI_RANK = 1 && exit 3; sleep .4; touch '"$D"'/kept.$PMI_RANK'
if [ ! -e "$D/kept.0" ] || [ ! -e "$D/kept.2" ]; then fail "keep going: the others were ended"; fi
expect 124 "time limit" -t .5 -n 2 sleep 60
has err "time limit of 0.5 s" "time limit"
has err "never spoke PMI" "time limit"
if [ -x ./ginperf ]; then # longer each time, for machines that are slow to start it
    for limit in 1 4 16; do
        timeout 60 "$GINRUN" -t $limit -n 2 ./ginperf --rounds 1000 --iters 100000000 >"$D/out" 2>"$D/err" </dev/null
        grep -q '^ginshmem\[1\] of 2: ' "$D/err" && break
    done
    has err "ginshmem[0] of 2: GIN_OK" "what ranks wait for at the time limit"
    has err "ginshmem[1] of 2: GIN_OK" "what ranks wait for at the time limit"
fi
expect 124 "time limit with a unit" -t 200ms -n 2 sleep 60
expect 0 "time limit with a unit" -t 20s -n 2 true

# ---- signals ----
# started FILE...: ginrun runs in the background as $pid, its ranks have written these files
run() {
    rm -f "$D"/r.*
    # what a shell starts in the background ignores the first two, what nohup starts the third
    env --default-signal=INT,QUIT,HUP "$GINRUN" "$@" >"$D/out" 2>"$D/err" </dev/null &
    pid=$!
    soon "start" test -s "$D/r.0" -a -s "$D/r.1"
    r0=$(cat "$D/r.0") r1=$(cat "$D/r.1")
}
ends_with() {
    wait "$pid"
    got=$?
    [ $got = "$1" ] || fail "$2: status $got, not $1"
    gone "$r0" && gone "$r1" || fail "$2: a rank is still there"
}
for signal in INT:130 TERM:143 HUP:129 QUIT:131; do
    # exec: bash would wait for sleep before it acts
    run -n 2 bash -c 'echo $$ >'"$D"'/r.$PMI_RANK; exec sleep 60'
    kill "-${signal%:*}" $pid
    ends_with "${signal#*:}" "$signal"
done
for signal in USR1 USR2; do
    run -n 2 bash -c 'trap "exit 0" '$signal'; echo $$ >'"$D"'/r.$PMI_RANK; while :; do sleep .05; done'
    kill -$signal $pid
    ends_with 0 $signal
done
run -n 2 bash -c 'echo $$ >'"$D"'/r.$PMI_RANK; exec sleep 60'
kill -TSTP $pid
soon "TSTP" state_is "$r1" T
soon "TSTP, ginrun" state_is $pid T
kill -CONT $pid
soon "CONT" state_is "$r1" S
disown $pid
kill -KILL $pid
soon "dies with the launcher" gone "$r0"
soon "dies with the launcher" gone "$r1"
# the third wish is a command
run -n 2 bash -c 'trap "" INT TERM; echo $$ >'"$D"'/r.$PMI_RANK; while :; do sleep .05; done'
for i in $(seq 200); do # two that it has not seen yet are one
    gone $pid && break
    kill -INT $pid
    sleep .1
done
ends_with 130 "third INT"

# ---- input and output ----
echo "for rank 0" | "$GINRUN" -n 3 sh -c 'cat >'"$D"'/in.$PMI_RANK'
is in.0 "for rank 0" "input"
is in.1 "" "input"
is in.2 "" "input"
expect 0 "labels" -l -n 2 sh -c 'printf "one\n\ntwo"; test $PMI_RANK = 0 || echo bad >&2'
[ "$(grep -c '^\[0\] ' "$D/out")" = 3 ] || fail "labels: $(cat "$D/out")"
has out "[1] two" "labels"
is err "[1] bad" "labels"
expect 0 "long lines" -l -n 2 sh -c 'head -c 200000 /dev/zero | tr "\0" x; echo; echo end'
[ "$(tr -cd x <"$D/out" | wc -c)" = 400000 ] || fail "long lines: lost some"
[ "$(grep -c '^\[[01]\] end$' "$D/out")" = 2 ] || fail "long lines: ends"
expect 0 "no labels" -n 1 echo plain
is out "plain" "no labels"
# a child that keeps the output open does not keep the job
t0=$(milliseconds)
expect 0 "child left behind" -l -n 1 sh -c 'sleep 25 & echo $! >'"$D"'/left; echo done'
[ $(($(milliseconds) - t0)) -lt 20000 ] || fail "child left behind: waited for it"
kill "$(cat "$D/left")" 2>/dev/null
"$GINRUN" -l -n 2 sh -c 'yes | head -n 100000' 2>/dev/null | head -n 1 >"$D/out"
has out "] y" "reader went away"

# ---- environment ----
expect 0 "variables" -x A_B=c=d -x E= -n 1 sh -c 'echo "$A_B,$E,$PMI_RANK,$PMI_SIZE"'
is out "c=d,,0,1" "variables"
export PMIX_RANK=5 PMIX_NAMESPACE=x GINSHMEM_ROOT=1.2.3.4:5
expect 0 "other launchers" -n 1 sh -c 'echo "$PMIX_RANK$PMIX_NAMESPACE$GINSHMEM_ROOT."'
is out "." "other launchers"
unset PMIX_RANK PMIX_NAMESPACE GINSHMEM_ROOT
expect 0 "hosts" --hosts 3 -n 7 sh -c 'echo "$PMI_RANK ${GINSHMEM_HOST_ID##*-} $MPI_LOCALRANKID/$MPI_LOCALNRANKS"'
sort -o "$D/out" "$D/out"
is out "0 host0 0/3
1 host0 1/3
2 host0 2/3
3 host1 0/2
4 host1 1/2
5 host2 0/2
6 host2 1/2" "hosts"
expect 0 "one host" -n 1 sh -c 'echo "${GINSHMEM_HOST_ID-unset}"'
is out "unset" "one host"

# ---- hosts with networks of their own ----
expect 2 "networks without hosts" -n 2 --netns true
has err "--hosts" "networks without hosts"
if timeout 30 "$GINRUN" -n 1 --hosts 1 --netns true 2>/dev/null; then
    expect 0 "networks" -n 3 --hosts 2 --netns -l bash -c 'echo "$(hostname) $(ip -o -4 addr show dev eth0 | grep -o "10\.99\.0\.[0-9]*/24") $PWD"'
    [ "$(sort "$D/out")" = "[0] host0 10.99.0.1/24 $PWD
[1] host0 10.99.0.1/24 $PWD
[2] host1 10.99.0.2/24 $PWD" ] || fail "networks: $(cat "$D/out")"
    expect 0 "a store over networks" -n 5 --hosts 3 -N "$TRY" 5
    expect 137 "killed with networks" -n 2 --hosts 2 --netns sh -c 'test $PMI_RANK = 0 || kill -9 $$; sleep 60'
    "$GINRUN" -n 2 --hosts 2 --netns sh -c 'echo $$ >'"$D"'/host$PMI_RANK; exec sleep 60' 2>/dev/null &
    run=$!
    soon "hosts come up" test -s "$D/host0" -a -s "$D/host1"
    kill -9 $run
    wait $run 2>/dev/null
    for i in 0 1; do soon "rank $i goes with ginrun" gone "$(cat "$D/host$i")"; done
else
    echo "no networks of their own here: $(timeout 30 "$GINRUN" -n 1 --hosts 1 --netns true 2>&1)"
fi
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --clear-groups true 2>/dev/null; then
    setpriv --reuid 65534 --clear-groups timeout 30 "$GINRUN" -n 1 --hosts 1 --netns true 2>"$D/err" >"$D/out"
    status=$?
    # 126, 127: the build folder is closed to others
    case $status in
    125) has err "needs root" "networks of others" ;;
    126 | 127) ;;
    *) fail "networks of others: status $status" ;;
    esac
fi

# ---- PMI ----
ask='ask() { printf "cmd=%s\n" "$1" >&$PMI_FD; IFS= read -r line <&$PMI_FD; echo "$line"; }'
expect 0 "by hand" --hosts 2 -n 5 bash -c "$ask"'
    ask "init pmi_version=1 pmi_subversion=1"; ask get_my_kvsname; ask "put kvsname=x key=k$PMI_RANK value=v$PMI_RANK"
    ask "put kvsname=x key=k$PMI_RANK value=again"; ask barrier_in; ask "get kvsname=x key=k0"; ask "get kvsname=x key=no"
    ask "get kvsname=x key=PMI_process_mapping"; ask "spawn n=2"; ask finalize'
for line in "cmd=put_result rc=0 msg=success" "cmd=put_result rc=-1 msg=duplicate_key" "cmd=barrier_out rc=0" \
    "cmd=get_result rc=0 msg=success value=v0" "cmd=get_result rc=-1 msg=key_not_found value=unknown" \
    "cmd=get_result rc=0 msg=success value=(vector,(0,1,3),(1,1,2))" "cmd=spawn_result rc=-1 msg=not_supported" \
    "cmd=finalize_ack"; do
    [ "$(grep -cxF "$line" "$D/out")" = 5 ] || fail "by hand: not five times $line"
done
for words in 'echo nonsense' 'echo cmd=unheard_of' 'echo mcmd=spawn' 'printf "cmd=x\001y\n"' 'head -c 5000 /dev/zero | tr "\0" a' \
    'printf "cmd=barrier_in\n"; yes cmd=get'; do
    expect 125 "wild: $words" -n 2 bash -c 'test $PMI_RANK = 0 || { '"$words"'; } >&$PMI_FD; sleep 60'
    has err "rank 1 (process " "wild: $words"
    has err "no PMI-1 request" "wild: $words"
done
expect 9 "abort" -n 2 bash -c 'test $PMI_RANK = 0 || printf "cmd=abort exitcode=9\n" >&$PMI_FD; sleep 60'
for n in 1 2 7 16; do expect 0 "store of $n" -n $n "$TRY" $n; done
expect 1 "leaves early" -n 4 sh -c 'test $PMI_RANK = 2 && exit 0; exec $TRY'
has err "rank 2 has ended" "leaves early"
expect 1 "never comes" -k -n 6 sh -c 'case $PMI_RANK in 2 | 4 | 5) exec sleep 3 ;; esac; exec $TRY 6 1'
has err "missing in the barrier of 6 ranks: rank 2,4-5" "never comes"
expect 137 "dies in a barrier" -k -n 3 sh -c 'test $PMI_RANK = 1 && { sleep .3; kill -9 $$; }; exec $TRY'
has err "rank 1 has ended" "dies in a barrier"

# ---- many ----
expect 0 "many" -n 200 true
expect 0 "many with labels" -l -n 200 echo x
[ "$(wc -l <"$D/out")" = 200 ] || fail "many with labels: $(wc -l <"$D/out") lines"
(
    ulimit -n 40
    timeout 30 "$GINRUN" -n 200 true 2>"$D/err"
)
status=$?
[ $status = 125 ] || fail "descriptors: status $status, not 125"
has err "ulimit -n" "descriptors"

if [ $failed = 0 ]; then echo "ok"; else exit 1; fi
