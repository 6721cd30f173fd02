/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network does not do, in words: operations that may not take it, and those that it has
 * failed.
 */
#include "net_int.h"

bool gi_net_reaches(const struct gi_devcomm *d, int world)
{
    const gin_comm_t *comm = d->comm;
    return d->reqs.connection != GIN_CONNECT_RAIL || world == comm->rank ||
           comm->shm->index_of[world] == comm->shm->lsa_rank;
}

int gi_net_allowed(const struct gi_devcomm *d, int world, const char *call)
{
    const gin_comm_t *comm = d->comm;
    const gin_devcomm_reqs_t *r = &d->reqs;
    int st = gi_comm_over(comm, call);
    if (st != GIN_OK)
        return st;
    if (d->net == NULL)
        return gi_fail(GIN_ENOTSUP, "%s: rank %d needs the network, %s%s", call, world,
                       comm->net != NULL ? "which came up after this device communicator was made"
                                         : "and there is none: ",
                       comm->net != NULL ? "" : gi_net_why(comm));
    if (r->paths != 0 && !(r->paths & GIN_PATH_NET))
        return gi_fail(GIN_ENOTSUP,
                       "%s: rank %d is reached by the network, which reqs.paths 0x%x leave out "
                       "(GIN_PATH_NET)",
                       call, world, r->paths);
    if (r->connection == GIN_CONNECT_NONE && world != comm->rank)
        return gi_fail(GIN_ENOTSUP,
                       "%s: rank %d is reached by the network, and reqs.connection is "
                       "GIN_CONNECT_NONE",
                       call, world);
    if (!gi_net_reaches(d, world))
        return gi_fail(GIN_ENOTSUP,
                       "%s: rank %d is neither load/store accessible nor in my rail team, and "
                       "reqs.connection is GIN_CONNECT_RAIL",
                       call, world);
    return GIN_OK;
}

int gi_net_failure(const gin_t *g, struct gi_core_ctx *ctx, int world, int st, const char *call)
{
    const char *text = NULL, *own = NULL;
    int sticky = gi_core_ctx_status(ctx, NULL, &text);
    if (sticky != GIN_OK && g != NULL)
        GIN_STORE_RELAXED(&g->ctx->error, sticky);
    if (g != NULL && gi_comm_over(gi_comm_of(g), call) != GIN_OK)
        return gin_last_status();
    if (g != NULL && world >= 0 && gi_core_peer_status(ctx, world, &own) == st)
        return gi_fail(st, "%s: %s", call, own);
    if (st == sticky && text != NULL)
        return gi_fail(st, "%s: %s", call, text);
    int cause = g == NULL ? gi_core_first_failed(ctx) : -1;
    if (cause >= 0 && gi_core_peer_status(ctx, cause, &own) == st)
        return gi_fail(st, "%s: %s", call, own);
    if (world >= 0)
        return gi_fail(st, "%s: rank %d: the network refuses (%s)", call, world,
                       gin_status_name(st));
    return gi_fail(st, "%s: %s", call, gin_status_name(st));
}
