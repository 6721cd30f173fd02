/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of the backend ENGINE over the network: many threads that write descriptors into one
 * small ring, all checked exactly; an engine that sleeps and is woken; descriptors that make no
 * sense, which kill their context; more contexts than a sleep once had room for.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_net.h"
#include "net_drive.h"
#include "tests/mp.h"
#include "transport/core_int.h"

#define THREADS 6u
#define ROUNDS  64u
#define EACH    64u /* words of a thread */
#define THREE   "GINSHMEM_ENGINE_THREADS=3"

static bool up(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    reqs->backend = GIN_BACKEND_ENGINE;
    return mp_net(mp, reqs);
}

/* ---- many producers ---- */

struct thread {
    struct mp *mp;
    uint32_t me, contexts;
    uint64_t *words; /* ranks x threads x EACH, then a sum, then a word per thread */
    uint64_t sum;    /* what it added */
    char why[160];
};

static int fail(struct thread *t, int st, const char *what, uint64_t i)
{
    if (st != GIN_OK && t->why[0] == 0)
        snprintf(t->why, sizeof(t->why), "%s, round %llu: %s: %.90s", what, (unsigned long long)i,
                 gin_status_name(st), gin_last_error());
    return st;
}

static uint64_t *area(const struct thread *t, int rank, uint32_t thread)
{
    return t->words + ((uint64_t)rank * THREADS + thread) * EACH;
}

static uint64_t *sum_of(const struct thread *t)
{
    return area(t, t->mp->size, 0);
}

static int wrong(struct thread *t, uint64_t got, uint64_t wanted, const char *what, uint64_t i)
{
    if (got != wanted && t->why[0] == 0)
        snprintf(t->why, sizeof(t->why), "%s, round %llu: %llu instead of %llu", what,
                 (unsigned long long)i, (unsigned long long)got, (unsigned long long)wanted);
    return got != wanted;
}

/* One round: values, a signal, a counter, an atomic with and without its old value. */
static int round_of(struct thread *t, gin_t *g, uint64_t i, uint64_t *rng)
{
    static const gin_op_opt_t count = {.local = {1, 3}};
    const int right = (t->mp->rank + 1) % t->mp->size;
    gin_team_t w = gin_world(g);
    uint64_t old = 0, *mine = area(t, t->mp->rank, t->me), add = pt_random(rng) % 1000;
    gin_at_t sum = gin_at_ptr(g, sum_of(t)), own = gin_at_ptr(g, sum_of(t) + 1 + t->me);
    int st = fail(t,
                  gin_put_value(g, gin_thread(), w, right, gin_at_ptr(g, &mine[i % EACH]), i, 8,
                                gin_weak_add(t->me % 2, 1)),
                  "put_value", i);
    if (st == GIN_OK)
        st = fail(t, gin_signal_x(g, gin_thread(), w, right, gin_strong_inc(2), &count), "signal",
                  i);
    if (st == GIN_OK)
        st = fail(t, gin_amo_add(g, gin_thread(), w, right, sum, add), "add", i);
    t->sum += add;
    if (st == GIN_OK && i % 16 == 0)
        st = fail(t, gin_amo_fetch_add(g, gin_thread(), w, right, own, 5, &old), "fetch_add", i);
    if (st == GIN_OK && i % 16 == 0 && wrong(t, old, i / 16 * 5, "fetch_add", i))
        return GIN_ESTATE;
    if (st == GIN_OK && pt_random(rng) % 32 == 0)
        st = fail(t, pt_random(rng) % 2 ? gin_quiet(g, gin_thread()) : gin_flush(g, gin_thread()),
                  "completion", i);
    return st;
}

/* In the end what is there is fetched back, too. */
static void *work(void *arg)
{
    struct thread *t = arg;
    uint64_t rng = t->mp->rng + t->me, *mine = area(t, t->mp->rank, t->me), back[EACH];
    const int right = (t->mp->rank + 1) % t->mp->size;
    gin_request_t req;
    gin_t g;
    int st = fail(t, gin_open(&t->mp->dev, t->me % t->contexts, &g), "open", 0);
    for (uint64_t i = 0; st == GIN_OK && i < ROUNDS; i++)
        st = round_of(t, &g, i, &rng);
    if (st != GIN_OK || fail(t, gin_quiet(&g, gin_thread()), "quiet", 0) != GIN_OK ||
        fail(t,
             gin_get(&g, gin_thread(), gin_world(&g), right, gin_at_ptr(&g, mine),
                     gin_at_local(back), sizeof(back)),
             "get", 0) != GIN_OK ||
        fail(t, gin_flush_async(&g, gin_thread(), gin_world(&g), right, &req), "async", 0) !=
            GIN_OK)
        return NULL;
    while ((st = gin_test(&g, gin_thread(), &req)) == GIN_EAGAIN)
        ;
    fail(t, st, "test", 0);
    for (uint64_t i = ROUNDS - EACH; i < ROUNDS; i++)
        wrong(t, back[i % EACH], i, "got", i);
    return NULL;
}

/* What threads of the ranks to the left left in a context's signals and my own in its counter. */
static void check_context(struct mp *mp, uint32_t c, uint32_t contexts)
{
    uint64_t each[2] = {0, 0};
    gin_t g;
    for (uint32_t k = c; k < THREADS; k += contexts)
        each[k % 2] += ROUNDS;
    EXPECT_OK(gin_open(&mp->dev, c, &g));
    EXPECT_EQ_U64(gin_read_signal(&g, 0), each[0]);
    EXPECT_EQ_U64(gin_read_signal(&g, 1), each[1]);
    EXPECT_EQ_U64(gin_read_signal(&g, 2), each[0] + each[1]);
    EXPECT_EQ_U64(gin_read_counter(&g, 3), each[0] + each[1]);
}

static void stress(struct mp *mp, uint32_t depth, uint32_t contexts)
{
    struct thread t[THREADS];
    pthread_t thread[THREADS];
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.queue_depth = depth;
    reqs.contexts = contexts;
    if (!up(mp, &reqs))
        return;
    const int left = (mp->rank + mp->size - 1) % mp->size;
    const uint64_t n = ((uint64_t)mp->size * THREADS + 1) * EACH;
    uint64_t *words = gin_calloc(mp->comm, n, 8), *sums = (uint64_t *)(void *)mp->share;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint32_t i = 0; i < THREADS; i++) {
        t[i] = (struct thread){.mp = mp, .me = i, .contexts = contexts, .words = words};
        pthread_create(&thread[i], NULL, work, &t[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        EXPECT_EQ_STR(t[i].why, "");
        __atomic_fetch_add(&sums[mp->rank], t[i].sum, __ATOMIC_RELAXED);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint32_t c = 0; c < contexts; c++)
        check_context(mp, c, contexts);
    EXPECT_EQ_U64(GIN_LOAD_ACQUIRE(sum_of(&t[0])), sums[left]);
    for (uint32_t k = 0; k < THREADS; k++)
        for (uint64_t i = ROUNDS - EACH; i < ROUNDS; i++)
            if (!EXPECT_EQ_U64(area(&t[0], left, k)[i % EACH], i))
                return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
}

MP_TEST_OPT(many_threads_in_a_narrow_ring, .ranks = "2 3", .hosts = "ABC")
{
    stress(mp, 4, 1);
}

MP_TEST_OPT(many_threads_in_a_wide_ring, .ranks = "2", .hosts = "AB")
{
    stress(mp, 0, 1);
}

MP_TEST_OPT(many_threads_on_some_contexts, .ranks = "2 3", .hosts = "ABC")
{
    stress(mp, 16, 4);
}

MP_TEST_OPT(many_threads_and_engine_threads, .ranks = "2 3", .hosts = "ABC", .env = THREE)
{
    stress(mp, 16, 4);
}

MP_TEST_OPT(more_engine_threads_than_contexts, .ranks = "2", .hosts = "AB", .env = THREE)
{
    stress(mp, 0, 1);
}

/* ---- sleeping ---- */

/* A thread that neither waits nor polls: what it posts leaves all the same, and what comes is
 * there in memory. */
static bool see(const uint64_t *word, uint64_t value)
{
    for (int i = 0; i < 30000 * MP_FACTOR && GIN_LOAD_ACQUIRE(word) != value; i++)
        usleep(1000);
    return EXPECT_EQ_U64(GIN_LOAD_ACQUIRE(word), value);
}

/* The threads that drive this rank's contexts are all asleep, or on their way there. */
static bool asleep(const struct mp *mp)
{
    const struct gi_devcomm *d = mp->g.dc->priv;
    const struct gi_core *core = d->comm->net->core;
    int awake = 1;
    for (int i = 0; i < 30000 * MP_FACTOR && awake != 0; i++) {
        usleep(1000);
        awake = 0;
        for (uint32_t k = 0; k < core->config.drivers; k++)
            awake += atomic_load(&core->asleep[k]) == 0;
    }
    return EXPECT_EQ_INT(awake, 0);
}

/*
 * One rank posts, with an engine that sleeps for longer than the other one waits, unless it is
 * woken; the other one's sleeps as it always does. Then the other way round.
 */
static void wake(struct mp *mp)
{
    enum { CONTEXTS = 3, TIMES = 4 };
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = CONTEXTS;
    if (!up(mp, &reqs))
        return;
    uint64_t *word = gin_calloc(mp->comm, CONTEXTS, 8);
    gin_t g;
    for (int who = 0; who < 2; who++) {
        EXPECT_OK(gin_comm_barrier(mp->comm));
        gi_net_sleep_long(who == mp->rank ? 3600000000000u : 0);
        for (uint64_t i = 1; i <= CONTEXTS * TIMES; i++) {
            const uint32_t c = i % CONTEXTS;
            EXPECT_OK(gin_open(&mp->dev, c, &g));
            if (who == mp->rank &&
                (!asleep(mp) ||
                 !EXPECT_OK(gin_put_value(&g, gin_thread(), gin_world(&g), !mp->rank,
                                          gin_at_ptr(&g, &word[c]), i, 8, gin_no_action()))))
                return;
            if (who != mp->rank && !see(&word[c], i))
                return;
            mp_barrier(mp);
        }
        gi_net_sleep_long(0);
        for (uint32_t c = 0; c < CONTEXTS; c++)
            gi_core_wake(((const struct gi_devcomm *)mp->g.dc->priv)->net[c]);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(the_engine_is_woken, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    wake(mp);
}

MP_TEST_OPT(each_engine_thread_is_woken, .ranks = "2", .hosts = "AB", .env = THREE,
            .only = MP_PROCS)
{
    wake(mp);
}

/* ---- descriptors without meaning ---- */

static void bad_descriptors(struct mp *mp)
{
    enum { BAD = 10 };
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = BAD + 1;
    if (!up(mp, &reqs))
        return;
    const struct gi_devcomm *d = mp->g.dc->priv;
    uint64_t *word = gin_calloc(mp->comm, 2, 8);
    gin_at_t at = gin_at_ptr(&mp->g, word);
    struct gin_i_op bad[BAD];
    static const int status[BAD] = {GIN_ERANGE, GIN_ESTATE, GIN_ERANGE, GIN_ERANGE, GIN_EINVAL,
                                    GIN_ERANGE, GIN_ERANGE, GIN_EINVAL, GIN_EINVAL, GIN_EINVAL};
    for (int i = 0; i < BAD; i++)
        bad[i] = (struct gin_i_op){.op = GIN_I_DESC_PUT_VALUE,
                                   .peer = (uint32_t)!mp->rank,
                                   .dst_win = gin_i_desc_window(at.win),
                                   .dst_off = at.off,
                                   .size = 8};
    bad[0].dst_off = 1ull << 50;
    bad[1].dst_win ^= 1u << 20; /* another generation */
    bad[2].peer = 2;
    bad[3].flags = GIN_I_DESC_SLOT;
    bad[3].sig_off = 64;
    bad[4].op = 13;
    bad[5].flags = GIN_I_DESC_COUNTER;
    bad[5].counter = 64;
    bad[6].size = 9;
    for (int i = 7; i < 9; i++) {
        bad[i].op = GIN_I_DESC_PUT;
        bad[i].flags = GIN_I_DESC_LOCAL;
        bad[i].size = 64;
    }
    bad[8].src_off = ((uint64_t)1 << 57) - 8;
    bad[9].op = GIN_I_DESC_AMO;
    bad[9].size = (uint64_t)(uintptr_t)word; /* an old value, and nobody to tell */
    for (uint32_t c = 0; c < BAD; c++) {
        gin_t g;
        EXPECT_OK(gin_open(&mp->dev, c, &g));
        EXPECT_OK(gi_net_ring_post(&d->rings[c], &bad[c], "test"));
        EXPECT_FAILS(gin_flush(&g, gin_thread()), status[c], "is dead");
        EXPECT_EQ_INT(gin_status(&g), status[c]);
        EXPECT_FAILS(
            gin_put_value(&g, gin_thread(), gin_world(&g), !mp->rank, at, 5, 8, gin_no_action()),
            status[c], "is dead");
        EXPECT_FAILS(gin_quiet(&g, gin_thread()), status[c], "is dead");
    }
    gin_t g;
    EXPECT_OK(gin_open(&mp->dev, BAD, &g));
    EXPECT_OK(gin_put_value(&g, gin_thread(), gin_world(&g), !mp->rank, at, 6, 8, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, 1));
    EXPECT_EQ_U64(word[0], 6);
    EXPECT_FAILS(gin_comm_barrier(mp->comm), GIN_ERANGE, "context 0 is dead");
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
}

MP_TEST_OPT(a_bad_descriptor_kills_its_context, .ranks = "2", .hosts = "AB")
{
    bad_descriptors(mp);
}

MP_TEST_OPT(bad_descriptors_and_engine_threads, .ranks = "2", .hosts = "AB", .env = THREE)
{
    bad_descriptors(mp);
}

/* ---- many contexts ---- */

static void many_contexts(struct mp *mp)
{
    enum { N = 70 };
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = N;
    reqs.queue_depth = 4;
    if (!up(mp, &reqs))
        return;
    uint64_t *word = gin_calloc(mp->comm, N, 8);
    usleep(60000); /* asleep, on all of them */
    for (uint32_t c = 0; c < N; c++) {
        gin_t g;
        EXPECT_OK(gin_open(&mp->dev, c, &g));
        EXPECT_OK(gin_put_value(&g, gin_thread(), gin_world(&g), !mp->rank,
                                gin_at_ptr(&g, &word[c]), c + 1, 8, gin_no_action()));
    }
    for (uint32_t c = 0; c < N; c++)
        if (!see(&word[c], c + 1))
            return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(more_contexts_than_descriptors_once, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    many_contexts(mp);
}

MP_TEST_OPT(many_contexts_and_engine_threads, .ranks = "2", .hosts = "AB", .env = THREE,
            .only = MP_PROCS)
{
    many_contexts(mp);
}
