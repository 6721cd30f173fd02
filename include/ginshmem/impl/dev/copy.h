/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying by the lanes of a group: in units of 16 bytes, several of them in flight per lane, since
 * that decides the rate. Where both ends are not aligned alike, a unit is put together from two
 * aligned ones of the source. Peers' memory is read past the first-level cache, which may hold what
 * an earlier get saw. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_COPY_H
#define GINSHMEM_IMPL_DEV_COPY_H

#include <ginshmem/impl/dev/ptx.h>

/* Units in flight per lane: what a block of 512 has of 64 KiB. More fills no link faster, and costs
 * registers; half of it does for what is not aligned and takes more registers. */
#define GIN_I_FLIGHT 8

/* GIN_I_OUT: from here (any kind of address) to a peer. GIN_I_IN: from a peer to here. */
enum gin_i_copy_way { GIN_I_OUT, GIN_I_IN };

/* One unit of a copy. IN loads are strong, so that polling by gets ends. */
template <int way> GIN_DEV struct gin_i_16 gin_i_unit_load(const struct gin_i_16 *p)
{
    return way == GIN_I_OUT ? gin_i_ld128_generic(p) : gin_i_ld128_relaxed_sys(p);
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

/* The 16 bytes that begin `apart` (1 .. 15) bytes behind the start of `lo`. */
GIN_DEV struct gin_i_16 gin_i_between(struct gin_i_16 lo, struct gin_i_16 hi, uint32_t apart)
{
    uint64_t x = apart < 8 ? lo.a : lo.b, y = apart < 8 ? lo.b : hi.a, z = apart < 8 ? hi.a : hi.b;
    uint32_t bits = 8 * (apart & 7);
    struct gin_i_16 v = {x >> bits | (y << 1) << (63 - bits), y >> bits | (z << 1) << (63 - bits)};
    return v;
}

/*
 * Where a lane is in a copy: its next unit in both ends, and their ends. With `apart` the data
 * begin so many bytes behind the source's units, which all lie within it.
 */
struct gin_i_course {
    uint64_t to, from, to_end, from_end;
    uint64_t step; /* bytes to the lane's next unit */
    uint32_t apart;
};

/* Up to `flight` units, all under way before the first is stored. whole: they all exist. */
template <int way, int shifted, int flight, int whole>
GIN_DEV void gin_i_copy_some(struct gin_i_course *c)
{
    struct gin_i_16 lo[flight], hi[flight];
#pragma unroll
    for (int k = 0; k < flight; k++) {
        if (!whole)
            lo[k].a = lo[k].b = hi[k].a = hi[k].b = 0; /* or registers keep what they had */
        if (whole || c->from < c->from_end) {
            lo[k] = gin_i_unit_load<way>((const struct gin_i_16 *)c->from);
            if (shifted)
                hi[k] = gin_i_unit_load<way>((const struct gin_i_16 *)c->from + 1);
        }
        c->from = gin_i_opaque(c->from + c->step);
    }
#pragma unroll
    for (int k = 0; k < flight; k++) {
        if (whole || c->to < c->to_end)
            gin_i_unit_store<way>((struct gin_i_16 *)c->to,
                                  shifted ? gin_i_between(lo[k], hi[k], c->apart) : lo[k]);
        c->to = gin_i_opaque(c->to + c->step);
    }
}

/* Where half of them or fewer are left, fewer instructions do. */
template <int way, int shifted, int flight> GIN_DEV void gin_i_copy_units(struct gin_i_course *c)
{
#pragma unroll 1
    while (c->from + (flight - 1) * c->step < c->from_end)
        gin_i_copy_some<way, shifted, flight, 1>(c);
    if (c->from + flight / 2 * c->step < c->from_end)
        gin_i_copy_some<way, shifted, flight, 0>(c);
    else if (c->from < c->from_end)
        gin_i_copy_some<way, shifted, flight / 2, 0>(c);
}

/* The bytes before and behind the units. */
template <int way>
GIN_DEV void gin_i_copy_odd(uint64_t to, uint64_t from, uint64_t head, uint64_t body, uint64_t odd,
                            uint32_t lane, uint32_t lanes)
{
#pragma unroll 1
    for (uint64_t i = lane; i < odd; i += lanes) {
        uint64_t at = i < head ? i : i + body;
        *(uint8_t *)(to + at) = gin_i_unit_load<way>((const uint8_t *)(from + at));
    }
}

/*
 * Where a lane begins, in bytes from the first unit. The lanes are turned so that those of a warp
 * meet whole lines of the peer's memory: packets on the link are not split.
 */
GIN_DEV uint64_t gin_i_first_unit(uint64_t far, uint32_t lane, uint32_t lanes)
{
    uint32_t ahead = (uint32_t)far >> 4 & 7;
    if (lanes < 8)
        return 16 * lane;
    return 16 * (lane < ahead ? lane + lanes - ahead : lane - ahead);
}

/* Both ends aligned: nothing but units. */
template <int way>
GIN_DEV_CALL void gin_i_copy_even(uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane,
                                  uint32_t lanes)
{
    uint64_t at = gin_i_first_unit(way == GIN_I_OUT ? to : from, lane, lanes);
    struct gin_i_course c = {to + at, from + at, to + bytes, from + bytes, 16 * (uint64_t)lanes, 0};
    gin_i_copy_units<way, 0, GIN_I_FLIGHT>(&c);
}

template <int way>
GIN_DEV_CALL void gin_i_copy_odd_ends(uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane,
                                      uint32_t lanes)
{
    const int flight = way == GIN_I_OUT ? GIN_I_FLIGHT / 2 : GIN_I_FLIGHT;
    uint64_t head = (0 - to) & 15;
    struct gin_i_course c;
    c.apart = (uint32_t)(from + head) & 15;
    head += head < c.apart ? 16 : 0;
    head = head < bytes ? head : bytes;
    uint64_t left = bytes - head + c.apart, more = c.apart != 0 ? 16 : 0;
    uint64_t body = left < more ? 0 : (left - more) & ~(uint64_t)15;
    c.to_end = to + head + body;
    c.from_end = from + head - c.apart + body;
    c.step = 16 * (uint64_t)lanes;
    uint64_t at = gin_i_first_unit((way == GIN_I_OUT ? c.to_end : c.from_end) - body, lane, lanes);
    c.to = c.to_end - body + at;
    c.from = c.from_end - body + at;
    if (GIN_LIKELY(c.apart == 0))
        gin_i_copy_units<way, 0, flight>(&c);
    else
        gin_i_copy_units<way, 1, flight / 2>(&c);
    gin_i_copy_odd<way>(to, from, head, body, bytes - body, lane, lanes);
}

/* One unit each, where that is all, without a call. */
template <int way>
GIN_DEV void gin_i_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t lane, uint32_t lanes)
{
    if (((to | from | bytes) & 15) != 0)
        gin_i_copy_odd_ends<way>(to, from, bytes, lane, lanes);
    else if (bytes >> 4 > lanes)
        gin_i_copy_even<way>(to, from, bytes, lane, lanes);
    else if (lane < bytes >> 4)
        gin_i_unit_store<way>((struct gin_i_16 *)to + lane,
                              gin_i_unit_load<way>((const struct gin_i_16 *)from + lane));
}

/* A few bytes by one lane, in any alignment. */
template <int way> GIN_DEV_CALL void gin_i_copy_few(uint64_t to, uint64_t from, uint32_t bytes)
{
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i++)
        *(uint8_t *)(to + i) = gin_i_unit_load<way>((const uint8_t *)(from + i));
}

/* An aligned word that one access moves, so that a poller sees it whole. */
GIN_DEV int gin_i_is_word(uint64_t to, uint64_t from, uint64_t bytes)
{
    return (bytes == 8 || bytes == 4 || bytes == 2 || bytes == 1) &&
           ((to | from) & (bytes - 1)) == 0;
}

/* Up to 8 bytes of mine by one lane, an aligned word in one access. */
GIN_DEV uint64_t gin_i_word_load(uint64_t from, uint64_t bytes)
{
    if (bytes == 8 && (from & 7) == 0)
        return gin_i_ld_generic((const uint64_t *)from);
    if (bytes == 4 && (from & 3) == 0)
        return gin_i_ld32_generic((const uint32_t *)from);
    if (bytes == 2 && (from & 1) == 0)
        return *(const uint16_t *)from;
    uint64_t v = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t) * (const uint8_t *)(from + i) << 8 * i;
    return v;
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
