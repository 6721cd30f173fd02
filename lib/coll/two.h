/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two levels: inside a group, whose members load and store to each other, and between groups, over
 * the network. What crosses goes once per pair of groups and step of a slot, by lanes: lane l is
 * the l-th member of every group, so that several ranks' rails carry a large call. While one step
 * is on the wire, the next one is gathered inside and the one before it spread.
 *
 * Inside, bytes are read where they lie, where they are in the heap and stay: those of dst once
 * they are final, those of src because nothing of a step is written before all who read that have
 * taken part in it.
 */
#ifndef GI_COLL_TWO_H
#define GI_COLL_TWO_H

#include "coll/coll.h"

static inline int gi_coll_lanes(const struct gi_coll_call *o, size_t bytes)
{
    size_t worth = 1 + bytes / GI_COLL_LANE;
    return worth < (size_t)o->p->least ? (int)worth : o->p->least;
}

/* Who of group g sends to, or takes from, group h: a team rank. */
static inline int gi_coll_gateway(const struct gi_coll_plan *p, int g, int h)
{
    return gi_coll_member(p, g, h % gi_coll_members(p, g));
}

/* Who is mine: members of my group, or those at my place in all groups, in order. */
static inline int gi_coll_in_group(const struct gi_coll_call *o, int i)
{
    return gi_coll_member(o->p, o->p->mine, i);
}

static inline int gi_coll_in_lane(const struct gi_coll_call *o, int i)
{
    return gi_coll_member(o->p, i, o->p->place);
}

/* To one of mine: where they lie, or a copy. */
int gi_coll_show(struct gi_coll_call *o, int to, const void *bytes, size_t n);
/* Until nobody of mine reads there any more. */
int gi_coll_settle_group(struct gi_coll_call *o);
/* The next message's n bytes, into their place. */
int gi_coll_take(struct gi_coll_call *o, int from, void *to, size_t n);
/* acc = what n ranks sent me, mine being the me-th. acc is not where mine lies. */
int gi_coll_fold_from(struct gi_coll_call *o, int n, int me,
                      int (*rank_of)(const struct gi_coll_call *o, int i), const void *mine,
                      char *acc, size_t k);

/* ---- two_fold.c ---- */
int gi_coll_reduce_two(struct gi_coll_call *o); /* to all, or to a root */
int gi_coll_reduce_scatter_two(struct gi_coll_call *o);

/* ---- two_blocks.c: blocks for each member ---- */
/* Does one byte of each block of two groups fit into a message? */
bool gi_coll_blocks_fit(const struct gi_coll_call *o);
int gi_coll_alltoall_two(struct gi_coll_call *o);
int gi_coll_gather_two(struct gi_coll_call *o);

/* ---- two_counts.c ---- */
/* Does a byte of each block fit, with its length? */
bool gi_coll_counts_fit(const struct gi_coll_call *o);
int gi_coll_alltoallv_two(struct gi_coll_call *o);

/* ---- two.c ---- */
int gi_coll_allgather_two(struct gi_coll_call *o);

/* ---- order.c ---- */
/* Does an element of each member fit? */
bool gi_coll_order_fits(const struct gi_coll_call *o);
int gi_coll_in_order_two(struct gi_coll_call *o); /* scans and reductions */

#endif
