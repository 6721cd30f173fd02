/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations from kernels: each one against the plainest model of it, then all threads of
 * all ranks on the same words.
 */
#include "tests/gpu/gpu.h"
#include <ginshmem/impl/desc.h>

enum op {
    SET,
    ADD,
    AND,
    OR,
    XOR,
    FETCH,
    FETCH_ADD,
    FETCH_AND,
    FETCH_OR,
    FETCH_XOR,
    SWAP,
    CAS,
    OPS
};

__device__ static uint64_t after(int op, uint64_t word, uint64_t v, uint64_t expected)
{
    switch (op) {
    case SET:
    case SWAP: return v;
    case ADD:
    case FETCH_ADD: return word + v;
    case AND:
    case FETCH_AND: return word & v;
    case OR:
    case FETCH_OR: return word | v;
    case XOR:
    case FETCH_XOR: return word ^ v;
    case CAS: return word == expected ? v : word;
    default: return word;
    }
}

__device__ static int call64(const gin_t *g, gin_group_t grp, int peer, gin_at_t at, int op,
                             uint64_t v, uint64_t expected, uint64_t *old)
{
    gin_team_t w = gin_world(g);
    switch (op) {
    case SET: return gin_amo_set(g, grp, w, peer, at, v);
    case ADD: return gin_amo_add(g, grp, w, peer, at, v);
    case AND: return gin_amo_and(g, grp, w, peer, at, v);
    case OR: return gin_amo_or(g, grp, w, peer, at, v);
    case XOR: return gin_amo_xor(g, grp, w, peer, at, v);
    case FETCH: return gin_amo_fetch(g, grp, w, peer, at, old);
    case FETCH_ADD: return gin_amo_fetch_add(g, grp, w, peer, at, v, old);
    case FETCH_AND: return gin_amo_fetch_and(g, grp, w, peer, at, v, old);
    case FETCH_OR: return gin_amo_fetch_or(g, grp, w, peer, at, v, old);
    case FETCH_XOR: return gin_amo_fetch_xor(g, grp, w, peer, at, v, old);
    case SWAP: return gin_amo_swap(g, grp, w, peer, at, v, old);
    default: return gin_amo_cas(g, grp, w, peer, at, expected, v, old);
    }
}

__device__ static int call32(const gin_t *g, gin_group_t grp, int peer, gin_at_t at, int op,
                             uint32_t v, uint32_t expected, uint32_t *old)
{
    gin_team_t w = gin_world(g);
    switch (op) {
    case SET: return gin_amo_set32(g, grp, w, peer, at, v);
    case ADD: return gin_amo_add32(g, grp, w, peer, at, v);
    case AND: return gin_amo_and32(g, grp, w, peer, at, v);
    case OR: return gin_amo_or32(g, grp, w, peer, at, v);
    case XOR: return gin_amo_xor32(g, grp, w, peer, at, v);
    case FETCH: return gin_amo_fetch32(g, grp, w, peer, at, old);
    case FETCH_ADD: return gin_amo_fetch_add32(g, grp, w, peer, at, v, old);
    case FETCH_AND: return gin_amo_fetch_and32(g, grp, w, peer, at, v, old);
    case FETCH_OR: return gin_amo_fetch_or32(g, grp, w, peer, at, v, old);
    case FETCH_XOR: return gin_amo_fetch_xor32(g, grp, w, peer, at, v, old);
    case SWAP: return gin_amo_swap32(g, grp, w, peer, at, v, old);
    default: return gin_amo_cas32(g, grp, w, peer, at, expected, v, old);
    }
}

/* ---- one group, one word, the model beside it ---- */

/* Atomics are relaxed: over the network, one that fetches may pass one that does not. */
__device__ static void order(struct gpu_report *r, const gin_t *g, gin_group_t grp, int op,
                             bool net)
{
    if (net && op < FETCH)
        D_OK(r, gin_quiet(g, grp));
}

__global__ void model(gin_devcomm_t dev, gin_at_t at, unsigned long long seed, int n, bool net,
                      struct gpu_report *r)
{
    gin_t g;
    enum gpu_kind kind = (enum gpu_kind)(blockIdx.x % K_KINDS);
    struct gpu_place p = gpu_place_of(kind);
    D_OK(r, gin_open(&dev, 0, &g));
    int peer = (g.rank + (int)(blockIdx.x / K_KINDS)) % g.size;
    /* two words of this group alone: 64 bits, and 32 with a neighbour that must not change */
    unsigned long long mine =
        (g.rank * (unsigned long long)gridDim.x + blockIdx.x) * blockDim.x + p.group;
    gin_at_t a64 = gin_at(at.win, at.off + mine * 16), a32 = gin_at(at.win, at.off + mine * 16 + 8);
    uint64_t w64 = 0;
    uint32_t w32 = 0;
    for (int i = 0; i < n; i++) {
        unsigned long long s = seed + mine * 1000003ull;
        int op = (int)gpu_draw(s, i * 4ull, OPS);
        uint64_t v = gpu_word(s, i * 4ull + 1);
        uint64_t expected = gpu_draw(s, i * 4ull + 2, 2) ? w64 : v;
        uint64_t old = 0x5555;
        D_STEP(r, i);
        if (op == AND || op == FETCH_AND)
            v |= 0xffff0000ffff0000ull;
        D_OK(r, call64(&g, p.grp, peer, a64, op, v, expected, &old));
        order(r, &g, p.grp, op, net);
        if (op >= FETCH)
            D_EQ(r, old, w64);
        w64 = after(op, w64, v, expected);
        uint32_t v32 = (uint32_t)(v >> 7), e32 = expected == w64 ? w32 : v32, old32 = 0x5555;
        D_OK(r, call32(&g, p.grp, peer, a32, op, v32, e32, &old32));
        order(r, &g, p.grp, op, net);
        if (op >= FETCH)
            D_EQ(r, old32, w32);
        w32 = (uint32_t)after(op, w32, v32, e32);
    }
    uint64_t now = 0;
    uint32_t now32 = 0, beside = 1;
    D_OK(r, gin_amo_fetch(&g, p.grp, gin_world(&g), peer, a64, &now));
    D_EQ(r, now, w64);
    D_OK(r, gin_amo_fetch32(&g, p.grp, gin_world(&g), peer, a32, &now32));
    D_EQ(r, now32, w32);
    D_OK(r, gin_amo_fetch32(&g, p.grp, gin_world(&g), peer, gin_at(a32.win, a32.off + 4), &beside));
    D_EQ(r, beside, 0);
#ifndef GPU_EMULATED
    if (net)
        return;
    /* GPUs that reach each other need no engine for it */
    D_EQ(r, g.flags >> GIN_I_DC_APPLY_SHIFT, GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES);
    D_EQ(r, g.lsa_count, g.size);
    D_EQ(r, gpu_look(&g.ring->ticket), 0);
#endif
}

GPU_TEST(each_operation_as_its_model, 1)
{
    gin_at_t at;
    unsigned blocks = K_KINDS * (gp->size < 3 ? (unsigned)gp->size : 3u), threads = 64;
    size_t bytes = (size_t)gp->size * blocks * threads * 16;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, bytes, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    model<<<blocks, threads, 0, gp->stream>>>(gp->dev, at, gp->seed, gpu_cases(gp, 400, 40),
                                              gpu_net(), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- all threads of all ranks ---- */

/*
 * Words at rank 0: 0 a sum, 1 a sum by compare and swap, 2 bits that each thread flips an even
 * number of times, 3 tickets, 4 bits set, 5 bits cleared; 32 bits: 8 a sum, 9 a sum by swapping.
 */
__global__ void crowd(gin_devcomm_t dev, gin_at_t at, gin_at_t taken, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t w = gin_world(&g);
    gin_group_t me = gin_thread();
    unsigned long long id =
        (g.rank * (unsigned long long)gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
#define WORD(k) gin_at(at.win, at.off + (k)*64ull)
    for (int i = 0; i < n; i++) {
        uint64_t old = 0, seen = 0;
        uint32_t old32 = 0;
        gpu_step(r, __LINE__, i);
        D_OK(r, gin_amo_add(&g, me, w, 0, WORD(0), 3));
        D_OK(r, gin_amo_xor(&g, me, w, 0, WORD(2), 1ull << (id % 64)));
        do {
            D_OK(r, gin_amo_fetch(&g, me, w, 0, WORD(1), &seen));
            D_OK(r, gin_amo_cas(&g, me, w, 0, WORD(1), seen, seen + 5, &old));
        } while (old != seen);
        D_OK(r, gin_amo_fetch_xor(&g, me, w, 0, WORD(2), 1ull << (id % 64), &old));
        D_OK(r, gin_amo_fetch_add(&g, me, w, 0, WORD(3), 1, &old));
        /* every ticket is handed out once */
        D_OK(r, gin_amo_add32(&g, me, w, 0, gin_at(taken.win, taken.off + old * 4), 1));
        D_OK(r, gin_amo_or(&g, me, w, 0, WORD(4), 1ull << (id % 61)));
        D_OK(r, gin_amo_and(&g, me, w, 0, WORD(5), ~(1ull << (id % 61))));
        D_OK(r, gin_amo_add32(&g, me, w, 0, WORD(8), 0xffffffffu));
        D_OK(r, gin_amo_fetch_add32(&g, me, w, 0, WORD(9), 2, &old32));
        D_EQ(r, old32 % 2, 0);
    }
#undef WORD
}

GPU_TEST(all_on_the_same_words, 1)
{
    gin_at_t at, taken;
    int n = gpu_rounds(gp, 60);
    unsigned blocks = 8, threads = 64, per = blocks * threads;
    size_t tickets = (size_t)gp->size * per * (size_t)n;
    unsigned long long *p = (unsigned long long *)gpu_symmetric(gp, GIN_KIND_CUDA, 16 * 64, &at);
    void *t = gpu_symmetric(gp, GIN_KIND_CUDA, tickets * 4, &taken);
    if (p == NULL || t == NULL || !gpu_dev(gp, NULL))
        return;
    if (gp->rank == 0)
        gpu_fill(p + 5 * 8, 0xff, 8);
    CU(cudaDeviceSynchronize());
    EXPECT_OK(gin_comm_barrier(gp->comm));
    crowd<<<blocks, threads, 0, gp->stream>>>(gp->dev, at, taken, n, gp->report);
    GPU_DONE(gp);
#ifdef GPU_EMULATED
    per = blocks;
    tickets = (size_t)gp->size * per * (size_t)n;
#endif
    EXPECT_OK(gin_comm_barrier(gp->comm));
    if (gp->rank == 0) {
        unsigned long long w[16 * 8], ids = (unsigned long long)gp->size * per, bits = 0;
        unsigned *each = (unsigned *)malloc(tickets * 4);
        CU(cudaMemcpy(w, p, sizeof(w), cudaMemcpyDefault));
        CU(cudaMemcpy(each, t, tickets * 4, cudaMemcpyDefault));
        for (unsigned long long id = 0; id < ids && id < 61; id++)
            bits |= 1ull << id;
        EXPECT_EQ_U64(w[0], 3 * tickets);
        EXPECT_EQ_U64(w[1 * 8], 5 * tickets);
        EXPECT_EQ_U64(w[2 * 8], 0);
        EXPECT_EQ_U64(w[3 * 8], tickets);
        EXPECT_EQ_U64(w[4 * 8], bits);
        EXPECT_EQ_U64(w[5 * 8], ~bits);
        EXPECT_EQ_U64(w[8 * 8], (uint32_t)(0 - (uint32_t)tickets));
        EXPECT_EQ_U64(w[9 * 8], (uint32_t)(2 * tickets));
        size_t bad = 0;
        for (size_t i = 0; i < tickets; i++)
            bad += each[i] != 1;
        EXPECT_EQ_U64(bad, 0);
        free(each);
    }
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
    EXPECT_OK(gin_free(gp->comm, t));
}

/* A word that is raised as a signal and by atomic operations, and waited for. */
__global__ void with_signals(gin_devcomm_t dev, gin_at_t at, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    int right = (g.rank + 1) % g.size;
    for (int i = 1; i <= n; i++) {
        D_STEP(r, i);
        D_OK(r, gin_signal(&g, gin_thread(), gin_world(&g), right, gin_weak_inc_at(at)));
        D_OK(r, gin_amo_add(&g, gin_thread(), gin_world(&g), right, at, 2));
        D_OK(r, gin_wait_signal_at(&g, gin_block(), at, 3ull * blockDim.x * i, NULL));
    }
    D_EQ(r, gin_read_signal_at(&g, at) >= 3ull * blockDim.x * n, 1);
}

GPU_TEST(signals_on_the_same_word, 1)
{
    gin_at_t at;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    with_signals<<<1, 96, 0, gp->stream>>>(gp->dev, at, gpu_rounds(gp, 500), gp->report);
    GPU_DONE(gp);
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- host threads, while kernels fill the GPUs ---- */

/* Block 0 looks at what came with the flag, and tells the sender in host memory. */
__global__ void __launch_bounds__(256)
    filled(gin_devcomm_t dev, gin_at_t flag, gin_at_t seen, const unsigned long long *data, int n,
           struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, blockIdx.x % dev.n_contexts, &g));
    int left = (g.rank + g.size - 1) % g.size;
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        D_STEP(r, i);
        D_OK(r, gin_wait_signal_at(&g, gin_block(), flag, i, NULL));
        if (blockIdx.x != 0)
            continue;
        D_EQ(r, gpu_look(&data[threadIdx.x]),
             i * 1000 + threadIdx.x + ((unsigned long long)left << 40));
        D_OK(r, gin_put_value(&g, gin_block(), gin_world(&g), left, seen, i, 8, gin_no_action()));
    }
}

GPU_TEST(host_threads_reach_a_full_gpu, 1)
{
#ifdef GPU_EMULATED
    return;
#endif
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t host;
    gin_at_t at, seen;
    gin_t g;
    int processors = 1, n = gpu_rounds(gp, 300), right = (gp->rank + 1) % gp->size;
    char *p = (char *)gpu_symmetric(gp, GIN_KIND_CUDA, 8192, &at);
    void *h = gpu_symmetric(gp, GIN_KIND_HOST, 64, &seen);
    gin_devcomm_reqs_init(&reqs);
    if (p == NULL || h == NULL || !gpu_dev(gp, NULL) ||
        !EXPECT_OK(gin_devcomm_create(gp->comm, &reqs, &host)) ||
        !EXPECT_OK(gin_open(&host, 0, &g)))
        return;
    CU(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gp->device));
    filled<<<processors * 8, 256, 0, gp->stream>>>(gp->dev, at, seen,
                                                   (unsigned long long *)(p + 4096), n, gp->report);
    for (unsigned long long i = 1; i <= (unsigned long long)n; i++) {
        unsigned long long out[256];
        uint64_t old = 0;
        for (unsigned k = 0; k < 256; k++)
            out[k] = i * 1000 + k + ((unsigned long long)gp->rank << 40);
        if (!EXPECT_OK(gin_put(&g, gin_thread(), gin_world(&g), right,
                               gin_at(at.win, at.off + 4096), gin_at_local(out), sizeof(out),
                               gin_set_at(at, i))) ||
            !EXPECT_OK(gin_wait_signal_at(&g, gin_thread(), seen, i, NULL)))
            break;
        EXPECT_OK(gin_amo_fetch(&g, gin_thread(), gin_world(&g), right, at, &old));
        EXPECT_EQ_U64(old, i);
    }
    GPU_DONE(gp);
    EXPECT_OK(gin_devcomm_destroy(gp->comm, &host));
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
    EXPECT_OK(gin_free(gp->comm, h));
}
