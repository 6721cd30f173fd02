/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of lsa.h in kernels. All ranks' places are judged first, by all lanes alike; then lanes
 * share the elements out. By multicast where the device communicator has addresses and the GPU the
 * instructions; else rank by rank, each lane on its own elements, so that nobody waits in between.
 * Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_LSA_H
#define GINSHMEM_IMPL_DEV_LSA_H

#include <ginshmem/impl/dev/amo.h>

/* The multicast address of a place of the heap, 0 where there is none. */
GIN_DEV uint64_t gin_i_multicast(const gin_t *g, gin_at_t at, uint64_t bytes)
{
#if GIN_I_MULTIMEM
    if (at.win.w == g->heap_handle && gin_i_dev_inside(g->heap_size, at.off, bytes)) {
        uint64_t base = gin_i_nc_u64(&g->dc->multimem);
        return base != 0 ? base + at.off : 0;
    }
#endif
    (void)g, (void)at, (void)bytes;
    return 0;
}

/* A place at an LSA rank. */
GIN_DEV struct gin_i_place gin_i_lsa_place(const gin_t *g, gin_team_t lsa, int rank, gin_at_t at,
                                           uint64_t bytes, int update)
{
    int world = gin_i_dev_world(g, lsa, rank);
    if (GIN_UNLIKELY(world < 0))
        return gin_i_placed(0, world, 0);
    return gin_i_dev_place(g, gin_i_dev_lsa(g, world), at, bytes, update && world != g->rank);
}

/* Whether the place can be used at every LSA rank: mapped, aligned, with these updates. */
GIN_DEV int gin_i_lsa_judge(const gin_t *g, gin_team_t lsa, gin_at_t at, uint64_t bytes, int update,
                            uint64_t align, uint32_t needs)
{
    if (GIN_UNLIKELY(at.win.w == GIN_I_WINDOW_LOCAL || lsa.size < 1))
        return GIN_EINVAL;
    for (int r = 0; r < lsa.size; r++) {
        struct gin_i_place p = gin_i_lsa_place(g, lsa, r, at, bytes, update);
        if (GIN_UNLIKELY(p.status < 0))
            return p.status;
        if (GIN_UNLIKELY(p.status == GIN_I_ENGINE || (p.apply & needs) != needs))
            return GIN_ENOTSUP;
        if (GIN_UNLIKELY(((p.addr | at.off) & (align - 1)) != 0))
            return GIN_EINVAL;
    }
    return GIN_OK;
}

/* ---- broadcast ---- */

#if GIN_I_MULTIMEM
GIN_DEV void gin_i_multicast_out(uint64_t to, uint64_t from, uint64_t bytes,
                                 const struct gin_i_group *q)
{
    uint64_t done = 0;
    if (((to | from) & 15) == 0) {
        done = bytes & ~(uint64_t)15;
#pragma unroll 4
        for (uint64_t i = 16 * (uint64_t)q->lane; i < done; i += 16 * (uint64_t)q->lanes)
            gin_i_mm_st128((void *)(to + i), gin_i_ld128_generic((const void *)(from + i)));
    }
    for (uint64_t i = done + 4 * (uint64_t)q->lane; i < bytes; i += 4 * (uint64_t)q->lanes)
        gin_i_mm_st32((uint32_t *)(to + i), *(const volatile uint32_t *)(from + i));
}
#endif

GIN_OP int gin_lsa_broadcast(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src,
                             size_t bytes)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_team_t lsa = gin_lsa(g);
    struct gin_i_place from = gin_i_dev_local(g, src, bytes);
    if (GIN_UNLIKELY(from.status != GIN_OK))
        return from.status < 0 ? from.status : (int)GIN_ENOTSUP;
    st = gin_i_lsa_judge(g, lsa, dst, bytes, 1, 1, 0);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(&q);
#if GIN_I_MULTIMEM
    uint64_t all = gin_i_multicast(g, dst, bytes);
    if (all != 0 && ((all | from.addr | bytes) & 3) == 0) {
        gin_i_multicast_out(all, from.addr, bytes, &q);
        gin_i_group_sync(&q);
        return GIN_OK;
    }
#endif
    for (int i = 0; i < lsa.size; i++) { /* not all at one rank at once */
        int r = lsa.rank + i < lsa.size ? lsa.rank + i : lsa.rank + i - lsa.size;
        struct gin_i_place to = gin_i_lsa_place(g, lsa, r, dst, bytes, 1);
        gin_i_copy<GIN_I_OUT>(to.addr, from.addr, bytes, q.lane, q.lanes);
    }
    gin_i_group_sync(&q);
    return GIN_OK;
}

/* ---- reduction ---- */

template <class T> GIN_DEV T gin_i_bitwise(T a, T b, int op)
{
    return op == GIN_AND ? a & b : op == GIN_OR ? a | b : a ^ b;
}
GIN_DEV float gin_i_bitwise(float a, float, int)
{
    return a;
}
GIN_DEV double gin_i_bitwise(double a, double, int)
{
    return a;
}

template <class T> GIN_DEV T gin_i_reduce_two(T a, T b, int op)
{
    switch (op) {
    case GIN_SUM: return a + b;
    case GIN_MIN: return b < a ? b : a;
    case GIN_MAX: return a < b ? b : a;
    default: return gin_i_bitwise(a, b, op);
    }
}

/* One rank's elements into mine. */
template <class T>
GIN_DEV void gin_i_reduce_in(uint64_t dst, uint64_t src, uint64_t count, int op, int first,
                             const struct gin_i_group *q)
{
    T *to = (T *)dst;
    const volatile T *from = (const volatile T *)src; /* past the caches */
#pragma unroll 4
    for (uint64_t i = q->lane; i < count; i += q->lanes)
        to[i] = first ? from[i] : gin_i_reduce_two<T>(to[i], from[i], op);
}

#if GIN_I_MULTIMEM
/* Whether a switch has an instruction for it. */
template <class T> GIN_DEV int gin_i_multicast_has(const T *, int)
{
    return 1;
}
GIN_DEV int gin_i_multicast_has(const float *, int op)
{
    return op == GIN_SUM;
}
GIN_DEV int gin_i_multicast_has(const double *, int op)
{
    return op == GIN_SUM;
}

#define GIN_I_MM_REDUCE(type, bits, suffix)                                  \
    GIN_DEV type gin_i_multicast_load(const type *p, int op)                 \
    {                                                                        \
        switch (op) {                                                        \
        case GIN_SUM: return (type)gin_i_mm_add_##bits((const bits##_t *)p); \
        case GIN_MIN: return gin_i_mm_min_##suffix(p);                       \
        case GIN_MAX: return gin_i_mm_max_##suffix(p);                       \
        case GIN_AND: return (type)gin_i_mm_and_##bits((const bits##_t *)p); \
        case GIN_OR: return (type)gin_i_mm_or_##bits((const bits##_t *)p);   \
        default: return (type)gin_i_mm_xor_##bits((const bits##_t *)p);      \
        }                                                                    \
    }
GIN_I_MM_REDUCE(uint32_t, uint32, u32)
GIN_I_MM_REDUCE(int32_t, uint32, s32)
GIN_I_MM_REDUCE(uint64_t, uint64, u64)
GIN_I_MM_REDUCE(int64_t, uint64, s64)

GIN_DEV float gin_i_multicast_load(const float *p, int)
{
    return gin_i_mm_add_f32(p);
}
GIN_DEV double gin_i_multicast_load(const double *p, int)
{
    return gin_i_mm_add_f64(p);
}
#endif

template <class T>
GIN_DEV int gin_i_reduce_all(const gin_t *g, const struct gin_i_group *q, uint64_t dst,
                             gin_at_t src, uint64_t count, int op)
{
    const gin_team_t lsa = gin_lsa(g);
    const uint64_t bytes = count * sizeof(T);
    int st = gin_i_lsa_judge(g, lsa, src, bytes, 0, sizeof(T), 0);
    if (st == GIN_OK && (dst & (sizeof(T) - 1)) != 0)
        st = GIN_EINVAL;
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(q);
#if GIN_I_MULTIMEM
    uint64_t all = gin_i_multicast(g, src, bytes);
    if (all != 0 && gin_i_multicast_has((const T *)all, op)) {
#pragma unroll 4
        for (uint64_t i = q->lane; i < count; i += q->lanes)
            ((T *)dst)[i] = gin_i_multicast_load((const T *)all + i, op);
        gin_i_group_sync(q);
        return GIN_OK;
    }
#endif
    for (int r = 0; r < lsa.size; r++)
        gin_i_reduce_in<T>(dst, gin_i_lsa_place(g, lsa, r, src, bytes, 0).addr, count, op, r == 0,
                           q);
    gin_i_group_sync(q);
    return GIN_OK;
}

GIN_DEV int gin_i_reduce_can(int type, int op)
{
    if ((unsigned)type > GIN_COMPLEX_DOUBLE || (unsigned)op > GIN_XOR)
        return GIN_EINVAL;
    int integer = type >= GIN_INT32 && type <= GIN_UINT64;
    int real = (type == GIN_FLOAT || type == GIN_DOUBLE) && op <= GIN_MAX;
    return op != GIN_PROD && (integer || real) ? GIN_OK : GIN_ENOTSUP;
}

GIN_OP int gin_lsa_reduce(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src, size_t count,
                          gin_type_t type, gin_reduction_t op)
{
    struct gin_i_group q;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (st == GIN_OK)
        st = gin_i_reduce_can((int)type, (int)op);
    if (st == GIN_OK && count > ~(uint64_t)0 / 8)
        st = GIN_ERANGE;
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int wide = type == GIN_INT64 || type == GIN_UINT64 || type == GIN_DOUBLE;
    struct gin_i_place to = gin_i_dev_local(g, dst, count * (wide ? 8 : 4));
    if (GIN_UNLIKELY(to.status != GIN_OK))
        return to.status < 0 ? to.status : (int)GIN_ENOTSUP;
    switch (type) {
    case GIN_INT32: return gin_i_reduce_all<int32_t>(g, &q, to.addr, src, count, (int)op);
    case GIN_UINT32: return gin_i_reduce_all<uint32_t>(g, &q, to.addr, src, count, (int)op);
    case GIN_INT64: return gin_i_reduce_all<int64_t>(g, &q, to.addr, src, count, (int)op);
    case GIN_UINT64: return gin_i_reduce_all<uint64_t>(g, &q, to.addr, src, count, (int)op);
    case GIN_FLOAT: return gin_i_reduce_all<float>(g, &q, to.addr, src, count, (int)op);
    default: return gin_i_reduce_all<double>(g, &q, to.addr, src, count, (int)op);
    }
}

/* ---- a word of each ---- */

GIN_OP int gin_lsa_add(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t value)
{
    struct gin_i_group q, warp;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_team_t lsa = gin_lsa(g);
    st = gin_i_lsa_judge(g, lsa, at, 8, 1, 8, GIN_I_APPLY_ATOMICS);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(&q);
#if GIN_I_MULTIMEM
    uint64_t all = gin_i_multicast(g, at, 8);
    if (all != 0) {
        if (q.lane == 0)
            gin_i_mm_red_add((uint64_t *)all, value);
        gin_i_group_sync(&q);
        return GIN_OK;
    }
#endif
    if (gin_i_group_helpers(&q, &warp))
        for (uint32_t r = warp.lane; r < (uint32_t)lsa.size; r += warp.lanes)
            gin_i_red_add_relaxed_sys((uint64_t *)gin_i_lsa_place(g, lsa, (int)r, at, 8, 1).addr,
                                      value);
    gin_i_group_sync(&q);
    return GIN_OK;
}

#endif
