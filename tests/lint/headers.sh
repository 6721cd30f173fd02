#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every public header compiles alone and without a warning: as C11 and as C++17, both pedantic, by
# gcc and clang; under nvcc; and without any system header, as NVRTC sees it, by the host compiler
# standing in for it and by NVRTC itself; and it is installed. Compilers that are not here are named and left out.
# shellcheck source=tests/lint/common.sh
. "$(dirname "$0")/common.sh"
work_folder

headers=$(cd "$top/include" && ls ginshmem.h ginshmem/*.h)
strict="-pedantic -Wall -Wextra -Wundef -Werror -I$top/include"

try() { # WHAT HEADER COMMAND...
    what=$1 header=$2
    shift 2
    "$@" >"$work/log" 2>&1 || {
        complain "$header: $what:"
        head -n 12 "$work/log"
    }
}

for header in $headers; do
    printf '#include <%s>\nint gi_lint_unit;\n' "$header" >"$work/unit.c"
    cp "$work/unit.c" "$work/unit.cc"
    cp "$work/unit.c" "$work/unit.cu"
    for compiler in gcc clang; do
        command -v $compiler >/dev/null 2>&1 || continue
        # shellcheck disable=SC2086
        try "$compiler, C11" "$header" $compiler -std=c11 $strict -fsyntax-only "$work/unit.c"
    done
    for compiler in g++ clang++; do
        command -v $compiler >/dev/null 2>&1 || continue
        # shellcheck disable=SC2086
        try "$compiler, C++17" "$header" $compiler -std=c++17 $strict -fsyntax-only "$work/unit.cc"
        # the types that NVRTC has built in
        # shellcheck disable=SC2086
        try "$compiler, without system headers" "$header" $compiler -std=c++17 -pedantic -Wall \
            -Wextra -Wundef -Werror -Wno-unused-function -Wno-undefined-internal \
            -Wno-undefined-inline -I"$top/include" \
            -ffreestanding -nostdinc -D__CUDACC_RTC__=1 -D__CUDACC__=1 -D__host__= -D__device__= \
            -D__forceinline__=inline -Dsize_t=__SIZE_TYPE__ -fsyntax-only "$work/unit.cc"
    done
    if [ "$header" = ginshmem.h ]; then
        # link time: inlined code asks the library only for what it exports as gin_i_
        for compiler in gcc clang; do
            command -v $compiler >/dev/null 2>&1 || continue
            try "$compiler, object" "$header" $compiler -std=c11 -I"$top/include" -c "$work/unit.c" \
                -o "$work/unit.o"
        done
    fi
done

for header in $(cd "$top" && find include -name '*.h'); do
    grep -q "[[:space:]]$header\( \\\\\)\{0,1\}\$" "$top/include/Makefile.inc" ||
        complain "$header: not in include/Makefile.inc, so not installed"
done

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
if [ -n "$nvcc" ]; then
    for header in $headers; do
        printf '#include <%s>\n' "$header"
    done >"$work/all.cu"
    try "nvcc" "all headers" "$nvcc" -std=c++17 -arch=sm_75 -Werror all-warnings \
        -I"$top/include" -cuda -o "$work/all.ii" "$work/all.cu"
else
    echo "no nvcc here: not tried"
fi

if [ -x tests/lint/nvrtc ]; then
    for header in $headers; do
        tests/lint/nvrtc "$top/include" "$header" >"$work/log" 2>&1
        case $? in
        0) ;;
        77)
            cat "$work/log"
            break
            ;;
        *)
            complain "$header: NVRTC:"
            head -n 12 "$work/log"
            ;;
        esac
    done
else
    echo "tests/lint/nvrtc is not built: NVRTC was not tried"
fi
finish
