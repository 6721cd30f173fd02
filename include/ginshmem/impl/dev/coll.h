/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of collective.h in kernels: what is refused, and how a call goes. One function, called,
 * does them all, so that a kernel carries it once. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_COLL_H
#define GINSHMEM_IMPL_DEV_COLL_H

#include <ginshmem/impl/dev/coll_step.h>

/* Bytes up to which everybody folds everything himself: one exchange, not two. */
#define GIN_I_COLL_DIRECT 8192u

/* ---- arguments: the same verdict in all lanes ---- */

GIN_DEV int gin_i_coll_extent(const struct gin_i_coll_call *o, const size_t *counts,
                              const size_t *firsts, uint64_t *elements)
{
    uint64_t sum = 0, most = ((uint64_t)1 << 56) / o->n;
    *elements = 0;
    if (counts == NULL)
        return GIN_EINVAL;
    for (uint32_t r = 0; r < o->n; r++) {
        uint64_t first = firsts != NULL ? firsts[r] : sum;
        if (counts[r] > most || first > most)
            return GIN_ERANGE;
        sum += counts[r];
        if (counts[r] != 0 && first + counts[r] > *elements)
            *elements = first + counts[r];
    }
    return GIN_OK;
}

/* Elements of either side; 0: it is not looked at. */
GIN_DEV int gin_i_coll_extents(const struct gin_i_coll_call *o, uint64_t *dst, uint64_t *src)
{
    int at_root = (int)o->me == o->a.root;
    uint64_t count = o->a.count, all = count * o->n;
    if (o->a.kind == GIN_I_COLL_ALLTOALLV) {
        int st = gin_i_coll_extent(o, o->a.dst_counts, o->a.dst_firsts, dst);
        if (st == GIN_OK)
            st = gin_i_coll_extent(o, o->a.src_counts, o->a.src_firsts, src);
        return st == GIN_OK && o->a.dst_counts[o->me] != o->a.src_counts[o->me] ? (int)GIN_EINVAL
                                                                                : st;
    }
    if (count > ((uint64_t)1 << 56) / o->n)
        return GIN_ERANGE;
    *dst = *src = count;
    switch (o->a.kind) {
    case GIN_I_COLL_SYNC: *dst = *src = 0; break;
    case GIN_I_COLL_BROADCAST: *src = at_root ? count : 0; break;
    case GIN_I_COLL_ALLGATHER: *dst = all; break;
    case GIN_I_COLL_GATHER: *dst = at_root ? all : 0; break;
    case GIN_I_COLL_ALLTOALL: *dst = *src = all; break;
    case GIN_I_COLL_REDUCE: *dst = at_root ? count : 0; break;
    case GIN_I_COLL_REDUCE_SCATTER: *src = all; break;
    default: break;
    }
    return GIN_OK;
}

GIN_DEV int gin_i_coll_place(const struct gin_i_coll_call *o, gin_at_t at, uint64_t bytes,
                             uint64_t *addr)
{
    *addr = 0;
    if (bytes == 0)
        return GIN_OK;
    struct gin_i_place p = gin_i_dev_local(&o->g, at, bytes);
    if (p.status != GIN_OK)
        return p.status < 0 ? p.status : (int)GIN_ENOTSUP;
    *addr = p.addr;
    return p.addr + bytes < p.addr   ? (int)GIN_ERANGE
           : gin_i_is_global(p.addr) ? (int)GIN_OK
                                     : (int)GIN_ENOTSUP;
}

/* In place, or apart. */
GIN_DEV int gin_i_coll_overlap(struct gin_i_coll_call *o, uint64_t dst, uint64_t src)
{
    o->in_place = dst != 0 && src != 0 && o->dst == o->src;
    if (dst == 0 || src == 0)
        return GIN_OK;
    if (!o->in_place)
        return o->dst + dst <= o->src || o->src + src <= o->dst ? GIN_OK : (int)GIN_EINVAL;
    if (o->a.kind != GIN_I_COLL_ALLTOALLV)
        return GIN_OK;
    for (uint32_t r = 0; r < o->n; r++)
        if (o->a.dst_counts[r] != o->a.src_counts[r] ||
            (o->a.dst_firsts == NULL) != (o->a.src_firsts == NULL) ||
            (o->a.dst_firsts != NULL && o->a.dst_firsts[r] != o->a.src_firsts[r]))
            return GIN_EINVAL;
    return GIN_OK;
}

/* Where sources may be read while the call goes on, they lie in the heap that all know of. */
GIN_DEV void gin_i_coll_place_source(struct gin_i_coll_call *o, uint64_t bytes)
{
    uint64_t heap = o->g.lsa_base + (uint64_t)(uint32_t)o->g.lsa_rank * o->g.lsa_stride;
    uint32_t k = o->a.kind;
    o->heap =
        bytes != 0 && o->src - heap < o->g.heap_size && bytes <= o->g.heap_size - (o->src - heap);
    o->refer = !o->in_place || k == GIN_I_COLL_BROADCAST || k == GIN_I_COLL_ALLGATHER ||
               k == GIN_I_COLL_GATHER || k == GIN_I_COLL_REDUCE;
    if (!o->in_place || (k != GIN_I_COLL_ALLGATHER && k != GIN_I_COLL_GATHER))
        return;
    o->src += o->me * o->a.count * o->size; /* mine is in its place there */
    o->a.src.off += o->me * o->a.count * o->size;
}

GIN_DEV int gin_i_coll_resolve(struct gin_i_coll_call *o)
{
    uint64_t dst, src;
    int folds = gin_i_coll_folds(o), k = (int)o->a.kind;
    int rooted = k == GIN_I_COLL_BROADCAST || k == GIN_I_COLL_GATHER || k == GIN_I_COLL_REDUCE;
    if ((uint32_t)o->a.type > GIN_COMPLEX_DOUBLE || (folds && (uint32_t)o->a.op > GIN_XOR))
        return GIN_EINVAL;
    if (folds && !gin_i_type_can(o->a.type, o->a.op))
        return GIN_ENOTSUP;
    if (rooted && (uint32_t)o->a.root >= o->n)
        return GIN_ERANGE;
    o->size = gin_i_type_size(o->a.type);
    int st = gin_i_coll_extents(o, &dst, &src);
    if (st == GIN_OK)
        st = gin_i_coll_place(o, o->a.dst, dst * o->size, &o->dst);
    if (st == GIN_OK)
        st = gin_i_coll_place(o, o->a.src, src * o->size, &o->src);
    if (st == GIN_OK)
        st = gin_i_coll_overlap(o, dst * o->size, src * o->size);
    if (st == GIN_OK)
        gin_i_coll_place_source(o, src * o->size);
    if (o->a.count == 0 && k != GIN_I_COLL_ALLTOALLV)
        o->a.kind = GIN_I_COLL_SYNC;
    return st;
}

GIN_DEV int gin_i_coll_team(struct gin_i_coll_call *o)
{
    if (o->a.team.size <= 0)
        return GIN_EINVAL;
    if ((uint32_t)o->a.team.rank >= (uint32_t)o->a.team.size)
        return GIN_ESTATE;
    int world = gin_i_dev_world(&o->g, o->a.team, o->a.team.rank);
    o->n = (uint32_t)o->a.team.size;
    o->me = (uint32_t)o->a.team.rank;
    return world < 0 ? world : world != o->g.rank ? (int)GIN_EINVAL : (int)GIN_OK;
}

GIN_DEV int gin_i_coll_find(struct gin_i_coll_call *o)
{
    o->all = (const struct gin_i_colls *)gin_i_nc_u64(&o->g.dc->colls);
    if (o->all == NULL)
        return GIN_ERANGE;
    if (o->a.index >= gin_i_nc_u32(&o->all->count))
        return GIN_ERANGE;
    o->c = (struct gin_i_coll *)gin_i_nc_u64(&o->all->index) + o->a.index;
    o->links = (struct gin_i_coll_link *)gin_i_nc_u64(&o->c->links);
    o->from = (uint64_t *)gin_i_nc_u64(&o->c->from);
    o->whole = o->from + gin_i_nc_u32(&o->all->n);
    o->ring = gin_i_barrier_ring(&o->g);
    o->slot = gin_i_nc_u64(&o->all->slot);
    o->mine = o->g.lsa_base + (uint64_t)(uint32_t)o->g.lsa_rank * o->g.lsa_stride +
              gin_i_nc_u64(&o->all->off) + o->a.index * gin_i_nc_u64(&o->all->each);
    return GIN_OK;
}

/* ---- going ---- */

/* Everybody folds his share, then gets those of others. In place, too: my share of dst is read by
 * me alone before it is written, and that of others is written when they have read it. */
GIN_DEV int gin_i_coll_in_shares(struct gin_i_coll_call *o)
{
    o->a.kind = GIN_I_COLL_SHARES;
    o->refer = 1;
    o->in_place = 0;
    int st = gin_i_coll_exchange(o);
    o->a.kind = GIN_I_COLL_SHARES_OUT;
    o->a.src = o->a.dst;
    o->src = o->dst;
    uint64_t heap = o->g.lsa_base + (uint64_t)(uint32_t)o->g.lsa_rank * o->g.lsa_stride;
    o->heap =
        o->dst - heap < o->g.heap_size && o->a.count * o->size <= o->g.heap_size - (o->dst - heap);
    return st == GIN_OK ? gin_i_coll_exchange(o) : st;
}

GIN_DEV int gin_i_coll_run(struct gin_i_coll_call *o)
{
    int st = GIN_OK;
    for (uint32_t i = 1 + o->q.lane; i < o->n && st == GIN_OK; i += o->q.lanes)
        st = gin_i_coll_reaches(o, gin_i_coll_world(o, gin_i_coll_peer(o, i)));
    if (GIN_UNLIKELY(gin_i_group_or(&o->q, st != GIN_OK)))
        return GIN_ENOTSUP;
    gin_i_group_order(&o->q);
    if (o->a.kind == GIN_I_COLL_SCAN_EXCLUSIVE && o->me == 0) {
        st = gin_i_coll_exchange(o); /* it is not overwritten before it is sent */
        gin_i_neutral_fill(o->dst, o->a.count, o->a.type, o->a.op, o->q.lane, o->q.lanes);
        return st;
    }
    if (o->a.kind == GIN_I_COLL_ALLREDUCE && o->n > 2 && o->a.count * o->size > GIN_I_COLL_DIRECT)
        return gin_i_coll_in_shares(o);
    return gin_i_coll_exchange(o);
}

/* By the leader. */
GIN_DEV int gin_i_coll_enter(const struct gin_i_coll_call *o)
{
    if (GIN_UNLIKELY(gin_i_atom_exch_gpu(&o->c->busy, 1) != 0))
        return GIN_ESTATE;
    int st = gin_i_error_of(gin_i_ld_relaxed_gpu(&o->c->broken));
    if (GIN_UNLIKELY(st != GIN_OK))
        gin_i_st_relaxed_gpu(&o->c->busy, 0);
    return st;
}

GIN_DEV_CALL int gin_i_coll_of(const gin_t *g, gin_group_t grp, const struct gin_i_coll_args *a)
{
    struct gin_i_coll_call call = {}, *o = &call;
    o->g = *g;
    o->a = *a;
    int st = gin_i_dev_enter(g, grp, 1, &o->q);
    if (st == GIN_OK)
        st = gin_i_coll_find(o);
    if (st == GIN_OK)
        st = gin_i_coll_team(o);
    if (st == GIN_OK)
        st = gin_i_coll_resolve(o);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_group_sync(&o->q);
    st = gin_i_group_status(&o->q, o->q.lane == 0 ? gin_i_coll_enter(o) : (int)GIN_OK);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    st = gin_i_coll_run(o);
    gin_i_group_sync(&o->q); /* links are written, before another group comes */
    if (o->q.lane == 0)
        gin_i_atom_exch_gpu(&o->c->busy, 0);
    return st;
}

/* With a copy: what a function gets the address of is kept in memory. */
GIN_DEV int gin_i_coll(const gin_t *g, gin_group_t grp, const struct gin_i_coll_args *a)
{
    gin_t bound = *g;
    return gin_i_coll_of(&bound, grp, a);
}

GIN_DEV struct gin_i_coll_args gin_i_coll_asked(uint32_t kind, gin_team_t team, uint32_t index,
                                                gin_at_t dst, gin_at_t src, uint64_t count,
                                                int type)
{
    struct gin_i_coll_args a = {};
    a.kind = kind;
    a.team = team;
    a.index = index;
    a.dst = dst;
    a.src = src;
    a.count = count;
    a.type = type;
    return a;
}

/* ---- the calls ---- */

GIN_OP int gin_sync(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index)
{
    gin_at_t none = gin_at(gin_window_none(), 0);
    struct gin_i_coll_args a =
        gin_i_coll_asked(GIN_I_COLL_SYNC, team, index, none, none, 0, GIN_INT8);
    return gin_i_coll(g, grp, &a);
}

GIN_OP int gin_broadcast(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, int root)
{
    struct gin_i_coll_args a =
        gin_i_coll_asked(GIN_I_COLL_BROADCAST, team, index, dst, src, count, (int)type);
    a.root = root;
    return gin_i_coll(g, grp, &a);
}

GIN_OP int gin_allgather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type)
{
    struct gin_i_coll_args a =
        gin_i_coll_asked(GIN_I_COLL_ALLGATHER, team, index, dst, src, count, (int)type);
    return gin_i_coll(g, grp, &a);
}

GIN_OP int gin_gather(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                      gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, int root)
{
    struct gin_i_coll_args a =
        gin_i_coll_asked(GIN_I_COLL_GATHER, team, index, dst, src, count, (int)type);
    a.root = root;
    return gin_i_coll(g, grp, &a);
}

GIN_OP int gin_alltoall(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                        gin_at_t dst, gin_at_t src, size_t count, gin_type_t type)
{
    struct gin_i_coll_args a =
        gin_i_coll_asked(GIN_I_COLL_ALLTOALL, team, index, dst, src, count, (int)type);
    return gin_i_coll(g, grp, &a);
}

GIN_OP int gin_alltoallv(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, const size_t *dst_counts, const size_t *dst_firsts,
                         gin_at_t src, const size_t *src_counts, const size_t *src_firsts,
                         gin_type_t type)
{
    struct gin_i_coll_args a =
        gin_i_coll_asked(GIN_I_COLL_ALLTOALLV, team, index, dst, src, 0, (int)type);
    a.dst_counts = dst_counts;
    a.dst_firsts = dst_firsts;
    a.src_counts = src_counts;
    a.src_firsts = src_firsts;
    return gin_i_coll(g, grp, &a);
}

GIN_DEV int gin_i_coll_reduction(uint32_t kind, const gin_t *g, gin_group_t grp, gin_team_t team,
                                 uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                 gin_type_t type, gin_reduction_t op, int root)
{
    struct gin_i_coll_args a = gin_i_coll_asked(kind, team, index, dst, src, count, (int)type);
    a.op = (int)op;
    a.root = root;
    return gin_i_coll(g, grp, &a);
}

GIN_OP int gin_allreduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                         gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                         gin_reduction_t op)
{
    return gin_i_coll_reduction(GIN_I_COLL_ALLREDUCE, g, grp, team, index, dst, src, count, type,
                                op, 0);
}

GIN_OP int gin_reduce(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                      gin_at_t dst, gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op,
                      int root)
{
    return gin_i_coll_reduction(GIN_I_COLL_REDUCE, g, grp, team, index, dst, src, count, type, op,
                                root);
}

GIN_OP int gin_reduce_scatter(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                              gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                              gin_reduction_t op)
{
    return gin_i_coll_reduction(GIN_I_COLL_REDUCE_SCATTER, g, grp, team, index, dst, src, count,
                                type, op, 0);
}

GIN_OP int gin_scan(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index, gin_at_t dst,
                    gin_at_t src, size_t count, gin_type_t type, gin_reduction_t op)
{
    return gin_i_coll_reduction(GIN_I_COLL_SCAN, g, grp, team, index, dst, src, count, type, op, 0);
}

GIN_OP int gin_scan_exclusive(const gin_t *g, gin_group_t grp, gin_team_t team, uint32_t index,
                              gin_at_t dst, gin_at_t src, size_t count, gin_type_t type,
                              gin_reduction_t op)
{
    return gin_i_coll_reduction(GIN_I_COLL_SCAN_EXCLUSIVE, g, grp, team, index, dst, src, count,
                                type, op, 0);
}

#endif
