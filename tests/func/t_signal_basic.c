/* SPDX-License-Identifier: BSD-3-Clause */
/* Slot signals with and without data: every form adds up exactly, nothing is lost by resets. */
#include <sched.h>
#include <string.h>
#include "tests/mp.h"

MP_TEST(every_form_adds_up)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = 3;
    reqs.signals = 5;
    if (!mp_dev(mp, &reqs))
        return;
    char *block = gin_calloc(mp->comm, (size_t)mp->size, 64), src[64];
    if (!EXPECT(block != NULL))
        return;
    mp_poison(src, sizeof(src), (uint64_t)mp->rank);
    for (uint32_t c = 0; c < reqs.contexts; c++) {
        gin_t g;
        EXPECT_OK(gin_open(&mp->dev, c, &g));
        for (int to = 0; to < mp->size; to++) {
            gin_at_t at = gin_at_ptr(&g, block + mp->rank * 64);
            gin_team_t w = gin_world(&g);
            gin_group_t me = gin_thread();
            EXPECT_OK(gin_signal(&g, me, w, to, gin_weak_inc(0)));
            EXPECT_OK(gin_signal(&g, me, w, to, gin_strong_inc(0)));
            EXPECT_OK(gin_signal(&g, me, w, to, gin_weak_add(1, c + 10)));
            EXPECT_OK(gin_signal(&g, me, w, to, gin_strong_add(1, 1000)));
            EXPECT_OK(gin_put(&g, me, w, to, at, gin_at_local(src), 64, gin_weak_add(2, 64)));
            EXPECT_OK(gin_put(&g, me, w, to, at, gin_at_local(src), 64, gin_strong_inc(3)));
            EXPECT_OK(gin_put_value(&g, me, w, to, at, mp_byte((uint64_t)mp->rank, 0), 1,
                                    gin_weak_add(4, ~(uint64_t)0))); /* minus one */
        }
    }
    for (uint32_t c = 0; c < reqs.contexts; c++) {
        uint64_t n = (uint64_t)mp->size;
        gin_t g;
        EXPECT_OK(gin_open(&mp->dev, c, &g));
        mp_step(mp, "context %u", c);
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, 2 * n));
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 1, n * (1010 + c)));
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 2, n * 64));
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 3, n));
        EXPECT_OK(gin_wait_signal_until(&g, gin_thread(), 4, GIN_CMP_EQ, 0 - n, NULL));
        EXPECT_EQ_U64(gin_read_signal(&g, 0), 2 * n);
        EXPECT_EQ_U64(gin_read_signal(&g, 1), n * (1010 + c));
        EXPECT_EQ_U64(gin_read_signal(&g, 2), n * 64);
        EXPECT_EQ_U64(gin_read_signal(&g, 3), n);
        EXPECT_EQ_INT(gin_test_signal(&g, gin_thread(), 3, n), GIN_OK);
        EXPECT_EQ_INT(gin_test_signal(&g, gin_thread(), 3, n + 1), GIN_EAGAIN);
    }
    for (int r = 0; r < mp->size; r++)
        MP_CHECK_PATTERN(block + r * 64, 64, (uint64_t)r);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
}

/* BL-13: no bytes, but a signal, exactly once; whatever the places say as long as they exist. */
MP_TEST(zero_bytes_signal_once)
{
    enum { ROUNDS = 1000 };
    if (!mp_dev(mp, NULL))
        return;
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    char *block = gin_malloc(mp->comm, 64);
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
    gin_window_t heap = gin_heap_window(mp->comm, GIN_KIND_HOST);
    if (!EXPECT(block != NULL))
        return;
    memset(block, 0x77, 64);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    int to = (mp->rank + 1) % mp->size;
    for (int i = 0; i < ROUNDS; i++) {
        gin_at_t dst = i % 2 ? gin_at_ptr(&mp->g, block) : gin_at(heap, u.size);
        gin_at_t src = i % 3 ? gin_at_local(&i) : gin_at_ptr(&mp->g, block + 64);
        EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), to, dst, src, 0,
                          i % 5 ? gin_weak_add(7, 3) : gin_strong_add(7, 3)));
    }
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 7, 3 * ROUNDS));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 7), 3 * ROUNDS);
    EXPECT_FILLED(block, 64, 0x77);
    EXPECT_OK(gin_free(mp->comm, block));
}

/* BL-19: adds go on while the owner resets, consumes and sums up what came. */
MP_TEST_N(resets_lose_nothing, "2 3 5")
{
    const int ADDS = mp_rounds(mp, 250000), RESETS = 1000;
    if (!mp_dev(mp, NULL))
        return;
    uint64_t total = 0, old = 0, want = (uint64_t)(mp->size - 1) * ADDS * 3;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank != 0)
        for (int i = 0; i < ADDS; i++)
            gin_signal(&mp->g, gin_thread(), gin_world(&mp->g), 0, gin_weak_add(0, 3));
    for (int i = 0; mp->rank == 0 && i < RESETS; i++) {
        if (i % 4 == 3) {
            old = gin_read_signal(&mp->g, 0);
            EXPECT_OK(gin_consume_signal(&mp->g, 0, old));
        } else {
            EXPECT_OK(gin_reset_signal(&mp->g, 0, &old));
        }
        EXPECT_EQ_U64(old % 3, 0);
        total += old;
        if (i % 16 == 0)
            sched_yield();
    }
    if (mp->rank == 0) {
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, want - total));
        EXPECT_OK(gin_reset_signal(&mp->g, 0, &old));
        EXPECT_EQ_U64(total + old, want);
        EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 0);
    }
}

/* BL-19: reset and barrier in every round; the first signal of the next one is never wiped. */
MP_TEST_N(reset_with_a_barrier, "1 2 3")
{
    const int ROUNDS = mp_rounds(mp, 5000);
    if (!mp_dev(mp, NULL))
        return;
    int right = (mp->rank + 1) % mp->size;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t old = 0;
        mp_step(mp, "round %d", i);
        EXPECT_OK(gin_signal(&mp->g, gin_thread(), gin_world(&mp->g), right, gin_strong_inc(1)));
        if (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 1, 1)))
            return;
        EXPECT_OK(gin_reset_signal(&mp->g, 1, &old));
        if (!EXPECT_EQ_U64(old, 1))
            return;
        if (!EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                                   GIN_FENCE_NONE)))
            return;
    }
}

/* BL-20: two buffers, constant counts per round, one rank late at random: nobody runs ahead. */
MP_TEST_N(two_buffers_stay_in_step, "2 3 5")
{
    const uint64_t ROUNDS = (uint64_t)mp_rounds(mp, 1000);
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *box = gin_calloc(mp->comm, 2 * (size_t)mp->size, 8);
    if (!EXPECT(box != NULL))
        return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t *b = box + i % 2 * (uint64_t)mp->size;
        mp_step(mp, "round %" PRIu64, i);
        for (uint64_t k = pt_below(&mp->rng, 8) == 0 ? pt_below(&mp->rng, 50) : 0; k > 0; k--)
            sched_yield();
        for (int to = 0; to < mp->size; to++)
            EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), to,
                                    gin_at_ptr(&mp->g, b + mp->rank), i * 100 + (uint64_t)mp->rank,
                                    8, gin_weak_inc((uint32_t)(i % 2))));
        if (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), (uint32_t)(i % 2),
                                       (uint64_t)mp->size * (i / 2 + 1))))
            return;
        for (int r = 0; r < mp->size; r++)
            if (!EXPECT_EQ_U64(b[r], i * 100 + (uint64_t)r))
                return;
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, box));
}

MP_TEST_N(data_behind_every_signal, "2 3 5")
{
    enum { WORDS = 300 };
    const uint64_t ROUNDS = (uint64_t)mp_rounds(mp, 2000);
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *in = gin_calloc(mp->comm, WORDS, 8), *out = gin_calloc(mp->comm, WORDS, 8);
    if (!EXPECT(in != NULL && out != NULL))
        return;
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    gin_team_t world = gin_world(&mp->g);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        size_t n = 1 + pt_below(&mp->common, WORDS); /* of all ranks in this round */
        mp_step(mp, "round %" PRIu64, i);
        for (size_t k = 0; k < n; k++)
            out[k] = i * 1000 + k + (uint64_t)mp->rank * 1000000000;
        if (i % 2) { /* weak on the put itself */
            EXPECT_OK(gin_put(&mp->g, gin_thread(), world, right, gin_at_ptr(&mp->g, in),
                              gin_at_ptr(&mp->g, out), n * 8, gin_weak_inc(0)));
        } else { /* strong behind plain puts */
            for (size_t k = 0; k < n; k += 50)
                EXPECT_OK(gin_put(&mp->g, gin_thread(), world, right, gin_at_ptr(&mp->g, in + k),
                                  gin_at_ptr(&mp->g, out + k), (n - k < 50 ? n - k : 50) * 8,
                                  gin_no_action()));
            EXPECT_OK(gin_signal(&mp->g, gin_thread(), world, right, gin_strong_inc(0)));
        }
        if (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, i)))
            return;
        for (size_t k = 0; k < n; k++)
            if (!EXPECT_EQ_U64(in[k], i * 1000 + k + (uint64_t)left * 1000000000))
                return;
        /* Read: the left neighbour may write again. */
        EXPECT_OK(gin_signal(&mp->g, gin_thread(), world, left, gin_weak_inc(1)));
        if (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 1, i)))
            return;
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, out));
    EXPECT_OK(gin_free(mp->comm, in));
}

MP_TEST_N(bad_signals_are_refused, "1 2")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.strong = reqs.va = 0;
    reqs.signals = 2;
    if (!mp_dev(mp, &reqs))
        return;
    gin_team_t w = gin_world(&mp->g);
    uint64_t *word = gin_calloc(mp->comm, 1, 8), v = 1, old = 99;
    gin_at_t at = gin_at_ptr(&mp->g, word), from = gin_at_local(&v);
    gin_group_t me = gin_thread();
    if (!EXPECT(word != NULL))
        return;
    EXPECT_FAILS(gin_signal(&mp->g, me, w, 0, gin_no_action()), GIN_EINVAL, "gin_signal");
    EXPECT_FAILS(gin_signal(&mp->g, me, w, 0, gin_weak_inc(2)), GIN_ERANGE, "2");
    EXPECT_FAILS(gin_signal(&mp->g, me, w, 0, gin_weak_inc(~0u)), GIN_ERANGE, "4294967295");
    EXPECT_FAILS(gin_signal(&mp->g, me, w, 0, gin_strong_inc(0)), GIN_ENOTSUP, "strong");
    EXPECT_FAILS(gin_signal(&mp->g, me, w, 0, gin_weak_inc_at(at)), GIN_ENOTSUP, "va");
    EXPECT_FAILS(gin_signal(&mp->g, me, w, mp->size, gin_weak_inc(0)), GIN_ERANGE, "gin_signal");
    EXPECT_FAILS(gin_put(&mp->g, me, w, 0, at, from, 8, gin_weak_inc(2)), GIN_ERANGE, "2");
    EXPECT_FAILS(gin_put(&mp->g, me, w, 0, at, from, 8, gin_strong_inc(0)), GIN_ENOTSUP, "strong");
    EXPECT_FAILS(gin_put(&mp->g, me, w, 0, at, from, 8, gin_set_at(at, 3)), GIN_ENOTSUP, "");
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 2), 0);
    EXPECT_EQ_INT(gin_status(&mp->g), GIN_ERANGE);
    EXPECT_FAILS(gin_reset_signal(&mp->g, 2, &old), GIN_ERANGE, "2");
    EXPECT_EQ_U64(old, 99);
    EXPECT_FAILS(gin_consume_signal(&mp->g, 2, 1), GIN_ERANGE, "2");
    EXPECT_FAILS(gin_wait_signal(&mp->g, me, 2, 0), GIN_ERANGE, "2");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(*word, 0); /* a refused operation has done nothing */
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 0);
    EXPECT_OK(gin_free(mp->comm, word));
}
