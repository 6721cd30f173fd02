/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare limits, measured beside the operations in the same run: plain loads and stores, memcpy and
 * processor atomics on the very memory that the operations use. No call of the library inside.
 */
#include <string.h>

#include "ginperf.h"

/* Keeps the compiler from dropping copies that nobody reads. */
static inline void used(const void *ptr)
{
    __asm__ volatile("" ::"r"(ptr) : "memory");
}

#define RAW_LEADERS(body)                      \
    do {                                       \
        double t_ = 0;                         \
        perf_sync(p);                          \
        if (p->lead && p->peer_heap != NULL) { \
            t_ = perf_now_ns();                \
            for (long i = 0; i < iters; i++) { \
                body;                          \
            }                                  \
            t_ = perf_now_ns() - t_;           \
        }                                      \
        perf_sync(p);                          \
        return t_ / (double)iters;             \
    } while (0)

static double raw_memcpy_put(struct perf *p, size_t bytes, long iters)
{
    RAW_LEADERS(memcpy(p->peer_heap, p->src, bytes); used(p->peer_heap));
}

static double raw_memcpy_get(struct perf *p, size_t bytes, long iters)
{
    RAW_LEADERS(memcpy(p->src, p->peer_heap, bytes); used(p->src));
}

static double raw_fetch_add(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    RAW_LEADERS(__atomic_fetch_add((uint64_t *)(void *)p->peer_heap, 1, __ATOMIC_RELAXED));
}

static double raw_fence(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    RAW_LEADERS(__atomic_thread_fence(__ATOMIC_SEQ_CST));
}

static void spin_until(const uint64_t *word, uint64_t value)
{
    for (unsigned k = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; k++)
        if (k > 1000000)
            return; /* a lost partner shows as an absurd figure, not as a hang */
}

/* Payload by memcpy, then a flag by a release store; the other side answers the same way. */
static double raw_flag(struct perf *p, size_t bytes, long iters)
{
    double t = 0;
    if (p->peer < 0 || p->all || p->peer_heap == NULL) {
        perf_sync(p);
        perf_sync(p);
        return 0;
    }
    __atomic_store_n(p->flag, 0, __ATOMIC_RELAXED);
    perf_sync(p);
    t = perf_now_ns();
    for (long i = 1; i <= iters; i++) {
        if (!p->lead)
            spin_until(p->flag, (uint64_t)i);
        if (bytes != 0)
            memcpy(p->peer_heap, p->src, bytes);
        __atomic_store_n(p->peer_flag, (uint64_t)i, __ATOMIC_RELEASE);
        if (p->lead)
            spin_until(p->flag, (uint64_t)i);
    }
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)iters / 2;
}

static double raw_line(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    return raw_flag(p, 0, iters);
}

const struct perf_op perf_raw[] = {
    {"raw_memcpy_put", "memcpy to the partner's memory", PERF_NS, true, true, raw_memcpy_put,
     1000000},
    {"raw_memcpy_get", "memcpy from the partner's memory", PERF_NS, true, true, raw_memcpy_get,
     1000000},
    {"raw_put_bw", "bandwidth of memcpy to the partner", PERF_MBPS, true, true, raw_memcpy_put,
     1000000},
    {"raw_flag", "memcpy and a release store, one way", PERF_NS, true, true, raw_flag, 100000},
    {"raw_line", "one cache line bounced, one way", PERF_NS, false, true, raw_line, 100000},
    {"raw_fetch_add", "processor's fetch-and-add", PERF_NS, false, true, raw_fetch_add, 1000000},
    {"raw_fence", "sequentially consistent fence", PERF_NS, false, true, raw_fence, 1000000},
    {NULL, NULL, PERF_NS, false, true, NULL, 0},
};
