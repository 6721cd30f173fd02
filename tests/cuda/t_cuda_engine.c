/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine against descriptors that this program writes as a kernel would: data by the copy
 * engine and by the CPU, actions behind their data, counters, atomics with replies, and order.
 */
#include "tests/cuda/engine_test.h"

/* Everybody puts to its neighbour, device to device, device to host and host to host. */
MP_TEST_N(puts_and_gets_with_signals, "1 2 3")
{
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 2 * M), *h = gin_malloc(mp->comm, 2 * M);
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 1);
    mp_poison(d, M, (uint64_t)mp->rank);
    mp_poison(h, M, 50 + (uint64_t)mp->rank);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    struct gin_i_op o = put_op(mp, right, d + M, d, 700 * K);
    with_signal(&o, 0, 3, false);
    o.flags |= GIN_I_DESC_COUNTER;
    o.counter = 5;
    post(&p, &o);
    o = put_op(mp, right, h + M, h, 1000);
    with_signal(&o, 1, 1, false);
    post(&p, &o);
    o = put_op(mp, right, h + M + 4 * K, d, 1000);
    with_signal(&o, 1, 1, false);
    post(&p, &o);
    o = put_op(mp, right, d + M + 800 * K, h, 1000);
    with_signal(&o, 2, 9, true);
    post(&p, &o);
    finish(&p);
    const struct gin_i_cells *s = p.ctx->host_signals;
    wait_word(&s[0].cpu, 3);
    MP_CHECK_PATTERN(d + M, 700 * K, (uint64_t)left);
    wait_word(&s[1].cpu, 2);
    MP_CHECK_PATTERN(h + M, 1000, 50 + (uint64_t)left);
    MP_CHECK_PATTERN(h + M + 4 * K, 1000, (uint64_t)left);
    wait_word(&s[2].cpu, 9);
    MP_CHECK_PATTERN(d + M + 800 * K, 1000, 50 + (uint64_t)left);
    EXPECT_EQ_U64(p.ctx->host_counters[5], 1);
    EXPECT_EQ_U64(p.ctx->host_counters[4], 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    mp_poison(d + M, M, 99);
    o = (struct gin_i_op){.op = GIN_I_DESC_GET, .peer = (uint32_t)left, .size = 600 * K};
    at(mp, d + M, &o.dst_win, &o.dst_off);
    at(mp, d, &o.src_win, &o.src_off);
    o.flags = GIN_I_DESC_COUNTER;
    o.counter = 6;
    post(&p, &o);
    wait_word(&p.ctx->host_counters[6], 1);
    MP_CHECK_PATTERN(d + M, 600 * K, (uint64_t)left);
    /* from local memory */
    o = put_op(mp, right, d + M, d, 100);
    o.flags = GIN_I_DESC_LOCAL;
    o.src_off = (uint64_t)(uintptr_t)(h + 64);
    o.src_win = 0;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    post(&p, &o);
    finish(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT(memcmp(d + M, (char *)gin_ptr(mp->comm, h, left) + 64, 100) == 0);
    EXPECT_EQ_U64(p.ring->host->error, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_N(values_words_and_atomics, "1 2 3")
{
    uint64_t *h = gin_calloc(mp->comm, 16, 8);
    uint64_t *d = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 16, 8);
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 0);
    int right = (mp->rank + 1) % mp->size;
    const uint64_t big = 0x9123456789abcdefull;
    struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = (uint32_t)right, .immediate = big};
    EXPECT_OK(gin_comm_barrier(mp->comm));
    at(mp, &h[0], &o.dst_win, &o.dst_off);
    o.size = 8;
    post(&p, &o);
    at(mp, &d[0], &o.dst_win, &o.dst_off);
    o.size = 5;
    post(&p, &o);
    /* words as signals: host words are added to, GPU words can be set */
    o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL, .peer = (uint32_t)right, .value = big};
    o.flags = GIN_I_DESC_ADD_AT;
    at(mp, &h[1], &o.sig_win, &o.sig_off);
    post(&p, &o);
    post(&p, &o);
    o.flags = GIN_I_DESC_SET_AT | GIN_I_DESC_STRONG;
    at(mp, &d[1], &o.sig_win, &o.sig_off);
    post(&p, &o);
    /* all add to rank 0 */
    o = (struct gin_i_op){.op = GIN_I_DESC_AMO + 1 /* add */, .immediate = 10};
    at(mp, &h[2], &o.dst_win, &o.dst_off);
    for (int i = 0; i < 100; i++)
        post(&p, &o);
    finish(&p);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(h[0], big);
    EXPECT_EQ_U64(d[0], big & 0xffffffffffull);
    EXPECT_EQ_U64(h[1], 2 * big);
    EXPECT_EQ_U64(d[1], big);
    o.op = GIN_I_DESC_AMO + 6; /* fetch and add */
    o.immediate = 0;
    o.sig_off = 3;
    uint64_t t = post(&p, &o);
    wait_word(&p.ring->replies[3].seq, t + 1);
    EXPECT_EQ_U64(p.ring->replies[3].value, (uint64_t)mp->size * 1000);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    o.op = GIN_I_DESC_AMO + 11; /* compare and swap, 32 bits */
    o.flags = GIN_I_DESC_WORD32;
    o.sig_off = 4;
    o.peer = (uint32_t)right;
    at(mp, (char *)&h[3] + 4, &o.dst_win, &o.dst_off);
    o.immediate = 7;
    o.value = 0;
    t = post(&p, &o);
    wait_word(&p.ring->replies[4].seq, t + 1);
    EXPECT_EQ_U64(p.ring->replies[4].value, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(h[3], (uint64_t)7 << 32);
    EXPECT_EQ_U64(p.ring->host->error, 0);
}

/* A strong signal comes after all before it, a weak one after its own data; a fence holds. */
MP_TEST_N(order_is_kept, "2")
{
    enum { N = 200, BYTES = 40 * K };
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 2 * BYTES);
    if (!cuda_dev(mp, NULL))
        return;
    struct producer p = producer(mp, 2);
    const struct gin_i_cells *s = p.ctx->host_signals;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 1; i <= N && mp->rank == 0; i++) {
        memset(d, (int)(i & 127), BYTES);
        struct gin_i_op o = put_op(mp, 1, d + BYTES, d, BYTES);
        post(&p, &o);
        o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL, .peer = 1};
        with_signal(&o, 7, 1, true);
        post(&p, &o);
        finish(&p);
        if (!wait_word(&s[8].cpu, i))
            return;
    }
    for (uint64_t i = 1; i <= N && mp->rank == 1; i++) {
        if (!wait_word(&s[7].cpu, i))
            return;
        EXPECT_FILLED(d + BYTES, BYTES, (unsigned char)(i & 127));
        struct gin_i_op o = {.op = GIN_I_DESC_SIGNAL, .peer = 0};
        with_signal(&o, 8, 1, false);
        post(&p, &o);
        finish(&p);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 0) {
        memset(d, 1, BYTES);
        struct gin_i_op o = put_op(mp, 1, d + BYTES, d, BYTES), f = {.op = GIN_I_DESC_FENCE};
        post(&p, &o);
        post(&p, &f);
        o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL, .peer = 1};
        with_signal(&o, 9, 1, false);
        post(&p, &o);
        f.op = GIN_I_DESC_QUIET;
        post(&p, &f);
        f.op = GIN_I_DESC_FLUSH;
        post(&p, &f);
        finish(&p);
    } else {
        wait_word(&s[9].cpu, 1);
        EXPECT_FILLED(d + BYTES, BYTES, 1);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

/* More than the ring, and more than the engine's requests, and all contexts at once. */
/* All that was taken, by gin_stats(); the spell ends a turn later. */
static void check_stats(struct mp *mp, uint64_t taken, uint64_t bytes)
{
    gin_stats_t s = {.size_of = sizeof(s)};
    for (int i = 0; i < 20000 * MP_FACTOR && s.engine_to_ns == 0; i++) {
        usleep(i != 0 ? 500 : 0);
        if (!EXPECT_OK(gin_stats(mp->comm, &s)))
            return;
    }
    EXPECT_EQ_U64(s.engine_taken, taken);
    EXPECT_EQ_U64(s.engine_bytes, bytes);
    EXPECT(s.engine_spells >= 1 && s.engine_spells <= taken);
    EXPECT(s.engine_from_ns != 0 && s.engine_to_ns > s.engine_from_ns);
    EXPECT(s.engine_busy_ns >= s.engine_to_ns - s.engine_from_ns);
}

MP_TEST_N(rings_run_over, "1 2")
{
    enum { N = 3000 };
    uint64_t *d = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, N, 8);
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.queue_depth = 50;
    r.contexts = 3;
    if (!cuda_dev(mp, &r))
        return;
    int right = (mp->rank + 1) % mp->size;
    EXPECT_EQ_INT(cuda_dc(mp)->ctx[0].ring->depth, 64);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; i < N; i++) {
        struct producer p = producer(mp, (uint32_t)(i % 3));
        struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = (uint32_t)right, .size = 8};
        o.immediate = i + 1;
        at(mp, &d[i], &o.dst_win, &o.dst_off);
        with_signal(&o, 0, 1, i % 5 == 0);
        post(&p, &o);
    }
    for (uint32_t c = 0; c < 3; c++) {
        struct producer p = producer(mp, c);
        finish(&p);
        wait_word(&p.ctx->host_signals[0].cpu, N / 3);
        EXPECT_EQ_U64(p.ctx->host_signals[0].cpu, N / 3);
    }
    check_stats(mp, N, N * 8);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint64_t i = 0; i < N; i++)
        if (!EXPECT_EQ_U64(d[i], i + 1))
            break;
}

/* ---- words of GPU memory, and host threads ---- */

/* Every rank's host thread into its neighbour's GPU memory, where all have a GPU. */
MP_TEST_N(host_threads_copy_to_gpus, "1 2 3")
{
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, M);
    char *h = gin_malloc(mp->comm, M), *mine = malloc(300 * K);
    uint64_t *words = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 8, 8), old = 0;
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    gin_team_t w = gin_team_world(mp->comm);
    if (!EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &mp->dev)) ||
        !EXPECT_OK(gin_open(&mp->dev, 0, &mp->g)))
        return;
    gin_t *g = &mp->g;
    mp_poison(mine, 300 * K, (uint64_t)mp->rank);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_put(g, gin_thread(), w, right, gin_at_ptr(g, d), gin_at_local(mine), 300 * K - 1,
                      gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 0, 1));
    MP_CHECK_PATTERN(d, 300 * K - 1, (uint64_t)left);
    /* my GPU memory to my neighbour's host memory, and what is there to my GPU memory */
    EXPECT_OK(gin_put(g, gin_thread(), w, right, gin_at_ptr(g, h), gin_at_ptr(g, d), 100 * K,
                      gin_strong_inc(0)));
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 0, 2));
    MP_CHECK_PATTERN(h, 100 * K, (uint64_t)((mp->rank + 2 * mp->size - 2) % mp->size));
    EXPECT_OK(
        gin_get(g, gin_thread(), w, right, gin_at_ptr(g, d), gin_at_ptr(g, d + 512 * K), 200 * K));
    MP_CHECK_PATTERN(d + 512 * K, 200 * K, (uint64_t)mp->rank);
    EXPECT_OK(gin_put_value(g, gin_thread(), w, right, gin_at_ptr(g, &words[0]), 77, 8,
                            gin_set_at(gin_at_ptr(g, &words[1]), 78)));
    EXPECT_OK(gin_amo_set32(g, gin_thread(), w, right, gin_at_ptr(g, &words[2]), 79));
    EXPECT_OK(gin_amo_fetch(g, gin_thread(), w, right, gin_at_ptr(g, &words[1]), &old));
    EXPECT_EQ_U64(old, 78);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(words[0], 77);
    EXPECT_EQ_U64(words[1], 78);
    EXPECT_EQ_U64(words[2], 79);
    /* GPUs' atomics apply the rest */
    EXPECT_FAILS(gin_amo_add(g, gin_thread(), w, right, gin_at_ptr(g, &words[3]), 1), GIN_ENOTSUP,
                 "updated by the GPUs' own atomics");
    EXPECT_FAILS(gin_signal(g, gin_thread(), w, right, gin_weak_inc_at(gin_at_ptr(g, &words[3]))),
                 GIN_ENOTSUP, "updated by the GPUs' own atomics");
    EXPECT_FAILS(gin_put(g, gin_thread(), w, right, gin_at(gin_at_ptr(g, d).win, 1ull << 40),
                         gin_at_local(mine), 8, gin_no_action()),
                 GIN_ERANGE, "outside window");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    free(mine);
}

#define ROUNDS 60

/* What all do to the words of rank 0: 0 a sum of 64 bits, 1 of 32, 2 by compare and swap. */
static void update_as_kernel(struct mp *mp, uint64_t *words)
{
    struct producer p = producer(mp, 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct gin_i_op o = {.op = GIN_I_DESC_AMO + 1, .immediate = 3};
        at(mp, &words[0], &o.dst_win, &o.dst_off);
        post(&p, &o);
        o.flags = GIN_I_DESC_WORD32;
        at(mp, &words[1], &o.dst_win, &o.dst_off);
        post(&p, &o);
        o = (struct gin_i_op){.op = GIN_I_DESC_SIGNAL, .flags = GIN_I_DESC_ADD_AT, .value = 2};
        at(mp, &words[0], &o.sig_win, &o.sig_off);
        if (i % 2)
            o.flags |= GIN_I_DESC_STRONG;
        post(&p, &o);
        for (uint64_t seen = 0, got = 1; got != seen;) {
            o = (struct gin_i_op){.op = GIN_I_DESC_AMO + 11, .immediate = seen + 5, .value = seen};
            at(mp, &words[2], &o.dst_win, &o.dst_off);
            o.sig_off = 9;
            uint64_t t = post(&p, &o);
            if (!wait_word(&p.ring->replies[9].seq, t + 1))
                return;
            got = p.ring->replies[9].value;
            if (got == seen)
                break;
            seen = got;
            got = seen + 1;
        }
    }
    finish(&p);
    EXPECT_EQ_U64(p.ring->host->error, 0);
}

static void update_as_host(struct mp *mp, gin_at_t at0)
{
    gin_t *g = &mp->g;
    gin_team_t w = gin_team_world(mp->comm);
    EXPECT_OK(gin_open(&mp->dev, 0, g));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t seen = 0, old = 1;
        EXPECT_OK(gin_amo_add(g, gin_thread(), w, 0, at0, 3));
        EXPECT_OK(gin_amo_add32(g, gin_thread(), w, 0, gin_at(at0.win, at0.off + 8), 3));
        EXPECT_OK(gin_signal(g, gin_thread(), w, 0, gin_weak_add_at(at0, 2)));
        while (EXPECT_OK(gin_amo_cas(g, gin_thread(), w, 0, gin_at(at0.win, at0.off + 16), seen,
                                     seen + 5, &old)) &&
               old != seen)
            seen = old;
    }
}

/* The last rank has no GPU: the engine of rank 0 applies everybody's updates. */
MP_TEST_OPT(one_applier_beside_a_rank_without_gpu, .ranks = "2 3", .only = MP_PROCS)
{
    bool cpu = mp->rank == mp->size - 1;
    gin_devcomm_reqs_t r;
    uint64_t n = (uint64_t)mp->size * ROUNDS, there[3];
    char *sent = malloc(20 * K), *got = malloc(20 * K);
    if (cpu)
        setenv("FAKE_CUDA_DEVICES", "0", 1);
    uint64_t *words = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 8, 8);
    char *d = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 64 * K);
    gin_at_t at0 = gin_at(gin_window_none(), 0);
    gin_devcomm_reqs_init(&r);
    r.device = cpu ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    if (!EXPECT(words != NULL) || !EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
        return;
    EXPECT_OK(gin_window_of(mp->comm, words, &at0.win, &at0.off));
    if (!cpu) {
        EXPECT_EQ_INT(cuda_dc(mp)->reach.apply, 0);
        EXPECT_EQ_INT(cuda_window(mp, at0.win)->apply, 0);
        update_as_kernel(mp, words);
    } else {
        update_as_host(mp, at0);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 0) {
        EXPECT_EQ_U64(words[0], 5 * n);
        EXPECT_EQ_U64(words[1], 3 * n);
        EXPECT_EQ_U64(words[2], 5 * n);
    }
    if (cpu) { /* bytes, in pieces */
        gin_t *g = &mp->g;
        gin_team_t w = gin_team_world(mp->comm);
        gin_at_t to = gin_at(at0.win, 0);
        EXPECT_OK(gin_window_of(mp->comm, d, &to.win, &to.off));
        mp_poison(sent, 20 * K, 5);
        EXPECT_OK(gin_put(g, gin_thread(), w, 0, to, gin_at_local(sent), 20 * K - 3,
                          gin_set_at(gin_at(at0.win, at0.off + 24), 9)));
        EXPECT_OK(gin_get(g, gin_thread(), w, 0, to, gin_at_local(got), 20 * K - 3));
        MP_CHECK_PATTERN(got, 20 * K - 3, 5);
        EXPECT_OK(gin_get(g, gin_thread(), w, 0, at0, gin_at_local(there), sizeof(there)));
        EXPECT_EQ_U64(there[0], 5 * n);
        EXPECT_FAILS(
            gin_put(g, gin_thread(), w, mp->rank, to, gin_at_local(sent), 8, gin_no_action()),
            GIN_ENOTSUP, "has no GPU");
        EXPECT_FAILS(gin_put(g, gin_thread(), w, 0, to, to, 8, gin_no_action()), GIN_ENOTSUP,
                     "has no GPU");
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 0) {
        EXPECT_EQ_U64(words[3], 9);
        MP_CHECK_PATTERN(d, 20 * K - 3, 5);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    free(sent);
    free(got);
}
