#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The GPU tests of a build, quickly, when there is a GPU. Run in the build folder.
src=${srcdir:-$(dirname "$0")/../..}
[ -x tests/gpu/t_put_get ] || { echo "SKIP: the GPU tests are not built here (no nvcc)"; exit 77; }
exec "$src/tests/gpu/run" --quick
