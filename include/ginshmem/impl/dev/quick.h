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

/*
 * What must hold, gathered in two words: one must be zero, of the other no bit 63 may be set.
 * Comparisons one by one take three times the instructions. Offsets and sizes of the heap are far
 * below 2^63, so that a difference has that bit only where it is negative.
 */
struct gin_i_proof {
    uint64_t zero, signs;
};

/* `bytes` at a place lie in the heap, on a boundary of `align` bytes. */
GIN_DEV void gin_i_proof_heap(struct gin_i_proof *p, const gin_t *g, gin_at_t at, uint64_t bytes,
                              uint64_t align)
{
    p->zero |= (at.win.w ^ g->heap_handle) | (at.off & (align - 1));
    uint64_t room = g->heap_size - bytes;
    p->signs |= room | (room - at.off) | at.off | bytes;
}

GIN_DEV int gin_i_proof_holds(const struct gin_i_proof *p)
{
    return p->zero == 0 && (int64_t)p->signs >= 0;
}

/* My end: any memory of mine, or the heap's. */
GIN_DEV uint64_t gin_i_quick_source(struct gin_i_proof *p, const gin_t *g, gin_at_t src,
                                    uint64_t bytes)
{
    struct gin_i_proof heap = {};
    gin_i_proof_heap(&heap, g, src, bytes, 1);
    int mine = src.win.w == GIN_I_WINDOW_LOCAL;
    p->zero |= mine ? (uint64_t)(src.off == 0) : heap.zero;
    p->signs |= mine ? 0 : heap.signs | (uint64_t)(uint32_t)g->lsa_rank << 33;
    return src.off + (mine ? 0 : g->lsa_base + (uint64_t)(uint32_t)g->lsa_rank * g->lsa_stride);
}

/* The word of an action, of the heap and this GPU's to update, or a slot's. */
GIN_DEV uint64_t gin_i_quick_cell(struct gin_i_proof *p, const gin_t *g, uint64_t base,
                                  const gin_action_t *a)
{
    uint32_t need = a->kind == GIN_ACTION_SET_AT ? GIN_I_APPLY_STORES : GIN_I_APPLY_ATOMICS;
    if (a->kind == GIN_ACTION_NONE)
        return 0;
    /* a strong one is not for here where an engine may have something under way */
    if (a->strong)
        p->zero |= (uint64_t)g->ring | (~g->flags & GIN_I_DC_STRONG);
    if (a->kind == GIN_ACTION_ADD) {
        p->signs |= (uint64_t)(g->n_signals) - a->id - 1;
        return (uint64_t) & ((struct gin_i_cells *)(base + g->signals_off))[a->id].gpu;
    }
    gin_i_proof_heap(p, g, a->at, 8, 8);
    p->zero |= (uint64_t)(a->kind > GIN_ACTION_SET_AT) | (~g->flags & GIN_I_DC_VA) |
               ((g->flags >> GIN_I_DC_APPLY_SHIFT & need) == 0);
    return base + a->at.off;
}

/* align 1: bytes beside each other; else a word. */
GIN_DEV struct gin_i_quick gin_i_quick_find(struct gin_i_proof *p, const gin_t *g, gin_team_t team,
                                            int peer, gin_at_t dst, uint64_t bytes, uint64_t align,
                                            const gin_action_t *a, const gin_op_opt_t *opt)
{
    struct gin_i_quick k = {};
    int64_t lsa = (int64_t)peer * team.stride + team.first - g->lsa_first;
    uint64_t base = g->lsa_base + (uint64_t)(uint32_t)lsa * g->lsa_stride;
    gin_i_proof_heap(p, g, dst, bytes, align);
    k.to = base + dst.off;
    k.cell = gin_i_quick_cell(p, g, base, a);
    k.is = gin_i_proof_holds(p) && opt == NULL && team.stride != 0 &&
           (uint32_t)peer < (uint32_t)team.size && (uint64_t)lsa < (uint64_t)(uint32_t)g->lsa_count;
    return k;
}

/* By the leader, with a release that covers what its group wrote. */
GIN_DEV void gin_i_quick_raise(const struct gin_i_group *q, const struct gin_i_quick *k,
                               const gin_action_t *a)
{
    uint64_t cell = q->kind == GIN_GROUP_THREAD ? k->cell : gin_i_lane_own(k->cell);
    if (a->kind == GIN_ACTION_SET_AT)
        gin_i_st_release_sys((uint64_t *)cell, a->value);
    else if (a->kind != GIN_ACTION_NONE)
        gin_i_red_add_release_sys((uint64_t *)cell, a->value);
}

GIN_DEV void gin_i_quick_store(const struct gin_i_group *q, const struct gin_i_quick *k,
                               uint64_t value, const gin_action_t *a)
{
    gin_i_st_relaxed_sys((uint64_t *)k->to, value);
    gin_i_quick_raise(q, k, a);
}

#endif
