#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every operation compiles in kernels without a warning, for every kind of group: the oldest
# architecture in full, the others for the kinds that differ most; and under NVRTC. Skipped where
# there is no nvcc.
srcdir=${srcdir:-.}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -z "$nvcc" ]; then
    echo "no nvcc here: not tried"
    exit 77
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
bad=0

try() { # WHAT COMMAND...
    what=$1
    shift
    "$@" >"$work/log" 2>&1 && return
    echo "compile_all.cu: $what:"
    head -n 20 "$work/log"
    bad=1
}

for arch in ${GIN_TEST_ARCHS:-sm_75 sm_80 sm_90 sm_100}; do
    brief=-DGIN_TEST_BRIEF
    [ "$arch" = sm_75 ] && brief=-UGIN_TEST_BRIEF
    "$nvcc" --list-gpu-code 2>/dev/null | grep -qx "$arch" || {
        echo "$nvcc knows no $arch: not tried"
        continue
    }
    try "$arch" "$nvcc" -std=c++17 -arch="$arch" $brief -Werror all-warnings \
        -Xcompiler -Wall,-Wextra -I"$srcdir/include" -cubin -o "$work/all.cubin" \
        "$srcdir/tests/gpu/compile_all.cu"
done
# the host's half of the same unit, whose callers may be of either side
try "host" "$nvcc" -std=c++17 -arch=sm_75 -DGIN_TEST_BRIEF -Werror all-warnings -cuda \
    -I"$srcdir/include" -o "$work/all.ii" "$srcdir/tests/gpu/compile_all.cu"
if [ -x tests/lint/nvrtc ]; then
    tests/lint/nvrtc "$srcdir/include" "$srcdir/tests/gpu/compile_all.cu" >"$work/log" 2>&1
    case $? in
    0) ;;
    77) cat "$work/log" ;;
    *)
        echo "compile_all.cu: NVRTC:"
        head -n 20 "$work/log"
        bad=1
        ;;
    esac
fi
exit $bad
