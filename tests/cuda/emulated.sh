#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Operations on streams with the library's kernels on host threads: compiles emulated.cc for the
# fake driver and runs t_cuda_stream and t_cuda_stream_coll with it. Skipped where there is no C++
# compiler.
srcdir=${srcdir:-.}
programs="tests/cuda/t_cuda_stream tests/cuda/t_cuda_stream_coll"
for program in $programs; do
    [ -x "$program" ] || { echo "$program is not built here: not tried" && exit 77; }
done
cxx=
for try in ${CXX:-} c++ g++ clang++; do
    command -v "$try" >/dev/null 2>&1 && cxx=$try && break
done
[ -n "$cxx" ] || { echo "no C++ compiler here: not tried" && exit 77; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
$cxx -std=c++17 -O1 -fPIC -shared -Wall -Wextra -Wno-unknown-pragmas -Wno-unknown-warning-option \
    -Wno-maybe-uninitialized -I"$srcdir/include" -I"$srcdir/lib" -I"$srcdir" \
    -o "$work/kernels.so" "$srcdir/tests/cuda/emulated.cc" -lpthread || exit 1
failed=0
for program in $programs; do
    FAKE_CUDA_KERNELS=$work/kernels.so "$program" "$@" || failed=1
done
exit $failed
