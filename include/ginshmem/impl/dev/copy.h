/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying by the lanes of a group. The widest unit that both ends allow, several of them in flight
 * per lane: that, not the instruction, decides the rate. Peers' memory is read past the first-level
 * cache, which may hold what an earlier get saw. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_COPY_H
#define GINSHMEM_IMPL_DEV_COPY_H

#include <ginshmem/impl/dev/ptx.h>

/* Units in flight per lane. More fill the link with fewer threads, and cost registers. */
#define GIN_I_COPY_FLIGHT 4

/* GIN_I_OUT: from here (any kind of address) to a peer. GIN_I_IN: from a peer to here. */
enum gin_i_copy_way { GIN_I_OUT, GIN_I_IN };

/* One unit of a copy. IN loads are strong, so that polling by gets ends. */
template <int way> GIN_DEV struct gin_i_16 gin_i_unit_load(const struct gin_i_16 *p)
{
    return way == GIN_I_OUT ? gin_i_ld128_generic(p) : gin_i_ld128_relaxed_sys(p);
}
template <int way> GIN_DEV uint64_t gin_i_unit_load(const uint64_t *p)
{
    return way == GIN_I_OUT ? *p : gin_i_ld_relaxed_sys(p);
}
template <int way> GIN_DEV uint32_t gin_i_unit_load(const uint32_t *p)
{
    return way == GIN_I_OUT ? *p : gin_i_ld32_relaxed_sys(p);
}
template <int way> GIN_DEV uint16_t gin_i_unit_load(const uint16_t *p)
{
    return way == GIN_I_OUT ? *p : gin_i_ld16_relaxed_sys(p);
}
template <int way> GIN_DEV uint8_t gin_i_unit_load(const uint8_t *p)
{
    return way == GIN_I_OUT ? *p : gin_i_ld8_relaxed_sys(p);
}

template <int way> GIN_DEV void gin_i_unit_store(struct gin_i_16 *p, struct gin_i_16 v)
{
    if (way == GIN_I_OUT)
        gin_i_st128(p, v);
    else
        gin_i_st128_generic(p, v);
}
template <int way, typename T> GIN_DEV void gin_i_unit_store(T *p, T v)
{
    *p = v;
}

template <int way, typename T>
GIN_DEV void gin_i_copy_units(uint64_t to, uint64_t from, uint64_t n, uint32_t lane, uint32_t lanes)
{
    T *d = (T *)to;
    const T *s = (const T *)from;
    uint64_t i = lane;
    const uint64_t step = lanes;
#pragma unroll 1
    for (; i + (GIN_I_COPY_FLIGHT - 1) * step < n; i += GIN_I_COPY_FLIGHT * step) {
        T v[GIN_I_COPY_FLIGHT];
#pragma unroll
        for (int k = 0; k < GIN_I_COPY_FLIGHT; k++)
            v[k] = gin_i_unit_load<way>(s + i + (uint64_t)k * step);
#pragma unroll
        for (int k = 0; k < GIN_I_COPY_FLIGHT; k++)
            gin_i_unit_store<way>(d + i + (uint64_t)k * step, v[k]);
    }
#pragma unroll 1
    for (; i < n; i += step)
        gin_i_unit_store<way>(d + i, gin_i_unit_load<way>(s + i));
}

/* Whole units, then the bytes before and behind them. */
template <int way>
GIN_DEV_CALL void gin_i_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane,
                             uint32_t lanes)
{
    uint32_t apart = (uint32_t)(to ^ from) | 16;
    uint32_t unit = apart & (0 - apart); /* 1 .. 16: what both are aligned to after the head */
    uint64_t head = (0 - to) & (unit - 1);
    head = head < bytes ? head : bytes;
    uint64_t units = (bytes - head) >> (__ffs((int)unit) - 1), body = units * unit,
             odd = bytes - body;
    if (GIN_LIKELY(unit == 16))
        gin_i_copy_units<way, struct gin_i_16>(to + head, from + head, units, lane, lanes);
    else if (unit == 8)
        gin_i_copy_units<way, uint64_t>(to + head, from + head, units, lane, lanes);
    else if (unit == 4)
        gin_i_copy_units<way, uint32_t>(to + head, from + head, units, lane, lanes);
    else if (unit == 2)
        gin_i_copy_units<way, uint16_t>(to + head, from + head, units, lane, lanes);
    else
        gin_i_copy_units<way, uint8_t>(to, from, units, lane, lanes);
#pragma unroll 1
    for (uint64_t i = lane; i < odd; i += lanes) {
        uint64_t at = i < head ? i : i + body;
        gin_i_unit_store<way>((uint8_t *)(to + at),
                              gin_i_unit_load<way>((const uint8_t *)(from + at)));
    }
}

/* A few bytes by one lane, in any alignment. */
template <int way> GIN_DEV_CALL void gin_i_copy_few(uint64_t to, uint64_t from, uint32_t bytes)
{
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i++)
        gin_i_unit_store<way>((uint8_t *)(to + i),
                              gin_i_unit_load<way>((const uint8_t *)(from + i)));
}

/* An aligned word that one access moves, so that a poller sees it whole. */
GIN_DEV int gin_i_is_word(uint64_t to, uint64_t from, uint64_t bytes)
{
    return (bytes == 8 || bytes == 4 || bytes == 2 || bytes == 1) &&
           ((to | from) & (bytes - 1)) == 0;
}

/* Up to 8 bytes by one lane, an aligned word in one access. */
GIN_DEV void gin_i_word_out(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (!gin_i_is_word(to, from, bytes))
        gin_i_copy_few<GIN_I_OUT>(to, from, (uint32_t)bytes);
    else if (bytes == 8)
        gin_i_st_relaxed_sys((uint64_t *)to, *(const uint64_t *)from);
    else if (bytes == 4)
        gin_i_st32_relaxed_sys((uint32_t *)to, *(const uint32_t *)from);
    else if (bytes == 2)
        gin_i_st16_relaxed_sys((uint16_t *)to, *(const uint16_t *)from);
    else
        gin_i_st8_relaxed_sys((uint8_t *)to, *(const uint8_t *)from);
}

GIN_DEV void gin_i_word_in(uint64_t to, uint64_t from, uint64_t bytes)
{
    if (!gin_i_is_word(to, from, bytes))
        gin_i_copy_few<GIN_I_IN>(to, from, (uint32_t)bytes);
    else if (bytes == 8)
        *(uint64_t *)to = gin_i_ld_relaxed_sys((const uint64_t *)from);
    else if (bytes == 4)
        *(uint32_t *)to = gin_i_ld32_relaxed_sys((const uint32_t *)from);
    else if (bytes == 2)
        *(uint16_t *)to = gin_i_ld16_relaxed_sys((const uint16_t *)from);
    else
        *(uint8_t *)to = gin_i_ld8_relaxed_sys((const uint8_t *)from);
}

/* The low `bytes` (1 .. 8) bytes of a value, by one lane. */
GIN_DEV void gin_i_value_out(uint64_t to, uint64_t value, uint64_t bytes)
{
    if (bytes == 8 && (to & 7) == 0)
        gin_i_st_relaxed_sys((uint64_t *)to, value);
    else if (bytes == 4 && (to & 3) == 0)
        gin_i_st32_relaxed_sys((uint32_t *)to, (uint32_t)value);
    else if (bytes == 2 && (to & 1) == 0)
        gin_i_st16_relaxed_sys((uint16_t *)to, (uint16_t)value);
    else
#pragma unroll 1
        for (uint64_t i = 0; i < bytes; i++)
            gin_i_st8_relaxed_sys((uint8_t *)(to + i), (uint8_t)(value >> 8 * i));
}

#endif
