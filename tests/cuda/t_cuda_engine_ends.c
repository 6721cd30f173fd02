/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How contexts, windows and engines end: bad descriptors and failing copies, which kill their
 * context and nothing else; what is done, and what never is; who waits for whom when a device
 * communicator or a window goes.
 */
#include "tests/cuda/engine_test.h"

MP_TEST_N(bad_descriptors_kill_their_context, "1 2")
{
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 4 * K), *h = gin_malloc(mp->comm, 4 * K);
    gin_devcomm_reqs_t r;
    gin_window_t gone;
    gin_devcomm_reqs_init(&r);
    r.contexts = 8;
    EXPECT_OK(gin_window_register(mp->comm, d, K, 0, &gone));
    EXPECT_OK(gin_window_deregister(mp->comm, gone));
    if (!cuda_dev(mp, &r))
        return;
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &u));
    struct gin_i_op bad[7];
    for (int i = 0; i < 7; i++)
        bad[i] = put_op(mp, 0, d, h, 64);
    bad[0].dst_win = gin_i_desc_window(gone);
    bad[1].dst_off = u.size - 63;
    bad[2].peer = (uint32_t)mp->size;
    with_signal(&bad[3], 64, 1, false);
    bad[4].flags = GIN_I_DESC_COUNTER;
    bad[4].counter = 64;
    bad[5].flags = GIN_I_DESC_ADD_AT; /* to GPU memory */
    at(mp, d + 8, &bad[5].sig_win, &bad[5].sig_off);
    bad[6].op = 12;
    static const int status[7] = {GIN_ESTATE, GIN_ERANGE,  GIN_ERANGE, GIN_ERANGE,
                                  GIN_ERANGE, GIN_ENOTSUP, GIN_EINVAL};
    for (uint32_t i = 0; i < 7; i++) {
        struct producer p = producer(mp, i);
        post(&p, &bad[i]);
        expect_dead(&p, status[i], mp->rank, 0);
    }
    struct producer p = producer(mp, 7);
    struct gin_i_op o = put_op(mp, 0, d + 64, h, 64);
    post(&p, &o);
    finish(&p);
    EXPECT_EQ_U64(p.ring->host->error, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* What kernels left in the rings is done before the device communicator goes. */
MP_TEST_N(destroying_completes, "1 2")
{
    uint64_t *d = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 500, 8);
    int right = (mp->rank + 1) % mp->size;
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    for (uint64_t i = 0; i < 500; i++) {
        struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = (uint32_t)right, .size = 8};
        o.immediate = i + 1;
        at(mp, &d[i], &o.dst_win, &o.dst_off);
        post(&p, &o);
    }
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    for (uint64_t i = 0; i < 500; i++)
        if (!EXPECT_EQ_U64(d[i], i + 1))
            break;
}

MP_TEST_OPT(a_failing_copy_kills_its_context, .ranks = "1 2", .only = MP_PROCS)
{
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 4 * K);
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    fake_fail("cuMemcpyAsync", 1, 2);
    struct gin_i_op o = put_op(mp, 0, d, d + K, 64);
    post(&p, &o);
    expect_dead(&p, GIN_ENOMEM, mp->rank, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* What stands in front of a failure is done, nothing behind it; a strong signal least of all. */
MP_TEST_OPT(nothing_passes_a_failure, .ranks = "1", .only = MP_PROCS)
{
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 64 * K);
    uint64_t *h = gin_calloc(mp->comm, 8, 8);
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    const struct gin_i_cells *s = p.ctx->host_signals;
    fake_hold(1);
    struct gin_i_op o = put_op(mp, 0, d, d + K, 64);
    with_signal(&o, 0, 1, false);
    post(&p, &o);
    with_signal(&o, 1, 1, true);
    post(&p, &o); /* behind the first one, whose copy lasts */
    wait_word(&p.ring->host->consumed, 2);
    o = put_op(mp, 0, d, d + K, 64);
    with_signal(&o, 2, 1, false);
    o.dst_off = 1ull << 40;
    post(&p, &o); /* fails */
    o = put_op(mp, 0, h, d, 8);
    o.op = GIN_I_DESC_PUT_VALUE;
    o.immediate = 7;
    post(&p, &o);
    o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL};
    with_signal(&o, 3, 1, true);
    post(&p, &o);
    wait_word(&p.ring->host->error, 1);
    EXPECT_EQ_U64(p.ring->host->done, 0);
    fake_hold(0);
    wait_word(&p.ring->host->done, 2);
    expect_dead(&p, GIN_ERANGE, mp->rank, 2);
    for (int i = 0; i < 4; i++)
        EXPECT_EQ_U64(s[i].cpu, i < 2);
    EXPECT_EQ_U64(h[0], 0);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
}

/* A context that is far behind leaves requests to the others. */
MP_TEST_OPT(no_context_takes_all_requests, .ranks = "1", .only = MP_PROCS)
{
    enum { N = 1500 };
    uint64_t *d = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, N, 8);
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.queue_depth = 2048;
    r.contexts = 2;
    if (!cuda_dev(mp, &r))
        return;
    struct producer p = producer(mp, 0), q = producer(mp, 1);
    struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .size = 8};
    fake_hold(1);
    for (uint64_t i = 0; i < N; i++) {
        o.immediate = i + 1;
        at(mp, &d[i], &o.dst_win, &o.dst_off);
        post(&p, &o);
    }
    wait_word(&p.ring->host->consumed, 512);
    o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL};
    with_signal(&o, 0, 1, false);
    for (int i = 0; i < 100; i++)
        post(&q, &o);
    finish(&q);
    EXPECT_EQ_U64(p.ring->host->consumed, 512);
    EXPECT_EQ_U64(p.ring->host->done, 0);
    fake_hold(0);
    finish(&p);
    for (uint64_t i = 0; i < N; i++)
        if (!EXPECT_EQ_U64(d[i], i + 1))
            break;
}

/* A window is in use until all that was posted to it is done; afterwards it is none. */
MP_TEST_OPT(deregistering_completes, .ranks = "1 2", .only = MP_PROCS)
{
    enum { N = 300 };
    uint64_t *d = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, N, 8);
    int right = (mp->rank + 1) % mp->size;
    gin_window_t win;
    if (!EXPECT_OK(gin_window_register(mp->comm, d, N * sizeof(*d), 0, &win)) ||
        !cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = (uint32_t)right, .size = 8};
    o.dst_win = gin_i_desc_window(win);
    for (uint64_t i = 0; i < N; i++) {
        o.immediate = i + 1;
        o.dst_off = 8 * i;
        post(&p, &o);
    }
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_EQ_U64(p.ring->host->done, N);
    EXPECT_EQ_U64(p.ring->host->error, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; i < N; i++)
        if (!EXPECT_EQ_U64(d[i], i + 1))
            break;
    post(&p, &o);
    expect_dead(&p, GIN_ESTATE, mp->rank, N);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* A request given up while its copy was under way serves nobody else until that has come. */
MP_TEST_OPT(given_up_copies_rest, .ranks = "1", .only = MP_PROCS,
            .env = "GINSHMEM_COLL_TIMEOUT=0.3")
{
    enum { N = 64 };
    uint64_t *d = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 2 * N, 8);
    gin_devcomm_t other;
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    if (!cuda_dev(mp, NULL) || !EXPECT_OK(gin_devcomm_create(mp->comm, &r, &other)))
        return;
    struct producer p = producer(mp, 0);
    struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .size = 8};
    fake_hold(1);
    for (uint64_t i = 0; i < N; i++) {
        o.immediate = i + 1;
        at(mp, &d[i], &o.dst_win, &o.dst_off);
        post(&p, &o);
    }
    wait_word(&p.ring->host->consumed, N);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev)); /* after the timeout */
    mp->dev = other;
    p = producer(mp, 0);
    for (uint64_t i = 0; i < N; i++) {
        o.immediate = 1000 + i;
        at(mp, &d[N + i], &o.dst_win, &o.dst_off);
        post(&p, &o);
    }
    wait_word(&p.ring->host->consumed, N);
    fake_hold(0);
    finish(&p);
    for (uint64_t i = 0; i < N; i++)
        if (!EXPECT_EQ_U64(d[i], i + 1) || !EXPECT_EQ_U64(d[N + i], 1000 + i))
            break;
}

/* Others' engines may still ask for words of mine when I destroy the device communicator. */
MP_TEST_OPT(asked_until_all_have_met, .ranks = "3", .only = MP_PROCS)
{
    enum { N = 40 };
    bool cpu = mp->rank == mp->size - 1;
    gin_devcomm_reqs_t r;
    if (cpu)
        setenv("FAKE_CUDA_DEVICES", "0", 1);
    uint64_t *words = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 8, 8);
    gin_devcomm_reqs_init(&r);
    r.device = cpu ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    for (uint64_t round = 1; round <= 3; round++) {
        if (!EXPECT(words != NULL) || !EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
            return;
        if (!cpu) {
            struct producer p = producer(mp, 0);
            struct gin_i_op o = {.op = GIN_I_DESC_AMO + 1, .immediate = 3};
            at(mp, &words[0], &o.dst_win, &o.dst_off);
            for (int i = 0; i < N; i++)
                post(&p, &o);
        }
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
        EXPECT_OK(gin_comm_barrier(mp->comm));
        if (mp->rank == 0)
            EXPECT_EQ_U64(words[0], round * 3 * N * (uint64_t)(mp->size - 1));
        EXPECT_OK(gin_comm_barrier(mp->comm));
    }
}
