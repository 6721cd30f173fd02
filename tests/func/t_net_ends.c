/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What host threads see when the network behind their calls fails, is late or comes up beside
 * them, on a network that is made to do so.
 */
#include <string.h>
#include <sys/mman.h>
#include "net_answer.h"
#include "net_ops.h"
#include "tests/func/made_net.h"

/* clang-format off */
/* Nothing in order, complete here long before it is there. */
static const struct gi_net_caps lazy = {
    .max_msg = 4096, .msg_max = 128, .depth = 64,
    .dc = GI_NET_DC_YES, .imm_bits = 64, .name = "lazy", .version = "0", .notes = ""};
/* Wants local memory registered. */
static const struct gi_net_caps registered = {
    .max_msg = 4096, .msg_max = 128, .depth = 64,
    .waw_bytes = GI_NET_UNLIMITED, .saw = true, .was = true, .raw = true, .sas = true,
    .imm_bits = 64, .mr_local = true, .name = "registered", .version = "0", .notes = ""};
/* Its targets move small puts themselves. */
static const struct gi_net_caps bundling = {
    .max_msg = 4096, .msg_max = 128, .depth = 64,
    .waw_bytes = GI_NET_UNLIMITED, .saw = true, .was = true, .raw = true, .sas = true,
    .imm_bits = 64, .name = "bundling", .version = "0", .notes = ""};
/* clang-format on */

/* ---- what a target refuses ---- */

/* Rank 1 refuses an operation of rank 0: that costs rank 0's context, and no window. */
MP_TEST_OPT(a_refusal_keeps_no_window, .ranks = "3", .hosts = "ABC", .only = MP_THREADS,
            .bare = true)
{
    static uint64_t words[3][2][8];
    gin_window_t one, other;
    if (!made_up(mp, &bundling) || !mp_dev(mp, NULL))
        return;
    const gin_t *g = &mp->g;
    uint64_t *mine = words[mp->rank][0], *more = words[mp->rank][1];
    EXPECT_OK(gin_window_register(mp->comm, mine, 64, 0, &one));
    EXPECT_OK(gin_window_register(mp->comm, more, 64, 0, &other));
    if (mp->rank == 0) {
        struct gi_core_ctx *ctx = gi_devcomm_of(g)->net[0];
        struct gi_core_put odd = {
            .action = {.kind = GI_CORE_SLOT_ADD, .id = 0xffff, .value = 1, .strong = true}};
        gi_core_enter(ctx);
        EXPECT_OK(gi_core_put(ctx, 1, &odd));
        gi_core_leave(ctx);
        while (gin_quiet(g, gin_thread()) == GIN_OK) /* until its word is here */
            gi_os_yield();
        EXPECT_OK(
            gin_put_value(g, gin_thread(), gin_world(g), 2, gin_at(one, 0), 7, 8, gin_no_action()));
    }
    mp_step(mp, "deregister");
    EXPECT_OK(gin_window_deregister(mp->comm, one));
    EXPECT_EQ_U64(mine[0], mp->rank == 2 ? 7 : 0); /* rank 2 still got what was for it */
    EXPECT_OK(gin_window_deregister(mp->comm, other));
    made_down(mp);
}

/* ---- waits end with the network ---- */

/* What rank 0 waits for never comes: its network has died. */
MP_TEST_OPT(waits_end_with_their_context, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true)
{
    const gin_wait_opt_t once = {.poll = 1};
    uint64_t *word = NULL;
    if (!made_up(mp, NULL) || !mp_dev(mp, NULL) ||
        !EXPECT((word = gin_calloc(mp->comm, 1, 64)) != NULL))
        return;
    const gin_t *g = &mp->g;
    gin_at_t at = gin_at_ptr(g, word);
    if (mp->rank == 0) {
        size_t which;
        const uint32_t ids[] = {1, 2};
        const uint64_t least[] = {1, 1};
        EXPECT_EQ_INT(gin_wait_signal_x(g, gin_thread(), 0, 1, &once), GIN_EAGAIN);
        EXPECT_OK(gin_status(g));
        made_fail(mp, GI_FAULT_PROGRESS, GIN_ENET);
        mp_step(mp, "waits");
        EXPECT_FAILS(gin_wait_signal(g, gin_thread(), 0, 1), GIN_ENET, "signal 0");
        EXPECT_EQ_INT(gin_status(g), GIN_ENET);
        EXPECT_FAILS(gin_wait_signal_any(g, gin_thread(), ids, least, 2, NULL, &which, NULL),
                     GIN_ENET, "signal");
        EXPECT_FAILS(gin_wait_signal_at(g, gin_thread(), at, 1, NULL), GIN_ENET, "word");
        EXPECT_FAILS(gin_wait_counter(g, gin_thread(), 3, 1), GIN_ENET, "counter 3");
        EXPECT_FAILS(gin_wait_signal_x(g, gin_thread(), 0, 1, &once), GIN_ENET, "signal 0");
        EXPECT_EQ_INT(gin_test_signal(g, gin_thread(), 0, 1), GIN_ENET);
        mp_step(mp, "barrier");
        EXPECT_FAILS(
            gin_barrier(g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE),
            GIN_ENET, "");
        EXPECT_FAILS(gin_barrier_x(g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                                   GIN_FENCE_NONE, &once),
                     GIN_ENET, "");
        mp_step(mp, "flush and quiet");
        EXPECT_FAILS(gin_put_value(g, gin_thread(), gin_world(g), 1, at, 1, 8, gin_no_action()),
                     GIN_ENET, "gin_put");
        EXPECT_FAILS(gin_quiet(g, gin_thread()), GIN_ENET, "gin_quiet");
        EXPECT_FAILS(gin_flush(g, gin_thread()), GIN_ENET, "gin_flush");
    }
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_OK(gin_free(mp->comm, word));
    made_down(mp);
}

/* Two ranks are gone, one after the other: each is called by its name. */
MP_TEST_OPT(failures_name_their_rank, .ranks = "3", .hosts = "ABC", .only = MP_THREADS,
            .bare = true)
{
    char *block = NULL;
    if (!made_up(mp, NULL) || !mp_dev(mp, NULL) ||
        !EXPECT((block = gin_calloc(mp->comm, 1, 64)) != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    gin_at_t at = gin_at_ptr(&mp->g, block);
    if (mp->rank == 0) {
        gi_core_peer_dead(mp->comm->net->core, 1, "it went first");
        gi_core_peer_dead(mp->comm->net->core, 2, "it went, too");
        struct gi_core_ctx *ctx = mp->comm->devcomms->net[0];
        while (gi_core_peer_status(ctx, 1, NULL) == GIN_OK ||
               gi_core_peer_status(ctx, 2, NULL) == GIN_OK)
            gi_net_progress(mp->comm);
        EXPECT_FAILS(gin_put_value(&mp->g, gin_thread(), w, 1, at, 1, 8, gin_no_action()),
                     GIN_EPEER, "rank 1");
        EXPECT_FAILS(gin_put_value(&mp->g, gin_thread(), w, 2, at, 1, 8, gin_no_action()),
                     GIN_EPEER, "rank 2");
    }
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

/* Even the first small put shares a message, if others are promised to follow. */
static void first_put(struct mp *mp, uint32_t backend)
{
    gin_op_opt_t more = {.flags = GIN_MORE};
    gin_stats_t stats = {.size_of = sizeof(stats)};
    gin_devcomm_reqs_t reqs;
    uint64_t *word = NULL;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = backend;
    if (!made_up(mp, &bundling) || !mp_dev(mp, &reqs) ||
        !EXPECT((word = gin_calloc(mp->comm, 1, 64)) != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    if (mp->rank == 0) {
        EXPECT_OK(gin_put_value_x(&mp->g, gin_thread(), w, 1, gin_at_ptr(&mp->g, word), 7, 8,
                                  gin_weak_inc(0), &more));
        EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
        EXPECT_OK(gin_stats(mp->comm, &stats));
        EXPECT_EQ_U64(stats.net_bundled, 1);
    } else {
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, 1));
        EXPECT_EQ_U64(*word, 7);
    }
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

MP_TEST_OPT(more_is_a_promise, .ranks = "2", .hosts = "AB", .only = MP_THREADS, .bare = true)
{
    first_put(mp, GIN_BACKEND_DIRECT);
}

MP_TEST_OPT(more_is_a_promise_to_engines, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true)
{
    first_put(mp, GIN_BACKEND_ENGINE);
}

static void *let_it_take(void *arg)
{
    gi_os_sleep_ns(20000000);
    gi_fault_peer(arg, 1, GI_FAULT_PEER_WELL);
    return NULL;
}

/* One context is dead; what is queued on the next one is waited for nevertheless. */
MP_TEST_OPT(quiet_goes_past_a_dead_context, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true)
{
    static uint64_t *word[2];
    pthread_t thread;
    gin_t next;
    if (!made_up(mp, NULL) || !mp_dev(mp, NULL) ||
        !EXPECT((word[mp->rank] = gin_calloc(mp->comm, 1, 64)) != NULL))
        return;
    EXPECT_OK(gin_open(&mp->dev, 1, &next));
    mp_barrier(mp);
    if (mp->rank == 0) {
        struct gi_core_ctx *first = mp->comm->devcomms->net[0];
        gi_core_enter(first);
        gi_core_ctx_fail(first, GIN_ENET, "made to fail");
        gi_core_leave(first);
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
        EXPECT_OK(gin_put_value(&next, gin_thread(), gin_world(&next), 1,
                                gin_at_ptr(&next, word[0]), 7, 8, gin_no_action()));
        EXPECT_EQ_INT(pthread_create(&thread, NULL, let_it_take, made.rank[0].domain), 0);
        EXPECT_FAILS(gi_net_quiet_all(mp->comm, "quiet"), GIN_ENET, "made to fail");
        EXPECT_EQ_U64(GIN_LOAD_ACQUIRE(word[1]), 7);
        pthread_join(thread, NULL);
    }
    mp_barrier(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

/* ---- the time limit of a device communicator ---- */

static bool made_up_with_limit(struct mp *mp, uint64_t **words)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.wait_timeout_ns = 100000000;
    return made_up(mp, NULL) && mp_dev(mp, &reqs) &&
           EXPECT((*words = gin_calloc(mp->comm, 8, 8)) != NULL) &&
           EXPECT_OK(gin_comm_barrier(mp->comm));
}

static void down_with_limit(struct mp *mp)
{
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

/* What is under way may last longer. */
static void quiet_at_last(const gin_t *g)
{
    int st;
    do
        st = gin_quiet(g, gin_thread());
    while (st == GIN_ETIMEDOUT);
    EXPECT_OK(st);
}

MP_TEST_OPT(no_room_until_the_limit, .ranks = "2", .hosts = "AB", .only = MP_THREADS, .bare = true)
{
    uint64_t *words, last = 0;
    int st = GIN_OK;
    if (!made_up_with_limit(mp, &words))
        return;
    gin_t *g = &mp->g;
    gin_at_t at = gin_at_ptr(g, words);
    if (mp->rank == 0) {
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
        while (st == GIN_OK && last < 100000)
            st = gin_put_value(g, gin_thread(), gin_world(g), 1, at, ++last, 8, gin_no_action());
        EXPECT_EQ_INT(st, GIN_ETIMEDOUT);
        EXPECT(strstr(gin_last_error(), "no room") != NULL);
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_WELL);
        quiet_at_last(g);
    }
    EXPECT_OK(gin_comm_allgather(mp->comm, &last, words + 2, 8));
    if (mp->rank == 1)
        EXPECT_EQ_U64(words[0], words[2] - 1);
    down_with_limit(mp);
}

/* An answer that comes when nobody waits for it any more is not the next one's. */
MP_TEST_OPT(answers_after_the_limit, .ranks = "2", .hosts = "AB", .only = MP_THREADS, .bare = true)
{
    uint64_t *words, old = 7;
    int st;
    if (!made_up_with_limit(mp, &words))
        return;
    gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    gin_at_t at = gin_at_ptr(g, words);
    if (mp->rank == 0) {
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
        for (uint64_t v = 1; v <= 10; v *= 10) {
            const struct gi_net_answer *place = gi_net_answer_take();
            EXPECT_FAILS(gin_amo_fetch_add(g, gin_thread(), w, 1, at, v, &old), GIN_ETIMEDOUT,
                         "has not answered");
            EXPECT(gi_net_answer_take() != place); /* which it may come to yet */
        }
        EXPECT_EQ_U64(old, 7);
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_WELL);
        do
            st = gin_amo_fetch_add(g, gin_thread(), w, 1, at, 0, &old);
        while (st == GIN_ETIMEDOUT);
        EXPECT_OK(st);
        EXPECT_EQ_U64(old, 11);
        quiet_at_last(g);
    }
    down_with_limit(mp);
}

/* What follows a fence to a load/store peer waits for what the network still has for it. */
MP_TEST_OPT(near_ones_settle_until_the_limit, .ranks = "3", .hosts = "AAB", .only = MP_THREADS,
            .bare = true)
{
    const gin_op_opt_t nic = {.flags = GIN_NIC_ONLY};
    uint64_t *words;
    if (!made_up_with_limit(mp, &words))
        return;
    gin_t *g = &mp->g;
    gin_team_t w = gin_world(g);
    if (mp->rank == 0) {
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_AGAIN);
        EXPECT_OK(gin_put_value_x(g, gin_thread(), w, 1, gin_at_ptr(g, words), 7, 8,
                                  gin_no_action(), &nic));
        EXPECT_FAILS(gin_fence(g, gin_thread(), w, 1), GIN_ETIMEDOUT, "not complete");
        EXPECT_FAILS(gin_signal(g, gin_thread(), w, 1, gin_strong_inc(0)), GIN_ETIMEDOUT,
                     "not complete");
        gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_WELL);
        quiet_at_last(g);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 1) {
        EXPECT_EQ_U64(words[0], 7);
        EXPECT_EQ_U64(gin_read_signal(g, 0), 0);
    }
    down_with_limit(mp);
}

/* ---- registrations that an operation borrowed ---- */

/* The peer takes nothing: the wait gives up, and the network still has the memory. */
MP_TEST_OPT(lent_memory_outlives_a_timeout, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true, .env = "GINSHMEM_COLL_TIMEOUT=10s")
{
    static char src[4096], dst[4096];
    struct made_rank *m = &made.rank[mp->rank];
    gin_devcomm_reqs_t reqs;
    char *block = NULL;
    gin_devcomm_reqs_init(&reqs);
    reqs.wait_timeout_ns = 20000000;
    if (!made_up(mp, &registered) || !mp_dev(mp, &reqs) ||
        !EXPECT((block = gin_calloc(mp->comm, 1, 4096)) != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    gin_at_t at = gin_at_ptr(&mp->g, block);
    if (mp->rank == 0) {
        EXPECT_OK(
            gin_put(&mp->g, gin_thread(), w, 1, at, gin_at_local(src), 4000, gin_no_action()));
        EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        while (atomic_load(&m->deregs) == 0) /* given back by whoever polls */
            EXPECT_OK(gin_flush(&mp->g, gin_thread()));
        int had = atomic_load(&m->deregs);
        gi_fault_peer(m->domain, 1, GI_FAULT_PEER_SILENT);
        EXPECT_OK(
            gin_put(&mp->g, gin_thread(), w, 1, at, gin_at_local(src), 4096, gin_no_action()));
        EXPECT_FAILS(gin_flush(&mp->g, gin_thread()), GIN_ETIMEDOUT, "gin_flush");
        EXPECT_OK(gin_get(&mp->g, gin_thread(), w, 1, at, gin_at_local(dst), 4096));
        EXPECT_FAILS(gin_flush(&mp->g, gin_thread()), GIN_ETIMEDOUT, "gin_flush");
        uint64_t old = 7;
        EXPECT_FAILS(gin_amo_fetch_add(&mp->g, gin_thread(), w, 1, at, 1, &old), GIN_ETIMEDOUT,
                     "rank 1 has not answered");
        EXPECT_EQ_U64(old, 7);
        EXPECT_EQ_INT(atomic_load(&m->deregs), had);
        mp_barrier(mp);
        mp_step(mp, "destroy");
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
        EXPECT(atomic_load(&m->deregs) >= had + 2);
    } else {
        mp_barrier(mp);
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    }
    made_down(mp);
}

/* The network fails of an operation and may still be at it. */
MP_TEST_OPT(lent_memory_outlives_a_failure, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true, .env = "GINSHMEM_COLL_TIMEOUT=10s")
{
    static char dst[4096];
    struct made_rank *m = &made.rank[mp->rank];
    char *block = NULL;
    if (!made_up(mp, &registered) || !mp_dev(mp, NULL) ||
        !EXPECT((block = gin_calloc(mp->comm, 1, 4096)) != NULL))
        return;
    if (mp->rank == 0) {
        struct gi_fault_plan plan = {.provider_error = 5, .seed = 1};
        plan.first[GI_FAULT_READ] = plan.count[GI_FAULT_READ] = 1;
        plan.status[GI_FAULT_READ] = GIN_ENET;
        gi_fault_set(m->domain, &plan);
        int had = atomic_load(&m->deregs);
        EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), 1, gin_at_ptr(&mp->g, block),
                          gin_at_local(dst), 4096));
        EXPECT_FAILS(gin_flush(&mp->g, gin_thread()), GIN_ENET, "made to fail");
        EXPECT_EQ_INT(atomic_load(&m->deregs), had);
        mp_barrier(mp);
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
        EXPECT(atomic_load(&m->deregs) > had);
    } else {
        mp_barrier(mp);
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    }
    made_down(mp);
}

/* What was posted to rank r: by all of a context, or by the rank. */
static int done_with(struct mp *mp, int r, int round)
{
    return round % 2 == 0 ? gin_flush(&mp->g, gin_thread())
                          : gin_flush_peer(&mp->g, gin_thread(), gin_world(&mp->g), r);
}

/* Other memory at an address that was registered before: what is there now is what arrives. An
 * engine's ring is passed by. */
static void map_anew(struct mp *mp, uint32_t backend)
{
    const size_t bytes = 64 << 10;
    char *block = NULL;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = backend;
    made.rank[mp->rank].plan.hold = 8; /* a post is not done because it was made */
    if (!made_up(mp, &registered) || !mp_dev(mp, &reqs) ||
        !EXPECT((block = gin_calloc(mp->comm, 1, bytes)) != NULL))
        return;
    gin_team_t w = gin_world(&mp->g);
    int peer = 1 - mp->rank;
    char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 1; round <= 20 && EXPECT(at != MAP_FAILED); round++) {
        EXPECT(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0) == at);
        memset(at, round, bytes);
        EXPECT_OK(gin_put(&mp->g, gin_thread(), w, peer, gin_at_ptr(&mp->g, block),
                          gin_at_local(at), bytes, gin_strong_inc(1)));
        EXPECT_OK(done_with(mp, peer, round));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 1, (uint64_t)round));
        EXPECT_FILLED(block, bytes, round);
        EXPECT(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0) == at);
        EXPECT_OK(gin_get(&mp->g, gin_thread(), w, peer, gin_at_ptr(&mp->g, block),
                          gin_at_local(at), bytes));
        EXPECT_OK(done_with(mp, peer, round));
        EXPECT_FILLED(at, bytes, round);
        EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
    }
    munmap(at, bytes);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_OK(gin_free(mp->comm, block));
    made_down(mp);
}

MP_TEST_OPT(memory_mapped_anew, .ranks = "2", .hosts = "AB", .only = MP_THREADS, .bare = true)
{
    map_anew(mp, GIN_BACKEND_AUTO);
}

MP_TEST_OPT(memory_mapped_anew_beside_a_ring, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true)
{
    map_anew(mp, GIN_BACKEND_ENGINE);
}

/* ---- teardown ---- */

static const struct gin_i_dc *closing_dc[MADE_RANKS];
static atomic_int closed_late;

static void look_at_dc(int rank)
{
    if (closing_dc[rank] != NULL && closing_dc[rank]->magic != GIN_DEVCOMM_MAGIC)
        atomic_fetch_add(&closed_late, 1);
}

/* What the network may still write to goes after its contexts. */
MP_TEST_OPT(contexts_close_before_their_memory, .ranks = "2", .hosts = "AB", .only = MP_THREADS,
            .bare = true)
{
    if (!made_up(mp, NULL) || !mp_dev(mp, NULL))
        return;
    closing_dc[mp->rank] = mp->g.dc;
    made.rank[mp->rank].on_lane_close = look_at_dc;
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_EQ_INT(atomic_load(&closed_late), 0);
    made.rank[mp->rank].on_lane_close = NULL;
    made_down(mp);
}

/* ---- a network that comes up under a wait ---- */

static void *wait_for_signal(void *arg)
{
    struct mp *mp = arg;
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 5, 1));
    return NULL;
}

MP_TEST_OPT(a_wait_older_than_the_network, .ranks = "2", .only = MP_THREADS, .bare = true)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t far;
    pthread_t thread;
    gin_devcomm_reqs_init(&reqs);
    reqs.paths = GIN_PATH_NET;
    if (!made_up(mp, NULL) || !mp_dev(mp, NULL))
        return;
    uint64_t waits = atomic_load(&mp->comm->n_waits);
    EXPECT_EQ_INT(pthread_create(&thread, NULL, wait_for_signal, mp), 0);
    while (atomic_load(&mp->comm->n_waits) == waits)
        gi_os_yield();
    EXPECT_OK(gin_devcomm_create(mp->comm, &reqs, &far));
    EXPECT(mp->comm->net != NULL);
    EXPECT_OK(gin_signal(&mp->g, gin_thread(), gin_world(&mp->g), 1 - mp->rank, gin_weak_inc(5)));
    pthread_join(thread, NULL);
    /* and the older device communicator says why it does not use it */
    gin_op_opt_t nic = {.flags = GIN_NIC_ONLY};
    EXPECT_FAILS(
        gin_signal_x(&mp->g, gin_thread(), gin_world(&mp->g), 1 - mp->rank, gin_weak_inc(6), &nic),
        GIN_ENOTSUP, "after this device communicator");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &far));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
}

/* ---- a fence between two paths ---- */

/* The heap by the network, user memory by process_vm calls: nothing but the fence orders them. */
MP_TEST_OPT(fence_before_process_vm, .ranks = "2", .only = MP_THREADS, .bare = true,
            .env = "GINSHMEM_DISABLE_LSA=1")
{
    static uint64_t own[2][8];
    static uint64_t *heap[2];
    gin_window_t win;
    struct made_rank *m = &made.rank[mp->rank];
    m->plan.hold = 16;
    m->plan.early = true;
    if (!made_up(mp, &lazy) || !mp_dev(mp, NULL) ||
        !EXPECT((heap[mp->rank] = gin_calloc(mp->comm, 64, 8)) != NULL))
        return;
    EXPECT_OK(gin_window_register(mp->comm, own[mp->rank], sizeof(own[0]), 0, &win));
    bool cma = gin_window_path(mp->comm, win, 1 - mp->rank) == GIN_PATH_CMA;
    gin_team_t w = gin_world(&mp->g);
    for (uint64_t i = 1; cma && mp->rank == 0 && i <= 200; i++) {
        EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, 1, gin_at_ptr(&mp->g, heap[0] + i % 64), i,
                                8, gin_no_action()));
        EXPECT_OK(i % 2 ? gin_fence(&mp->g, gin_thread(), w, 1)
                        : gin_fence_all(&mp->g, gin_thread()));
        EXPECT_OK(gin_put_value(&mp->g, gin_thread(), w, 1, gin_at(win, 8), i, 8, gin_no_action()));
        EXPECT_EQ_U64(GIN_LOAD_ACQUIRE(&own[1][1]), i);
        EXPECT_EQ_U64(GIN_LOAD_RELAXED(heap[1] + i % 64), i);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    made_down(mp);
    if (!cma)
        mp_skip(mp, "no process_vm calls");
}

/* ---- ranks that do not meet ---- */

/* Over a network that asks for it: rank 0 cannot reach anybody, or is not heard, and all say so. */
static void meet_badly(struct mp *mp, int status)
{
    struct gi_net_caps caps = lazy;
    void *block;
    gin_devcomm_t dev;
    caps.meet_early = true;
    if (!made_up(mp, &caps) || !EXPECT((block = gin_malloc(mp->comm, 64)) != NULL))
        return;
    if (status == GIN_ETIMEDOUT) {
        mp->comm->env.init_timeout = 1500000000;
        if (mp->rank == 0)
            gi_fault_peer(made.rank[0].domain, 1, GI_FAULT_PEER_SILENT);
    } else if (mp->rank == 0) {
        made_fail(mp, GI_FAULT_PROGRESS, status);
    }
    mp_step(mp, "meets");
    EXPECT_FAILS(gin_devcomm_create(mp->comm, NULL, &dev), status,
                 status == GIN_ENET ? "do not meet: rank 0 on host" : "do not meet: rank ");
    if (status == GIN_ETIMEDOUT)
        EXPECT_HAS(gin_last_error(), "have not answered");
    made_down(mp);
}

MP_TEST_OPT(a_rank_that_reaches_nobody, .ranks = "2 3", .hosts = "ABC", .only = MP_THREADS,
            .bare = true)
{
    meet_badly(mp, GIN_ENET);
}

MP_TEST_OPT(a_rank_that_nobody_hears, .ranks = "2 3", .hosts = "ABC", .only = MP_THREADS,
            .bare = true)
{
    meet_badly(mp, GIN_ETIMEDOUT);
}
