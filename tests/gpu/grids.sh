#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The examples of whole grids without a GPU, a host thread for each block: over the network alone,
# and near and far at once, on two hosts by name, experts and products among them. Run in the build
# folder.
src=${srcdir:-$(dirname "$0")/../..}
src=$(cd "$src" && pwd)
[ -f .libs/libginshmem.so ] || { echo "SKIP: no shared library here" && exit 77; }
grep -q '^GI_CFLAGS = .*-fsanitize' Makefile && echo "SKIP: built with a sanitizer" && exit 77
case $(./ginrun -n 2 --hosts 2 ./gininfo --job 2>&1 | sed -n 's/^ *net  *//p') in
yes*) ;;
*) echo "SKIP: no network here" && exit 77 ;;
esac
exec timeout 300 "$src/tests/gpu/emulate" -n 4 -H 2 "$src/examples/18_alltoall_gin_cuda.cu" \
    "$src/examples/19_alltoall_hybrid_cuda.cu" "$src/examples/24_moe_cuda.cu" \
    "$src/examples/25_gemm_allreduce_cuda.cu"
