/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways of as many rounds as the number of members has bits, for many members: whom I send to in
 * round i is 2^i ranks away, and nobody sends to all.
 */
#include <string.h>

#include "coll/two.h"

static int rank_of(const struct gi_coll_call *o, int v)
{
    return (v + o->root) % o->p->n;
}

/* Everybody hears in round i of twice as many as in the one before. */
static int sync(struct gi_coll_call *o)
{
    int n = o->p->n, me = o->p->me, st = GIN_OK;
    GIN_FENCE_SEQ_CST();
    for (int d = 1; d < n && st == GIN_OK; d *= 2) {
        st = gi_coll_send(o, (me + d) % n, NULL, 0);
        if (st == GIN_OK)
            st = gi_coll_take(o, (me + n - d) % n, NULL, 0);
    }
    return st;
}

/*
 * Of a tree over 0 .. n - 1, the root being 0: the parent is v without its lowest bit; the children
 * are v with one bit below that. The largest subtree comes first.
 */
static int top_bit(int v, int n)
{
    int bit = 1;
    if (v != 0)
        return v & -v;
    while (bit < n)
        bit *= 2;
    return bit;
}

static int to_children(struct gi_coll_call *o, int v, const char *bytes, size_t k)
{
    int st = GIN_OK;
    for (int bit = top_bit(v, o->p->n) / 2; bit != 0 && st == GIN_OK; bit /= 2)
        if (v + bit < o->p->n)
            st = gi_coll_send(o, rank_of(o, v + bit), bytes, k);
    return st;
}

static int broadcast(struct gi_coll_call *o)
{
    size_t bytes = o->count * o->size, slot = o->all->slot;
    int n = o->p->n, v = (o->p->me + n - o->root) % n, st = GIN_OK;
    for (size_t at = 0; at < bytes && st == GIN_OK; at += slot) {
        size_t k = gi_coll_rest(bytes, at, slot);
        if (v != 0)
            st = gi_coll_take(o, rank_of(o, v & (v - 1)), o->dst + at, k);
        if (st == GIN_OK)
            st = to_children(o, v, v != 0 ? o->dst + at : o->src + at, k);
    }
    if (st == GIN_OK && v == 0 && !o->in_place)
        memcpy(o->dst, o->src, bytes);
    return st;
}

/* acc = a op what another rank sends. */
static int fold_next(struct gi_coll_call *o, int from, char *acc, const char *a, size_t k)
{
    const void *bytes;
    bool whole;
    int st = gi_coll_recv(o, from, k, &bytes, &whole);
    if (st != GIN_OK)
        return st;
    o->fold(acc, a, bytes, k / o->size);
    return gi_coll_took(o, from, whole);
}

static int reduce(struct gi_coll_call *o)
{
    size_t bytes = o->count * o->size, slot = o->all->slot;
    int n = o->p->n, v = (o->p->me + n - o->root) % n, st = GIN_OK;
    for (size_t at = 0; at < bytes && st == GIN_OK; at += slot) {
        size_t k = gi_coll_rest(bytes, at, slot);
        char *acc = v == 0 ? o->dst + at : o->c->tmp[0];
        const char *sum = o->src + at;
        for (int bit = 1; bit < top_bit(v, n) && v + bit < n && st == GIN_OK; bit *= 2) {
            st = fold_next(o, rank_of(o, v + bit), acc, sum, k);
            sum = acc;
        }
        if (st == GIN_OK && v != 0)
            st = gi_coll_send(o, rank_of(o, v & (v - 1)), sum, k);
        else if (st == GIN_OK && sum != o->dst + at)
            memcpy(o->dst + at, sum, k);
    }
    return st;
}

/* One step of an allreduce, of acc in place: pairs of ranks a power of two apart exchange all that
 * they have. Ranks beyond the largest power of two are stood in for. */
static int pairs(struct gi_coll_call *o, char *acc, size_t k)
{
    int n = o->p->n, me = o->p->me, all = top_bit(0, n + 1) / 2, st = GIN_OK;
    if (me >= all) {
        st = gi_coll_send(o, me - all, acc, k);
        return st == GIN_OK ? gi_coll_take(o, me - all, acc, k) : st;
    }
    if (me + all < n)
        st = fold_next(o, me + all, acc, acc, k);
    for (int d = 1; d < all && st == GIN_OK; d *= 2) {
        int other = me ^ d;
        const void *bytes;
        bool whole;
        st = gi_coll_send(o, other, acc, k);
        if (st == GIN_OK)
            st = gi_coll_recv(o, other, k, &bytes, &whole);
        if (st != GIN_OK)
            return st;
        /* the same operands in the same places at both */
        o->fold(acc, me < other ? acc : bytes, me < other ? bytes : acc, k / o->size);
        st = gi_coll_took(o, other, whole);
    }
    return st == GIN_OK && me + all < n ? gi_coll_send(o, me + all, acc, k) : st;
}

static int allreduce(struct gi_coll_call *o)
{
    size_t bytes = o->count * o->size, slot = o->all->slot;
    int st = GIN_OK;
    for (size_t at = 0; at < bytes && st == GIN_OK; at += slot) {
        size_t k = gi_coll_rest(bytes, at, slot);
        if (!o->in_place)
            memcpy(o->dst + at, o->src + at, k);
        st = pairs(o, o->dst + at, k);
    }
    return st;
}

int gi_coll_run_tree(struct gi_coll_call *o)
{
    switch (o->kind) {
    case GI_COLL_SYNC: return sync(o);
    case GI_COLL_BROADCAST: return broadcast(o);
    case GI_COLL_REDUCE: return reduce(o);
    default: return allreduce(o);
    }
}
