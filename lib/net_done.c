/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When what was posted to the network is complete: flush, fence and quiet of a context or of one
 * rank, marks in its stream, and what loads and stores have to wait for. Who waits lets go of the
 * context between two looks, so that other threads' operations get through.
 */
#include "engine_net.h"
#include "net_int.h"
#include "net_wait.h"

#define OTHERS 32u /* looks at a context to one at the others */

/* What is waited for: all of a context, or one rank of it. Where there is a ring, what is in front
 * of the ticket has to leave it first. */
struct until {
    const gin_t *g;
    struct gi_core_ctx *ctx;
    uint32_t context; /* its index */
    int world;        /* GI_CORE_ALL: all */
    enum gin_i_flush_what what;
    uint64_t mark;
    bool so_far;              /* the mark is where the stream is at the first look */
    struct gi_net_ring *ring; /* NULL: it has; or there is none */
    uint64_t ticket;
    bool posted; /* ... and that is all */
};

/*
 * Looks of a thread (opt->poll) that follow each other are one wait: the first one says until
 * where, or it would never end while other threads go on posting. It is given up when this thread
 * posts, or waits for completion instead: what it looks for next is all that was posted by then.
 */
struct looks {
    uint64_t serial; /* of the device communicator; 0: none is under way */
    uint32_t index, context, posts;
    struct until until;
};
static _Thread_local struct looks looks;
_Thread_local uint32_t gi_net_posts;

/* By the context's owner. */
static uint64_t mark_now(struct gi_core_ctx *ctx, int world)
{
    return world == GI_CORE_ALL ? gi_core_mark(ctx) : gi_core_mark_peer(ctx, world);
}

static int look(struct until *u)
{
    if (u->so_far)
        u->mark = mark_now(u->ctx, u->world);
    u->so_far = false;
    if (u->ring != NULL) {
        int left = gi_net_ring_left(u->ring, u->world, u->ticket, &u->mark);
        if (left != 1)
            return left;
        u->ring = NULL;
    }
    if (u->posted)
        return 1;
    if (u->what == GIN_I_QUIET)
        return gi_core_settled(u->ctx, u->world, u->mark);
    return u->world == GI_CORE_ALL ? gi_core_flushed(u->ctx, u->mark)
                                   : gi_core_flushed_peer(u->ctx, u->world, u->mark);
}

/* 1: reached, 0: not yet, or the sticky status. */
static int reached(struct until *u)
{
    gi_core_enter(u->ctx);
    int r = look(u);
    if (r == 0 && gi_core_progress(u->ctx) > 0)
        r = look(u);
    gi_core_leave(u->ctx);
    return r;
}

/* The same of a loop: others' contexts have their turn now and then. */
static int reached_yet(struct until *u, gin_comm_t *comm, uint32_t i)
{
    int r = reached(u);
    if (r == 0 && i % OTHERS == 0)
        gi_net_progress(comm);
    return r;
}

static uint64_t limit_of(const struct gi_devcomm *d, const gin_wait_opt_t *opt)
{
    return opt != NULL && opt->timeout_ns != 0 ? opt->timeout_ns : d->wait_timeout_ns;
}

static int wait_until(struct until *u, gin_comm_t *comm, uint64_t timeout_ns, bool poll,
                      const char *call)
{
    struct gi_net_wait w;
    int st = GIN_OK, r = reached(u);
    if (!poll)
        looks.serial = 0;
    for (uint32_t i = 0; r == 0 && !poll && i < gi_net_spin(comm); i++)
        r = reached_yet(u, comm, i);
    if (r == 0 && poll)
        return GIN_EAGAIN;
    if (r == 0) {
        atomic_fetch_add_explicit(&comm->n_waits, 1, memory_order_relaxed);
        bool all = u->world == GI_CORE_ALL;
        gi_net_wait_for(&w, comm, timeout_ns,
                        all ? "completion of context # at all ranks"
                            : "completion of context # at rank #",
                        u->context, all ? 0 : (uint64_t)u->world);
        while (r == 0 && (st = gi_net_wait_step(&w)) == GIN_OK)
            r = reached(u);
        if (st == GIN_ETIMEDOUT)
            r = reached(u); /* this thread may have stood still for long */
        gi_net_wait_end(&w);
    }
    if (r == 1)
        return GIN_OK;
    if (r < 0 && u->ring != NULL)
        return gi_net_ring_status(u->ring, call);
    if (r < 0)
        return gi_net_failure(u->g, u->ctx, u->world, r, call);
    if (st == GIN_ETIMEDOUT)
        return gi_fail(GIN_ETIMEDOUT, "%s: not complete after %.3f s", call,
                       (double)timeout_ns * 1e-9);
    return gi_fail_context("%s", call);
}

static uint64_t mark_of(struct gi_core_ctx *ctx, int world)
{
    gi_core_enter(ctx);
    uint64_t mark = mark_now(ctx, world);
    gi_core_leave(ctx);
    return mark;
}

/* All that was posted so far. g NULL: by anybody. */
static struct until all_so_far(const gin_t *g, const struct gi_devcomm *d, uint32_t c, int world,
                               enum gin_i_flush_what what)
{
    struct until u = {.g = g, .ctx = d->net[c], .context = c, .world = world, .what = what};
    if (d->rings != NULL && c < d->reqs.contexts) {
        u.ring = &d->rings[c];
        u.ticket = gi_net_ring_mark(u.ring);
    } else {
        u.so_far = true;
    }
    return u;
}

int gi_net_drain(const gin_t *g, int world, const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    struct until u = all_so_far(g, d, g->ctx->index, world, GIN_I_FLUSH);
    u.posted = true;
    return wait_until(&u, d->comm, d->wait_timeout_ns, false, call);
}

/*
 * What follows a fence may go by process_vm calls, which wait for nothing that the network carries:
 * so the fence waits, for ranks that are reached both ways. (Load/store peers:
 * gi_net_settle_near().)
 */
static int fence_beside(const gin_t *g, uint32_t c, int world, const gin_wait_opt_t *opt,
                        const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    uint64_t ns = limit_of(d, opt);
    int first = world == GI_CORE_ALL ? 0 : world, st = GIN_OK;
    int last = world == GI_CORE_ALL ? d->comm->size - 1 : world;
    for (int r = first; r <= last && st == GIN_OK; r++) {
        if (!gi_net_is_beside(d, r))
            continue;
        struct until u = all_so_far(g, d, c, r, GIN_I_QUIET);
        st = wait_until(&u, d->comm, ns, opt != NULL && opt->poll, call);
    }
    return st;
}

static bool goes_on(const gin_t *g, int world, enum gin_i_flush_what what, uint32_t c)
{
    const struct until *u = &looks.until;
    return looks.serial == g->dc->serial && looks.index == g->ctx->index && looks.context == c &&
           looks.posts == gi_net_posts && u->world == world && u->what == what;
}

/* Once; GIN_EAGAIN: not yet. */
static int look_once(const gin_t *g, uint32_t c, int world, enum gin_i_flush_what what,
                     const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    struct until u = goes_on(g, world, what, c) ? looks.until : all_so_far(g, d, c, world, what);
    u.g = g;
    looks.serial = 0;
    int st = wait_until(&u, d->comm, 0, true, call);
    if (st == GIN_EAGAIN)
        looks = (struct looks){g->dc->serial, g->ctx->index, c, gi_net_posts, u};
    return st;
}

static int complete_one(const gin_t *g, uint32_t c, int world, enum gin_i_flush_what what,
                        const gin_wait_opt_t *opt, const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    uint64_t ns = limit_of(d, opt);
    if (what == GIN_I_FENCE) {
        int st = d->rings != NULL ? gi_net_ring_fence(&d->rings[c], world, call)
                                  : gi_net_post_fence(g, d->net[c], world, call);
        return st == GIN_OK && d->net_beside ? fence_beside(g, c, world, opt, call) : st;
    }
    if (opt != NULL && opt->poll)
        return look_once(g, c, world, what, call);
    struct until u = all_so_far(g, d, c, world, what);
    return wait_until(&u, d->comm, ns, false, call);
}

int gi_net_complete(const gin_t *g, int world, enum gin_i_flush_what what,
                    const gin_wait_opt_t *opt, const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    int peer = world < 0 ? GI_CORE_ALL : world, st = GIN_OK;
    if (d->net == NULL)
        return GIN_OK;
    st = gi_comm_over(d->comm, call);
    if (st != GIN_OK)
        return st;
    if (g->ctx->index != GIN_ALL_CONTEXTS)
        return complete_one(g, g->ctx->index, peer, what, opt, call);
    /* Those before the one that the last look stopped at were complete then. */
    bool poll = opt != NULL && opt->poll && what != GIN_I_FENCE;
    uint32_t first = poll && goes_on(g, peer, what, looks.context) ? looks.context : 0;
    for (uint32_t c = first; st == GIN_OK && c < d->reqs.contexts; c++)
        st = complete_one(g, c, peer, what, opt, call);
    return st;
}

/* What is left until then, at least a look. */
static uint64_t left(uint64_t deadline)
{
    uint64_t now = gi_now_ns();
    return now < deadline ? deadline - now : 1;
}

/* A target's word that an operation was not for it; no death, and no trouble of the network. */
static bool is_refusal(int st)
{
    return st == GIN_EINVAL || st == GIN_ERANGE || st == GIN_ESTATE || st == GIN_ENOTSUP;
}

/* Every rank by itself, for the status of one hides the others. What was refused is over. */
static int quiet_by_rank(gin_comm_t *comm, const struct gi_devcomm *d, uint32_t c,
                         uint64_t deadline, const char *call)
{
    int st = GIN_OK;
    for (int r = 0; r < comm->size && st == GIN_OK; r++) {
        struct until u = all_so_far(NULL, d, c, r, GIN_I_QUIET);
        int one = wait_until(&u, comm, left(deadline), false, call);
        st = is_refusal(one) ? GIN_OK : one;
    }
    return st;
}

/* A context that is dead has nothing more to say of the others: all are waited for, in one time,
 * and the first failure is told. */
static int quiet_all(gin_comm_t *comm, const char *call, bool refusals_count)
{
    uint64_t deadline = gi_deadline_in(comm->env.coll_timeout);
    char why[256];
    int st = GIN_OK;
    if (comm->net == NULL)
        return GIN_OK;
    for (struct gi_devcomm *d = comm->devcomms; d != NULL; d = d->next)
        for (uint32_t c = 0; d->net != NULL && c <= d->reqs.contexts; c++) {
            struct until u = all_so_far(NULL, d, c, GI_CORE_ALL, GIN_I_QUIET);
            int one = wait_until(&u, comm, left(deadline), false, call);
            if (!refusals_count && is_refusal(one))
                one = quiet_by_rank(comm, d, c, deadline, call);
            if (st != GIN_OK || one == GIN_OK)
                continue;
            st = one;
            snprintf(why, sizeof(why), "%.250s", gin_last_error());
        }
    return st == GIN_OK ? GIN_OK : gi_fail(st, "%s", why);
}

int gi_net_quiet_all(gin_comm_t *comm, const char *call)
{
    return quiet_all(comm, call, true);
}

int gi_net_still(gin_comm_t *comm, const char *call)
{
    return quiet_all(comm, call, false);
}

uint64_t gi_net_mark(const gin_t *g, int world)
{
    if (gi_net_ring_of(g) != NULL)
        return gi_net_ring_mark(gi_net_ring_of(g));
    return gi_devcomm_of(g)->net != NULL ? mark_of(gi_net_ctx(g), world) : 0;
}

int gi_net_wait_mark(const gin_t *g, int world, uint64_t mark, const gin_wait_opt_t *opt,
                     const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    uint64_t ns = limit_of(d, opt);
    int st = d->net != NULL ? gi_comm_over(d->comm, call) : GIN_OK;
    if (d->net == NULL || st != GIN_OK)
        return st;
    struct until u = {.g = g,
                      .ctx = gi_net_ctx(g),
                      .context = g->ctx->index,
                      .world = world,
                      .what = GIN_I_FLUSH};
    u.ring = gi_net_ring_of(g);
    *(u.ring != NULL ? &u.ticket : &u.mark) = mark;
    return wait_until(&u, d->comm, ns, opt != NULL && opt->poll, call);
}

static int settle_one(const gin_t *g, uint32_t c, int world, const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    struct until u = all_so_far(g, d, c, world, GIN_I_QUIET);
    return wait_until(&u, d->comm, d->wait_timeout_ns, false, call);
}

int gi_net_settle_near(const gin_t *g, int world, const char *call)
{
    const struct gi_devcomm *d = gi_devcomm_of(g);
    int st = GIN_OK;
    if (GIN_LIKELY(d->net == NULL || GIN_LOAD_RELAXED(&g->ctx->near_net) == 0))
        return GIN_OK;
    for (int r = world < 0 ? 0 : world; r < d->comm->size && st == GIN_OK; r++) {
        if (g->lsa_of[r] >= 0 && g->ctx->index != GIN_ALL_CONTEXTS)
            st = settle_one(g, g->ctx->index, r, call);
        else if (g->lsa_of[r] >= 0)
            for (uint32_t c = 0; c < d->reqs.contexts && st == GIN_OK; c++)
                st = settle_one(g, c, r, call);
        if (world >= 0)
            break;
    }
    return st;
}
