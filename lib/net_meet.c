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
 *
 * So do they where there are several rails: one of them may lead elsewhere than at the peers, which
 * nobody would find out before something waits for good.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_ops.h"
#include "net_wait.h"

#define ROUND_NS 1000000000u /* ... that often */
/* Time for all to answer on every rail: who is silent is elsewhere. */
#define RAILS_NS 30000000000u

/* Far longer than the way between any two ranks. */
#define PART_NS 100000000u

/* A rank's devices, by rail. */
struct devices {
    char of[GI_CORE_RAILS][32];
};

/* How far this rank is. */
struct meeting {
    struct gi_devcomm *d;
    const struct devices *devices; /* by rank, or NULL: one rail */
    uint32_t context;              /* all before this one are through */
    int peer;                      /* who is greeted next there, counted from me on */
};

/* What it tells the others: GIN_EAGAIN as long as somebody has not answered. */
struct word {
    int32_t status;
    uint32_t no_files; /* it has no descriptors left: what others fail with may be its fault */
    char why[420];
};

bool gi_net_concerns(const struct gi_devcomm *d, int world)
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
    gi_core_enter(ctx);
    int st = gi_core_put(ctx, world, &p);
    gi_core_leave(ctx);
    return st;
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

/* Which two do not reach each other, by which devices, and what to do about it. */
static int apart(const struct meeting *m, int world, uint32_t rail, int st, const char *why)
{
    const gin_comm_t *comm = m->d->comm;
    const char *mine = m->devices[comm->rank].of[rail], *theirs = m->devices[world].of[rail];
    return gi_fail(st,
                   "rail %u does not lead from rank %d (%s) to rank %d on host %.63s (%s): %.80s; "
                   "name devices by GINSHMEM_NICS in the order in which they reach each other, or "
                   "set GINSHMEM_RAILS=1",
                   rail, comm->rank, mine, world, comm->cards[world].host_id, theirs, why);
}

/* A failure on the way to a rank (-1: nobody knows) in a context. */
static int failed(const struct meeting *m, struct gi_core_ctx *ctx, int world, uint32_t rail,
                  int st)
{
    const char *why;
    world = world < 0 ? gi_core_first_failed(ctx) : world;
    if (world < 0 || gi_core_peer_status(ctx, world, &why) != st)
        (void)gi_core_ctx_status(ctx, NULL, &why);
    return m->devices != NULL && world >= 0 ? apart(m, world, rail, st, why)
                                            : gi_fail(st, "%s", why);
}

/* The same on the lanes beside the home, of the first context alone: they are on all rails. */
static int greet_sides(const struct meeting *m, struct gi_core_ctx *ctx)
{
    const gin_comm_t *comm = m->d->comm;
    uint32_t rail = 0;
    int all = 1, st = 1;
    for (int r = 0; r < comm->size && m->context == 0 && st >= 0; r++) {
        if (!gi_net_concerns(m->d, r))
            continue;
        gi_core_enter(ctx);
        st = gi_core_greet_sides(ctx, r, &rail);
        gi_core_leave(ctx);
        all &= st == 1;
        if (st < 0)
            return failed(m, ctx, r, rail, st);
    }
    return all != 0 ? GIN_OK : GIN_EAGAIN;
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
            int st = gi_net_concerns(d, r) ? greet(d, ctx, r) : GIN_OK;
            if (st == GIN_EAGAIN)
                return st;
            if (st != GIN_OK)
                return failed(m, ctx, r, gi_core_home(ctx), st);
        }
        int r = settled(ctx, GI_CORE_ALL);
        if (r == 0)
            return GIN_EAGAIN;
        if (r < 0)
            return failed(m, ctx, -1, gi_core_home(ctx), r);
        int st = greet_sides(m, ctx);
        if (st != GIN_OK)
            return st;
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

static bool is_met(const struct meeting *m, struct gi_core_ctx *ctx, int world, uint32_t *rail)
{
    *rail = gi_core_home(ctx);
    if (settled(ctx, world) == 0)
        return false;
    gi_core_enter(ctx);
    bool met = m->context != 0 || gi_core_greet_sides(ctx, world, rail) != 0;
    gi_core_leave(ctx);
    return met;
}

/* Time is over: who has not answered, on which host. */
static int late(const struct meeting *m, uint64_t ns)
{
    const gin_comm_t *comm = m->d->comm;
    struct gi_core_ctx *ctx = m->d->net[m->context];
    uint32_t rail = gi_core_home(ctx);
    int first = -1, more = 0;
    for (int i = 1; i < comm->size; i++) {
        int r = (comm->rank + i) % comm->size;
        if (!gi_net_concerns(m->d, r) || (i < m->peer && is_met(m, ctx, r, &rail)))
            continue;
        first = first < 0 ? r : first;
        more++;
        if (m->devices != NULL)
            break;
    }
    if (first < 0)
        return GIN_EAGAIN; /* the last answer has come meanwhile */
    if (m->devices != NULL)
        return apart(m, first, rail, GIN_ETIMEDOUT, "no answer");
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
            st = gi_fail(all[r].status, "rank %d on host %.63s: %.419s%s", r,
                         comm->cards[r].host_id, all[r].why, files);
        }
    }
    return st == GIN_OK ? again : st;
}

static void part_for_a_while(const struct gi_devcomm *d)
{
    bool asked = false;
    uint64_t deadline = gi_deadline_in(PART_NS);
    do {
        for (uint32_t c = 0; c <= d->reqs.contexts; c++)
            asked |= gi_core_ctx_part(d->net[c]);
        gi_os_yield();
    } while (asked && gi_now_ns() < deadline);
}

/*
 * Nobody greets any more, and some connections are half made: those who asked for one send their
 * request in the first while, and all have by the second, in which who was asked reads it. Then
 * contexts may be closed.
 */
static int part(const struct gi_devcomm *d, int why, struct word *all)
{
    struct word mine = {.status = why};
    part_for_a_while(d);
    int st = gi_comm_gather(d->comm, &mine, all, sizeof(mine));
    if (st == GIN_OK)
        part_for_a_while(d);
    return st != GIN_OK ? st : why;
}

static int meet(struct gi_devcomm *d, struct word *all, const struct devices *devices)
{
    const struct gi_env *env = &d->comm->env;
    uint64_t ns = env->init_timeout < env->coll_timeout ? env->init_timeout : env->coll_timeout;
    ns = devices != NULL && ns > RAILS_NS ? RAILS_NS : ns;
    uint64_t deadline = gi_deadline_in(ns), limit;
    struct meeting m = {.d = d, .devices = devices, .peer = 1};
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
    return st == GIN_OK ? GIN_OK : part(d, st, all);
}

static void fill_devices(const struct gi_net *n, struct devices *mine)
{
    memset(mine, 0, sizeof(*mine));
    for (uint32_t i = 0; i < n->n_domains; i++) {
        const char *device = gi_core_caps(n->core, i)->device;
        snprintf(mine->of[i], sizeof(mine->of[i]), "%.31s", device != NULL ? device : "?");
    }
}

int gi_net_meet(struct gi_devcomm *d)
{
    gin_comm_t *comm = d->comm;
    if (d->net == NULL || d->bytes < 8)
        return GIN_OK;
    bool rails = comm->net->n_domains > 1;
    if (!rails && !gi_core_caps(comm->net->core, 0)->meet_early)
        return GIN_OK;
    struct word *all = calloc((size_t)comm->size, sizeof(*all));
    struct devices mine, *devices = calloc((size_t)comm->size, sizeof(*devices));
    int st = all != NULL && devices != NULL
                 ? GIN_OK
                 : gi_fail(GIN_ENOMEM, "no memory for %d ranks", comm->size);
    st = gi_agree_on(comm, GI_AGREE_DEVCOMM, 0, 0, 0, st);
    if (st == GIN_OK && rails) {
        fill_devices(comm->net, &mine);
        st = gi_comm_gather(comm, &mine, devices, sizeof(mine));
    }
    if (st == GIN_OK)
        st = meet(d, all, rails ? devices : NULL);
    free(devices);
    free(all);
    return st == GIN_OK ? GIN_OK : gi_fail_context("gin_devcomm_create: ranks do not meet");
}
