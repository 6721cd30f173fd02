/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of puts into a peer's heap with nothing special about them: found from registers,
 * without a branch. What the latency of a small put consists of, beside the link, is instructions;
 * a block issues them once per warp. Whatever is not for here goes the long way, in ops.h. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_QUICK_H
#define GINSHMEM_IMPL_DEV_QUICK_H

#include <ginshmem/impl/dev/copy.h>
#include <ginshmem/impl/dev/path.h>

/* A place in a peer's heap, perhaps with a word to raise. */
struct gin_i_quick {
    uint64_t to, cell;
    int is; /* all that was asked for is this */
};

/* Whether an action is on a word of the heap that this GPU may update. */
GIN_DEV int gin_i_quick_word(const gin_t *g, const gin_action_t *a)
{
    uint32_t need = a->kind == GIN_ACTION_SET_AT ? GIN_I_APPLY_STORES : GIN_I_APPLY_ATOMICS;
    return (a->kind == GIN_ACTION_ADD_AT || a->kind == GIN_ACTION_SET_AT) &&
           (g->flags & GIN_I_DC_VA) != 0 && (g->flags >> GIN_I_DC_APPLY_SHIFT & need) != 0 &&
           a->at.win.w == g->heap_handle && gin_i_dev_inside(g->heap_size, a->at.off, 8) &&
           (a->at.off & 7) == 0;
}

/* A strong signal is not for here where an engine may have something under way. */
GIN_DEV struct gin_i_quick gin_i_quick_find(const gin_t *g, gin_team_t team, int peer, gin_at_t dst,
                                            uint64_t bytes, uint64_t align, const gin_action_t *a,
                                            const gin_op_opt_t *opt)
{
    struct gin_i_quick k;
    int world = gin_i_dev_world(g, team, peer), slot = a->kind == GIN_ACTION_ADD;
    uint32_t lsa = (uint32_t)(world - g->lsa_first);
    uint64_t base = g->lsa_base + (uint64_t)lsa * g->lsa_stride;
    k.to = base + dst.off;
    k.cell = slot ? (uint64_t) & ((struct gin_i_cells *)(base + g->signals_off))[a->id].gpu
                  : base + a->at.off;
    int may = (slot ? a->id < g->n_signals : gin_i_quick_word(g, a)) &&
              (!a->strong || (g->ring == NULL && (g->flags & GIN_I_DC_STRONG)));
    k.is = world >= 0 && lsa < (uint32_t)g->lsa_count && opt == NULL &&
           dst.win.w == g->heap_handle && gin_i_dev_inside(g->heap_size, dst.off, bytes) &&
           (dst.off & (align - 1)) == 0 && (a->kind == GIN_ACTION_NONE || may);
    return k;
}

/* My end: any memory of mine, or the heap's. 0: not for here. */
GIN_DEV int gin_i_quick_source(const gin_t *g, gin_at_t src, uint64_t bytes, uint64_t *from)
{
    *from = src.off;
    if (src.win.w == GIN_I_WINDOW_LOCAL)
        return src.off != 0;
    *from += g->lsa_base + (uint64_t)(uint32_t)g->lsa_rank * g->lsa_stride;
    return src.win.w == g->heap_handle && gin_i_dev_inside(g->heap_size, src.off, bytes) &&
           gin_i_in_reach(g->lsa_rank);
}

/* By the leader, with a release that covers what its group wrote. */
GIN_DEV void gin_i_quick_raise(const struct gin_i_quick *k, const gin_action_t *a)
{
    if (a->kind == GIN_ACTION_SET_AT)
        gin_i_st_release_sys((uint64_t *)k->cell, a->value);
    else if (a->kind != GIN_ACTION_NONE)
        gin_i_red_add_release_sys((uint64_t *)k->cell, a->value);
}

GIN_DEV void gin_i_quick_store(const struct gin_i_quick *k, uint64_t value, const gin_action_t *a)
{
    gin_i_st_relaxed_sys((uint64_t *)k->to, value);
    gin_i_quick_raise(k, a);
}

#endif
