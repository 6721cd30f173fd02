/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are not load/store accessible, by the network: hosts are names here, so near and far
 * ranks mix in one context. What holds for any rank is in the other tests, which run over the
 * network, too (over_net.sh); here is what only the network has.
 */
#include <stdlib.h>
#include <string.h>
#include "devcomm.h"
#include "tests/mp.h"
#include "transport/core.h"

#define BYTES 3000u

static int right(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static int left(const struct mp *mp)
{
    return (mp->rank + mp->size - 1) % mp->size;
}

/* Put to the right with a signal, get back, compare, all sizes around the limits. */
static void move(struct mp *mp)
{
    static const size_t sizes[] = {1, 7, 8, 16, 17, 63, 64, 65, 200, 1024, BYTES};
    gin_team_t w = gin_world(&mp->g);
    char *block = gin_calloc(mp->comm, 1, BYTES), *back = malloc(BYTES), *src = malloc(BYTES);
    if (!EXPECT(block != NULL && back != NULL && src != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, block);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t n = sizes[i];
        gin_action_t act = i % 2 ? gin_weak_inc(1) : gin_strong_inc(1);
        mp_step(mp, "%zu bytes", n);
        mp_poison(src, n, 100 * i + (uint64_t)mp->rank);
        EXPECT_OK(gin_put(&mp->g, gin_thread(), w, right(mp), at, gin_at_local(src), n, act));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 1, i + 1));
        MP_CHECK_PATTERN(block, n, 100 * i + (uint64_t)left(mp));
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
        memset(back, 0, n);
        EXPECT_OK(gin_get(&mp->g, gin_thread(), w, right(mp), at, gin_at_local(back), n));
        EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        MP_CHECK_PATTERN(back, n, 100 * i + (uint64_t)mp->rank);
        EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
    free(back);
    free(src);
}

MP_TEST_OPT(every_rank_far, .ranks = "2 3", .hosts = "ABC")
{
    if (mp_net(mp, NULL))
        move(mp);
}

MP_TEST_OPT(near_and_far, .ranks = "4", .hosts = "AABB")
{
    if (mp_net(mp, NULL))
        move(mp);
}

MP_TEST_OPT(without_lsa, .ranks = "2", .env = "GINSHMEM_DISABLE_LSA=1")
{
    if (mp_net(mp, NULL))
        move(mp);
}

/* The network alone, on one host, because the requirements say so. */
MP_TEST_OPT(paths_of_the_network_only, .ranks = "2")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_NET;
    if (!mp_net(mp, &reqs))
        return;
    EXPECT_EQ_INT(mp->g.lsa_of[right(mp)], -1);
    move(mp);
}

static uint64_t process_vm_calls(const struct mp *mp)
{
    gin_stats_t stats = {.size_of = sizeof(stats)};
    EXPECT_OK(gin_stats(mp->comm, &stats));
    return stats.cma_calls;
}

/* A signalled put into user memory of a rank on this host, an atomic there, a get from it. */
static void move_in_user_memory(struct mp *mp)
{
    static uint64_t own[8][64]; /* by rank, where ranks are threads */
    uint64_t *mine = own[mp->rank], back[2] = {0, 0}, old = 9;
    gin_team_t w = gin_world(&mp->g);
    gin_window_t win;
    memset(mine, 0, sizeof(own[0]));
    EXPECT_OK(gin_window_register(mp->comm, mine, sizeof(own[0]), 0, &win));
    EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, right(mp), gin_at(win, 8),
                            70 + (uint64_t)mp->rank, 8, gin_set_at(gin_at(win, 504), 6)));
    EXPECT_OK(gin_wait_signal_at(&mp->g, gin_thread(), gin_at(win, 504), 6, NULL));
    EXPECT_EQ_U64(mine[1], 70 + (uint64_t)left(mp));
    EXPECT_OK(gin_amo_fetch_add(&mp->g, gin_thread(), w, right(mp), gin_at(win, 16), 5, &old));
    EXPECT_EQ_U64(old, 0);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(gin_get(&mp->g, gin_thread(), w, right(mp), gin_at(win, 8), gin_at_local(back), 16));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    EXPECT_EQ_U64(back[0], 70 + (uint64_t)mp->rank);
    EXPECT_EQ_U64(back[1], 5);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
}

/* Without process_vm calls user memory of this host takes the network, too. */
MP_TEST_OPT(user_memory_near_by_the_network, .ranks = "2")
{
    static const uint32_t paths[] = {GIN_PATH_NET, GIN_PATH_LSA | GIN_PATH_NET};
    gin_devcomm_reqs_t reqs;
    for (int i = 0; i < 2; i++) {
        gin_devcomm_reqs_init(&reqs);
        reqs.paths = paths[i];
        if (!mp_net(mp, &reqs))
            return;
        uint64_t calls = process_vm_calls(mp);
        move_in_user_memory(mp);
        EXPECT_EQ_U64(process_vm_calls(mp), calls);
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    }
}

/* And for single operations: the next signal by load and store covers them. */
MP_TEST_OPT(nic_only, .ranks = "4", .hosts = "AABB")
{
    gin_op_opt_t nic = {.flags = GIN_NIC_ONLY}, count = {.local = gin_counter_inc(2)};
    uint64_t *word = NULL;
    if (!mp_net(mp, NULL) || !EXPECT((word = gin_calloc(mp->comm, 64, 8)) != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    for (uint64_t i = 1; i <= 50; i++) { /* a word each: nothing orders two puts to one */
        gin_at_t at = gin_at_ptr(&mp->g, word + i);
        EXPECT_OK(gin_put_x(&mp->g, gin_thread(), w, right(mp), at, gin_at_local(&i), 8,
                            gin_no_action(), &nic));
        EXPECT_OK(gin_signal_x(&mp->g, gin_thread(), w, right(mp), gin_strong_inc(0), &count));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, i));
        EXPECT_EQ_U64(GIN_LOAD_RELAXED(word + i), i);
    }
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    EXPECT_EQ_U64(gin_read_counter(&mp->g, 2), 50);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, word));
}

/* Large puts by the network are still under way when a signal or a flag takes load and store. */
MP_TEST_OPT(near_behind_far, .ranks = "4", .hosts = "AABB")
{
    enum { WORDS = 8192, ROUNDS = 40 };
    gin_op_opt_t nic = {.flags = GIN_NIC_ONLY};
    uint64_t *to = NULL, *from = NULL, wrong = 0;
    if (!mp_net(mp, NULL) || !EXPECT((to = gin_calloc(mp->comm, WORDS, 8)) != NULL) ||
        !EXPECT((from = gin_calloc(mp->comm, WORDS, 8)) != NULL))
        return;
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    int near = mp->rank ^ 1;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        mp_step(mp, "round %d", (int)i);
        for (size_t k = 0; k < WORDS; k++)
            from[k] = i;
        EXPECT_OK(gin_put_x(g, gin_thread(), w, near, gin_at_ptr(g, to), gin_at_local(from),
                            WORDS * 8, gin_no_action(), &nic));
        if (i % 2 != 0) {
            EXPECT_OK(gin_signal(g, gin_thread(), w, near, gin_strong_inc(1)));
        } else {
            if (i % 4 == 0)
                EXPECT_OK(gin_fence_all(g, gin_thread()));
            else
                EXPECT_OK(gin_fence(g, gin_thread(), w, near));
            EXPECT_OK(gin_signal(g, gin_thread(), w, near, gin_weak_inc(1)));
        }
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, i));
        for (size_t k = 0; k < WORDS; k++)
            wrong += GIN_LOAD_RELAXED(to + k) != i;
        EXPECT_OK(
            gin_barrier(g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
    EXPECT_EQ_U64(wrong, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, from));
    EXPECT_OK(gin_free(mp->comm, to));
}

MP_TEST_OPT(atomics, .ranks = "3", .hosts = "AB")
{
    uint64_t *word = NULL, old = 0;
    if (!mp_net(mp, NULL) || !EXPECT((word = gin_calloc(mp->comm, 4, 8)) != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    const gin_t *g = &mp->g;
    gin_at_t at = gin_at_ptr(g, word), mine = gin_at_ptr(g, word + 1 + mp->rank);
    const int rounds = 100;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int i = 0; i < rounds; i++) {
        EXPECT_OK(gin_amo_add(g, gin_thread(), w, 0, at, 1));
        EXPECT_OK(gin_amo_fetch_add(g, gin_thread(), w, 0, mine, 3, &old));
        EXPECT_EQ_U64(old, 3 * (uint64_t)i); /* nobody else adds there */
    }
    EXPECT_OK(gin_amo_cas(g, gin_thread(), w, 0, mine, 3 * (uint64_t)rounds, 77, &old));
    EXPECT_EQ_U64(old, 3 * (uint64_t)rounds);
    EXPECT_OK(gin_amo_swap(g, gin_thread(), w, 0, mine, 78, &old));
    EXPECT_EQ_U64(old, 77);
    EXPECT_OK(
        gin_barrier(g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    if (mp->rank == 0) {
        EXPECT_EQ_U64(word[0], (uint64_t)rounds * (uint64_t)mp->size);
        for (int r = 0; r < mp->size; r++)
            EXPECT_EQ_U64(word[1 + r], 78);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, word));
}

/* The heap grows under a network: the new part is reached at once. User memory likewise. */
MP_TEST_OPT(what_comes_later, .ranks = "2", .hosts = "AB", .heap_size = 1 << 20,
            .env = "GINSHMEM_HEAP_CHUNK=1M")
{
    if (!mp_net(mp, NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t *big = gin_calloc(mp->comm, 1, 900000);
        if (!EXPECT(big != NULL))
            return;
        uint64_t *last = big + 900000 / 8 - 1;
        EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, right(mp), gin_at_ptr(&mp->g, last), i + 9,
                                8, gin_weak_inc(3)));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 3, i + 1));
        EXPECT_EQ_U64(GIN_LOAD_RELAXED(last), i + 9);
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    uint64_t *own = aligned_alloc(64, 4096);
    gin_window_t win;
    memset(own, 0, 4096);
    EXPECT_OK(gin_window_register(mp->comm, own, 4096, 0, &win));
    EXPECT_EQ_INT(gin_window_path(mp->comm, win, right(mp)), GIN_PATH_NET);
    EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, right(mp), gin_at(win, 8), 5, 8,
                            gin_set_at(gin_at(win, 4088), 6)));
    EXPECT_OK(gin_wait_signal_at(&mp->g, gin_thread(), gin_at(win, 4088), 6, NULL));
    EXPECT_EQ_U64(own[1], 5);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    free(own);
}

MP_TEST_OPT(connections_are_refused, .ranks = "4", .hosts = "AABB")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.connection = GIN_CONNECT_RAIL;
    if (!mp_net(mp, &reqs))
        return;
    gin_team_t w = gin_world(&mp->g);
    int far = (mp->rank + 2) % 4, none = mp->rank < 2 ? 3 - mp->rank : 3 - mp->rank;
    EXPECT_OK(gin_signal(&mp->g, gin_thread(), w, far, gin_strong_inc(0)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, 1));
    EXPECT_FAILS(gin_signal(&mp->g, gin_thread(), w, none, gin_strong_inc(0)), GIN_ENOTSUP,
                 "GIN_CONNECT_RAIL");
    /* ... and is not even connected */
    struct gi_core_ctx *ctx = gi_devcomm_of(&mp->g)->net[0];
    EXPECT_EQ_INT(gi_core_peer_status(ctx, none, NULL), GIN_ENOTSUP);
    EXPECT_EQ_INT(gi_core_peer_status(ctx, far, NULL), GIN_OK);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
