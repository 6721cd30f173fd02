#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ginperf --cuda says why it measures nothing: no nvcc at configure, no driver, no GPU; or that one
# rank is no pair, where all of that is there.
set -u
out=$(./ginperf --cuda 2>&1)
status=$?
echo "$out"
[ $status -eq 1 ] || { echo "FAIL: status $status"; exit 1; }
case $out in
*'built without CUDA'* | *'no CUDA driver'* | *'finds no GPU'* | *cuInit:* | *'make no pairs'*) ;;
*)
    echo "FAIL: no reason"
    exit 1
    ;;
esac
