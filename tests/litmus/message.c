/* SPDX-License-Identifier: BSD-3-Clause */
/* Message passing: who sees the signal sees the data, whatever its size and kind. */
#include <string.h>
#include "tests/mp.h"

enum { DATA = 0, ACK = 1, BIG = 1 << 20 };

static gin_group_t me(void)
{
    return gin_thread();
}

static int right(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static int left(const struct mp *mp)
{
    return (mp->rank + mp->size - 1) % mp->size;
}

/* A buffer on every rank that its left neighbour writes to. */
static char *inbox(struct mp *mp, size_t bytes)
{
    if (!mp_dev(mp, NULL))
        return NULL;
    char *p = gin_calloc(mp->comm, 1, bytes);
    EXPECT(p != NULL);
    return p;
}

static size_t some_size(struct mp *mp, int i)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4096};
    if (i % 512 == 511)
        return BIG;
    if (i % 32 == 31) /* more than some networks write at a time */
        return 60000 + pt_below(&mp->rng, 100000);
    return i % 3 == 0 ? pt_below(&mp->rng, 5000) : sizes[(size_t)i % 12];
}

/* Weak covers its own put. The word after the data is the size. */
MP_TEST_N(weak_signal_covers_its_put, "1 2 3 5")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 3000);
    char *in = inbox(mp, BIG + 64), *out = malloc(BIG);
    if (in == NULL || out == NULL)
        return;
    gin_at_t dst = gin_at_ptr(&mp->g, in);
    uint64_t common = mp->common;
    mp->rng = common; /* all draw the same sizes */
    for (int i = 0; i < rounds; i++) {
        size_t n = some_size(mp, i);
        mp_step(mp, "round %d, %zu bytes", i, n);
        mp_poison(out, n, common + (uint64_t)i * 16 + (uint64_t)mp->rank);
        EXPECT_OK(gin_put(&mp->g, me(), gin_world(&mp->g), right(mp), dst, gin_at_local(out), n,
                          gin_weak_inc(DATA)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), DATA, (uint64_t)i + 1));
        if (!MP_CHECK_PATTERN(in, n, common + (uint64_t)i * 16 + (uint64_t)left(mp)))
            break;
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), left(mp), gin_weak_inc(ACK)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), ACK, (uint64_t)i + 1));
    }
    free(out);
}

/* BL-22: strong covers all earlier puts and signals of the context to that peer. */
MP_TEST_N(strong_signal_covers_everything_before, "1 2 3 5")
{
    enum { PARTS = 16, PART = 520 };
    int rounds = mp_rounds(mp, mp->long_mode ? 50000 : 2000);
    char *in = inbox(mp, PARTS * PART), *out = malloc(PARTS * PART);
    if (in == NULL || out == NULL)
        return;
    gin_at_t base = gin_at_ptr(&mp->g, in);
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        for (int k = 0; k < PARTS; k++) {
            gin_at_t dst = gin_at(base.win, base.off + (uint64_t)(k * PART));
            mp_poison(out + k * PART, PART, (uint64_t)(i * PARTS + k));
            EXPECT_OK(gin_put(&mp->g, me(), gin_world(&mp->g), right(mp), dst,
                              gin_at_local(out + k * PART), PART,
                              k % 2 ? gin_weak_inc(5) : gin_no_action()));
        }
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), right(mp), gin_strong_inc(DATA)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), DATA, (uint64_t)i + 1));
        EXPECT_EQ_U64(gin_read_signal(&mp->g, 5), (uint64_t)(i + 1) * (PARTS / 2));
        for (int k = 0; k < PARTS; k++)
            MP_CHECK_PATTERN(in + k * PART, PART, (uint64_t)(i * PARTS + k));
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), left(mp), gin_weak_inc(ACK)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), ACK, (uint64_t)i + 1));
        if (pt_failures() != 0)
            break;
    }
    free(out);
}

/* Two puts with a fence between: who sees the second sees the first. */
MP_TEST_N(fence_orders_two_puts, "2 3")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 300000 : 20000);
    char *in = inbox(mp, 256);
    if (in == NULL)
        return;
    gin_at_t data = gin_at_ptr(&mp->g, in), flag = gin_at_ptr(&mp->g, in + 128);
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        mp_step(mp, "round %d", (int)i);
        EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), right(mp), data, i * 3, 8,
                                gin_no_action()));
        EXPECT_OK(gin_fence(&mp->g, me(), gin_world(&mp->g), right(mp)));
        EXPECT_OK(
            gin_put_value(&mp->g, me(), gin_world(&mp->g), right(mp), flag, i, 8, gin_no_action()));
        EXPECT_OK(gin_wait_signal_until_at(&mp->g, me(), flag, GIN_CMP_EQ, i, NULL));
        if (!EXPECT_EQ_U64(GIN_LOAD_RELAXED((uint64_t *)(void *)in), i * 3))
            break;
        EXPECT_OK(
            gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    }
}

/* The same with puts that the network writes itself, before and behind the fence. The race detector
 * does not follow fences, and these bytes have nothing else between their writer and their reader.
 */
MP_TEST_N(fence_orders_long_puts, "2 3")
{
    if (PT_RACE_DETECTOR)
        MP_SKIP("the race detector does not follow fences");
    enum { LONG = 70000 };
    int rounds = mp_rounds(mp, mp->long_mode ? 50000 : 2000);
    char *in = inbox(mp, 2 * LONG), *out = malloc(2 * LONG);
    if (in == NULL || out == NULL)
        return;
    gin_at_t data = gin_at_ptr(&mp->g, in), flag = gin_at_ptr(&mp->g, in + LONG);
    uint64_t *seen = (uint64_t *)(void *)(in + LONG);
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        size_t n = i % 32 == 0 ? LONG : 300 + i % 7 * 100, m = i % 2 ? 8 : 600;
        mp_step(mp, "round %d, %zu bytes", (int)i, n);
        mp_poison(out, n, i);
        memcpy(out + LONG, &i, 8); /* the first word of the second */
        EXPECT_OK(gin_put(&mp->g, me(), gin_world(&mp->g), right(mp), data, gin_at_local(out), n,
                          gin_no_action()));
        EXPECT_OK(gin_fence(&mp->g, me(), gin_world(&mp->g), right(mp)));
        EXPECT_OK(gin_put(&mp->g, me(), gin_world(&mp->g), right(mp), flag,
                          gin_at_local(out + LONG), m, gin_no_action()));
        EXPECT_OK(gin_wait_signal_until_at(&mp->g, me(), flag, GIN_CMP_EQ, i, NULL));
        if (!MP_CHECK_PATTERN(in, n, i) || !EXPECT_EQ_U64(GIN_LOAD_RELAXED(seen), i))
            break;
        EXPECT_OK(gin_flush(&mp->g, me())); /* before out is filled again */
        EXPECT_OK(
            gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    }
    free(out);
}

/* A strong signal covers what goes another way than it does: words that processors add to and set,
 * which the peer's engine must have seen to, and a value. */
MP_TEST_N(strong_signal_covers_words, "1 2 3")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 50000 : 3000);
    char *in = inbox(mp, 256);
    if (in == NULL)
        return;
    gin_at_t add = gin_at_ptr(&mp->g, in), set = gin_at_ptr(&mp->g, in + 64);
    gin_at_t value = gin_at_ptr(&mp->g, in + 128);
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        mp_step(mp, "round %d", (int)i);
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), right(mp), gin_weak_add_at(add, 3)));
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), right(mp), gin_set_at(set, i)));
        EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), right(mp), value, i * 5, 8,
                                gin_no_action()));
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), right(mp), gin_strong_inc(DATA)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), DATA, i));
        bool seen = EXPECT_EQ_U64(GIN_LOAD_RELAXED((uint64_t *)(void *)in), i * 3);
        seen &= EXPECT_EQ_U64(GIN_LOAD_RELAXED((uint64_t *)(void *)(in + 64)), i);
        seen &= EXPECT_EQ_U64(GIN_LOAD_RELAXED((uint64_t *)(void *)(in + 128)), i * 5);
        if (!seen)
            break;
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), left(mp), gin_weak_inc(ACK)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), ACK, i));
    }
}

/* A flag set by an action, and one raised by an action, on words of the window. */
MP_TEST_N(words_as_flags_cover_data, "1 2 3 5")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 5000);
    char *in = inbox(mp, 512), out[192];
    if (in == NULL)
        return;
    gin_at_t data = gin_at_ptr(&mp->g, in);
    gin_at_t set = gin_at_ptr(&mp->g, in + 256), add = gin_at_ptr(&mp->g, in + 320);
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        mp_step(mp, "round %d", (int)i);
        mp_poison(out, sizeof(out), i);
        EXPECT_OK(gin_put(&mp->g, me(), gin_world(&mp->g), right(mp), data, gin_at_local(out),
                          sizeof(out), i % 2 ? gin_set_at(set, i) : gin_weak_add_at(add, 1)));
        if (i % 2)
            EXPECT_OK(gin_wait_signal_until_at(&mp->g, me(), set, GIN_CMP_EQ, i, NULL));
        else
            EXPECT_OK(gin_wait_signal_at(&mp->g, me(), add, i / 2, NULL));
        if (!MP_CHECK_PATTERN(in, sizeof(out), i))
            break;
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), left(mp), gin_weak_inc(ACK)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), ACK, i));
    }
}

/* BL-20: two buffers and constant counts; the sender lags by up to two rounds at random, and
 * nobody may take a leftover of an earlier round for this one. */
MP_TEST_N(two_buffers_and_a_slow_rank, "2")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 10000);
    char *in = inbox(mp, 128);
    if (in == NULL)
        return;
    for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
        gin_at_t dst = gin_at_ptr(&mp->g, in + (i % 2) * 64);
        uint64_t spin = pt_below(&mp->rng, 16) == 0 ? pt_below(&mp->rng, 2000) : 0;
        mp_step(mp, "round %d", (int)i);
        while (spin-- > 0)
            GIN_PAUSE();
        EXPECT_OK(gin_put_value(&mp->g, me(), gin_world(&mp->g), right(mp), dst, i, 8,
                                gin_weak_inc((uint32_t)(i % 2))));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), (uint32_t)(i % 2), i / 2 + 1));
        /* mine cannot be overwritten before the peer has seen my put of the next round but one */
        if (!EXPECT_EQ_U64(*(volatile uint64_t *)(in + (i % 2) * 64), i))
            break;
    }
}
