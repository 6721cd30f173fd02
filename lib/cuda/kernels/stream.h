/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host hands to the kernels of stream.cu, by value. */
#ifndef GI_CUDA_KERNELS_STREAM_H
#define GI_CUDA_KERNELS_STREAM_H

#include <ginshmem.h>

/* Kernels, one entry each: "gi_stream_" and the name. */
#define GI_STREAM_KERNELS(X) \
    X(PUT, put)              \
    X(VALUE, value)          \
    X(GET, get)              \
    X(SIGNAL, signal)        \
    X(WAIT, wait)            \
    X(WAIT_AT, wait_at)      \
    X(CONSUME, consume)      \
    X(AMO, amo)              \
    X(COMPLETE, complete)    \
    X(BARRIER, barrier)      \
    X(WORD, word)            \
    X(COLL, coll)

enum gi_stream_kernel {
#define GI_STREAM_ENUM(upper, lower) GI_STREAM_##upper,
    GI_STREAM_KERNELS(GI_STREAM_ENUM) GI_STREAM_N
#undef GI_STREAM_ENUM
};

/* Which completion. */
enum gi_stream_complete { GI_STREAM_FLUSH, GI_STREAM_FENCE, GI_STREAM_QUIET };

#define GI_STREAM_AT_LEAST 0xffffffffu /* as `how` of a wait: rolling comparison */

/* One operation; a kernel reads the fields that it needs. */
struct gi_stream_job {
    gin_devcomm_t dev;
    uint64_t *report; /* pinned word: 0, or (uint32_t)status | kernel << 32 of the first failure */
    uint32_t context;
    uint32_t kernel; /* enum gi_stream_kernel */
    gin_team_t team;
    int32_t peer;
    uint32_t how;      /* comparison, operation, completion, fence */
    gin_at_t dst, src; /* WORD: `off` is an address */
    uint64_t bytes;
    uint64_t value, expected; /* WORD: what is added, and to which address */
    gin_action_t remote;
    uint32_t id;    /* signal, index of a barrier */
    uint32_t flush; /* 1: the engine may have it; wait until the local end is done */
    uint64_t *old;
    gin_barrier_t which;
    gin_wait_opt_t opt;
    /* a collective: index in `id`, root in `peer`, count in `bytes`, operation in `how` */
    uint32_t call; /* enum gin_i_coll_kind */
    int32_t type;
    const size_t *dst_counts, *dst_firsts, *src_counts, *src_firsts;
};

#endif
