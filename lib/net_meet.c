/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * First contact. Some networks connect two ranks with the first operation between them, and may
 * lose it when that happens beside the end of a third one's connection. There all pairs that may
 * have to do with each other exchange something when a device communicator is made, so that those
 * who outlive somebody know each other.
 */
#include "net_ops.h"
#include "net_wait.h"

/* May the two have to do with each other by this network? */
static bool concerns(const struct gi_devcomm *d, int world)
{
    const gin_comm_t *comm = d->comm;
    switch (d->reqs.connection) {
    case GIN_CONNECT_NONE: return false;
    case GIN_CONNECT_RAIL: return comm->shm->index_of[world] == comm->shm->lsa_rank;
    default: return comm->lsa_of[world] < 0 || d->lsa_of != NULL;
    }
}

/* Nothing is added to a word of the block that the device communicator has at every rank. */
static int greet(struct gi_devcomm *d, struct gi_core_ctx *ctx, int world)
{
    struct gi_core_put p = {
        .action = {.kind = GI_CORE_WORD_ADD,
                   .id = gin_i_desc_window(gin_heap_window(d->comm, GIN_KIND_HOST)),
                   .off = d->off}};
    struct gi_net_wait w;
    int st, over = GIN_OK;
    gi_net_wait_begin(&w, d->comm, NULL, d->comm->env.coll_timeout, "room to greet rank #");
    w.w.detail[0] = (uint64_t)world;
    do {
        gi_core_enter(ctx);
        st = gi_core_put(ctx, world, &p);
        gi_core_leave(ctx);
    } while (st == GIN_EAGAIN && (over = gi_net_wait_step(&w)) == GIN_OK);
    gi_net_wait_end(&w);
    if (over != GIN_OK || st == GIN_OK)
        return over;
    const char *why;
    (void)gi_core_peer_status(ctx, world, &why);
    return gi_fail(st, "%s", why);
}

static int settled(struct gi_core_ctx *ctx)
{
    gi_core_enter(ctx);
    int r = gi_core_settled(ctx, GI_CORE_ALL, gi_core_mark(ctx));
    gi_core_leave(ctx);
    return r;
}

static int await(struct gi_devcomm *d, struct gi_core_ctx *ctx)
{
    struct gi_net_wait w;
    int r, st = GIN_OK;
    gi_net_wait_begin(&w, d->comm, NULL, d->comm->env.coll_timeout, "ranks that were greeted");
    while ((r = settled(ctx)) == 0 && (st = gi_net_wait_step(&w)) == GIN_OK)
        continue;
    gi_net_wait_end(&w);
    if (r >= 0)
        return r == 1 ? GIN_OK : st;
    const char *why;
    (void)gi_core_ctx_status(ctx, NULL, &why);
    return gi_fail(r, "%s", why);
}

int gi_net_meet(struct gi_devcomm *d)
{
    const gin_comm_t *comm = d->comm;
    int st = GIN_OK;
    if (d->net == NULL || d->bytes < 8 || !gi_core_caps(comm->net->core, 0)->meet_early)
        return GIN_OK;
    for (uint32_t c = 0; st == GIN_OK && c <= d->reqs.contexts; c++) {
        for (int i = 1; st == GIN_OK && i < comm->size; i++) {
            int r = (comm->rank + i) % comm->size; /* not all to the same one at once */
            if (concerns(d, r))
                st = greet(d, d->net[c], r);
        }
        if (st == GIN_OK)
            st = await(d, d->net[c]);
    }
    return st == GIN_OK ? GIN_OK : gi_fail_context("gin_devcomm_create: ranks do not meet");
}
