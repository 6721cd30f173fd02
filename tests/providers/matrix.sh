#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The functional and litmus tests over networks: every rank is a host of its own by name, so that
# all goes over the network. Runs in the build folder (or finds build/); prints a table.
#
#   matrix.sh [-n RANKS] [-m procs|threads] [-f FACTOR] [-w NETWORKS] [-b SECONDS] [-t SECONDS] [-q]
#             [-v] [-j JOBS] [PROGRAM...]
#
# NETWORKS are names of the list below, blanks between them (default: all); PROGRAMs are names as
# under tests/ (default: all that need no host of their own). -f: so many times fewer rounds;
# -q: no table, only what failed; -v: each result at once, too; -t: deadline of a test, for slow
# machines; -j: so many programs at a time. -b: begin at a place that the seed chooses, and nothing
# new after so many seconds: what is left out is another run's.
# MATRIX_SEED repeats the dice. With MP_BACKEND=engine in the environment the contexts are of the
# backend ENGINE.
# Status 77 where there is no network, 1 where something failed.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ -f config.status ] || cd "$top/build" || exit 99

# name|provider|what it is spoilt with, or which contract stands in for it (tests/providers/contract).
# Without a provider: the library's choice. E...: the target counts for strong signals. ...pass: only
# capabilities are taken away, and posts go straight on.
networks='choice||
net|net|
tcp|tcp|
rxm|tcp;ofi_rxm|
shm|shm|
sockets|sockets|
vrxm|verbs;ofi_rxm|
vmsg|verbs-msg|
msg|net-msg|
tmsg|tcp-msg|
smsg|sockets-msg|
B64||hold=12,early=1
B32||imm=32,hold=8,early=1
B0||imm=0,hold=8
Btiny||waw=96,max_msg=96,msg_max=64,inject=8,depth=4,hold=2
Bagain||again=500
C64||class=C,hold=12,early=1
C32||class=C,imm=32,hold=12,early=1
C0||class=C,imm=0,hold=12
Cnodc||class=C,dc=0,hold=8,early=1
Ctiny||class=C,max_msg=96,msg_max=64,inject=8,depth=4,hold=4
Cagain||class=C,again=500,hold=8
rxmC|tcp;ofi_rxm|class=C,hold=12,early=1
shmB|shm|hold=12,early=1
shmA|shm|class=A,hold=8,early=1
shmD|shm|class=D,hold=8,early=1
Apass|shm|class=A
Dpass|shm|class=D
Cpass||class=C
sockA|sockets|class=A,hold=8,early=1
sockD|sockets|class=D,hold=8,early=1
E64||class=C,hold=12,early=1
E32||class=C,imm=32,hold=12,early=1
Eagain||class=C,again=500,hold=8
Etiny||class=C,max_msg=96,msg_max=64,inject=8,depth=4,hold=4
A||class=A,hold=8,early=1
D||class=D,hold=8,early=1
kefa|efa|contract=efa
kdirect|efa-direct|contract=efa-direct
krecv|efa-direct|contract=efa-direct-rx
Eefa|efa|contract=efa
Edirect|efa-direct|contract=efa-direct
kverbs|gincontract|contract=verbs
kcxi|cxi|contract=cxi
kloose|cxi|contract=cxi-relaxed
kmsg|verbs-msg|contract=verbs-msg
kquirk|verbs-msg|contract=verbs-msg-old
kstream|gincontract|contract=stream'

programs='func/t_amo func/t_barrier func/t_barrier_edge func/t_bounds func/t_counter func/t_devcomm
func/t_flush func/t_heap func/t_lsa func/t_put_get func/t_put_value func/t_signal_basic
func/t_status func/t_team func/t_threads func/t_window litmus/message litmus/order litmus/reset
litmus/sets litmus/waits providers/failing'

ranks='2 3' mode='' factor=10 quiet=0 rows=0 wanted='' budget=0 deadline='' jobs=1
while getopts 'n:m:f:w:b:t:j:qv' o; do
    case $o in
        n) ranks=$OPTARG ;;
        m) mode=$OPTARG ;;
        f) factor=$OPTARG ;;
        w) wanted=$OPTARG ;;
        b) budget=$OPTARG ;;
        t) deadline=$OPTARG ;;
        j) jobs=$OPTARG ;;
        q) quiet=1 ;;
        v) rows=1 ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 0 ] || programs=$*
[ -n "$wanted" ] || wanted=$(echo "$networks" | cut -d'|' -f1)

if grep -q -e '-fsanitize=thread' Makefile 2>/dev/null; then
    echo "SKIP: what orders a rank's progress thread after another rank's get is a message between"
    echo "processes, which the race detector does not see"
    exit 77
fi
seed=${MATRIX_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
echo "MATRIX_SEED=$seed${MP_BACKEND:+ MP_BACKEND=$MP_BACKEND}"
# around WORD...: the same words, from another one on
around() {
    local first=$((seed % $# + 1))
    echo "${@:first}" "${@:1:first-1}"
}
if [ "$budget" != 0 ]; then
    # shellcheck disable=SC2086
    wanted=$(around $wanted)
    # shellcheck disable=SC2086
    programs=$(around $programs)
fi
over() {
    [ "$budget" != 0 ] && [ $SECONDS -ge "$budget" ]
}
work=$(mktemp -d "${TMPDIR:-/tmp}/matrix.XXXXXX")
log=$work/log
trap 'rm -rf "$work"' EXIT

# network NAME: sets the environment; status 1: not here, in the log why
network() {
    local row
    row=$(echo "$networks" | grep "^$1|") || { echo "no network $1" >"$log" && return 1; }
    unset GINSHMEM_PROVIDER GINSHMEM_TEST_NET GINSHMEM_STRATEGY GINCONTRACT FI_PROVIDER_PATH
    case $1 in E*) export GINSHMEM_STRATEGY=epoch ;; esac
    row=${row#*|}
    [ -z "${row%%|*}" ] || export GINSHMEM_PROVIDER="${row%%|*}"
    row=${row#*|}
    case $row in
        '') ;;
        contract=*)
            export GINCONTRACT="${row#contract=}" GINCONTRACT_STRICT=1 GINCONTRACT_SEED=$seed
            export FI_PROVIDER_PATH="$PWD/tests/providers/contract/.libs"
            ;;
        *) export GINSHMEM_TEST_NET="$row,seed=$seed" ;;
    esac
    timeout 120 tests/func/t_net -m procs -n 2 every_rank_far >"$log" 2>&1
    [ $? != 77 ]
}

# cell NETWORK PROGRAM: its result into a file, and what failed at once to the output
cell() {
    local began=$SECONDS rc result more='' at
    at=$work/$1.${2//\//.}
    case $2 in providers/failing)
        more=-L # it makes a network of its own, over this provider
        [ -z "${GINSHMEM_TEST_NET-}" ] || return ;;
    esac
    # shellcheck disable=SC2086
    timeout $((budget == 0 ? 600 : 240)) "tests/$2" -n "$ranks" ${mode:+-m "$mode"} ${deadline:+-t "$deadline"} -H ABCDEFGH -f "$factor" $more >"$at.log" 2>&1
    rc=$?
    case $rc in
        0) result="$((SECONDS - began))s" ;;
        77) result=skip ;;
        124 | 137) result=HANG ;;
        *) result=FAIL ;;
    esac
    # it has tests, but none for so few ranks
    [ $rc = 1 ] && grep -q 'no test of that name' "$at.log" && rc=77 result=skip
    [ $rc = 0 ] || [ $rc = 77 ] || {
        echo "--- $1: $2: $result (GINSHMEM_PROVIDER=${GINSHMEM_PROVIDER-}" \
            "GINSHMEM_TEST_NET=${GINSHMEM_TEST_NET-} GINCONTRACT=${GINCONTRACT-})"
        grep -v -e '^ok ' -e '^SKIP ' "$at.log" | head -n 12
    } >"$at.text"
    [ ! -s "$at.text" ] || cat "$at.text"
    [ $rows = 0 ] || printf '%-10s %-24s %s\n' "$1" "$2" "$result"
    echo "$result" >"$at.result"
    rm -f "$at.log" "$at.text"
}

failed=0 columns=
for n in $wanted; do
    ! over || break
    if ! network "$n"; then
        echo "$n: $(grep -m 1 -e SKIP -e 'no network' "$log")"
        grep -q GINSHMEM_TEST_NET "$log" && failed=$((failed + 1))
        continue
    fi
    columns="$columns $n"
    for p in $programs; do
        ! over || break
        cell "$n" "$p" &
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    done
done
wait
ran=$(find "$work" -name '*.result' | wc -l)
failed=$((failed + $(find "$work" -name '*.result' -exec grep -l -e FAIL -e HANG {} + | wc -l)))
if [ -z "$columns" ]; then
    [ $failed = 0 ] && exit 77
    exit 1
fi

if [ $quiet = 0 ]; then
    printf '%-20s' ''
    for n in $columns; do printf ' %7s' "$n"; done
    echo
    for p in $programs; do
        printf '%-20s' "$p"
        for n in $columns; do
            printf ' %7s' "$(cat "$work/$n.${p//\//.}.result" 2>/dev/null || echo -)"
        done
        echo
    done
fi
echo "$ran runs of programs, $failed failures"
[ $failed = 0 ]
