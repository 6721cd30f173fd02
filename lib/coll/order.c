/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways that combine elements in the order of ranks. By way of groups: what all members have is
 * gathered as it is, one message per pair of groups and step, and everybody combines it himself. As
 * a chain: each rank adds its own to what the one before it has, and passes it on, step by step.
 */
#include <string.h>

#include "coll/two.h"

/* Bytes of each member that a step gathers: in two of the three slots of my own. */
static size_t step_of(const struct gi_coll_call *o)
{
    return 2 * o->all->slot / (size_t)o->p->n / o->size * o->size;
}

bool gi_coll_order_fits(const struct gi_coll_call *o)
{
    return step_of(o) != 0;
}

static int last_of(const struct gi_coll_call *o)
{
    switch (o->kind) {
    case GI_COLL_SCAN: return o->p->me;
    case GI_COLL_SCAN_EXCLUSIVE: return o->p->me - 1;
    case GI_COLL_REDUCE: return o->p->me == o->root ? o->p->n - 1 : -1;
    default: return o->p->n - 1;
    }
}

/* to = elements of ranks 0 .. last, k bytes of each, one rank's behind another's. */
static void fold_up_to(const struct gi_coll_call *o, int last, const char *all, char *to, size_t k)
{
    if (last == 0)
        memcpy(to, all, k);
    for (int r = 1; r <= last; r++)
        o->fold(to, r == 1 ? all : to, all + (size_t)r * k, k / o->size);
}

/* A step leaves before any of it is written, so it may be in place. */
int gi_coll_in_order_two(struct gi_coll_call *o)
{
    size_t bytes = o->count * o->size, step = step_of(o);
    int st = GIN_OK, last = last_of(o);
    for (size_t at = 0; at < bytes && st == GIN_OK; at += step) {
        size_t k = gi_coll_rest(bytes, at, step);
        struct gi_coll_call all = *o;
        all.kind = o->kind == GI_COLL_REDUCE ? GI_COLL_GATHER : GI_COLL_ALLGATHER;
        all.src = o->src + at;
        all.dst = o->c->tmp[1];
        all.count = k / o->size;
        all.in_place = false;
        st = all.kind == GI_COLL_GATHER ? gi_coll_gather_two(&all) : gi_coll_allgather_two(&all);
        if (st == GIN_OK && last >= 0)
            fold_up_to(o, last, all.dst, o->dst + at, k);
    }
    if (st == GIN_OK && o->kind == GI_COLL_SCAN_EXCLUSIVE && o->p->me == 0)
        gi_coll_neutral(o->dst, o->count, o->type, o->op);
    return st;
}

/* ---- a chain ---- */

/* One step: what ranks up to mine have. */
static int link_step(struct gi_coll_call *o, size_t at, size_t k)
{
    int me = o->p->me, st = GIN_OK;
    bool exclusive = o->kind == GI_COLL_SCAN_EXCLUSIVE, whole;
    const void *before = NULL;
    const char *mine = o->src + at, *up_to_me = mine;
    char *sum = exclusive ? o->c->tmp[0] : o->dst + at;
    if (me != 0)
        st = gi_coll_recv(o, me - 1, k, &before, &whole);
    if (st != GIN_OK)
        return st;
    if (me != 0) {
        o->fold(sum, before, mine, k / o->size);
        up_to_me = sum;
    }
    if (me + 1 < o->p->n)
        st = gi_coll_send(o, me + 1, up_to_me, k);
    if (st == GIN_OK && me != 0 && exclusive)
        memcpy(o->dst + at, before, k);
    if (st == GIN_OK && me == 0 && !exclusive && o->dst != o->src)
        memcpy(o->dst + at, mine, k);
    return st == GIN_OK && me != 0 ? gi_coll_took(o, me - 1, whole) : st;
}

int gi_coll_run_chain(struct gi_coll_call *o)
{
    size_t bytes = o->count * o->size, slot = o->all->slot;
    int st = GIN_OK;
    for (size_t at = 0; at < bytes && st == GIN_OK; at += slot)
        st = link_step(o, at, gi_coll_rest(bytes, at, slot));
    if (st == GIN_OK && o->kind == GI_COLL_SCAN_EXCLUSIVE && o->p->me == 0)
        gi_coll_neutral(o->dst, o->count, o->type, o->op);
    return st;
}
