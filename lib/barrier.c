/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers: arriving, waiting, and what the two order. Whatever the algorithm, an arrival is a
 * release and the end of a wait an acquire; nothing weaker is cheaper where it matters. A fence
 * over puts is a full one, so that they are also visible to ranks outside the team before anybody
 * leaves.
 */
#include <inttypes.h>
#include <string.h>

#include "barrier_impl.h"
#include "net_ops.h"
#include "net_wait.h"

/* A barrier of mine on its way. */
struct pass {
    const gin_t *g;
    struct gi_barrier_pool *pool;
    struct gi_barrier_round *round;
    const char *call;
    uint64_t off; /* from index 0's slot */
    uint32_t index;
    uint32_t next; /* flat: nobody before this team rank is missing */
    int failed;    /* network: status of a step that could not be done */
};

static inline uint64_t *word(char *slot, uint64_t off)
{
    return (uint64_t *)(void *)(slot + off);
}

/* ---- who takes part ---- */

/* Which one, as people say it. */
static const char *barrier_name(const struct gi_barrier_pool *p, gin_barrier_t which, char text[48])
{
    if (which.kind == GIN_BARRIER_TEAM)
        snprintf(text, 48, "barrier team_barriers[%" PRIu32 "]", which.place);
    else
        snprintf(text, 48, "the %s barrier", p->name);
    return text;
}

static int refuse_pool(const gin_t *g, const struct gi_barrier_pool *p, gin_barrier_t which,
                       uint32_t index, const char *call)
{
    const gin_comm_t *comm = gi_comm_of(g);
    char name[48];
    if (p == NULL && which.kind > GIN_BARRIER_TEAM)
        return gi_fail(GIN_EINVAL, "%s: barrier of kind %" PRIu32, call, which.kind);
    if (p == NULL)
        return gi_fail(GIN_EINVAL, "%s: place %" PRIu32 " of team_barriers, there are %" PRIu32,
                       call, which.place, gi_devcomm_of(g)->barriers->n_teams);
    if (index >= p->count)
        return gi_fail(GIN_ERANGE,
                       "%s: index %" PRIu32 " of %s is out of range, there are %" PRIu32
                       "; ask gin_devcomm_create() for more",
                       call, index, barrier_name(p, which, name), p->count);
    if (p->n == 0)
        return gi_fail(GIN_ESTATE, "%s: rank %d is no member of the team of %s", call, comm->rank,
                       barrier_name(p, which, name));
    return gi_fail(GIN_ENOTSUP,
                   "%s: %s barrier: rank %d (host %s) is not load/store accessible from rank %d "
                   "(host %s), and there is no network: %s",
                   call, p->name, p->beyond, comm->cards[p->beyond].host_id, comm->rank,
                   comm->cards[comm->rank].host_id, gi_net_why(comm));
}

static inline struct gi_barrier_pool *pool_of(struct gi_barriers *b, gin_barrier_t which)
{
    if (GIN_LIKELY(which.kind < GIN_BARRIER_TEAM))
        return &b->fixed[which.kind];
    return which.kind == GIN_BARRIER_TEAM && which.place < b->n_teams ? &b->teams[which.place]
                                                                      : NULL;
}

/* All checks; on success this thread is inside and has to leave(). */
static inline int enter(struct pass *b, gin_group_t grp, gin_barrier_t which, gin_order_t order)
{
    int st = gi_op_enter(b->g, grp, 1, b->call);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    struct gi_barrier_pool *p = pool_of(gi_devcomm_of(b->g)->barriers, which);
    if (GIN_UNLIKELY(p == NULL || b->index >= p->count || p->n == 0 ||
                     (p->beyond >= 0 && p->steps == 0)))
        return refuse_pool(b->g, p, which, b->index, b->call);
    if (GIN_UNLIKELY((unsigned)order > GIN_ORDER_ACQ_REL))
        return gi_fail(GIN_EINVAL, "%s: order %u", b->call, (unsigned)order);
    b->pool = p;
    b->round = &p->rounds[b->index];
    b->off = b->index * p->slot;
    if (GIN_UNLIKELY(__atomic_exchange_n(&b->round->busy, 1, __ATOMIC_ACQUIRE) != 0))
        return gi_fail(GIN_ESTATE,
                       "%s: another thread is in %s barrier %" PRIu32
                       "; give each thread an index of its own",
                       b->call, p->name, b->index);
    return GIN_OK;
}

static inline void leave(struct pass *b)
{
    __atomic_store_n(&b->round->busy, 0, __ATOMIC_RELEASE);
}

/* ---- arriving ---- */

static void climb(const struct gi_barrier_pool *p, uint64_t off, uint64_t epoch)
{
    /* for the names in a text only: my line, which nobody polls */
    GIN_STORE_RELAXED(word(p->mine + GI_LINE_ARRIVED * GI_BARRIER_LINE, off), epoch);
    for (uint32_t l = 0; l < p->levels; l++)
        if (GIN_ADD(word(p->step[l].counter, off), 1) + 1 != epoch * p->step[l].full)
            return;
    for (uint32_t r = 0; r < p->n; r += GI_BARRIER_GROUP)
        GIN_STORE_RELEASE(word(p->peers[r] + GI_LINE_RELEASE * GI_BARRIER_LINE, off), epoch);
}

static inline void arrive(struct pass *b)
{
    const struct gi_barrier_pool *p = b->pool;
    uint64_t epoch = ++b->round->epoch;
    if (GIN_UNLIKELY(p->steps != 0)) {
        b->round->step = b->round->sent = 0; /* waiting does the rest */
        return;
    }
    if (GIN_UNLIKELY(p->levels != 0)) {
        climb(p, b->off, epoch);
        return;
    }
    /* from my right-hand neighbour on, so that not all start at the same line */
    for (uint32_t r = p->me + 1; r < p->n; r++)
        GIN_STORE_RELEASE(word(p->peers[r], b->off) + p->me, epoch);
    for (uint32_t r = 0; r < p->me; r++)
        GIN_STORE_RELEASE(word(p->peers[r], b->off) + p->me, epoch);
}

/* ---- waiting ---- */

/* A peer's word may be a round ahead of mine, never behind one that I finished. */
static inline int behind(const uint64_t *w, uint64_t epoch)
{
    return GIN_LOAD_ACQUIRE(w) < epoch;
}

static inline int complete(struct pass *b)
{
    const struct gi_barrier_pool *p = b->pool;
    uint64_t epoch = b->round->epoch;
    if (GIN_UNLIKELY(p->steps != 0)) {
        struct gi_devcomm *d = gi_devcomm_of(b->g);
        int r = gi_barrier_net_step(d, p, b->round, b->off);
        b->failed = r < 0 ? r : GIN_OK;
        if (r == 0)
            gi_net_drive(d->comm, d->net[d->reqs.contexts]);
        return r != 0;
    }
    if (GIN_UNLIKELY(p->levels != 0))
        return !behind(word(p->release, b->off), epoch);
    const uint64_t *inbox = word(p->mine, b->off);
    for (; b->next < p->n; b->next++)
        if (b->next != p->me && behind(&inbox[b->next], epoch))
            return 0;
    return 1;
}

static int is_missing(const struct pass *b, uint32_t r)
{
    const struct gi_barrier_pool *p = b->pool;
    if (r == p->me)
        return 0;
    if (p->steps != 0)
        return r == gi_barrier_net_awaited(p, b->round);
    if (p->levels == 0)
        return behind(word(p->mine, b->off) + r, b->round->epoch);
    return behind(word(p->peers[r] + GI_LINE_ARRIVED * GI_BARRIER_LINE, b->off), b->round->epoch);
}

/* World rank of the first one that is missing; my own where none is. */
static int first_missing(const struct pass *b)
{
    uint32_t r = 0;
    while (r < b->pool->n && !is_missing(b, r))
        r++;
    return b->pool->world_of[r < b->pool->n ? r : b->pool->me];
}

static int late(const struct pass *b, uint64_t ns)
{
    char who[120] = "";
    size_t len = 0;
    uint32_t missing = 0;
    for (uint32_t r = 0; r < b->pool->n; r++) {
        if (!is_missing(b, r))
            continue;
        if (len + 14 < sizeof(who))
            len += (size_t)snprintf(who + len, sizeof(who) - len, " %d", b->pool->world_of[r]);
        missing++;
    }
    return gi_fail(GIN_ETIMEDOUT,
                   "%s: %s barrier %" PRIu32 ", round %" PRIu64 ": %" PRIu32 " of %" PRIu32
                   " ranks have not arrived after %.3f s:%s; the arrival stands, call again to go "
                   "on waiting",
                   b->call, b->pool->name, b->index, b->round->epoch, missing, b->pool->n,
                   (double)ns * 1e-9, who);
}

/* A barrier is its members' alone: the death of another rank does not end it. */
static int members_live(void *arg)
{
    const struct pass *b = arg;
    gin_comm_t *comm = gi_comm_of(b->g);
    int st = gi_comm_whole(comm);
    if (st != GIN_OK || gi_comm_status_quiet(comm) == GIN_OK)
        return st;
    for (uint32_t r = 0; r < b->pool->n; r++) /* rather the first one that died */
        if (b->pool->world_of[r] == comm->status_rank)
            return gi_comm_rank_health(comm, comm->status_rank);
    for (uint32_t r = 0; r < b->pool->n && st == GIN_OK; r++)
        st = gi_comm_rank_health(comm, b->pool->world_of[r]);
    return st;
}

/* A rank whose failure on the network does not keep this barrier. */
static bool is_no_member(const void *arg, int rank)
{
    const struct gi_barrier_pool *p = arg;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->world_of[i] == rank)
            return false;
    return true;
}

/* The barriers' context on the network, for those that go over it. */
static struct gi_core_ctx *context_of(const struct pass *b)
{
    const struct gi_devcomm *d = gi_devcomm_of(b->g);
    return b->pool->steps != 0 ? d->net[d->reqs.contexts] : NULL;
}

/* Only the barrier's members end its waits. */
static void members_alone(struct gi_net_wait *n, const struct pass *b)
{
    n->health = members_live;
    n->health_arg = (void *)(uintptr_t)b;
    n->ignores = is_no_member;
    n->arg = b->pool;
}

static int wait_long(struct pass *b, uint64_t timeout_ns)
{
    gin_comm_t *comm = gi_comm_of(b->g);
    struct gi_net_wait n;
    int st = GIN_OK;
    atomic_fetch_add_explicit(&comm->n_waits, 1, memory_order_relaxed);
    gi_net_wait_begin(&n, comm, context_of(b), timeout_ns, b->pool->what);
    members_alone(&n, b);
    n.w.detail[0] = b->index;
    n.w.detail[1] = b->round->epoch;
    while (!complete(b)) {
        if (n.w.steps % 64 == 0)
            n.w.detail[2] = (uint64_t)first_missing(b);
        st = gi_net_wait_step(&n);
        if (st != GIN_OK)
            break;
    }
    gi_net_wait_end(&n);
    if (st == GIN_OK || complete(b))
        return GIN_OK;
    if (st == GIN_ETIMEDOUT)
        return late(b, timeout_ns);
    return gi_fail_context("%s: %s barrier %" PRIu32, b->call, b->pool->name, b->index);
}

/* One look of a program that polls has found somebody missing. */
static int not_yet(const struct pass *b)
{
    struct gi_net_wait n = gi_net_look(gi_comm_of(b->g), context_of(b));
    members_alone(&n, b);
    int st = gi_net_failed(&n);
    return GIN_LIKELY(st == GIN_OK)
               ? GIN_EAGAIN
               : gi_fail_context("%s: %s barrier %" PRIu32, b->call, b->pool->name, b->index);
}

/* Until all have arrived in my round: look, give the core away where ranks share it, wait. */
static inline int finish(struct pass *b, const gin_wait_opt_t *opt)
{
    const struct gi_devcomm *d = gi_devcomm_of(b->g);
    uint32_t spin = b->pool->steps != 0 ? gi_net_spin(d->comm) : d->comm->spin;
    int st = GIN_OK;
    b->next = 0;
    while (!complete(b)) {
        if (spin-- == 0 || (opt != NULL && opt->poll))
            break;
        GIN_PAUSE(); /* polling without it keeps taking the line from its writers */
    }
    if (GIN_UNLIKELY(!complete(b))) {
        if (opt != NULL && opt->poll)
            return not_yet(b);
        uint64_t ns = opt != NULL && opt->timeout_ns != 0 ? opt->timeout_ns : d->barrier_timeout_ns;
        int yields = ns == 0 ? GI_WAIT_QUICK_YIELDS : 0;
        while (yields-- > 0 && !complete(b))
            gi_os_yield();
        if (!complete(b))
            st = wait_long(b, ns);
    }
    if (GIN_UNLIKELY(b->failed != GIN_OK))
        return b->failed;
    if (GIN_LIKELY(st == GIN_OK))
        b->round->done = b->round->epoch;
    return st;
}

/* ---- the calls ---- */

/* Puts are at their targets, gets here, before I arrive. */
static int fence_net(const gin_t *g, unsigned fence, const gin_wait_opt_t *opt)
{
    if (fence == GIN_FENCE_ALL || (fence & GIN_FENCE_PUT))
        return gi_net_complete(g, -1, GIN_I_QUIET, opt, "gin_barrier");
    return fence & GIN_FENCE_GET ? gi_net_complete(g, -1, GIN_I_FLUSH, opt, "gin_barrier") : GIN_OK;
}

int gin_i_barrier(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                  gin_order_t order, unsigned fence, const gin_wait_opt_t *opt)
{
    struct pass b = {.g = g, .call = "gin_barrier", .index = index};
    if (GIN_UNLIKELY(fence > GIN_FENCE_NONE))
        return gi_fail(GIN_EINVAL, "gin_barrier: fence 0x%x", fence);
    int st = enter(&b, grp, which, order);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    /* got bytes are here when the get returns: loads that the acquire below orders */
    if (fence == GIN_FENCE_ALL || (fence & GIN_FENCE_PUT))
        GIN_FENCE_SEQ_CST();
    if (GIN_UNLIKELY(g->flags & GIN_I_DC_NET))
        st = fence_net(g, fence, opt);
    if (GIN_LIKELY(st == GIN_OK && b.round->epoch == b.round->done))
        arrive(&b);
    if (GIN_LIKELY(st == GIN_OK))
        st = finish(&b, opt);
    leave(&b);
    return st;
}

int gin_i_lsa_arrive(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order)
{
    struct pass b = {.g = g, .call = "gin_lsa_arrive", .index = index};
    int st = enter(&b, grp, gin_barrier_lsa(), order);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_LIKELY(b.round->epoch == b.round->done))
        arrive(&b);
    else
        st = gi_fail(GIN_ESTATE,
                     "gin_lsa_arrive: LSA barrier %" PRIu32
                     ": arrived already; call gin_lsa_wait() first",
                     index);
    leave(&b);
    return st;
}

int gin_i_lsa_wait(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order,
                   const gin_wait_opt_t *opt)
{
    struct pass b = {.g = g, .call = "gin_lsa_wait", .index = index};
    int st = enter(&b, grp, gin_barrier_lsa(), order);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (GIN_LIKELY(b.round->epoch != b.round->done))
        st = finish(&b, opt);
    else
        st = gi_fail(GIN_ESTATE,
                     "gin_lsa_wait: LSA barrier %" PRIu32
                     ": not arrived; call gin_lsa_arrive() first",
                     index);
    leave(&b);
    return st;
}
