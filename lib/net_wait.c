/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait in earnest looks at three things that may end it: the clock, the communicator, and the
 * context on the network, where it has one. The network that it began with is the one it drives:
 * another thread may bring one up meanwhile.
 */
#include "net_wait.h"

#define POLLS_A_LOOK 64 /* of programs that poll: at what may have ended their peers */

struct gi_core_ctx *gi_net_context(const gin_t *g)
{
    struct gi_core_ctx **net = gi_devcomm_of(g)->net;
    return net != NULL && g->ctx->index != GIN_ALL_CONTEXTS ? net[g->ctx->index] : NULL;
}

int gi_net_status(const gin_t *g)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    bool all = g->ctx->index == GIN_ALL_CONTEXTS;
    int st = GIN_OK;
    for (uint32_t c = 0; st == GIN_OK && d->net != NULL && c < d->reqs.contexts; c++)
        if (all || c == g->ctx->index)
            st = gi_core_ctx_status(d->net[c], NULL, NULL);
    if (st != GIN_OK)
        GIN_STORE_RELAXED(&g->ctx->error, st);
    return st;
}

static int context_failed(const struct gi_net_wait *n)
{
    int rank;
    const char *text;
    int st = n->ctx != NULL ? gi_core_ctx_status(n->ctx, &rank, &text) : GIN_OK;
    if (GIN_LIKELY(st == GIN_OK))
        return GIN_OK;
    if (rank >= 0 && n->ignores != NULL && n->ignores(n->arg, rank))
        return GIN_OK;
    return gi_fail(st, "%s", text);
}

int gi_net_failed(const struct gi_net_wait *n)
{
    static __thread uint32_t polls;
    int st = GIN_OK;
    if (GIN_UNLIKELY(gi_comm_status_quiet(n->comm) != GIN_OK) || ++polls % POLLS_A_LOOK == 0)
        st = n->health(n->health_arg);
    return st == GIN_OK ? context_failed(n) : st;
}

static int check(void *arg)
{
    const struct gi_net_wait *n = arg;
    int st = n->health(n->health_arg);
    return st == GIN_OK ? context_failed(n) : st;
}

static void drive(void *arg)
{
    const struct gi_net_wait *n = arg;
    gi_core_poll_first(n->net->core, n->ctx);
}

struct gi_net_wait gi_net_look(gin_comm_t *comm, struct gi_core_ctx *ctx)
{
    return (struct gi_net_wait){.comm = comm,
                                .health = gi_comm_health,
                                .health_arg = comm,
                                .net = gi_net_of(comm),
                                .ctx = ctx};
}

void gi_net_wait_begin(struct gi_net_wait *n, gin_comm_t *comm, struct gi_core_ctx *ctx,
                       uint64_t timeout_ns, const char *what)
{
    uint64_t deadline = timeout_ns != 0 ? gi_deadline_in(timeout_ns) : GI_NEVER;
    *n = gi_net_look(comm, ctx);
    gi_wait_begin(&n->w, 0, deadline, check, n, what);
    n->w.rank = comm->rank;
    if (n->net != NULL)
        n->w.progress = drive;
}

void gi_net_wait_for(struct gi_net_wait *n, gin_comm_t *comm, uint64_t timeout_ns, const char *what,
                     uint32_t context, uint64_t of)
{
    gi_net_wait_begin(n, comm, NULL, timeout_ns, what);
    n->health = gi_comm_whole;
    n->w.detail[0] = context;
    n->w.detail[1] = of;
}

void gi_net_wait_end(struct gi_net_wait *n)
{
    gi_wait_end(&n->w);
}
