/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on 32- and 64-bit words of windows at a peer. A word has one applier, so all
 * these operations, and `_at` signals, are atomic with respect to each other whoever issues them.
 * Words must be naturally aligned (GIN_EINVAL). The fetching forms block until the value is here;
 * the others complete like puts. Each is relaxed: use fences and signals for order.
 */
#ifndef GINSHMEM_AMO_H
#define GINSHMEM_AMO_H

#include <ginshmem/gin.h>

GIN_OP int gin_amo_set(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value);
GIN_OP int gin_amo_add(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value);
GIN_OP int gin_amo_and(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value);
GIN_OP int gin_amo_or(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                      uint64_t value);
GIN_OP int gin_amo_xor(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t value);

/* *old: the word before. */
GIN_OP int gin_amo_fetch(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint64_t *old);
GIN_OP int gin_amo_fetch_add(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old);
GIN_OP int gin_amo_fetch_and(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old);
GIN_OP int gin_amo_fetch_or(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                            uint64_t value, uint64_t *old);
GIN_OP int gin_amo_fetch_xor(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                             gin_at_t at, uint64_t value, uint64_t *old);
GIN_OP int gin_amo_swap(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                        uint64_t value, uint64_t *old);
/* Becomes `value` where it equals `expected`; *old == expected says that it did. */
GIN_OP int gin_amo_cas(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                       uint64_t expected, uint64_t value, uint64_t *old);

/* The same on 32-bit words. */
GIN_OP int gin_amo_set32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value);
GIN_OP int gin_amo_add32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value);
GIN_OP int gin_amo_and32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value);
GIN_OP int gin_amo_or32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                        uint32_t value);
GIN_OP int gin_amo_xor32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t value);
GIN_OP int gin_amo_fetch32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                           uint32_t *old);
GIN_OP int gin_amo_fetch_add32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old);
GIN_OP int gin_amo_fetch_and32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old);
GIN_OP int gin_amo_fetch_or32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                              gin_at_t at, uint32_t value, uint32_t *old);
GIN_OP int gin_amo_fetch_xor32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                               gin_at_t at, uint32_t value, uint32_t *old);
GIN_OP int gin_amo_swap32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                          uint32_t value, uint32_t *old);
GIN_OP int gin_amo_cas32(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                         uint32_t expected, uint32_t value, uint32_t *old);

#define GIN_I_DECLARED_AMO
#include <ginshmem/impl/bodies.h>

#endif
