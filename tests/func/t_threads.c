/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of a rank share a context (BL-16), or use one each; all of them see their own results. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "tests/mp.h"

#define THREADS 8
#define BLOCKS  64
#define BYTES   512

struct job {
    struct mp *mp;
    gin_t g;
    char *field; /* symmetric: THREADS * BLOCKS blocks */
    uint64_t *words;
    int id;
    int rounds;
};

static void *in_thread(void *arg, void (*body)(struct job *))
{
    struct job *j = arg;
    char name[32];
    snprintf(name, sizeof(name), "rank %d thread %d", j->mp->rank, j->id);
    pt_name_thread(name);
    body(j);
    return NULL;
}

static void spawn(struct mp *mp, void *(*body)(void *), char *field, uint64_t *words, int rounds,
                  bool own_context)
{
    pthread_t thread[THREADS];
    struct job job[THREADS];
    int n = 0;
    for (; n < THREADS; n++) {
        job[n] = (struct job){mp, mp->g, field, words, n, rounds};
        if (own_context)
            EXPECT_OK(gin_open(&mp->dev, (uint32_t)n, &job[n].g));
        if (!EXPECT_EQ_INT(pthread_create(&thread[n], NULL, body, &job[n]), 0))
            break;
    }
    while (n-- > 0)
        pthread_join(thread[n], NULL);
}

static uint64_t seed_of(int rank, int block)
{
    return (uint64_t)rank * 1000 + (uint64_t)block;
}

/* Get many blocks, flush, verify, poison, again. */
static void gets(struct job *j)
{
    struct mp *mp = j->mp;
    char *got = malloc(BLOCKS * BYTES);
    uint64_t rng = mp->rng + (uint64_t)j->id;
    for (int round = 0; round < j->rounds; round++) {
        int from = (int)pt_below(&rng, (uint64_t)mp->size);
        memset(got, 0xdb, BLOCKS * BYTES);
        for (int b = 0; b < BLOCKS; b++) {
            int block = j->id * BLOCKS + b;
            EXPECT_OK(gin_get(&j->g, gin_thread(), gin_world(&j->g), from,
                              gin_at_ptr(&j->g, j->field + block * BYTES),
                              gin_at_local(got + b * BYTES), BYTES));
        }
        EXPECT_OK(gin_flush(&j->g, gin_thread()));
        for (int b = 0; b < BLOCKS; b++)
            if (!MP_CHECK_PATTERN(got + b * BYTES, BYTES, seed_of(from, j->id * BLOCKS + b)))
                goto out;
    }
out:
    free(got);
}

static void *run_gets(void *arg)
{
    return in_thread(arg, gets);
}

static void gets_with(struct mp *mp, bool own_context)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = THREADS;
    if (!mp_dev(mp, &reqs))
        return;
    char *field = gin_malloc(mp->comm, THREADS * BLOCKS * BYTES);
    if (!EXPECT(field != NULL))
        return;
    for (int b = 0; b < THREADS * BLOCKS; b++)
        mp_poison(field + b * BYTES, BYTES, seed_of(mp->rank, b));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    spawn(mp, run_gets, field, NULL, mp_rounds(mp, 50) + 1, own_context);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, field));
}

MP_TEST_N(gets_on_one_context, "1 2 3")
{
    gets_with(mp, false);
}

MP_TEST_N(gets_on_a_context_each, "1 3")
{
    gets_with(mp, true);
}

/* Puts with signals, counters and atomics of all threads through one context: sums are exact. */
static void puts_and_sums(struct job *j)
{
    struct mp *mp = j->mp;
    gin_team_t w = gin_world(&j->g);
    gin_op_opt_t count = {.local = gin_counter_inc((uint32_t)j->id)};
    int right = (mp->rank + 1) % mp->size;
    char src[BYTES];
    for (int i = 1; i <= j->rounds; i++) {
        char *dst = j->field + (j->id * BLOCKS + i % BLOCKS) * BYTES;
        mp_poison(src, BYTES, seed_of(mp->rank, j->id * 100000 + i));
        EXPECT_OK(gin_put_x(&j->g, gin_thread(), w, right, gin_at_ptr(&j->g, dst),
                            gin_at_local(src), BYTES, gin_weak_inc((uint32_t)j->id), &count));
        EXPECT_OK(gin_wait_counter(&j->g, gin_thread(), (uint32_t)j->id, (uint64_t)i));
        EXPECT_OK(gin_signal(&j->g, gin_thread(), w, right, gin_strong_add(THREADS, 2)));
        EXPECT_OK(gin_amo_add(&j->g, gin_thread(), w, right, gin_at_ptr(&j->g, j->words), 5));
        EXPECT_OK(gin_signal(&j->g, gin_thread(), w, right,
                             gin_weak_add_at(gin_at_ptr(&j->g, j->words + 1), 7)));
    }
    /* What the left neighbour's thread of my number sent: the last put of each block. */
    int left = (mp->rank + mp->size - 1) % mp->size;
    EXPECT_OK(gin_wait_signal(&j->g, gin_thread(), (uint32_t)j->id, (uint64_t)j->rounds));
    for (int b = 0; b < BLOCKS; b++) {
        int last = j->rounds - (j->rounds - b) % BLOCKS;
        if (b <= j->rounds && last > 0)
            MP_CHECK_PATTERN(j->field + (j->id * BLOCKS + b) * BYTES, BYTES,
                             seed_of(left, j->id * 100000 + last));
    }
}

static void *run_puts(void *arg)
{
    return in_thread(arg, puts_and_sums);
}

MP_TEST_N(puts_signals_and_sums, "1 2 3")
{
    uint64_t rounds = (uint64_t)mp_rounds(mp, 800);
    if (!mp_dev(mp, NULL))
        return;
    char *field = gin_calloc(mp->comm, THREADS * BLOCKS, BYTES);
    uint64_t *words = gin_calloc(mp->comm, 2, 8);
    if (!EXPECT(field != NULL && words != NULL))
        return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    spawn(mp, run_puts, field, words, (int)rounds, false);
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_ALL));
    EXPECT_EQ_U64(gin_read_signal(&mp->g, THREADS), 2 * THREADS * rounds);
    EXPECT_EQ_U64(words[0], 5 * THREADS * rounds);
    EXPECT_EQ_U64(words[1], 7 * THREADS * rounds);
    for (uint32_t t = 0; t < THREADS; t++)
        EXPECT_EQ_U64(gin_read_signal(&mp->g, t), rounds);
    EXPECT_OK(gin_free(mp->comm, words));
    EXPECT_OK(gin_free(mp->comm, field));
}

/* Errors belong to the thread that made them. */
static void own_errors(struct job *j)
{
    for (int i = 0; i < j->rounds; i++) {
        char number[16];
        snprintf(number, sizeof(number), "%d", 1000 + j->id);
        EXPECT_FAILS(gin_signal(&j->g, gin_thread(), gin_world(&j->g), 0,
                                gin_weak_inc(1000 + (uint32_t)j->id)),
                     GIN_ERANGE, number);
        EXPECT_EQ_INT(gin_last_status(), GIN_ERANGE);
        gin_clear_error();
        EXPECT_EQ_INT(gin_last_status(), GIN_OK);
    }
}

static void *run_errors(void *arg)
{
    return in_thread(arg, own_errors);
}

MP_TEST_N(errors_stay_with_their_thread, "1 2")
{
    if (mp_dev(mp, NULL))
        spawn(mp, run_errors, NULL, NULL, 300, false);
}
