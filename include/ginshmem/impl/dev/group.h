/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who calls together: a group's lanes, its synchronisation, and how its leader's result becomes
 * everybody's. The leader is the lowest lane. With a constant kind all of it folds away. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_GROUP_H
#define GINSHMEM_IMPL_DEV_GROUP_H

#include <ginshmem/gin.h>
#include <ginshmem/impl/dev/ptx.h>

/* The lane of a group's leader in its warp. */
#define GIN_I_LEADER(q) ((q)->mask == GIN_I_WHOLE_WARP ? 0 : __ffs((int)(q)->mask) - 1)

/* A group as one of its threads sees it. */
struct gin_i_group {
    uint32_t kind;
    uint32_t lane, lanes; /* my place, how many */
    uint32_t mask;        /* its lanes in my warp */
    uint32_t id, threads; /* warp span: named barrier */
};

/* Of a warp, short or not: lanes that do not exist count as present in every warp operation, and a
 * constant mask costs no proof of convergence. */
#define GIN_I_WHOLE_WARP 0xffffffffu

GIN_DEV uint32_t gin_i_thread_in_block(void)
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

GIN_DEV uint32_t gin_i_block_threads(void)
{
    return blockDim.x * blockDim.y * blockDim.z;
}

/* Lanes of my warp that exist: the last warp of a block may be short. */
GIN_DEV uint32_t gin_i_warp_lanes(uint32_t thread)
{
    uint32_t left = gin_i_block_threads() - (thread & ~31u);
    return left < 32 ? left : 32;
}

GIN_DEV uint32_t gin_i_warp_mask(uint32_t thread)
{
    uint32_t lanes = gin_i_warp_lanes(thread);
    return lanes == 32 ? GIN_I_WHOLE_WARP : (1u << lanes) - 1;
}

GIN_DEV int gin_i_group_span(uint32_t arg, struct gin_i_group *q)
{
    uint32_t first = arg & 0xff, count = arg >> 8 & 0xff, t = gin_i_thread_in_block();
    uint32_t left = gin_i_block_threads() - first * 32;
    q->id = arg >> 16;
    q->threads = count * 32;
    q->lane = t - first * 32; /* wraps for a thread before the span */
    q->lanes = left < q->threads ? left : q->threads;
    q->mask = GIN_I_WHOLE_WARP;
    /* the last warp may be short, but must be there */
    return q->id != 0 && q->id < GIN_I_SPAN_IDS && q->lane < q->threads &&
           (first + count) * 32 < gin_i_block_threads() + 32;
}

GIN_DEV int gin_i_group_tile(uint32_t size, struct gin_i_group *q)
{
    uint32_t t = gin_i_thread_in_block();
    if (size - 1 > 31 || (size & (size - 1)) != 0)
        return 0;
    q->lane = t & (size - 1);
    q->mask = (size == 32 ? GIN_I_WHOLE_WARP : (1u << size) - 1) << (t & 31u & ~(size - 1));
    q->mask &= gin_i_warp_mask(t);
    q->lanes = (uint32_t)__popc(q->mask);
    return 1;
}

GIN_DEV int gin_i_group_lanes(uint32_t mask, struct gin_i_group *q)
{
    uint32_t t = gin_i_thread_in_block(), me = 1u << (t & 31);
    q->mask = mask;
    q->lane = (uint32_t)__popc(mask & (me - 1));
    q->lanes = (uint32_t)__popc(mask);
    return (mask & me) != 0 && (mask & ~gin_i_warp_mask(t)) == 0;
}

/* 0: the group has no meaning, or I am not in it. */
GIN_DEV int gin_i_group_make(gin_group_t grp, struct gin_i_group *q)
{
    q->kind = grp.kind;
    q->lane = 0;
    q->lanes = 1;
    q->mask = 0;
    q->id = q->threads = 0;
    switch (grp.kind) {
    case GIN_GROUP_THREAD: return 1;
    case GIN_GROUP_WARP:
        q->lane = gin_i_thread_in_block() & 31;
        q->lanes = gin_i_warp_lanes(gin_i_thread_in_block());
        q->mask = GIN_I_WHOLE_WARP;
        return 1;
    case GIN_GROUP_BLOCK:
        q->lane = gin_i_thread_in_block();
        q->lanes = gin_i_block_threads();
        q->mask = GIN_I_WHOLE_WARP;
        return 1;
    case GIN_GROUP_TILE: return gin_i_group_tile(grp.arg, q);
    case GIN_GROUP_LANES: return gin_i_group_lanes(grp.arg, q);
    case GIN_GROUP_WARP_SPAN: return gin_i_group_span(grp.arg, q);
    default: return 0;
    }
}

/* More than one warp: needs a barrier of the block. */
GIN_DEV int gin_i_group_is_wide(const struct gin_i_group *q)
{
    return q->kind == GIN_GROUP_BLOCK || q->kind == GIN_GROUP_WARP_SPAN;
}

GIN_DEV void gin_i_group_sync(const struct gin_i_group *q)
{
    if (q->kind == GIN_GROUP_BLOCK)
        __syncthreads();
    else if (q->kind == GIN_GROUP_WARP_SPAN)
        gin_i_named_sync(q->id, q->threads);
    else if (q->kind != GIN_GROUP_THREAD)
        __syncwarp(q->mask);
}

/* 1 in the lanes of the leader's warp, which may work for the whole group; q of those lanes. */
GIN_DEV int gin_i_group_helpers(const struct gin_i_group *q, struct gin_i_group *warp)
{
    *warp = *q;
    if (!gin_i_group_is_wide(q))
        return 1;
    warp->kind = GIN_GROUP_WARP;
    warp->lanes = q->lanes < 32 ? q->lanes : 32;
    return q->lane < 32;
}

GIN_DEV int gin_i_group_or(const struct gin_i_group *q, int value)
{
    if (q->kind == GIN_GROUP_BLOCK)
        return __syncthreads_or(value);
    if (q->kind == GIN_GROUP_WARP_SPAN)
        return gin_i_named_or(q->id, q->threads, value);
    return q->kind == GIN_GROUP_THREAD ? value : __any_sync(q->mask, value);
}

/* The failure of a wide group's lanes, bit by bit, for want of other memory; rare. */
GIN_DEV_CALL int gin_i_group_failure(uint32_t kind, uint32_t id, uint32_t threads, int st)
{
    struct gin_i_group q = {kind, 0, 0, 0, id, threads};
    int all = 0;
    if (!gin_i_group_or(&q, st != GIN_OK && st != GIN_EAGAIN))
        return GIN_EAGAIN;
    for (int bit = 0; bit < 6; bit++)
        all |= gin_i_group_or(&q, -st >> bit & 1) << bit;
    return -all;
}

/*
 * Everybody's status: the leader's; the others pass GIN_OK. Also a barrier of the group, after
 * which they see what the leader saw.
 */
GIN_DEV int gin_i_group_status(const struct gin_i_group *q, int st)
{
    if (q->kind == GIN_GROUP_THREAD)
        return st;
    if (!gin_i_group_is_wide(q)) {
        st = __shfl_sync(q->mask, st, GIN_I_LEADER(q));
        __syncwarp(q->mask); /* a shuffle orders no memory */
        return st;
    }
    return GIN_LIKELY(!gin_i_group_or(q, st != GIN_OK))
               ? GIN_OK
               : gin_i_group_failure(q->kind, q->id, q->threads, st);
}

/* The first lane's failure among lanes of one warp that waited for different things. */
GIN_DEV int gin_i_group_worst(const struct gin_i_group *warp, int st)
{
    if (warp->kind == GIN_GROUP_THREAD)
        return st;
    uint32_t failed = __ballot_sync(warp->mask, st != GIN_OK);
    return failed == 0 ? GIN_OK : __shfl_sync(warp->mask, st, __ffs((int)failed) - 1);
}

/* The leader's value in every lane. Wide groups need shared memory, which only these calls take. */
GIN_DEV uint64_t gin_i_group_share(const struct gin_i_group *q, uint64_t v)
{
    if (q->kind == GIN_GROUP_THREAD)
        return v;
    if (!gin_i_group_is_wide(q))
        return __shfl_sync(q->mask, v, GIN_I_LEADER(q));
    uint64_t *box = gin_i_box(q->id);
    if (q->lane == 0)
        *box = v;
    gin_i_group_sync(q);
    v = *box;
    gin_i_group_sync(q);
    return v;
}

/* Behind a share of what the leader acquired after the group met: a shuffle orders no memory, and a
 * wide group has met. */
GIN_DEV void gin_i_group_order(const struct gin_i_group *q)
{
    if (!gin_i_group_is_wide(q) && q->kind != GIN_GROUP_THREAD)
        __syncwarp(q->mask);
}

#endif
