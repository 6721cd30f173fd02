/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bodies of the operations, once all of them are declared: gin.h, signal.h, amo.h, barrier.h
 * and lsa.h each end with this header, the last one of them brings the bodies in. So any of them
 * may come first or alone. No include guard: it is read several times until then. Not API.
 *
 * A compiler of CUDA reads everything once for the host and once per GPU: the bodies are those of
 * the side that it compiles for.
 */
#if !defined(__CUDACC_RTC__) || defined(__CUDA_ARCH__)
#include <ginshmem/amo.h>
#include <ginshmem/barrier.h>
#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>
#include <ginshmem/signal.h>

#if defined(GIN_I_DECLARED_AMO) && defined(GIN_I_DECLARED_BARRIER) && \
    defined(GIN_I_DECLARED_GIN) && defined(GIN_I_DECLARED_LSA) &&     \
    defined(GIN_I_DECLARED_SIGNAL) && !defined(GIN_I_BODIES)
#define GIN_I_BODIES
#ifdef __CUDA_ARCH__
#include <ginshmem/impl/slow.h>
#include <ginshmem/impl/dev/barrier.h>
#include <ginshmem/impl/dev/lsa.h>
#if GIN_KERNEL_CHECK
#include <ginshmem/impl/dev/check.h>
#endif
#else
#include <ginshmem/impl/ops.h>
#include <ginshmem/impl/wait.h>
#include <ginshmem/impl/amo.h>
#include <ginshmem/impl/barrier.h>
#include <ginshmem/impl/lsa.h>
#endif
#endif
#endif
