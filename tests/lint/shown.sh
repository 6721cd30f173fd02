#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Code that documents show compiles as it is shown: the program of README.md, and the example of
# every manual page after the header of its synopsis and three of the C library.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
[ -d man/man3 ] || skip "the pages are not built here (make)"
work_folder
compiler=${CC:-gcc}
need "${compiler%% *}"

try() { # WHAT FILE OPTION...
    what=$1 file=$2
    shift 2
    # shellcheck disable=SC2086 # CC may hold options
    $compiler -std=gnu11 -Wall -Wextra -Wundef -Werror "-I$top/include" "$@" -fsyntax-only \
        "$file" >"$work/log" 2>&1 || {
        complain "$what does not compile as shown:"
        head -n 12 "$work/log"
    }
}

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$top/README.md" >"$work/readme.c"
grep -q 'int main' "$work/readme.c" || complain "README.md: no program found: the check is broken"
try "README.md: the program" "$work/readme.c"

shown=0
for page in man/man[37]/*.[37]; do
    awk '/^\.Sh/ { there = /EXAMPLES/ } there && /^\.Bd -literal/ { inside = 1; next }
        /^\.Ed/ { inside = 0 } inside' "$page" | sed 's/^\\&//; s/\\e/\\/g' >"$work/page.c"
    [ -s "$work/page.c" ] || continue
    shown=$((shown + 1))
    if grep -q __global__ "$work/page.c"; then # kernels, where there is a compiler for them
        nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
        [ -z "$nvcc" ] || "$nvcc" -x cu -std=c++17 -arch=sm_75 -Werror all-warnings -ptx \
            "-I$top/include" -o "$work/page.ptx" "$work/page.c" >"$work/log" 2>&1 || {
            complain "$page: the example does not compile as shown:"
            head -n 12 "$work/log"
        }
        continue
    fi
    try "$page: the example" "$work/page.c" -include stdio.h -include stdlib.h -include string.h \
        -include ginshmem.h -Wno-unused-function
done
[ "$shown" -ge 20 ] || complain "only $shown pages show an example: the check is broken"
finish
