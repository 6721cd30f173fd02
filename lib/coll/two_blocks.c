/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small blocks by way of hosts: what all members of one group have for all of another is one
 * message. For each other group one of mine, its gateway, collects what goes there and one takes
 * what comes from there; gateways take turns, so that no rank has all of it.
 */
#include <string.h>

#include "coll/coll.h"

static inline size_t block_of(const struct gi_coll_call *o)
{
    return o->count * o->size;
}

/* Who of group g sends to, or takes from, group h: a team rank. */
static inline int gateway(const struct gi_coll_plan *p, int g, int h)
{
    return gi_coll_member(p, g, h % gi_coll_members(p, g));
}

bool gi_coll_blocks_fit(const struct gi_coll_call *o)
{
    size_t most = (size_t)o->p->most, block = block_of(o);
    if (o->kind == GI_COLL_GATHER)
        return block <= o->all->slot / most;
    return block <= o->all->slot / (most * most);
}

/* ---- all to all ---- */

/* My blocks for the members of group h, one behind another. */
static void pack(const struct gi_coll_call *o, int h, char *to)
{
    size_t block = block_of(o);
    for (int j = 0; j < gi_coll_members(o->p, h); j++)
        memcpy(to + (size_t)j * block, o->src + (size_t)gi_coll_member(o->p, h, j) * block, block);
}

/* What mine have for group h, by its gateway: member by member. */
static int leave(struct gi_coll_call *o, int h)
{
    const struct gi_coll_plan *p = o->p;
    size_t bytes = (size_t)gi_coll_members(p, h) * block_of(o);
    char *all = o->c->tmp[0];
    int by = gateway(p, p->mine, h), n = gi_coll_members(p, p->mine);
    const void *got;
    bool whole;
    int st = GIN_OK;
    if (by != p->me) {
        pack(o, h, all);
        return gi_coll_send(o, by, all, bytes);
    }
    pack(o, h, all + (size_t)p->place * bytes);
    for (int i = 0; i < n && st == GIN_OK; i++) {
        int r = gi_coll_member(p, p->mine, i);
        if (r == p->me)
            continue;
        st = gi_coll_recv(o, r, bytes, &got, &whole);
        if (st != GIN_OK)
            return st;
        memcpy(all + (size_t)i * bytes, got, bytes);
        st = gi_coll_took(o, r, whole);
    }
    return st == GIN_OK ? gi_coll_send(o, gateway(p, h, p->mine), all, (size_t)n * bytes) : st;
}

/* Blocks of all members of group g for me. */
static void unpack(const struct gi_coll_call *o, int g, const char *from, size_t stride)
{
    size_t block = block_of(o);
    for (int i = 0; i < gi_coll_members(o->p, g); i++)
        memcpy(o->dst + (size_t)gi_coll_member(o->p, g, i) * block, from + (size_t)i * stride,
               block);
}

/* The gateway hands a message of group g's out: to member j what is for it. */
static int hand_out(struct gi_coll_call *o, int g, const char *all)
{
    const struct gi_coll_plan *p = o->p;
    int n = gi_coll_members(p, p->mine), theirs = gi_coll_members(p, g), st = GIN_OK;
    size_t block = block_of(o), stride = (size_t)n * block;
    for (int j = 0; j < n && st == GIN_OK; j++) {
        int r = gi_coll_member(p, p->mine, j);
        if (r == p->me) {
            unpack(o, g, all + (size_t)j * block, stride);
            continue;
        }
        for (int i = 0; i < theirs; i++)
            memcpy(o->c->tmp[1] + (size_t)i * block, all + (size_t)i * stride + (size_t)j * block,
                   block);
        st = gi_coll_send(o, r, o->c->tmp[1], (size_t)theirs * block);
    }
    return st;
}

/* What group g has for mine. */
static int arrive(struct gi_coll_call *o, int g)
{
    const struct gi_coll_plan *p = o->p;
    size_t block = block_of(o), bytes = (size_t)gi_coll_members(p, g) * block;
    int by = gateway(p, p->mine, g);
    bool mine = by == p->me, whole;
    int from = mine ? gateway(p, g, p->mine) : by;
    const void *got;
    int st = gi_coll_recv(o, from, mine ? bytes * (size_t)gi_coll_members(p, p->mine) : bytes, &got,
                          &whole);
    if (st != GIN_OK)
        return st;
    if (mine)
        st = hand_out(o, g, got);
    else
        unpack(o, g, got, block);
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

/* All that leaves me has been copied before anything arrives, so it may be in place. Groups are
 * gone through in one order by all of mine: a gateway waits only for who is on the way to it. */
int gi_coll_alltoall_two(struct gi_coll_call *o)
{
    const struct gi_coll_moves inside = {near_out, near_in, false, !o->in_place};
    int groups = o->p->groups, st = GIN_OK;
    for (int h = 0; h < groups && st == GIN_OK; h++)
        if (h != o->p->mine)
            st = leave(o, h);
    if (st == GIN_OK)
        st = gi_coll_exchange(o, &inside);
    for (int g = 0; g < groups && st == GIN_OK; g++)
        if (g != o->p->mine)
            st = arrive(o, g);
    return st;
}

/* ---- gather ---- */

/* Blocks of group g's members, one behind another, into their places at the root. */
static int take(struct gi_coll_call *o, int g)
{
    size_t block = block_of(o);
    int from = gi_coll_member(o->p, g, 0);
    const void *got;
    bool whole;
    int st = gi_coll_recv(o, from, (size_t)gi_coll_members(o->p, g) * block, &got, &whole);
    if (st != GIN_OK)
        return st;
    unpack(o, g, got, block);
    return gi_coll_took(o, from, whole);
}

/* Of a group without the root: to its first member, and from there in one. */
static int bring(struct gi_coll_call *o)
{
    const struct gi_coll_plan *p = o->p;
    size_t block = block_of(o);
    int n = gi_coll_members(p, p->mine), st = GIN_OK;
    const void *got;
    bool whole;
    if (p->place != 0)
        return gi_coll_send(o, gi_coll_member(p, p->mine, 0), o->src, block);
    memcpy(o->c->tmp[0], o->src, block);
    for (int i = 1; i < n && st == GIN_OK; i++) {
        int r = gi_coll_member(p, p->mine, i);
        st = gi_coll_recv(o, r, block, &got, &whole);
        if (st != GIN_OK)
            return st;
        memcpy(o->c->tmp[0] + (size_t)i * block, got, block);
        st = gi_coll_took(o, r, whole);
    }
    return st == GIN_OK ? gi_coll_send(o, o->root, o->c->tmp[0], (size_t)n * block) : st;
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
    int st;
    if (o->p->mine != o->p->group[o->root])
        return bring(o);
    st = gi_coll_exchange(o, &inside);
    for (int g = 0; g < o->p->groups && o->p->me == o->root && st == GIN_OK; g++)
        if (g != o->p->mine)
            st = take(o, g);
    return st;
}
