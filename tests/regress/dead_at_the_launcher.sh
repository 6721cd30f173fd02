#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank's death, as the others hear of it from each launcher: GIN_EPEER, in time. It is told apart
# from what they do next: they meet at once, or after the launcher has seen the death. Launchers may
# end the others before they hear of it; ginrun -k and mpirun --enable-recovery do not. Open MPI now
# and then loses a fence in which a rank died: then it is GIN_ETIMEDOUT that says so.
set -u
dir=$(mktemp -d "${TMPDIR:-/tmp}/dead.XXXXXX")
trap 'rm -rf "$dir"' EXIT
program=tests/regress/dead_at_the_launcher
bad=0
told='^GIN_EPEER ' patience=30s

# run NAME WANTED COMMAND...: at least WANTED survivors of two report, all what matches $told
run() {
    try "$1" "$2" at-once "${@:3}"
    try "$1" "$2" late "${@:3}"
}

try() {
    local name=$1-$3 wanted=$2 when=$3 n
    shift 3
    mkdir "$dir/$name"
    GINSHMEM_COLL_TIMEOUT=$patience timeout 60 "$@" "$program" "$dir/$name" "$when" \
        >"$dir/out" 2>&1 </dev/null
    if [ $? = 124 ]; then
        echo "$name: hangs"
        bad=1
    fi
    n=$(cat "$dir/$name"/* 2>/dev/null | wc -l)
    if [ "$n" -lt "$wanted" ] || grep -Ehv "$told" "$dir/$name"/* 2>/dev/null; then
        echo "$name: $n survivors reported, $wanted should; output:"
        cat "$dir/out"
        bad=1
    else
        echo "$name: $n survivors were told"
    fi
}

run ginrun 2 ./ginrun -k -n 3
if command -v mpirun.openmpi >/dev/null; then
    root=()
    if [ "$(id -u)" = 0 ]; then root=(--allow-run-as-root); fi
    told='^GIN_EPEER |^GIN_ETIMEDOUT .*the fence of 3 ranks did not end; PMIx' patience=10s
    run openmpi 0 mpirun.openmpi "${root[@]}" --oversubscribe -np 3
    run openmpi-recovery 2 mpirun.openmpi "${root[@]}" --enable-recovery --oversubscribe -np 3
fi
if command -v mpiexec.hydra >/dev/null; then
    told='^GIN_EPEER ' patience=30s
    run hydra 0 mpiexec.hydra -n 3
fi
exit $bad
