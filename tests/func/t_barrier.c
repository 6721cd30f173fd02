/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers: nobody leaves before all have come, in every kind, algorithm and number of ranks. */
#include <pthread.h>
#include <string.h>
#include "barrier.h"
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

static int full(const gin_t *g, gin_barrier_t which, uint32_t index)
{
    return gin_barrier(g, me(), which, index, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
}

/* Everyone counts in its own word before the barrier, and looks at all words behind it. */
static void count_rounds(struct mp *mp, gin_barrier_t which, uint32_t index, gin_team_t team,
                         int rounds)
{
    uint64_t *mine = gin_calloc(mp->comm, 1, 64);
    if (!EXPECT(mine != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, mine);
    for (uint64_t i = 1; team.rank >= 0 && i <= (uint64_t)rounds; i++) {
        mp_step(mp, "kind %u, round %d", which.kind, (int)i);
        GIN_STORE_RELAXED(mine, i);
        if (!EXPECT_OK(full(&mp->g, which, index)))
            break;
        for (int r = 0; r < team.size; r++) {
            uint64_t v = mp_see(&mp->g, team, r, at);
            /* there, and at most one round ahead: a round more needs my arrival */
            if (!EXPECT(v == i || v == i + 1))
                return;
        }
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, mine));
}

static void every_kind(struct mp *mp)
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 2000);
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.world_barriers = 3;
    reqs.lsa_barriers = reqs.rail_barriers = reqs.hybrid_barriers = 2;
    if (!mp_dev(mp, &reqs))
        return;
    count_rounds(mp, gin_barrier_world(), 2, gin_world(&mp->g), rounds);
    count_rounds(mp, gin_barrier_lsa(), 1, gin_lsa(&mp->g), rounds);
    count_rounds(mp, gin_barrier_rail(), 1, gin_rail(&mp->g), rounds);
    count_rounds(mp, gin_barrier_hybrid(), 0, gin_world(&mp->g), rounds);
}

MP_TEST_OPT(nobody_leaves_early, .ranks = "1 2 3 5 8")
{
    every_kind(mp);
}

/* Trees of one level (2 to 8 ranks) and of two (9 and more). */
MP_TEST_OPT(nobody_leaves_early_by_tree, .ranks = "1 2 3 5 8 9 17")
{
    gi_barriers_set_flat_max(1);
    mp_barrier(mp);
    every_kind(mp);
}

/* Two rows and as many columns; each rank is in one team of either place, or in none. */
static void teams(struct mp *mp)
{
    int rounds = mp_rounds(mp, mp->long_mode ? 50000 : 1000), list[8], n = 0;
    gin_team_t row, column, odd = gin_team_invalid(), world = gin_team_world(mp->comm);
    EXPECT_OK(gin_team_split_2d(mp->comm, world, (mp->size + 1) / 2, &row, &column));
    for (int r = mp->size - 1; r >= 0; r--) /* backwards, so that it is no progression of ours */
        if (r % 3 != 1)
            list[n++] = r;
    if (mp->rank % 3 != 1)
        EXPECT_OK(gin_team_create(mp->comm, list, n, &odd));
    gin_team_barrier_t b[3] = {{row, 2, {0, 0}}, {column, 1, {0, 0}}, {odd, 3, {0, 0}}};
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.team_barriers = b;
    reqs.n_team_barriers = 3;
    if (!mp_dev(mp, &reqs))
        return;
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ_U64(b[i].handle.kind, GIN_BARRIER_TEAM);
        EXPECT_EQ_U64(b[i].handle.place, i);
    }
    count_rounds(mp, b[0].handle, 1, row, rounds);
    count_rounds(mp, b[1].handle, 0, column, rounds);
    count_rounds(mp, b[2].handle, 2, odd, rounds);
    if (mp->rank % 3 == 1)
        EXPECT_FAILS(full(&mp->g, b[2].handle, 0), GIN_ESTATE, "no member");
    EXPECT_FAILS(full(&mp->g, b[0].handle, 2), GIN_ERANGE, "index 2 of barrier team_barriers[0]");
    gin_barrier_t none = {GIN_BARRIER_TEAM, 3};
    EXPECT_FAILS(full(&mp->g, none, 0), GIN_EINVAL, "place 3");
}

MP_TEST_OPT(custom_teams, .ranks = "1 2 3 5 8")
{
    teams(mp);
}

MP_TEST_OPT(custom_teams_by_tree, .ranks = "5 8")
{
    gi_barriers_set_flat_max(2);
    mp_barrier(mp);
    teams(mp);
}

/* More threads than cores, each with its index; fewer threads on some ranks would hang for ever. */
enum { THREADS = 5 };

struct worker {
    struct mp *mp;
    uint64_t (*seen)[THREADS];
    uint32_t index;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct mp *mp = w->mp;
    gin_t g;
    int rounds = mp_rounds(mp, mp->long_mode ? 20000 : 300);
    EXPECT_OK(gin_open(&mp->dev, w->index % 4, &g));
    gin_at_t at = gin_at_ptr(&g, &w->seen[0][w->index]);
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        GIN_STORE_RELAXED(&w->seen[0][w->index], i);
        if (!EXPECT_OK(full(&g, gin_barrier_world(), w->index)))
            break;
        for (int r = 0; r < mp->size; r++) {
            uint64_t v = mp_see(&g, gin_world(&g), r, at);
            if (!EXPECT(v == i || v == i + 1))
                return NULL;
        }
    }
    return NULL;
}

MP_TEST_OPT(many_threads_with_an_index_each, .ranks = "1 2 3 5")
{
    struct worker w[THREADS];
    pthread_t t[THREADS];
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.world_barriers = THREADS;
    if (!mp_dev(mp, &reqs))
        return;
    uint64_t(*seen)[THREADS] = gin_calloc(mp->comm, 1, sizeof(*seen));
    if (!EXPECT(seen != NULL))
        return;
    for (uint32_t i = 0; i < THREADS; i++) {
        w[i] = (struct worker){mp, seen, i};
        EXPECT_EQ_INT(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Arrive and wait apart, with a signal across in between: no arrival may wait for a wait. */
static void halves(struct mp *mp)
{
    int rounds = mp_rounds(mp, mp->long_mode ? 100000 : 2000);
    if (!mp_dev(mp, NULL))
        return;
    if (!mp_near(mp))
        MP_SKIP("a barrier of the ranks that are load/store accessible; not all are");
    for (uint64_t i = 1; i <= (uint64_t)rounds; i++) {
        mp_step(mp, "round %d", (int)i);
        EXPECT_OK(gin_lsa_arrive(&mp->g, me(), 0, GIN_ORDER_RELEASE));
        if (mp->rank == (int)(i % (uint64_t)mp->size)) {
            /* waits for the others first; they signal only once they are through the barrier */
            EXPECT_OK(gin_wait_signal(&mp->g, me(), 0, (uint64_t)mp->size - 1));
            EXPECT_OK(gin_reset_signal(&mp->g, 0, NULL));
            EXPECT_OK(gin_lsa_wait(&mp->g, me(), 0, GIN_ORDER_ACQUIRE, NULL));
        } else {
            EXPECT_OK(gin_lsa_wait(&mp->g, me(), 0, GIN_ORDER_ACQUIRE, NULL));
            EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), (int)(i % (uint64_t)mp->size),
                                 gin_weak_inc(0)));
        }
        if (pt_failures() != 0)
            break;
    }
}

MP_TEST_OPT(halves_may_be_far_apart, .ranks = "1 2 3 5 8")
{
    halves(mp);
}

MP_TEST_OPT(halves_may_be_far_apart_by_tree, .ranks = "3 8 9")
{
    gi_barriers_set_flat_max(2);
    mp_barrier(mp);
    halves(mp);
}
