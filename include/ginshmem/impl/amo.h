/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of amo.h. At a load/store peer the caller's processor applies the operation: an aligned
 * word of a host window has that one applier. Not API.
 */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_AMO_H
#define GINSHMEM_IMPL_AMO_H

#include <ginshmem/impl/path.h>

/* The word at a load/store peer, or NULL for the library to look. */
GIN_OP void *gin_i_amo_word(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                            uint32_t bytes)
{
    void *p = gin_i_remote(g, gin_i_lsa(g, team, peer), at, bytes);
    return GIN_LIKELY(((uintptr_t)p & (bytes - 1)) == 0 && grp.kind == GIN_GROUP_THREAD) ? p : NULL;
}

/* For the 32-bit forms: run the library's 64-bit entry and narrow the result. */
GIN_OP int gin_i_amo32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       enum gin_i_amo_op op, uint32_t value, uint32_t expected, uint32_t *old)
{
    uint64_t wide = 0;
    int st = gin_i_amo(g, grp, team, peer, at, op, 4, value, expected, old ? &wide : NULL);
    if (st == GIN_OK && old != NULL)
        *old = (uint32_t)wide;
    return st;
}

GIN_OP int gin_i_amo64(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       enum gin_i_amo_op op, uint64_t value, uint64_t expected, uint64_t *old)
{
    return gin_i_amo(g, grp, team, peer, at, op, 8, value, expected, old);
}

GIN_OP int gin_amo_set(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_SET, value, 0, NULL);
    GIN_STORE_RELAXED(w, value);
    return GIN_OK;
}

GIN_OP int gin_amo_add(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_ADD, value, 0, NULL);
    __atomic_fetch_add(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_and(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_AND, value, 0, NULL);
    __atomic_fetch_and(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_or(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                      uint64_t value)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_OR, value, 0, NULL);
    __atomic_fetch_or(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_xor(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_XOR, value, 0, NULL);
    __atomic_fetch_xor(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_FETCH, 0, 0, old);
    *old = GIN_LOAD_RELAXED(w);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_add(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_FETCH_ADD, value, 0, old);
    *old = __atomic_fetch_add(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_and(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_FETCH_AND, value, 0, old);
    *old = __atomic_fetch_and(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_or(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                            uint64_t value, uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_FETCH_OR, value, 0, old);
    *old = __atomic_fetch_or(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_xor(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_FETCH_XOR, value, 0, old);
    *old = __atomic_fetch_xor(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_swap(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                        uint64_t value, uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_SWAP, value, 0, old);
    *old = __atomic_exchange_n(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_cas(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t expected, uint64_t value, uint64_t *old)
{
    uint64_t *w = (uint64_t *)gin_i_amo_word(g, grp, team, peer, at, 8);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo64(g, grp, team, peer, at, GIN_I_AMO_CAS, value, expected, old);
    *old = expected;
    __atomic_compare_exchange_n(w, old, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_set32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_SET, value, 0, NULL);
    GIN_STORE_RELAXED(w, value);
    return GIN_OK;
}

GIN_OP int gin_amo_add32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_ADD, value, 0, NULL);
    __atomic_fetch_add(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_and32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_AND, value, 0, NULL);
    __atomic_fetch_and(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_or32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                        uint32_t value)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_OR, value, 0, NULL);
    __atomic_fetch_or(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_xor32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_XOR, value, 0, NULL);
    __atomic_fetch_xor(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                           uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH, 0, 0, old);
    *old = GIN_LOAD_RELAXED(w);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_add32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_ADD, value, 0, old);
    *old = __atomic_fetch_add(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_and32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_AND, value, 0, old);
    *old = __atomic_fetch_and(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_or32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                              gin_at_t at, uint32_t value, uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_OR, value, 0, old);
    *old = __atomic_fetch_or(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_fetch_xor32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_FETCH_XOR, value, 0, old);
    *old = __atomic_fetch_xor(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_swap32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                          uint32_t value, uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_SWAP, value, 0, old);
    *old = __atomic_exchange_n(w, value, __ATOMIC_RELAXED);
    return GIN_OK;
}

GIN_OP int gin_amo_cas32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t expected, uint32_t value, uint32_t *old)
{
    uint32_t *w = (uint32_t *)gin_i_amo_word(g, grp, team, peer, at, 4);
    if (GIN_UNLIKELY(w == NULL || old == NULL))
        return gin_i_amo32(g, grp, team, peer, at, GIN_I_AMO_CAS, value, expected, old);
    *old = expected;
    __atomic_compare_exchange_n(w, old, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return GIN_OK;
}

#endif
