/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short cut: from (team, peer, window, offset) to an address of this process, or nothing when
 * the library has to look. The path is per (peer, window); nothing here depends on the operation.
 * Not API.
 */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_PATH_H
#define GINSHMEM_IMPL_PATH_H

#include <ginshmem/impl/slow.h>

/* World rank of a peer; -1 for a list (the library's business) and for anything out of range. */
GIN_OP int gin_i_world(const gin_t *g, gin_team_t team, int peer)
{
    if (GIN_UNLIKELY((uint32_t)peer >= (uint32_t)team.size || team.stride == 0))
        return -1;
    int64_t w = (int64_t)team.first + (int64_t)peer * team.stride;
    return GIN_LIKELY((uint64_t)w < (uint64_t)(uint32_t)g->size) ? (int)w : -1;
}

/* LSA rank of a peer, -1 as above and where it is not mapped. */
GIN_OP int gin_i_lsa(const gin_t *g, gin_team_t team, int peer)
{
    int w = gin_i_world(g, team, peer);
    return GIN_LIKELY(w >= 0) ? g->lsa_of[w] : -1;
}

GIN_OP const struct gin_i_window *gin_i_window(const gin_t *g, gin_window_t win)
{
    uint32_t id = (uint32_t)win.w;
    return &g->windows[(id / GIN_I_WINDOW_PAGE) % GIN_I_WINDOW_PAGES][id % GIN_I_WINDOW_PAGE];
}

/* [off, off + bytes) lies in the live window `win`: no sum that could wrap. */
GIN_OP int gin_i_inside(const struct gin_i_window *w, gin_at_t at, uint64_t bytes)
{
    uint64_t size = GIN_LOAD_RELAXED(&w->size);
    return w->handle == at.win.w && at.off <= size && bytes <= size - at.off;
}

/* Address of a place at an LSA peer, or NULL for the library to look. */
GIN_OP void *gin_i_remote(const gin_t *g, int lsa, gin_at_t at, uint64_t bytes)
{
    const struct gin_i_window *w = gin_i_window(g, at.win);
    if (GIN_UNLIKELY(lsa < 0 || w->mode != GIN_I_WINDOW_STRIDE || !gin_i_inside(w, at, bytes)))
        return NULL;
    return (void *)(uintptr_t)(w->lsa_base + (uint64_t)(uint32_t)lsa * w->lsa_stride + at.off);
}

/* My address of a place, or NULL. */
GIN_OP void *gin_i_local(const gin_t *g, gin_at_t at, uint64_t bytes)
{
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        return (void *)(uintptr_t)at.off;
    const struct gin_i_window *w = gin_i_window(g, at.win);
    return GIN_LIKELY(gin_i_inside(w, at, bytes)) ? (void *)(uintptr_t)(w->local + at.off) : NULL;
}

/* The cell that CPU peers raise for slot `id` of g's context at an LSA peer. */
GIN_OP uint64_t *gin_i_cell(const gin_t *g, int lsa, uint32_t id)
{
    uint64_t a = g->lsa_base + (uint64_t)(uint32_t)lsa * g->lsa_stride + g->ctx->signals_off;
    return &((struct gin_i_cells *)(uintptr_t)a)[id].cpu;
}

/* Copy between mapped memory. Aligned words go in one store, so that a poller sees them whole. */
GIN_OP void gin_i_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes == 8 && (((uintptr_t)dst | (uintptr_t)src) & 7) == 0)
        GIN_STORE_RELAXED((uint64_t *)dst, GIN_LOAD_RELAXED((const uint64_t *)src));
    else if (bytes == 4 && (((uintptr_t)dst | (uintptr_t)src) & 3) == 0)
        GIN_STORE_RELAXED((uint32_t *)dst, GIN_LOAD_RELAXED((const uint32_t *)src));
    else if (bytes == 2 && (((uintptr_t)dst | (uintptr_t)src) & 1) == 0)
        GIN_STORE_RELAXED((uint16_t *)dst, GIN_LOAD_RELAXED((const uint16_t *)src));
    else
        memcpy(dst, src, bytes);
}

#endif
