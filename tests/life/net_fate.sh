#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank of three, each on a host of its own, is killed or stopped, or its link is cut, in each phase
# of a job: what the others see and how fast, as a table. Runs in the build folder.
#
#   net_fate.sh [SEED]                        a few of them at random, over the usual ones
#   net_fate.sh --table [PROVIDER...]         every phase and fault once
#   net_fate.sh --badkey [PROVIDER...]        a write of rank 1 carries a wrong key: nobody dies
#   net_fate.sh --long N [SEED [PROVIDER...]] N of them at random, at random moments
#
# A run has FATE_SECONDS (120). A provider is libfabric's name or "-", the library's choice, or
# contract=NAME: what stands in for a provider whose device is not here (tests/providers/contract).
# Links can be cut where hosts can have networks of their own (root); else they are names.
# shellcheck disable=SC2153
set -u
GINRUN=$(readlink -f "${GINRUN:-./ginrun}")
FATE=$(readlink -f "${FATE:-tests/life/net_fate}")
D=$(mktemp -d "${TMPDIR:-/tmp}/fate.XXXXXX")
trap 'rm -rf "$D"' EXIT
phases=(bringup put barrier wait collective finalize)
everywhere=(- 'tcp;ofi_rxm' shm sockets)
usual=(- 'tcp;ofi_rxm') # the others crash or hang now and then by themselves
failed=0 runs=0
silence=${GINSHMEM_PEER_TIMEOUT-8s}

if grep -q -e '-fsanitize=thread' Makefile 2>/dev/null; then
    echo "SKIP: libfabric is not built for the race detector"
    exit 77
fi
netns=()
if "$GINRUN" -n 1 --hosts 1 --netns true 2>/dev/null; then netns=(--netns); fi

# Files of a run: fate.1, and of each rank saw, after, end.
show() {
    local name=$1 r
    for r in 0 2; do
        if [ -e "$D/run/$name.$r" ]; then
            read -r status ms _ <"$D/run/$name.$r"
            printf ' %s %s ms' "$status" "$ms"
        fi
    done
}

complain() {
    echo "FAIL $*"
    head -n 3 "$D"/run/*.[0-9] 2>/dev/null
    tail -n 5 "$D/out"
    failed=$((failed + 1))
}

# What the shm provider's killed ranks leave behind.
sweep() {
    local pid
    if read -r _ pid <"$D/run/fate.1"; then rm -f "/dev/shm/$pid:"*; fi
} 2>/dev/null

# use PROVIDER: for the runs to come
use() {
    unset GINSHMEM_PROVIDER GINCONTRACT FI_PROVIDER_PATH
    case $1 in
    -) ;;
    contract=*)
        export GINCONTRACT=${1#contract=} GINCONTRACT_STRICT=1
        export FI_PROVIDER_PATH=$PWD/tests/providers/contract/.libs
        case $GINCONTRACT in
        efa-direct*) export GINSHMEM_PROVIDER=efa-direct ;;
        efa* | cxi* | verbs-msg*) GINSHMEM_PROVIDER=$(echo "$GINCONTRACT" | sed -E 's/-(relaxed|old)$//') ;;
        *) GINSHMEM_PROVIDER=gincontract ;;
        esac
        export GINSHMEM_PROVIDER
        ;;
    *) export GINSHMEM_PROVIDER=$1 ;;
    esac
}

# here PROVIDER...: those that are, in here_are
here() {
    local provider
    here_are=()
    for provider in "$@"; do
        use "$provider"
        timeout 60 tests/func/t_net -m procs -n 2 every_rank_far >"$D/out" 2>&1
        if [ $? = 77 ]; then
            echo "not here: $provider: $(grep -m 1 SKIP "$D/out")"
        else
            here_are+=("$provider")
        fi
    done
}

# The statuses with which a phase may end: GIN_OK where nothing is lost, or too late to matter.
allowed() {
    case $1-$2 in
    *-flap) echo GIN_OK ;;
    put-badkey) echo 'GIN_(EPEER|ENET)' ;;
    finalize-cut) echo 'GIN_(OK|EPEER)' ;; # the launcher's way to meet is not cut
    bringup-*) echo 'GIN_(EPEER|ETIMEDOUT|ESYS|ENET)' ;;
    *) echo GIN_EPEER ;;
    esac
}

judge() {
    local phase=$1 fault=$2 name=$3 rc=$4 want r status who
    want=$(allowed "$phase" "$fault")
    if [ "$rc" = 124 ]; then complain "$name: hangs"; return; fi
    if [ -e "$D"/run/broken.0 ] || [ -e "$D"/run/broken.1 ] || [ -e "$D"/run/broken.2 ]; then
        complain "$name: the bed broke"
        return
    fi
    for r in 0 2; do
        if ! read -r status _ <"$D/run/saw.$r"; then complain "$name: rank $r says nothing"; return; fi
        # a fate that came after the bring-up, or after the farewell, is none for this phase
        if [[ ! $status =~ ^$want$ ]]; then complain "$name: rank $r saw $status"; return; fi
        # who may be the one that waited in vain for it while ranks meet
        who='rank 1'
        if [ "$phase" = bringup ]; then who='ranks? [0-9]'; fi
        # ... or one of the two that the network has parted
        if [ "$fault" = badkey ]; then who='rank [0-9]'; fi
        if [ "$status" != GIN_OK ] && [ "$fault" != flap ] && ! grep -qE "$who" "$D/run/saw.$r"; then
            complain "$name: rank $r does not know who"
            return
        fi
        if [ "$fault" != badkey ] && [ -e "$D/run/after.$r" ] && ! grep -q ^GIN_OK "$D/run/after.$r"; then
            complain "$name: rank $r cannot go on"
            return
        fi
    done
}

# one PHASE FAULT MICROSECONDS
one() {
    local phase=$1 fault=$2 us=$3 bed=() rc name="$1 $2 after $3 us, ${GINCONTRACT-${GINSHMEM_PROVIDER-the choice}}"
    case $fault in cut | flap | half) bed=("${netns[@]}") ;; esac
    # only who says nothing more is found by its silence
    export GINSHMEM_PEER_TIMEOUT=30s
    case $fault in stop | cut | half | badkey) GINSHMEM_PEER_TIMEOUT=$silence ;; esac
    unset GINSHMEM_TEST_NET
    case $fault in badkey) export GINSHMEM_TEST_NET=key=500,rank=1 ;; esac
    # while ranks meet for the first time only deadlines tell of one that is stopped
    export GINSHMEM_INIT_TIMEOUT=30s
    case $phase-$fault in bringup-stop | bringup-cut) GINSHMEM_INIT_TIMEOUT=5s ;; esac
    export GINSHMEM_COLL_TIMEOUT=$GINSHMEM_INIT_TIMEOUT
    runs=$((runs + 1))
    rm -rf "$D/run"
    mkdir "$D/run"
    timeout "${FATE_SECONDS:-120}" "$GINRUN" -k -n 3 --hosts 3 "${bed[@]}" "$FATE" "$D/run" "$phase" "$fault" "$us" \
        >"$D/out" 2>&1 </dev/null
    rc=$?
    sweep
    before=$failed
    judge "$phase" "$fault" "$name" $rc
    row=$(printf '%-10s %-5s %-14s saw%s; after%s' "$phase" "$fault" \
        "${GINCONTRACT-${GINSHMEM_PROVIDER-the choice}}" "$(show saw)" "$(show after)")
}

# Ranks that reach each other by shm, or under a contract, are on one host: no link is between them.
# RDMA devices stay in the network namespace where they were made.
faults() {
    echo kill stop
    case ${GINSHMEM_PROVIDER-} in shm | verbs*) return ;; esac
    if [ ${#netns[@]} -gt 0 ] && [ -z "${GINCONTRACT-}" ]; then echo cut flap half; fi
}

table() {
    local phase fault provider
    for provider in "$@"; do
        use "$provider"
        for phase in "${phases[@]}"; do
            for fault in $(faults); do
                one "$phase" "$fault" 20000
                echo "$row"
            done
        done
    done
}

bad_keys() {
    local provider
    for provider in "$@"; do
        use "$provider"
        one put badkey 0
        echo "$row"
    done
}

# at_random N SEED PROVIDER...
at_random() {
    local n=$1 seed=$2 i all us
    shift 2
    RANDOM=$seed
    for ((i = 0; i < n && failed <= 5; i++)); do
        us=$((RANDOM * 2))
        use "${@:RANDOM % $# + 1:1}"
        read -r -d '' -a all <<<"$(faults)"
        one "${phases[RANDOM % ${#phases[@]}]}" "${all[RANDOM % ${#all[@]}]}" $us
        if [ $failed != "$before" ]; then echo "run $i of seed $seed"; fi
        echo "$row"
    done
}

# One that tells of itself over each provider, and one more that silence has to tell of, or not.
a_few() {
    local provider all
    RANDOM=$1
    shift
    for provider in "$@"; do
        use "$provider"
        one "${phases[RANDOM % ${#phases[@]}]}" kill $((RANDOM * 2))
        echo "$row"
    done
    use "${@:RANDOM % $# + 1:1}"
    read -r -d '' -a all <<<"$(faults)"
    one "${phases[RANDOM % ${#phases[@]}]}" "${all[RANDOM % (${#all[@]} - 1) + 1]}" $((RANDOM * 2))
    echo "$row"
}

# Where there is no network there is nothing to see.
mode=few n=0 seed=$RANDOM
case ${1-} in
--table | --badkey)
    mode=${1#--}
    shift
    ;;
--long)
    mode=long n=$2 seed=${3:-$RANDOM}
    shift $(($# < 3 ? $# : 3))
    ;;
*)
    seed=${1:-$RANDOM}
    set -- "${usual[@]}"
    ;;
esac
if [ $# = 0 ] && [ "$mode" = table ]; then set -- -; fi
if [ $# = 0 ]; then set -- "${everywhere[@]}"; fi
here "$@"
if [ ${#here_are[@]} = 0 ]; then
    grep SKIP "$D/out"
    exit 77
fi
if [ "$mode" = few ] || [ "$mode" = long ]; then echo "seed $seed"; fi
case $mode in
table) table "${here_are[@]}" ;;
badkey) bad_keys "${here_are[@]}" ;;
long) at_random "$n" "$seed" "${here_are[@]}" ;;
few) a_few "$seed" "${here_are[@]}" ;;
esac
if [ ${#netns[@]} = 0 ]; then echo "links were not cut: that takes root and network namespaces"; fi
echo "$runs runs, $failed failures"
[ $failed = 0 ]
