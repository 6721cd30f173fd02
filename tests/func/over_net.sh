#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The functional and litmus tests once more, over the network that the library chooses: as many of
# them as go into half a minute, from another one on each time; some of the time on contexts of the
# backend ENGINE, with two threads to drive them. All of them, other networks, and more rounds:
# tests/providers/matrix.sh, which see.
set -u
here=$(dirname "$0")
seed=${MATRIX_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
MATRIX_SEED=$seed bash "$here/../providers/matrix.sh" -m procs -f 200 -b 20 -w choice "$@"
rc=$?
[ $rc = 0 ] || exit $rc
# another part of them than the threads' own contexts had
MATRIX_SEED=$((seed / 7 + 11)) MP_BACKEND=engine GINSHMEM_ENGINE_THREADS=2 \
    bash "$here/../providers/matrix.sh" -m procs -f 200 -b 15 -w choice "$@"
