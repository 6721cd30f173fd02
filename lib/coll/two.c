/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes by way of groups whole: a sync, a broadcast, an allgather. See two.h. */
#include <string.h>

#include "coll/two.h"

int gi_coll_show(struct gi_coll_call *o, int to, const void *bytes, size_t n)
{
    return gi_coll_can_refer(o, to, bytes, n) ? gi_coll_refer(o, to, bytes)
                                              : gi_coll_send(o, to, bytes, n);
}

int gi_coll_settle_group(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    int st = GIN_OK;
    for (int i = 0; i < gi_coll_members(p, p->mine) && st == GIN_OK; i++)
        if (i != p->place)
            st = gi_coll_settle(o, gi_coll_in_group(o, i));
    return st;
}

int gi_coll_take(struct gi_coll_call *o, int from, void *to, size_t n)
{
    const void *bytes;
    bool whole;
    int st = gi_coll_recv(o, from, n, &bytes, &whole);
    if (st != GIN_OK)
        return st;
    if (n != 0)
        memcpy(to, bytes, n);
    return gi_coll_took(o, from, whole);
}

/* ---- sync ---- */

/* The first ones of all groups. */
static int first_ones(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    int st = GIN_OK;
    for (int i = 1; i < p->groups && st == GIN_OK; i++)
        st = gi_coll_send(o, gi_coll_member(p, (p->mine + i) % p->groups, 0), NULL, 0);
    for (int i = 1; i < p->groups && st == GIN_OK; i++)
        st = gi_coll_take(o, gi_coll_member(p, (p->mine + p->groups - i) % p->groups, 0), NULL, 0);
    return st;
}

static int sync(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), st = GIN_OK;
    GIN_FENCE_SEQ_CST();
    if (p->place != 0) {
        st = gi_coll_send(o, gi_coll_in_group(o, 0), NULL, 0);
        return st == GIN_OK ? gi_coll_take(o, gi_coll_in_group(o, 0), NULL, 0) : st;
    }
    for (int i = 1; i < n && st == GIN_OK; i++)
        st = gi_coll_take(o, gi_coll_in_group(o, i), NULL, 0);
    if (st == GIN_OK)
        st = first_ones(o);
    for (int i = 1; i < n && st == GIN_OK; i++)
        st = gi_coll_send(o, gi_coll_in_group(o, i), NULL, 0);
    return st;
}

/* ---- broadcast ---- */

/*
 * Step s goes by lane s mod lanes: from one of the root's group, the root being the first, to one
 * of every other group.
 */
struct cast {
    struct gi_coll_call *o;
    size_t bytes;
    int lanes, home; /* group of the root */
    int root_place;
};

static int carrier(const struct cast *x, int group, uint64_t step)
{
    const struct gi_coll_plan *p = x->o->p;
    int lane = (int)(step % (uint64_t)x->lanes);
    int from = group == x->home ? x->root_place : 0;
    return gi_coll_member(p, group, (from + lane) % gi_coll_members(p, group));
}

/* To my counterparts, if I carry it; and to mine, if it came in by me. */
static int pass(const struct cast *x, uint64_t step, const char *bytes, size_t k)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), st = GIN_OK;
    bool carries = carrier(x, p->mine, step) == p->me;
    if (p->mine == x->home && carries)
        for (int i = 1; i < p->groups && st == GIN_OK; i++)
            st = gi_coll_send(o, carrier(x, (p->mine + i) % p->groups, step), bytes, k);
    if (p->mine == x->home ? p->me == o->root : carries)
        for (int i = 1; i < n && st == GIN_OK; i++)
            st = gi_coll_show(o, gi_coll_in_group(o, (p->place + i) % n), bytes, k);
    return st;
}

static int broadcast(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    struct cast x = {.o = o, .bytes = o->count * o->size, .home = p->group[o->root]};
    uint64_t slot = o->all->slot;
    int st = GIN_OK;
    x.lanes = gi_coll_lanes(o, x.bytes);
    while (gi_coll_member(p, x.home, x.root_place) != o->root)
        x.root_place++;
    for (uint64_t step = 0; step * slot < x.bytes && st == GIN_OK; step++) {
        uint64_t at = step * slot;
        size_t k = gi_coll_rest(x.bytes, at, slot);
        int by = p->mine == x.home ? o->root : carrier(&x, p->mine, step);
        if (p->me == o->root) {
            st = pass(&x, step, o->src + at, k);
            continue;
        }
        if (by == p->me)
            by = carrier(&x, x.home, step);
        st = gi_coll_take(o, by, o->dst + at, k);
        if (st == GIN_OK)
            st = pass(&x, step, o->dst + at, k);
    }
    if (st == GIN_OK && p->me == o->root && !o->in_place)
        memcpy(o->dst, o->src, x.bytes);
    return st == GIN_OK ? gi_coll_settle_group(o) : st;
}

/* ---- allgather ---- */

/*
 * [at, at + k) of a group's blocks, one behind another as its members are, between dst and a
 * message.
 */
static void blocks(const struct gi_coll_call *o, int group, uint64_t at, size_t k, char *message,
                   const char *arrived)
{
    size_t block = o->count * o->size;
    while (k != 0) {
        size_t in = at % block, part = block - in < k ? block - in : k;
        char *mine = o->dst + (size_t)gi_coll_member(o->p, group, (int)(at / block)) * block + in;
        if (message != NULL) {
            memcpy(message, mine, part);
            message += part;
        } else {
            memcpy(mine, arrived, part);
            arrived += part;
        }
        at += part;
        k -= part;
    }
}

static struct gi_coll_part near_out(const struct gi_coll_call *o, int r)
{
    size_t bytes = o->count * o->size;
    struct gi_coll_part p = {(char *)(uintptr_t)o->src, bytes};
    if (o->in_place)
        p.at += (size_t)o->p->me * bytes;
    return o->p->group[r] == o->p->mine ? p : (struct gi_coll_part){NULL, 0};
}

static struct gi_coll_part near_in(const struct gi_coll_call *o, int r)
{
    size_t bytes = o->count * o->size;
    struct gi_coll_part p = {o->dst + (size_t)r * bytes, bytes};
    return o->p->group[r] == o->p->mine ? p : (struct gi_coll_part){NULL, 0};
}

/* The step of another group: by its lane's member of mine to all of mine. */
static int take_blocks(struct gi_coll_call *o, int group, int lane, uint64_t at, size_t k)
{
    const struct gi_coll_plan *p = o->p;
    bool mine = p->place == lane;
    int from = mine ? gi_coll_in_lane(o, group) : gi_coll_in_group(o, lane);
    const void *bytes;
    bool whole;
    int st = gi_coll_recv(o, from, k, &bytes, &whole);
    if (st != GIN_OK)
        return st;
    blocks(o, group, at, k, NULL, bytes);
    for (int i = 1, n = gi_coll_members(p, p->mine); mine && i < n && st == GIN_OK; i++)
        st = gi_coll_send(o, gi_coll_in_group(o, (p->place + i) % n), bytes, k);
    return st == GIN_OK ? gi_coll_took(o, from, whole) : st;
}

/* The longest group's blocks, in steps by lanes in turn: while one is on the wire, the one before
 * it is handed out. */
int gi_coll_allgather_two(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    const struct gi_coll_moves near = {near_out, near_in, false, true};
    size_t block = o->count * o->size, most = block * (size_t)p->most;
    size_t mine = block * (size_t)gi_coll_members(p, p->mine);
    uint64_t lanes = (uint64_t)gi_coll_lanes(o, block * (size_t)p->least), slot = o->all->slot;
    int groups = p->groups, st = gi_coll_exchange(o, &near);
    for (uint64_t step = 0; (step == 0 || (step - 1) * slot < most) && st == GIN_OK; step++) {
        size_t k = gi_coll_rest(mine, step * slot, slot);
        if (k != 0 && (uint64_t)p->place == step % lanes) {
            blocks(o, p->mine, step * slot, k, o->c->tmp[0], NULL);
            for (int i = 1; i < groups && st == GIN_OK; i++)
                st = gi_coll_send(o, gi_coll_in_lane(o, (p->mine + i) % groups), o->c->tmp[0], k);
        }
        for (int i = 1; step != 0 && i < groups && st == GIN_OK; i++) {
            int g = (p->mine + groups - i) % groups;
            uint64_t at = (step - 1) * slot;
            k = gi_coll_rest(block * (size_t)gi_coll_members(p, g), at, slot);
            if (k != 0)
                st = take_blocks(o, g, (int)((step - 1) % lanes), at, k);
        }
    }
    return st;
}

int gi_coll_run_two(struct gi_coll_call *o)
{
    switch (o->kind) {
    case GI_COLL_SYNC: return sync(o);
    case GI_COLL_BROADCAST: return broadcast(o);
    case GI_COLL_ALLGATHER: return gi_coll_allgather_two(o);
    case GI_COLL_ALLREDUCE:
    case GI_COLL_REDUCE:
        return o->all->rank_order ? gi_coll_in_order_two(o) : gi_coll_reduce_two(o);
    case GI_COLL_REDUCE_SCATTER: return gi_coll_reduce_scatter_two(o);
    case GI_COLL_ALLTOALL: return gi_coll_alltoall_two(o);
    case GI_COLL_ALLTOALLV: return gi_coll_alltoallv_two(o);
    case GI_COLL_GATHER: return gi_coll_gather_two(o);
    case GI_COLL_SCAN:
    case GI_COLL_SCAN_EXCLUSIVE: return gi_coll_in_order_two(o);
    default: return gi_coll_run_flat(o);
    }
}
