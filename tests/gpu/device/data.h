/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets, values and signals, by every kind of group. */
#ifndef GINSHMEM_TESTS_GPU_DEVICE_DATA_H
#define GINSHMEM_TESTS_GPU_DEVICE_DATA_H

#include "tests/gpu/device/device.h"

#ifdef __CUDA_ARCH__

#define CANARY 0xeeu

/* Bytes [at - 32, at + n + 32) of mine: canaries around what `from` sent in `round`. */
DEVICE void expect_bytes(struct env *e, const uint8_t *at, uint64_t n, int from, uint64_t round)
{
    for (uint64_t i = e->q.lane; i < n + 64; i += e->q.lanes) {
        uint8_t want = i < 32 || i >= n + 32 ? CANARY : pattern(from, round, i - 32);
        CHECK(*(const volatile uint8_t *)(at + i - 32), want);
    }
}

DEVICE void fill(struct env *e, uint8_t *at, uint64_t n, int rank, uint64_t round)
{
    for (uint64_t i = e->q.lane; i < n; i += e->q.lanes)
        at[i] = rank < 0 ? (uint8_t)CANARY : pattern(rank, round, i);
}

/* dst and src: windows to go through; offsets of 64-byte aligned areas in them. */
DEVICE void put_and_get(struct env *e, gin_window_t win, uint64_t dst, uint64_t src, int rounds)
{
    const uint64_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 64, 100, 255, 1000, 2049};
    const uint64_t shifts[] = {0, 1, 2, 4, 8, 13, 6, 0};
    uint8_t *mine = (uint8_t *)gin_local_ptr(&e->g, gin_at(win, 0));
    uint64_t seen = gin_read_signal(&e->g, 1);
    gin_i_group_sync(&e->q);
    for (uint64_t r = 0; r < (uint64_t)rounds; r++) {
        uint64_t n = sizes[r * 5 % 17];
        uint64_t to = dst + 64 + shifts[r % 8], from = src + 64 + shifts[r / 8 % 8];
        fill(e, mine + dst, n + 192, -1, 0);
        fill(e, mine + from, n, e->rank, r);
        meet(e);
        CHECK_OK(gin_put(&e->g, e->grp, e->world, e->right, gin_at(win, to), gin_at(win, from), n,
                         gin_weak_add(1, 3)));
        CHECK_OK(gin_wait_signal(&e->g, e->grp, 1, seen + 3 * (r + 1)));
        CHECK(gin_read_signal(&e->g, 1), seen + 3 * (r + 1));
        expect_bytes(e, mine + to, n, e->left, r);
        meet(e);
        fill(e, mine + dst, n + 192, -1, 0);
        gin_i_group_sync(&e->q);
        CHECK_OK(gin_get(&e->g, e->grp, e->world, e->right, gin_at(win, from), gin_at(win, to), n));
        CHECK_OK(gin_flush(&e->g, e->grp));
        expect_bytes(e, mine + to, n, e->right, r);
        meet(e);
    }
}

DEVICE void test_put_get(struct env *e)
{
    put_and_get(e, fake_window(FAKE_HEAP), 4096, 16384, 24);
    put_and_get(e, fake_window(FAKE_HEAP), REACH + 4096, REACH - 1024, 24);
    put_and_get(e, fake_window(FAKE_TABLE), 0, 4096, 16);
    put_and_get(e, fake_window(FAKE_HOST), 0, 4096, 16);
}

DEVICE void test_values(struct env *e)
{
    const uint64_t v = 0x8877665544332211ull;
    uint8_t *mine = (uint8_t *)gin_local_ptr(&e->g, heap_at(0));
    uint64_t seen = gin_read_signal(&e->g, 2);
    for (uint64_t n = 1; n <= 8; n++)
        for (uint64_t shift = 0; shift < 8; shift += 3) {
            fill(e, mine, 64, -1, 0);
            meet(e);
            CHECK_OK(gin_put_value(&e->g, e->grp, e->world, e->right, heap_at(16 + shift), v, n,
                                   gin_strong_inc(2)));
            CHECK_OK(gin_wait_signal(&e->g, e->grp, 2, ++seen));
            for (uint64_t i = 0; i < 64; i++) {
                int inside = i >= 16 + shift && i < 16 + shift + n;
                CHECK(*(volatile uint8_t *)(mine + i),
                      inside ? (uint8_t)(v >> 8 * (i - 16 - shift)) : CANARY);
            }
            meet(e);
        }
    CHECK(gin_put_value(&e->g, e->grp, e->world, e->right, heap_at(0), v, 0, gin_no_action()),
          GIN_ERANGE);
    CHECK(gin_put_value(&e->g, e->grp, e->world, e->right, heap_at(0), v, 9, gin_no_action()),
          GIN_ERANGE);
}

/* A word of a window that peers raise. */
DEVICE void test_words(struct env *e)
{
    gin_at_t at = heap_at(REACH - 64);
    uint64_t old = 99;
    CHECK_OK(gin_reset_signal_at(&e->g, at, NULL));
    meet(e);
    CHECK_OK(gin_signal(&e->g, e->grp, e->world, e->right, gin_weak_inc_at(at)));
    CHECK_OK(gin_wait_signal_at(&e->g, e->grp, at, 1, NULL));
    meet(e);
    CHECK_OK(gin_signal(&e->g, e->grp, e->world, e->right, gin_strong_add_at(at, 41)));
    CHECK_OK(gin_wait_signal_until_at(&e->g, e->grp, at, GIN_CMP_EQ, 42, NULL));
    CHECK(gin_read_signal_at(&e->g, at), 42);
    meet(e);
    CHECK_OK(gin_signal(&e->g, e->grp, e->world, e->right, gin_set_at(at, 7)));
    CHECK_OK(gin_wait_signal_until_at(&e->g, e->grp, at, GIN_CMP_LT, 42, NULL));
    CHECK(gin_read_signal_at(&e->g, at), 7);
    meet(e);
    if (e->q.lane == 0) {
        CHECK_OK(gin_consume_signal_at(&e->g, at, 3));
        CHECK_OK(gin_reset_signal_at(&e->g, at, &old));
        CHECK(old, 4);
    }
    meet(e);
    CHECK(gin_read_signal_at(&e->g, at), 0);
    gin_at_t odd = heap_at(REACH - 60);
    CHECK(gin_signal(&e->g, e->grp, e->world, e->right, gin_set_at(odd, 7)), GIN_EINVAL);
    CHECK(gin_wait_signal_at(&e->g, e->grp, odd, 1, NULL), GIN_EINVAL);
    CHECK(gin_read_signal_at(&e->g, odd), 0);
    CHECK(gin_status(&e->g), GIN_EINVAL);
    meet(e);
}

DEVICE void test_signals(struct env *e)
{
    gin_wait_opt_t once = {0, 0, 1}, soon = {2000000, 0, 0}, narrow = {0, 8, 0};
    uint64_t old = 0;
    if (e->q.lane == 0)
        CHECK_OK(gin_reset_signal(&e->g, 3, NULL));
    meet(e);
    CHECK(gin_test_signal(&e->g, e->grp, 3, 1), GIN_EAGAIN);
    CHECK(gin_wait_signal_x(&e->g, e->grp, 3, 1, &once), GIN_EAGAIN);
    CHECK(gin_wait_signal_x(&e->g, e->grp, 3, 1, &soon), GIN_ETIMEDOUT);
    meet(e);
    for (int i = 0; i < e->n; i++) /* all of them, myself too */
        CHECK_OK(gin_signal(&e->g, e->grp, e->world, i, gin_weak_add(3, 100)));
    CHECK_OK(gin_wait_signal(&e->g, e->grp, 3, 100 * (uint64_t)e->n));
    CHECK_OK(gin_test_signal(&e->g, e->grp, 3, 100 * (uint64_t)e->n));
    CHECK_OK(gin_wait_signal_x(&e->g, e->grp, 3, 100 * (uint64_t)e->n % 256, &narrow));
    CHECK_OK(gin_wait_signal_until(&e->g, e->grp, 3, GIN_CMP_EQ, 100 * (uint64_t)e->n, NULL));
    CHECK_OK(gin_wait_signal_until(&e->g, e->grp, 3, GIN_CMP_NE, 1, NULL));
    CHECK_OK(gin_wait_signal_until(&e->g, e->grp, 3, GIN_CMP_GT, 99, NULL));
    CHECK_OK(gin_wait_signal_until(&e->g, e->grp, 3, GIN_CMP_GE, 100, NULL));
    CHECK_OK(gin_wait_signal_until(&e->g, e->grp, 3, GIN_CMP_LE, 100 * (uint64_t)e->n, NULL));
    CHECK(gin_wait_signal_until(&e->g, e->grp, 3, GIN_CMP_LT, 100, &once), GIN_EAGAIN);
    meet(e);
    if (e->q.lane == 0) {
        CHECK_OK(gin_consume_signal(&e->g, 3, 40));
        CHECK(gin_read_signal(&e->g, 3), 100 * (uint64_t)e->n - 40);
        CHECK_OK(gin_reset_signal(&e->g, 3, &old));
        CHECK(old, 100 * (uint64_t)e->n - 40);
    }
    meet(e);
    CHECK(gin_read_signal(&e->g, 3), 0);
    CHECK(gin_read_signal(&e->g, FAKE_SIGNALS), 0);
    CHECK(gin_status(&e->g), GIN_ERANGE);
    meet(e);
}

/* Every lane for itself: sums are exact. */
DEVICE void test_crowd(struct env *e)
{
    if (e->q.lane == 0)
        CHECK_OK(gin_reset_signal(&e->g, 4, NULL));
    meet(e);
    for (int i = 0; i < 20; i++)
        CHECK_OK(
            gin_signal(&e->g, gin_thread(), e->world, (e->rank + i) % e->n, gin_weak_add(4, 2)));
    gin_i_group_sync(&e->q);
    meet(e);
    uint64_t sum = 0; /* lanes of the others are as many as mine */
    for (int r = 0; r < e->n; r++)
        for (int i = 0; i < 20; i++)
            sum += (r + i) % e->n == e->rank ? 2 * e->q.lanes : 0;
    CHECK(gin_read_signal(&e->g, 4), sum);
    meet(e);
}

DEVICE void test_sets(struct env *e)
{
    const uint32_t ids[] = {5, 6, 7, 8};
    const uint64_t least[] = {1, 1, 2, 1};
    const int skip[] = {0, 1, 0, 0}, all_out[] = {1, 1, 1, 1};
    gin_wait_opt_t once = {0, 0, 1};
    size_t which[4], count = 9;
    gin_t *g = &e->g;
    for (uint32_t i = 0; e->q.lane == 0 && i < 4; i++)
        CHECK_OK(gin_reset_signal(g, ids[i], NULL));
    meet(e);
    CHECK(gin_wait_signal_any(g, e->grp, ids, least, 4, NULL, which, &once), GIN_EAGAIN);
    CHECK_OK(gin_wait_signal_all(g, e->grp, ids, least, 4, all_out, NULL));
    CHECK_OK(gin_wait_signal_any(g, e->grp, ids, least, 4, all_out, which, NULL));
    CHECK(which[0], 4);
    CHECK_OK(gin_wait_signal_some(g, e->grp, ids, least, 0, NULL, which, &count, NULL));
    CHECK(count, 0);
    meet(e);
    CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_weak_inc(7)));
    CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_weak_inc(6)));
    CHECK_OK(gin_wait_signal_any(g, e->grp, ids, least, 4, NULL, which, NULL));
    CHECK(which[0], 1);
    meet(e);
    CHECK(gin_wait_signal_any(g, e->grp, ids, least, 4, skip, which, &once), GIN_EAGAIN);
    meet(e);
    CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_weak_inc(7)));
    CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_weak_inc(8)));
    CHECK_OK(gin_wait_signal(g, e->grp, 7, 2));
    CHECK_OK(gin_wait_signal(g, e->grp, 8, 1));
    CHECK_OK(gin_wait_signal_some(g, e->grp, ids, least, 4, skip, which, &count, NULL));
    CHECK(count, 2);
    CHECK(which[0], 2);
    CHECK(which[1], 3);
    CHECK(gin_wait_signal_all(g, e->grp, ids, least, 4, NULL, &once), GIN_EAGAIN);
    meet(e);
    CHECK_OK(gin_signal(g, e->grp, e->world, e->right, gin_weak_inc(5)));
    CHECK_OK(gin_wait_signal_all(g, e->grp, ids, least, 4, NULL, NULL));
    const uint32_t bad[] = {5, FAKE_SIGNALS};
    CHECK(gin_wait_signal_all(g, e->grp, bad, least, 2, NULL, NULL), GIN_ERANGE);
    CHECK(gin_wait_signal_any(g, e->grp, NULL, least, 2, NULL, which, NULL), GIN_EINVAL);
    meet(e);
}

DEVICE void test_shadows(struct env *e)
{
    uint64_t before = 9, delta = 9;
    if (e->q.lane == 0)
        CHECK_OK(gin_reset_signal(&e->g, 9, NULL));
    meet(e);
    CHECK(*gin_signal_shadow(&e->g, 9), 0);
    CHECK_OK(gin_wait_signal_meet_shadow(&e->g, e->grp, 9, NULL));
    CHECK_OK(gin_signal(&e->g, e->grp, e->world, e->right, gin_weak_add(9, 5)));
    if (e->q.lane == 0)
        CHECK_OK(gin_increase_shadow(&e->g, 9, 5));
    CHECK_OK(gin_wait_signal_meet_shadow(&e->g, e->grp, 9, NULL));
    meet(e);
    CHECK_OK(gin_signal(&e->g, e->grp, e->world, e->right, gin_weak_add(9, 6)));
    CHECK_OK(gin_wait_signal_follow_shadow(&e->g, e->grp, 9, 6, &before, &delta, NULL));
    CHECK(before, 5);
    CHECK(delta, 6);
    CHECK(gin_read_signal(&e->g, 9), 11);
    CHECK(gin_signal_shadow(&e->g, FAKE_SIGNALS) == NULL, 1);
    meet(e);
}

DEVICE void test_counters(struct env *e)
{
    gin_op_opt_t opt = {{1, 2}, 0, 0, 0, 0}, bad = {{1, FAKE_COUNTERS}, 0, 0, 0, 0};
    gin_wait_opt_t once = {0, 0, 1};
    uint64_t old = 0;
    if (e->q.lane == 0)
        CHECK_OK(gin_reset_counter(&e->g, 2, NULL));
    meet(e);
    CHECK(gin_wait_counter_x(&e->g, e->grp, 2, 1, &once), GIN_EAGAIN);
    CHECK_OK(gin_put_x(&e->g, e->grp, e->world, e->right, heap_at(0), heap_at(1024), 100,
                       gin_no_action(), &opt));
    CHECK_OK(gin_get_x(&e->g, e->grp, e->world, e->right, heap_at(2048), heap_at(3072), 100, &opt));
    CHECK_OK(gin_put_value_x(&e->g, e->grp, e->world, e->right, heap_at(0), 1, 4, gin_no_action(),
                             &opt));
    CHECK_OK(gin_signal_x(&e->g, e->grp, e->world, e->right, gin_weak_inc(10), &opt));
    CHECK_OK(gin_wait_counter(&e->g, e->grp, 2, 4));
    CHECK(gin_read_counter(&e->g, 2), 4);
    CHECK(gin_put_x(&e->g, e->grp, e->world, e->right, heap_at(0), heap_at(1024), 100,
                    gin_no_action(), &bad),
          GIN_ERANGE);
    meet(e);
    if (e->q.lane == 0) {
        CHECK_OK(gin_reset_counter(&e->g, 2, &old));
        CHECK(old, 4);
    }
    meet(e);
}

#endif
#endif
