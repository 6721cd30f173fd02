/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the host makes of calls on streams: copies, launches and their arguments, refusals; and,
 * where the kernels run on host threads (emulated.sh), what comes of it.
 */
#include <cuda.h>
#include "cuda/kernels/stream.h"
#include "tests/cuda/cuda_test.h"

#define K      1024u
#define ROOM   (512u * K)
#define ROUNDS 1000

/* A driver's entry, as a program would call it. */
#define CALL(name, ...) ((__typeof__(name) *)fake(#name))(__VA_ARGS__)
#define CU(name, ...)   EXPECT_EQ_INT(CALL(name, __VA_ARGS__), CUDA_SUCCESS)

struct bed {
    gin_comm_t *comm;
    gin_devcomm_t *dev;
    gin_team_t world;
    gin_stream_t stream;
    char *p;     /* symmetric, 2 * ROOM */
    gin_at_t at; /* its place */
    int right, left;
};

static bool with_kernels(void)
{
    return getenv("FAKE_CUDA_KERNELS") != NULL;
}

static long launched(struct gi_stream_job *job, unsigned *threads)
{
    return ((long (*)(void *, unsigned *))fake("fake_cuda_launched"))(job, threads);
}

static CUcontext context_of(int device)
{
    CUcontext c = NULL;
    CU(cuDevicePrimaryCtxRetain, &c, device);
    CU(cuDevicePrimaryCtxRelease, device);
    return c;
}

static bool up_in(struct mp *mp, struct bed *b, gin_devcomm_reqs_t *reqs, gin_kind_t kind)
{
    CUstream s = NULL;
    if (!cuda_dev(mp, reqs))
        return false;
    b->comm = mp->comm;
    b->dev = &mp->dev;
    b->world = gin_team_world(mp->comm);
    b->right = (mp->rank + 1) % mp->size;
    b->left = (mp->rank + mp->size - 1) % mp->size;
    b->p = gin_calloc_kind(mp->comm, kind, 2, ROOM);
    if (!EXPECT(b->p != NULL))
        return false;
    EXPECT_OK(gin_window_of(mp->comm, b->p, &b->at.win, &b->at.off));
    CU(cuCtxPushCurrent, context_of(gin_team_node(mp->comm).rank % 2));
    CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    b->stream = s;
    return true;
}

static bool up(struct mp *mp, struct bed *b, gin_devcomm_reqs_t *reqs)
{
    return up_in(mp, b, reqs, GIN_KIND_CUDA);
}

static void down(struct bed *b)
{
    CUcontext c;
    CU(cuStreamSynchronize, b->stream);
    EXPECT_OK(gin_stream_status(b->dev));
    CU(cuStreamDestroy, b->stream);
    CU(cuCtxPopCurrent, &c);
    EXPECT_OK(gin_comm_barrier(b->comm));
    EXPECT_OK(gin_free(b->comm, b->p));
}

static gin_at_t behind(gin_at_t at, uint64_t off)
{
    return gin_at(at.win, at.off + off);
}

/* ---- what is enqueued ---- */

MP_TEST_N(ways, "1 2")
{
    struct bed b;
    struct gi_stream_job j;
    unsigned threads;
    if (!up(mp, &b, NULL))
        return;
    if (with_kernels())
        MP_SKIP("for launches alone");
    memset(b.p, 0x11 + mp->rank, ROOM);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    long before = launched(&j, &threads);
    /* a copy, and nothing else */
    EXPECT_OK(gin_put_on_stream(b.dev, 0, b.world, b.right, behind(b.at, ROOM), b.at, ROOM,
                                gin_no_action(), b.stream));
    EXPECT_OK(
        gin_put_on_stream(b.dev, 0, b.world, b.right, b.at, b.at, 0, gin_no_action(), b.stream));
    CU(cuStreamSynchronize, b.stream);
    EXPECT_EQ_INT(launched(&j, &threads), before);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(b.p + ROOM, ROOM, 0x11 + b.left);
    /* one kernel */
    EXPECT_OK(gin_put_on_stream(b.dev, 1, b.world, b.right, behind(b.at, ROOM), b.at, 64 * K,
                                gin_weak_add(3, 7), b.stream));
    if (!mp->threads) {
        EXPECT_EQ_INT(launched(&j, &threads), before + 1);
        EXPECT(j.kernel == GI_STREAM_PUT && j.context == 1 && j.bytes == 64 * K && threads > 32);
        EXPECT(j.remote.id == 3 && j.remote.value == 7 && j.peer == b.right && j.flush == 0);
        EXPECT(memcmp(&j.dev, b.dev, sizeof(j.dev)) == 0 && j.src.off == b.at.off);
        /* a word */
        EXPECT_OK(gin_put_on_stream(b.dev, 1, b.world, b.right, behind(b.at, ROOM), b.at, 8,
                                    gin_weak_add(3, 7), b.stream));
        EXPECT_EQ_INT(launched(&j, &threads), before + 2);
        EXPECT(j.kernel == GI_STREAM_WORD && j.value == 7 && threads == 1);
        EXPECT(j.src.off == (uint64_t)(uintptr_t)b.p && j.dst.off - j.src.off >= ROOM);
        EXPECT_OK(gin_put_on_stream(b.dev, 1, b.world, b.right, behind(b.at, ROOM + 4), b.at, 8,
                                    gin_weak_add(3, 7), b.stream));
        EXPECT_EQ_INT(launched(&j, &threads), before + 3);
        EXPECT(j.kernel == GI_STREAM_PUT && threads == 32);
        /* a copy and a kernel */
        EXPECT_OK(gin_put_on_stream(b.dev, 1, b.world, b.right, behind(b.at, ROOM), b.at, ROOM,
                                    gin_strong_inc(2), b.stream));
        EXPECT_EQ_INT(launched(&j, &threads), before + 4);
        EXPECT(j.kernel == GI_STREAM_SIGNAL && j.remote.id == 2 && threads == 1);
        EXPECT_OK(gin_barrier_on_stream(b.dev, gin_barrier_lsa(), 0, GIN_FENCE_PUT, b.stream));
        EXPECT_EQ_INT(launched(&j, &threads), before + 5);
        EXPECT(j.kernel == GI_STREAM_BARRIER && j.which.kind == GIN_BARRIER_LSA && threads == 32);
    }
    down(&b);
}

/* ---- what is refused ---- */

MP_TEST_N(refused, "1 2")
{
    struct bed b;
    gin_devcomm_t host;
    gin_devcomm_reqs_t r;
    struct gi_stream_job j;
    unsigned threads;
    char mine[64];
    gin_wait_opt_t once = {.poll = 1};
    gin_devcomm_reqs_init(&r);
    r.strong = r.va = 0;
    if (!up(mp, &b, &r) || !EXPECT_OK(gin_devcomm_create(mp->comm, NULL, &host)))
        return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    long before = launched(&j, &threads);
    EXPECT_OK(gin_comm_barrier(mp->comm));
#define PUT(dev, context, peer, dst, src, n, act) \
    gin_put_on_stream(dev, context, b.world, peer, dst, src, n, act, b.stream)
    EXPECT_FAILS(PUT(&host, 0, 0, b.at, b.at, 8, gin_no_action()), GIN_ENOTSUP, "HOST");
    EXPECT_FAILS(PUT(NULL, 0, 0, b.at, b.at, 8, gin_no_action()), GIN_ESTATE, "not a device");
    EXPECT_FAILS(PUT(b.dev, 4, 0, b.at, b.at, 8, gin_no_action()), GIN_ERANGE, "context 4");
    EXPECT_FAILS(PUT(b.dev, GIN_ALL_CONTEXTS, 0, b.at, b.at, 8, gin_no_action()), GIN_EINVAL,
                 "GIN_ALL_CONTEXTS");
    EXPECT_FAILS(PUT(b.dev, 0, mp->size, b.at, b.at, 8, gin_no_action()), GIN_ERANGE, "on_stream");
    EXPECT_FAILS(PUT(b.dev, 0, 0, gin_at(gin_window_none(), 0), b.at, 8, gin_no_action()),
                 GIN_ESTATE, "window");
    EXPECT_FAILS(PUT(b.dev, 0, 0, gin_at(b.at.win, 1ull << 60), b.at, 8, gin_no_action()),
                 GIN_ERANGE, "outside window");
    EXPECT_FAILS(PUT(b.dev, 0, 0, gin_at_local(b.p), b.at, 8, gin_no_action()), GIN_EINVAL,
                 "my own memory");
    EXPECT_FAILS(PUT(b.dev, 0, 0, b.at, gin_at_local(mine), 8, gin_no_action()), GIN_EINVAL,
                 "ordinary host memory");
    char *mixed = (char *)(uintptr_t)fake_mixed(4096);
    EXPECT_FAILS(PUT(b.dev, 0, 0, b.at, gin_at_local(mixed + 4088), 16, gin_no_action()),
                 GIN_EINVAL, "goes on in ordinary host memory");
    EXPECT_FAILS(PUT(b.dev, 0, 0, b.at, gin_at_local(NULL), 8, gin_no_action()), GIN_EINVAL,
                 "NULL");
    EXPECT_FAILS(PUT(b.dev, 0, 0, b.at, b.at, 8, gin_weak_inc(64)), GIN_ERANGE, "signal 64");
    EXPECT_FAILS(PUT(b.dev, 0, 0, b.at, b.at, 8, gin_strong_inc(0)), GIN_ENOTSUP, "strong");
    EXPECT_FAILS(PUT(b.dev, 0, 0, b.at, b.at, 8, gin_weak_inc_at(b.at)), GIN_ENOTSUP, "va");
    EXPECT_FAILS(
        gin_put_value_on_stream(b.dev, 0, b.world, 0, b.at, 1, 9, gin_no_action(), b.stream),
        GIN_EINVAL, "9 bytes");
    EXPECT_FAILS(gin_signal_on_stream(b.dev, 0, b.world, 0, gin_no_action(), b.stream), GIN_EINVAL,
                 "signals nothing");
    EXPECT_FAILS(gin_wait_signal_on_stream(b.dev, 0, 64, 1, b.stream), GIN_ERANGE, "signal 64");
    EXPECT_FAILS(gin_wait_signal_until_on_stream(b.dev, 0, 0, (gin_cmp_t)6, 1, NULL, b.stream),
                 GIN_EINVAL, "comparison 6");
    EXPECT_FAILS(gin_wait_signal_at_on_stream(b.dev, 0, b.at, 1, &once, b.stream), GIN_EINVAL,
                 "poll");
    EXPECT_FAILS(gin_wait_signal_at_on_stream(b.dev, 0, behind(b.at, 4), 1, NULL, b.stream),
                 GIN_EINVAL, "aligned");
    EXPECT_FAILS(gin_amo_on_stream(b.dev, 0, b.world, 0, b.at, GIN_AMO_SWAP, 1, 0, NULL, b.stream),
                 GIN_EINVAL, "old is NULL");
    EXPECT_FAILS(
        gin_amo_on_stream(b.dev, 0, b.world, 0, b.at, GIN_AMO_ADD, 1, 0, (uint64_t *)b.p, b.stream),
        GIN_EINVAL, "fetches nothing");
    EXPECT_FAILS(gin_amo32_on_stream(b.dev, 0, b.world, 0, behind(b.at, 2), GIN_AMO_ADD, 1, 0, NULL,
                                     b.stream),
                 GIN_EINVAL, "4-byte aligned");
    EXPECT_FAILS(
        gin_amo32_on_stream(b.dev, 0, b.world, 0, b.at, (gin_amo_t)12, 1, 0, NULL, b.stream),
        GIN_EINVAL, "operation 12");
    EXPECT_FAILS(gin_barrier_on_stream(b.dev, gin_barrier_world(), 1, 0, b.stream), GIN_ERANGE,
                 "index 1");
    EXPECT_FAILS(gin_barrier_on_stream(b.dev, gin_barrier_world(), 0, 9, b.stream), GIN_EINVAL,
                 "fence");
    EXPECT_FAILS(gin_barrier_on_stream(b.dev, gin_barrier_of(GIN_BARRIER_TEAM), 0, 0, b.stream),
                 GIN_EINVAL, "kind");
    EXPECT_FAILS(gin_quiet_on_stream(b.dev, 0, (gin_stream_t)(void *)mine), GIN_EINVAL,
                 "no stream");
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_INT(launched(&j, &threads), before);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &host));
    gin_devcomm_t was = *b.dev;
    was.serial += 1000000;
    EXPECT_FAILS(gin_quiet_on_stream(&was, 0, b.stream), GIN_ESTATE, "destroyed");
    EXPECT_FAILS(gin_stream_status(&was), GIN_ESTATE, "not a live");
    down(&b);
}

/* Streams of another GPU, failing captures, a driver that refuses. */
MP_TEST_N(streams_that_are_none, "1 2")
{
    struct bed b;
    CUcontext c;
    CUstream other = NULL;
    CUgraph graph;
    if (!up(mp, &b, NULL))
        return;
    CU(cuCtxPushCurrent, context_of((gin_team_node(mp->comm).rank + 1) % 2));
    if (mp->rank + 1 < mp->size || mp->size == 1) {
        CU(cuDevicePrimaryCtxRetain, &c, (gin_team_node(mp->comm).rank + 1) % 2);
        CU(cuStreamCreate, &other, 0);
        EXPECT_FAILS(gin_quiet_on_stream(b.dev, 0, other), GIN_EINVAL, "another CUDA context");
        CU(cuStreamDestroy, other);
        CU(cuDevicePrimaryCtxRelease, (gin_team_node(mp->comm).rank + 1) % 2);
    }
    EXPECT_FAILS(gin_quiet_on_stream(b.dev, 0, NULL), GIN_EINVAL, "another CUDA context");
    /* the right stream under the wrong context is no matter */
    EXPECT_OK(gin_quiet_on_stream(b.dev, 0, b.stream));
    CU(cuCtxPopCurrent, &c);
    EXPECT_OK(gin_quiet_on_stream(b.dev, 0, NULL));
    CU(cuStreamSynchronize, NULL);
    CU(cuStreamSynchronize, b.stream);
    CU(cuStreamBeginCapture, b.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_OK(gin_quiet_on_stream(b.dev, 0, b.stream));
    ((void (*)(void *))fake("fake_cuda_spoil_capture"))(b.stream);
    EXPECT_FAILS(gin_quiet_on_stream(b.dev, 0, b.stream), GIN_EINVAL, "capture");
    CU(cuStreamEndCapture, b.stream, &graph);
    CU(cuGraphDestroy, graph);
    if (!mp->threads) {
        fake_fail("cuLaunchKernel", 1, CUDA_ERROR_OUT_OF_MEMORY);
        EXPECT_FAILS(gin_quiet_on_stream(b.dev, 0, b.stream), GIN_ENOMEM, "cuLaunchKernel");
        fake_fail("cuMemcpyAsync", 1, CUDA_ERROR_INVALID_VALUE);
        EXPECT_FAILS(gin_put_on_stream(b.dev, 0, b.world, b.right, b.at, b.at, 64, gin_no_action(),
                                       b.stream),
                     GIN_ESYS, "cuMemcpyAsync");
    }
    down(&b);
}

/* Kernels that cannot be loaded are a reason, not an end. */
MP_TEST_OPT(without_kernels, .ranks = "1", .only = MP_PROCS)
{
    fake_fail("cuModuleLoadData", 1, CUDA_ERROR_NO_BINARY_FOR_GPU);
    if (!cuda_dev(mp, NULL))
        return;
    EXPECT_FAILS(gin_quiet_on_stream(&mp->dev, 0, NULL), GIN_ENOTSUP, "cannot load");
}

/* ---- what comes of it, with kernels ---- */

static void wait_for(struct bed *b)
{
    CU(cuStreamSynchronize, b->stream);
    EXPECT_OK(gin_stream_status(b->dev));
}

static void barrier(struct bed *b)
{
    EXPECT_OK(gin_barrier_on_stream(b->dev, gin_barrier_world(), 0, GIN_FENCE_ALL, b->stream));
}

/* All streams have come here. */
static void meet(struct bed *b)
{
    wait_for(b);
    EXPECT_OK(gin_comm_barrier(b->comm));
}

/* Put to the right with a signal, get from there. */
static void move(struct bed *b, size_t n, int round)
{
    int mine = 16 * round;
    memset(b->p, mine + b->world.rank, n + 1);
    memset(b->p + ROOM, 0xee, n + 64);
    meet(b);
    EXPECT_OK(gin_put_on_stream(b->dev, 0, b->world, b->right, behind(b->at, ROOM + 3), b->at, n,
                                round % 2 ? gin_weak_inc(0) : gin_strong_inc(0), b->stream));
    EXPECT_OK(gin_wait_signal_on_stream(b->dev, 0, 0, 1, b->stream));
    EXPECT_OK(gin_consume_signal_on_stream(b->dev, 0, 0, 1, b->stream));
    wait_for(b);
    EXPECT_FILLED(b->p + ROOM, 3, 0xee);
    EXPECT_FILLED(b->p + ROOM + 3, n, mine + b->left);
    EXPECT_FILLED(b->p + ROOM + 3 + n, 61, 0xee);
    meet(b);
    EXPECT_OK(
        gin_get_on_stream(b->dev, 1, b->world, b->right, b->at, behind(b->at, ROOM), n, b->stream));
    wait_for(b);
    EXPECT_FILLED(b->p + ROOM, n, mine + b->right);
    EXPECT_OK(gin_quiet_on_stream(b->dev, GIN_ALL_CONTEXTS, b->stream));
    meet(b);
}

MP_TEST_N(data, "1 2 3")
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 64, 513, 4097, 128 * K - 1, 128 * K, 256 * K + 5};
    struct bed b;
    if (!with_kernels())
        MP_SKIP("no kernels: tests/cuda/emulated.sh");
    if (!up(mp, &b, NULL))
        return;
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        move(&b, sizes[i], i);
        barrier(&b);
    }
    down(&b);
}

static void by_network(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    static const size_t sizes[] = {0, 1, 8, 300, 4097, 256 * K + 5};
    struct bed b;
    if (!with_kernels())
        MP_SKIP("no kernels: tests/cuda/emulated.sh");
    if (!up_in(mp, &b, reqs, GIN_KIND_HOST))
        return;
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        move(&b, sizes[i], i);
        barrier(&b);
    }
    uint64_t *w = (uint64_t *)(void *)b.p;
    memset(b.p, 0, 64);
    meet(&b);
    EXPECT_OK(
        gin_amo_on_stream(b.dev, 0, b.world, b.right, b.at, GIN_AMO_ADD, 40, 0, NULL, b.stream));
    EXPECT_OK(gin_amo_on_stream(b.dev, 0, b.world, b.right, b.at, GIN_AMO_FETCH_ADD, 2, 0, &w[1],
                                b.stream));
    EXPECT_OK(gin_put_value_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 16), 77, 8,
                                      gin_set_at(behind(b.at, 24), 5), b.stream));
    EXPECT_OK(gin_wait_signal_at_on_stream(b.dev, 0, behind(b.at, 24), 5, NULL, b.stream));
    EXPECT_OK(gin_barrier_on_stream(b.dev, gin_barrier_world(), 0, GIN_FENCE_ALL, b.stream));
    meet(&b);
    EXPECT_EQ_U64(w[0], 42);
    EXPECT_EQ_U64(w[1], 40);
    EXPECT_EQ_U64(w[2], 77);
    down(&b);
}

MP_TEST_OPT(far_hosts, .ranks = "2 3", .hosts = "ABC")
{
    by_network(mp, NULL);
}

MP_TEST_N(the_network_alone, "2")
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.paths = GIN_PATH_SELF | GIN_PATH_NET;
    by_network(mp, &r);
}

MP_TEST_N(words, "1 2")
{
    struct bed b;
    if (!with_kernels())
        MP_SKIP("no kernels: tests/cuda/emulated.sh");
    if (!up(mp, &b, NULL))
        return;
    uint64_t *w = (uint64_t *)(void *)b.p;
    gin_stream_t s = b.stream;
    EXPECT_OK(gin_put_value_on_stream(b.dev, 0, b.world, b.right, b.at, 0x1234567, 3,
                                      gin_set_at(behind(b.at, 8), 5), s));
    EXPECT_OK(
        gin_wait_signal_until_at_on_stream(b.dev, 0, behind(b.at, 8), GIN_CMP_EQ, 5, NULL, s));
    EXPECT_OK(
        gin_signal_on_stream(b.dev, 0, b.world, b.right, gin_weak_add_at(behind(b.at, 56), 7), s));
    EXPECT_OK(gin_wait_signal_at_on_stream(b.dev, 0, behind(b.at, 56), 7, NULL, s));
    EXPECT_OK(gin_consume_signal_at_on_stream(b.dev, 0, behind(b.at, 56), 7, s));
    EXPECT_OK(gin_amo_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 16), GIN_AMO_ADD, 40, 0,
                                NULL, s));
    EXPECT_OK(gin_amo_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 16), GIN_AMO_FETCH_ADD, 2,
                                0, &w[3], s));
    EXPECT_OK(gin_amo_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 16), GIN_AMO_CAS, 99, 42,
                                &w[4], s));
    EXPECT_OK(gin_amo32_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 40), GIN_AMO_SWAP, 7, 0,
                                  (uint32_t *)&w[6], s));
    EXPECT_OK(gin_signal_on_stream(b.dev, 2, b.world, b.right, gin_weak_add(1, 3), s));
    EXPECT_OK(gin_wait_signal_until_on_stream(b.dev, 2, 1, GIN_CMP_GT, 2, NULL, s));
    w[K] = 0x100 + (uint64_t)b.world.rank;
    EXPECT_OK(gin_put_on_stream(b.dev, 2, b.world, b.right, behind(b.at, 16 * K),
                                behind(b.at, 8 * K), 8, gin_weak_add(7, 9), s));
    EXPECT_OK(gin_wait_signal_until_on_stream(b.dev, 2, 7, GIN_CMP_EQ, 9, NULL, s));
    EXPECT_OK(gin_flush_on_stream(b.dev, 2, s));
    EXPECT_OK(gin_fence_on_stream(b.dev, 2, s));
    EXPECT_OK(gin_quiet_on_stream(b.dev, GIN_ALL_CONTEXTS, s));
    barrier(&b);
    wait_for(&b);
    EXPECT_EQ_U64(w[0], 0x234567);
    EXPECT_EQ_U64(w[1], 5);
    EXPECT_EQ_U64(w[2], 99);
    EXPECT_EQ_U64(w[3], 40);
    EXPECT_EQ_U64(w[4], 42);
    EXPECT_EQ_U64(w[5], 7);
    EXPECT_EQ_U64(w[6], 0);
    EXPECT_EQ_U64(w[7], 0);
    EXPECT_EQ_U64(w[2 * K], 0x100 + (uint64_t)b.left);
    down(&b);
}

MP_TEST_N(graph, "1 2")
{
    struct bed b;
    CUgraph graph;
    if (!with_kernels())
        MP_SKIP("no kernels: tests/cuda/emulated.sh");
    if (!up(mp, &b, NULL))
        return;
    CU(cuStreamBeginCapture, b.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_OK(gin_put_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 4 * K), b.at, 64,
                                gin_weak_inc(0), b.stream));
    EXPECT_OK(gin_wait_signal_on_stream(b.dev, 0, 0, 1, b.stream));
    EXPECT_OK(gin_consume_signal_on_stream(b.dev, 0, 0, 1, b.stream));
    EXPECT_OK(gin_amo_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 8 * K), GIN_AMO_ADD, 3, 0,
                                NULL, b.stream));
    CU(cuStreamEndCapture, b.stream, &graph);
    memset(b.p, 0x40 + mp->rank, 64);
    for (int i = 0; i < ROUNDS; i++)
        CU(cuGraphLaunch, (CUgraphExec)graph, b.stream);
    barrier(&b);
    wait_for(&b);
    EXPECT_FILLED(b.p + 4 * K, 64, 0x40 + b.left);
    EXPECT_EQ_U64(*(uint64_t *)(void *)(b.p + 8 * K), 3 * ROUNDS);
    CU(cuGraphDestroy, graph);
    down(&b);
}

/* A graph that outlived its device communicator does nothing, and tells nobody else's. */
MP_TEST_N(graph_of_the_dead, "1 2")
{
    struct bed b;
    CUgraph graph;
    if (!with_kernels())
        MP_SKIP("no kernels: tests/cuda/emulated.sh");
    if (!up(mp, &b, NULL))
        return;
    CU(cuStreamBeginCapture, b.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_OK(gin_put_on_stream(b.dev, 0, b.world, b.right, behind(b.at, 4 * K), b.at, 8,
                                gin_weak_inc(0), b.stream));
    EXPECT_OK(gin_quiet_on_stream(b.dev, 0, b.stream));
    CU(cuStreamEndCapture, b.stream, &graph);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, b.dev));
    if (!cuda_dev(mp, NULL))
        return;
    memset(b.p, 0x40 + mp->rank, 8);
    CU(cuGraphLaunch, (CUgraphExec)graph, b.stream);
    wait_for(&b);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_FILLED(b.p + 4 * K, 8, 0);
    CU(cuGraphDestroy, graph);
    down(&b);
}

MP_TEST_N(failures_are_told, "1 2")
{
    struct bed b;
    gin_wait_opt_t soon = {.timeout_ns = 1000000};
    if (!with_kernels())
        MP_SKIP("no kernels: tests/cuda/emulated.sh");
    if (!up(mp, &b, NULL))
        return;
    EXPECT_OK(gin_wait_signal_until_on_stream(b.dev, 0, 5, GIN_CMP_NE, 0, &soon, b.stream));
    EXPECT_OK(gin_put_value_on_stream(b.dev, 0, b.world, mp->rank, b.at, 11, 8, gin_no_action(),
                                      b.stream));
    CU(cuStreamSynchronize, b.stream);
    EXPECT_FAILS(gin_stream_status(b.dev), GIN_ETIMEDOUT, "a wait on a stream");
    EXPECT_EQ_U64(*(uint64_t *)(void *)b.p, 11);
    down(&b);
}
