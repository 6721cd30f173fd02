/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions by way of groups: members combine what they have inside, partial results cross, and
 * are combined in the order of groups. See two.h.
 */
#include <string.h>

#include "coll/two.h"

int gi_coll_fold_from(struct gi_coll_call *o, int n, int me,
                      int (*rank_of)(const struct gi_coll_call *o, int i), const void *mine,
                      char *acc, size_t k)
{
    const void *bytes, *one = NULL;
    bool whole = false, first_whole = false;
    int st = GIN_OK;
    for (int i = 0; i < n && st == GIN_OK; i++) {
        bytes = mine;
        if (i != me)
            st = gi_coll_recv(o, rank_of(o, i), k, &bytes, &whole);
        if (st != GIN_OK)
            return st;
        if (i == 0 && n > 1) {
            one = bytes;
            first_whole = whole;
            continue;
        }
        if (n == 1)
            memcpy(acc, bytes, k);
        else
            o->fold(acc, one != NULL ? one : acc, bytes, k / o->size);
        if (one != NULL && me != 0)
            st = gi_coll_took(o, rank_of(o, 0), first_whole);
        one = NULL;
        if (st == GIN_OK && i != me)
            st = gi_coll_took(o, rank_of(o, i), whole);
    }
    return st;
}

/* ---- to all, or to a root ---- */

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
        size_t k = gi_coll_rest(share, at, o->all->slot);
        if (l != p->place && k != 0)
            st = gi_coll_show(o, gi_coll_in_group(o, l), o->src + from + at, k);
    }
    size_t k = gi_coll_rest(x->share, at, o->all->slot);
    if (st != GIN_OK || !x->owner || k == 0)
        return st;
    return gi_coll_fold_from(o, gi_coll_members(p, p->mine), p->place, gi_coll_in_group,
                             o->src + x->from + at, partial, k);
}

/* Between groups: what my group has, to those at my place elsewhere. */
static int cross(const struct reduction *x, uint64_t at, const char *partial)
{
    struct gi_coll_call *o = x->o;
    size_t k = gi_coll_rest(x->share, at, o->all->slot);
    int st = GIN_OK;
    if (!x->owner || k == 0)
        return GIN_OK;
    for (int i = 1; i < o->p->groups && st == GIN_OK; i++) {
        int g = (o->p->mine + i) % o->p->groups;
        if (x->to_all || g == x->target)
            st = gi_coll_send(o, gi_coll_in_lane(o, g), partial, k);
    }
    return st;
}

/* The result of step `at` of my lane: into dst, or where the root gets it from. */
static int finish_mine(const struct reduction *x, uint64_t at, const char *partial, char **result)
{
    struct gi_coll_call *o = x->o;
    size_t k = gi_coll_rest(x->share, at, o->all->slot);
    bool here = x->to_all || o->p->me == o->root;
    *result = here ? o->dst + x->from + at : o->c->tmp[2];
    return gi_coll_fold_from(o, o->p->groups, o->p->mine, gi_coll_in_lane, partial, *result, k);
}

/* Inside the group again: from those who have the lanes to all, or to the root. */
static int spread(const struct reduction *x, uint64_t at, const char *partial)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    size_t from, k = gi_coll_rest(x->share, at, o->all->slot);
    int st = GIN_OK;
    char *result;
    if (!x->to_all && p->mine != x->target)
        return GIN_OK;
    if (x->owner && k != 0) {
        st = finish_mine(x, at, partial, &result);
        for (int i = 1, n = gi_coll_members(p, p->mine); i < n && st == GIN_OK; i++) {
            int r = gi_coll_in_group(o, (p->place + i) % n);
            if (x->to_all)
                st = gi_coll_show(o, r, result, k);
            else if (r == o->root)
                st = gi_coll_send(o, r, result, k);
        }
    }
    if (!x->to_all && p->me != o->root)
        return st;
    for (int l = 0; l < x->lanes && st == GIN_OK; l++) {
        size_t share = gi_coll_share(o->count, o->size, x->lanes, l, &from);
        k = gi_coll_rest(share, at, o->all->slot);
        if (l != p->place && k != 0)
            st = gi_coll_take(o, gi_coll_in_group(o, l), o->dst + from + at, k);
    }
    return st;
}

int gi_coll_reduce_two(struct gi_coll_call *o)
{
    struct reduction x = {.o = o, .lanes = gi_coll_lanes(o, o->count * o->size)};
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
    return st == GIN_OK ? gi_coll_settle_group(o) : st;
}

/* ---- each a part ---- */

/*
 * What my group has for a member elsewhere is combined by one of mine, in turn. Blocks that are so
 * short that those of a whole group fit into a message go to one of that group, who hands them out.
 */
struct scattering {
    struct gi_coll_call *o;
    size_t block;
    bool together;
};

static int turn(const struct gi_coll_plan *p, int group, uint64_t i)
{
    return gi_coll_member(p, group, (int)(i % (uint64_t)gi_coll_members(p, group)));
}

/* To who combines it for member `to`, or for all of its group: k bytes of mine. */
static int give(const struct scattering *x, int by, int to, const char *mine, size_t k)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    if (by != p->me)
        return x->together || o->in_place ? gi_coll_send(o, by, mine, k)
                                          : gi_coll_show(o, by, mine, k);
    int st = gi_coll_fold_from(o, gi_coll_members(p, p->mine), p->place, gi_coll_in_group, mine,
                               o->c->tmp[0], k);
    return st == GIN_OK ? gi_coll_send(o, to, o->c->tmp[0], k) : st;
}

/* What step `at` has for other groups. */
static int leave(const struct scattering *x, uint64_t at, size_t k)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    int st = GIN_OK;
    for (int i = 1; i < p->groups && st == GIN_OK; i++) {
        int h = (p->mine + i) % p->groups, n = gi_coll_members(p, h);
        for (int j = 0; j < n && st == GIN_OK; j++) {
            int r = gi_coll_member(p, h, j);
            const char *mine = o->src + (size_t)r * x->block;
            if (x->together)
                memcpy(o->c->tmp[1] + (size_t)j * k, mine, k);
            else
                st = give(x, turn(p, p->mine, (uint64_t)j + at / o->all->slot), r, mine + at, k);
        }
        if (x->together)
            st = give(x, turn(p, p->mine, (uint64_t)h), turn(p, h, (uint64_t)p->mine), o->c->tmp[1],
                      (size_t)n * k);
    }
    return st;
}

/* My group's part of mine. */
static int inside(const struct scattering *x, uint64_t at, size_t k)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), st = GIN_OK;
    const char *mine = o->src + (size_t)p->me * x->block + at;
    for (int i = 1; i < n && st == GIN_OK; i++) {
        int r = gi_coll_in_group(o, (p->place + i) % n);
        const char *its = o->src + (size_t)r * x->block + at;
        st = o->in_place ? gi_coll_send(o, r, its, k) : gi_coll_show(o, r, its, k);
    }
    if (o->in_place) { /* what is combined may lie where mine does */
        memcpy(o->c->tmp[1], mine, k);
        mine = o->c->tmp[1];
    }
    if (st != GIN_OK)
        return st;
    return gi_coll_fold_from(o, n, p->place, gi_coll_in_group, mine, o->dst + at, k);
}

/* Group g's part of mine, by who takes it for all of mine. */
static int arrive(const struct scattering *x, int g, uint64_t at, size_t k)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), st;
    int taker = x->together ? turn(p, p->mine, (uint64_t)g) : p->me, from = taker;
    bool hands_out = x->together && taker == p->me, whole;
    const char *part;
    const void *bytes;
    if (taker == p->me)
        from = turn(p, g, x->together ? (uint64_t)p->mine : (uint64_t)p->place + at / o->all->slot);
    st = gi_coll_recv(o, from, hands_out ? (size_t)n * k : k, &bytes, &whole);
    if (st != GIN_OK)
        return st;
    part = bytes;
    for (int j = 0; hands_out && j < n && st == GIN_OK; j++)
        if (j != p->place)
            st = gi_coll_send(o, gi_coll_in_group(o, j), part + (size_t)j * k, k);
    if (st != GIN_OK)
        return st;
    part += hands_out ? (size_t)p->place * k : 0;
    o->fold(o->dst + at, o->dst + at, part, k / o->size);
    return gi_coll_took(o, from, whole);
}

/* All of a step leaves before anything of it is written, so it may be in place. */
int gi_coll_reduce_scatter_two(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    struct scattering x = {.o = o, .block = o->count * o->size};
    uint64_t slot = o->all->slot;
    int st = GIN_OK;
    x.together = x.block <= slot / (size_t)p->most;
    for (uint64_t at = 0; at < x.block + slot && st == GIN_OK; at += slot) {
        size_t k = gi_coll_rest(x.block, at, slot);
        if (k != 0)
            st = leave(&x, at, k);
        if (at == 0 || st != GIN_OK) /* the step before: meanwhile its parts have come */
            continue;
        uint64_t before = at - slot;
        k = gi_coll_rest(x.block, before, slot);
        st = inside(&x, before, k);
        for (int i = 1; i < p->groups && st == GIN_OK; i++)
            st = arrive(&x, (p->mine + p->groups - i) % p->groups, before, k);
    }
    return st == GIN_OK ? gi_coll_settle_group(o) : st;
}
