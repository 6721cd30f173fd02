/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of progressions of ranks: the only place that knows what a stride does. Pure numbers;
 * lib/team.c gives them their meaning. Indices count inside a progression, ranks are its values.
 */
#ifndef GI_TEAM_MATH_H
#define GI_TEAM_MATH_H

#include <stdbool.h>
#include <stdint.h>

/* first, first + stride, ... (size of them). */
struct gi_ap {
    int32_t first, stride, size;
};

/* It has members, no two are equal, and all lie in [0, ranks). */
bool gi_ap_valid(struct gi_ap ap, int32_t ranks);

static inline int32_t gi_ap_at(struct gi_ap ap, int32_t index)
{
    return (int32_t)(ap.first + (int64_t)index * ap.stride);
}

/* Index of a rank, -1 when it is no member. */
int32_t gi_ap_index(struct gi_ap ap, int64_t rank);

/* The members of `parent` whose indices form `sub`; sub lies in [0, parent.size). */
struct gi_ap gi_ap_of(struct gi_ap parent, struct gi_ap sub);

/* The progression that a list of distinct numbers is, if it is one. One number has stride 1. */
bool gi_ap_from_list(const int32_t *list, int32_t size, struct gi_ap *ap);

/* Indices of `size` members in blocks of `inner`: the block that holds `index`, ... */
struct gi_ap gi_ap_inner(int32_t size, int32_t inner, int32_t index);
/* ... and the indices with the same place in their blocks. The last block may be short. */
struct gi_ap gi_ap_outer(int32_t size, int32_t inner, int32_t index);

/* Index in `parent` of its nth member that is not in `other`, -1 when there are fewer. */
int32_t gi_ap_difference(struct gi_ap parent, struct gi_ap other, int32_t nth);

#endif
