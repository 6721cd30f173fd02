/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * First contact. Some networks connect two ranks with the first operation between them, and may
 * lose it when that happens beside the end of a third one's connection. There all pairs that may
 * have to do with each other exchange something when a device communicator is made, so that those
 * who outlive somebody know each other.
 *
 * Who cannot reach another one learns it before that one does, or alone: all tell each other every
 * now and then how far they are, by the bootstrap, so that one rank's failure is everybody's at
 * once, in the same words.
 */
#include <stdlib.h>

#include "net_ops.h"
#include "net_wait.h"

#define ROUND_NS 1000000000u /* ... that often */

/* How far this rank is. */
struct meeting {
    struct gi_devcomm *d;
    uint32_t context; /* all before this one are through */
    int peer;         /* who is greeted next there, counted from me on */
};

/* What it tells the others: GIN_EAGAIN as long as somebody has not answered. */
struct word {
    int32_t status;
    uint32_t no_files; /* it has no descriptors left: what others fail with may be its fault */
    char why[180];
};

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
    const char *why;
    gi_core_enter(ctx);
    int st = gi_core_put(ctx, world, &p);
    gi_core_leave(ctx);
    if (st == GIN_OK || st == GIN_EAGAIN)
        return st;
    (void)gi_core_peer_status(ctx, world, &why);
    return gi_fail(st, "%s", why);
}

/* world: a rank, or GI_CORE_ALL. 1: has answered. */
static int settled(struct gi_core_ctx *ctx, int world)
{
    gi_core_enter(ctx);
    uint64_t mark = world == GI_CORE_ALL ? gi_core_mark(ctx) : gi_core_mark_peer(ctx, world);
    int r = gi_core_settled(ctx, world, mark);
    gi_core_leave(ctx);
    return r;
}

/* GIN_OK: all have answered in all contexts; GIN_EAGAIN: not yet; or a failure, recorded. */
static int go_on(struct meeting *m)
{
    struct gi_devcomm *d = m->d;
    const gin_comm_t *comm = d->comm;
    for (; m->context <= d->reqs.contexts; m->context++, m->peer = 1) {
        struct gi_core_ctx *ctx = d->net[m->context];
        for (; m->peer < comm->size; m->peer++) {
            int r = (comm->rank + m->peer) % comm->size; /* not all to the same one at once */
            int st = concerns(d, r) ? greet(d, ctx, r) : GIN_OK;
            if (st != GIN_OK)
                return st;
        }
        int r = settled(ctx, GI_CORE_ALL);
        if (r == 0)
            return GIN_EAGAIN;
        if (r < 0) {
            const char *why;
            (void)gi_core_ctx_status(ctx, NULL, &why);
            return gi_fail(r, "%s", why);
        }
    }
    return GIN_OK;
}

/* For a round: GIN_EAGAIN at its end. */
static int go_on_for_a_while(struct meeting *m)
{
    struct gi_net_wait w;
    int r, st = GIN_OK;
    gi_net_wait_begin(&w, m->d->comm, NULL, ROUND_NS, "ranks that were greeted");
    while ((r = go_on(m)) == GIN_EAGAIN && (st = gi_net_wait_step(&w)) == GIN_OK)
        continue;
    gi_net_wait_end(&w);
    return r == GIN_EAGAIN && st != GIN_ETIMEDOUT ? st : r;
}

/* Time is over: who has not answered, on which host. */
static int late(const struct meeting *m, uint64_t ns)
{
    const gin_comm_t *comm = m->d->comm;
    int first = -1, more = 0;
    for (int i = 1; i < comm->size; i++) {
        int r = (comm->rank + i) % comm->size;
        if (!concerns(m->d, r) || (i < m->peer && settled(m->d->net[m->context], r) != 0))
            continue;
        first = first < 0 ? r : first;
        more++;
    }
    if (first < 0)
        return GIN_EAGAIN; /* the last answer has come meanwhile */
    return gi_fail(GIN_ETIMEDOUT,
                   "rank %d on host %.63s and %d more have not answered in %.3g s: is their link "
                   "up?",
                   first, comm->cards[first].host_id, more - 1, (double)ns * 1e-9);
}

/* Who may have made the others fail, as they cannot know; "": nobody is known to. */
static void blame(const gin_comm_t *comm, const struct word *all, char *text, size_t n)
{
    text[0] = 0;
    for (int r = 0; r < comm->size && text[0] == 0; r++)
        if (all[r].no_files != 0)
            snprintf(text, n,
                     "; rank %d on host %.63s has no descriptors left: raise its ulimit -n", r,
                     comm->cards[r].host_id);
}

/* Everybody's word. GIN_OK: all are through; GIN_EAGAIN: not all; or the first one's failure. */
static int hear_all(const struct gi_devcomm *d, const struct word *mine, struct word *all)
{
    gin_comm_t *comm = d->comm;
    char files[140];
    int st = gi_comm_gather(comm, mine, all, sizeof(*mine)), again = GIN_OK;
    for (int r = 0; st == GIN_OK && r < comm->size; r++) {
        if (all[r].status == GIN_EAGAIN) {
            again = GIN_EAGAIN;
        } else if (all[r].status != GIN_OK) {
            blame(comm, all, files, sizeof(files));
            st = gi_fail(all[r].status, "rank %d on host %.63s: %.179s%s", r,
                         comm->cards[r].host_id, all[r].why, files);
        }
    }
    return st == GIN_OK ? again : st;
}

static int meet(struct gi_devcomm *d, struct word *all)
{
    const struct gi_env *env = &d->comm->env;
    uint64_t ns = env->init_timeout < env->coll_timeout ? env->init_timeout : env->coll_timeout;
    uint64_t deadline = gi_deadline_in(ns), limit;
    struct meeting m = {.d = d, .peer = 1};
    int st;
    do {
        struct word mine = {.status = go_on_for_a_while(&m)};
        if (mine.status == GIN_EAGAIN && gi_now_ns() >= deadline)
            mine.status = late(&m, ns);
        mine.no_files = gi_os_files_left(&limit) < 2;
        if (mine.status != GIN_OK && mine.status != GIN_EAGAIN)
            snprintf(mine.why, sizeof(mine.why), "%s", gin_last_error());
        st = hear_all(d, &mine, all);
    } while (st == GIN_EAGAIN);
    return st;
}

int gi_net_meet(struct gi_devcomm *d)
{
    gin_comm_t *comm = d->comm;
    if (d->net == NULL || d->bytes < 8 || !gi_core_caps(comm->net->core, 0)->meet_early)
        return GIN_OK;
    struct word *all = calloc((size_t)comm->size, sizeof(*all));
    int st = all != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for %d ranks", comm->size);
    st = gi_agree_on(comm, GI_AGREE_DEVCOMM, 0, 0, 0, st);
    if (st == GIN_OK)
        st = meet(d, all);
    free(all);
    return st == GIN_OK ? GIN_OK : gi_fail_context("gin_devcomm_create: ranks do not meet");
}
