/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of pairs. The i-th one of a pair goes to place i mod GI_COLL_SLOTS at its receiver, who
 * gives it back by telling how many it has taken: along with a message of its own where there is
 * one, else in a word, once half of the places wait for that.
 *
 * By load and store a message is a line with its number, stored last, and its bytes in that line or
 * in the slot behind it; or it says where in the sender's heap they are. Over the network it is a
 * put into the slot with a weak signal on a cell of the place's own, so that no two messages need
 * any order: its lowest bits count messages, the others those told as taken. Values are small,
 * so that they can ride along in an immediate.
 *
 * Who fails between the others is out of step with them for good, and says so in its word at each.
 */
#include <string.h>

#include "coll/coll.h"
#include "net_int.h"
#include "net_wait.h"

#define GIVEN_UP  UINT64_MAX     /* in a word */
#define UNMATCHED (GIVEN_UP - 1) /* likewise, because of teams */
#define TOLD      16             /* in a cell: bits below what is told */
#define TELL_NS   500000000u     /* for telling all that the index is given up */

static inline int world_of(const struct gi_coll_call *o, int r)
{
    return o->p->world[r];
}

static inline struct gi_coll_line *line_of(const struct gi_coll *c, char *block, int sender,
                                           uint64_t k)
{
    return (struct gi_coll_line *)(void *)block + c->cells + (uint64_t)sender * GI_COLL_SLOTS + k;
}

static inline uint64_t slot_at(const struct gi_colls *a, const struct gi_coll *c, int sender,
                               uint64_t k)
{
    return c->rest + a->slots_at + ((uint64_t)sender * GI_COLL_SLOTS + k) * a->slot;
}

static inline uint64_t *word_of(const struct gi_coll *c, char *block, int taker)
{
    return (uint64_t *)(void *)(block + c->rest) + taker;
}

static inline bool is_given_up(uint64_t word)
{
    return word >= UNMATCHED;
}

static inline struct gi_core_ctx *net_of(const struct gi_coll_call *o)
{
    const struct gi_devcomm *d = o->all->d;
    return d->net[d->reqs.contexts];
}

/* ---- what has come, over the network ---- */

/* Messages of the first `got` ones that went to place k. */
static inline uint64_t of_place(uint64_t got, uint64_t k)
{
    return (got + GI_COLL_SLOTS - 1 - k) / GI_COLL_SLOTS;
}

/* Split a cell: messages to its place beyond those got; and what it tells as taken. */
static inline uint16_t cell_split(const struct gi_coll *c, const struct gi_coll_link *l, int sender,
                                  uint64_t k, uint32_t *taken)
{
    const struct gin_i_cells *cell = (const void *)line_of(c, c->mine, sender, k);
    uint64_t v = GIN_LOAD_ACQUIRE(&cell->cpu) + GIN_LOAD_ACQUIRE(&cell->net);
    uint64_t known = of_place(l->got, k);
    uint16_t more = (uint16_t)(v - known);
    *taken = (uint32_t)((v - known - more) >> TOLD);
    return more;
}

static void hear_net(const struct gi_coll *c, struct gi_coll_link *l, int w)
{
    uint32_t sum = 0, taken;
    for (uint64_t k = 0; k < GI_COLL_SLOTS; k++) {
        cell_split(c, l, w, k, &taken);
        sum += taken;
    }
    l->taken += (uint32_t)(sum - (uint32_t)l->taken);
}

/* ---- what is waited for ---- */

static int has_come(struct gi_coll_call *o, int w)
{
    const struct gi_coll_link *l = &o->c->links[w];
    uint64_t k = l->got % GI_COLL_SLOTS;
    uint32_t taken;
    if (GIN_LIKELY(l->peer != NULL))
        return GIN_LOAD_ACQUIRE(&line_of(o->c, o->c->mine, w, k)->seq) == l->got + 1;
    return cell_split(o->c, l, w, k, &taken) != 0;
}

/* Learn how many of my messages were taken: from the word, and from messages not yet got. */
static void hear_near(const struct gi_coll *c, struct gi_coll_link *l, int w)
{
    uint64_t taken = GIN_LOAD_ACQUIRE(word_of(c, c->mine, w));
    taken = is_given_up(taken) ? 0 : taken;
    for (uint64_t i = l->got; i < l->got + GI_COLL_SLOTS; i++) {
        const struct gi_coll_line *line = line_of(c, c->mine, w, i % GI_COLL_SLOTS);
        if (GIN_LOAD_ACQUIRE(&line->seq) != i + 1)
            break;
        taken = line->taken > taken ? line->taken : taken;
    }
    l->taken = taken > l->taken ? taken : l->taken;
}

static int has_taken(struct gi_coll_call *o, int w, uint64_t least)
{
    struct gi_coll_link *l = &o->c->links[w];
    if (l->taken >= least)
        return 1;
    if (l->peer != NULL)
        hear_near(o->c, l, w);
    else
        hear_net(o->c, l, w);
    return l->taken >= least;
}

static int has_room(struct gi_coll_call *o, int w, uint64_t unused)
{
    (void)unused;
    const struct gi_coll_link *l = &o->c->links[w];
    return has_taken(o, w, l->sent < GI_COLL_SLOTS ? 0 : l->sent + 1 - GI_COLL_SLOTS);
}

static int is_come(struct gi_coll_call *o, int w, uint64_t unused)
{
    (void)unused;
    return has_come(o, w);
}

static int is_out(struct gi_coll_call *o, int w, uint64_t i)
{
    (void)w;
    return GIN_LOAD_ACQUIRE(&o->c->out[i].under_way) == 0;
}

typedef int (*ready_fn)(struct gi_coll_call *o, int w, uint64_t arg);

/* ---- waiting ---- */

/* A rank whose failure on the network does not keep this call. */
static bool is_no_member(const void *arg, int rank)
{
    const struct gi_coll_call *o = arg;
    for (int r = 0; r < o->p->n; r++)
        if (o->p->world[r] == rank)
            return false;
    return true;
}

/* A member has left a call in the middle, perhaps because of a rank that died there. */
static int gave_up(const struct gi_coll_call *o, int w)
{
    int st = gi_comm_health(o->all->d->comm);
    if (st != GIN_OK)
        return st;
    if (GIN_LOAD_ACQUIRE(word_of(o->c, o->c->mine, w)) == UNMATCHED)
        return gi_fail(GIN_EMISMATCH,
                       "rank %d was refused its team, or has met one of other members, in this "
                       "call or before, and given it up",
                       w);
    return gi_fail(GIN_EPEER, "rank %d has failed in this call or before and given it up", w);
}

/* It is its members' alone: the death of another rank does not end it. */
static int members_live(void *arg)
{
    const struct gi_coll_call *o = arg;
    gin_comm_t *comm = o->all->d->comm;
    int st = gi_comm_whole(comm);
    if (st == GIN_OK && gi_comm_status_quiet(comm) != GIN_OK) {
        if (!is_no_member(o, comm->status_rank)) /* the first one that died */
            return gi_comm_rank_health(comm, comm->status_rank);
        for (int r = 0; r < o->p->n && st == GIN_OK; r++)
            st = gi_comm_rank_health(comm, o->p->world[r]);
    }
    for (int r = 0; r < o->p->n && st == GIN_OK; r++)
        if (r != o->p->me &&
            is_given_up(GIN_LOAD_ACQUIRE(word_of(o->c, o->c->mine, o->p->world[r]))))
            st = gave_up(o, o->p->world[r]);
    return st;
}

static int wait_long(struct gi_coll_call *o, int w, ready_fn ready, uint64_t arg)
{
    struct gi_devcomm *d = o->all->d;
    struct gi_net_wait n;
    int st = GIN_OK;
    atomic_fetch_add_explicit(&d->comm->n_waits, 1, memory_order_relaxed);
    gi_net_wait_begin(&n, d->comm, d->net != NULL ? net_of(o) : NULL, o->all->timeout_ns,
                      "collective #, where rank # has not come");
    n.health = members_live;
    n.health_arg = o;
    n.ignores = is_no_member;
    n.arg = o;
    n.w.detail[0] = o->index;
    n.w.detail[1] = (uint64_t)w;
    while (!ready(o, w, arg) && (st = gi_net_wait_step(&n)) == GIN_OK)
        ;
    gi_net_wait_end(&n);
    if (st == GIN_OK || ready(o, w, arg))
        return GIN_OK;
    if (st == GIN_ETIMEDOUT)
        return gi_fail(
            st,
            "%s: collective %u: rank %d has not come after %.3f s (GINSHMEM_COLL_TIMEOUT, "
            "collective_timeout_ns); do all members make the call?",
            o->name, o->index, w, (double)o->all->timeout_ns * 1e-9);
    return gi_fail_context("%s: collective %u", o->name, o->index);
}

/* Until it is ready: look, give the core away where ranks share it, wait. */
static int await_slow(struct gi_coll_call *o, int w, ready_fn ready, uint64_t arg)
{
    const struct gi_devcomm *d = o->all->d;
    bool net = d->net != NULL;
    uint32_t spin = net && d->comm->spin > 64 ? 64 : d->comm->spin;
    while (spin-- != 0) {
        GIN_PAUSE();
        if (ready(o, w, arg))
            return GIN_OK;
        if (net)
            gi_net_drive(d->comm, net_of(o));
    }
    for (int yields = GI_WAIT_QUICK_YIELDS; yields-- > 0;) {
        if (ready(o, w, arg))
            return GIN_OK;
        if (net)
            gi_net_drive(d->comm, net_of(o));
        gi_os_yield();
    }
    return wait_long(o, w, ready, arg);
}

static inline int await(struct gi_coll_call *o, int w, ready_fn ready, uint64_t arg)
{
    return GIN_LIKELY(ready(o, w, arg)) ? GIN_OK : await_slow(o, w, ready, arg);
}

/* ---- posting to the network ---- */

struct posting {
    struct gi_core_put *put;
    int status;
};

static int post(struct gi_coll_call *o, int w, struct gi_core_put *p)
{
    struct gi_core_ctx *ctx = net_of(o);
    gi_core_enter(ctx);
    int st = gi_core_put(ctx, w, p);
    gi_core_leave(ctx);
    return st;
}

/* Until the network has taken it, or refused it. */
static int is_posted(struct gi_coll_call *o, int w, uint64_t arg)
{
    struct posting *x = (struct posting *)(uintptr_t)arg;
    if (x->status == GIN_EAGAIN)
        x->status = post(o, w, x->put);
    return x->status != GIN_EAGAIN;
}

static int post_all(struct gi_coll_call *o, int w, struct gi_core_put *p)
{
    struct posting x = {.put = p, .status = GIN_EAGAIN};
    int st = await(o, w, is_posted, (uint64_t)(uintptr_t)&x);
    if (GIN_UNLIKELY(st == GIN_OK && x.status != GIN_OK))
        return gi_net_failure(NULL, net_of(o), w, x.status, o->name);
    return st;
}

/* What I have taken of a rank's messages, in a signal's value. */
static uint64_t tell(struct gi_coll_link *l)
{
    uint64_t more = l->got - l->told;
    l->told = l->got;
    return more << TOLD;
}

static struct gi_core_action signal_of(const struct gi_coll_call *o, uint64_t k, uint64_t value)
{
    uint32_t me = (uint32_t)o->all->d->comm->rank;
    return (struct gi_core_action){.kind = GI_CORE_SLOT_ADD,
                                   .id = o->c->cells + me * GI_COLL_SLOTS + (uint32_t)k,
                                   .value = value};
}

/* By whoever drives the context. A failure is that of the rank it was for, and whoever sends to it
 * next hears of it; other teams' messages need the place. */
static void let_go(struct gi_core_notice *n, int status)
{
    (void)status;
    GIN_STORE_RELEASE(&((struct gi_coll_out *)(void *)n)->under_way, 0u);
}

/* Bytes beyond what the core copies are on their way from a place of mine. */
static int stage(struct gi_coll_call *o, int w, struct gi_core_put *p)
{
    struct gi_coll *c = o->c;
    gin_comm_t *comm = o->all->d->comm;
    uint32_t i = c->next_out;
    int st = await(o, c->out[i].to, is_out, i); /* who keeps it may be another one than w */
    if (st != GIN_OK)
        return st;
    char *at = c->mine + c->rest + o->all->out_at + i * o->all->slot;
    memcpy(at, p->src, p->bytes);
    st = gi_net_mine(comm, false, at, p->bytes, NULL, &p->region);
    if (st != GIN_OK)
        return gi_fail_context("%s", o->name);
    p->src = at;
    p->notice = &c->out[i].notice;
    c->out[i] = (struct gi_coll_out){.notice.fn = let_go, .under_way = 1, .to = w};
    c->next_out = (i + 1) % GI_COLL_OUT;
    st = post_all(o, w, p);
    if (st != GIN_OK)
        c->out[i].under_way = 0;
    return st;
}

static int send_net(struct gi_coll_call *o, int w, const void *bytes, size_t n)
{
    struct gi_coll *c = o->c;
    struct gi_coll_link *l = &c->links[w];
    uint64_t k = l->sent % GI_COLL_SLOTS;
    gin_comm_t *comm = o->all->d->comm;
    struct gi_core_put p = {
        .window = gin_i_desc_window(gin_heap_window(comm, GIN_KIND_HOST)),
        .off = o->all->off + slot_at(o->all, c, comm->rank, k),
        .src = bytes,
        .bytes = n,
        .action = signal_of(o, k, 1 | tell(l)),
        .copy = n <= GI_CORE_COPY,
    };
    l->sent++;
    return p.copy ? post_all(o, w, &p) : stage(o, w, &p);
}

static int tell_net(struct gi_coll_call *o, int w)
{
    struct gi_core_put p = {.action = signal_of(o, 0, tell(&o->c->links[w]))};
    return post_all(o, w, &p);
}

/* ---- messages ---- */

static inline int make_room(struct gi_coll_call *o, int w)
{
    const struct gi_coll_link *l = &o->c->links[w];
    if (GIN_LIKELY(l->sent - l->taken < GI_COLL_SLOTS))
        return GIN_OK;
    return await(o, w, has_room, 0);
}

static void show(struct gi_coll_link *l, struct gi_coll_line *line, uint64_t ref)
{
    line->taken = l->told = l->got;
    line->ref = ref;
    GIN_STORE_RELEASE(&line->seq, ++l->sent);
}

int gi_coll_send(struct gi_coll_call *o, int to, const void *bytes, size_t n)
{
    struct gi_coll *c = o->c;
    int w = world_of(o, to), me = o->all->d->comm->rank;
    struct gi_coll_link *l = &c->links[w];
    int st = make_room(o, w);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (l->peer == NULL)
        return send_net(o, w, bytes, n);
    uint64_t k = l->sent % GI_COLL_SLOTS;
    struct gi_coll_line *line = line_of(c, l->peer, me, k);
    if (n > 0 && n <= GI_COLL_INLINE)
        memcpy(line->data, bytes, n);
    else if (n > 0)
        memcpy(l->peer + slot_at(o->all, c, me, k), bytes, n);
    show(l, line, 0);
    return GIN_OK;
}

bool gi_coll_can_refer(const struct gi_coll_call *o, int to, const void *p, size_t n)
{
    const gin_comm_t *comm = o->all->d->comm;
    const char *heap = (const char *)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL;
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)heap);
    return n >= GI_COLL_REF && o->c->links[world_of(o, to)].peer != NULL &&
           off < GIN_LOAD_RELAXED(&o->all->d->dc->heap->size);
}

int gi_coll_refer(struct gi_coll_call *o, int to, const void *bytes)
{
    const gin_comm_t *comm = o->all->d->comm;
    const char *heap = (const char *)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL;
    int w = world_of(o, to);
    struct gi_coll_link *l = &o->c->links[w];
    int st = make_room(o, w);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    show(l, line_of(o->c, l->peer, comm->rank, l->sent % GI_COLL_SLOTS),
         1 + (uint64_t)((const char *)bytes - heap));
    l->referred = l->sent;
    return GIN_OK;
}

int gi_coll_settle(struct gi_coll_call *o, int to)
{
    int w = world_of(o, to);
    const struct gi_coll_link *l = &o->c->links[w];
    return await(o, w, has_taken, l->referred);
}

int gi_coll_recv(struct gi_coll_call *o, int from, size_t n, const void **bytes, bool *whole)
{
    struct gi_coll *c = o->c;
    int w = world_of(o, from);
    struct gi_coll_link *l = &c->links[w];
    int st = await(o, w, is_come, 0);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    uint64_t k = l->got % GI_COLL_SLOTS;
    const struct gi_coll_line *line = line_of(c, c->mine, w, k);
    *bytes = c->mine + slot_at(o->all, c, w, k);
    *whole = false;
    if (l->peer == NULL)
        return GIN_OK;
    if (line->taken > l->taken)
        l->taken = line->taken;
    if (line->ref != 0) {
        *bytes = l->heap + (line->ref - 1);
        *whole = true;
    } else if (n <= GI_COLL_INLINE) {
        *bytes = line->data;
    }
    return GIN_OK;
}

/* Bytes that were read where they lie are those that were sent, unless their rank has left the call
 * meanwhile and written there. */
static int was_in_time(const struct gi_coll_call *o, int w)
{
    GIN_FENCE_ACQUIRE();
    if (GIN_LIKELY(!is_given_up(GIN_LOAD_RELAXED(word_of(o->c, o->c->mine, w)))))
        return GIN_OK;
    (void)gave_up(o, w);
    return gi_fail_context("%s: collective %u", o->name, o->index);
}

int gi_coll_took(struct gi_coll_call *o, int from, bool whole)
{
    int w = world_of(o, from);
    struct gi_coll_link *l = &o->c->links[w];
    int st = whole ? was_in_time(o, w) : GIN_OK;
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    l->got++;
    if (!whole && l->got - l->told < GI_COLL_SLOTS / 2)
        return GIN_OK;
    if (l->peer == NULL)
        return tell_net(o, w);
    l->told = l->got;
    GIN_STORE_RELEASE(word_of(o->c, l->peer, o->all->d->comm->rank), l->got);
    return GIN_OK;
}

/* While the context has no room, until `deadline`: who does not hear of it finds out when its time
 * is up. */
static void tell_end(struct gi_coll_call *o, int w, struct gi_core_put *p, uint64_t deadline)
{
    const char *text;
    while (gi_core_peer_status(net_of(o), w, &text) == GIN_OK && post(o, w, p) == GIN_EAGAIN &&
           gi_now_ns() < deadline) {
        gi_net_drive(o->all->d->comm, net_of(o));
        gi_os_yield();
    }
}

void gi_coll_give_up(struct gi_coll_call *o, int status)
{
    struct gi_devcomm *d = o->all->d;
    int me = d->comm->rank;
    uint64_t word = status == GIN_EMISMATCH ? UNMATCHED : GIVEN_UP;
    uint64_t deadline = gi_deadline_in(TELL_NS);
    for (int w = 0; w < d->comm->size; w++) {
        struct gi_coll_link *l = &o->c->links[w];
        struct gi_core_put p = {
            .action = {.kind = GI_CORE_WORD_SET,
                       .id = gin_i_desc_window(gin_heap_window(d->comm, GIN_KIND_HOST)),
                       .off = o->all->off + o->c->rest + (uint64_t)me * sizeof(uint64_t),
                       .value = word}};
        if (w == me)
            continue;
        if (l->peer != NULL)
            GIN_STORE_RELEASE(word_of(o->c, l->peer, me), word);
        else if (gi_coll_may_cross(d, me, w))
            tell_end(o, w, &p, deadline);
    }
    GIN_FENCE_RELEASE(); /* what the program writes into its source from now on comes after it */
}
