/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits: comparisons and widths, timed forms, shadows, texts. */
#include <string.h>
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

static int raise(struct mp *mp, uint32_t id, uint64_t by)
{
    return gin_signal(&mp->g, me(), gin_world(&mp->g), mp->rank, gin_weak_add(id, by));
}

MP_TEST_N(rolling_waits_at_every_width, "1")
{
    if (!mp_dev(mp, NULL))
        return;
    for (uint32_t bits = 1; bits <= 64; bits++) {
        uint64_t half = (uint64_t)1 << (bits - 1), value = pt_random(&mp->rng);
        gin_wait_opt_t opt = {.bits = bits, .poll = 1};
        EXPECT_OK(gin_reset_signal(&mp->g, 0, NULL));
        EXPECT_OK(raise(mp, 0, value));
        EXPECT_OK(gin_wait_signal_x(&mp->g, me(), 0, value, &opt));
        /* half a turn less one behind: satisfied; half a turn: ahead of the value, so not */
        EXPECT_OK(gin_wait_signal_x(&mp->g, me(), 0, value - (half - 1), &opt));
        EXPECT_EQ_INT(gin_wait_signal_x(&mp->g, me(), 0, value - half, &opt), GIN_EAGAIN);
        EXPECT_EQ_INT(gin_wait_signal_x(&mp->g, me(), 0, value + 1, &opt), GIN_EAGAIN);
    }
}

MP_TEST_N(every_comparison, "1")
{
    static const uint64_t v[] = {0, 1, 2, (uint64_t)1 << 63, ~(uint64_t)0 - 1, ~(uint64_t)0};
    gin_wait_opt_t once = {.poll = 1}, narrow = {.poll = 1, .bits = 16};
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *w = gin_calloc(mp->comm, 1, 8);
    if (!EXPECT(w != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, w);
    for (size_t i = 0; i < 36; i++) {
        uint64_t a = v[i / 6], b = v[i % 6];
        const int want[] = {a == b, a != b, a > b, a >= b, a < b, a <= b};
        EXPECT_OK(gin_reset_signal(&mp->g, 0, NULL));
        EXPECT_OK(raise(mp, 0, a));
        *w = a;
        for (int c = GIN_CMP_EQ; c <= GIN_CMP_LE; c++) {
            int st = want[c] ? GIN_OK : GIN_EAGAIN;
            EXPECT_EQ_INT(gin_wait_signal_until(&mp->g, me(), 0, (gin_cmp_t)c, b, &once), st);
            EXPECT_EQ_INT(gin_wait_signal_until_at(&mp->g, me(), at, (gin_cmp_t)c, b, &once), st);
            EXPECT_EQ_INT(
                gin_wait_signal_until_at(&mp->g, me(), gin_at_local(w), (gin_cmp_t)c, b, &once),
                st);
        }
        a &= 0xffff, b &= 0xffff; /* only the low bits count, of both sides */
        *w = a | 0xabcd0000;
        const int low[] = {a == b, a != b, a > b, a >= b, a < b, a <= b};
        for (int c = GIN_CMP_EQ; c <= GIN_CMP_LE; c++)
            EXPECT_EQ_INT(
                gin_wait_signal_until_at(&mp->g, me(), at, (gin_cmp_t)c, b | 0x10000, &narrow),
                low[c] ? GIN_OK : GIN_EAGAIN);
    }
    EXPECT_FAILS(gin_wait_signal_until(&mp->g, me(), 0, (gin_cmp_t)6, 0, NULL), GIN_EINVAL, "6");
    EXPECT_FAILS(gin_wait_signal_until_at(&mp->g, me(), at, (gin_cmp_t)-1, 0, NULL), GIN_EINVAL,
                 "comparison");
}

/* BL-41 for words that are waited for; and all other things that mean nothing. */
MP_TEST_N(waits_refuse_what_has_no_meaning, "1 2")
{
    gin_wait_opt_t wide = {.bits = 65};
    if (!mp_dev(mp, NULL))
        return;
    char *w = gin_calloc(mp->comm, 1, 64);
    gin_t all;
    if (!EXPECT(w != NULL) || !EXPECT_OK(gin_open(&mp->dev, GIN_ALL_CONTEXTS, &all)))
        return;
    for (int off = 1; off < 8; off++) {
        EXPECT_FAILS(gin_wait_signal_at(&mp->g, me(), gin_at_ptr(&mp->g, w + off), 0, NULL),
                     GIN_EINVAL, "aligned");
        EXPECT_FAILS(gin_wait_signal_at(&mp->g, me(), gin_at_local(w + off), 0, NULL), GIN_EINVAL,
                     "aligned");
    }
    EXPECT_FAILS(gin_wait_signal(&mp->g, me(), 64, 0), GIN_ERANGE, "64");
    EXPECT_FAILS(gin_wait_counter(&mp->g, me(), 64, 0), GIN_ERANGE, "64");
    EXPECT_FAILS(gin_wait_signal_until(&mp->g, me(), ~0u, GIN_CMP_GE, 0, NULL), GIN_ERANGE, "64");
    EXPECT_FAILS(gin_wait_signal_meet_shadow(&mp->g, me(), 99, NULL), GIN_ERANGE, "99");
    EXPECT_FAILS(gin_wait_signal_follow_shadow(&mp->g, me(), 99, 0, NULL, NULL, NULL), GIN_ERANGE,
                 "99");
    EXPECT_FAILS(gin_wait_signal_x(&mp->g, me(), 0, 0, &wide), GIN_EINVAL, "65");
    EXPECT_FAILS(gin_wait_counter_x(&mp->g, me(), 0, 0, &wide), GIN_EINVAL, "65");
    EXPECT_FAILS(gin_wait_signal(&mp->g, gin_warp(), 0, 0), GIN_EINVAL, "gin_thread");
    EXPECT_FAILS(gin_wait_counter(&mp->g, gin_block(), 0, 0), GIN_EINVAL, "gin_thread");
    EXPECT_FAILS(gin_wait_signal(&all, me(), 0, 0), GIN_EINVAL, "ALL_CONTEXTS");
    EXPECT_FAILS(gin_wait_signal_at(&mp->g, me(), gin_at(gin_window_none(), 8), 0, NULL),
                 GIN_ESTATE, "window");
}

/* A timed wait ends, says both values, and leaves all as it was. */
MP_TEST_N(timed_waits_say_what_they_saw, "1 2")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.wait_timeout_ns = 20000000;
    gin_wait_opt_t soon = {.timeout_ns = 3000000};
    if (!mp_dev(mp, &reqs))
        return;
    EXPECT_OK(raise(mp, 7, 41));
    EXPECT_FAILS(gin_wait_signal_x(&mp->g, me(), 7, 42, &soon), GIN_ETIMEDOUT,
                 "signal 7 of context 0 is 41");
    EXPECT_HAS(gin_last_error(), "wanted 42");
    EXPECT_FAILS(gin_wait_signal(&mp->g, me(), 7, 42), GIN_ETIMEDOUT, "0.020 s");
    EXPECT_FAILS(gin_wait_counter_x(&mp->g, me(), 3, 1, &soon), GIN_ETIMEDOUT,
                 "counter 3 of context 0 is 0");
    EXPECT_FAILS(gin_wait_signal_until(&mp->g, me(), 7, GIN_CMP_LT, 41, &soon), GIN_ETIMEDOUT,
                 "is 41");
    EXPECT_OK(gin_increase_shadow(&mp->g, 7, 50));
    EXPECT_FAILS(gin_wait_signal_meet_shadow(&mp->g, me(), 7, &soon), GIN_ETIMEDOUT, "wanted 50");
    EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), mp->rank, gin_weak_inc(7)));
    EXPECT_OK(gin_wait_signal(&mp->g, me(), 7, 42));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 7), 42);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Shadows: count on this side what shall have come. */
MP_TEST_N(shadows_follow_their_signals, "1 2 3 5")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 3000);
    uint64_t sum = 0, sent = 0;
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *shadow = gin_signal_shadow(&mp->g, 4);
    if (!EXPECT(shadow != NULL) || !EXPECT(gin_signal_shadow(&mp->g, 64) == NULL))
        return;
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    mp->rng = mp->common; /* all draw the same numbers */
    for (int i = 0; i < rounds; i++) {
        uint64_t before = 7, delta = 7, by = 1 + pt_below(&mp->rng, 5);
        mp_step(mp, "round %d", i);
        sent += by;
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), right, gin_weak_add(4, by)));
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), left, gin_weak_inc(5)));
        EXPECT_OK(gin_wait_signal_follow_shadow(&mp->g, me(), 4, by, &before, &delta, NULL));
        EXPECT(delta >= by);
        EXPECT_EQ_U64(before, sum);
        sum += delta;
        EXPECT_EQ_U64(*shadow, sum);
        /* take back what came early, so that the next round waits for its own */
        *shadow = sum = sent;
        EXPECT_OK(gin_increase_shadow(&mp->g, 5, 1));
        EXPECT_OK(gin_wait_signal_meet_shadow(&mp->g, me(), 5, NULL));
        if (pt_failures() != 0)
            break;
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 4), sent);
    EXPECT_OK(gin_reset_signal(&mp->g, 4, &sum));
    EXPECT_EQ_U64(sum, sent);
    EXPECT_EQ_U64(*shadow, 0);
}

/* Contexts do not share signals or counters; two device communicators do not either. */
MP_TEST_N(contexts_are_apart, "1 2")
{
    gin_t g1, h0;
    gin_devcomm_t other;
    if (!mp_dev(mp, NULL) || !EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &other)) ||
        !EXPECT_OK(gin_open(&mp->dev, 1, &g1)) || !EXPECT_OK(gin_open(&other, 0, &h0)))
        return;
    EXPECT_OK(raise(mp, 0, 5));
    EXPECT_OK(gin_signal(&g1, me(), gin_world(&g1), mp->rank, gin_weak_add(0, 6)));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 5);
    EXPECT_EQ_U64(gin_read_signal(&g1, 0), 6);
    EXPECT_EQ_U64(gin_read_signal(&h0, 0), 0);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &other));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 5);
}
