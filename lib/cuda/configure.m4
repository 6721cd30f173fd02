# SPDX-License-Identifier: BSD-3-Clause
# The CUDA toolkit. nvcc compiles device code and checks the public headers; the driver is opened at
# run time, so nothing of CUDA is linked.

AC_DEFUN([GI_PROBE_CUDA], [
GI_WITH([cuda], [compile for CUDA with nvcc])
AC_ARG_VAR([NVCC], [nvcc, the CUDA compiler])
CUDA_CFLAGS= CUDA_LIBDIR=
gi_found=no gi_text="switched off"
AS_IF([test "$gi_with_cuda" != no], [
    gi_cuda_path=$PATH$PATH_SEPARATOR/usr/local/cuda/bin
    AS_IF([test -n "$gi_cuda_dir"], [gi_cuda_path=$gi_cuda_dir/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$gi_cuda_path])
    gi_text="no nvcc in $gi_cuda_path"
    AS_IF([test -n "$NVCC"], [
        AS_IF([test -z "$gi_cuda_dir"],
            [gi_cuda_dir=`AS_DIRNAME(["$NVCC"])`
             gi_cuda_dir=`AS_DIRNAME(["$gi_cuda_dir"])`])
        AC_MSG_CHECKING([whether $NVCC compiles])
        AS_ECHO(['__global__ void k(int *p) { *p = 1; }']) > conftest.cu
        AS_IF([$NVCC -c -o conftest.cuo conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
            [gi_found=yes
             gi_text="$NVCC, release `$NVCC --version | sed -n 's/.*release \([[0-9.]]*\).*/\1/p'`"
             for gi_dir in "$gi_cuda_dir/lib64" "$gi_cuda_dir/lib"; do
                 AS_IF([test -f "$gi_dir/libcudart_static.a"], [CUDA_LIBDIR=-L$gi_dir; break])
             done
             AS_IF([test "$gi_cuda_dir" != /usr], [CUDA_CFLAGS="-isystem $gi_cuda_dir/include"])],
            [gi_text="$NVCC does not compile a kernel; see config.log"])
        rm -f conftest.cu conftest.cuo
        AC_MSG_RESULT([$gi_found])])
])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBDIR])
AC_ARG_VAR([NVCC_ARCH], [what nvcc compiles tests and examples for (default: sm_90 and its PTX)])
: "${NVCC_ARCH=-gencode arch=compute_90,code=sm_90 -gencode arch=compute_90,code=compute_90}"
GI_HAVE([cuda], [CUDA], [$gi_found], [$gi_text])
])
