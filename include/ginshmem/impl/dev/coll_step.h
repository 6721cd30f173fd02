/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members exchange with each other directly, in steps of a slot: in each, everybody sends to all
 * before anything is written, so that working in place needs little of its own, and nobody waits
 * for room that depends on himself. What lies in the heap is read there by ranks that load and
 * store it, whole. Elements are folded in the order of ranks. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_COLL_STEP_H
#define GINSHMEM_IMPL_DEV_COLL_STEP_H

#include <ginshmem/impl/dev/coll_fold.h>
#include <ginshmem/impl/dev/coll_link.h>

/* ---- who sends what to whom ---- */

struct gin_i_coll_part {
    uint64_t off, bytes; /* from the start of src or dst */
    int is;              /* also where it is empty: of a sync */
};

GIN_DEV struct gin_i_coll_part gin_i_part(uint64_t off, uint64_t bytes)
{
    struct gin_i_coll_part p = {off, bytes, bytes != 0};
    return p;
}

/* Elements that rank r is in charge of: in units of 16 bytes, as far as they go. */
GIN_DEV struct gin_i_coll_part gin_i_coll_share(const struct gin_i_coll_call *o, uint32_t r)
{
    uint64_t bytes = o->a.count * o->size, each = ((bytes + 15) / 16 + o->n - 1) / o->n * 16;
    uint64_t from = each * r < bytes ? each * r : bytes;
    uint64_t to = from + each < bytes ? from + each : bytes;
    return gin_i_part(from, to - from);
}

GIN_DEV struct gin_i_coll_part gin_i_coll_counted(const struct gin_i_coll_call *o,
                                                  const size_t *counts, const size_t *firsts,
                                                  uint32_t r)
{
    uint64_t first = 0;
    if (firsts != NULL)
        first = firsts[r];
    else
        for (uint32_t i = 0; i < r; i++)
            first += counts[i];
    return gin_i_part(first * o->size, counts[r] * o->size);
}

/* Of src, to team rank r, which may be me. */
GIN_DEV_CALL struct gin_i_coll_part gin_i_coll_out(const struct gin_i_coll_call *o, uint32_t r)
{
    uint64_t all = o->a.count * o->size, root = (uint32_t)o->a.root;
    struct gin_i_coll_part none = {0, 0, 0};
    switch (o->a.kind) {
    case GIN_I_COLL_SYNC: none.is = r != o->me; return none;
    case GIN_I_COLL_BROADCAST: return gin_i_part(0, o->me == root ? all : 0);
    case GIN_I_COLL_GATHER:
    case GIN_I_COLL_REDUCE: return gin_i_part(0, r == root ? all : 0);
    case GIN_I_COLL_ALLTOALL:
    case GIN_I_COLL_REDUCE_SCATTER: return gin_i_part(r * all, all);
    case GIN_I_COLL_ALLTOALLV: return gin_i_coll_counted(o, o->a.src_counts, o->a.src_firsts, r);
    case GIN_I_COLL_SCAN: return gin_i_part(0, r >= o->me ? all : 0);
    case GIN_I_COLL_SCAN_EXCLUSIVE: return gin_i_part(0, r > o->me ? all : 0);
    case GIN_I_COLL_SHARES: return gin_i_coll_share(o, r);
    case GIN_I_COLL_SHARES_OUT: return gin_i_coll_share(o, o->me);
    default: return gin_i_part(0, all);
    }
}

/* Of dst, from team rank r. */
GIN_DEV_CALL struct gin_i_coll_part gin_i_coll_in(const struct gin_i_coll_call *o, uint32_t r)
{
    uint64_t all = o->a.count * o->size, root = (uint32_t)o->a.root;
    struct gin_i_coll_part none = {0, 0, 0};
    switch (o->a.kind) {
    case GIN_I_COLL_SYNC: none.is = r != o->me; return none;
    case GIN_I_COLL_BROADCAST: return gin_i_part(0, r == root ? all : 0);
    case GIN_I_COLL_ALLGATHER:
    case GIN_I_COLL_ALLTOALL: return gin_i_part(r * all, all);
    case GIN_I_COLL_GATHER: return gin_i_part(r * all, o->me == root ? all : 0);
    case GIN_I_COLL_REDUCE: return gin_i_part(0, o->me == root ? all : 0);
    case GIN_I_COLL_ALLTOALLV: return gin_i_coll_counted(o, o->a.dst_counts, o->a.dst_firsts, r);
    case GIN_I_COLL_SCAN: return gin_i_part(0, r <= o->me ? all : 0);
    case GIN_I_COLL_SCAN_EXCLUSIVE: return gin_i_part(0, r < o->me ? all : 0);
    case GIN_I_COLL_SHARES: return gin_i_coll_share(o, o->me);
    case GIN_I_COLL_SHARES_OUT: return gin_i_coll_share(o, r);
    default: return gin_i_part(0, all);
    }
}

GIN_DEV int gin_i_coll_folds(const struct gin_i_coll_call *o)
{
    return (o->a.kind >= GIN_I_COLL_ALLREDUCE && o->a.kind < GIN_I_COLL_KINDS) ||
           o->a.kind == GIN_I_COLL_SHARES;
}

/* Bytes of a part in the step that begins at `at`; *is: there is a message for them. */
GIN_DEV uint64_t gin_i_coll_rest(const struct gin_i_coll_call *o, const struct gin_i_coll_part *p,
                                 uint64_t at, int *is)
{
    uint64_t left = p->bytes > at ? p->bytes - at : 0;
    *is = left != 0 || (p->is && at == 0);
    return left < o->slot ? left : o->slot;
}

/* ---- a step ---- */

/* Whether a part goes by reference, and 1 + its offset in my heap. */
GIN_DEV uint64_t gin_i_coll_ref(const struct gin_i_coll_call *o, const struct gin_i_coll_part *p)
{
    return o->refer && o->heap != 0 && p->bytes >= GIN_I_COLL_REF
               ? 1 + o->src + p->off -
                     (o->g.lsa_base + (uint64_t)(uint32_t)o->g.lsa_rank * o->g.lsa_stride)
               : 0;
}

/* By lanes of peers: what needs no copy. *copies: the group has to store for somebody. */
GIN_DEV int gin_i_coll_send_lanes(struct gin_i_coll_call *o, uint64_t at, int *copies)
{
    int st = GIN_OK, is;
#pragma unroll 1
    for (uint32_t i = 1 + o->q.lane; i < o->n && st == GIN_OK; i += o->q.lanes) {
        uint32_t r = gin_i_coll_peer(o, i);
        struct gin_i_coll_part p = gin_i_coll_out(o, r);
        uint64_t k = gin_i_coll_rest(o, &p, at, &is);
        if (!is)
            continue;
        int world = gin_i_coll_world(o, r);
        uint64_t ref = gin_i_coll_near(o, world) != 0 ? gin_i_coll_ref(o, &p) : 0;
        if (ref != 0 && at != 0)
            continue;
        st = gin_i_coll_room(o, world);
        if (GIN_UNLIKELY(st != GIN_OK))
            break;
        if (gin_i_coll_near(o, world) == 0)
            st = gin_i_coll_send_far(o, world, gin_at(o->a.src.win, o->a.src.off + p.off + at), k);
        else if (ref != 0 || k == 0)
            gin_i_coll_tell(o, world, ref);
        o->referred |= ref != 0;
    }
    *copies = 0;
#pragma unroll 1
    for (uint32_t i = 1; i < o->n; i++) { /* the same verdict in all lanes */
        struct gin_i_coll_part p = gin_i_coll_out(o, gin_i_coll_peer(o, i));
        uint64_t k = gin_i_coll_rest(o, &p, at, &is);
        if (k != 0 && gin_i_coll_ref(o, &p) == 0 &&
            gin_i_coll_near(o, gin_i_coll_world(o, gin_i_coll_peer(o, i))) != 0) {
            *copies = 1;
            break;
        }
    }
    return st;
}

/* By the group: into the slots of ranks that are near, which have room; then their lanes tell. */
GIN_DEV void gin_i_coll_send_group(struct gin_i_coll_call *o, uint64_t at)
{
    int is;
#pragma unroll 1
    for (int tell = 0; tell < 2; tell++) {
        uint32_t first = tell ? o->q.lane : 0, step = tell ? o->q.lanes : 1;
#pragma unroll 1
        for (uint32_t i = 1 + first; i < o->n; i += step) {
            uint32_t r = gin_i_coll_peer(o, i);
            struct gin_i_coll_part p = gin_i_coll_out(o, r);
            uint64_t k = gin_i_coll_rest(o, &p, at, &is);
            int world = gin_i_coll_world(o, r);
            uint64_t near = gin_i_coll_near(o, world);
            if (k == 0 || near == 0 || gin_i_coll_ref(o, &p) != 0)
                continue;
            if (tell) {
                gin_i_coll_tell(o, world, 0);
                continue;
            }
            uint64_t place = gin_i_link_get(&o->links[world].sent) % GIN_I_COLL_SLOTS;
            gin_i_copy<GIN_I_OUT>(gin_i_coll_slot_of(o, near, o->g.rank, place),
                                  o->src + p.off + at, k, o->q.lane, o->q.lanes);
        }
        if (!tell)
            gin_i_group_sync(&o->q);
    }
}

/* By lanes of peers: wait for what comes, and take down where it lies. */
GIN_DEV int gin_i_coll_recv_lanes(struct gin_i_coll_call *o, uint64_t at)
{
    int st = GIN_OK, is, whole;
    uint64_t bytes;
    if (o->q.lane == 0) {
        struct gin_i_coll_part p = gin_i_coll_out(o, o->me);
        o->from[o->me] = o->src + p.off + at;
    }
#pragma unroll 1
    for (uint32_t i = 1 + o->q.lane; i < o->n && st == GIN_OK; i += o->q.lanes) {
        uint32_t r = gin_i_coll_peer(o, i);
        struct gin_i_coll_part p = gin_i_coll_in(o, r);
        gin_i_coll_rest(o, &p, at, &is);
        if (!is)
            continue;
        if (at != 0 && o->whole[r] != 0) {
            o->from[r] = o->whole[r] + at;
            continue;
        }
        st = gin_i_coll_recv(o, gin_i_coll_world(o, r), &bytes, &whole);
        o->whole[r] = whole ? bytes : 0;
        o->from[r] = bytes;
    }
    if (st == GIN_OK && o->in_place)
        st = gin_i_coll_flush(o); /* what I have posted is about to be overwritten */
    return st;
}

/* By the group. */
GIN_DEV void gin_i_coll_copy_all(const struct gin_i_coll_call *o, uint64_t at)
{
    int is;
#pragma unroll 1
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t r = gin_i_coll_peer(o, i);
        struct gin_i_coll_part p = gin_i_coll_in(o, r);
        uint64_t k = gin_i_coll_rest(o, &p, at, &is), from = o->from[r];
        if (k != 0 && from != o->dst + p.off + at)
            gin_i_copy<GIN_I_IN>(o->dst + p.off + at, from, k, o->q.lane, o->q.lanes);
    }
}

/* By the group. All parts that come in are as long as each other, or empty; they are those of ranks
 * 0 .. last. */
GIN_DEV void gin_i_coll_fold_all(const struct gin_i_coll_call *o, uint64_t at)
{
    int is;
    struct gin_i_coll_part p = gin_i_coll_in(o, 0);
    struct gin_i_fold f;
    f.bytes = gin_i_coll_rest(o, &p, at, &is);
    f.to = o->dst + p.off + at;
    f.from = o->from;
    f.n = o->a.kind == GIN_I_COLL_SCAN             ? o->me + 1
          : o->a.kind == GIN_I_COLL_SCAN_EXCLUSIVE ? o->me
                                                   : o->n;
    f.lane = o->q.lane;
    f.lanes = o->q.lanes;
    if (f.bytes != 0 && f.n != 0)
        gin_i_fold_all(&f, o->a.type, o->a.op);
}

/* By lanes of peers: places are free again. */
GIN_DEV int gin_i_coll_took_lanes(struct gin_i_coll_call *o, uint64_t at)
{
    int st = GIN_OK, is;
#pragma unroll 1
    for (uint32_t i = 1 + o->q.lane; i < o->n && st == GIN_OK; i += o->q.lanes) {
        uint32_t r = gin_i_coll_peer(o, i);
        struct gin_i_coll_part p = gin_i_coll_in(o, r);
        uint64_t k = gin_i_coll_rest(o, &p, at, &is);
        if (!is || (o->whole[r] != 0 && at + k < p.bytes))
            continue;
        st = gin_i_coll_took(o, gin_i_coll_world(o, r), o->whole[r] != 0);
    }
    return st;
}

/* ---- all steps ---- */

GIN_DEV int gin_i_coll_step(struct gin_i_coll_call *o, uint64_t at)
{
    int copies, st = gin_i_coll_send_lanes(o, at, &copies);
    if (copies) {
        st = gin_i_coll_meet(o, st);
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        gin_i_coll_send_group(o, at);
    }
    if (GIN_LIKELY(st == GIN_OK))
        st = gin_i_coll_recv_lanes(o, at);
    st = gin_i_coll_meet(o, st);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    if (gin_i_coll_folds(o))
        gin_i_coll_fold_all(o, at);
    else if (o->a.kind != GIN_I_COLL_SYNC)
        gin_i_coll_copy_all(o, at);
    gin_i_group_sync(&o->q);
    return gin_i_coll_took_lanes(o, at);
}

/* By lanes of peers: what was sent by reference has been read, what was posted may be reused. */
GIN_DEV int gin_i_coll_end(struct gin_i_coll_call *o)
{
    int st = gin_i_coll_flush(o);
    if (!o->referred)
        return st;
    o->referred = 0;
#pragma unroll 1
    for (uint32_t i = 1 + o->q.lane; i < o->n && st == GIN_OK; i += o->q.lanes) {
        uint32_t r = gin_i_coll_peer(o, i);
        struct gin_i_coll_part p = gin_i_coll_out(o, r);
        int world = gin_i_coll_world(o, r);
        if (gin_i_coll_ref(o, &p) != 0 && gin_i_coll_near(o, world) != 0)
            st = gin_i_coll_settle(o, world, gin_i_link_get(&o->links[world].sent));
    }
    return st;
}

GIN_DEV_CALL int gin_i_coll_exchange(struct gin_i_coll_call *o)
{
    uint64_t most = 0;
    int st = GIN_OK;
#pragma unroll 1
    for (uint32_t r = 0; r < o->n; r++) {
        uint64_t out = gin_i_coll_out(o, r).bytes, in = gin_i_coll_in(o, r).bytes;
        most = out > most ? out : most;
        most = in > most ? in : most;
    }
    uint64_t at = 0;
    do { /* the group meets in each step, after which no lane is behind */
        st = gin_i_coll_step(o, at);
        at += o->slot;
        if (at < most) /* one lane's failure is no verdict of all */
            st = gin_i_coll_meet(o, st);
    } while (at < most && st == GIN_OK);
    if (st == GIN_OK)
        st = gin_i_coll_end(o);
    return gin_i_coll_meet(o, st);
}

#endif
