/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals by the network's own atomics (class A), which raise a cell that no CPU writes: a signal's
 * value is the sum of that and of what CPUs raise, for everything that looks at it. A provider
 * whose target's CPU applies atomics stands in for a NIC.
 */
#include <stdlib.h>
#include "tests/mp.h"

#define NIC "GINSHMEM_PROVIDER=shm GINSHMEM_TEST_NET=class=A"

static uint64_t by_nic(const struct mp *mp)
{
    gin_stats_t stats = {.size_of = sizeof(stats)};
    EXPECT_OK(gin_stats(mp->comm, &stats));
    return stats.net_atomics;
}

static void all_meet(struct mp *mp)
{
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Everybody to everybody, near and far, up and down. */
static void adds_up(struct mp *mp)
{
    enum { ROUNDS = 10 };
    gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    uint64_t n = (uint64_t)mp->size, all = n * (n + 1) / 2, old = 0;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        mp_step(mp, "round %d", (int)i);
        for (int r = 0; r < mp->size; r++) {
            uint64_t v = (uint64_t)mp->rank + 1;
            EXPECT_OK(gin_signal(g, gin_thread(), w, r, gin_weak_add(0, v << 33 | v)));
            EXPECT_OK(gin_signal(g, gin_thread(), w, r, gin_strong_inc(1)));
            EXPECT_OK(gin_signal(g, gin_thread(), w, r, gin_strong_add(2, ~(uint64_t)0)));
        }
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, n * i));
        EXPECT_EQ_U64(gin_read_signal(g, 1), n * i);
        EXPECT_EQ_U64(gin_read_signal(g, 0), i * (all << 33 | all));
        EXPECT_OK(gin_wait_signal_until(g, gin_thread(), 2, GIN_CMP_EQ, -(n * i), NULL));
        all_meet(mp);
    }
    EXPECT_OK(gin_reset_signal(g, 0, &old));
    EXPECT_EQ_U64(old, ROUNDS * (all << 33 | all));
    EXPECT_EQ_U64(gin_read_signal(g, 0), 0);
    EXPECT_OK(gin_consume_signal(g, 1, ROUNDS * n - 1));
    EXPECT_EQ_U64(gin_read_signal(g, 1), 1);
    EXPECT_OK(gin_reset_signal(g, 2, &old));
    EXPECT_EQ_U64(old, -(ROUNDS * n));
    EXPECT(by_nic(mp) != 0);
    all_meet(mp);
}

/* The calls that wait, each for what far ranks raise. */
static void waits(struct mp *mp)
{
    gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    int to = (mp->rank + mp->size / 2) % mp->size;
    const uint32_t ids[] = {3, 4};
    const uint64_t least[] = {2, 1};
    uint64_t before = 9, delta = 0;
    size_t which[2], count = 0;
    EXPECT_EQ_INT(gin_test_signal(g, gin_thread(), 4, 1), GIN_EAGAIN);
    all_meet(mp);
    EXPECT_OK(gin_signal(g, gin_thread(), w, to, gin_weak_add(3, 2)));
    EXPECT_OK(gin_wait_signal_any(g, gin_thread(), ids, least, 2, NULL, which, NULL));
    EXPECT_EQ_U64(which[0], 0);
    all_meet(mp);
    EXPECT_OK(gin_signal(g, gin_thread(), w, to, gin_strong_inc(4)));
    EXPECT_OK(gin_wait_signal_all(g, gin_thread(), ids, least, 2, NULL, NULL));
    EXPECT_OK(gin_wait_signal_some(g, gin_thread(), ids, least, 2, NULL, which, &count, NULL));
    EXPECT_EQ_U64(count, 2);
    EXPECT_OK(gin_test_signal(g, gin_thread(), 4, 1));
    EXPECT_OK(gin_increase_shadow(g, 4, 1));
    EXPECT_OK(gin_wait_signal_meet_shadow(g, gin_thread(), 4, NULL));
    EXPECT_OK(gin_wait_signal_follow_shadow(g, gin_thread(), 3, 1, &before, &delta, NULL));
    EXPECT_EQ_U64(before, 0);
    EXPECT_EQ_U64(delta, 2);
    EXPECT(by_nic(mp) != 0);
    all_meet(mp);
}

/* A put and its signal, and a strong one behind puts: who has it has the bytes. */
static void follow(struct mp *mp)
{
    enum { BYTES = 5000, ROUNDS = 30 };
    gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    int to = (mp->rank + 1) % mp->size, from = (mp->rank + mp->size - 1) % mp->size;
    char *in = gin_calloc(mp->comm, 2, BYTES), *out = gin_calloc(mp->comm, 2, BYTES);
    if (!EXPECT(in != NULL && out != NULL))
        return;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        mp_step(mp, "round %d", (int)i);
        mp_poison(out, 2 * BYTES, 100 * i + (uint64_t)mp->rank);
        for (size_t k = 0; k < 2; k++)
            EXPECT_OK(gin_put(g, gin_thread(), w, to, gin_at_ptr(g, in + k * BYTES),
                              gin_at_ptr(g, out + k * BYTES), BYTES,
                              k == 0  ? gin_no_action()
                              : i % 2 ? gin_strong_inc(5)
                                      : gin_strong_add(5, 1)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 5, i + 1));
        MP_CHECK_PATTERN(in, 2 * BYTES, 100 * i + (uint64_t)from);
        all_meet(mp);
    }
    EXPECT(by_nic(mp) != 0);
    EXPECT_OK(gin_free(mp->comm, in));
    EXPECT_OK(gin_free(mp->comm, out));
}

MP_TEST_OPT(near_and_far_add_up, .ranks = "4", .hosts = "AABB", .env = NIC)
{
    if (mp_net(mp, NULL))
        adds_up(mp);
}

MP_TEST_OPT(every_wait, .ranks = "2", .hosts = "AB", .env = NIC)
{
    if (mp_net(mp, NULL))
        waits(mp);
}

MP_TEST_OPT(signals_follow_data, .ranks = "3", .hosts = "ABC", .env = NIC)
{
    if (mp_net(mp, NULL))
        follow(mp);
}

/* Held back, completed before they are there, refused now and then. */
MP_TEST_OPT(signals_follow_late_data, .ranks = "3", .hosts = "ABC",
            .env = NIC ",hold=8,early=1,again=100")
{
    if (mp_net(mp, NULL))
        follow(mp);
}

/* From rings that an engine drains. */
MP_TEST_OPT(by_engines, .ranks = "2", .hosts = "AB", .env = NIC)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = GIN_BACKEND_ENGINE;
    if (mp_net(mp, &reqs))
        adds_up(mp);
}

/* One rank's network lacks what the others' have: none uses it. */
MP_TEST_OPT(class_is_agreed, .ranks = "3", .hosts = "ABC", .env = "GINSHMEM_PROVIDER=shm",
            .only = MP_PROCS, .bare = true)
{
    gin_team_t w;
    setenv("GINSHMEM_TEST_NET", mp->rank == 1 ? "class=B" : "class=A", 1);
    if (!mp_up(mp) || !mp_net(mp, NULL))
        return;
    w = gin_world(&mp->g);
    for (int r = 0; r < mp->size; r++)
        EXPECT_OK(gin_signal(&mp->g, gin_thread(), w, r, gin_strong_inc(0)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, (uint64_t)mp->size));
    EXPECT_EQ_U64(by_nic(mp), 0);
    all_meet(mp);
}
