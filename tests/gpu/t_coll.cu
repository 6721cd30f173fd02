/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of kernels against what one rank alone computes (tests/coll/oracle.h): random calls,
 * type, operation, count, root, team, place of both buffers, in place or not, one behind the other
 * without a barrier, of two indices from two blocks at once, by every kind of group. Elements are
 * such that no order of combining them rounds, so that the host's way passes, too.
 */
#include "tests/gpu/gpu.h"

extern "C" {
#include "tests/coll/oracle.h"
}

#define CAP    (64u << 10) /* bytes of a side */
#define EACH   (CAP + 256) /* with what lies around */
#define AHEAD  64u
#define BATCH  16
#define BLOCKS 2
#define RANKS  8

struct call {
    int kind, root, status;
    int type, op;
    size_t count;
    gin_team_t team;
    gin_at_t dst, src;
    int firsts; /* of dst are passed */
    size_t dst_counts[RANKS], dst_firsts[RANKS], src_counts[RANKS];
};

__device__ static int make(const gin_t *g, gin_group_t grp, unsigned i, const struct call *c)
{
    gin_type_t t = (gin_type_t)c->type;
    gin_reduction_t op = (gin_reduction_t)c->op;
    switch (c->kind) {
    case BROADCAST: return gin_broadcast(g, grp, c->team, i, c->dst, c->src, c->count, t, c->root);
    case ALLGATHER: return gin_allgather(g, grp, c->team, i, c->dst, c->src, c->count, t);
    case GATHER: return gin_gather(g, grp, c->team, i, c->dst, c->src, c->count, t, c->root);
    case ALLTOALL: return gin_alltoall(g, grp, c->team, i, c->dst, c->src, c->count, t);
    case ALLTOALLV:
        return gin_alltoallv(g, grp, c->team, i, c->dst, c->dst_counts,
                             c->firsts ? c->dst_firsts : NULL, c->src, c->src_counts, NULL, t);
    case ALLREDUCE: return gin_allreduce(g, grp, c->team, i, c->dst, c->src, c->count, t, op);
    case REDUCE: return gin_reduce(g, grp, c->team, i, c->dst, c->src, c->count, t, op, c->root);
    case REDUCE_SCATTER:
        return gin_reduce_scatter(g, grp, c->team, i, c->dst, c->src, c->count, t, op);
    case SCAN: return gin_scan(g, grp, c->team, i, c->dst, c->src, c->count, t, op);
    case SCAN_EXCLUSIVE:
        return gin_scan_exclusive(g, grp, c->team, i, c->dst, c->src, c->count, t, op);
    default: return gin_sync(g, grp, c->team, i);
    }
}

/* Block b makes the calls of index b; of its groups the first does. */
__global__ void __launch_bounds__(512)
    calls(gin_devcomm_t dev, struct call *all, int n, int kind, struct gpu_report *r)
{
    gin_t g;
    struct gpu_place p = gpu_place_of((enum gpu_kind)kind);
    if (p.group != 0)
        return;
    D_OK(r, gin_open(&dev, blockIdx.x == 0 ? 0 : GIN_ALL_CONTEXTS, &g));
    for (int i = (int)blockIdx.x; i < n; i += (int)gridDim.x) {
        D_STEP(r, i);
        int st = make(&g, p.grp, blockIdx.x, &all[i]);
        D_EQ(r, st, GIN_OK);
        if (st != GIN_OK)
            return;
    }
}

/* ---- the host's side ---- */

struct bed {
    struct gpu *gp;
    unsigned char *heap[2], *priv[2], *dst[BATCH];
    gin_at_t at[2];
    gin_team_t teams[4];
    int n_teams;
    uint64_t rng, own; /* the same on all ranks; mine */
    struct call *calls;
    struct job jobs[BATCH];
    bool mine[BATCH];
    unsigned char *image, *want;
};

static void make_teams(struct bed *b)
{
    struct gpu *gp = b->gp;
    gin_team_t w = gin_team_world(gp->comm);
    int list[RANKS], n = 0;
    b->teams[0] = w;
    EXPECT_OK(gin_team_split_strided(gp->comm, w, 0, 2, (gp->size + 1) / 2, &b->teams[1]));
    EXPECT_OK(gin_team_split_strided(gp->comm, w, gp->size - 1, -1, gp->size, &b->teams[2]));
    for (int r = gp->size - 1; r >= 0; r--)
        if (r % 3 != 1)
            list[n++] = r;
    b->teams[3] = gin_team_invalid();
    if (gp->rank % 3 != 1)
        EXPECT_OK(gin_team_create(gp->comm, list, n, &b->teams[3]));
    b->n_teams = 4;
}

static bool bed_up(struct bed *b, struct gpu *gp)
{
    gin_devcomm_reqs_t r;
    memset(b, 0, sizeof(*b));
    b->gp = gp;
    b->rng = gp->seed;
    b->own = gp->seed * 31 + (unsigned)gp->rank;
    for (int i = 0; i < 2; i++) {
        b->heap[i] = (unsigned char *)gpu_symmetric(gp, GIN_KIND_CUDA, BATCH * EACH, &b->at[i]);
        GPU_PRIVATE(&b->priv[i], BATCH * EACH);
        if (b->heap[i] == NULL)
            return false;
    }
    CU(cudaHostAlloc((void **)&b->calls, BATCH * sizeof(struct call), cudaHostAllocPortable));
    b->image = (unsigned char *)malloc(EACH);
    b->want = (unsigned char *)malloc(CAP);
    make_teams(b);
    gpu_reqs(&r);
    r.collectives = BLOCKS;
    return gpu_dev(gp, &r);
}

static void bed_down(struct bed *b)
{
    gpu_dev_end(b->gp);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(gin_free(b->gp->comm, b->heap[i]));
        gpu_private_free(b->priv[i]);
    }
    CU(cudaFreeHost(b->calls));
    free(b->image);
    free(b->want);
}

/* The next call, the same on all ranks; false: I am no member of its team. */
static bool choose(struct bed *b, struct job *j, gin_team_t *team)
{
    static const size_t classes[] = {0, 1, 2, 5, 64, 257, 1000, 4100, 20000};
    memset(j, 0, sizeof(*j));
    j->kind = (enum kind)(pt_random(&b->rng) % KINDS);
    do {
        j->type = (gin_type_t)(pt_random(&b->rng) % (GIN_COMPLEX_DOUBLE + 1));
        j->op = (gin_reduction_t)(pt_random(&b->rng) % (GIN_XOR + 1));
    } while (!has_op(j->type, j->op));
    *team = b->teams[pt_random(&b->rng) % (uint64_t)b->n_teams];
    uint64_t root = pt_random(&b->rng), place = pt_random(&b->rng), w = pt_random(&b->rng);
    j->seed = pt_random(&b->rng);
    j->n = team->size > 0 ? team->size : 1;
    j->me = team->rank;
    j->root = (int)(root % (uint64_t)j->n);
    j->in_place = place % 3 == 0;
    size_t most = CAP / (size_t)b->gp->size / type_size(j->type);
    j->count = classes[w % (sizeof(classes) / sizeof(classes[0]))] + (w >> 32) % 3;
    j->count = j->count < most ? j->count : most;
    return team->size > 0 && team->rank >= 0;
}

static unsigned char *buffer(struct bed *b, int side, int i, gin_at_t *at)
{
    uint64_t w = pt_random(&b->own);
    size_t off = (size_t)i * EACH + AHEAD + (w & 2 ? (w >> 8) % 64 : w & 4 ? (w >> 8) % 8 * 8 : 0);
    *at =
        w & 1 ? gin_at(b->at[side].win, b->at[side].off + off) : gin_at_local(b->priv[side] + off);
    return (w & 1 ? b->heap[side] : b->priv[side]) + off;
}

static bool passes_one(const struct job *j)
{
    bool rooted = j->kind == BROADCAST || j->kind == GATHER || j->kind == REDUCE;
    return j->in_place && (!rooted || j->me == j->root);
}

/* dst is all 0xee but for what is passed in place. */
static void lay_out(struct bed *b, int i, gin_team_t team)
{
    struct job *j = &b->jobs[i];
    struct call *c = &b->calls[i];
    size_t size = type_size(j->type), sum = 0, at = 0;
    unsigned char *dst = b->dst[i] = buffer(b, 0, i, &c->dst), *src = dst;
    c->src = c->dst;
    memset(b->image, 0xee, EACH);
    if (passes_one(j))
        at = j->kind == ALLGATHER || j->kind == GATHER ? (size_t)j->me * j->count * size : 0;
    else
        src = buffer(b, 1, i, &c->src);
    if (src != dst)
        CU(cudaMemcpy(dst - AHEAD, b->image, CAP + AHEAD, cudaMemcpyDefault));
    job_fill(j, j->me, b->image + AHEAD + at);
    CU(cudaMemcpy(src - AHEAD, b->image, CAP + AHEAD, cudaMemcpyDefault));
    c->kind = (int)j->kind;
    c->root = j->root;
    c->type = (int)j->type;
    c->op = (int)j->op;
    c->count = j->count;
    c->team = team;
    c->firsts = !j->in_place;
    for (int r = 0; r < j->n; r++) {
        c->dst_counts[r] = job_count_v(j, r, j->me);
        c->src_counts[r] = job_count_v(j, j->me, r);
        c->dst_firsts[r] = sum;
        sum += c->dst_counts[r];
    }
}

static bool judge(struct bed *b, int i)
{
    const struct job *j = &b->jobs[i];
    size_t at = 0, bytes = job_want(j, b->want), end = bytes;
    if (passes_one(j) && job_src(j) * type_size(j->type) > end)
        end = job_src(j) * type_size(j->type);
    CU(cudaMemcpy(b->image, b->dst[i] - AHEAD, CAP + AHEAD, cudaMemcpyDefault));
    bool good = job_equal(j, b->image + AHEAD, b->want, bytes, &at);
    for (size_t k = 0; good && k < AHEAD; k++)
        good = b->image[k] == 0xee && b->image[AHEAD + end + k] == 0xee;
    if (!good)
        FAIL("%s, type %d, op %d, count %zu, rank %d of %d, root %d%s, local %d %d, misplaced %d, "
             "number %zu, seed %llu",
             kind_names[j->kind], (int)j->type, (int)j->op, j->count, j->me, j->n, j->root,
             j->in_place ? ", in place" : "", b->calls[i].dst.win.w == ~0ull,
             b->calls[i].src.win.w == ~0ull, (int)((uintptr_t)b->dst[i] % 16), at,
             (unsigned long long)j->seed);
    return good;
}

static bool batch(struct bed *b, enum gpu_kind kind, unsigned threads)
{
    struct gpu *gp = b->gp;
    bool good = true;
    gin_team_t none;
    for (int i = 0; i < BATCH; i++) {
        b->mine[i] = choose(b, &b->jobs[i], &b->calls[i].team);
        none = b->calls[i].team;
        if (b->mine[i]) {
            lay_out(b, i, none);
            continue;
        }
        b->calls[i].kind = -1; /* a sync of me alone */
        EXPECT_OK(gin_team_split_strided(gp->comm, gin_team_world(gp->comm), gp->rank, 1, 1,
                                         &b->calls[i].team));
    }
    CU(cudaDeviceSynchronize());
    calls<<<BLOCKS, threads, 0, gp->stream>>>(gp->dev, b->calls, BATCH, (int)kind, gp->report);
    if (!GPU_DONE(gp))
        return false;
    for (int i = 0; i < BATCH && good; i++)
        if (b->mine[i])
            good = judge(b, i);
    return good;
}

static void many(struct gpu *gp, int n)
{
    static const struct {
        enum gpu_kind kind;
        unsigned threads;
    } groups[] = {{K_BLOCK, 256}, {K_WARP, 64}, {K_BLOCK, 512}, {K_THREAD, 1},
                  {K_SPAN, 128},  {K_TILE, 32}, {K_LANES, 32}};
    struct bed *b = (struct bed *)malloc(sizeof(*b));
    bool good = bed_up(b, gp);
    for (int i = 0; good && i < n; i++)
        good = batch(b, groups[i % 7].kind, groups[i % 7].threads);
    bed_down(b);
    free(b);
}

GPU_TEST(random_calls, 1)
{
    many(gp, gpu_cases(gp, 42, 7));
}

/* ---- how long a small one takes ---- */

__global__ void timed(gin_devcomm_t dev, gin_at_t at, size_t n, int rounds, long long *ns,
                      struct gpu_report *r)
{
    gin_t g;
    unsigned long long from = 0, to = 0;
    D_OK(r, gin_open(&dev, 0, &g));
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 2)
            from = (unsigned long long)clock64();
        int st = n == 0 ? gin_sync(&g, gin_block(), gin_world(&g), 0)
                        : gin_allreduce(&g, gin_block(), gin_world(&g), 0, at, at, n, GIN_FLOAT,
                                        GIN_SUM);
        if (!D_EQ(r, st, GIN_OK))
            return;
    }
    to = (unsigned long long)clock64();
    if (threadIdx.x == 0)
        *ns = (long long)(to - from) / (rounds - rounds / 2);
}

GPU_TEST(how_long, 2)
{
    static const size_t counts[] = {0, 1, 256, 2048, 65536, 262144};
    gin_at_t at;
    long long *ticks;
    int khz = 1000000, rounds = gpu_rounds(gp, 400);
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 262144 * 4, &at);
    if (p == NULL || !gpu_dev(gp, NULL))
        return;
    CU(cudaHostAlloc((void **)&ticks, 64, cudaHostAllocPortable));
    CU(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, gp->device));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        *ticks = 0;
        timed<<<1, counts[i] <= 256 ? 64 : 512, 0, gp->stream>>>(gp->dev, at, counts[i], rounds,
                                                                 ticks, gp->report);
        if (!GPU_DONE(gp))
            break;
        if (gp->rank == 0)
            printf("%s of %zu floats in place: %.2f us\n", counts[i] == 0 ? "sync" : "all-reduce",
                   counts[i], (double)*ticks * 1e3 / khz);
    }
    CU(cudaFreeHost(ticks));
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, p));
}
