#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every operation compiles in kernels without a warning, for every kind of group: the oldest
# architecture in full, the others for the kinds that differ most; as a checked build; under NVRTC;
# and by clang, where there is one that reads this toolkit. Skipped where there is no nvcc.
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
try "the checked build" "$nvcc" -std=c++17 -arch=sm_75 -DGIN_TEST_BRIEF -DGIN_KERNEL_CHECK=1 \
    -Werror all-warnings -Xcompiler -Wall,-Wextra -I"$srcdir/include" -ptx -o "$work/checked.ptx" \
    "$srcdir/tests/gpu/compile_all.cu"
grep -q 'vprintf' "$work/checked.ptx" || { echo "the checked build says nothing" && bad=1; }
try "operations.cu" "$nvcc" -std=c++17 -arch=sm_75 -Werror all-warnings -Xptxas -O1 -I"$srcdir/include" -cubin \
    -o "$work/sass.cubin" "$srcdir/tests/gpu/operations.cu"
# the host's half of the same unit, whose callers may be of either side
try "host" "$nvcc" -std=c++17 -arch=sm_75 -DGIN_TEST_BRIEF -Werror all-warnings -cuda \
    -I"$srcdir/include" -o "$work/all.ii" "$srcdir/tests/gpu/compile_all.cu"
for option in -DGIN_KERNEL_CHECK=0 -DGIN_KERNEL_CHECK=1; do
    [ -x tests/lint/nvrtc ] || break
    tests/lint/nvrtc "$srcdir/include" "$srcdir/tests/gpu/compile_all.cu" $option >"$work/log" 2>&1
    case $? in
    0) ;;
    77) cat "$work/log" && break ;;
    *)
        echo "compile_all.cu: NVRTC, $option:"
        head -n 20 "$work/log"
        bad=1
        ;;
    esac
done

# Clang reads the toolkit's own headers, and those of CUDA 13 from version 16 on, with an empty
# header in the place of one that the toolkit no longer has. It checks both halves; code is made
# of them with GIN_TEST_CLANG_CODE=1 only, which takes it a minute.
clang=
for try in clang++-21 clang++-20 clang++-19 clang++-18 clang++-17 clang++-16; do
    command -v "$try" >/dev/null 2>&1 && clang=$try && break
done
if [ -z "$clang" ]; then
    echo "no clang++-16 or later here: not tried"
else
    cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    mkdir "$work/gone"
    [ -f "$cuda/include/texture_fetch_functions.h" ] || : >"$work/gone/texture_fetch_functions.h"
    code=-fsyntax-only
    [ "${GIN_TEST_CLANG_CODE:-0}" = 1 ] && code=-S
    for side in --cuda-device-only --cuda-host-only; do
        try "$clang, $side" "$clang" -x cuda -std=c++17 --cuda-gpu-arch=sm_75 --cuda-path="$cuda" \
            -Wno-unknown-cuda-version -Werror -Wall -Wextra $side $code -DGIN_TEST_BRIEF \
            -I"$work/gone" -I"$srcdir/include" -o "$work/clang.out" \
            "$srcdir/tests/gpu/compile_all.cu"
    done
fi
exit $bad
