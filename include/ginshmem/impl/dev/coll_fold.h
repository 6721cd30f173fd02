/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Folding elements of several ranks in their order, by the lanes of a group, in units of 16 bytes:
 * where all places are aligned for it several ranks' loads are under way before the first is used;
 * else units are put together from smaller words. The operations are those of impl/reduce.h, so
 * that host threads and kernels get the same bits. What type and operation it is is asked for each
 * unit: memory is slower than that, and a kernel carries each operation once. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_COLL_FOLD_H
#define GINSHMEM_IMPL_DEV_COLL_FOLD_H

#include <ginshmem/impl/dev/copy.h>
#include <ginshmem/impl/reduce.h>

/* What is folded: n places, of which the lanes share the elements out. */
struct gin_i_fold {
    uint64_t to;
    const uint64_t *from; /* addresses; one of them may be `to` */
    uint32_t n;           /* at least 1 */
    uint32_t lane, lanes;
    uint64_t bytes;
};

/* ---- two units ---- */

template <class T> union gin_i_unit {
    struct gin_i_16 v;
    T e[16 / sizeof(T)];
};

#define GIN_I_UNIT_OP(name, type, op)                                                      \
    GIN_DEV struct gin_i_16 gin_i_unit_##name##_##op(struct gin_i_16 a, struct gin_i_16 b) \
    {                                                                                      \
        gin_i_unit<type> x, y;                                                             \
        x.v = a;                                                                           \
        y.v = b;                                                                           \
        for (unsigned i = 0; i < 16 / sizeof(type); i++)                                   \
            x.e[i] = gin_i_##name##_##op(x.e[i], y.e[i]);                                  \
        return x.v;                                                                        \
    }
#define GIN_I_UNIT_COMPLEX(name, type) \
    GIN_I_UNIT_OP(name, type, sum)     \
    GIN_I_UNIT_OP(name, type, prod)
#define GIN_I_UNIT_REAL(name, type) \
    GIN_I_UNIT_COMPLEX(name, type)  \
    GIN_I_UNIT_OP(name, type, min)  \
    GIN_I_UNIT_OP(name, type, max)
#define GIN_I_UNIT_INT(name, type) \
    GIN_I_UNIT_REAL(name, type)    \
    GIN_I_UNIT_OP(name, type, and) \
    GIN_I_UNIT_OP(name, type, or)  \
    GIN_I_UNIT_OP(name, type, xor)
#define GIN_I_UNIT_TYPE(id, name, type, kind) GIN_I_UNIT_##kind(name, type)
/* clang-format off */
GIN_I_REDUCE_TYPES(GIN_I_UNIT_TYPE)
/* clang-format on */

/* clang-format off */
#define GIN_I_DO_COMPLEX(name)                          \
    case GIN_SUM: return gin_i_unit_##name##_sum(a, b); \
    case GIN_PROD: return gin_i_unit_##name##_prod(a, b);
#define GIN_I_DO_REAL(name)                             \
    GIN_I_DO_COMPLEX(name)                              \
    case GIN_MIN: return gin_i_unit_##name##_min(a, b); \
    case GIN_MAX: return gin_i_unit_##name##_max(a, b);
#define GIN_I_DO_INT(name)                              \
    GIN_I_DO_REAL(name)                                 \
    case GIN_AND: return gin_i_unit_uint64_and(a, b);   \
    case GIN_OR: return gin_i_unit_uint64_or(a, b);     \
    case GIN_XOR: return gin_i_unit_uint64_xor(a, b);
#define GIN_I_DO_TYPE(id, name, type, kind) \
    case id:                                \
        switch (op) {                       \
            GIN_I_DO_##kind(name)           \
        default: return a;                  \
        }
/* clang-format on */

/* The code of every operation stands here once. Where there are fewer elements than fill a unit the
 * rest of the result means nothing. */
GIN_DEV_CALL struct gin_i_16 gin_i_two_units(struct gin_i_16 a, struct gin_i_16 b, int type, int op)
{
    switch (type) {
        GIN_I_REDUCE_TYPES(GIN_I_DO_TYPE)
    default: return a;
    }
}

/* ---- units of memory ---- */

/* Up to 16 bytes in words of `step`, which divides the address and their number. Past the
 * first-level cache: peers write these places. */
GIN_DEV_CALL struct gin_i_16 gin_i_unit_get(uint64_t from, uint32_t bytes, uint32_t step)
{
    struct gin_i_16 v = {0, 0};
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i += step) {
        uint64_t w = step == 8   ? gin_i_ld_relaxed_sys((const uint64_t *)(from + i))
                     : step == 4 ? gin_i_ld32_relaxed_sys((const uint32_t *)(from + i))
                     : step == 2 ? gin_i_ld16_relaxed_sys((const uint16_t *)(from + i))
                                 : gin_i_ld8_relaxed_sys((const uint8_t *)(from + i));
        if (i < 8)
            v.a |= w << 8 * i;
        else
            v.b |= w << 8 * (i - 8);
    }
    return v;
}

GIN_DEV_CALL void gin_i_unit_put(uint64_t to, struct gin_i_16 v, uint32_t bytes, uint32_t step)
{
#pragma unroll 1
    for (uint32_t i = 0; i < bytes; i += step) {
        uint64_t w = i < 8 ? v.a >> 8 * i : v.b >> 8 * (i - 8);
        if (step == 8)
            *(uint64_t *)(to + i) = w;
        else if (step == 4)
            *(uint32_t *)(to + i) = (uint32_t)w;
        else if (step == 2)
            *(uint16_t *)(to + i) = (uint16_t)w;
        else
            *(uint8_t *)(to + i) = (uint8_t)w;
    }
}

GIN_DEV struct gin_i_16 gin_i_fold_load(const struct gin_i_fold *f, uint32_t r, uint64_t at)
{
    return gin_i_ld128_relaxed_sys((const void *)(f->from[r] + at));
}

/* A whole unit at aligned places: loads of several ranks are under way. */
GIN_DEV void gin_i_fold_even(const struct gin_i_fold *f, uint64_t at, int type, int op)
{
    struct gin_i_16 acc = gin_i_fold_load(f, 0, at);
    uint32_t r = 1;
#pragma unroll 1
    for (; r + 3 < f->n; r += 4) {
        struct gin_i_16 a = gin_i_fold_load(f, r, at), b = gin_i_fold_load(f, r + 1, at);
        struct gin_i_16 c = gin_i_fold_load(f, r + 2, at), d = gin_i_fold_load(f, r + 3, at);
        acc = gin_i_two_units(acc, a, type, op);
        acc = gin_i_two_units(acc, b, type, op);
        acc = gin_i_two_units(acc, c, type, op);
        acc = gin_i_two_units(acc, d, type, op);
    }
#pragma unroll 1
    for (; r < f->n; r++)
        acc = gin_i_two_units(acc, gin_i_fold_load(f, r, at), type, op);
    gin_i_st128_generic((void *)(f->to + at), acc);
}

GIN_DEV void gin_i_fold_odd(const struct gin_i_fold *f, uint64_t at, uint32_t bytes, uint32_t step,
                            int type, int op)
{
    while (bytes & (step - 1))
        step >>= 1;
    struct gin_i_16 acc = gin_i_unit_get(f->from[0] + at, bytes, step);
#pragma unroll 1
    for (uint32_t r = 1; r < f->n; r++)
        acc = gin_i_two_units(acc, gin_i_unit_get(f->from[r] + at, bytes, step), type, op);
    gin_i_unit_put(f->to + at, acc, bytes, step);
}

GIN_DEV_CALL void gin_i_fold_all(const struct gin_i_fold *f, int type, int op)
{
    uint64_t odd = f->to;
    for (uint32_t r = 0; r < f->n; r++)
        odd |= f->from[r];
    uint32_t step = (odd & 7) == 0 ? 8 : (odd & 3) == 0 ? 4 : (odd & 1) == 0 ? 2 : 1;
#pragma unroll 1
    for (uint64_t at = 16 * (uint64_t)f->lane; at < f->bytes; at += 16 * (uint64_t)f->lanes) {
        uint64_t left = f->bytes - at;
        if (GIN_LIKELY((odd & 15) == 0 && left >= 16))
            gin_i_fold_even(f, at, type, op);
        else
            gin_i_fold_odd(f, at, left < 16 ? (uint32_t)left : 16, step, type, op);
    }
}

/* ---- types ---- */

GIN_DEV uint32_t gin_i_type_size(int type)
{
    switch (type) {
    case GIN_INT8:
    case GIN_UINT8: return 1;
    case GIN_INT16:
    case GIN_UINT16:
    case GIN_HALF:
    case GIN_BFLOAT16: return 2;
    case GIN_INT32:
    case GIN_UINT32:
    case GIN_FLOAT: return 4;
    case GIN_COMPLEX_DOUBLE: return 16;
    default: return 8;
    }
}

GIN_DEV int gin_i_type_can(int type, int op)
{
    return op <= (type < GIN_HALF            ? (int)GIN_XOR
                  : type < GIN_COMPLEX_FLOAT ? (int)GIN_MAX
                                             : (int)GIN_PROD);
}

/* ---- what changes nothing ---- */

/* Its bits: of a complex number the real part, whose size `size` then is. */
GIN_DEV uint64_t gin_i_neutral(int type, int op, uint32_t size)
{
    int is_signed = type == GIN_INT8 || type == GIN_INT16 || type == GIN_INT32 || type == GIN_INT64;
    uint64_t top = (uint64_t)1 << (8 * size - 1), ones = top | (top - 1);
    if (type < GIN_HALF)
        return op == GIN_PROD  ? 1
               : op == GIN_MIN ? (is_signed ? top - 1 : ones)
               : op == GIN_MAX ? (is_signed ? top : 0)
               : op == GIN_AND ? ones
                               : 0;
    /* of ones in the exponent, and their place */
    uint32_t exponent = type == GIN_HALF ? 5
                        : size == 8      ? 11
                                         : 8,
             mantissa = 8 * size - 1 - exponent;
    uint64_t infinity = (((uint64_t)1 << exponent) - 1) << mantissa;
    uint64_t one = (((uint64_t)1 << (exponent - 1)) - 1) << mantissa;
    return op == GIN_PROD ? one : op == GIN_MIN ? infinity : op == GIN_MAX ? top | infinity : 0;
}

GIN_DEV void gin_i_neutral_fill(uint64_t to, uint64_t count, int type, int op, uint32_t lane,
                                uint32_t lanes)
{
    uint32_t size = gin_i_type_size(type), part = type >= GIN_COMPLEX_FLOAT ? size / 2 : size;
    uint64_t bits = gin_i_neutral(type, op, part);
#pragma unroll 1
    for (uint64_t i = lane; i < count; i += lanes) {
#pragma unroll 1
        for (uint32_t b = 0; b < size; b++)
            *(uint8_t *)(to + i * size + b) = b < part ? (uint8_t)(bits >> 8 * b) : (uint8_t)0;
    }
}

#endif
