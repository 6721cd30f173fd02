/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of amo.h in kernels: by the GPU's own atomics where those are the word's one applier,
 * else by a descriptor to the engine, which returns old values through a reply. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_AMO_H
#define GINSHMEM_IMPL_DEV_AMO_H

#include <ginshmem/impl/dev/counter.h>
#include <ginshmem/impl/dev/sets.h>
#include <ginshmem/impl/dev/word.h>

/* By one lane. With a constant op one instruction is left. fetch 0: the result is not wanted. */
GIN_DEV uint64_t gin_i_amo_apply64(uint64_t *w, int op, uint64_t v, uint64_t expected)
{
    switch (op) {
    case GIN_I_AMO_SET: gin_i_st_relaxed_sys(w, v); return 0;
    case GIN_I_AMO_ADD: gin_i_red_add_relaxed_sys(w, v); return 0;
    case GIN_I_AMO_AND: gin_i_red_and_sys(w, v); return 0;
    case GIN_I_AMO_OR: gin_i_red_or_sys(w, v); return 0;
    case GIN_I_AMO_XOR: gin_i_red_xor_sys(w, v); return 0;
    case GIN_I_AMO_FETCH: return gin_i_ld_relaxed_sys(w);
    case GIN_I_AMO_FETCH_ADD: return gin_i_atom_add_sys(w, v);
    case GIN_I_AMO_FETCH_AND: return gin_i_atom_and_sys(w, v);
    case GIN_I_AMO_FETCH_OR: return gin_i_atom_or_sys(w, v);
    case GIN_I_AMO_FETCH_XOR: return gin_i_atom_xor_sys(w, v);
    case GIN_I_AMO_SWAP: return gin_i_atom_exch_sys(w, v);
    default: return gin_i_atom_cas_sys(w, expected, v);
    }
}

GIN_DEV uint32_t gin_i_amo_apply32(uint32_t *w, int op, uint32_t v, uint32_t expected)
{
    switch (op) {
    case GIN_I_AMO_SET: gin_i_st32_relaxed_sys(w, v); return 0;
    case GIN_I_AMO_ADD: gin_i_red32_add_sys(w, v); return 0;
    case GIN_I_AMO_AND: gin_i_red32_and_sys(w, v); return 0;
    case GIN_I_AMO_OR: gin_i_red32_or_sys(w, v); return 0;
    case GIN_I_AMO_XOR: gin_i_red32_xor_sys(w, v); return 0;
    case GIN_I_AMO_FETCH: return gin_i_ld32_relaxed_sys(w);
    case GIN_I_AMO_FETCH_ADD: return gin_i_atom32_add_sys(w, v);
    case GIN_I_AMO_FETCH_AND: return gin_i_atom32_and_sys(w, v);
    case GIN_I_AMO_FETCH_OR: return gin_i_atom32_or_sys(w, v);
    case GIN_I_AMO_FETCH_XOR: return gin_i_atom32_xor_sys(w, v);
    case GIN_I_AMO_SWAP: return gin_i_atom32_exch_sys(w, v);
    default: return gin_i_atom32_cas_sys(w, expected, v);
    }
}

/* What the word's memory must allow for this GPU to do it itself. */
GIN_DEV uint32_t gin_i_amo_needs(int op)
{
    return op == GIN_I_AMO_FETCH ? 0u
           : op == GIN_I_AMO_SET ? (uint32_t)GIN_I_APPLY_STORES
                                 : (uint32_t)GIN_I_APPLY_ATOMICS;
}

GIN_DEV int gin_i_dev_amo(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                          int op, uint32_t bytes, uint64_t value, uint64_t expected, uint64_t *old)
{
    struct gin_i_group q;
    uint64_t was = 0;
    int st = gin_i_dev_enter(g, grp, 0, &q);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    int world = gin_i_dev_world(g, team, peer);
    if (GIN_UNLIKELY(world < 0))
        return world;
    if (GIN_UNLIKELY(at.win.w == GIN_I_WINDOW_LOCAL))
        return GIN_EINVAL;
    struct gin_i_place p = gin_i_dev_place(g, gin_i_dev_lsa(g, world), at, bytes,
                                           op != GIN_I_AMO_FETCH && world != g->rank);
    if (GIN_UNLIKELY(p.status < 0))
        return p.status;
    if (GIN_UNLIKELY(((p.addr | at.off) & (bytes - 1)) != 0))
        return GIN_EINVAL;
    uint32_t needs = gin_i_amo_needs(op);
    int here = p.status == GIN_OK && (p.apply & needs) == needs;
    if (GIN_UNLIKELY(!here && g->ring == NULL))
        return GIN_ENOTSUP;
    gin_i_group_sync(&q);
    if (q.lane == 0) {
        if (GIN_UNLIKELY(!here))
            st = gin_i_amo_engine(g->ring, gin_i_error_word(g), world, at, op, bytes, value,
                                  expected, gin_i_nc_u64(&g->dc->wait_timeout_ns), &was);
        else if (bytes == 8)
            was = gin_i_amo_apply64((uint64_t *)p.addr, op, value, expected);
        else
            was = gin_i_amo_apply32((uint32_t *)p.addr, op, (uint32_t)value, (uint32_t)expected);
    }
    if (g->ring != NULL)
        st = gin_i_group_status(&q, st);
    else if (op < GIN_I_AMO_FETCH)
        gin_i_group_sync(&q);
    if (op >= GIN_I_AMO_FETCH && st == GIN_OK)
        *old = gin_i_group_share(&q, was);
    return st;
}

GIN_DEV int gin_i_dev_amo32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                            int op, uint32_t value, uint32_t expected, uint32_t *old)
{
    uint64_t wide;
    int st = gin_i_dev_amo(g, grp, team, peer, at, op, 4, value, expected, &wide);
    if (op >= GIN_I_AMO_FETCH && st == GIN_OK)
        *old = (uint32_t)wide;
    return st;
}

GIN_OP int gin_amo_set(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_SET, 8, value, 0, NULL);
}

GIN_OP int gin_amo_add(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_ADD, 8, value, 0, NULL);
}

GIN_OP int gin_amo_and(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_AND, 8, value, 0, NULL);
}

GIN_OP int gin_amo_or(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                      uint64_t value)
{
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_OR, 8, value, 0, NULL);
}

GIN_OP int gin_amo_xor(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_XOR, 8, value, 0, NULL);
}

GIN_OP int gin_amo_fetch(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_FETCH, 8, 0, 0, old);
}

GIN_OP int gin_amo_fetch_add(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_FETCH_ADD, 8, value, 0, old);
}

GIN_OP int gin_amo_fetch_and(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_FETCH_AND, 8, value, 0, old);
}

GIN_OP int gin_amo_fetch_or(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                            uint64_t value, uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_FETCH_OR, 8, value, 0, old);
}

GIN_OP int gin_amo_fetch_xor(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_FETCH_XOR, 8, value, 0, old);
}

GIN_OP int gin_amo_swap(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                        uint64_t value, uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_SWAP, 8, value, 0, old);
}

GIN_OP int gin_amo_cas(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t expected, uint64_t value, uint64_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo(g, grp, team, peer, at, GIN_I_AMO_CAS, 8, value, expected, old);
}

GIN_OP int gin_amo_set32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_SET, value, 0, NULL);
}

GIN_OP int gin_amo_add32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_ADD, value, 0, NULL);
}

GIN_OP int gin_amo_and32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_AND, value, 0, NULL);
}

GIN_OP int gin_amo_or32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                        uint32_t value)
{
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_OR, value, 0, NULL);
}

GIN_OP int gin_amo_xor32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_XOR, value, 0, NULL);
}

GIN_OP int gin_amo_fetch32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                           uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH, 0, 0, old);
}

GIN_OP int gin_amo_fetch_add32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_ADD, value, 0, old);
}

GIN_OP int gin_amo_fetch_and32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_AND, value, 0, old);
}

GIN_OP int gin_amo_fetch_or32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                              gin_at_t at, uint32_t value, uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_OR, value, 0, old);
}

GIN_OP int gin_amo_fetch_xor32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_XOR, value, 0, old);
}

GIN_OP int gin_amo_swap32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                          uint32_t value, uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_SWAP, value, 0, old);
}

GIN_OP int gin_amo_cas32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t expected, uint32_t value, uint32_t *old)
{
    if (GIN_UNLIKELY(old == NULL))
        return GIN_EINVAL;
    return gin_i_dev_amo32(g, grp, team, peer, at, GIN_I_AMO_CAS, value, expected, old);
}

#endif
