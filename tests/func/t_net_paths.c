/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths that mix: load and store, process_vm calls and the network in one context, between the same
 * ranks; sizes, bounds, teams, several contexts, memory that comes and goes; and targets that
 * compute. Hosts are names here.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "tests/mp.h"

#define ROUNDS (60 / MP_FACTOR)

static int right(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static int left(const struct mp *mp)
{
    return (mp->rank + mp->size - 1) % mp->size;
}

static int barrier(struct mp *mp)
{
    return gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                       GIN_FENCE_ALL);
}

/* ---- one context, all paths ---- */

#define WORDS 4096u /* of a rank in each kind of memory */

struct mixed {
    uint64_t *heap, *own; /* [from][WORDS] */
    gin_window_t win;
};

static bool mixed_up(struct mp *mp, struct mixed *m)
{
    size_t bytes = (size_t)mp->size * WORDS * 8;
    m->heap = gin_calloc(mp->comm, (size_t)mp->size * WORDS, 8);
    m->own = aligned_alloc(64, bytes);
    if (!EXPECT(m->heap != NULL && m->own != NULL))
        return false;
    memset(m->own, 0, bytes);
    return EXPECT_OK(gin_window_register(mp->comm, m->own, bytes, 0, &m->win));
}

static void mixed_down(struct mp *mp, struct mixed *m)
{
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, m->win));
    EXPECT_OK(gin_free(mp->comm, m->heap));
    free(m->own);
}

/* To one peer: a block to the heap and one to user memory, then a strong signal, one way or the
 * other. */
static void send_round(struct mp *mp, const struct mixed *m, int to, uint64_t i,
                       const uint64_t *src)
{
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_op_opt_t nic = {.flags = GIN_NIC_ONLY}, plain = {.flags = 0};
    size_t n = i % 3 ? 8 * (size_t)(i % 40 + 1) : WORDS * 8;
    uint64_t off = (uint64_t)mp->rank * WORDS * 8;
    gin_at_t heap = gin_at_ptr(g, m->heap), own = gin_at(m->win, off);
    heap.off += off;
    EXPECT_OK(gin_put_x(g, gin_thread(), w, to, heap, gin_at_local(src), n, gin_no_action(),
                        i % 4 == 1 ? &nic : &plain));
    EXPECT_OK(gin_put(g, gin_thread(), w, to, own, gin_at_local(src), n, gin_no_action()));
    if (i % 5 == 0)
        EXPECT_OK(gin_fence(g, gin_thread(), w, to));
    EXPECT_OK(gin_signal_x(g, gin_thread(), w, to, gin_strong_inc((uint32_t)mp->rank),
                           i % 4 == 2 ? &nic : &plain));
}

static void receive_round(struct mp *mp, const struct mixed *m, int from, uint64_t i)
{
    size_t n = i % 3 ? i % 40 + 1 : WORDS, at = (size_t)from * WORDS;
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), (uint32_t)from, i));
    MP_CHECK_PATTERN(m->heap + at, n * 8, 1000 * i + (uint64_t)from);
    MP_CHECK_PATTERN(m->own + at, n * 8, 1000 * i + (uint64_t)from);
}

static void mix(struct mp *mp)
{
    struct mixed m;
    uint64_t *src = malloc(WORDS * 8);
    if (!EXPECT(src != NULL) || !mixed_up(mp, &m))
        return;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        mp_step(mp, "round %d", (int)i);
        mp_poison(src, WORDS * 8, 1000 * i + (uint64_t)mp->rank);
        for (int k = 1; k < mp->size; k++)
            send_round(mp, &m, (mp->rank + k) % mp->size, i, src);
        for (int k = 1; k < mp->size; k++)
            receive_round(mp, &m, (mp->rank + k) % mp->size, i);
        EXPECT_OK(barrier(mp)); /* before it is written over */
    }
    mixed_down(mp, &m);
    free(src);
}

MP_TEST_OPT(strong_signals_over_all_paths, .ranks = "4", .hosts = "AABB")
{
    if (mp_net(mp, NULL))
        mix(mp);
}

MP_TEST_OPT(strong_signals_without_lsa, .ranks = "3", .hosts = "AAB",
            .env = "GINSHMEM_DISABLE_LSA=1")
{
    if (mp_net(mp, NULL))
        mix(mp);
}

MP_TEST_OPT(strong_signals_without_process_vm, .ranks = "3", .hosts = "AAB",
            .env = "GINSHMEM_DISABLE_CMA=1")
{
    if (mp_net(mp, NULL))
        mix(mp);
}

/* ---- sizes ---- */

MP_TEST_OPT(zero_bytes, .ranks = "2", .hosts = "AB")
{
    gin_op_opt_t count = {.local = gin_counter_inc(1)};
    uint64_t *word = NULL;
    if (!mp_net(mp, NULL) || !EXPECT((word = gin_calloc(mp->comm, 8, 8)) != NULL))
        return;
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_at_t at = gin_at_ptr(g, word), none = gin_at_local(NULL);
    for (uint64_t i = 1; i <= 20; i++) {
        EXPECT_OK(gin_put_x(g, gin_thread(), w, right(mp), at, none, 0, gin_weak_inc(2), &count));
        EXPECT_OK(gin_get_x(g, gin_thread(), w, right(mp), at, none, 0, &count));
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), at, none, 0, gin_no_action()));
        EXPECT_OK(gin_put(g, gin_thread(), w, right(mp), at, none, 0,
                          gin_strong_add_at(gin_at_ptr(g, word + 3), 2)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 2, i));
        EXPECT_OK(gin_wait_counter(g, gin_thread(), 1, 2 * i));
    }
    EXPECT_OK(gin_wait_signal_at(g, gin_thread(), gin_at_ptr(g, word + 3), 40, NULL));
    EXPECT_OK(barrier(mp));
    EXPECT_EQ_U64(gin_read_signal(g, 2), 20);
    EXPECT_EQ_U64(gin_read_counter(g, 1), 40);
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(word + 3), 40);
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(word), 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, word));
}

#define HUGE_BYTES ((size_t)(9 << 20) + 12345)

/* Far more than one piece, at an odd place, from and to memory that nobody registered. */
MP_TEST_OPT(huge_and_odd, .ranks = "2", .hosts = "AB", .heap_size = 12 << 20)
{
    char *block = NULL, *own = malloc(HUGE_BYTES + 16 + 2 * MP_CANARY);
    if (!EXPECT(own != NULL) || !mp_net(mp, NULL) ||
        !EXPECT((block = gin_calloc(mp->comm, 1, HUGE_BYTES + 16)) != NULL))
        return;
    gin_at_t at = gin_at_ptr(&mp->g, block + 3);
    char *buf = own + MP_CANARY + 5;
    mp_poison(buf, HUGE_BYTES, (uint64_t)mp->rank);
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), right(mp), at, gin_at_local(buf),
                      HUGE_BYTES, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, 1));
    MP_CHECK_PATTERN(block + 3, HUGE_BYTES, (uint64_t)left(mp));
    EXPECT_EQ_INT(block[2], 0);
    EXPECT_EQ_INT(block[3 + HUGE_BYTES], 0);
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    memset(buf, 0, HUGE_BYTES);
    mp_canaries(buf, HUGE_BYTES);
    EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), right(mp), at, gin_at_local(buf),
                      HUGE_BYTES));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    MP_CHECK_PATTERN(buf, HUGE_BYTES, (uint64_t)mp->rank);
    MP_CHECK_CANARIES(buf, HUGE_BYTES);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
    free(own);
}

/* Refused before anything leaves; the context goes on. */
MP_TEST_OPT(bounds, .ranks = "2", .hosts = "AB")
{
    static char src[64];
    uint64_t *word = NULL, old;
    gin_window_t win;
    if (!mp_net(mp, NULL) || !EXPECT((word = gin_calloc(mp->comm, 8, 8)) != NULL))
        return;
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_at_t from = gin_at_local(src), at = gin_at_ptr(g, word);
    EXPECT_OK(gin_window_register(mp->comm, word, 64, 0, &win));
    EXPECT_FAILS(gin_put(g, gin_thread(), w, right(mp), gin_at(win, 60), from, 8, gin_no_action()),
                 GIN_ERANGE, "outside");
    EXPECT_FAILS(
        gin_put(g, gin_thread(), w, right(mp), gin_at(win, UINT64_MAX), from, 8, gin_weak_inc(0)),
        GIN_ERANGE, "outside");
    EXPECT_FAILS(
        gin_put(g, gin_thread(), w, right(mp), gin_at(win, 8), from, SIZE_MAX, gin_weak_inc(0)),
        GIN_ERANGE, "outside");
    EXPECT_FAILS(gin_get(g, gin_thread(), w, right(mp), gin_at(win, 1), from, 64), GIN_ERANGE,
                 "outside");
    EXPECT_FAILS(gin_put(g, gin_thread(), w, mp->size, at, from, 8, gin_weak_inc(0)), GIN_ERANGE,
                 "");
    EXPECT_FAILS(gin_put(g, gin_thread(), w, right(mp), at, from, 8, gin_weak_inc(1u << 30)),
                 GIN_ERANGE, "signal");
    EXPECT_FAILS(gin_put(g, gin_thread(), w, right(mp), at, from, 8, gin_set_at(gin_at(win, 4), 1)),
                 GIN_EINVAL, "aligned");
    EXPECT_FAILS(gin_amo_fetch_add(g, gin_thread(), w, right(mp), gin_at(win, 60), 1, &old),
                 GIN_ERANGE, "outside");
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_FAILS(gin_put(g, gin_thread(), w, right(mp), gin_at(win, 0), from, 8, gin_weak_inc(0)),
                 GIN_ESTATE, "deregistered");
    EXPECT_OK(gin_put_value(g, gin_thread(), w, right(mp), at, 7, 8, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 0, 1));
    EXPECT_EQ_U64(word[0], 7);
    EXPECT_OK(barrier(mp));
    EXPECT_EQ_U64(gin_read_signal(g, 0), 1); /* nothing of what was refused */
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, word));
}

/* ---- teams ---- */

/* Everyone in the team puts its world rank to the next in the team. */
static void round_a_team(struct mp *mp, gin_team_t team, uint64_t *word, uint32_t id)
{
    if (team.size <= 1 || team.rank < 0)
        return;
    int to = (team.rank + 1) % team.size, from = (team.rank + team.size - 1) % team.size;
    EXPECT_OK(gin_put_value(&mp->g, gin_thread(), team, to, gin_at_ptr(&mp->g, word + id),
                            100 + (uint64_t)mp->rank, 8, gin_weak_inc(id)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), id, 1));
    EXPECT_EQ_U64(GIN_LOAD_RELAXED(word + id),
                  100 + (uint64_t)gin_team_rank_to_world(mp->comm, team, from));
}

MP_TEST_OPT(teams, .ranks = "4 5", .hosts = "ABAB")
{
    uint64_t *word = NULL;
    gin_team_t odd, list;
    const int back[] = {3, 0, 2};
    if (!mp_net(mp, NULL) || !EXPECT((word = gin_calloc(mp->comm, 16, 8)) != NULL))
        return;
    gin_team_t all = gin_team_world(mp->comm);
    EXPECT_OK(gin_team_split_strided(mp->comm, all, 0, 3, 2, &odd)); /* 0 and 3 */
    EXPECT_OK(gin_team_create(mp->comm, back, 3, &list));
    gin_barrier_t b;
    round_a_team(mp, all, word, 1);
    round_a_team(mp, gin_team_node(mp->comm), word, 2);
    round_a_team(mp, gin_team_lsa(mp->comm), word, 3);
    round_a_team(mp, gin_team_rail(mp->comm), word, 4);
    round_a_team(mp, odd, word, 5);
    round_a_team(mp, list, word, 6);
    b = gin_barrier_rail();
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), b, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    b = gin_barrier_lsa();
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), b, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    b = gin_barrier_hybrid();
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), b, 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_team_free(mp->comm, list));
    EXPECT_OK(gin_free(mp->comm, word));
}

/* ---- several contexts and device communicators ---- */

MP_TEST_OPT(contexts_of_their_own, .ranks = "2", .hosts = "AB")
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t other;
    gin_t g[2][3];
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = 3;
    if (!mp_net(mp, &reqs) || !EXPECT_OK(gin_devcomm_create(mp->comm, &reqs, &other)))
        return;
    for (uint32_t c = 0; c < 3; c++) {
        EXPECT_OK(gin_open(&mp->dev, c, &g[0][c]));
        EXPECT_OK(gin_open(&other, c, &g[1][c]));
    }
    for (uint64_t i = 1; i <= 20; i++)
        for (int k = 0; k < 6; k++) { /* the same id everywhere, another value */
            const gin_t *at = &g[k / 3][k % 3];
            EXPECT_OK(gin_signal(at, gin_thread(), gin_world(at), right(mp),
                                 gin_weak_add(7, (uint64_t)k + 1)));
        }
    for (int k = 0; k < 6; k++)
        EXPECT_OK(gin_wait_signal(&g[k / 3][k % 3], gin_thread(), 7, 20 * ((uint64_t)k + 1)));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int k = 0; k < 6; k++)
        EXPECT_EQ_U64(gin_read_signal(&g[k / 3][k % 3], 7), 20 * ((uint64_t)k + 1));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &other));
    EXPECT_OK(gin_signal(&g[0][2], gin_thread(), gin_world(&mp->g), right(mp), gin_weak_inc(8)));
    EXPECT_OK(gin_wait_signal(&g[0][2], gin_thread(), 8, 1));
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* ---- memory that comes and goes ---- */

/* A block moves into a part of the heap that was not there, with its contents. */
MP_TEST_OPT(blocks_that_move, .ranks = "2", .hosts = "AB", .heap_size = 1 << 20,
            .env = "GINSHMEM_HEAP_CHUNK=1M")
{
    if (!mp_net(mp, NULL))
        return;
    size_t bytes = 4096;
    char *block = gin_malloc(mp->comm, bytes);
    for (uint32_t i = 1; i <= 5 && EXPECT(block != NULL); i++) {
        mp_poison(block, bytes, i + (uint64_t)mp->rank);
        block = gin_realloc(mp->comm, block, 4 * bytes);
        if (!EXPECT(block != NULL))
            return;
        MP_CHECK_PATTERN(block, bytes, i + (uint64_t)mp->rank);
        bytes *= 4;
        uint64_t *last = (uint64_t *)(void *)(block + bytes - 8);
        EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), right(mp),
                                gin_at_ptr(&mp->g, last), 40 + i, 8, gin_weak_inc(1)));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 1, i));
        EXPECT_EQ_U64(GIN_LOAD_RELAXED(last), 40 + i);
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    EXPECT_OK(gin_free(mp->comm, block));
}

/* What is under way to a window arrives before the window goes. */
MP_TEST_OPT(windows_go_under_traffic, .ranks = "2", .hosts = "AB")
{
    const size_t bytes = 1 << 18;
    if (!mp_net(mp, NULL))
        return;
    char *own = aligned_alloc(64, bytes), *src = malloc(bytes);
    for (uint64_t i = 1; i <= 8 && EXPECT(own != NULL && src != NULL); i++) {
        gin_window_t win;
        memset(own, 0, bytes);
        mp_poison(src, bytes, 10 * i + (uint64_t)mp->rank);
        EXPECT_OK(gin_window_register(mp->comm, own, bytes, 0, &win));
        for (size_t at = 0; at < bytes; at += bytes / 64)
            EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), right(mp), gin_at(win, at),
                              gin_at_local(src + at), bytes / 64, gin_no_action()));
        EXPECT_OK(gin_window_deregister(mp->comm, win));
        MP_CHECK_PATTERN(own, bytes, 10 * i + (uint64_t)left(mp));
        EXPECT_OK(gin_status(&mp->g));
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    free(own);
    free(src);
}

/* ---- a target that computes ---- */

/* Rank 1 makes no call until rank 0 has all it wants. */
static void compute(struct mp *mp)
{
    static const size_t sizes[] = {8, 1000, 300000};
    uint64_t old = 1, *block = NULL;
    int *over = (int *)(void *)mp->share;
    if (!mp_net(mp, NULL) || !EXPECT((block = gin_calloc(mp->comm, 1, 300008)) != NULL))
        return;
    const gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_at_t at = gin_at_ptr(g, block + 1);
    char *src = malloc(300000), *back = malloc(300000);
    mp_barrier(mp);
    for (size_t i = 0; mp->rank == 0 && i < 3 && EXPECT(src != NULL && back != NULL); i++) {
        mp_step(mp, "%zu bytes", sizes[i]);
        mp_poison(src, sizes[i], i);
        EXPECT_OK(
            gin_put(g, gin_thread(), w, 1, at, gin_at_local(src), sizes[i], gin_strong_inc(4)));
        EXPECT_OK(gin_quiet(g, gin_thread()));
        EXPECT_OK(gin_get(g, gin_thread(), w, 1, at, gin_at_local(back), sizes[i]));
        EXPECT_OK(gin_flush(g, gin_thread()));
        MP_CHECK_PATTERN(back, sizes[i], i);
        EXPECT_OK(gin_amo_fetch_add(g, gin_thread(), w, 1, gin_at_ptr(g, block), 1, &old));
        EXPECT_EQ_U64(old, i);
    }
    if (mp->rank == 0)
        __atomic_store_n(over, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(over, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    if (mp->rank == 1) {
        EXPECT_EQ_U64(gin_read_signal(g, 4), 3);
        MP_CHECK_PATTERN(block + 1, 300000, 2);
    }
    free(src);
    free(back);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, block));
}

MP_TEST_OPT(computing_target, .ranks = "2", .hosts = "AB")
{
    compute(mp);
}

MP_TEST_OPT(computing_target_net, .ranks = "2", .hosts = "AB", .env = "GINSHMEM_PROVIDER=net")
{
    compute(mp);
}

MP_TEST_OPT(computing_target_rxm, .ranks = "2", .hosts = "AB",
            .env = "GINSHMEM_PROVIDER=tcp;ofi_rxm")
{
    compute(mp);
}

MP_TEST_OPT(computing_target_shm, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = "GINSHMEM_PROVIDER=shm")
{
    compute(mp);
}
