/* SPDX-License-Identifier: BSD-3-Clause */
/* Rolling comparison of values that wrap. Not API. */
#ifndef GINSHMEM_IMPL_ROLLING_H
#define GINSHMEM_IMPL_ROLLING_H

#include <ginshmem/impl/arch.h>

/* a <= b on a wheel of `bits` bits (1..64): true when b is at most half a turn ahead of a. */
GIN_VALUE int gin_i_rolling_le(uint64_t a, uint64_t b, unsigned bits)
{
    uint64_t m = ~(uint64_t)0 >> (64u - bits);
    return ((b - a) & m) <= (m >> 1);
}

#endif
