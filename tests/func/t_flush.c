/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion: flush of all, of one peer, by request; fence and quiet; what they refuse. */
#include <string.h>
#include "tests/mp.h"

#define N 3000

MP_TEST(requests_wait_and_stay_done)
{
    if (!mp_dev(mp, NULL))
        return;
    char *block = gin_malloc(mp->comm, (size_t)mp->size * N), src[N], got[N];
    gin_team_t w = gin_world(&mp->g);
    gin_group_t me = gin_thread();
    gin_request_t req[mp->size];
    gin_wait_opt_t soon = {.timeout_ns = 10000000000u};
    if (!EXPECT(block != NULL))
        return;
    for (int round = 0; round < 20; round++) {
        for (int to = 0; to < mp->size; to++) {
            mp_poison(src, N, (uint64_t)(round * 64 + mp->rank));
            EXPECT_OK(gin_put(&mp->g, me, w, to, gin_at_ptr(&mp->g, block + mp->rank * N),
                              gin_at_local(src), N, gin_no_action()));
            EXPECT_OK(gin_flush_async(&mp->g, me, w, to, &req[to]));
            EXPECT_OK(gin_wait(&mp->g, me, &req[to]));
            memset(src, 0, N); /* reusable */
        }
        for (int to = 0; to < mp->size; to++) {
            EXPECT_OK(gin_test(&mp->g, me, &req[to]));
            EXPECT_OK(gin_wait_x(&mp->g, me, &req[to], &soon));
            EXPECT_OK(gin_wait(&mp->g, me, &req[to]));
        }
        EXPECT_OK(gin_quiet(&mp->g, me));
        EXPECT_OK(gin_comm_barrier(mp->comm));
        for (int from = 0; from < mp->size; from++) {
            MP_CHECK_PATTERN(block + from * N, N, (uint64_t)(round * 64 + from));
            memset(got, 0xcc, N);
            EXPECT_OK(gin_get(&mp->g, me, w, from, gin_at_ptr(&mp->g, block + from * N),
                              gin_at_local(got), N));
            EXPECT_OK(gin_flush_async(&mp->g, me, w, from, &req[0]));
            int st;
            while ((st = gin_test(&mp->g, me, &req[0])) == GIN_EAGAIN)
                ;
            EXPECT_OK(st);
            MP_CHECK_PATTERN(got, N, (uint64_t)(round * 64 + from));
        }
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    EXPECT_OK(gin_free(mp->comm, block));
}

/* Quiet, then a flag by another way: who sees the flag sees the bytes (BL-17). */
MP_TEST_N(quiet_before_a_flag, "2 3 5")
{
    const uint64_t ROUNDS = (uint64_t)mp_rounds(mp, 3000);
    gin_t g;
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_OK(gin_open(&mp->dev, 1, &g)); /* another context: no order with the first */
    uint64_t *data = gin_calloc(mp->comm, 1, 8), got = 0;
    gin_team_t w = gin_world(&mp->g);
    if (!EXPECT(data != NULL))
        return;
    int home = 1 % mp->size, reader = mp->size - 1;
    gin_at_t at = gin_at_ptr(&mp->g, data);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        mp_step(mp, "round %" PRIu64, i);
        if (mp->rank == 0) {
            EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, home, at, i, 8, gin_no_action()));
            EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
            EXPECT_OK(gin_signal(&g, gin_thread(), w, reader, gin_weak_inc(0)));
            if (!EXPECT_OK(gin_wait_signal(&g, gin_thread(), 1, i)))
                return;
        }
        if (mp->rank == reader) {
            if (!EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, i)))
                return;
            EXPECT_OK(gin_get(&mp->g, gin_thread(), w, home, at, gin_at_local(&got), 8));
            EXPECT_OK(gin_flush(&mp->g, gin_thread()));
            EXPECT_EQ_U64(got, i);
            EXPECT_OK(gin_signal(&g, gin_thread(), w, 0, gin_weak_inc(1)));
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, data));
}

MP_TEST_N(fence_orders_data_and_flag, "2 3")
{
    enum { WORDS = 16 };
    const uint64_t ROUNDS = (uint64_t)mp_rounds(mp, 3000);
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *data = gin_calloc(mp->comm, WORDS + 1, 8), *flag = data + WORDS;
    gin_team_t w = gin_world(&mp->g);
    if (!EXPECT(data != NULL))
        return;
    int reader = mp->size - 1;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        mp_step(mp, "round %" PRIu64, i);
        if (mp->rank == 0) {
            for (int k = 0; k < WORDS; k++)
                EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, reader,
                                        gin_at_ptr(&mp->g, data + k), i + (uint64_t)k, 8,
                                        gin_no_action()));
            EXPECT_OK(i % 2 ? gin_fence(&mp->g, gin_thread(), w, reader)
                            : gin_fence_all(&mp->g, gin_thread()));
            /* weak: covers only itself; the fence covers the data */
            EXPECT_OK(gin_signal(&mp->g, gin_thread(), w, reader,
                                 gin_weak_set_at(gin_at_ptr(&mp->g, flag), i)));
            if (!EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 1, i)))
                return;
        }
        if (mp->rank == reader) {
            if (!EXPECT_OK(
                    gin_wait_signal_at(&mp->g, gin_thread(), gin_at_ptr(&mp->g, flag), i, NULL)))
                return;
            for (int k = 0; k < WORDS; k++)
                EXPECT_EQ_U64(data[k], i + (uint64_t)k);
            EXPECT_OK(gin_signal(&mp->g, gin_thread(), w, 0, gin_weak_inc(1)));
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, data));
}

MP_TEST_N(all_contexts_at_once, "1 2")
{
    gin_t all;
    if (!mp_dev(mp, NULL))
        return;
    EXPECT_OK(gin_open(&mp->dev, GIN_ALL_CONTEXTS, &all));
    EXPECT_OK(gin_flush(&all, gin_thread()));
    EXPECT_OK(gin_fence_all(&all, gin_thread()));
    EXPECT_OK(gin_fence(&all, gin_thread(), gin_world(&all), 0));
    EXPECT_OK(gin_quiet(&all, gin_thread()));
    EXPECT_OK(
        gin_barrier(&all, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
}

MP_TEST_N(bad_calls_are_refused, "1 2")
{
    gin_request_t junk = {{0, 0}}, req;
    if (!mp_dev(mp, NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    gin_group_t me = gin_thread();
    EXPECT_FAILS(gin_flush_peer(&mp->g, me, w, mp->size), GIN_ERANGE, "gin_flush");
    EXPECT_FAILS(gin_flush_peer(&mp->g, me, w, -1), GIN_ERANGE, "gin_flush");
    EXPECT_FAILS(gin_flush_peer(&mp->g, me, gin_team_invalid(), 0), GIN_EINVAL, "gin_flush");
    EXPECT_FAILS(gin_fence(&mp->g, me, w, mp->size), GIN_ERANGE, "gin_fence");
    EXPECT_FAILS(gin_flush_async(&mp->g, me, w, -2, &req), GIN_ERANGE, "gin_flush_async");
    EXPECT_FAILS(gin_flush_async(&mp->g, me, w, 0, NULL), GIN_EINVAL, "gin_flush_async");
    EXPECT_FAILS(gin_wait(&mp->g, me, &junk), GIN_EINVAL, "gin_wait");
    EXPECT_FAILS(gin_test(&mp->g, me, NULL), GIN_EINVAL, "");
    EXPECT_FAILS(gin_flush(&mp->g, gin_warp()), GIN_EINVAL, "group");
    EXPECT_FAILS(gin_quiet(&mp->g, gin_block()), GIN_EINVAL, "group");
}
