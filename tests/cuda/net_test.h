/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host threads put, get and signal in windows of GPU memory of ranks that are not load/store
 * accessible, against a driver without GPU, whose memory the CPU can look at: what a signal or
 * quiet tells of must be there. Include it once, in the program's one file.
 */
#ifndef GINSHMEM_TESTS_CUDA_NET_TEST_H
#define GINSHMEM_TESTS_CUDA_NET_TEST_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/cuda/cuda_test.h"

#define K     1024u
#define MOST  (700u * K) /* of a put: three slabs */
#define GUARD 64u

static const size_t sizes[] = {1, 8, 80, 81, 3000, 70000, MOST};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static inline int right(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static inline int left(const struct mp *mp)
{
    return (mp->rank + mp->size - 1) % mp->size;
}

static inline void meet(struct mp *mp)
{
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                          GIN_FENCE_ALL));
}

/* A block of a kind of memory, whose n bytes from GUARD on are looked at. */
static inline char *block(struct mp *mp, gin_kind_t kind, size_t n)
{
    char *b = gin_malloc_kind(mp->comm, kind, n + 2 * GUARD);
    EXPECT(b != NULL);
    return b;
}

static inline uint64_t seed_of(size_t i, int rank)
{
    return 100 * i + (uint64_t)rank + 1;
}

/* Put from one kind of memory to another one with a signal, and get it back. */
static inline void there_and_back(struct mp *mp, gin_kind_t from, gin_kind_t to, uint64_t *signals)
{
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    char *src = block(mp, from, MOST), *dst = block(mp, to, MOST), *back = block(mp, from, MOST);
    if (src == NULL || dst == NULL || back == NULL)
        return;
    gin_at_t at = gin_at_ptr(g, dst + GUARD);
    for (size_t i = 0; i < SIZES; i++) {
        size_t n = sizes[i];
        mp_step(mp, "%zu bytes from kind %d to %d", n, (int)from, (int)to);
        memset(dst, 0x7e, n + 2 * GUARD);
        memset(back, 0x7e, n + 2 * GUARD);
        mp_poison(src + GUARD, n, seed_of(i, mp->rank));
        meet(mp);
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), at, gin_at_ptr(g, src + GUARD), n,
                          i % 2 != 0 ? gin_weak_inc(1) : gin_strong_inc(1)));
        EXPECT_OK(gin_flush(g, gin_thread()));
        memset(src + GUARD, 0x11, n); /* it may be used again */
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, ++*signals));
        MP_CHECK_PATTERN(dst + GUARD, n, seed_of(i, left(mp)));
        EXPECT_FILLED(dst, GUARD, 0x7e);
        EXPECT_FILLED(dst + GUARD + n, GUARD, 0x7e);
        EXPECT_OK(gin_quiet(g, gin_thread()));
        EXPECT_OK(gin_get(g, gin_thread(), w, right(mp), at, gin_at_ptr(g, back + GUARD), n));
        EXPECT_OK(gin_flush(g, gin_thread()));
        MP_CHECK_PATTERN(back + GUARD, n, seed_of(i, mp->rank));
        EXPECT_FILLED(back, GUARD, 0x7e);
        EXPECT_FILLED(back + GUARD + n, GUARD, 0x7e);
        meet(mp);
    }
    EXPECT_OK(gin_free(mp->comm, src));
    EXPECT_OK(gin_free(mp->comm, dst));
    EXPECT_OK(gin_free(mp->comm, back));
}

static inline void all_kinds(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    uint64_t signals = 0;
    if (!mp_net(mp, reqs))
        return;
    there_and_back(mp, GIN_KIND_HOST, GIN_KIND_CUDA, &signals);
    there_and_back(mp, GIN_KIND_CUDA, GIN_KIND_CUDA, &signals);
    there_and_back(mp, GIN_KIND_CUDA, GIN_KIND_HOST, &signals);
}

/* A strong signal tells of all puts before, staged and not. */
static inline void order(struct mp *mp)
{
    const gin_t *g = &mp->g;
    int rounds = mp_rounds(mp, 12);
    if (!mp_net(mp, NULL))
        return;
    gin_team_t w = gin_world(g);
    char *gpu = block(mp, GIN_KIND_CUDA, 400 * K), *host = block(mp, GIN_KIND_HOST, 400 * K);
    char *src = block(mp, GIN_KIND_CUDA, 400 * K);
    if (gpu == NULL || host == NULL || src == NULL)
        return;
    for (int i = 1; i <= rounds; i++) {
        mp_step(mp, "round %d", i);
        memset(src, i, 400 * K);
        meet(mp);
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), gin_at_ptr(g, gpu), gin_at_ptr(g, src),
                          300 * K, gin_no_action()));
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), gin_at_ptr(g, host), gin_at_ptr(g, src),
                          5000, gin_no_action()));
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), gin_at_ptr(g, gpu + 350 * K),
                          gin_at_ptr(g, src), 16, gin_no_action()));
        EXPECT_OK(gin_put_value(g, gin_thread(), w, right(mp), gin_at_ptr(g, host + 8 * K),
                                (uint64_t)i, 8, gin_strong_inc(2)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 2, (uint64_t)i));
        EXPECT_FILLED(gpu, 300 * K, (unsigned char)i);
        EXPECT_FILLED(host, 5000, (unsigned char)i);
        EXPECT_FILLED(gpu + 350 * K, 16, (unsigned char)i);
        meet(mp);
    }
    EXPECT_OK(gin_free(mp->comm, gpu));
    EXPECT_OK(gin_free(mp->comm, host));
    EXPECT_OK(gin_free(mp->comm, src));
}

#endif
