/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From (team, peer, window, offset) to an address of this GPU. The heap of the devcomm's device is
 * found in registers; other windows in the table, through the read-only cache; what is not there in
 * good order is looked up once more past the caches, and then judged. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_PATH_H
#define GINSHMEM_IMPL_DEV_PATH_H

#include <ginshmem/impl/dev/group.h>

/* A place at a peer or here. */
struct gin_i_place {
    uint64_t addr;
    int status; /* GIN_OK, an error, or GIN_I_ENGINE: not mapped here, the engine may reach it */
    uint32_t apply; /* enum gin_i_window_apply */
};
#define GIN_I_ENGINE 1

GIN_DEV struct gin_i_place gin_i_placed(uint64_t addr, int status, uint32_t apply)
{
    struct gin_i_place p = {addr, status, apply};
    return p;
}

/* What lsa_of says of a rank that nobody reaches, and of me for my own places. */
#define GIN_I_NOT_LSA (-1)
#define GIN_I_MYSELF  (-2)

/* ---- ranks ---- */

/* World rank in a list of ranks, or why there is none. */
GIN_DEV_CALL int gin_i_list_rank(const struct gin_i_list *lists, int32_t size, int32_t first,
                                 int rank)
{
    if (size <= 0)
        return GIN_EINVAL;
    if (lists == NULL)
        return GIN_ESTATE;
    const struct gin_i_list *l = &lists[(uint32_t)first % GIN_I_LISTS];
    /* past the caches: lists come and go while a kernel runs */
    struct gin_i_16 e = gin_i_ld128_whole_sys(l);
    if (first <= 0 || (int32_t)(uint32_t)e.a != first || (int32_t)(e.a >> 32) != size)
        return GIN_ESTATE;
    if ((uint32_t)rank >= (uint32_t)size)
        return GIN_ERANGE;
    return (int)gin_i_ld32_relaxed_sys((const uint32_t *)e.b + rank);
}

/* World rank of a peer, or a negative status. */
GIN_DEV int gin_i_dev_world(const gin_t *g, gin_team_t team, int peer)
{
    if (GIN_LIKELY(team.stride != 0)) {
        int64_t w = (int64_t)team.first + (int64_t)peer * team.stride;
        if (GIN_LIKELY((uint32_t)peer < (uint32_t)team.size &&
                       (uint64_t)w < (uint64_t)(uint32_t)g->size))
            return (int)w;
        if (g->dc == NULL)
            return GIN_ESTATE;
        return team.size > 0 && (uint32_t)peer >= (uint32_t)team.size ? GIN_ERANGE : GIN_EINVAL;
    }
    return g->dc == NULL ? GIN_ESTATE
                         : gin_i_list_rank((const struct gin_i_list *)gin_i_nc_u64(&g->dc->lists),
                                           team.size, team.first, peer);
}

/* LSA rank of a world rank, perhaps with GIN_I_LSA_HOST_ONLY; GIN_I_NOT_LSA,
 * GIN_I_LSA_BY_ENGINE. */
GIN_DEV int gin_i_dev_lsa(const gin_t *g, int world)
{
    uint32_t r = (uint32_t)(world - g->lsa_first);
    return GIN_LIKELY(r < (uint32_t)g->lsa_count) ? (int)r : (int)gin_i_nc_u32(&g->lsa_of[world]);
}

/* The peer's part of my device's heap is mapped. */
GIN_DEV int gin_i_in_reach(int lsa)
{
    return (uint32_t)lsa < (uint32_t)GIN_I_LSA_HOST_ONLY;
}

/* ---- windows ---- */

/* The entry of a window, past the caches or through them. 0: it is not live. */
GIN_DEV int gin_i_window_read(const struct gin_i_window *const *windows, uint64_t handle,
                              int cached, struct gin_i_window *w)
{
    uint32_t id = (uint32_t)handle;
    const void *slot = &windows[(id / GIN_I_WINDOW_PAGE) % GIN_I_WINDOW_PAGES];
    const char *e;
    struct gin_i_16 v[4];
    e = (const char *)(cached ? gin_i_nc_u64(slot) : gin_i_ld_relaxed_sys((const uint64_t *)slot));
    e += sizeof(struct gin_i_window) * (id % GIN_I_WINDOW_PAGE);
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = cached ? gin_i_nc_128(e + 16 * i) : gin_i_ld128_relaxed_sys(e + 16 * i);
    w->handle = v[0].a;
    w->size = v[0].b;
    w->local = v[1].a;
    w->lsa_base = v[1].b;
    w->lsa_stride = v[2].a;
    w->peers = (const uint64_t *)v[2].b;
    w->mode = (uint8_t)v[3].a;
    w->kind = (uint8_t)(v[3].a >> 8);
    w->apply = (uint8_t)(v[3].a >> 16);
    w->flags = (uint32_t)(v[3].a >> 32);
    w->twin = v[3].b;
    return w->handle == handle && w->twin == handle && handle != 0;
}

GIN_DEV int gin_i_dev_inside(uint64_t size, uint64_t off, uint64_t bytes)
{
    return off <= size && bytes <= size - off;
}

GIN_DEV struct gin_i_place gin_i_window_place(const struct gin_i_window *w, int lsa, uint64_t off,
                                              int update)
{
    if (lsa == GIN_I_MYSELF)
        return w->local == 0 ? gin_i_placed(0, GIN_I_ENGINE, 0)
                             : gin_i_placed(w->local + off, GIN_OK, w->apply);
    if (update && (w->flags & GIN_WIN_READ_ONLY))
        return gin_i_placed(0, GIN_ENOTSUP, 0);
    if (GIN_UNLIKELY(lsa == GIN_I_NOT_LSA))
        return gin_i_placed(0, GIN_ENOTSUP, 0);
    if (lsa == GIN_I_LSA_BY_ENGINE || w->mode == GIN_I_WINDOW_SLOW)
        return gin_i_placed(0, GIN_I_ENGINE, 0);
    uint32_t rank = (uint32_t)lsa & (uint32_t)GIN_I_LSA_RANK;
    if (w->mode == GIN_I_WINDOW_TABLE) {
        uint64_t base = gin_i_nc_u64(&w->peers[rank]);
        return base == 0 ? gin_i_placed(0, GIN_I_ENGINE, 0)
                         : gin_i_placed(base + off, GIN_OK, w->apply);
    }
    if (w->kind != GIN_KIND_HOST && !gin_i_in_reach(lsa))
        return gin_i_placed(0, lsa & GIN_I_LSA_NO_GPU ? (int)GIN_ENOTSUP : GIN_I_ENGINE, 0);
    return gin_i_placed(w->lsa_base + rank * w->lsa_stride + off, GIN_OK, w->apply);
}

GIN_DEV_CALL struct gin_i_place gin_i_find_place(const struct gin_i_window *const *windows,
                                                 uint64_t handle, uint64_t off, uint64_t bytes,
                                                 int lsa, int update)
{
    struct gin_i_window w;
    if (gin_i_window_read(windows, handle, 1, &w) && gin_i_dev_inside(w.size, off, bytes))
        return gin_i_window_place(&w, lsa, off, update);
    if (!gin_i_window_read(windows, handle, 0, &w))
        return gin_i_placed(0, handle == GIN_I_WINDOW_LOCAL ? GIN_EINVAL : GIN_ESTATE, 0);
    if (!gin_i_dev_inside(w.size, off, bytes))
        return gin_i_placed(0, GIN_ERANGE, 0);
    return gin_i_window_place(&w, lsa, off, update);
}

/* A place at a peer whose LSA rank the caller has, or, with GIN_I_MYSELF, of mine. update: the peer
 * is not me, so that a window that is read-only for peers is refused. */
GIN_DEV struct gin_i_place gin_i_dev_place(const gin_t *g, int lsa, gin_at_t at, uint64_t bytes,
                                           int update)
{
    int rank = lsa == GIN_I_MYSELF ? g->lsa_rank : lsa;
    if (GIN_LIKELY(at.win.w == g->heap_handle && gin_i_dev_inside(g->heap_size, at.off, bytes) &&
                   gin_i_in_reach(rank)))
        return gin_i_placed(g->lsa_base + (uint64_t)(uint32_t)rank * g->lsa_stride + at.off, GIN_OK,
                            g->flags >> GIN_I_DC_APPLY_SHIFT);
    return gin_i_find_place(g->windows, at.win.w, at.off, bytes, lsa, update);
}

/* Source of a put, destination of a get. */
GIN_DEV struct gin_i_place gin_i_dev_local(const gin_t *g, gin_at_t at, uint64_t bytes)
{
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        return gin_i_placed(at.off, at.off == 0 && bytes != 0 ? GIN_EINVAL : GIN_OK, 0);
    return gin_i_dev_place(g, GIN_I_MYSELF, at, bytes, 0);
}

/* The cell that GPU peers raise for a slot signal of g's context. */
GIN_DEV uint64_t *gin_i_dev_cell(const gin_t *g, int lsa, uint32_t id)
{
    uint64_t a = g->lsa_base + (uint64_t)(uint32_t)lsa * g->lsa_stride + g->signals_off;
    return &((struct gin_i_cells *)a)[id].gpu;
}

/* Records the status of a read or pointer call, which has no other way to tell. */
GIN_DEV void gin_i_note(const gin_t *g, int status)
{
    ((gin_t *)g)->status = status;
}

/* ---- entering a call ---- */

/*
 * The group is one, I am in it, and g is bound; `all` says whether GIN_ALL_CONTEXTS will do. The
 * same verdict in all lanes, so that a refused group leaves without meeting.
 */
GIN_DEV int gin_i_dev_enter(const gin_t *g, gin_group_t grp, int all, struct gin_i_group *q)
{
    if (GIN_UNLIKELY(g->flags & GIN_I_DC_DEAD))
        return GIN_ESTATE;
    if (GIN_UNLIKELY(!gin_i_group_make(grp, q) || (!all && (g->flags & GIN_I_DC_ALL))))
        return GIN_EINVAL;
    return GIN_OK;
}

#endif
