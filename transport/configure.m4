# SPDX-License-Identifier: BSD-3-Clause
# libfabric is what carries the network; rdma-core tells about devices below it.

AC_DEFUN([GI_PROBE_LIBFABRIC], [
GI_WITH([libfabric], [where libfabric is; it is required])
AS_IF([test "$gi_with_libfabric" = no], [AC_MSG_ERROR([libfabric is required])])
GI_PKG([libfabric], [LIBFABRIC], [libfabric >= 1.17])
AS_IF([test "$gi_pkg_libfabric" != yes],
    [AC_MSG_ERROR([libfabric >= 1.17 is required (Debian: libfabric-dev): $gi_pkg_libfabric_text])])
gi_line_libfabric=$gi_pkg_libfabric_text
gi_saved_CPPFLAGS=$CPPFLAGS
CPPFLAGS="$CPPFLAGS $LIBFABRIC_CFLAGS"
# Since 1.20: registration of GPU memory by DMA-BUF.
AC_CHECK_DECLS([FI_MR_DMABUF], [gi_line_libfabric="$gi_line_libfabric, knows DMA-BUF"],
    [gi_line_libfabric="$gi_line_libfabric, before DMA-BUF (1.20)"], [#include <rdma/fi_domain.h>])
# Since 1.18: providers that are told not to call CUDA.
AC_CHECK_DECLS([FI_OPT_CUDA_API_PERMITTED], [], [], [#include <rdma/fi_endpoint.h>])
CPPFLAGS=$gi_saved_CPPFLAGS
])

AC_DEFUN([GI_PROBE_IBVERBS], [
GI_WITH([ibverbs], [rdma-core (libibverbs)])
gi_found=no gi_text="switched off"
AS_IF([test "$gi_with_ibverbs" != no], [
    GI_PKG([ibverbs], [IBVERBS], [libibverbs])
    gi_found=$gi_pkg_ibverbs gi_text=$gi_pkg_ibverbs_text
])
GI_HAVE([ibverbs], [IBVERBS], [$gi_found], [$gi_text])
])
