/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives on streams: what is enqueued, what is refused; and, where the kernels run on host
 * threads (emulated.sh), what comes of them, against the oracle, also in graphs.
 */
#include "cuda/kernels/stream.h"
#include "tests/cuda/coll_bed.h"

#define CALL(name, ...) ((__typeof__(name) *)fake(#name))(__VA_ARGS__)
#define CU(name, ...)   EXPECT_EQ_INT(CALL(name, __VA_ARGS__), CUDA_SUCCESS)

static bool with_kernels(void)
{
    return getenv("FAKE_CUDA_KERNELS") != NULL;
}

static long launched(struct gi_stream_job *job, unsigned *threads)
{
    return ((long (*)(void *, unsigned *))fake("fake_cuda_launched"))(job, threads);
}

/* In a context of the GPU, with streams of their own for the indices. */
static bool up(struct bed *b, struct mp *mp, gin_devcomm_reqs_t *r, CUstream *s)
{
    gin_devcomm_reqs_t defaults;
    gin_devcomm_reqs_init(&defaults);
    if (!bed_up(b, mp, r != NULL ? r : &defaults))
        return false;
    for (unsigned i = 0; i < COLL_BLOCKS; i++)
        CU(cuStreamCreate, &s[i], CU_STREAM_NON_BLOCKING);
    return true;
}

static void down(struct bed *b, CUstream *s)
{
    for (unsigned i = 0; i < COLL_BLOCKS; i++) {
        CU(cuStreamSynchronize, s[i]);
        CU(cuStreamDestroy, s[i]);
    }
    bed_down(b);
}

static int enqueue(struct mp *mp, const struct coll_case *c, gin_stream_t s)
{
    const gin_devcomm_t *d = &mp->dev;
    gin_team_t t = c->team;
    unsigned x = c->index % 2 == 0 ? 0 : GIN_ALL_CONTEXTS, i = c->index;
    size_t n = c->count;
    switch (c->call) {
    case -1: return gin_sync_on_stream(d, x, t, i, s);
    case BROADCAST:
        return gin_broadcast_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->root, s);
    case ALLGATHER: return gin_allgather_on_stream(d, x, t, i, c->dst, c->src, n, c->type, s);
    case GATHER: return gin_gather_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->root, s);
    case ALLTOALL: return gin_alltoall_on_stream(d, x, t, i, c->dst, c->src, n, c->type, s);
    case ALLTOALLV:
        return gin_alltoallv_on_stream(d, x, t, i, c->dst, c->dst_counts, c->dst_firsts, c->src,
                                       c->src_counts, c->src_firsts, c->type, s);
    case ALLREDUCE:
        return gin_allreduce_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->op, s);
    case REDUCE:
        return gin_reduce_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->op, c->root, s);
    case REDUCE_SCATTER:
        return gin_reduce_scatter_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->op, s);
    case SCAN: return gin_scan_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->op, s);
    default: return gin_scan_exclusive_on_stream(d, x, t, i, c->dst, c->src, n, c->type, c->op, s);
    }
}

/* Counts where the GPU reads them. */
static void share_counts(struct bed *b, struct coll_case *c, size_t *pinned, int i)
{
    size_t *at = pinned + (size_t)i * 3 * RANKS;
    memcpy(at, b->counts[i], sizeof(b->counts[i]));
    c->dst_counts = at;
    c->src_counts = at + RANKS;
    c->dst_firsts = c->dst_firsts != NULL ? at + 2 * RANKS : NULL;
}

static void many(struct mp *mp, int n)
{
    struct bed *b = malloc(sizeof(*b));
    CUstream s[COLL_BLOCKS];
    void *pinned = NULL;
    bool mine[BATCH], good = up(b, mp, NULL, s);
    if (good)
        CU(cuMemHostAlloc, &pinned, sizeof(size_t) * BATCH * 3 * RANKS, 0);
    for (int i = 0; good && i < mp_rounds(mp, n); i++) {
        mp_step(mp, "batch %d", i);
        draw(b, mine);
        for (int k = 0; k < BATCH; k++) {
            if (!mine[k])
                continue;
            share_counts(b, &b->cases[k], pinned, k);
            b->cases[k].status = enqueue(mp, &b->cases[k], s[k % (int)COLL_BLOCKS]);
        }
        for (unsigned k = 0; k < COLL_BLOCKS; k++)
            CU(cuStreamSynchronize, s[k]);
        good = EXPECT_OK(gin_stream_status(&mp->dev));
        for (int k = 0; k < BATCH && good; k++)
            if (mine[k])
                good = judge(b, k);
    }
    if (pinned != NULL)
        CU(cuMemFreeHost, pinned);
    down(b, s);
    free(b);
}

MP_TEST_OPT(on_streams, .ranks = "1 2 3", .deadline = 240)
{
    if (!with_kernels())
        MP_SKIP("needs kernels: emulated.sh");
    many(mp, 6);
}

MP_TEST_OPT(on_streams_of_hosts, .ranks = "3", .hosts = "AB", .only = MP_THREADS, .deadline = 240)
{
    if (!with_kernels())
        MP_SKIP("needs kernels: emulated.sh");
    many(mp, 4);
}

/* A graph sums up, in place, again and again. */
MP_TEST_N(in_graphs, "2 3")
{
    struct bed *b = malloc(sizeof(*b));
    CUstream s[COLL_BLOCKS];
    CUgraph graph;
    gin_at_t at;
    if (!with_kernels())
        MP_SKIP("needs kernels: emulated.sh");
    if (up(b, mp, NULL, s)) {
        int32_t *p = (int32_t *)(void *)b->side[0].heap, want = 1;
        EXPECT_OK(gin_window_of(mp->comm, p, &at.win, &at.off));
        for (int i = 0; i < 300; i++)
            p[i] = 1;
        CU(cuStreamBeginCapture, s[0], CU_STREAM_CAPTURE_MODE_GLOBAL);
        EXPECT_OK(gin_allreduce_on_stream(&mp->dev, 0, gin_team_world(mp->comm), 0, at, at, 300,
                                          GIN_INT32, GIN_SUM, s[0]));
        EXPECT_OK(gin_sync_on_stream(&mp->dev, 0, gin_team_world(mp->comm), 0, s[0]));
        CU(cuStreamEndCapture, s[0], &graph);
        for (int i = 0; i < 5; i++, want *= mp->size)
            CU(cuGraphLaunch, (CUgraphExec)graph, s[0]);
        CU(cuStreamSynchronize, s[0]);
        EXPECT_OK(gin_stream_status(&mp->dev));
        for (int i = 0; i < 300; i++)
            if (!EXPECT_EQ_INT(p[i], want))
                break;
        CU(cuGraphDestroy, graph);
        down(b, s);
    }
    free(b);
}

/* ---- what is enqueued ---- */

MP_TEST_N(launches, "1 2")
{
    struct bed *b = malloc(sizeof(*b));
    CUstream s[COLL_BLOCKS];
    struct gi_stream_job j;
    unsigned threads;
    gin_at_t at;
    if (with_kernels() || mp->threads)
        MP_SKIP("for launches alone");
    if (up(b, mp, NULL, s)) {
        gin_team_t w = gin_team_world(mp->comm);
        EXPECT_OK(gin_window_of(mp->comm, b->side[0].heap, &at.win, &at.off));
        gin_at_t to = gin_at(at.win, at.off + 8192);
        long before = launched(&j, &threads);
        EXPECT_OK(gin_reduce_on_stream(&mp->dev, 2, w, 1, to, at, 16, GIN_DOUBLE, GIN_MAX,
                                       mp->size - 1, s[0]));
        EXPECT_EQ_INT(launched(&j, &threads), before + 1);
        EXPECT(j.kernel == GI_STREAM_COLL && j.call == GIN_I_COLL_REDUCE && j.id == 1);
        EXPECT(j.context == 2 && j.type == GIN_DOUBLE && j.how == GIN_MAX && j.bytes == 16);
        EXPECT(j.peer == mp->size - 1 && j.dst.off == to.off && j.src.off == at.off);
        EXPECT(j.team.size == mp->size && j.team.rank == mp->rank && threads == 32);
        EXPECT_OK(gin_scan_on_stream(&mp->dev, GIN_ALL_CONTEXTS, w, 0, to, to, 1000, GIN_INT32,
                                     GIN_XOR, s[0]));
        EXPECT_EQ_INT(launched(&j, &threads), before + 2);
        EXPECT(j.call == GIN_I_COLL_SCAN && threads == 512);
        down(b, s);
    }
    free(b);
}

/* ---- what is refused ---- */

MP_TEST_N(refusals, "2")
{
    struct bed *b = malloc(sizeof(*b));
    CUstream s[COLL_BLOCKS];
    struct gi_stream_job j;
    unsigned threads;
    gin_at_t at;
    size_t host[RANKS] = {0};
    if (up(b, mp, NULL, s)) {
        const gin_devcomm_t *d = &mp->dev;
        gin_team_t w = gin_team_world(mp->comm), stranger = w, odd = w;
        stranger.rank = -1;
        odd.rank = 1 - mp->rank;
        EXPECT_OK(gin_window_of(mp->comm, b->side[0].heap, &at.win, &at.off));
        gin_at_t to = gin_at(at.win, at.off + 4096), local = gin_at_local(host);
        EXPECT_OK(gin_comm_barrier(mp->comm));
        long before = launched(&j, &threads);
#define SUM(team, index, dst, src, n, type, op) \
    gin_allreduce_on_stream(d, 0, team, index, dst, src, n, type, op, s[0])
        EXPECT_FAILS(SUM(w, COLL_BLOCKS, to, at, 1, GIN_INT8, GIN_SUM), GIN_ERANGE, "index 2");
        EXPECT_FAILS(SUM(w, 0, to, at, 1, (gin_type_t)14, GIN_SUM), GIN_EINVAL, "type 14");
        EXPECT_FAILS(SUM(w, 0, to, at, 1, GIN_HALF, GIN_XOR), GIN_ENOTSUP, "operation 6 on type 8");
        EXPECT_FAILS(SUM(stranger, 0, to, at, 1, GIN_INT8, GIN_SUM), GIN_ESTATE, "no member");
        EXPECT_FAILS(SUM(odd, 0, to, at, 1, GIN_INT8, GIN_SUM), GIN_EINVAL, "me");
        EXPECT_FAILS(SUM(gin_team_invalid(), 0, to, at, 1, GIN_INT8, GIN_SUM), GIN_EINVAL, "none");
        EXPECT_FAILS(SUM(w, 0, to, at, 4097, GIN_INT8, GIN_SUM), GIN_EINVAL, "overlap");
        EXPECT_FAILS(SUM(w, 0, local, at, 1, GIN_INT8, GIN_SUM), GIN_EINVAL, "host memory");
        EXPECT_FAILS(SUM(w, 0, gin_at(at.win, (uint64_t)1 << 50), at, 1, GIN_INT8, GIN_SUM),
                     GIN_ERANGE, "outside window");
        EXPECT_FAILS(SUM(w, 0, to, at, SIZE_MAX / 2, GIN_INT8, GIN_SUM), GIN_ERANGE, "elements");
        EXPECT_FAILS(gin_gather_on_stream(d, 0, w, 0, to, at, 1, GIN_INT8, 2, s[0]), GIN_ERANGE,
                     "root 2");
        EXPECT_FAILS(
            gin_alltoallv_on_stream(d, 0, w, 0, to, NULL, NULL, at, NULL, NULL, GIN_INT8, s[0]),
            GIN_EINVAL, "dst_counts is NULL");
        EXPECT_FAILS(
            gin_alltoallv_on_stream(d, 0, w, 0, to, host, NULL, at, host, NULL, GIN_INT8, s[0]),
            GIN_EINVAL, "host memory");
        EXPECT_FAILS(gin_sync_on_stream(d, 99, w, 0, s[0]), GIN_ERANGE, "context 99");
        if (!mp->threads)
            EXPECT_EQ_INT(launched(&j, &threads), before);
        down(b, s);
    }
    free(b);
}

/* A member does not come: the stream goes on, and the status tells. */
MP_TEST_N(one_does_not_come, "2")
{
    struct bed *b = malloc(sizeof(*b));
    CUstream s[COLL_BLOCKS];
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.collective_timeout_ns = 200000000;
    if (!with_kernels())
        MP_SKIP("needs kernels: emulated.sh");
    if (up(b, mp, &r, s)) {
        if (mp->rank == 0) {
            EXPECT_OK(gin_sync_on_stream(&mp->dev, 0, gin_team_world(mp->comm), 0, s[0]));
            CU(cuStreamSynchronize, s[0]);
            EXPECT_FAILS(gin_stream_status(&mp->dev), GIN_ETIMEDOUT, "a collective on a stream");
        }
        EXPECT_OK(gin_comm_barrier(mp->comm));
        down(b, s);
    }
    free(b);
}
