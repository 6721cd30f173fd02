/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank without GPU among ranks with one: the last of two or more. All signal each other, put into
 * and get from host memory, update the same words and meet in barriers, by the same functions, as
 * host thread or in a kernel.
 */
#include "tests/gpu/gpu.h"

extern "C" bool gpu_none(int rank, int size)
{
    return size > 1 && rank == size - 1;
}

/* What a rank's side found wrong. */
struct wrong {
    int line, at;
    long long got, want;
};

#define BOTH __host__ __device__ static

BOTH bool same(struct wrong *w, int line, int at, long long got, long long want)
{
    if (got != want && w->line == 0) {
        w->line = line;
        w->at = at;
        w->got = got;
        w->want = want;
    }
    return got == want;
}
#define SAME(got, want) same(w, __LINE__, i, (long long)(got), (long long)(want))
#define OK(call)        SAME(call, GIN_OK)

struct places {
    gin_at_t at; /* host memory: a word per rank, then flags and a tally */
    int rounds;
    int alone; /* the thread that does what one does for the group */
};

BOTH unsigned long long word_of(int rank, int round)
{
    return (unsigned long long)rank * 1000003 + (unsigned long long)round;
}

/* Everybody's word goes to everybody, weak, strong and by a word of memory. */
BOTH void all_to_all(const gin_t *g, gin_group_t grp, const struct places *p, struct wrong *w)
{
    gin_team_t world = gin_world(g);
    const volatile unsigned long long *in =
        (const volatile unsigned long long *)gin_local_ptr(g, p->at);
    unsigned long long n = (unsigned long long)g->size, flags = p->at.off + 8 * n;
    int i = 0;
    if (!SAME(in != NULL, 1))
        return;
    for (i = 1; i <= p->rounds && w->line == 0; i++) {
        for (int to = 0; to < g->size; to++) {
            gin_at_t slot = gin_at(p->at.win, p->at.off + 8ull * (unsigned)g->rank);
            gin_action_t how = i % 3 == 0   ? gin_weak_inc(0)
                               : i % 3 == 1 ? gin_strong_inc(0)
                                            : gin_weak_inc_at(gin_at(p->at.win, flags));
            OK(gin_put_value(g, grp, world, to, slot, word_of(g->rank, i), 8, how));
        }
        if (i % 3 == 2)
            OK(gin_wait_signal_at(g, grp, gin_at(p->at.win, flags),
                                  n * (unsigned long long)((i + 1) / 3), NULL));
        else
            OK(gin_wait_signal(g, grp, 0, n * (unsigned long long)(i - (i + 1) / 3)));
        for (int from = 0; from < g->size; from++)
            SAME(in[from], word_of(from, i));
        OK(gin_barrier(g, grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
}

/* A token goes round, in the value of a signal. */
BOTH void token(const gin_t *g, gin_group_t grp, const struct places *p, struct wrong *w)
{
    gin_team_t world = gin_world(g);
    int right = (g->rank + 1) % g->size;
    for (int i = 1; i <= p->rounds && w->line == 0; i++) {
        if (g->rank == 0)
            OK(gin_signal(g, grp, world, right, gin_weak_add(1, 3)));
        OK(gin_wait_signal(g, grp, 1, 3ull * (unsigned)i));
        SAME(gin_read_signal(g, 1), 3ull * (unsigned)i);
        if (g->rank != 0)
            OK(gin_signal(g, grp, world, right, gin_strong_add(1, 3)));
    }
}

/* Atomic updates of one word of host memory at every rank. */
BOTH void tallies(const gin_t *g, gin_group_t grp, const struct places *p, struct wrong *w)
{
    gin_team_t world = gin_world(g);
    gin_at_t tally = gin_at(p->at.win, p->at.off + 8ull * (unsigned)g->size + 64);
    int i = 0;
    for (i = 1; i <= p->rounds && w->line == 0; i++)
        for (int k = 0; k < g->size; k++) {
            uint64_t old = 0;
            int to = (g->rank + k) % g->size;
            OK(gin_amo_add(g, grp, world, to, tally, 1));
            if (i % 4 == 0) {
                OK(gin_amo_fetch_add(g, grp, world, to, tally, 2, &old));
                SAME(old >= 1, 1);
            }
        }
    OK(gin_barrier(g, grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    for (int k = 0; k < g->size && w->line == 0; k++) {
        uint64_t now = 0;
        OK(gin_amo_fetch(g, grp, world, k, tally, &now));
        SAME(now, (unsigned long long)g->size * (unsigned)(p->rounds + p->rounds / 4 * 2));
    }
    OK(gin_barrier(g, grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
}

/* Blocks of host memory: put to the right, then got from there. */
BOTH void blocks(const gin_t *g, gin_group_t grp, const struct places *p, struct wrong *w)
{
    gin_team_t world = gin_world(g);
    int right = (g->rank + 1) % g->size, left = (g->rank + g->size - 1) % g->size, i = 0;
    const unsigned words = 1000;
    gin_at_t out = gin_at(p->at.win, p->at.off + 4096), in = gin_at(p->at.win, p->at.off + 16384);
    gin_at_t back = gin_at(p->at.win, p->at.off + 32768);
    volatile unsigned long long *src = (volatile unsigned long long *)gin_local_ptr(g, out);
    const volatile unsigned long long *dst =
        (const volatile unsigned long long *)gin_local_ptr(g, in);
    const volatile unsigned long long *got =
        (const volatile unsigned long long *)gin_local_ptr(g, back);
    if (!SAME(src != NULL && dst != NULL && got != NULL, 1))
        return;
    for (i = 1; i <= p->rounds / 10 + 1 && w->line == 0; i++) {
        if (p->alone)
            for (unsigned k = 0; k < words; k++)
                src[k] = word_of(g->rank, i) * (k + 1);
        OK(gin_barrier(g, grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
        OK(gin_put(g, grp, world, right, in, out, words * 8, gin_weak_inc(2)));
        OK(gin_wait_signal(g, grp, 2, (unsigned)i));
        OK(gin_get(g, grp, world, right, in, back, words * 8 - 3));
        OK(gin_flush(g, grp));
        for (unsigned k = 0; k + 1 < words; k += 37) {
            SAME(dst[k], word_of(left, i) * (k + 1));
            if (i % 2) /* what my neighbour has is mine */
                SAME(got[k], word_of(g->rank, i) * (k + 1));
        }
        OK(gin_barrier(g, grp, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
}

BOTH void part(int which, const gin_t *g, gin_group_t grp, const struct places *p, struct wrong *w)
{
    switch (which) {
    case 0: all_to_all(g, grp, p, w); break;
    case 1: token(g, grp, p, w); break;
    case 2: tallies(g, grp, p, w); break;
    default: blocks(g, grp, p, w); break;
    }
}

__global__ void kernel(gin_devcomm_t dev, struct places p, int which, int wide,
                       struct gpu_report *r)
{
    gin_t g;
    struct wrong w = {};
    D_OK(r, gin_open(&dev, 0, &g));
    p.alone = threadIdx.x == 0;
    D_STEP(r, which);
    part(which, &g, wide ? gin_block() : gin_thread(), &p, &w);
    if (w.line != 0) {
        gpu_fail(r, (unsigned)w.line, w.got, w.want);
        gpu_fail(r, (unsigned)w.line, w.at, -1);
    }
}

static void host(struct gpu *gp, struct places p, int which)
{
    gin_t g;
    struct wrong w = {};
    EXPECT_OK(gin_open(&gp->dev, 0, &g));
    p.alone = 1;
    part(which, &g, gin_thread(), &p, &w);
    if (w.line != 0)
        FAIL("rank %d, line %d, round %d: %lld, not %lld; %s", gp->rank, w.line, w.at, w.got,
             w.want, gin_last_error());
}

/* Host memory, kernels and one host thread. */
static void run_part(struct gpu *gp, int which)
{
    struct places p = {};
    gin_devcomm_reqs_t reqs;
    gpu_reqs(&reqs);
    reqs.device = gp->device < 0 ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    for (int wide = 0; wide < 2; wide++) {
        void *mem = gpu_symmetric(gp, GIN_KIND_HOST, 65536, &p.at);
        if (mem == NULL || !gpu_dev(gp, &reqs))
            return;
        p.rounds = gpu_rounds(gp, 1200);
        if (gp->device < 0) {
            host(gp, p, which);
        } else {
            kernel<<<1, wide ? 64 : 1, 0, gp->stream>>>(gp->dev, p, which, wide, gp->report);
            GPU_DONE(gp);
        }
        gpu_dev_end(gp);
        EXPECT_OK(gin_free(gp->comm, mem));
    }
}

GPU_TEST(all_to_all_and_barriers, 1)
{
    run_part(gp, 0);
}

GPU_TEST(token_in_a_ring, 2)
{
    run_part(gp, 1);
}

GPU_TEST(atomics_on_host_memory, 1)
{
    run_part(gp, 2);
}

GPU_TEST(blocks_of_host_memory, 1)
{
    run_part(gp, 3);
}

static bool no_gpu_memory(const struct gpu *gp)
{
#ifdef GPU_EMULATED
    (void)gp;
    return true;
#else
    if (gpu_net_host() && gp->rank == 0)
        printf("SKIP: in host memory alone\n");
    return gpu_net_host();
#endif
}

/* GPU memory: ranks without a GPU agree to it, hold none, and are refused by name. */
__global__ void to_one_without(gin_devcomm_t dev, gin_at_t at, int last, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t w = gin_world(&g);
    int next = (g.rank + 1) % last;
    D_OK(r, gin_put_value(&g, gin_warp(), w, next, at, 7, 8, gin_weak_inc(0)));
    D_OK(r, gin_wait_signal(&g, gin_warp(), 0, 1));
    if (gin_lsa(&g).size == g.size) /* by the network it would be refused later, with the context */
        D_EXPECT(r, gin_put_value(&g, gin_warp(), w, last, at, 7, 8, gin_no_action()) < 0);
    D_OK(r, gin_signal(&g, gin_warp(), w, last, gin_weak_inc(0)));
}

GPU_TEST(gpu_memory_beside_a_rank_without, 2)
{
    if (no_gpu_memory(gp))
        return;
    gin_at_t at = gin_at(gin_window_none(), 0);
    gin_devcomm_reqs_t reqs;
    gpu_reqs(&reqs);
    reqs.device = gp->device < 0 ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    void *p = gin_calloc_kind(gp->comm, GIN_KIND_CUDA, 1, 4096);
    if (!EXPECT(p != NULL) || !gpu_dev(gp, &reqs)) /* an address where there is nothing, too */
        return;
    if (gp->device >= 0)
        EXPECT_OK(gin_window_of(gp->comm, p, &at.win, &at.off));
    if (gp->device >= 0) {
        to_one_without<<<1, 32, 0, gp->stream>>>(gp->dev, at, gp->size - 1, gp->report);
        GPU_DONE(gp);
    } else {
        gin_t g;
        EXPECT_OK(gin_open(&gp->dev, 0, &g));
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, (uint64_t)gp->size - 1));
    }
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- words of GPU memory have one applier, the engine of their rank ---- */

#define THREADS 64

/* Words of rank 0: 0 a sum, 1 a sum of 32 bits, 2 by compare and swap, 3 by fetching additions. */
__global__ void update(gin_devcomm_t dev, gin_at_t at, gin_at_t own, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    gin_team_t w = gin_world(&g);
    gin_group_t me = gin_thread();
    for (int i = 0; i < n; i++) {
        uint64_t old = 0, seen = 0;
        D_STEP(r, i);
        D_OK(r, gin_amo_add(&g, me, w, 0, at, 3));
        D_OK(r,
             gin_signal(&g, me, w, 0, i % 2 ? gin_weak_add_at(at, 2) : gin_strong_add_at(at, 2)));
        D_OK(r, gin_amo_add32(&g, me, w, 0, gin_at(at.win, at.off + 8), 7));
        D_OK(r, gin_amo_fetch_add(&g, me, w, 0, gin_at(at.win, at.off + 24), 1, &old));
        if (threadIdx.x != 0)
            continue;
        do {
            seen = old;
            D_OK(r, gin_amo_cas(&g, me, w, 0, gin_at(at.win, at.off + 16), seen, seen + 5, &old));
        } while (old != seen);
        /* a word that peers signal is consumed and reset by its owner */
        D_OK(r, gin_signal(&g, me, w, g.rank, gin_weak_add_at(own, 10)));
        D_OK(r, gin_wait_signal_at(&g, me, own, 10, NULL));
        D_OK(r, gin_consume_signal_at(&g, own, 4));
        D_EQ(r, gin_read_signal_at(&g, own), 6);
        D_OK(r, gin_reset_signal_at(&g, own, &old));
        D_EQ(r, old, 6);
        D_EQ(r, gin_read_signal_at(&g, own), 0);
        old = 0;
    }
    D_OK(r, gin_quiet(&g, me));
}

static void update_by_host(struct gpu *gp, gin_at_t at, int n)
{
    gin_t g;
    EXPECT_OK(gin_open(&gp->dev, 0, &g));
    gin_team_t w = gin_world(&g);
    for (int i = 0; i < n; i++) {
        uint64_t old = 0, seen = 0;
        EXPECT_OK(gin_amo_add(&g, gin_thread(), w, 0, at, 3));
        EXPECT_OK(gin_signal(&g, gin_thread(), w, 0, gin_weak_add_at(at, 2)));
        EXPECT_OK(gin_amo_add32(&g, gin_thread(), w, 0, gin_at(at.win, at.off + 8), 7));
        EXPECT_OK(gin_amo_fetch_add(&g, gin_thread(), w, 0, gin_at(at.win, at.off + 24), 1, &old));
        do {
            seen = old;
            if (!EXPECT_OK(gin_amo_cas(&g, gin_thread(), w, 0, gin_at(at.win, at.off + 16), seen,
                                       seen + 5, &old)))
                return;
        } while (old != seen);
    }
}

GPU_TEST(words_of_gpu_memory, 2)
{
    if (no_gpu_memory(gp))
        return;
    gin_at_t at = gin_at(gin_window_none(), 0);
    gin_devcomm_reqs_t reqs;
    int n = gpu_rounds(gp, 40), kernels = gp->size - 1;
    gpu_reqs(&reqs);
    reqs.device = gp->device < 0 ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    char *p = (char *)gin_calloc_kind(gp->comm, GIN_KIND_CUDA, 1, 8192);
    if (!EXPECT(p != NULL) || !gpu_dev(gp, &reqs))
        return;
    EXPECT_OK(gin_window_of(gp->comm, p, &at.win, &at.off));
    if (gp->device >= 0) {
        update<<<1, THREADS, 0, gp->stream>>>(gp->dev, at, gin_at(at.win, at.off + 64), n,
                                              gp->report);
        GPU_DONE(gp);
    } else {
        update_by_host(gp, at, n);
    }
    EXPECT_OK(gin_comm_barrier(gp->comm));
    unsigned long long now[4], all = (unsigned long long)(kernels * THREADS + 1) * (unsigned)n;
    if (gp->rank == 0) {
        CU(cudaMemcpy(now, p, sizeof(now), cudaMemcpyDeviceToHost));
        EXPECT_EQ_U64(now[0], 5 * all);
        EXPECT_EQ_U64(now[1], 7 * all);
        EXPECT_EQ_U64(now[2], 5ull * (unsigned)(kernels + 1) * (unsigned)n);
        EXPECT_EQ_U64(now[3], all);
    }
    EXPECT_OK(gin_comm_barrier(gp->comm));
    if (gp->device < 0) { /* bytes, by the engine of rank 0 */
        gin_t g;
        unsigned char *out = (unsigned char *)malloc(20000), *in = (unsigned char *)malloc(20000);
        EXPECT_OK(gin_open(&gp->dev, 0, &g));
        for (int i = 0; i < 20000; i++)
            out[i] = (unsigned char)(i * 7 + i / 256);
        gin_at_t to = gin_at(at.win, at.off + 101);
        EXPECT_OK(gin_put(&g, gin_thread(), gin_world(&g), 0, to, gin_at_local(out), 8000,
                          gin_no_action()));
        EXPECT_OK(gin_quiet(&g, gin_thread())); /* over a network it may be under way */
        EXPECT_OK(gin_get(&g, gin_thread(), gin_world(&g), 0, to, gin_at_local(in), 8000));
        EXPECT_OK(gin_flush(&g, gin_thread()));
        EXPECT(memcmp(in, out, 8000) == 0);
        free(out);
        free(in);
    }
    EXPECT_OK(gin_comm_barrier(gp->comm)); /* rank 0's engine was needed until here */
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}
