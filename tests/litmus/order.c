/* SPDX-License-Identifier: BSD-3-Clause */
/* Order across ranks: what quiet, get, flush and barriers promise to third parties. */
#include <string.h>
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

static int full_barrier(struct mp *mp)
{
    return gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
}

/* Zeroed words on every rank, one line each. */
static uint64_t *words(struct mp *mp, size_t n)
{
    if (!mp_dev(mp, NULL))
        return NULL;
    uint64_t *p = gin_calloc(mp->comm, n, 64);
    EXPECT(p != NULL);
    return p;
}

/*
 * Store buffering: each puts into the other's word, or has it set, quiet, then looks at its own.
 * After quiet that is visible to plain loads, so not both may miss the other's.
 */
MP_TEST_N(quiet_is_visible_before_later_loads, "2")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 1000000 : 50000), missed = 0;
    uint64_t *w = words(mp, 4);
    if (w == NULL)
        return;
    uint64_t *seen = gin_calloc(mp->comm, (size_t)rounds, 8);
    if (!EXPECT(seen != NULL))
        return;
    gin_at_t x = gin_at_ptr(&mp->g, w);
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        EXPECT_OK(
            gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        if (i % 2 == 0)
            EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), 1 - mp->rank, x,
                                    (uint64_t)i + 1, 8, gin_no_action()));
        else
            EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 1 - mp->rank,
                                 gin_set_at(x, (uint64_t)i + 1)));
        EXPECT_OK(gin_quiet(&mp->g, me()));
        seen[i] = GIN_LOAD_RELAXED(w);
    }
    EXPECT_OK(full_barrier(mp));
    uint64_t *his = malloc((size_t)rounds * 8);
    EXPECT_OK(gin_get(&mp->g, me(), gin_world(&mp->g), 1 - mp->rank, gin_at_ptr(&mp->g, seen),
                      gin_at_local(his), (size_t)rounds * 8));
    EXPECT_OK(gin_flush(&mp->g, me()));
    for (int i = 0; i < rounds; i++)
        missed += seen[i] != (uint64_t)i + 1 && his[i] != (uint64_t)i + 1;
    EXPECT_EQ_INT(missed, 0);
    free(his);
    EXPECT_OK(full_barrier(mp));
}

/* BL-17: A puts x to B, quiet, tells C; C gets x from B: it must be new. */
MP_TEST_N(quiet_then_flag_to_a_third, "3")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 10000);
    uint64_t *w = words(mp, 2);
    if (w == NULL)
        return;
    gin_at_t x = gin_at_ptr(&mp->g, w);
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        mp_step(mp, "round %d", (int)i);
        if (mp->rank == 0) {
            EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), 1, x, i, 8, gin_no_action()));
            EXPECT_OK(gin_quiet(&mp->g, me()));
            EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 2, gin_weak_inc(0)));
            EXPECT_OK(gin_wait_signal(&mp->g, me(), 1, i));
        } else if (mp->rank == 2) {
            uint64_t got = 0;
            EXPECT_OK(gin_wait_signal(&mp->g, me(), 0, i));
            EXPECT_OK(gin_get(&mp->g, me(), gin_world(&mp->g), 1, x, gin_at_local(&got), 8));
            EXPECT_OK(gin_flush(&mp->g, me()));
            if (!EXPECT_EQ_U64(got, i))
                i = (uint64_t)rounds;
            EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_inc(1)));
        }
    }
    EXPECT_OK(full_barrier(mp));
}

/* Causality: a signal that was caused by a signal covers what the first one covered. */
MP_TEST_N(signals_pass_knowledge_on, "3 5")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 5000);
    uint64_t *w = words(mp, 2);
    if (w == NULL)
        return;
    gin_at_t x = gin_at_ptr(&mp->g, w);
    int last = mp->size - 1;
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        mp_step(mp, "round %d", (int)i);
        if (mp->rank == 0) { /* data to the last rank, the news along the chain */
            EXPECT_OK(
                gin_put_value(&mp->g, me(), gin_world(&mp->g), last, x, i, 8, gin_no_action()));
            EXPECT_OK(gin_quiet(&mp->g, me()));
        } else {
            EXPECT_OK(gin_wait_signal(&mp->g, me(), 0, i));
        }
        if (mp->rank == last && !EXPECT_EQ_U64(GIN_LOAD_RELAXED(w), i))
            break;
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), (mp->rank + 1) % mp->size,
                             gin_weak_inc(0)));
        if (mp->rank == 0)
            EXPECT_OK(gin_wait_signal(&mp->g, me(), 0, i));
    }
}

/*
 * Independent writers: two readers may see the writes of two writers at different times, but not in
 * contradicting orders, if each write was made quiet and each reader loads with acquires.
 */
MP_TEST_N(readers_agree_on_the_order_of_quiet_writes, "4")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 300000 : 20000);
    uint64_t *w = words(mp, 2);
    uint64_t *log = w != NULL ? gin_calloc(mp->comm, (size_t)rounds * 2, 8) : NULL;
    if (log == NULL)
        return;
    gin_at_t at = gin_at_ptr(&mp->g, w);
    gin_team_t world = gin_world(&mp->g);
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        EXPECT_OK(full_barrier(mp));
        if (mp->rank < 2) {
            EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), 2 + mp->rank, at,
                                    (uint64_t)i + 1, 8, gin_no_action()));
            EXPECT_OK(gin_quiet(&mp->g, me()));
        } else { /* rank 2 reads its own word, then rank 3's; rank 3 likewise */
            log[2 * i] = mp_see(&mp->g, world, mp->rank, at) == (uint64_t)i + 1;
            log[2 * i + 1] = mp_see(&mp->g, world, 5 - mp->rank, at) == (uint64_t)i + 1;
        }
    }
    EXPECT_OK(full_barrier(mp));
    if (mp->rank == 2) {
        int contradictions = 0;
        for (int i = 0; i < rounds; i++) {
            if (log[2 * i] != 1 || log[2 * i + 1] != 0)
                continue;
            gin_at_t his = gin_at_ptr(&mp->g, log + 2 * i);
            uint64_t first = mp_see(&mp->g, world, 3, his);
            his.off += 8;
            contradictions += first == 1 && mp_see(&mp->g, world, 3, his) == 0;
        }
        EXPECT_EQ_INT(contradictions, 0);
    }
    EXPECT_OK(full_barrier(mp));
}

/* BL-37: everyone puts into everyone, barrier with a fence over puts, all is there at once. */
MP_TEST_OPT(barrier_completes_puts_of_all, .ranks = "2 3 5 6 7 8")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 20000 : 1000);
    uint64_t *w = words(mp, (size_t)mp->size);
    gin_t all;
    if (w == NULL || !EXPECT_OK(gin_open(&mp->dev, GIN_ALL_CONTEXTS, &all)))
        return;
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        gin_at_t mine = gin_at_ptr(&mp->g, w + mp->rank * 8);
        mp_step(mp, "round %d", (int)i);
        for (int to = 0; to < mp->size; to++)
            EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), to, mine,
                                    i * 100 + (uint64_t)mp->rank, 8, gin_no_action()));
        EXPECT_OK(gin_barrier(i % 2 ? &mp->g : &all, me(), gin_barrier_world(), 0,
                              GIN_ORDER_ACQ_REL, i % 3 ? GIN_FENCE_PUT : GIN_FENCE_ALL));
        for (int from = 0; from < mp->size; from++)
            EXPECT_EQ_U64(w[from * 8], i * 100 + (uint64_t)from);
        EXPECT_OK(
            gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
        if (pt_failures() != 0)
            break;
    }
}
