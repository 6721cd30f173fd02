/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members exchange with each other directly, and fold in the order of ranks: the same bits whatever
 * the placement. All go through their bytes in the same steps of a slot: in each, everybody sends
 * to all before anything is written, so that working in place needs nothing of its own, and nobody
 * waits for room that depends on himself.
 */
#include <string.h>

#include "coll/coll.h"

/* ---- one step ---- */

static inline bool refers(const struct gi_coll_call *o, const struct gi_coll_moves *m, int r,
                          const struct gi_coll_part *p)
{
    return m->refer && gi_coll_can_refer(o, r, p->at, p->bytes);
}

static int send_all(struct gi_coll_call *o, const struct gi_coll_moves *m, uint64_t at)
{
    int n = o->p->n, me = o->p->me, st = GIN_OK;
    for (int i = 1; i < n && st == GIN_OK; i++) {
        int r = me + i < n ? me + i : me + i - n;
        struct gi_coll_part p = m->out(o, r);
        size_t k = gi_coll_rest(p.bytes, at, o->all->slot);
        if (k == 0)
            continue;
        if (!refers(o, m, r, &p))
            st = gi_coll_send(o, r, p.at + at, k);
        else if (at == 0)
            st = gi_coll_refer(o, r, p.at);
    }
    return st;
}

/* The step's bytes of rank r. */
static int see(struct gi_coll_call *o, int r, uint64_t at, size_t k, const void **bytes)
{
    bool whole = false;
    if (at != 0 && o->c->refs[r] != NULL) {
        *bytes = o->c->refs[r] + at;
        return GIN_OK;
    }
    int st = gi_coll_recv(o, r, k, bytes, &whole);
    o->c->refs[r] = whole ? *bytes : NULL;
    return st;
}

static int seen(struct gi_coll_call *o, int r, uint64_t at, size_t k, size_t bytes)
{
    if (o->c->refs[r] == NULL)
        return gi_coll_took(o, r, false);
    return at + k == bytes ? gi_coll_took(o, r, true) : GIN_OK;
}

static int copy_all(struct gi_coll_call *o, const struct gi_coll_moves *m, uint64_t at)
{
    int n = o->p->n, me = o->p->me, st = GIN_OK;
    const void *bytes;
    struct gi_coll_part p = m->in(o, me);
    size_t k = gi_coll_rest(p.bytes, at, o->all->slot);
    if (k != 0) {
        const char *from = m->out(o, me).at;
        if (p.at != from)
            memcpy(p.at + at, from + at, k);
    }
    for (int i = 1; i < n && st == GIN_OK; i++) {
        int r = me >= i ? me - i : me - i + n; /* who sends to me in its i-th turn */
        p = m->in(o, r);
        k = gi_coll_rest(p.bytes, at, o->all->slot);
        if (k == 0)
            continue;
        st = see(o, r, at, k, &bytes);
        if (st != GIN_OK)
            break;
        memcpy(p.at + at, bytes, k);
        st = seen(o, r, at, k, p.bytes);
    }
    return st;
}

/* Mine, which the sum may overwrite before its turn comes. */
static const void *own(struct gi_coll_call *o, const struct gi_coll_moves *m, uint64_t at, size_t k,
                       const char *acc)
{
    const char *from = m->out(o, o->p->me).at + at;
    if (o->p->me < 2 || from + k <= acc || acc + k <= from)
        return from;
    memcpy(o->c->tmp[0], from, k);
    return o->c->tmp[0];
}

/* All parts that come in are as long as each other, or empty. */
static int fold_all(struct gi_coll_call *o, const struct gi_coll_moves *m, uint64_t at)
{
    int n = o->p->n, me = o->p->me, st = GIN_OK, first = -1;
    const void *mine = NULL, *one = NULL, *bytes = NULL;
    struct gi_coll_part p = m->in(o, me);
    size_t k = gi_coll_rest(p.bytes, at, o->all->slot);
    if (k != 0)
        mine = own(o, m, at, k, p.at + at);
    char *acc = NULL;
    for (int r = 0; r < n && st == GIN_OK; r++) {
        p = m->in(o, r);
        k = gi_coll_rest(p.bytes, at, o->all->slot);
        if (k == 0)
            continue;
        bytes = mine;
        if (r != me)
            st = see(o, r, at, k, &bytes);
        if (st != GIN_OK)
            break;
        if (acc == NULL && one == NULL) { /* is folded with the second one */
            one = bytes;
            first = r;
            continue;
        }
        acc = p.at + at;
        o->fold(acc, one != NULL ? one : acc, bytes, k / o->size);
        if (one != NULL && first != me)
            st = seen(o, first, at, k, p.bytes);
        one = NULL;
        if (st == GIN_OK && r != me)
            st = seen(o, r, at, k, p.bytes);
    }
    if (st != GIN_OK || one == NULL)
        return st;
    p = m->in(o, first); /* the only one */
    k = gi_coll_rest(p.bytes, at, o->all->slot);
    if (p.at + at != (const char *)one)
        memcpy(p.at + at, one, k);
    return first != me ? seen(o, first, at, k, p.bytes) : GIN_OK;
}

static uint64_t longest(const struct gi_coll_call *o, const struct gi_coll_moves *m)
{
    size_t most = 0;
    for (int r = 0; r < o->p->n; r++) {
        size_t out = m->out(o, r).bytes, in = m->in(o, r).bytes;
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    return most;
}

int gi_coll_exchange(struct gi_coll_call *o, const struct gi_coll_moves *m)
{
    uint64_t most = longest(o, m), slot = o->all->slot;
    int st = GIN_OK;
    for (uint64_t at = 0; at < most && st == GIN_OK; at += slot) {
        st = send_all(o, m, at);
        if (st == GIN_OK)
            st = m->fold ? fold_all(o, m, at) : copy_all(o, m, at);
    }
    for (int r = 0; r < o->p->n && st == GIN_OK; r++) {
        struct gi_coll_part p = m->out(o, r);
        if (r != o->p->me && refers(o, m, r, &p))
            st = gi_coll_settle(o, r);
    }
    return st;
}

/* ---- who sends what ---- */

size_t gi_coll_share(size_t count, size_t size, int n, int r, size_t *from)
{
    size_t each = count / (size_t)n, more = count % (size_t)n, i = (size_t)r;
    *from = (i * each + (i < more ? i : more)) * size;
    return (each + (i < more)) * size;
}

static struct gi_coll_part part(const void *at, size_t bytes)
{
    return (struct gi_coll_part){(char *)(uintptr_t)at, bytes};
}

static struct gi_coll_part whole_src(const struct gi_coll_call *o, int r)
{
    (void)r;
    return part(o->src, o->count * o->size);
}

static struct gi_coll_part whole_dst(const struct gi_coll_call *o, int r)
{
    (void)r;
    return part(o->dst, o->count * o->size);
}

static struct gi_coll_part block_src(const struct gi_coll_call *o, int r)
{
    size_t bytes = o->count * o->size;
    return part(o->src + (size_t)r * bytes, bytes);
}

static struct gi_coll_part block_dst(const struct gi_coll_call *o, int r)
{
    size_t bytes = o->count * o->size;
    return part(o->dst + (size_t)r * bytes, bytes);
}

/* Of gathering calls: where mine is already, in place. */
static struct gi_coll_part my_block(const struct gi_coll_call *o, int r)
{
    (void)r;
    return o->in_place ? block_src(o, o->p->me) : whole_src(o, r);
}

static struct gi_coll_part to_root(const struct gi_coll_call *o, int r)
{
    bool at_root = o->p->me == o->root;
    return r != o->root ? part(NULL, 0) : at_root ? my_block(o, r) : whole_src(o, r);
}

static struct gi_coll_part to_root_whole(const struct gi_coll_call *o, int r)
{
    return r == o->root ? whole_src(o, r) : part(NULL, 0);
}

static struct gi_coll_part at_root_blocks(const struct gi_coll_call *o, int r)
{
    return o->p->me == o->root ? block_dst(o, r) : part(NULL, 0);
}

static struct gi_coll_part at_root_whole(const struct gi_coll_call *o, int r)
{
    return o->p->me == o->root ? whole_dst(o, r) : part(NULL, 0);
}

static struct gi_coll_part from_root(const struct gi_coll_call *o, int r)
{
    return o->p->me == o->root ? whole_src(o, r) : part(NULL, 0);
}

static struct gi_coll_part of_root(const struct gi_coll_call *o, int r)
{
    return r == o->root ? whole_dst(o, r) : part(NULL, 0);
}

static struct gi_coll_part share_src(const struct gi_coll_call *o, int r)
{
    size_t from, bytes = gi_coll_share(o->count, o->size, o->p->n, r, &from);
    return part(o->src + from, bytes);
}

static struct gi_coll_part share_dst(const struct gi_coll_call *o, int r)
{
    size_t from, bytes = gi_coll_share(o->count, o->size, o->p->n, r, &from);
    return part(o->dst + from, bytes);
}

static struct gi_coll_part my_share(const struct gi_coll_call *o, int r)
{
    (void)r;
    return share_dst(o, o->p->me);
}

static struct gi_coll_part counted(const char *base, size_t size, const size_t *counts,
                                   const size_t *firsts, int r)
{
    size_t first = 0;
    if (firsts != NULL)
        first = firsts[r];
    for (int i = 0; firsts == NULL && i < r; i++)
        first += counts[i];
    return part(base + first * size, counts[r] * size);
}

struct gi_coll_part gi_coll_counted_src(const struct gi_coll_call *o, int r)
{
    return counted(o->src, o->size, o->src_counts, o->src_firsts, r);
}

struct gi_coll_part gi_coll_counted_dst(const struct gi_coll_call *o, int r)
{
    return counted(o->dst, o->size, o->dst_counts, o->dst_firsts, r);
}

/* Ranks get what lower ones have, and their own unless it is exclusive. */
static struct gi_coll_part scan_out(const struct gi_coll_call *o, int r)
{
    return r >= o->p->me ? whole_src(o, r) : part(NULL, 0);
}

static struct gi_coll_part scan_in(const struct gi_coll_call *o, int r)
{
    int last = o->kind == GI_COLL_SCAN ? o->p->me : o->p->me - 1;
    return r <= last ? whole_dst(o, r) : part(NULL, 0);
}

/* ---- the calls ---- */

static int sync_all(struct gi_coll_call *o)
{
    int n = o->p->n, me = o->p->me, st = GIN_OK;
    const void *bytes;
    bool whole;
    GIN_FENCE_SEQ_CST();
    for (int i = 1; i < n && st == GIN_OK; i++)
        st = gi_coll_send(o, (me + i) % n, NULL, 0);
    for (int i = 1; i < n && st == GIN_OK; i++) {
        int r = (me + n - i) % n;
        st = gi_coll_recv(o, r, 0, &bytes, &whole);
        if (st == GIN_OK)
            st = gi_coll_took(o, r, false);
    }
    return st;
}

/* Everybody folds everything, or a share of it that it gives to all. */
static int allreduce(struct gi_coll_call *o)
{
    const struct gi_coll_moves direct = {whole_src, whole_dst, true, !o->in_place};
    const struct gi_coll_moves scatter = {share_src, my_share, true, true};
    const struct gi_coll_moves gather = {my_share, share_dst, false, true};
    if (o->count * o->size <= GI_COLL_DIRECT || o->p->n == 1)
        return gi_coll_exchange(o, &direct);
    int st = gi_coll_exchange(o, &scatter);
    return st == GIN_OK ? gi_coll_exchange(o, &gather) : st;
}

/* Where sources stay as they are in place, too, they are referred to in any case. */
static const struct gi_coll_moves moves[GI_COLL_KINDS] = {
    [GI_COLL_BROADCAST] = {from_root, of_root, false, true},
    [GI_COLL_ALLGATHER] = {my_block, block_dst, false, true},
    [GI_COLL_GATHER] = {to_root, at_root_blocks, false, true},
    [GI_COLL_ALLTOALL] = {block_src, block_dst, false, false},
    [GI_COLL_ALLTOALLV] = {gi_coll_counted_src, gi_coll_counted_dst, false, false},
    [GI_COLL_REDUCE] = {to_root_whole, at_root_whole, true, true},
    [GI_COLL_REDUCE_SCATTER] = {block_src, whole_dst, true, false},
    [GI_COLL_SCAN] = {scan_out, scan_in, true, false},
    [GI_COLL_SCAN_EXCLUSIVE] = {scan_out, scan_in, true, false},
};

int gi_coll_run_flat(struct gi_coll_call *o)
{
    if (o->kind == GI_COLL_SYNC)
        return sync_all(o);
    if (o->kind == GI_COLL_ALLREDUCE)
        return allreduce(o);
    struct gi_coll_moves m = moves[o->kind];
    m.refer = m.refer || !o->in_place;
    int st = gi_coll_exchange(o, &m);
    if (st == GIN_OK && o->kind == GI_COLL_SCAN_EXCLUSIVE && o->p->me == 0)
        gi_coll_neutral(o->dst, o->count, o->type, o->op); /* now that src is sent: in place */
    return st;
}
