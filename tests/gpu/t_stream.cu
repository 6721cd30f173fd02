/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that the host gives to streams: data of all sizes and places, signals, words, their
 * order with kernels of the program before and after them, two streams, graphs, and what is
 * refused.
 */
#include "tests/gpu/gpu.h"

#define MIB   ((size_t)1 << 20)
#define ROOM  (8 * MIB + 4096) /* of one buffer */
#define GUARD 64

static int right_of(const struct gpu *gp)
{
    return (gp->rank + 1) % gp->size;
}
static int left_of(const struct gpu *gp)
{
    return (gp->rank + gp->size - 1) % gp->size;
}
static gin_team_t world_of(const struct gpu *gp)
{
    return gin_team_world(gp->comm);
}
static gin_stream_t stream_of(cudaStream_t s)
{
    return (gin_stream_t)s;
}
static gin_at_t behind(gin_at_t at, size_t off)
{
    return gin_at(at.win, at.off + off);
}

/* ---- kernels of the program ---- */

__global__ void fill(unsigned char *p, size_t n, unsigned long long seed)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = gpu_byte(seed, i);
}

__global__ void poison(unsigned char *p, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        p[i] = 0xee;
}

/* n bytes of a pattern between guards that nobody has touched. */
__global__ void check(const unsigned char *p, size_t n, unsigned long long seed, int guard,
                      struct gpu_report *r)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x)
        if (!D_EQ(r, gpu_look(&p[i]), gpu_byte(seed, i)))
            return;
    for (int i = (int)threadIdx.x; i < GUARD && guard >= 0; i += (int)blockDim.x) {
        D_EQ(r, gpu_look(p - 1 - i), guard);
        D_EQ(r, gpu_look(p + n + i), guard);
    }
}

__global__ void check_word(const unsigned long long *p, unsigned long long want,
                           struct gpu_report *r)
{
    D_EQ(r, gpu_look(p), want);
}

__global__ void wait_a_while(int us)
{
    for (int i = 0; i < us; i++)
        __nanosleep(1000);
}

/* ---- data ---- */

struct data {
    unsigned char *src, *dst, *got; /* symmetric, ROOM bytes each */
    gin_at_t a_src, a_dst, a_got;
    unsigned long long rounds;
};

static bool data_up(struct gpu *gp, struct data *d, gin_kind_t kind)
{
    memset(d, 0, sizeof(*d));
    d->src = (unsigned char *)gpu_symmetric(gp, kind, ROOM, &d->a_src);
    d->dst = (unsigned char *)gpu_symmetric(gp, kind, ROOM, &d->a_dst);
    d->got = (unsigned char *)gpu_symmetric(gp, kind, ROOM, &d->a_got);
    return d->src != NULL && d->dst != NULL && d->got != NULL && gpu_dev(gp, NULL);
}

static void data_down(struct gpu *gp, struct data *d)
{
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, d->src));
    EXPECT_OK(gin_free(gp->comm, d->dst));
    EXPECT_OK(gin_free(gp->comm, d->got));
}

static void barrier(struct gpu *gp, cudaStream_t s)
{
    EXPECT_OK(gin_barrier_on_stream(&gp->dev, gin_barrier_world(), 0, GIN_FENCE_ALL, stream_of(s)));
}

/* Put to the right and get from the left, with a signal or with a barrier. */
static void move(struct gpu *gp, struct data *d, size_t bytes, size_t src, size_t dst, int how)
{
    const gin_devcomm_t *dev = &gp->dev;
    gin_stream_t s = stream_of(gp->stream);
    unsigned long long mine = gp->seed + 1000 * d->rounds + (unsigned)gp->rank;
    unsigned long long his = gp->seed + 1000 * d->rounds + (unsigned)left_of(gp);
    poison<<<8, 256, 0, gp->stream>>>(d->dst + dst - GUARD, bytes + 2 * GUARD);
    poison<<<8, 256, 0, gp->stream>>>(d->got + dst - GUARD, bytes + 2 * GUARD);
    barrier(gp, gp->stream); /* before it nobody writes there */
    fill<<<8, 256, 0, gp->stream>>>(d->src + src, bytes, mine);
    gin_action_t act = how == 0 ? gin_no_action() : how == 1 ? gin_weak_inc(0) : gin_strong_inc(0);
    EXPECT_OK(gin_put_on_stream(dev, 0, world_of(gp), right_of(gp), behind(d->a_dst, dst),
                                behind(d->a_src, src), bytes, act, s));
    if (how == 0)
        barrier(gp, gp->stream);
    else
        EXPECT_OK(gin_wait_signal_on_stream(dev, 0, 0, ++d->rounds, s));
    check<<<1, 512, 0, gp->stream>>>(d->dst + dst, bytes, his, 0xee, gp->report);
    barrier(gp, gp->stream); /* the source is filled everywhere */
    EXPECT_OK(gin_get_on_stream(dev, 0, world_of(gp), left_of(gp), behind(d->a_src, src),
                                behind(d->a_got, dst), bytes, s));
    check<<<1, 512, 0, gp->stream>>>(d->got + dst, bytes, his, 0xee, gp->report);
    barrier(gp, gp->stream);
}

static void all_sizes(struct gpu *gp, gin_kind_t kind, size_t most)
{
    static const size_t sizes[] = {0,     1,          2,      4,   7,       8,
                                   16,    63,         512,    513, 4096,    65536 - 1,
                                   65536, 131072 - 8, 131072, MIB, MIB + 5, 8 * MIB};
    struct data d;
    int how = 0;
    if (!data_up(gp, &d, kind))
        return;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= most; i++) {
        how = (how + 1) % 3;
        move(gp, &d, sizes[i], GUARD, GUARD, how);
        if (i % 2 == 0 || gp->sharers == 1)
            move(gp, &d, sizes[i], GUARD + 1, GUARD + 3, (how + 1) % 3);
        if (!GPU_DONE(gp))
            break;
        EXPECT_OK(gin_stream_status(&gp->dev));
    }
    data_down(gp, &d);
}

GPU_TEST(sizes, 1)
{
    all_sizes(gp, GIN_KIND_CUDA, 8 * MIB);
}

GPU_TEST(sizes_of_host_memory, 1)
{
    all_sizes(gp, GIN_KIND_HOST, 65536);
}

/* Memory of mine that is no window: the GPU's, and pinned. */
GPU_TEST(local_memory, 1)
{
    struct data d;
    unsigned char *gpu, *host;
    if (!data_up(gp, &d, GIN_KIND_CUDA))
        return;
    CU(cudaMalloc((void **)&gpu, MIB));
    CU(cudaMallocHost((void **)&host, MIB));
    unsigned long long mine = gp->seed + (unsigned)gp->rank, his = gp->seed + (unsigned)left_of(gp);
    for (int pinned = 0; pinned < 2; pinned++) {
        unsigned char *p = pinned ? host : gpu;
        fill<<<8, 256, 0, gp->stream>>>(p, MIB, mine + 10u * (unsigned)pinned);
        EXPECT_OK(gin_put_on_stream(&gp->dev, 1, world_of(gp), right_of(gp), d.a_dst,
                                    gin_at_local(p), MIB, gin_weak_inc(1), stream_of(gp->stream)));
        EXPECT_OK(gin_wait_signal_on_stream(&gp->dev, 1, 1, 1u + (unsigned)pinned,
                                            stream_of(gp->stream)));
        check<<<1, 512, 0, gp->stream>>>(d.dst, MIB, his + 10u * (unsigned)pinned, -1, gp->report);
        barrier(gp, gp->stream);
        EXPECT_OK(gin_get_on_stream(&gp->dev, 1, world_of(gp), right_of(gp), d.a_dst,
                                    gin_at_local(p), MIB, stream_of(gp->stream)));
        check<<<1, 512, 0, gp->stream>>>(p, MIB, mine + 10u * (unsigned)pinned, -1, gp->report);
        barrier(gp, gp->stream);
    }
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(&gp->dev));
    CU(cudaFree(gpu));
    CU(cudaFreeHost(host));
    data_down(gp, &d);
}

/* ---- words ---- */

GPU_TEST(values_and_words, 1)
{
    gin_at_t at;
    unsigned long long *p = (unsigned long long *)gpu_symmetric(gp, GIN_KIND_CUDA, 4096, &at);
    gin_stream_t s = stream_of(gp->stream);
    const gin_devcomm_t *dev = &gp->dev;
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    gin_team_t w = world_of(gp);
    int right = right_of(gp);
    for (unsigned b = 1; b <= 8; b++)
        EXPECT_OK(gin_put_value_on_stream(dev, 0, w, right, behind(at, 8 * b),
                                          0x1122334455667788ull + b, b, gin_no_action(), s));
    EXPECT_OK(
        gin_put_value_on_stream(dev, 0, w, right, at, 5, 8, gin_set_at(behind(at, 128), 9), s));
    EXPECT_OK(gin_wait_signal_until_at_on_stream(dev, 0, behind(at, 128), GIN_CMP_EQ, 9, NULL, s));
    check_word<<<1, 1, 0, gp->stream>>>(p, 5, gp->report);
    for (unsigned b = 1; b <= 8; b++) {
        unsigned long long v = 0x1122334455667788ull + b;
        check_word<<<1, 1, 0, gp->stream>>>(p + b, b == 8 ? v : v & ((1ull << 8 * b) - 1),
                                            gp->report);
    }
    EXPECT_OK(gin_signal_on_stream(dev, 0, w, right, gin_weak_add_at(behind(at, 136), 7), s));
    EXPECT_OK(gin_signal_on_stream(dev, 0, w, right, gin_strong_inc_at(behind(at, 136)), s));
    EXPECT_OK(gin_wait_signal_at_on_stream(dev, 0, behind(at, 136), 8, NULL, s));
    EXPECT_OK(gin_consume_signal_at_on_stream(dev, 0, behind(at, 136), 8, s));
    check_word<<<1, 1, 0, gp->stream>>>(p + 17, 0, gp->report);
    EXPECT_OK(gin_signal_on_stream(dev, 2, w, right, gin_weak_add(3, 4), s));
    EXPECT_OK(gin_wait_signal_until_on_stream(dev, 2, 3, GIN_CMP_GT, 3, NULL, s));
    EXPECT_OK(gin_consume_signal_on_stream(dev, 2, 3, 4, s));
    EXPECT_OK(gin_signal_on_stream(dev, 2, w, right, gin_strong_inc(3), s));
    EXPECT_OK(gin_wait_signal_until_on_stream(dev, 2, 3, GIN_CMP_EQ, 1, NULL, s));
    EXPECT_OK(gin_flush_on_stream(dev, 2, s));
    EXPECT_OK(gin_fence_on_stream(dev, GIN_ALL_CONTEXTS, s));
    EXPECT_OK(gin_quiet_on_stream(dev, GIN_ALL_CONTEXTS, s));
    EXPECT_OK(gin_quiet_on_stream(dev, 3, s));
    barrier(gp, gp->stream);
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(dev));
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* One rank's operations on a word of the next one, in their order. */
GPU_TEST(atomics, 1)
{
    static const struct {
        gin_amo_t op;
        unsigned value, expected, after; /* the word after it */
    } t[] = {{GIN_AMO_SET, 100, 0, 100},     {GIN_AMO_ADD, 28, 0, 128},
             {GIN_AMO_OR, 3, 0, 131},        {GIN_AMO_AND, 0xfe, 0, 130},
             {GIN_AMO_XOR, 0xff, 0, 125},    {GIN_AMO_FETCH, 0, 0, 125},
             {GIN_AMO_FETCH_ADD, 5, 0, 130}, {GIN_AMO_FETCH_AND, 0xf0, 0, 128},
             {GIN_AMO_FETCH_OR, 5, 0, 133},  {GIN_AMO_FETCH_XOR, 1, 0, 132},
             {GIN_AMO_SWAP, 77, 0, 77},      {GIN_AMO_CAS, 78, 77, 78},
             {GIN_AMO_CAS, 79, 77, 78},      {GIN_AMO_FETCH, 0, 0, 78}};
    const int N = 14;
    gin_at_t at;
    uint64_t *p = (uint64_t *)gpu_symmetric(gp, GIN_KIND_CUDA, 4096, &at), *old, got[28];
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    CU(cudaMalloc((void **)&old, sizeof(got)));
    CU(cudaMemsetAsync(old, 0xff, sizeof(got), gp->stream));
    gin_stream_t s = stream_of(gp->stream);
    for (int i = 0; i < N; i++) {
        bool fetch = t[i].op >= GIN_AMO_FETCH;
        EXPECT_OK(gin_amo_on_stream(&gp->dev, 0, world_of(gp), right_of(gp), at, t[i].op,
                                    t[i].value, t[i].expected, fetch ? &old[i] : NULL, s));
        EXPECT_OK(gin_amo32_on_stream(&gp->dev, 0, world_of(gp), right_of(gp), behind(at, 64),
                                      t[i].op, t[i].value, t[i].expected,
                                      fetch ? (uint32_t *)&old[N + i] : NULL, s));
    }
    CU(cudaMemcpyAsync(got, old, sizeof(got), cudaMemcpyDeviceToHost, gp->stream));
    barrier(gp, gp->stream);
    GPU_DONE(gp);
    for (int i = 0; i < N; i++) {
        bool fetch = t[i].op >= GIN_AMO_FETCH;
        EXPECT_EQ_U64(got[i], fetch ? t[i - 1].after : ~0ull);
        EXPECT_EQ_U64(got[N + i], fetch ? (0xffffffffull << 32 | t[i - 1].after) : ~0ull);
    }
    EXPECT_OK(gin_stream_status(&gp->dev));
    CU(cudaFree(old));
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}

/* ---- order ---- */

/* A kernel puts and does not wait; the barrier behind it completes that, in every context. */
__global__ void put_and_go(gin_devcomm_t dev, gin_at_t dst, gin_at_t src, size_t each,
                           struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    D_OK(r, gin_put(&g, gin_thread(), gin_world(&g), (g.rank + 1) % g.size,
                    gin_at(dst.win, dst.off + blockIdx.x * each),
                    gin_at(src.win, src.off + blockIdx.x * each), each, gin_no_action()));
}

GPU_TEST(barrier_completes_what_kernels_issued, 1)
{
    struct data d;
    const size_t each = 256 << 10; /* by one thread: the engine's copy engine */
    if (!data_up(gp, &d, GIN_KIND_CUDA))
        return;
    for (int i = 0, n = gpu_rounds(gp, 100); i < n; i++) {
        unsigned long long seed = gp->seed + 100ull * (unsigned)i;
        fill<<<8, 256, 0, gp->stream>>>(d.src, 4 * each, seed + (unsigned)gp->rank);
        put_and_go<<<4, 1, 0, gp->stream>>>(gp->dev, d.a_dst, d.a_src, each, gp->report);
        barrier(gp, gp->stream);
        check<<<1, 1024, 0, gp->stream>>>(d.dst, 4 * each, seed + (unsigned)left_of(gp), -1,
                                          gp->report);
        barrier(gp, gp->stream);
    }
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(&gp->dev));
    data_down(gp, &d);
}

/* One stream sends behind a slow kernel, another one receives and checks; events tie the rounds. */
GPU_TEST(two_streams, 1)
{
    struct data d;
    cudaStream_t other;
    cudaEvent_t seen;
    const size_t bytes = 10007;
    if (!data_up(gp, &d, GIN_KIND_CUDA))
        return;
    CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CU(cudaEventCreateWithFlags(&seen, cudaEventDisableTiming));
    for (int i = 1, n = gpu_rounds(gp, 200); i <= n; i++) {
        unsigned long long seed = gp->seed + 100ull * (unsigned)i;
        EXPECT_OK(gin_wait_signal_on_stream(&gp->dev, 0, 0, (uint64_t)i, stream_of(other)));
        check<<<1, 256, 0, other>>>(d.dst, bytes, seed + (unsigned)left_of(gp), -1, gp->report);
        CU(cudaEventRecord(seen, other));
        wait_a_while<<<1, 1, 0, gp->stream>>>(20);
        fill<<<4, 256, 0, gp->stream>>>(d.src, bytes, seed + (unsigned)gp->rank);
        EXPECT_OK(gin_put_on_stream(&gp->dev, 0, world_of(gp), right_of(gp), d.a_dst, d.a_src,
                                    bytes, i % 2 ? gin_weak_inc(0) : gin_strong_inc(0),
                                    stream_of(gp->stream)));
        CU(cudaStreamWaitEvent(gp->stream, seen, 0));
        barrier(gp, gp->stream); /* all have looked: the next put may come */
    }
    CU(cudaStreamSynchronize(other));
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(&gp->dev));
    CU(cudaEventDestroy(seen));
    CU(cudaStreamDestroy(other));
    data_down(gp, &d);
}

/* ---- graphs ---- */

__global__ void fill_round(unsigned long long *p, size_t words, unsigned long long *round, int rank)
{
    unsigned long long now = *round + 1;
    __syncthreads();
    for (size_t i = threadIdx.x; i < words; i += blockDim.x)
        p[i] = gpu_word(now * 64 + (unsigned)rank, i);
    if (threadIdx.x == 0)
        *round = now;
}

__global__ void check_round(const unsigned long long *p, size_t words,
                            const unsigned long long *round, int rank, struct gpu_report *r)
{
    for (size_t i = threadIdx.x; i < words; i += blockDim.x)
        if (!D_EQ(r, gpu_look(&p[i]), gpu_word(*round * 64 + (unsigned)rank, i)))
            return;
}

static cudaGraphExec_t captured(cudaStream_t s, void (*body)(struct gpu *, struct data *, void *),
                                struct gpu *gp, struct data *d, void *arg)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CU(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    body(gp, d, arg);
    CU(cudaStreamEndCapture(s, &graph));
    CU(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    CU(cudaGraphDestroy(graph));
    return exec;
}

/* A round of everything: a small put with a signal, a large one, an atomic, a barrier. */
static void exchange(struct gpu *gp, struct data *d, void *arg)
{
    unsigned long long *round = (unsigned long long *)arg;
    unsigned long long *src = (unsigned long long *)d->src, *dst = (unsigned long long *)d->dst;
    gin_stream_t s = stream_of(gp->stream);
    const gin_devcomm_t *dev = &gp->dev;
    gin_team_t w = world_of(gp);
    const size_t small = 512, large = (256 << 10) / 8, far = 4 * MIB;
    fill_round<<<1, 512, 0, gp->stream>>>(src, large, round, gp->rank);
    EXPECT_OK(gin_put_on_stream(dev, 0, w, right_of(gp), d->a_dst, d->a_src, small * 8,
                                gin_weak_inc(0), s));
    EXPECT_OK(gin_put_on_stream(dev, 1, w, right_of(gp), behind(d->a_dst, far), d->a_src, large * 8,
                                gin_strong_inc(0), s));
    EXPECT_OK(gin_wait_signal_on_stream(dev, 0, 0, 1, s));
    EXPECT_OK(gin_consume_signal_on_stream(dev, 0, 0, 1, s));
    EXPECT_OK(gin_wait_signal_on_stream(dev, 1, 0, 1, s));
    EXPECT_OK(gin_consume_signal_on_stream(dev, 1, 0, 1, s));
    check_round<<<1, 512, 0, gp->stream>>>(dst, small, round, left_of(gp), gp->report);
    check_round<<<1, 512, 0, gp->stream>>>(dst + far / 8, large, round, left_of(gp), gp->report);
    EXPECT_OK(
        gin_get_on_stream(dev, 0, w, right_of(gp), behind(d->a_dst, far), d->a_got, small * 8, s));
    EXPECT_OK(gin_amo_on_stream(dev, 0, w, right_of(gp), behind(d->a_got, 5 * MIB), GIN_AMO_ADD, 3,
                                0, NULL, s));
    EXPECT_OK(gin_barrier_on_stream(dev, gin_barrier_world(), 0, GIN_FENCE_ALL, s));
}

/* Nothing in it waits for another rank. */
static void one_way(struct gpu *gp, struct data *d, void *arg)
{
    unsigned long long *round = (unsigned long long *)arg;
    gin_stream_t s = stream_of(gp->stream);
    fill_round<<<1, 512, 0, gp->stream>>>((unsigned long long *)d->src, 8192, round, gp->rank);
    EXPECT_OK(gin_put_on_stream(&gp->dev, 0, world_of(gp), right_of(gp), d->a_dst, d->a_src, 65536,
                                gin_weak_inc(1), s));
    EXPECT_OK(gin_amo_on_stream(&gp->dev, 0, world_of(gp), right_of(gp), behind(d->a_got, 6 * MIB),
                                GIN_AMO_ADD, 2, 0, NULL, s));
    EXPECT_OK(gin_quiet_on_stream(&gp->dev, 0, s));
}

GPU_TEST(graphs, 1)
{
    struct data d;
    unsigned long long *round, n = (unsigned)gpu_rounds(gp, 1000);
    if (!data_up(gp, &d, GIN_KIND_CUDA))
        return;
    CU(cudaMalloc((void **)&round, 16));
    CU(cudaMemsetAsync(round, 0, 16, gp->stream));
    CU(cudaStreamSynchronize(gp->stream));
    cudaGraphExec_t all = captured(gp->stream, exchange, gp, &d, round);
    cudaGraphExec_t half = captured(gp->stream, one_way, gp, &d, round + 1);
    for (unsigned long long i = 0; i < n; i++)
        CU(cudaGraphLaunch(all, gp->stream));
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(&gp->dev));
    barrier(gp, gp->stream);
    check_word<<<1, 1, 0, gp->stream>>>((unsigned long long *)(d.got + 5 * MIB), 3 * n, gp->report);
    for (int i = 0; i < 1000; i++)
        CU(cudaGraphLaunch(half, gp->stream));
    EXPECT_OK(gin_wait_signal_on_stream(&gp->dev, 0, 1, 1000, stream_of(gp->stream)));
    barrier(gp, gp->stream);
    check_round<<<1, 512, 0, gp->stream>>>((unsigned long long *)d.dst, 8192, round + 1,
                                           left_of(gp), gp->report);
    check_word<<<1, 1, 0, gp->stream>>>((unsigned long long *)(d.got + 6 * MIB), 2000, gp->report);
    barrier(gp, gp->stream);
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(&gp->dev));
    CU(cudaGraphExecDestroy(all));
    CU(cudaGraphExecDestroy(half));
    CU(cudaFree(round));
    data_down(gp, &d);
}

/* ---- what is refused, and what fails later ---- */

GPU_TEST(refused, 1)
{
    struct data d;
    gin_devcomm_t host, *dev = &gp->dev;
    gin_stream_t s = stream_of(gp->stream);
    gin_team_t w = world_of(gp);
    if (!data_up(gp, &d, GIN_KIND_CUDA) || !EXPECT_OK(gin_devcomm_create(gp->comm, NULL, &host)))
        return;
#define PUT(dev, ctx, peer, dst, src, n, act) \
    gin_put_on_stream(dev, ctx, w, peer, dst, src, n, act, s)
    EXPECT_FAILS(PUT(&host, 0, 0, d.a_dst, d.a_src, 8, gin_no_action()), GIN_ENOTSUP, "HOST");
    EXPECT_FAILS(PUT(NULL, 0, 0, d.a_dst, d.a_src, 8, gin_no_action()), GIN_ESTATE, "not a");
    EXPECT_FAILS(PUT(dev, 99, 0, d.a_dst, d.a_src, 8, gin_no_action()), GIN_ERANGE, "context 99");
    EXPECT_FAILS(PUT(dev, 0, gp->size, d.a_dst, d.a_src, 8, gin_no_action()), GIN_ERANGE, "");
    EXPECT_FAILS(PUT(dev, 0, 0, gin_at(d.a_dst.win, 1ull << 50), d.a_src, 8, gin_no_action()),
                 GIN_ERANGE, "outside window");
    EXPECT_FAILS(PUT(dev, 0, 0, d.a_dst, gin_at_local(&d), 8, gin_no_action()), GIN_EINVAL,
                 "ordinary host memory");
    EXPECT_FAILS(PUT(dev, 0, 0, d.a_dst, d.a_src, 8, gin_weak_inc(999)), GIN_ERANGE, "signal 999");
    EXPECT_FAILS(PUT(dev, 0, 0, d.a_dst, d.a_src, 8, gin_weak_inc_at(behind(d.a_dst, 4))),
                 GIN_EINVAL, "aligned");
    EXPECT_FAILS(PUT(dev, GIN_ALL_CONTEXTS, 0, d.a_dst, d.a_src, 8, gin_no_action()), GIN_EINVAL,
                 "GIN_ALL_CONTEXTS");
    EXPECT_FAILS(gin_barrier_on_stream(dev, gin_barrier_world(), 77, 0, s), GIN_ERANGE, "77");
    EXPECT_FAILS(gin_amo_on_stream(dev, 0, w, 0, d.a_dst, GIN_AMO_FETCH, 0, 0, NULL, s), GIN_EINVAL,
                 "old");
    /* a capture that has failed */
    cudaGraph_t graph = NULL;
    void *p = NULL;
    CU(cudaStreamBeginCapture(gp->stream, cudaStreamCaptureModeGlobal));
    if (cudaMalloc(&p, 64) != cudaSuccess) {
        (void)cudaGetLastError();
        EXPECT_FAILS(PUT(dev, 0, 0, d.a_dst, d.a_src, 8, gin_no_action()), GIN_EINVAL, "capture");
    }
    (void)cudaStreamEndCapture(gp->stream, &graph);
    (void)cudaGetLastError();
    if (graph != NULL)
        CU(cudaGraphDestroy(graph));
    if (p != NULL)
        CU(cudaFree(p));
    if (gp->devices > 1) { /* another GPU's stream */
        cudaStream_t other;
        CU(cudaSetDevice((gp->device + 1) % gp->devices));
        CU(cudaStreamCreate(&other));
        EXPECT_FAILS(gin_quiet_on_stream(dev, 0, stream_of(other)), GIN_EINVAL, "another CUDA");
        CU(cudaStreamDestroy(other));
        CU(cudaSetDevice(gp->device));
    }
    /* the default stream is one */
    EXPECT_OK(PUT(dev, 0, gp->rank, d.a_dst, d.a_src, 64, gin_no_action()));
    EXPECT_OK(gin_quiet_on_stream(dev, 0, NULL));
    CU(cudaStreamSynchronize(NULL));
    GPU_DONE(gp);
    EXPECT_OK(gin_stream_status(dev));
    gin_devcomm_t gone = *dev;
    EXPECT_OK(gin_devcomm_destroy(gp->comm, &host));
    data_down(gp, &d);
    EXPECT_FAILS(gin_quiet_on_stream(&gone, 0, s), GIN_ESTATE, "destroyed");
    EXPECT_FAILS(gin_stream_status(&gone), GIN_ESTATE, "");
}

/* A wait that lasts too long tells so afterwards, and the stream goes on. */
GPU_TEST(failures_are_told, 1)
{
    gin_at_t at;
    unsigned long long *p = (unsigned long long *)gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    gin_wait_opt_t soon = {};
    soon.timeout_ns = 20000000;
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    gin_stream_t s = stream_of(gp->stream);
    EXPECT_OK(gin_wait_signal_until_on_stream(&gp->dev, 0, 5, GIN_CMP_NE, 0, &soon, s));
    EXPECT_OK(gin_put_value_on_stream(&gp->dev, 0, world_of(gp), gp->rank, at, 11, 8,
                                      gin_no_action(), s));
    check_word<<<1, 1, 0, gp->stream>>>(p, 11, gp->report);
    GPU_DONE(gp);
    EXPECT_FAILS(gin_stream_status(&gp->dev), GIN_ETIMEDOUT, "a wait on a stream");
    EXPECT_OK(gin_stream_status(&gp->dev));
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}
