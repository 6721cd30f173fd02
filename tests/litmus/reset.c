/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-19: resetting and consuming lose no increment, however they race with updates. */
#include <pthread.h>
#include <string.h>
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

static uint64_t adds(const struct mp *mp)
{
    return (uint64_t)mp_rounds(mp, mp->long_mode ? 1000000 : 200000);
}

/* Every rank adds to rank 0's signal, which rank 0 resets all the time, summing what it took. */
MP_TEST_N(reset_takes_every_increment, "1 2 3 5")
{
    uint64_t n = adds(mp), sum = 0, resets = 0, all = n * (uint64_t)mp->size;
    if (!mp_dev(mp, NULL))
        return;
    for (uint64_t i = 0; i < n; i++) {
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0,
                             i % 2 ? gin_weak_inc(3) : gin_strong_add(3, 1)));
        if (mp->rank == 0 && i % (n / 1000 + 1) == 0) {
            uint64_t old = 0;
            EXPECT_OK(gin_reset_signal(&mp->g, 3, &old));
            sum += old;
            resets++;
        }
    }
    while (mp->rank == 0 && sum < all) {
        uint64_t old = 0;
        mp_step(mp, "%d resets", (int)resets);
        EXPECT_OK(gin_wait_signal(&mp->g, me(), 3, 1));
        EXPECT_OK(gin_reset_signal(&mp->g, 3, &old));
        sum += old;
        resets++;
    }
    EXPECT_EQ_U64(sum, mp->rank == 0 ? all : 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 3), 0);
}

/* Words of windows: reset is an exchange, consume a subtraction. */
MP_TEST_N(words_lose_nothing, "2 3")
{
    uint64_t n = adds(mp), sum = 0, all = n * (uint64_t)mp->size;
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *w = gin_calloc(mp->comm, 1, 64);
    if (!EXPECT(w != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, w);
    for (uint64_t i = 0; i < n; i++)
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_inc_at(at)));
    for (int i = 0; mp->rank == 0 && sum < all; i++) {
        uint64_t old = 0;
        mp_step(mp, "%d takes", i);
        EXPECT_OK(gin_wait_signal_at(&mp->g, me(), at, 1, NULL));
        if (i % 2) {
            EXPECT_OK(gin_reset_signal_at(&mp->g, at, &old));
        } else {
            old = gin_read_signal_at(&mp->g, at) / 2 + 1;
            EXPECT_OK(gin_consume_signal_at(&mp->g, at, old));
        }
        sum += old;
    }
    EXPECT_EQ_U64(sum, mp->rank == 0 ? all : 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(*w, 0);
}

/* Consume one at a time while others add: never below zero, ends at zero. */
MP_TEST_N(consume_takes_what_is_there, "2 3")
{
    uint64_t n = adds(mp) / 4, all = n * (uint64_t)(mp->size - 1);
    if (!mp_dev(mp, NULL))
        return;
    for (uint64_t i = 0; mp->rank != 0 && i < n; i++)
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_inc(1)));
    for (uint64_t i = 0; mp->rank == 0 && i < all; i++) {
        mp_step(mp, "consumed %d", (int)i);
        EXPECT_OK(gin_wait_signal(&mp->g, me(), 1, 1));
        EXPECT(gin_read_signal(&mp->g, 1) - 1 < all);
        EXPECT_OK(gin_consume_signal(&mp->g, 1, 1));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 1), 0);
}

struct taker {
    struct mp *mp;
    uint64_t sum;
    int *stop;
};

static void *take(void *arg)
{
    struct taker *t = arg;
    while (!__atomic_load_n(t->stop, __ATOMIC_ACQUIRE)) {
        uint64_t old = 0;
        EXPECT_OK(gin_reset_signal(&t->mp->g, 2, &old));
        if (!EXPECT(old < (uint64_t)1 << 63)) /* what it was, not a difference of two takers' */
            return NULL;
        t->sum += old;
    }
    return NULL;
}

/* Several threads reset one signal: their sum is exact. */
MP_TEST_N(threads_share_what_they_reset, "1 2")
{
    enum { TAKERS = 3 };
    uint64_t n = adds(mp) / 2, sum = 0, old = 0;
    struct taker t[TAKERS];
    pthread_t thread[TAKERS];
    int stop = 0;
    if (!mp_dev(mp, NULL))
        return;
    for (int i = 0; mp->rank == 0 && i < TAKERS; i++) {
        t[i] = (struct taker){mp, 0, &stop};
        EXPECT_EQ_INT(pthread_create(&thread[i], NULL, take, &t[i]), 0);
    }
    for (uint64_t i = 0; i < n; i++)
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_add(2, 5)));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; mp->rank == 0 && i < TAKERS; i++) {
        pthread_join(thread[i], NULL);
        sum += t[i].sum;
    }
    EXPECT_OK(gin_reset_signal(&mp->g, 2, &old));
    EXPECT_EQ_U64(sum + old, mp->rank == 0 ? 5 * n * (uint64_t)mp->size : 0);
}

static void *watch(void *arg)
{
    struct taker *t = arg;
    gin_wait_opt_t once = {.poll = 1};
    while (!__atomic_load_n(t->stop, __ATOMIC_ACQUIRE)) {
        uint64_t v = gin_read_signal(&t->mp->g, 4);
        if (v > 1) {
            FAIL("a signal between 0 and 1 reads as %" PRIu64, v);
            return NULL;
        }
        if (!EXPECT_EQ_INT(gin_wait_signal_until(&t->mp->g, me(), 4, GIN_CMP_GT, 1, &once),
                           GIN_EAGAIN))
            return NULL;
    }
    return NULL;
}

/* One thread raises a signal and takes it back, by consuming and by resetting; what another one
 * sees is a value that it had. */
MP_TEST_N(no_value_that_never_was, "1")
{
    uint64_t n = 10 * adds(mp), old = 0;
    int stop = 0;
    pthread_t thread;
    if (!mp_dev(mp, NULL))
        return;
    struct taker t = {mp, 0, &stop};
    if (!EXPECT_EQ_INT(pthread_create(&thread, NULL, watch, &t), 0))
        return;
    for (uint64_t i = 0; i < n; i++) {
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_inc(4)));
        EXPECT_OK(i % 2 ? gin_consume_signal(&mp->g, 4, 1) : gin_reset_signal(&mp->g, 4, &old));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 4), 0);
}

/* The pattern wait, reset, barrier: a late reset must not eat the next round's signal. */
MP_TEST_N(ping_pong_with_reset_and_barrier, "2 3 5")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 10000);
    if (!mp_dev(mp, NULL))
        return;
    for (int i = 0; i < rounds; i++) {
        uint64_t old = 0;
        mp_step(mp, "round %d", i);
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), (mp->rank + 1) % mp->size,
                             gin_strong_inc(0)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), 0, 1));
        EXPECT_OK(gin_reset_signal(&mp->g, 0, &old));
        if (!EXPECT_EQ_U64(old, 1))
            break;
        EXPECT_OK(gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
    }
}

/* The same without a barrier: the neighbour may be rounds ahead, and nothing is lost all the same
 * when each round is consumed instead of reset. */
MP_TEST_N(ping_pong_with_consume_alone, "2 3 5")
{
    int rounds = mp_rounds(mp, mp->long_mode ? 300000 : 10000);
    if (!mp_dev(mp, NULL))
        return;
    for (int i = 0; i < rounds; i++) {
        mp_step(mp, "round %d", i);
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), (mp->rank + 1) % mp->size,
                             gin_weak_inc(0)));
        EXPECT_OK(gin_wait_signal(&mp->g, me(), 0, 1));
        EXPECT_OK(gin_consume_signal(&mp->g, 0, 1));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, 0), 0);
}
