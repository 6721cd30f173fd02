/* SPDX-License-Identifier: BSD-3-Clause */
/* Local counters: one step per operation that asks for it, on puts and on gets. */
#include <string.h>
#include "tests/mp.h"

MP_TEST(count_puts_values_and_gets)
{
    const uint64_t ROUNDS = (uint64_t)mp_rounds(mp, 500);
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *block = gin_calloc(mp->comm, (size_t)mp->size, 8), v, got = 0;
    gin_team_t w = gin_world(&mp->g);
    gin_group_t me = gin_thread();
    gin_op_opt_t c0 = {.local = gin_counter_inc(0)}, c1 = {.local = gin_counter_inc(1)},
                 c63 = {.local = gin_counter_inc(63)}, none = {.local = gin_no_local()};
    if (!EXPECT(block != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, block + mp->rank);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        int to = (int)pt_below(&mp->rng, (uint64_t)mp->size);
        v = i * 8 + (uint64_t)mp->rank;
        EXPECT_OK(gin_put_x(&mp->g, me, w, to, at, gin_at_local(&v), 8, gin_weak_inc(3), &c0));
        EXPECT_OK(gin_wait_counter(&mp->g, me, 0, i));
        v = 0;            /* the source is reusable once the counter says so */
        if (!mp_near(mp)) /* a get may overtake a put to the same place */
            EXPECT_OK(gin_quiet(&mp->g, me));
        EXPECT_OK(gin_get_x(&mp->g, me, w, to, at, gin_at_local(&got), 8, &c1));
        EXPECT_OK(gin_wait_counter(&mp->g, me, 1, i));
        if (!EXPECT_EQ_U64(got, i * 8 + (uint64_t)mp->rank)) /* only I write there */
            return;
        EXPECT_OK(gin_put_value_x(&mp->g, me, w, to, at, 1, 8, gin_no_action(), &c63));
        EXPECT_OK(gin_put_x(&mp->g, me, w, to, at, gin_at_local(&v), 0, gin_no_action(), &c63));
        EXPECT_OK(gin_put_x(&mp->g, me, w, to, at, gin_at_local(&v), 8, gin_no_action(), &none));
        EXPECT_OK(gin_put_x(&mp->g, me, w, to, at, gin_at_local(&v), 8, gin_no_action(), NULL));
        if (!mp_near(mp)) /* and these the next round's put */
            EXPECT_OK(gin_quiet(&mp->g, me));
    }
    EXPECT_OK(gin_wait_counter(&mp->g, me, 63, 2 * ROUNDS));
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 0), ROUNDS);
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 1), ROUNDS);
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 2), 0);
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 63), 2 * ROUNDS);
    uint64_t old = 0;
    EXPECT_OK(gin_reset_counter(&mp->g, 63, &old));
    EXPECT_EQ_U64(old, 2 * ROUNDS);
    EXPECT_OK(gin_reset_counter(&mp->g, 63, NULL));
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 63), 0);
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 0), ROUNDS);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST_N(count_beside_every_signal, "1 3")
{
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *word = gin_calloc(mp->comm, 2, 8), v = 5;
    gin_op_opt_t c = {.local = gin_counter_inc(9), .flags = GIN_MORE};
    gin_team_t w = gin_world(&mp->g);
    if (!EXPECT(word != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, word), flag = gin_at_ptr(&mp->g, word + 1);
    gin_action_t actions[] = {gin_weak_inc(0),          gin_strong_inc(0),
                              gin_weak_add(0, 2),       gin_strong_add(0, 2),
                              gin_weak_inc_at(flag),    gin_strong_inc_at(flag),
                              gin_weak_add_at(flag, 2), gin_strong_add_at(flag, 2)};
    int to = (mp->rank + 1) % mp->size;
    for (unsigned i = 0; i < 8; i++)
        EXPECT_OK(gin_put_x(&mp->g, gin_thread(), w, to, at, gin_at_local(&v), 8, actions[i], &c));
    EXPECT_OK(gin_wait_counter(&mp->g, gin_thread(), 9, 8));
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 9), 8);
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, 6));
    EXPECT_OK(gin_wait_signal_at(&mp->g, gin_thread(), flag, 6, NULL));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 6);
    EXPECT_EQ_U64(gin_read_signal_at(&mp->g, flag), 6);
    EXPECT_EQ_U64(*word, 5);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, word));
}

MP_TEST_N(waits_end_by_their_time, "1")
{
    if (!mp_dev(mp, NULL))
        return;
    gin_wait_opt_t soon = {.timeout_ns = 2000000}, once = {.poll = 1};
    EXPECT_FAILS(gin_wait_counter_x(&mp->g, gin_thread(), 0, 1, &soon), GIN_ETIMEDOUT, "counter");
    EXPECT_EQ_INT(gin_wait_counter_x(&mp->g, gin_thread(), 0, 1, &once), GIN_EAGAIN);
    EXPECT_OK(gin_wait_counter_x(&mp->g, gin_thread(), 0, 0, &once));
}

MP_TEST_N(bad_counters_are_refused, "1 2")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.counters = 3;
    if (!mp_dev(mp, &reqs))
        return;
    uint64_t *word = gin_calloc(mp->comm, 1, 8), v = 5, old = 77;
    gin_op_opt_t bad_id = {.local = gin_counter_inc(3)}, bad_kind = {.local = {.kind = 2}};
    gin_team_t w = gin_world(&mp->g);
    gin_group_t me = gin_thread();
    if (!EXPECT(word != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, word), from = gin_at_local(&v);
    EXPECT_FAILS(gin_put_x(&mp->g, me, w, 0, at, from, 8, gin_weak_inc(0), &bad_id), GIN_ERANGE,
                 "3");
    EXPECT_FAILS(gin_get_x(&mp->g, me, w, 0, at, from, 8, &bad_id), GIN_ERANGE, "3");
    EXPECT_FAILS(gin_put_x(&mp->g, me, w, 0, at, from, 8, gin_weak_inc(0), &bad_kind), GIN_EINVAL,
                 "gin_put");
    const gin_op_opt_t odd[] = {
        {.given_release = 4}, {.required_release = 4}, {.reserved = 1}, {.flags = 8}};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        EXPECT_FAILS(gin_put_x(&mp->g, me, w, 0, at, from, 8, gin_weak_inc(0), &odd[i]), GIN_EINVAL,
                     "options");
        EXPECT_FAILS(gin_put_value_x(&mp->g, me, w, 0, at, 1, 8, gin_weak_inc(0), &odd[i]),
                     GIN_EINVAL, "options");
        EXPECT_FAILS(gin_get_x(&mp->g, me, w, 0, at, from, 8, &odd[i]), GIN_EINVAL, "options");
        EXPECT_FAILS(gin_signal_x(&mp->g, me, w, 0, gin_weak_inc(0), &odd[i]), GIN_EINVAL,
                     "options");
    }
    EXPECT_FAILS(gin_wait_counter(&mp->g, me, 3, 0), GIN_ERANGE, "3");
    EXPECT_FAILS(gin_reset_counter(&mp->g, 3, &old), GIN_ERANGE, "3");
    EXPECT_EQ_U64(old, 77);
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 3), 0);
    EXPECT_EQ_INT(gin_status(&mp->g), GIN_ERANGE);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(*word, 0); /* a refused operation has done nothing */
    EXPECT_EQ_U64(v, 5);
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 0);
    EXPECT_OK(gin_free(mp->comm, word));
}
