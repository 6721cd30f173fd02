/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two levels: inside a group, whose members load and store to each other, and between groups, over
 * the network. What crosses goes once per pair of groups and step of a slot, by lanes: lane l is
 * the l-th member of every group, so that several ranks' rails carry a large call. While one step
 * is on the wire, the next one is gathered inside and the one before it spread.
 */
#include <string.h>

#include "coll/coll.h"

static int lanes_of(const struct gi_coll_call *o, size_t bytes)
{
    size_t worth = 1 + bytes / GI_COLL_LANE;
    return worth < (size_t)o->p->least ? (int)worth : o->p->least;
}

static inline size_t rest_at(size_t bytes, uint64_t at, uint64_t slot)
{
    size_t n = bytes > at ? bytes - at : 0;
    return n < slot ? n : slot;
}

/* Who is mine: members of my group, or those at my place in all groups, in order. */
static int in_group(const struct gi_coll_call *o, int i)
{
    return gi_coll_member(o->p, o->p->mine, i);
}

static int in_lane(const struct gi_coll_call *o, int i)
{
    return gi_coll_member(o->p, i, o->p->place);
}

/* acc = what n ranks sent me, mine being the me-th. acc is not where mine lies. */
static int fold_from(struct gi_coll_call *o, int n, int me,
                     int (*rank_of)(const struct gi_coll_call *o, int i), const void *mine,
                     char *acc, size_t k)
{
    const void *bytes, *one = NULL;
    bool whole;
    int st = GIN_OK;
    for (int i = 0; i < n && st == GIN_OK; i++) {
        bytes = mine;
        if (i != me)
            st = gi_coll_recv(o, rank_of(o, i), k, &bytes, &whole);
        if (st != GIN_OK)
            return st;
        if (i == 0 && n > 1) {
            one = bytes;
            continue;
        }
        if (n == 1)
            memcpy(acc, bytes, k);
        else
            o->fold(acc, one != NULL ? one : acc, bytes, k / o->size);
        if (one != NULL && me != 0)
            st = gi_coll_took(o, rank_of(o, 0), false);
        one = NULL;
        if (st == GIN_OK && i != me)
            st = gi_coll_took(o, rank_of(o, i), false);
    }
    return st;
}

/* ---- reductions ---- */

struct reduction {
    struct gi_coll_call *o;
    int lanes;
    bool owner;   /* I have a lane */
    bool to_all;  /* else to the root */
    int target;   /* group of the root */
    size_t share; /* of my lane, bytes; and where it begins */
    size_t from;
};

/* Inside the group: elements of step `at` to those who have the lanes. */
static int gather(const struct reduction *x, uint64_t at, char *partial)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    size_t from;
    int st = GIN_OK;
    for (int l = 0; l < x->lanes && st == GIN_OK; l++) {
        size_t share = gi_coll_share(o->count, o->size, x->lanes, l, &from);
        size_t k = rest_at(share, at, o->all->slot);
        if (l != p->place && k != 0)
            st = gi_coll_send(o, in_group(o, l), o->src + from + at, k);
    }
    size_t k = rest_at(x->share, at, o->all->slot);
    if (st != GIN_OK || !x->owner || k == 0)
        return st;
    return fold_from(o, gi_coll_members(p, p->mine), p->place, in_group, o->src + x->from + at,
                     partial, k);
}

/* Between groups: what my group has, to those at my place elsewhere. */
static int cross(const struct reduction *x, uint64_t at, const char *partial)
{
    struct gi_coll_call *o = x->o;
    size_t k = rest_at(x->share, at, o->all->slot);
    int st = GIN_OK;
    if (!x->owner || k == 0)
        return GIN_OK;
    for (int i = 1; i < o->p->groups && st == GIN_OK; i++) {
        int g = (o->p->mine + i) % o->p->groups;
        if (x->to_all || g == x->target)
            st = gi_coll_send(o, in_lane(o, g), partial, k);
    }
    return st;
}

/* The result of step `at` of my lane: into dst, or where the root gets it from. */
static int finish_mine(const struct reduction *x, uint64_t at, const char *partial, char **result)
{
    struct gi_coll_call *o = x->o;
    size_t k = rest_at(x->share, at, o->all->slot);
    bool here = x->to_all || o->p->me == o->root;
    *result = here ? o->dst + x->from + at : o->c->tmp[2];
    return fold_from(o, o->p->groups, o->p->mine, in_lane, partial, *result, k);
}

/* Inside the group again: from those who have the lanes to all, or to the root. */
static int spread(const struct reduction *x, uint64_t at, const char *partial)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    size_t from, k = rest_at(x->share, at, o->all->slot);
    int st = GIN_OK;
    char *result;
    if (!x->to_all && p->mine != x->target)
        return GIN_OK;
    if (x->owner && k != 0) {
        st = finish_mine(x, at, partial, &result);
        for (int i = 1, n = gi_coll_members(p, p->mine); i < n && st == GIN_OK; i++) {
            int r = in_group(o, (p->place + i) % n);
            if (x->to_all || r == o->root)
                st = gi_coll_send(o, r, result, k);
        }
    }
    if (!x->to_all && p->me != o->root)
        return st;
    for (int l = 0; l < x->lanes && st == GIN_OK; l++) {
        const void *bytes;
        bool whole;
        size_t share = gi_coll_share(o->count, o->size, x->lanes, l, &from);
        k = rest_at(share, at, o->all->slot);
        if (l == p->place || k == 0)
            continue;
        st = gi_coll_recv(o, in_group(o, l), k, &bytes, &whole);
        if (st != GIN_OK)
            return st;
        memcpy(o->dst + from + at, bytes, k);
        st = gi_coll_took(o, in_group(o, l), whole);
    }
    return st;
}

static int reduce(struct gi_coll_call *o)
{
    struct reduction x = {.o = o, .lanes = lanes_of(o, o->count * o->size)};
    size_t from, longest = gi_coll_share(o->count, o->size, x.lanes, 0, &from);
    uint64_t slot = o->all->slot, steps = (longest + slot - 1) / slot;
    int st = GIN_OK;
    x.owner = o->p->place < x.lanes;
    x.to_all = o->kind == GI_COLL_ALLREDUCE;
    x.target = x.to_all ? -1 : o->p->group[o->root];
    if (x.owner)
        x.share = gi_coll_share(o->count, o->size, x.lanes, o->p->place, &x.from);
    for (uint64_t i = 0; i <= steps && st == GIN_OK; i++) {
        char *now = o->c->tmp[i % 2], *before = o->c->tmp[(i + 1) % 2];
        if (i < steps) {
            st = gather(&x, i * slot, now);
            if (st == GIN_OK)
                st = cross(&x, i * slot, now);
        }
        if (i > 0 && st == GIN_OK)
            st = spread(&x, (i - 1) * slot, before);
    }
    return st;
}

/* ---- broadcast ---- */

/* The root's step: to one member of every other group, then to its own. */
static int cast(struct gi_coll_call *o, uint64_t at, size_t k, bool refer)
{
    const struct gi_coll_plan *p = o->p;
    int st = GIN_OK;
    for (int i = 1; i < p->groups && st == GIN_OK; i++)
        st = gi_coll_send(o, gi_coll_member(p, (p->mine + i) % p->groups, 0), o->src + at, k);
    for (int i = 1, n = gi_coll_members(p, p->mine); i < n && st == GIN_OK; i++) {
        int r = in_group(o, (p->place + i) % n);
        if (!refer)
            st = gi_coll_send(o, r, o->src + at, k);
        else if (at == 0)
            st = gi_coll_refer(o, r, o->src);
    }
    return st;
}

/* Another rank's step: from whom it gets the bytes; the first of a group passes them on. */
static int pass(struct gi_coll_call *o, int source, uint64_t at, size_t k, bool near)
{
    const struct gi_coll_plan *p = o->p;
    const void *bytes = NULL;
    bool whole = false;
    int st = GIN_OK;
    if (at != 0 && near && o->c->refs[source] != NULL) {
        bytes = o->c->refs[source] + at;
    } else {
        st = gi_coll_recv(o, source, k, &bytes, &whole);
        o->c->refs[source] = whole && near ? bytes : NULL;
    }
    if (st != GIN_OK)
        return st;
    memcpy(o->dst + at, bytes, k);
    if (o->c->refs[source] == NULL)
        st = gi_coll_took(o, source, false);
    else if (at + k == o->count * o->size)
        st = gi_coll_took(o, source, true);
    for (int i = 1, n = gi_coll_members(p, p->mine); i < n && !near && p->place == 0; i++)
        if (st == GIN_OK)
            st = gi_coll_send(o, in_group(o, i), o->dst + at, k);
    return st;
}

static int broadcast(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    size_t bytes = o->count * o->size;
    bool is_root = p->me == o->root, near = p->mine == p->group[o->root];
    int n = gi_coll_members(p, p->mine), st = GIN_OK;
    int source = near || p->place == 0 ? o->root : in_group(o, 0);
    int other = is_root && n > 1 ? in_group(o, (p->place + 1) % n) : -1;
    bool refer = other >= 0 && gi_coll_can_refer(o, other, o->src, bytes);
    for (uint64_t at = 0; at < bytes && st == GIN_OK; at += o->all->slot) {
        size_t k = rest_at(bytes, at, o->all->slot);
        st = is_root ? cast(o, at, k, refer) : pass(o, source, at, k, near);
    }
    if (is_root && !o->in_place)
        memcpy(o->dst, o->src, bytes);
    for (int i = 1; i < n && refer && st == GIN_OK; i++)
        st = gi_coll_settle(o, in_group(o, (p->place + i) % n));
    return st;
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
    int from = mine ? in_lane(o, group) : in_group(o, lane);
    const void *bytes;
    bool whole;
    int st = gi_coll_recv(o, from, k, &bytes, &whole);
    if (st != GIN_OK)
        return st;
    blocks(o, group, at, k, NULL, bytes);
    for (int i = 1, n = gi_coll_members(p, p->mine); mine && i < n && st == GIN_OK; i++)
        st = gi_coll_send(o, in_group(o, (p->place + i) % n), bytes, k);
    return st == GIN_OK ? gi_coll_took(o, from, whole) : st;
}

static int allgather(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    const struct gi_coll_moves near = {near_out, near_in, false, true};
    size_t block = o->count * o->size, most = 0;
    int lanes = lanes_of(o, block * (size_t)p->least), groups = p->groups;
    int st = gi_coll_exchange(o, &near);
    for (int g = 0; g < groups; g++) {
        size_t bytes = block * (size_t)gi_coll_members(p, g);
        most = bytes > most ? bytes : most;
    }
    uint64_t slot = o->all->slot, at = 0;
    for (int lane = 0; at < most && st == GIN_OK; at += slot, lane = (lane + 1) % lanes) {
        size_t k = rest_at(block * (size_t)gi_coll_members(p, p->mine), at, slot);
        if (k != 0 && p->place == lane)
            blocks(o, p->mine, at, k, o->c->tmp[0], NULL);
        for (int i = 1; i < groups && k != 0 && p->place == lane && st == GIN_OK; i++)
            st = gi_coll_send(o, in_lane(o, (p->mine + i) % groups), o->c->tmp[0], k);
        for (int i = 1; i < groups && st == GIN_OK; i++) {
            int g = (p->mine + groups - i) % groups;
            k = rest_at(block * (size_t)gi_coll_members(p, g), at, slot);
            if (k != 0)
                st = take_blocks(o, g, lane, at, k);
        }
    }
    return st;
}

int gi_coll_run_two(struct gi_coll_call *o)
{
    switch (o->kind) {
    case GI_COLL_BROADCAST: return broadcast(o);
    case GI_COLL_ALLGATHER: return allgather(o);
    case GI_COLL_ALLREDUCE:
    case GI_COLL_REDUCE: return reduce(o);
    case GI_COLL_ALLTOALL: return gi_coll_alltoall_two(o);
    case GI_COLL_GATHER: return gi_coll_gather_two(o);
    default: return gi_coll_run_flat(o);
    }
}
