/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls on all LSA ranks at once, by every kind of group: through multicast addresses in the
 * heap, where there are some, and rank by rank in a window that has none; the same results.
 */
#ifndef GINSHMEM_TESTS_GPU_DEVICE_EVERYBODY_H
#define GINSHMEM_TESTS_GPU_DEVICE_EVERYBODY_H

#include "tests/gpu/device/device.h"

#ifdef __CUDA_ARCH__

#define EACH 24u /* elements */

/* Element i of rank r: small, so that floating-point sums are exact in any order. */
DEVICE int64_t element(int r, uint64_t i)
{
    return (int64_t)((uint64_t)(r + 3) * (i + 5) * 37 % 101) - 50;
}

DEVICE int64_t expected(const struct env *e, uint64_t i, int op)
{
    int64_t a = element(0, i);
    for (int r = 1; r < e->n; r++) {
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

/* Unsigned elements are not negative: their order is another one. */
template <class T> DEVICE void reduce(struct env *e, gin_at_t at, gin_type_t type, int last)
{
    gin_t *g = &e->g;
    const int is_unsigned = (T)-1 > (T)0;
    gin_at_t result = heap_at(REACH - 4096);
    T *mine = (T *)gin_local_ptr(g, at), *to = (T *)gin_local_ptr(g, result);
    for (int op = GIN_SUM; op <= last; op++) {
        if (op == GIN_PROD)
            continue;
        int shift = is_unsigned ? 50 : 0;
        if (shift && op >= GIN_AND)
            shift = 0;
        meet(e);
        for (uint64_t i = e->q.lane; i < EACH; i += e->q.lanes) {
            mine[i] = (T)(element(e->rank, i) + shift);
            to[i] = (T)77;
        }
        meet(e);
        CHECK_OK(gin_lsa_reduce(g, e->grp, result, at, EACH, type, (gin_reduction_t)op));
        for (uint64_t i = 0; i < EACH; i++)
            CHECK(to[i] ==
                      (T)(expected(e, i, op) + (op == GIN_SUM ? (int64_t)shift * e->n : shift)),
                  1);
    }
    meet(e);
}

DEVICE void broadcast(struct env *e, gin_at_t at, uint64_t off, uint64_t bytes, uint64_t round)
{
    gin_t *g = &e->g;
    const uint64_t skew = round % 3 == 0 ? 0 : round;
    uint8_t *from = (uint8_t *)gin_local_ptr(g, heap_at(REACH - 8192)) + skew;
    volatile uint8_t *here = (volatile uint8_t *)gin_local_ptr(g, gin_at(at.win, at.off + off));
    for (uint64_t i = e->q.lane; i < bytes + 2; i += e->q.lanes) {
        from[i] = pattern(e->rank, round, i);
        here[i] = 0x5a;
    }
    meet(e);
    if (e->rank == (int)(round % (uint64_t)e->n))
        CHECK_OK(gin_lsa_broadcast(g, e->grp, gin_at(at.win, at.off + off),
                                   heap_at(REACH - 8192 + skew), bytes));
    meet(e);
    for (uint64_t i = 0; i < bytes; i++)
        CHECK(here[i], pattern((int)(round % (uint64_t)e->n), round, i));
    CHECK(here[bytes], 0x5a); /* and nothing beyond */
    meet(e);
}

DEVICE void everybody_at(struct env *e, gin_at_t at)
{
    static const uint64_t sizes[] = {16, 1, 4, 100, 256, 63, 1000, 8};
    gin_t *g = &e->g;
    reduce<int32_t>(e, at, GIN_INT32, GIN_XOR);
    if (at.win.w == fake_window(FAKE_HEAP).w) {
        reduce<uint32_t>(e, at, GIN_UINT32, GIN_XOR);
        reduce<int64_t>(e, at, GIN_INT64, GIN_XOR);
        reduce<uint64_t>(e, at, GIN_UINT64, GIN_XOR);
        reduce<float>(e, at, GIN_FLOAT, GIN_MAX);
    }
    reduce<double>(e, at, GIN_DOUBLE, GIN_MAX);
    for (uint64_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        broadcast(e, at, i % 2 ? i : 0, sizes[i], i);
    volatile uint64_t *word = (volatile uint64_t *)gin_local_ptr(g, at);
    if (e->q.lane == 0)
        *word = 0;
    meet(e);
    CHECK_OK(gin_lsa_add(g, e->grp, at, 1ull << 8 * e->rank));
    CHECK_OK(gin_lsa_add(g, e->grp, at, 1ull << 8 * e->rank));
    meet(e);
    uint64_t sum = 0;
    for (int r = 0; r < e->n; r++)
        sum += 2ull << 8 * r;
    CHECK(*word, sum);
    meet(e);
}

DEVICE void test_everybody(struct env *e)
{
    gin_t *g = &e->g;
    gin_at_t at = heap_at(REACH - 2048), table = gin_at(fake_window(FAKE_TABLE), 2048);
    const gin_reduction_t sum = GIN_SUM;
    if (gin_lsa(g).size != e->n) { /* one of them has no GPU */
        CHECK(gin_lsa_broadcast(g, e->grp, at, heap_at(0), 8), GIN_ENOTSUP);
        CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), at, 8, GIN_INT32, sum), GIN_ENOTSUP);
        CHECK(gin_lsa_add(g, e->grp, at, 1), GIN_ENOTSUP);
        return;
    }
    everybody_at(e, at);
    everybody_at(e, table);
    CHECK(gin_lsa_broadcast(g, e->grp, heap_at(FAKE_USER - 7), heap_at(0), 8), GIN_ERANGE);
    CHECK(gin_lsa_broadcast(g, e->grp, gin_at_local(e), heap_at(0), 8), GIN_EINVAL);
    CHECK(gin_lsa_broadcast(g, e->grp, at, gin_at_local(NULL), 8), GIN_EINVAL);
    CHECK(gin_lsa_add(g, e->grp, heap_at(4), 1), GIN_EINVAL);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), heap_at(2), 8, GIN_INT32, sum), GIN_EINVAL);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(4), heap_at(64), 8, GIN_DOUBLE, sum), GIN_EINVAL);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), at, 8, GIN_HALF, sum), GIN_ENOTSUP);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), at, 8, GIN_FLOAT, GIN_AND), GIN_ENOTSUP);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), at, 8, GIN_INT64, GIN_PROD), GIN_ENOTSUP);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), at, 8, (gin_type_t)99, sum), GIN_EINVAL);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), at, ~(size_t)0, GIN_INT64, sum), GIN_ERANGE);
    CHECK(gin_lsa_reduce(g, e->grp, heap_at(0), heap_at(FAKE_USER - 8), 3, GIN_INT32, sum),
          GIN_ERANGE);
    meet(e);
}

#endif
#endif
