/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors to ranks that only the network reaches, written as a kernel would: because their
 * hosts are others, or because the device communicator leaves load and store out of its paths.
 */
#include "tests/cuda/engine_test.h"

#define BYTES (32 * K)

/* All by the network, wherever a rank is. */
static bool far_dev(struct mp *mp)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.paths = GIN_PATH_SELF | GIN_PATH_NET;
    return cuda_dev(mp, &r);
}

static int right_of(const struct mp *mp)
{
    return (mp->rank + 1) % mp->size;
}

static int left_of(const struct mp *mp)
{
    return (mp->rank + mp->size - 1) % mp->size;
}

/* Everything is at its targets, because it was asked for. */
static void quiet(struct producer *p)
{
    struct gin_i_op o = {.op = GIN_I_DESC_QUIET};
    post(p, &o);
    wait_word(&p->ring->host->settled, p->ring->ticket);
    EXPECT_EQ_U64(p->ring->host->done, p->ring->ticket);
    EXPECT_EQ_U64(p->ring->host->error, 0);
}

static uint64_t raised(const struct producer *p, uint32_t id)
{
    const struct gin_i_cells *s = &p->ctx->host_signals[id];
    return __atomic_load_n(&s->cpu, __ATOMIC_ACQUIRE) + __atomic_load_n(&s->net, __ATOMIC_ACQUIRE);
}

static bool wait_signal(const struct producer *p, uint32_t id, uint64_t least)
{
    for (int i = 0; i < 20000 * MP_FACTOR && raised(p, id) < least; i++)
        usleep(500);
    return EXPECT(raised(p, id) >= least);
}

/* All sizes, with weak and strong signals and counters; read back. */
static void move(struct mp *mp)
{
    static const uint64_t sizes[] = {1, 8, 16, 17, 255, 256, 257, 1000, 4096, BYTES};
    char *h = gin_calloc(mp->comm, 3, BYTES);
    struct producer p = producer(mp, 1);
    uint32_t n = sizeof(sizes) / sizeof(sizes[0]);
    for (uint32_t i = 0; i < n && pt_failures() == 0; i++) {
        mp_step(mp, "%llu bytes", (unsigned long long)sizes[i]);
        mp_poison(h, sizes[i], 100 * i + (uint64_t)mp->rank);
        struct gin_i_op o = put_op(mp, right_of(mp), h + BYTES, h, sizes[i]);
        with_signal(&o, 3, 2, i % 2 == 0);
        o.flags |= GIN_I_DESC_COUNTER;
        o.counter = 7;
        post(&p, &o);
        wait_signal(&p, 3, 2 * (i + 1));
        MP_CHECK_PATTERN(h + BYTES, sizes[i], 100 * i + (uint64_t)left_of(mp));
        wait_word(&p.ctx->host_counters[7], i + 1);
        o = (struct gin_i_op){.op = GIN_I_DESC_GET,
                              .peer = (uint32_t)right_of(mp),
                              .size = sizes[i],
                              .flags = GIN_I_DESC_COUNTER,
                              .counter = 8};
        at(mp, h + 2 * BYTES, &o.dst_win, &o.dst_off);
        at(mp, h, &o.src_win, &o.src_off);
        mp_poison(h + 2 * BYTES, sizes[i], 5);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        post(&p, &o);
        wait_word(&p.ctx->host_counters[8], i + 1);
        MP_CHECK_PATTERN(h + 2 * BYTES, sizes[i], 100 * i + (uint64_t)right_of(mp));
        quiet(&p);
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    EXPECT_EQ_U64(raised(&p, 3), 2 * n);
    EXPECT_EQ_U64(p.ctx->host_counters[7], n);
}

MP_TEST_OPT(far_hosts, .ranks = "2 3", .hosts = "ABC")
{
    if (cuda_dev(mp, NULL))
        move(mp);
}

MP_TEST_OPT(near_and_far, .ranks = "4", .hosts = "AABB")
{
    if (cuda_dev(mp, NULL))
        move(mp);
}

MP_TEST_N(all_paths_but_load_and_store, "2 3")
{
    if (far_dev(mp))
        move(mp);
}

/* Values, words and atomics of all kinds, and what they bring back. */
static void words(struct mp *mp)
{
    uint64_t *h = gin_calloc(mp->comm, 16, 8);
    struct producer p = producer(mp, 0);
    const uint64_t big = 0x9123456789abcdefull;
    const uint32_t right = (uint32_t)right_of(mp);
    struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = right, .immediate = big, .size = 8};
    EXPECT_OK(gin_comm_barrier(mp->comm));
    at(mp, &h[0], &o.dst_win, &o.dst_off);
    with_signal(&o, 1, 1, false);
    post(&p, &o);
    o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL, .peer = right, .value = big};
    o.flags = GIN_I_DESC_ADD_AT;
    at(mp, &h[1], &o.sig_win, &o.sig_off);
    post(&p, &o);
    o.flags |= GIN_I_DESC_STRONG;
    post(&p, &o);
    o.flags = GIN_I_DESC_SET_AT;
    at(mp, &h[4], &o.sig_win, &o.sig_off);
    post(&p, &o);
    /* an action without data, exactly once */
    o = (struct gin_i_op){.op = GIN_I_DESC_PUT, .peer = right};
    at(mp, h, &o.dst_win, &o.dst_off);
    at(mp, h, &o.src_win, &o.src_off);
    with_signal(&o, 2, 5, false);
    post(&p, &o);
    /* all add to rank 0, more than its ring and the network hold at once */
    o = (struct gin_i_op){.op = GIN_I_DESC_AMO + 1 /* add */, .immediate = 10};
    at(mp, &h[2], &o.dst_win, &o.dst_off);
    for (int i = 0; i < 2000 / MP_FACTOR; i++)
        post(&p, &o);
    quiet(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(h[0], big);
    EXPECT_EQ_U64(h[1], 2 * big);
    EXPECT_EQ_U64(h[4], big);
    EXPECT_EQ_U64(raised(&p, 1), 1);
    EXPECT_EQ_U64(raised(&p, 2), 5);
    o.op = GIN_I_DESC_AMO + 6; /* fetch and add */
    o.immediate = 0;
    o.sig_off = 3;
    uint64_t t = post(&p, &o);
    wait_word(&p.ring->replies[3].seq, t + 1);
    EXPECT_EQ_U64(p.ring->replies[3].value, (uint64_t)mp->size * 10 * (2000 / MP_FACTOR));
    o.op = GIN_I_DESC_AMO + 11; /* compare and swap, 32 bits */
    o.flags = GIN_I_DESC_WORD32;
    o.sig_off = 4;
    o.peer = right;
    at(mp, (char *)&h[3] + 4, &o.dst_win, &o.dst_off);
    o.immediate = 7;
    o.value = 0;
    t = post(&p, &o);
    wait_word(&p.ring->replies[4].seq, t + 1);
    EXPECT_EQ_U64(p.ring->replies[4].value, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(h[3], (uint64_t)7 << 32);
    EXPECT_EQ_U64(p.ring->host->error, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(words_of_far_hosts, .ranks = "2 3", .hosts = "ABC")
{
    if (cuda_dev(mp, NULL))
        words(mp);
}

MP_TEST_N(words_by_the_network_alone, "2")
{
    if (far_dev(mp))
        words(mp);
}

/* Words of a GPU have one applier, for its own kernels' updates and those that the network brings.
 * Copies take their time: one of either kind is often under way when the other comes. */
MP_TEST_OPT(gpu_words_of_far_hosts, .ranks = "2 3", .hosts = "ABC")
{
    const int n = 300 / MP_FACTOR * mp->size;
    if (!cuda_dev(mp, NULL))
        return;
    uint64_t *w = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 2, 8);
    struct producer p = producer(mp, 0);
    struct gin_i_op add = {.op = GIN_I_DESC_AMO + 1, .immediate = 3};
    struct gin_i_op raise = {.op = GIN_I_DESC_SIGNAL, .flags = GIN_I_DESC_ADD_AT, .value = 5};
    if (!EXPECT(w != NULL))
        return;
    at(mp, &w[0], &add.dst_win, &add.dst_off);
    at(mp, &w[1], &raise.sig_win, &raise.sig_off);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int i = 0; i < n; i++) {
        add.peer = raise.peer = (uint32_t)(i % mp->size);
        post(&p, &add);
        post(&p, &raise);
    }
    quiet(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(w[0], 3u * (uint64_t)n);
    EXPECT_EQ_U64(w[1], 5u * (uint64_t)n);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Memory that is known already costs no question to the driver, wherever it is named. */
MP_TEST_OPT(local_memory_is_known, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    char *h = gin_calloc(mp->comm, 2, 4096), *mine = malloc(8192);
    char *gpu = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 4096);
    EXPECT_OK(gin_local_register(mp->comm, mine, 8192));
    if (gpu == NULL || !cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    const char *const from[] = {h, mine + 4000, gpu};
    memset(gpu, 3, 4096);
    memset(mine, 2, 8192);
    memset(h, 1, 4096);
    quiet(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int i = 0; i < 3; i++) {
        const long asked = fake_asked();
        for (int k = 0; k < 20; k++) {
            struct gin_i_op o = put_op(mp, 1 - mp->rank, h + 4096, h, 64);
            o.flags |= GIN_I_DESC_LOCAL;
            o.src_off = (uint64_t)(uintptr_t)from[i];
            post(&p, &o);
        }
        quiet(&p);
        EXPECT_EQ_INT(fake_asked() - asked, 0);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        EXPECT_FILLED(h + 4096, 64, i + 1);
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
    EXPECT_OK(gin_local_deregister(mp->comm, mine));
    free(mine);
}

/* What begins in one kind of memory and ends in another one is refused whole. */
MP_TEST_OPT(local_memory_is_of_one_kind, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    char *h = gin_calloc(mp->comm, 2, 4096);
    if (!cuda_dev(mp, NULL))
        return;
    uint64_t gpu = fake_mixed(65536); /* a GPU's, behind which host memory lies */
    struct producer p = producer(mp, 0);
    struct gin_i_op o = put_op(mp, 1 - mp->rank, h + 4096, h, 64);
    o.flags |= GIN_I_DESC_LOCAL;
    o.src_off = gpu + 65536 - 64;
    post(&p, &o);
    quiet(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    o.src_off += 8;
    post(&p, &o);
    expect_dead(&p, GIN_EINVAL, mp->rank, 2);
    EXPECT_FAILS(gin_local_register(mp->comm, (void *)(uintptr_t)o.src_off, 64), GIN_EINVAL,
                 "goes on in ordinary host memory");
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Each put is overwritten by the next; the strong signal is never before what it covers. */
MP_TEST_OPT(strong_signals_keep_behind, .ranks = "2", .hosts = "AB")
{
    enum { N = 300 };
    uint64_t *h = gin_calloc(mp->comm, 2 * 512, 8);
    const uint64_t n = N / MP_FACTOR;
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 2);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 1; i <= n && mp->rank == 0; i++) {
        struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = 1, .size = 8, .immediate = i};
        for (int k = 0; k < 4; k++) {
            at(mp, &h[512 + k * 100], &o.dst_win, &o.dst_off);
            post(&p, &o);
        }
        o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL, .peer = 1};
        with_signal(&o, 0, 1, true);
        post(&p, &o);
    }
    for (uint64_t i = 1; i <= n && mp->rank == 1; i++) {
        if (!wait_signal(&p, 0, i))
            break;
        for (int k = 0; k < 4; k++)
            EXPECT(__atomic_load_n(&h[512 + k * 100], __ATOMIC_RELAXED) >= i);
    }
    if (mp->rank == 0)
        quiet(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* A kernel that only looks, as a polled quiet does, sees it settle, too. */
MP_TEST_OPT(settles_unasked, .ranks = "2", .hosts = "AB")
{
    char *h = gin_calloc(mp->comm, 2, 4096);
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    EXPECT(p.ring->asks != 0);
    struct gin_i_op o = put_op(mp, 1 - mp->rank, h + 4096, h, 4096);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    post(&p, &o);
    wait_word(&p.ring->host->settled, p.ring->ticket);
    EXPECT_EQ_U64(p.ring->host->error, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* A descriptor that makes no sense costs its context, and nothing else. */
MP_TEST_OPT(bad_descriptors, .ranks = "2", .hosts = "AB")
{
    char *h = gin_calloc(mp->comm, 2, 4096);
    if (!cuda_dev(mp, NULL))
        return;
    for (uint32_t c = 0; c < 3; c++) {
        struct producer p = producer(mp, c);
        struct gin_i_op o = put_op(mp, 1 - mp->rank, h + 4096, h, 64);
        uint64_t t = post(&p, &o);
        wait_word(&p.ring->host->done, t + 1);
        if (c == 0)
            o.dst_off = (uint64_t)1 << 40;
        else if (c == 1)
            o.dst_win += 77;
        else
            with_signal(&o, 99999, 1, true);
        post(&p, &o);
        wait_word(&p.ring->host->error, 1);
        EXPECT_EQ_INT((int32_t)p.ring->host->error, c == 1 ? GIN_ESTATE : GIN_ERANGE);
        EXPECT_EQ_U64(p.ring->host->done, t + 1);
    }
    struct producer p = producer(mp, 3);
    struct gin_i_op o = put_op(mp, 1 - mp->rank, h + 4096, h, 64);
    with_signal(&o, 0, 1, true);
    post(&p, &o);
    wait_signal(&p, 0, 1);
    quiet(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* More than the ring, the engine and the core hold, to all ranks in turn. */
MP_TEST_OPT(floods, .ranks = "3", .hosts = "AAB")
{
    const uint64_t n = 3000 / MP_FACTOR;
    char *h = gin_calloc(mp->comm, 8, 4096);
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.queue_depth = 64;
    if (!cuda_dev(mp, &r))
        return;
    struct producer p = producer(mp, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; i < n; i++) {
        struct gin_i_op o =
            put_op(mp, (int)(i % (uint64_t)mp->size), h + 4096, h, 1 + i * 37 % 4000);
        with_signal(&o, 0, 1, i % 5 == 0);
        o.flags |= GIN_I_DESC_COUNTER;
        o.counter = 1;
        post(&p, &o);
    }
    quiet(&p);
    EXPECT_EQ_U64(p.ctx->host_counters[1], n);
    wait_signal(&p, 0, n / (uint64_t)mp->size * (uint64_t)mp->size);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(raised(&p, 0), n);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Host threads and kernels of other hosts, in one device communicator. */
MP_TEST_OPT(host_threads_and_kernels, .ranks = "2", .hosts = "AB")
{
    uint64_t *h = gin_calloc(mp->comm, 4, 8);
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    if (mp->rank == 0) {
        if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)) ||
            !EXPECT_OK(gin_open(&mp->dev, 0, &mp->g)))
            return;
        EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), 1,
                                gin_at_ptr(&mp->g, &h[0]), 11, 8, gin_strong_inc(4)));
        EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 5, 3));
        EXPECT_EQ_U64(h[1], 22);
    } else if (cuda_dev(mp, &r)) {
        struct producer p = producer(mp, 0);
        wait_signal(&p, 4, 1);
        EXPECT_EQ_U64(h[0], 11);
        struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .size = 8, .immediate = 22};
        at(mp, &h[1], &o.dst_win, &o.dst_off);
        with_signal(&o, 5, 3, false);
        post(&p, &o);
        quiet(&p);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* Nobody hears of the network where it is left out. */
MP_TEST_OPT(refused_where_left_out, .ranks = "2", .hosts = "AB")
{
    char *h = gin_calloc(mp->comm, 1, 64);
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.paths = GIN_PATH_SELF | GIN_PATH_LSA;
    if (!cuda_dev(mp, &r))
        return;
    struct producer p = producer(mp, 0);
    const int32_t *lsa_of = (const int32_t *)(uintptr_t)mp->dev.lsa_of;
    EXPECT_EQ_INT(lsa_of[1 - mp->rank], -1);
    struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = (uint32_t)(1 - mp->rank), .size = 8};
    at(mp, h, &o.dst_win, &o.dst_off);
    post(&p, &o);
    expect_dead(&p, GIN_ENOTSUP, mp->rank, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_N(network_needs_an_engine, "2")
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.paths = GIN_PATH_SELF | GIN_PATH_NET;
    r.backend = GIN_BACKEND_DIRECT;
    r.device = GIN_DEVICE_CUDA;
    EXPECT_EQ_INT(gin_devcomm_create(mp->comm, &r, &mp->dev), GIN_ENOTSUP);
    EXPECT(strstr(gin_last_error(), "engine") != NULL);
}
