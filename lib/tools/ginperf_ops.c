/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations that ginperf measures, through the public calls alone. */
#include <stdlib.h>
#include <string.h>

#include "ginperf.h"

#define CHECK(call)                                                                      \
    do {                                                                                 \
        int st_ = (call);                                                                \
        if (st_ != GIN_OK) {                                                             \
            fprintf(stderr, "ginperf: rank %d: %s: %s\n", p->rank, gin_status_name(st_), \
                    gin_last_error());                                                   \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

/* What a leader acts on: the partner's memory, mine as the source. */
#define DST (gin_at(p->win, p->heap_off))
#define SRC (gin_at_local(p->src))

/* Leaders run `body` iters times between two meetings of all; the result is ns per repetition. */
#define LEADERS(body, end)                   \
    do {                                     \
        double t_ = 0;                       \
        perf_sync(p);                        \
        if (p->lead) {                       \
            t_ = perf_now_ns();              \
            for (long i = 0; i < iters; i++) \
                CHECK(body);                 \
            end;                             \
            t_ = perf_now_ns() - t_;         \
        }                                    \
        perf_sync(p);                        \
        return t_ / (double)iters;           \
    } while (0)

static double put(struct perf *p, size_t bytes, long iters)
{
    LEADERS(gin_put(&p->g, gin_thread(), p->world, p->peer, DST, SRC, bytes, gin_no_action()),
            CHECK(gin_quiet(&p->g, gin_thread())));
}

static inline int put_then_quiet(struct perf *p, size_t bytes)
{
    int st = gin_put(&p->g, gin_thread(), p->world, p->peer, DST, SRC, bytes, gin_no_action());
    return st == GIN_OK ? gin_quiet(&p->g, gin_thread()) : st;
}

static double put_quiet(struct perf *p, size_t bytes, long iters)
{
    LEADERS(put_then_quiet(p, bytes), (void)0);
}

static double put_value(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    LEADERS(
        gin_put_value(&p->g, gin_thread(), p->world, p->peer, DST, (uint64_t)i, 8, gin_no_action()),
        CHECK(gin_quiet(&p->g, gin_thread())));
}

static inline int get_then_flush(struct perf *p, size_t bytes)
{
    int st = gin_get(&p->g, gin_thread(), p->world, p->peer, DST, SRC, bytes);
    return st == GIN_OK ? gin_flush(&p->g, gin_thread()) : st;
}

static double get(struct perf *p, size_t bytes, long iters)
{
    LEADERS(get_then_flush(p, bytes), (void)0);
}

static double signal_op(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    LEADERS(gin_signal(&p->g, gin_thread(), p->world, p->peer, gin_weak_inc(1)), (void)0);
}

static double amo_add(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    LEADERS(gin_amo_add(&p->g, gin_thread(), p->world, p->peer, DST, 1),
            CHECK(gin_quiet(&p->g, gin_thread())));
}

static double amo_fetch_add(struct perf *p, size_t bytes, long iters)
{
    uint64_t old;
    (void)bytes;
    LEADERS(gin_amo_fetch_add(&p->g, gin_thread(), p->world, p->peer, DST, 1, &old), (void)0);
}

static double amo_swap(struct perf *p, size_t bytes, long iters)
{
    uint64_t old;
    (void)bytes;
    LEADERS(gin_amo_swap(&p->g, gin_thread(), p->world, p->peer, DST, (uint64_t)i, &old), (void)0);
}

static double amo_cas(struct perf *p, size_t bytes, long iters)
{
    uint64_t old;
    (void)bytes;
    LEADERS(gin_amo_cas(&p->g, gin_thread(), p->world, p->peer, DST, (uint64_t)i, (uint64_t)i + 1,
                        &old),
            (void)0);
}

static double flush(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    LEADERS(gin_flush(&p->g, gin_thread()), (void)0);
}

static double quiet(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    LEADERS(gin_quiet(&p->g, gin_thread()), (void)0);
}

/* Both of a pair send in turn; half a round trip. In --all mode ranks go round as one ring. */
static double pingpong(struct perf *p, size_t bytes, long iters, gin_action_t action)
{
    double t = 0;
    if (p->peer < 0 || p->all) {
        perf_sync(p);
        perf_sync(p);
        return 0;
    }
    CHECK(gin_reset_signal(&p->g, 0, NULL));
    perf_sync(p);
    t = perf_now_ns();
    for (long i = 1; i <= iters; i++) {
        if (!p->lead)
            CHECK(gin_wait_signal(&p->g, gin_thread(), 0, (uint64_t)i));
        if (bytes == 0)
            CHECK(gin_signal(&p->g, gin_thread(), p->world, p->peer, action));
        else
            CHECK(gin_put(&p->g, gin_thread(), p->world, p->peer, DST, SRC, bytes, action));
        if (p->lead)
            CHECK(gin_wait_signal(&p->g, gin_thread(), 0, (uint64_t)i));
    }
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)iters / 2;
}

static double put_weak(struct perf *p, size_t bytes, long iters)
{
    return pingpong(p, bytes, iters, gin_weak_inc(0));
}

static double put_strong(struct perf *p, size_t bytes, long iters)
{
    return pingpong(p, bytes, iters, gin_strong_inc(0));
}

static double signal_oneway(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    return pingpong(p, 0, iters, gin_weak_inc(0));
}

static double barrier_kind(struct perf *p, long iters, gin_barrier_t which, unsigned fence)
{
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters; i++)
        CHECK(gin_barrier(&p->g, gin_thread(), which, 0, GIN_ORDER_ACQ_REL, fence));
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)iters;
}

static double barrier_world(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    return barrier_kind(p, iters, gin_barrier_world(), GIN_FENCE_ALL);
}

static double barrier_nofence(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    return barrier_kind(p, iters, gin_barrier_lsa(), GIN_FENCE_NONE);
}

static double comm_barrier(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters; i++)
        CHECK(gin_comm_barrier(p->comm));
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)iters;
}

static double malloc_free(struct perf *p, size_t bytes, long iters)
{
    (void)bytes;
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < iters; i++) {
        void *m = gin_malloc(p->comm, 64);
        if (m == NULL)
            CHECK(gin_last_status());
        CHECK(gin_free(p->comm, m));
    }
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)iters;
}

const struct perf_op perf_ops[] = {
    {"put", "gin_put, completed once at the end", PERF_NS, true, false, put, 1000000},
    {"put_quiet", "gin_put and gin_quiet each", PERF_NS, true, false, put_quiet, 1000000},
    {"put_value", "gin_put_value of 8 bytes", PERF_NS, false, false, put_value, 1000000},
    {"get", "gin_get and gin_flush each", PERF_NS, true, false, get, 1000000},
    {"put_weak", "gin_put with a weak signal, one way", PERF_NS, true, false, put_weak, 100000},
    {"put_strong", "gin_put with a strong signal, one way", PERF_NS, true, false, put_strong,
     100000},
    {"signal", "gin_signal, one way", PERF_NS, false, false, signal_oneway, 100000},
    {"put_bw", "bandwidth of gin_put", PERF_MBPS, true, false, put, 1000000},
    {"get_bw", "bandwidth of gin_get", PERF_MBPS, true, false, get, 1000000},
    {"put_rate", "gin_put calls per second", PERF_MOPS, true, false, put, 1000000},
    {"signal_rate", "gin_signal calls per second", PERF_MOPS, false, false, signal_op, 1000000},
    {"add", "gin_amo_add", PERF_NS, false, false, amo_add, 1000000},
    {"fetch_add", "gin_amo_fetch_add", PERF_NS, false, false, amo_fetch_add, 1000000},
    {"swap", "gin_amo_swap", PERF_NS, false, false, amo_swap, 1000000},
    {"cas", "gin_amo_cas", PERF_NS, false, false, amo_cas, 1000000},
    {"flush", "gin_flush with nothing outstanding", PERF_NS, false, false, flush, 1000000},
    {"quiet", "gin_quiet with nothing outstanding", PERF_NS, false, false, quiet, 1000000},
    {"barrier", "gin_barrier, world, all fences", PERF_NS, false, false, barrier_world, 100000},
    {"barrier_lsa", "gin_barrier, LSA, no fence", PERF_NS, false, false, barrier_nofence, 100000},
    {"comm_barrier", "gin_comm_barrier", PERF_NS, false, false, comm_barrier, 50000},
    {"malloc_free", "gin_malloc(64) and gin_free", PERF_NS, false, false, malloc_free, 50000},
    {NULL, NULL, PERF_NS, false, false, NULL, 0},
};
