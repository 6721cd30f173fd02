/* SPDX-License-Identifier: BSD-3-Clause */
/* One place of all LSA ranks at once, by host threads: results, refusals, and hosts apart. */
#include <string.h>
#include "tests/mp.h"

#define N 33

/* One context, memory of `bytes` in the heap. */
static void *up(struct mp *mp, size_t bytes, gin_at_t *at)
{
    if (!mp_dev(mp, NULL))
        return NULL;
    if (!mp_near(mp)) {
        mp_skip(mp, "not every rank is load/store accessible");
        return NULL;
    }
    void *p = gin_calloc(mp->comm, bytes, 1);
    EXPECT(p != NULL);
    *at = gin_at_ptr(&mp->g, p);
    return p;
}

static void meet(struct mp *mp)
{
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_ALL));
}

static int64_t element(int r, int i)
{
    return (r + 3) * (i + 5) * 37 % 101 - 50;
}

static int64_t expected(int first, int n, int i, int op)
{
    int64_t a = element(first, i);
    for (int r = first + 1; r < first + n; r++) {
        int64_t b = element(r, i);
        a = op == GIN_SUM   ? a + b
            : op == GIN_MIN ? (b < a ? b : a)
            : op == GIN_MAX ? (a < b ? b : a)
            : op == GIN_AND ? (a & b)
            : op == GIN_OR  ? (a | b)
                            : (a ^ b);
    }
    return a;
}

#define REDUCE(type, name, last)                                                                   \
    for (int op = GIN_SUM; op <= (last); op++) {                                                   \
        type *x = p, got[N];                                                                       \
        if (op == GIN_PROD)                                                                        \
            continue;                                                                              \
        meet(mp);                                                                                  \
        for (int i = 0; i < N; i++)                                                                \
            x[i] = (type)element(mp->rank, i);                                                     \
        meet(mp);                                                                                  \
        EXPECT_OK(                                                                                 \
            gin_lsa_reduce(g, gin_thread(), gin_at_local(got), at, N, name, (gin_reduction_t)op)); \
        for (int i = 0; i < N; i++)                                                                \
            EXPECT((int64_t)got[i] == expected(0, mp->size, i, op));                               \
    }

MP_TEST(results)
{
    gin_at_t at;
    gin_t *g = &mp->g;
    void *p = up(mp, 4096, &at);
    if (p == NULL)
        return;
    REDUCE(int32_t, GIN_INT32, GIN_XOR)
    REDUCE(int64_t, GIN_INT64, GIN_XOR)
    REDUCE(float, GIN_FLOAT, GIN_MAX)
    REDUCE(double, GIN_DOUBLE, GIN_MAX)
    meet(mp);
    unsigned char mine[100];
    for (int root = 0; root < mp->size; root++) {
        memset(p, 0x5a, 4096);
        mp_poison(mine, sizeof(mine), (uint64_t)(root + mp->rank));
        meet(mp);
        if (mp->rank == root)
            EXPECT_OK(gin_lsa_broadcast(g, gin_thread(), gin_at(at.win, at.off + 3),
                                        gin_at_local(mine), sizeof(mine)));
        meet(mp);
        MP_CHECK_PATTERN((unsigned char *)p + 3, sizeof(mine), (uint64_t)(2 * root));
        EXPECT_FILLED((unsigned char *)p + 103, 100, 0x5a);
        meet(mp);
    }
    uint64_t *word = p;
    *word = 7;
    meet(mp);
    for (int i = 0; i < 100; i++)
        EXPECT_OK(gin_lsa_add(g, gin_thread(), at, (uint64_t)1 << 8 * (mp->rank % 7)));
    meet(mp);
    uint64_t want = 7;
    for (int r = 0; r < mp->size; r++)
        want += 100ull << 8 * (r % 7);
    EXPECT_EQ_U64(*word, want);
}

/* Unsigned order is not that of signed numbers. */
MP_TEST_N(unsigned_order, "2 3")
{
    gin_at_t at;
    uint64_t *p = up(mp, 64, &at), got = 0;
    uint32_t *q = (uint32_t *)(p + 1), low = 0;
    if (p == NULL)
        return;
    *p = mp->rank == 0 ? UINT64_MAX : 1;
    *q = mp->rank == 0 ? UINT32_MAX : 1;
    gin_at_t at4 = gin_at(at.win, at.off + 8);
    meet(mp);
    EXPECT_OK(gin_lsa_reduce(&mp->g, gin_thread(), gin_at_local(&got), at, 1, GIN_UINT64, GIN_MAX));
    EXPECT_EQ_U64(got, UINT64_MAX);
    EXPECT_OK(gin_lsa_reduce(&mp->g, gin_thread(), gin_at_local(&got), at, 1, GIN_INT64, GIN_MAX));
    EXPECT_EQ_U64(got, 1);
    EXPECT_OK(
        gin_lsa_reduce(&mp->g, gin_thread(), gin_at_local(&low), at4, 1, GIN_UINT32, GIN_MIN));
    EXPECT_EQ_U64(low, 1);
    EXPECT_OK(gin_lsa_reduce(&mp->g, gin_thread(), gin_at_local(&low), at4, 1, GIN_INT32, GIN_MIN));
    EXPECT_EQ_U64(low, UINT32_MAX);
    meet(mp);
}

MP_TEST_N(refusals, "1 2")
{
    gin_at_t at, none = gin_at(gin_window_none(), 0);
    gin_t *g = &mp->g;
    gin_group_t t = gin_thread();
    int64_t here[4], *p = up(mp, 64, &at);
    if (p == NULL)
        return;
    gin_at_t local = gin_at_local(here), odd = gin_at(at.win, at.off + 2);
    EXPECT_FAILS(gin_lsa_broadcast(g, t, local, at, 8), GIN_EINVAL, "gin_lsa_broadcast");
    EXPECT_FAILS(gin_lsa_broadcast(g, t, none, at, 8), GIN_ESTATE, "gin_lsa_broadcast");
    EXPECT_FAILS(gin_lsa_broadcast(g, t, at, at, (size_t)1 << 60), GIN_ERANGE, "");
    EXPECT_FAILS(gin_lsa_broadcast(g, gin_block(), at, local, 8), GIN_EINVAL, "");
    EXPECT_FAILS(gin_lsa_add(g, t, odd, 1), GIN_EINVAL, "multiple of 8");
    EXPECT_FAILS(gin_lsa_reduce(g, t, local, at, 1, (gin_type_t)99, GIN_SUM), GIN_EINVAL, "type");
    EXPECT_FAILS(gin_lsa_reduce(g, t, local, at, 1, GIN_HALF, GIN_SUM), GIN_ENOTSUP, "type");
    EXPECT_FAILS(gin_lsa_reduce(g, t, local, at, 1, GIN_FLOAT, GIN_OR), GIN_ENOTSUP, "operation");
    EXPECT_FAILS(gin_lsa_reduce(g, t, local, at, 1, GIN_INT64, GIN_PROD), GIN_ENOTSUP, "operation");
    EXPECT_FAILS(gin_lsa_reduce(g, t, local, odd, 1, GIN_INT32, GIN_SUM), GIN_EINVAL, "multiple");
    EXPECT_FAILS(gin_lsa_reduce(g, t, odd, at, 1, GIN_INT32, GIN_SUM), GIN_EINVAL, "aligned");
    EXPECT_FAILS(gin_lsa_reduce(g, t, gin_at_local(NULL), at, 1, GIN_INT32, GIN_SUM), GIN_EINVAL,
                 "destination");
    EXPECT_FAILS(gin_lsa_reduce(g, t, local, at, SIZE_MAX, GIN_INT64, GIN_SUM), GIN_ERANGE, "");
    meet(mp);
}
