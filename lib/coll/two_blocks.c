/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks for each member by way of groups: what all members of one group have for all of another is
 * one message per step. For each other group one of mine, its gateway, collects what goes there and
 * one takes what comes from there; gateways take turns, so that no rank has all of it. While a step
 * is on the wire, the one before it is handed out.
 */
#include <string.h>

#include "coll/two.h"

static inline size_t block_of(const struct gi_coll_call *o)
{
    return o->count * o->size;
}

/* Bytes of a block that a step moves. */
static size_t step_of(const struct gi_coll_call *o)
{
    size_t most = (size_t)o->p->most;
    return o->all->slot / (o->kind == GI_COLL_GATHER ? most : most * most);
}

bool gi_coll_blocks_fit(const struct gi_coll_call *o)
{
    return step_of(o) != 0;
}

/* Bytes at .. at + k of every block. */
struct step {
    struct gi_coll_call *o;
    uint64_t at;
    size_t k;
};

/* ---- all to all ---- */

/* Of my blocks for the members of group h, one behind another. */
static void pack(const struct step *x, int h, char *to)
{
    const struct gi_coll_call *o = x->o;
    for (int j = 0; j < gi_coll_members(o->p, h); j++)
        memcpy(to + (size_t)j * x->k,
               o->src + (size_t)gi_coll_member(o->p, h, j) * block_of(o) + x->at, x->k);
}

/* What mine have for group h, by its gateway: member by member. */
static int leave(const struct step *x, int h)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    size_t bytes = (size_t)gi_coll_members(p, h) * x->k;
    char *all = o->c->tmp[0];
    int by = gi_coll_gateway(p, p->mine, h), n = gi_coll_members(p, p->mine), st = GIN_OK;
    if (by != p->me) {
        pack(x, h, all);
        return gi_coll_send(o, by, all, bytes);
    }
    pack(x, h, all + (size_t)p->place * bytes);
    for (int i = 0; i < n && st == GIN_OK; i++)
        if (i != p->place)
            st = gi_coll_take(o, gi_coll_in_group(o, i), all + (size_t)i * bytes, bytes);
    return st == GIN_OK ? gi_coll_send(o, gi_coll_gateway(p, h, p->mine), all, (size_t)n * bytes)
                        : st;
}

/* Of the blocks of all members of group g, for me. */
static void unpack(const struct step *x, int g, const char *from, size_t stride)
{
    const struct gi_coll_call *o = x->o;
    for (int i = 0; i < gi_coll_members(o->p, g); i++)
        memcpy(o->dst + (size_t)gi_coll_member(o->p, g, i) * block_of(o) + x->at,
               from + (size_t)i * stride, x->k);
}

/* The gateway hands a message of group g's out: to member j what is for it. */
static int hand_out(const struct step *x, int g, const char *all)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), theirs = gi_coll_members(p, g), st = GIN_OK;
    size_t k = x->k, stride = (size_t)n * k;
    for (int j = 0; j < n && st == GIN_OK; j++) {
        if (j == p->place) {
            unpack(x, g, all + (size_t)j * k, stride);
            continue;
        }
        for (int i = 0; i < theirs; i++)
            memcpy(o->c->tmp[1] + (size_t)i * k, all + (size_t)i * stride + (size_t)j * k, k);
        st = gi_coll_send(o, gi_coll_in_group(o, j), o->c->tmp[1], (size_t)theirs * k);
    }
    return st;
}

/* What group g has for mine. */
static int arrive(const struct step *x, int g)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    size_t bytes = (size_t)gi_coll_members(p, g) * x->k;
    int by = gi_coll_gateway(p, p->mine, g);
    bool mine = by == p->me, whole;
    int from = mine ? gi_coll_gateway(p, g, p->mine) : by;
    const void *got;
    int st = gi_coll_recv(o, from, mine ? bytes * (size_t)gi_coll_members(p, p->mine) : bytes, &got,
                          &whole);
    if (st != GIN_OK)
        return st;
    if (mine)
        st = hand_out(x, g, got);
    else
        unpack(x, g, got, x->k);
    return st == GIN_OK ? gi_coll_took(o, from, whole) : st;
}

static struct gi_coll_part near(const struct gi_coll_call *o, int r, const char *base)
{
    size_t block = block_of(o);
    if (o->p->group[r] != o->p->mine)
        return (struct gi_coll_part){NULL, 0};
    return (struct gi_coll_part){(char *)(uintptr_t)base + (size_t)r * block, block};
}

static struct gi_coll_part near_out(const struct gi_coll_call *o, int r)
{
    return near(o, r, o->src);
}

static struct gi_coll_part near_in(const struct gi_coll_call *o, int r)
{
    return near(o, r, o->dst);
}

/* All of a step that leaves me has been copied before anything of it arrives, so it may be in
 * place. Groups are gone through in one order by all of mine: a gateway waits only for who is on
 * the way to it. */
int gi_coll_alltoall_two(struct gi_coll_call *o)
{
    const struct gi_coll_moves inside = {near_out, near_in, false, !o->in_place};
    const size_t block = block_of(o), step = step_of(o);
    int groups = o->p->groups, mine = o->p->mine, st = GIN_OK;
    for (uint64_t at = 0; at < block + step && st == GIN_OK; at += step) {
        const struct step now = {o, at, gi_coll_rest(block, at, step)};
        for (int h = 0; now.k != 0 && h < groups && st == GIN_OK; h++)
            if (h != mine)
                st = leave(&now, h);
        if (at == 0) {
            st = st == GIN_OK ? gi_coll_exchange(o, &inside) : st;
            continue;
        }
        const struct step before = {o, at - step, gi_coll_rest(block, at - step, step)};
        for (int g = 0; g < groups && st == GIN_OK; g++)
            if (g != mine)
                st = arrive(&before, g);
    }
    return st;
}

/* ---- gather ---- */

/* Of the blocks of group g's members, one behind another, into their places at the root. */
static int take(const struct step *x, int g)
{
    struct gi_coll_call *o = x->o;
    int from = gi_coll_member(o->p, g, 0);
    const void *got;
    bool whole;
    int st = gi_coll_recv(o, from, (size_t)gi_coll_members(o->p, g) * x->k, &got, &whole);
    if (st != GIN_OK)
        return st;
    unpack(x, g, got, x->k);
    return gi_coll_took(o, from, whole);
}

/* Of a group without the root: to its first member, and from there in one. */
static int bring(const struct step *x)
{
    struct gi_coll_call *o = x->o;
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), st = GIN_OK;
    char *all = o->c->tmp[0];
    if (p->place != 0)
        return gi_coll_show(o, gi_coll_in_group(o, 0), o->src + x->at, x->k);
    memcpy(all, o->src + x->at, x->k);
    for (int i = 1; i < n && st == GIN_OK; i++)
        st = gi_coll_take(o, gi_coll_in_group(o, i), all + (size_t)i * x->k, x->k);
    return st == GIN_OK ? gi_coll_send(o, o->root, all, (size_t)n * x->k) : st;
}

static struct gi_coll_part to_root(const struct gi_coll_call *o, int r)
{
    struct gi_coll_part p = {(char *)(uintptr_t)o->src, block_of(o)};
    if (o->in_place)
        p.at += (size_t)o->p->me * block_of(o);
    return r == o->root ? p : (struct gi_coll_part){NULL, 0};
}

static struct gi_coll_part at_root(const struct gi_coll_call *o, int r)
{
    return o->p->me == o->root ? near_in(o, r) : (struct gi_coll_part){NULL, 0};
}

int gi_coll_gather_two(struct gi_coll_call *o)
{
    const struct gi_coll_moves inside = {to_root, at_root, false, true};
    const size_t block = block_of(o), step = step_of(o);
    const struct gi_coll_plan *p = o->p;
    bool home = p->mine == p->group[o->root];
    int st = home ? gi_coll_exchange(o, &inside) : GIN_OK;
    for (uint64_t at = 0; at < block && st == GIN_OK; at += step) {
        const struct step now = {o, at, gi_coll_rest(block, at, step)};
        if (!home)
            st = bring(&now);
        for (int g = 0; g < p->groups && p->me == o->root && st == GIN_OK; g++)
            if (g != p->mine)
                st = take(&now, g);
    }
    return st == GIN_OK ? gi_coll_settle_group(o) : st;
}
