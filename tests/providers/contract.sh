#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The net ops over the contracts of providers whose devices are not here (tests/providers/contract),
# connections over those that have some, and ginperf's bare operations beside the library's: a broken
# rule ends the program. Runs in the build folder.
#
#   contract.sh [-L] [PROFILE...]        -L: all of t_net; else what each profile is about. Without
#                                        profiles: three of them, which ones the seed says.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ -f config.status ] || cd "$top/build" || exit 99
how='-n 2 contract_bytes contract_order contract_adds contract_messages contract_flood'
[ "${1-}" != -L ] || { how='-L contract' && shift; }
FI_PROVIDER_PATH=$PWD/tests/providers/contract/.libs
[ -f "$FI_PROVIDER_PATH/libgincontract-fi.so" ] || {
    echo "SKIP: the provider was not built as a shared object"
    exit 77
}
if grep -q -e '-fsanitize=thread' Makefile 2>/dev/null; then
    echo "SKIP: libfabric is not built for the thread sanitizer"
    exit 77
fi
export FI_PROVIDER_PATH GINCONTRACT GINCONTRACT_STRICT=1
export GINCONTRACT_SEED=${GINCONTRACT_SEED:-$((RANDOM * 32768 + RANDOM))}
echo "GINCONTRACT_SEED=$GINCONTRACT_SEED"
all=(efa efa-direct efa-direct-rx cxi cxi-relaxed verbs verbs-msg verbs-msg-old stream)
all+=("${all[@]}")
[ $# != 0 ] || set -- "${all[@]:GINCONTRACT_SEED % 9:3}"
log=$(mktemp "${TMPDIR:-/tmp}/contract.XXXXXX")
trap 'rm -f "$log"' EXIT

rows=raw_net_write,raw_net_signal,raw_net_put,raw_net_get,raw_net_bw

provider() {
    case $1 in
        efa-direct*) echo efa-direct ;;
        cxi*) echo cxi ;;
        verbs-msg*) echo verbs-msg ;;
        verbs | stream) echo gincontract ;;
        *) echo "$1" ;;
    esac
}

# Every row is there, of both sizes where it has sizes.
bare() {
    timeout 100 env GINSHMEM_PROVIDER="$(provider "$1")" ./ginrun -n 2 -H 2 ./ginperf --op $rows \
        --sizes 8,100000 --rounds 1 --iters 10 --format csv >"$log" 2>&1 &&
        [ "$(grep -c '^raw_net_' "$log")" = 9 ] && ! grep -q 'broken' "$log"
}

failed=0
for GINCONTRACT in "$@"; do
    # shellcheck disable=SC2086
    timeout 300 tests/providers/t_net -m procs $how >"$log" 2>&1
    rc=$?
    case $GINCONTRACT in
        verbs-msg*)
            timeout 300 tests/providers/t_conn -m procs contract >>"$log" 2>&1 || rc=$?
            ;;
    esac
    echo "$GINCONTRACT: $(grep -c '^ok ' "$log") passed"
    if [ $rc != 0 ] || ! grep -q '^ok ' "$log"; then
        failed=1
        grep -v '^ok ' "$log" | head -n 20
    fi
    if ! bare "$GINCONTRACT"; then
        failed=1
        echo "$GINCONTRACT: ginperf's bare operations:"
        head -n 20 "$log"
    fi
done
exit $failed
