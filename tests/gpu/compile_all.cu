/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operation of gin.h, signal.h, amo.h, lsa.h and barrier.h, for every kind of group, in one
 * unit: it compiles without a warning for each architecture, or the check fails. Also what NVRTC
 * compiles. Nothing here is run.
 */
#include <ginshmem/amo.h>
#include <ginshmem/barrier.h>
#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>
#include <ginshmem/signal.h>

/* What the calls work on; in memory, so that nothing is constant but the kind of group. */
struct all_args {
    gin_team_t team;
    gin_at_t at, from;
    gin_op_opt_t opt;
    gin_wait_opt_t wait;
    gin_barrier_t which;
    gin_action_t action;
    size_t bytes, n;
    uint64_t v;
    uint32_t ids[4];
    uint64_t least[4];
    int skip[4];
    int peer;
};

static __device__ __forceinline__ int all_data(const gin_t *g, gin_group_t grp,
                                               const struct all_args *a)
{
    int s = gin_put(g, grp, a->team, a->peer, a->at, a->from, a->bytes, gin_no_action());
    s |= gin_put(g, grp, gin_world(g), a->peer, a->at, a->from, 8, gin_weak_inc(1));
    s |= gin_put(g, grp, gin_lsa(g), a->peer, a->at, a->from, a->bytes, gin_strong_add(1, a->v));
    s |= gin_put(g, grp, a->team, a->peer, a->at, a->from, a->bytes, gin_weak_inc_at(a->at));
    s |= gin_put_x(g, grp, a->team, a->peer, a->at, a->from, a->bytes, a->action, &a->opt);
    s |= gin_put_value(g, grp, a->team, a->peer, a->at, a->v, 8, gin_set_at(a->at, a->v));
    s |= gin_put_value_x(g, grp, a->team, a->peer, a->at, a->v, a->bytes, a->action, &a->opt);
    s |= gin_get(g, grp, a->team, a->peer, a->at, a->from, a->bytes);
    s |= gin_get_x(g, grp, a->team, a->peer, a->at, gin_at_local(a), a->bytes, &a->opt);
    s |= gin_signal(g, grp, a->team, a->peer, gin_strong_inc_at(a->at));
    s |= gin_signal(g, grp, a->team, a->peer, gin_weak_set_at(a->at, a->v));
    s |= gin_signal_x(g, grp, a->team, a->peer, a->action, &a->opt);
    return s;
}

static __device__ __forceinline__ int all_completion(const gin_t *g, gin_group_t grp,
                                                     const struct all_args *a)
{
    gin_request_t req;
    int s = gin_flush(g, grp);
    s |= gin_flush_x(g, grp, &a->wait);
    s |= gin_flush_peer(g, grp, a->team, a->peer);
    s |= gin_flush_async(g, grp, a->team, a->peer, &req);
    s |= gin_test(g, grp, &req);
    s |= gin_wait(g, grp, &req);
    s |= gin_wait_x(g, grp, &req, &a->wait);
    s |= gin_fence(g, grp, a->team, a->peer);
    s |= gin_fence_all(g, grp);
    s |= gin_quiet(g, grp);
    s |= gin_quiet_x(g, grp, &a->wait);
    return s;
}

static __device__ __forceinline__ int all_waits(const gin_t *g, gin_group_t grp,
                                                const struct all_args *a)
{
    size_t which[4], count;
    uint64_t before, delta;
    int s = gin_wait_signal(g, grp, 0, a->v);
    s |= gin_wait_signal_x(g, grp, 0, a->v, &a->wait);
    s |= gin_test_signal(g, grp, 0, a->v);
    s |= gin_wait_signal_until(g, grp, 0, GIN_CMP_NE, a->v, &a->wait);
    s |= gin_wait_signal_all(g, grp, a->ids, a->least, a->n, a->skip, &a->wait);
    s |= gin_wait_signal_any(g, grp, a->ids, a->least, a->n, NULL, which, NULL);
    s |= gin_wait_signal_some(g, grp, a->ids, a->least, a->n, a->skip, which, &count, NULL);
    s |= gin_wait_signal_meet_shadow(g, grp, 0, NULL);
    s |= gin_wait_signal_follow_shadow(g, grp, 0, 1, &before, &delta, &a->wait);
    s |= gin_wait_signal_at(g, grp, a->at, a->v, &a->wait);
    s |= gin_wait_signal_until_at(g, grp, a->at, GIN_CMP_EQ, a->v, NULL);
    s |= gin_wait_counter(g, grp, 0, a->v);
    s |= gin_wait_counter_x(g, grp, 0, a->v, &a->wait);
    return s | (int)which[0] | (int)count | (int)before | (int)delta;
}

static __device__ __forceinline__ int all_barriers(const gin_t *g, gin_group_t grp,
                                                   const struct all_args *a)
{
    int s = gin_barrier(g, grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
    s |= gin_barrier(g, grp, gin_barrier_lsa(), 0, GIN_ORDER_RELAXED, GIN_FENCE_NONE);
    s |= gin_barrier(g, grp, gin_barrier_rail(), 0, GIN_ORDER_ACQUIRE, GIN_FENCE_PUT);
    s |= gin_barrier(g, grp, gin_barrier_hybrid(), 0, GIN_ORDER_RELEASE, GIN_FENCE_GET);
    s |= gin_barrier_x(g, grp, a->which, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL, &a->wait);
    s |= gin_lsa_arrive(g, grp, 0, GIN_ORDER_ACQ_REL);
    s |= gin_lsa_wait(g, grp, 0, GIN_ORDER_ACQ_REL, &a->wait);
    return s;
}

static __device__ __forceinline__ int all_amos(const gin_t *g, gin_group_t grp,
                                               const struct all_args *a)
{
    const gin_team_t t = a->team;
    const gin_at_t at = a->at;
    const uint64_t v = a->v;
    uint64_t o64 = 0;
    uint32_t o32 = 0;
    int s = 0;
    s |= gin_amo_set(g, grp, t, 1, at, v);
    s |= gin_amo_add(g, grp, t, 1, at, v);
    s |= gin_amo_and(g, grp, t, 1, at, v);
    s |= gin_amo_or(g, grp, t, 1, at, v);
    s |= gin_amo_xor(g, grp, t, 1, at, v);
    s |= gin_amo_fetch(g, grp, t, 1, at, &o64);
    s |= gin_amo_fetch_add(g, grp, t, 1, at, v, &o64);
    s |= gin_amo_fetch_and(g, grp, t, 1, at, v, &o64);
    s |= gin_amo_fetch_or(g, grp, t, 1, at, v, &o64);
    s |= gin_amo_fetch_xor(g, grp, t, 1, at, v, &o64);
    s |= gin_amo_swap(g, grp, t, 1, at, v, &o64);
    s |= gin_amo_cas(g, grp, t, 1, at, v, v, &o64);
    s |= gin_amo_set32(g, grp, t, 1, at, (uint32_t)v);
    s |= gin_amo_add32(g, grp, t, 1, at, (uint32_t)v);
    s |= gin_amo_and32(g, grp, t, 1, at, (uint32_t)v);
    s |= gin_amo_or32(g, grp, t, 1, at, (uint32_t)v);
    s |= gin_amo_xor32(g, grp, t, 1, at, (uint32_t)v);
    s |= gin_amo_fetch32(g, grp, t, 1, at, &o32);
    s |= gin_amo_fetch_add32(g, grp, t, 1, at, (uint32_t)v, &o32);
    s |= gin_amo_fetch_and32(g, grp, t, 1, at, (uint32_t)v, &o32);
    s |= gin_amo_fetch_or32(g, grp, t, 1, at, (uint32_t)v, &o32);
    s |= gin_amo_fetch_xor32(g, grp, t, 1, at, (uint32_t)v, &o32);
    s |= gin_amo_swap32(g, grp, t, 1, at, (uint32_t)v, &o32);
    s |= gin_amo_cas32(g, grp, t, 1, at, (uint32_t)v, (uint32_t)v, &o32);
    return s | (int)o64 | (int)o32;
}

static __device__ __forceinline__ int all_lsa(const gin_t *g, gin_group_t grp,
                                              const struct all_args *a)
{
    int s = gin_lsa_broadcast(g, grp, a->at, a->from, a->bytes);
    s |= gin_lsa_add(g, grp, a->at, a->v);
    return s | gin_lsa_reduce(g, grp, a->from, a->at, a->n, (gin_type_t)a->ids[0],
                              (gin_reduction_t)a->ids[1]);
}

/* What has no group. */
static __device__ __forceinline__ int all_single(const gin_t *g, gin_group_t grp,
                                                 const struct all_args *a)
{
    (void)grp;
    uint64_t old, sum = gin_read_signal(g, 0) + gin_read_signal_at(g, a->at);
    int s = gin_consume_signal(g, 0, a->v);
    s |= gin_reset_signal(g, 0, &old);
    s |= gin_consume_signal_at(g, a->at, a->v);
    s |= gin_reset_signal_at(g, a->at, &old);
    s |= gin_increase_shadow(g, 0, a->v);
    s |= gin_reset_counter(g, 0, NULL);
    sum += *gin_signal_shadow(g, 0) + gin_read_counter(g, 0);
    sum += (uint64_t)gin_local_ptr(g, a->at) + (uint64_t)gin_lsa_ptr(g, 0, a->at);
    sum +=
        (uint64_t)gin_peer_ptr(g, a->team, a->peer, a->at) + (uint64_t)gin_multimem_ptr(g, a->at);
    sum += gin_at_ptr(g, a).off + gin_scratch(g).off;
    s |= gin_world_rank(g, gin_rail(g), 0) | gin_lsa_rank(g, gin_node(g), 0) | gin_status(g);
    return s | (int)sum | (int)old;
}

/* One kernel per room: a single one of all calls takes compilers several times as long. */
#define KERNEL(room, name, group)                                                         \
    extern "C" __global__ void all_##room##_##name(gin_devcomm_t dev, struct all_args *a, \
                                                   int *out)                              \
    {                                                                                     \
        gin_t g;                                                                          \
        *out = gin_open(&dev, (uint32_t)a->n, &g) | all_##room(&g, group, a);             \
    }
#define KERNELS(name, group)        \
    KERNEL(data, name, group)       \
    KERNEL(completion, name, group) \
    KERNEL(waits, name, group)      \
    KERNEL(barriers, name, group)   \
    KERNEL(lsa, name, group)        \
    KERNEL(amos, name, group)

KERNELS(block, gin_block())
#if !defined(GIN_TEST_BRIEF) && !GIN_KERNEL_CHECK
KERNELS(thread, gin_thread())
KERNELS(warp, gin_warp())
KERNELS(tile, gin_tile(8))
KERNELS(lanes, gin_lanes(0xff0f))
KERNELS(span, gin_warp_span(1, 2, 3))
#endif
KERNELS(any, gin_group_of((enum gin_group_kind)a->peer, (uint32_t)a->v))
KERNEL(single, thread, gin_thread())
