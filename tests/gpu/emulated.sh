#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The device code without a GPU: t_device.cu and t_check.cu with blocks made of threads (emulate.h). Skipped where
# there is no C++ compiler. With GIN_TEST_TSAN=1 under the race detector, which then checks that the
# operations order what they promise to order.
srcdir=${srcdir:-.}
cxx=
for try in ${CXX:-} c++ g++ clang++; do
    command -v "$try" >/dev/null 2>&1 && cxx=$try && break
done
if [ -z "$cxx" ]; then
    echo "no C++ compiler here: not tried"
    exit 77
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
flags="-O1"
[ "${GIN_TEST_TSAN:-0}" = 1 ] && flags="-O1 -g -fsanitize=thread"

for test in check device; do
    [ $test = check ] && [ $# -gt 0 ] && continue # the names are those of t_device.cu
    # shellcheck disable=SC2086
    $cxx -std=c++17 $flags -x c++ -DGIN_EMULATE -Wall -Wextra -Wno-unknown-pragmas \
        -Wno-unknown-warning-option -Wno-maybe-uninitialized -I"$srcdir/include" -I"$srcdir" \
        -o "$work/$test" "$srcdir/tests/gpu/t_$test.cu" -lpthread || exit 1
    "$work/$test" "$@" || exit 1
done
