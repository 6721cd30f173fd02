#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Collectives of kernels without a GPU: device code as threads, over the fake driver.
# Skipped where there is no C++ compiler, or the library is not built for linking with one.
srcdir=${srcdir:-.}
skip() {
    echo "SKIP: $1"
    exit 77
}
cxx=
for try in ${CXX:-} g++ c++ clang++; do
    command -v "$try" >/dev/null 2>&1 && cxx=$try && break
done
[ -n "$cxx" ] || skip "no C++ compiler here"
fake=$PWD/tests/cuda/.libs/fake_cuda.so
[ -f "$fake" ] || skip "no driver without a GPU: built without CUDA"
[ -f .libs/libginshmem.so ] || skip "no shared library here"
grep -q '^GI_CFLAGS = .*-fsanitize' Makefile && skip "built with a sanitizer"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
$cxx -std=c++17 -O1 "-I$srcdir/include" "-I$srcdir" -DGIN_EMULATE -Wall -Wextra -Wno-unknown-pragmas \
    -Wno-unknown-warning-option -Wno-maybe-uninitialized -c "$srcdir/tests/cuda/coll_kernels.cc" -o "$work/kernels.o" || exit 1
cc -std=gnu11 -O1 "-I$srcdir/include" "-I$srcdir" "-DFAKE_CUDA=\"$fake\"" -c \
    "$srcdir/tests/cuda/colls.c" -o "$work/colls.o" || exit 1
cc -std=gnu11 -O1 "-I$srcdir/include" "-I$srcdir" -c "$srcdir/tests/coll/oracle.c" \
    -o "$work/oracle.o" || exit 1
$cxx "$work/colls.o" "$work/kernels.o" "$work/oracle.o" tests/.libs/libmp.a tests/.libs/libpt.a -L.libs -lginshmem \
    "-Wl,-rpath,$PWD/.libs" -ldl -lpthread -o "$work/colls" || exit 1
"$work/colls" "$@"
