/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on one place of all LSA ranks, for host threads: rank by rank, by what single ranks have.
 * Every place is looked up before the first one is used.
 */
#include <inttypes.h>
#include <string.h>

#include "devcomm.h"

/* At every LSA rank, first byte and end; what is wrong is recorded by whoever finds it. */
static int judge(const gin_t *g, gin_at_t at, uint64_t bytes, uint64_t align, const char *call)
{
    const gin_team_t lsa = gin_lsa(g);
    if (at.win.w == GIN_I_WINDOW_LOCAL)
        return gi_fail(GIN_EINVAL, "%s: memory outside windows is nobody's but mine", call);
    if (at.off % align != 0)
        return gi_fail(GIN_EINVAL, "%s: offset %" PRIu64 " is no multiple of %" PRIu64, call,
                       at.off, align);
    if (bytes > UINT64_MAX - at.off)
        return gi_fail(GIN_ERANGE, "%s: %" PRIu64 " bytes at offset %" PRIu64, call, bytes, at.off);
    for (int r = 0; r < lsa.size; r++)
        if (gin_lsa_ptr(g, r, at) == NULL ||
            gin_lsa_ptr(g, r, gin_at(at.win, at.off + bytes)) == NULL) {
            gi_fail_context("%s", call);
            return gin_last_status();
        }
    return GIN_OK;
}

int gin_i_lsa_broadcast(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src, size_t bytes)
{
    static const char call[] = "gin_lsa_broadcast";
    int st = gi_op_enter(g, grp, 0, call);
    if (st == GIN_OK)
        st = judge(g, dst, bytes, 1, call);
    const gin_team_t lsa = st == GIN_OK ? gin_lsa(g) : gin_team_invalid();
    for (int r = 0; st == GIN_OK && r < lsa.size; r++)
        st = gin_put(g, grp, lsa, r, dst, src, bytes, gin_no_action());
    return st;
}

int gin_i_lsa_add(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t value)
{
    static const char call[] = "gin_lsa_add";
    int st = gi_op_enter(g, grp, 0, call);
    if (st == GIN_OK)
        st = judge(g, at, 8, 8, call);
    const gin_team_t lsa = st == GIN_OK ? gin_lsa(g) : gin_team_invalid();
    for (int r = 0; st == GIN_OK && r < lsa.size; r++)
        st = gin_amo_add(g, grp, lsa, r, at, value);
    return st;
}

/* ---- reduction ---- */

#define ARITHMETIC                          \
    case GIN_SUM: a += b; break;            \
    case GIN_MIN: a = b < a ? b : a; break; \
    case GIN_MAX:                           \
        a = a < b ? b : a;                  \
        break;
#define BITWISE                  \
    case GIN_AND: a &= b; break; \
    case GIN_OR: a |= b; break;  \
    case GIN_XOR: a ^= b; break;

/* name: one rank's elements into mine. cases: the operations of the type. */
#define REDUCER(name, type, cases)                                                         \
    static void name(void *to, const void *from, size_t n, gin_reduction_t op, bool first) \
    {                                                                                      \
        type *t = to;                                                                      \
        const type *f = from;                                                              \
        for (size_t i = 0; i < n; i++) {                                                   \
            type a = t[i], b = f[i];                                                       \
            if (first)                                                                     \
                a = b;                                                                     \
            else                                                                           \
                switch (op) {                                                              \
                    cases default : break;                                                 \
                }                                                                          \
            t[i] = a;                                                                      \
        }                                                                                  \
    }
/* clang-format off */
REDUCER(int32s, int32_t, ARITHMETIC BITWISE)
REDUCER(uint32s, uint32_t, ARITHMETIC BITWISE)
REDUCER(int64s, int64_t, ARITHMETIC BITWISE)
REDUCER(uint64s, uint64_t, ARITHMETIC BITWISE)
REDUCER(floats, float, ARITHMETIC)
REDUCER(doubles, double, ARITHMETIC)
/* clang-format on */

struct reducer {
    void (*run)(void *to, const void *from, size_t n, gin_reduction_t op, bool first);
    size_t size;
    gin_reduction_t last; /* operations up to this one, but the product */
};

static const struct reducer *reducer_of(gin_type_t type, gin_reduction_t op)
{
    static const struct reducer all[] = {
        [GIN_INT32] = {int32s, 4, GIN_XOR},   [GIN_UINT32] = {uint32s, 4, GIN_XOR},
        [GIN_INT64] = {int64s, 8, GIN_XOR},   [GIN_UINT64] = {uint64s, 8, GIN_XOR},
        [GIN_FLOAT] = {floats, 4, GIN_MAX},   [GIN_DOUBLE] = {doubles, 8, GIN_MAX},
        [GIN_COMPLEX_DOUBLE] = {NULL, 16, 0},
    };
    const struct reducer *r = &all[type];
    return r->run != NULL && op <= r->last && op != GIN_PROD ? r : NULL;
}

int gin_i_lsa_reduce(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src, size_t count,
                     gin_type_t type, gin_reduction_t op)
{
    static const char call[] = "gin_lsa_reduce";
    int st = gi_op_enter(g, grp, 0, call);
    if (st != GIN_OK)
        return st;
    if ((unsigned)type > GIN_COMPLEX_DOUBLE || (unsigned)op > GIN_XOR)
        return gi_fail(GIN_EINVAL, "%s: type %d or operation %d is none", call, (int)type, (int)op);
    const struct reducer *r = reducer_of(type, op);
    if (r == NULL)
        return gi_fail(GIN_ENOTSUP,
                       "%s: operation %d on type %d: there are sum, minimum and maximum for 32 and "
                       "64 bit numbers, and, or, xor for the integers among them",
                       call, (int)op, (int)type);
    if (count > SIZE_MAX / 16)
        return gi_fail(GIN_ERANGE, "%s: %zu elements", call, count);
    st = judge(g, src, count * r->size, r->size, call);
    if (st != GIN_OK)
        return st;
    void *to = dst.win.w == GIN_I_WINDOW_LOCAL ? (void *)(uintptr_t)dst.off : gin_local_ptr(g, dst);
    if (to == NULL || (dst.win.w != GIN_I_WINDOW_LOCAL &&
                       gin_local_ptr(g, gin_at(dst.win, dst.off + count * r->size)) == NULL))
        return gi_fail(to == NULL ? GIN_EINVAL : GIN_ERANGE,
                       "%s: the destination is no memory of mine that holds %zu elements", call,
                       count);
    if ((uintptr_t)to % r->size != 0)
        return gi_fail(GIN_EINVAL, "%s: the destination is not aligned to %zu bytes", call,
                       r->size);
    const gin_team_t lsa = gin_lsa(g);
    for (int i = 0; i < lsa.size; i++)
        r->run(to, gin_lsa_ptr(g, i, src), count, op, i == 0);
    return GIN_OK;
}
