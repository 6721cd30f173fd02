/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of the owner reset and consume one signal, and one counter, while other threads and peers
 * raise it: what was taken out and what is left add up to what was put in.
 */
#include <pthread.h>
#include "tests/mp.h"

#define RAISES (40000 / MP_FACTOR)
#define TAKERS 3
#define ID     5u

struct side {
    struct mp *mp;
    int *stop;
    uint64_t signals, counts; /* taken out */
};

static void *raise_all(void *arg)
{
    struct mp *mp = arg;
    gin_op_opt_t count = {.local = gin_counter_inc(ID)};
    gin_t g;
    if (!EXPECT_OK(gin_open(&mp->dev, 0, &g)))
        return NULL;
    for (int i = 0; i < RAISES; i++)
        for (int r = 0; r < mp->size; r++)
            if (!EXPECT_OK(gin_put_x(&g, gin_thread(), gin_world(&g), r, gin_scratch(&g),
                                     gin_scratch(&g), 0, gin_weak_add(ID, 3), &count)))
                return NULL;
    return NULL;
}

static void *take_out(void *arg)
{
    struct side *s = arg;
    uint64_t was = 0;
    gin_t g;
    if (!EXPECT_OK(gin_open(&s->mp->dev, 0, &g)))
        return NULL;
    do {
        if (!EXPECT_OK(gin_reset_signal(&g, ID, &was)))
            return NULL;
        s->signals += was;
        if (!EXPECT_OK(gin_consume_signal(&g, ID, 7)))
            return NULL;
        s->signals += 7;
        if (!EXPECT_OK(gin_reset_counter(&g, ID, &was)))
            return NULL;
        s->counts += was;
    } while (__atomic_load_n(s->stop, __ATOMIC_ACQUIRE) == 0);
    return NULL;
}

MP_TEST_N(nothing_is_lost, "1 2 3")
{
    struct side side[TAKERS];
    pthread_t taker[TAKERS], raiser[2];
    gin_devcomm_reqs_t reqs;
    int stop = 0;
    gin_devcomm_reqs_init(&reqs);
    reqs.scratch = 64;
    if (!mp_dev(mp, &reqs))
        return;
    for (int i = 0; i < TAKERS; i++) {
        side[i] = (struct side){mp, &stop, 0, 0};
        EXPECT_EQ_INT(pthread_create(&taker[i], NULL, take_out, &side[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        EXPECT_EQ_INT(pthread_create(&raiser[i], NULL, raise_all, mp), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(raiser[i], NULL);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    uint64_t signals = 0, counts = 0;
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(taker[i], NULL);
        signals += side[i].signals;
        counts += side[i].counts;
    }
    EXPECT_EQ_U64(signals + gin_read_signal(&mp->g, ID), 2ull * RAISES * 3 * (uint64_t)mp->size);
    EXPECT_EQ_U64(counts + gin_read_counter(&mp->g, ID), 2ull * RAISES * (uint64_t)mp->size);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
