/* SPDX-License-Identifier: BSD-3-Clause */
/* See oracle.h. It folds with the library's operators, which tests/unit/reduce.c checks. */
#include <math.h>
#include <string.h>
#include "tests/coll/oracle.h"

const char *const kind_names[KINDS] = {"broadcast", "allgather",     "gather", "alltoall",
                                       "alltoallv", "allreduce",     "reduce", "reduce_scatter",
                                       "scan",      "scan_exclusive"};

/* ---- types ---- */

enum { INT, REAL, COMPLEX };
static const struct {
    size_t size;
    int kind;
} types[] = {
#define ROW(id, name, type, kind) [id] = {sizeof(type), kind},
    GIN_I_REDUCE_TYPES(ROW)
#undef ROW
};

size_t type_size(gin_type_t type)
{
    return types[type].size;
}

bool has_op(gin_type_t type, gin_reduction_t op)
{
    int kind = types[type].kind;
    return op <= (kind == INT ? GIN_XOR : kind == REAL ? GIN_MAX : GIN_PROD);
}

#define CASE_COMPLEX(name)                             \
    case GIN_SUM: c = gin_i_##name##_sum(a, b); break; \
    case GIN_PROD:                                     \
        c = gin_i_##name##_prod(a, b);                 \
        break;
#define CASE_REAL(name)                                \
    CASE_COMPLEX(name)                                 \
    case GIN_MIN: c = gin_i_##name##_min(a, b); break; \
    case GIN_MAX:                                      \
        c = gin_i_##name##_max(a, b);                  \
        break;
#define CASE_INT(name)                                 \
    CASE_REAL(name)                                    \
    case GIN_AND: c = gin_i_##name##_and(a, b); break; \
    case GIN_OR: c = gin_i_##name##_or(a, b); break;   \
    case GIN_XOR: c = gin_i_##name##_xor(a, b); break;

/* acc = acc op e, of one element */
static void fold_one(gin_type_t type, gin_reduction_t op, void *acc, const void *e)
{
    switch (type) {
#define FOLD(id, name, type, kind)             \
    case id: {                                 \
        type a, b, c;                          \
        memcpy(&a, acc, sizeof(a));            \
        memcpy(&b, e, sizeof(b));              \
        c = a;                                 \
        switch (op) {                          \
            CASE_##kind(name) default : break; \
        }                                      \
        memcpy(acc, &c, sizeof(c));            \
        break;                                 \
    }
        GIN_I_REDUCE_TYPES(FOLD)
#undef FOLD
    }
}

/* ---- elements ---- */

static void put_real(gin_type_t type, double d, char *e)
{
    float f = (float)d;
    uint16_t h;
    switch (type) {
    case GIN_HALF:
        h = gin_i_float_to_half(f);
        memcpy(e, &h, 2);
        break;
    case GIN_BFLOAT16:
        h = gin_i_float_to_bfloat16(f);
        memcpy(e, &h, 2);
        break;
    case GIN_FLOAT:
    case GIN_COMPLEX_FLOAT: memcpy(e, &f, 4); break;
    default: memcpy(e, &d, 8); break;
    }
}

/* Element i of rank r: small whole numbers for sums, powers of two for products. */
static void element(const struct job *j, int r, size_t i, char *e)
{
    uint64_t w = mp_word(j->seed + (uint64_t)r * 7919, i), v = w >> 20;
    size_t size = types[j->type].size;
    int kind = types[j->type].kind;
    if (kind == INT || j->bits) {
        uint64_t both[2] = {w, mp_word(w, i)};
        memcpy(e, both, size);
        return;
    }
    static const double powers[4] = {1, -1, 2, 0.5}, units[4] = {1, -1, 1, -1};
    double re = j->op == GIN_PROD ? powers[v % 4] : (double)(v % 9) - 4, im = 0;
    if (kind == COMPLEX) {
        bool imaginary = j->op == GIN_PROD && (v >> 8) % 2;
        im = j->op == GIN_PROD ? 0 : (double)((v >> 8) % 9) - 4;
        if (imaginary) {
            im = units[v % 4];
            re = 0;
        }
        put_real(j->type, im, e + size / 2);
    }
    put_real(j->type, re, e);
}

static void elements(const struct job *j, int r, size_t from, size_t n, char *to)
{
    for (size_t i = 0; i < n; i++)
        element(j, r, from + i, to + i * types[j->type].size);
}

/* ---- who has how many ---- */

/* In place the two sides are alike, so counts are symmetric. */
size_t job_count_v(const struct job *j, int r, int to)
{
    int a = j->in_place && r > to ? to : r, b = a == r ? to : r;
    return (size_t)(mp_word(j->seed, (uint64_t)(a * 64 + b)) >> 30) % (j->count + 1);
}

size_t job_src(const struct job *j)
{
    size_t n = (size_t)j->n, sum = 0;
    switch (j->kind) {
    case BROADCAST: return j->me == j->root ? j->count : 0;
    case ALLTOALL:
    case REDUCE_SCATTER: return n * j->count;
    case ALLTOALLV:
        for (int r = 0; r < j->n; r++)
            sum += job_count_v(j, j->me, r);
        return sum;
    default: return j->count;
    }
}

size_t job_dst(const struct job *j)
{
    size_t n = (size_t)j->n, sum = 0;
    switch (j->kind) {
    case ALLGATHER:
    case ALLTOALL: return n * j->count;
    case GATHER: return j->me == j->root ? n * j->count : 0;
    case REDUCE: return j->me == j->root ? j->count : 0;
    case ALLTOALLV:
        for (int r = 0; r < j->n; r++)
            sum += job_count_v(j, r, j->me);
        return sum;
    default: return j->count;
    }
}

void job_fill(const struct job *j, int r, void *src)
{
    struct job as = *j;
    as.me = r;
    elements(j, r, 0, job_src(&as), src);
}

/* ---- results ---- */

static void neutral(const struct job *j, char *e)
{
    static const double real[] = {0, 1, (double)INFINITY, -(double)INFINITY};
    gin_type_t t = j->type;
    size_t size = types[t].size;
    uint64_t top = (uint64_t)1 << (size <= 8 ? 8 * size - 1 : 63), v = 0;
    bool is_signed = t == GIN_INT8 || t == GIN_INT16 || t == GIN_INT32 || t == GIN_INT64;
    if (types[t].kind != INT) {
        if (types[t].kind == COMPLEX)
            put_real(t, 0, e + size / 2);
        put_real(t, real[j->op], e);
        return;
    }
    if (j->op == GIN_PROD)
        v = 1;
    else if (j->op == GIN_AND || (j->op == GIN_MIN && !is_signed))
        v = ~(uint64_t)0;
    else if (j->op == GIN_MIN)
        v = top - 1;
    else if (j->op == GIN_MAX && is_signed)
        v = top;
    memcpy(e, &v, size);
}

/* Elements from .. from + n of ranks 0 .. ranks - 1, in their order. */
static void folded(const struct job *j, int ranks, size_t from, size_t n, char *to)
{
    size_t size = types[j->type].size;
    char e[16];
    for (size_t i = 0; i < n; i++, to += size) {
        neutral(j, to);
        for (int r = 0; r < ranks; r++) {
            element(j, r, from + i, e);
            if (r == 0)
                memcpy(to, e, size);
            else
                fold_one(j->type, j->op, to, e);
        }
    }
}

size_t job_want(const struct job *j, void *dst)
{
    size_t size = types[j->type].size, n = j->count, first;
    size_t me = (size_t)j->me;
    char *to = dst;
    switch (j->kind) {
    case BROADCAST: elements(j, j->root, 0, n, to); break;
    case ALLGATHER:
    case GATHER:
        for (int r = 0; r < j->n && job_dst(j) != 0; r++)
            elements(j, r, 0, n, to + (size_t)r * n * size);
        break;
    case ALLTOALL:
        for (int r = 0; r < j->n; r++)
            elements(j, r, me * n, n, to + (size_t)r * n * size);
        break;
    case ALLTOALLV:
        for (int r = 0; r < j->n; r++) {
            first = 0;
            for (int k = 0; k < j->me; k++)
                first += job_count_v(j, r, k);
            elements(j, r, first, job_count_v(j, r, j->me), to);
            to += job_count_v(j, r, j->me) * size;
        }
        break;
    case ALLREDUCE:
    case REDUCE:
        if (job_dst(j) != 0)
            folded(j, j->n, 0, n, to);
        break;
    case REDUCE_SCATTER: folded(j, j->n, me * n, n, to); break;
    case SCAN: folded(j, j->me + 1, 0, n, to); break;
    case SCAN_EXCLUSIVE: folded(j, j->me, 0, n, to); break;
    case KINDS: break;
    }
    return job_dst(j) * size;
}

/* Part of a number, and what it is. */
static double value(gin_type_t type, const char *e)
{
    uint16_t h;
    float f;
    double d;
    switch (type) {
    case GIN_HALF:
    case GIN_BFLOAT16:
        memcpy(&h, e, 2);
        return type == GIN_HALF ? gin_i_half_to_float(h) : gin_i_bfloat16_to_float(h);
    case GIN_FLOAT:
    case GIN_COMPLEX_FLOAT: memcpy(&f, e, 4); return f;
    default: memcpy(&d, e, 8); return d;
    }
}

/* The sign of a complex product's zeros depends on the order. */
static bool is_equal(const struct job *j, const char *a, const char *b)
{
    double x = value(j->type, a), y = value(j->type, b);
    if (types[j->type].kind == INT)
        return false;
    return (isnan(x) && isnan(y)) || (types[j->type].kind == COMPLEX && !j->bits && x == y);
}

bool job_equal(const struct job *j, const void *got, const void *want, size_t bytes, size_t *where)
{
    const char *a = got, *b = want;
    size_t size = types[j->type].size;
    size = types[j->type].kind == COMPLEX ? size / 2 : size;
    if (bytes == 0 || memcmp(got, want, bytes) == 0)
        return true;
    for (size_t i = 0; i + size <= bytes; i += size)
        if (memcmp(a + i, b + i, size) != 0 && !is_equal(j, a + i, b + i)) {
            *where = i / size;
            return false;
        }
    return true;
}
