/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops over elements, one per type and operation, so that compilers can make vectors of them. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3") /* which gcc does for loops like these at no lower level */
#endif
#include <math.h>
#include <string.h>

#include <ginshmem/impl/reduce.h>
#include "coll/coll.h"

/* acc may be a or b, but no element depends on another one's result. */
#if defined(__GNUC__) && !defined(__clang__)
#define APART _Pragma("GCC ivdep")
#else
#define APART
#endif

/* Elements at any address, of memory that programs see as something else. */
#define LOOP(name, type, op)                                                          \
    static void fold_##name##_##op(void *acc, const void *a, const void *b, size_t n) \
    {                                                                                 \
        typedef type __attribute__((aligned(1), may_alias)) any;                      \
        any *to = acc;                                                                \
        const any *x = a, *y = b;                                                     \
        APART                                                                         \
        for (size_t i = 0; i < n; i++)                                                \
            to[i] = gin_i_##name##_##op(x[i], y[i]);                                  \
    }
#define LOOP_PARTS(name, type, op)                                                    \
    static void fold_##name##_##op(void *acc, const void *a, const void *b, size_t n) \
    {                                                                                 \
        char *to = acc;                                                               \
        const char *x = a, *y = b;                                                    \
        type c, d;                                                                    \
        for (size_t i = 0; i < n * sizeof(c); i += sizeof(c)) {                       \
            memcpy(&c, x + i, sizeof(c));                                             \
            memcpy(&d, y + i, sizeof(d));                                             \
            c = gin_i_##name##_##op(c, d);                                            \
            memcpy(to + i, &c, sizeof(c));                                            \
        }                                                                             \
    }
#define LOOPS_COMPLEX(name, type) LOOP_PARTS(name, type, sum) LOOP_PARTS(name, type, prod)
#define LOOPS_REAL(name, type) \
    LOOP(name, type, sum) LOOP(name, type, prod) LOOP(name, type, min) LOOP(name, type, max)
#define LOOPS_INT(name, type) \
    LOOPS_REAL(name, type) LOOP(name, type, and) LOOP(name, type, or) LOOP(name, type, xor)
#define LOOPS(id, name, type, kind) LOOPS_##kind(name, type)
/* clang-format off */
GIN_I_REDUCE_TYPES(LOOPS)
/* clang-format on */

#define FOLDS_COMPLEX(name) [GIN_SUM] = fold_##name##_sum, [GIN_PROD] = fold_##name##_prod
#define FOLDS_REAL(name) \
    FOLDS_COMPLEX(name), [GIN_MIN] = fold_##name##_min, [GIN_MAX] = fold_##name##_max
#define FOLDS_INT(name)                                                           \
    FOLDS_REAL(name), [GIN_AND] = fold_##name##_and, [GIN_OR] = fold_##name##_or, \
                      [GIN_XOR] = fold_##name##_xor

#define TYPES (GIN_COMPLEX_DOUBLE + 1)
#define OPS   (GIN_XOR + 1)

static const struct {
    size_t size;
    gi_coll_fold_fn fold[OPS];
} types[TYPES] = {
#define ROW(id, name, type, kind) [id] = {sizeof(type), {FOLDS_##kind(name)}},
    GIN_I_REDUCE_TYPES(ROW)
#undef ROW
};

size_t gi_coll_size(gin_type_t type)
{
    return (unsigned)type < TYPES ? types[type].size : 0;
}

gi_coll_fold_fn gi_coll_fold(gin_type_t type, gin_reduction_t op)
{
    return (unsigned)type < TYPES && (unsigned)op < OPS ? types[type].fold[op] : NULL;
}

/* ---- what changes nothing ---- */

static void neutral_int(void *e, size_t size, bool is_signed, gin_reduction_t op)
{
    uint64_t ones = ~(uint64_t)0, v = 0, top = (uint64_t)1 << (8 * size - 1);
    switch (op) {
    case GIN_PROD: v = 1; break;
    case GIN_MIN: v = is_signed ? top - 1 : ones; break;
    case GIN_MAX: v = is_signed ? top : 0; break;
    case GIN_AND: v = ones; break;
    default: break;
    }
    memcpy(e, gin_i_value_bytes(&v, size), size);
}

static double neutral_real(gin_reduction_t op)
{
    switch (op) {
    case GIN_PROD: return 1;
    case GIN_MIN: return INFINITY;
    case GIN_MAX: return -INFINITY;
    default: return 0;
    }
}

static void neutral_one(void *e, gin_type_t type, gin_reduction_t op)
{
    double d = neutral_real(op);
    float f = (float)d;
    uint16_t h;
    switch (type) {
    case GIN_HALF:
        h = gin_i_float_to_half(f);
        memcpy(e, &h, sizeof(h));
        break;
    case GIN_BFLOAT16:
        h = gin_i_float_to_bfloat16(f);
        memcpy(e, &h, sizeof(h));
        break;
    case GIN_COMPLEX_FLOAT: memset(e, 0, 2 * sizeof(f)); /* fall through */
    case GIN_FLOAT: memcpy(e, &f, sizeof(f)); break;
    case GIN_COMPLEX_DOUBLE: memset(e, 0, 2 * sizeof(d)); /* fall through */
    case GIN_DOUBLE: memcpy(e, &d, sizeof(d)); break;
    default:
        neutral_int(e, types[type].size,
                    type == GIN_INT8 || type == GIN_INT16 || type == GIN_INT32 || type == GIN_INT64,
                    op);
    }
}

void gi_coll_neutral(void *dst, size_t n, gin_type_t type, gin_reduction_t op)
{
    char one[16], *to = dst;
    neutral_one(one, type, op);
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * types[type].size, one, types[type].size);
}
