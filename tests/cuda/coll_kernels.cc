/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels as threads (tests/gpu/device/emulate.h): collectives by the device code itself. */
#include "tests/gpu/device/bed.h"
#include <ginshmem/collective.h>
#include "tests/cuda/coll_kernels.h"

#define NOT_YET 99

struct block {
    struct coll_run *run;
    unsigned index;
};

static int call(const gin_t *g, gin_group_t grp, const struct coll_case *c)
{
    switch (c->call) {
    case -1: return gin_sync(g, grp, c->team, c->index);
    case 0:
        return gin_broadcast(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type, c->root);
    case 1: return gin_allgather(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type);
    case 2:
        return gin_gather(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type, c->root);
    case 3: return gin_alltoall(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type);
    case 4:
        return gin_alltoallv(g, grp, c->team, c->index, c->dst, c->dst_counts, c->dst_firsts,
                             c->src, c->src_counts, c->src_firsts, c->type);
    case 5:
        return gin_allreduce(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type, c->op);
    case 6:
        return gin_reduce(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type, c->op,
                          c->root);
    case 7:
        return gin_reduce_scatter(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type,
                                  c->op);
    case 8: return gin_scan(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type, c->op);
    default:
        return gin_scan_exclusive(g, grp, c->team, c->index, c->dst, c->src, c->count, c->type,
                                  c->op);
    }
}

/* One group of the block takes part: the last one. */
static bool takes_part(gin_group_t grp)
{
    unsigned t = emu_me.linear, n = emu_threads();
    switch (grp.kind) {
    case GIN_GROUP_THREAD: return t == n - 1;
    case GIN_GROUP_WARP: return t / 32 == (n - 1) / 32;
    case GIN_GROUP_TILE: return t / grp.arg == (n - 1) / grp.arg;
    case GIN_GROUP_WARP_SPAN: return t / 32 >= (grp.arg & 0xff);
    default: return true;
    }
}

static void note(struct coll_case *c, int st)
{
    int seen = NOT_YET;
    if (!__atomic_compare_exchange_n(&c->status, &seen, st, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED) &&
        seen != st)
        __atomic_store_n(&c->status, 1, __ATOMIC_RELAXED);
}

static void calls(void *arg)
{
    const struct block *b = (const struct block *)arg;
    const struct coll_run *run = b->run;
    gin_t g;
    if (!takes_part(run->group))
        return;
    int st = gin_open(&run->dev, b->index == 0 ? 0 : GIN_ALL_CONTEXTS, &g);
    for (int i = 0; i < run->n && st == GIN_OK; i++)
        if (run->cases[i].index % COLL_BLOCKS == b->index)
            note(&run->cases[i], call(&g, run->group, &run->cases[i]));
}

void coll_kernel(struct coll_run *run)
{
    struct block block[COLL_BLOCKS];
    struct emu_launch launched[COLL_BLOCKS];
    struct emu_dim dim = {run->threads, 1, 1};
    for (int i = 0; i < run->n; i++)
        run->cases[i].status = NOT_YET;
    for (unsigned i = 0; i < COLL_BLOCKS; i++) {
        block[i] = (struct block){run, i};
        launched[i] = emu_launch_block(dim, calls, &block[i]);
    }
    for (unsigned i = 0; i < COLL_BLOCKS; i++)
        emu_join(&launched[i]);
}
