/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes moved by kernels: every size, alignment and kind of group, to every rank, all at once. What
 * must arrive is checked byte by byte, and that what lies around it is untouched.
 */
#include "tests/gpu/gpu.h"

#define REGION  (1536u << 10) /* bytes per block in each buffer */
#define BLOCKS  4
#define THREADS 128
#define GUARD   64u

enum { PUT_SIGNAL, PUT_QUIET, GET, PUT_VALUE, OPS };

__device__ static const unsigned sizes[] = {
    0,   1,    2,    3,    4,    5,    7,    8,     9,     12,     15,     16,  17,
    24,  31,   32,   33,   48,   63,   64,   65,    100,   127,    128,    129, 255,
    256, 1000, 1023, 4096, 4099, 8192, 8200, 65536, 65541, 262144, 1 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* One step of a block: its groups all do this, each in a slot of its own. */
struct task {
    int op, shift;
    enum gpu_kind kind;
    unsigned size, to, from; /* bytes; alignment of both ends */
    unsigned slot;           /* bytes of a group's part of the region */
    bool heap;               /* my end lies in symmetric memory, else in other GPU memory */
};

struct memory {
    gin_at_t in, out; /* symmetric */
    unsigned char *in_p, *out_p;
    unsigned char *priv_in, *priv_out;
};

__device__ static struct task draw(unsigned long long seed, int i, int ranks, int kind)
{
    struct task t;
    unsigned long long s = seed + blockIdx.x * 7919ull;
    t.op = (i / (int)SIZES + (int)blockIdx.x) % OPS;
    t.kind = kind >= 0 ? (enum gpu_kind)kind : (enum gpu_kind)gpu_draw(s, i * 8ull, K_KINDS);
    t.size = sizes[i % (int)SIZES];
    if (t.op == PUT_VALUE)
        t.size = 1 + t.size % 8;
    t.to = gpu_draw(s, i * 8ull + 1, 2) ? gpu_draw(s, i * 8ull + 2, 18) : 0;
    t.from = gpu_draw(s, i * 8ull + 3, 2) ? gpu_draw(s, i * 8ull + 4, 18) : t.to;
    t.shift = (int)gpu_draw(s, i * 8ull + 5, (unsigned)ranks);
    t.heap = gpu_draw(s, i * 8ull + 6, 2) != 0;
    t.slot = (t.size + 2 * GUARD + 18 + 63) / 64 * 64;
    return t;
}

__device__ static unsigned long long seed_of(int rank, int i, unsigned group)
{
    return ((unsigned long long)rank << 48) + ((unsigned long long)i << 24) +
           ((unsigned long long)blockIdx.x << 16) + group;
}

/* The value that a group of `rank` puts. */
__device__ static unsigned char value_byte(int rank, int i, unsigned group, unsigned k)
{
    return (unsigned char)(gpu_word(seed_of(rank, i, group), 0) >> (8 * k));
}

/* Fill my sources and poison where bytes shall arrive. */
__device__ static void prepare(const struct task *t, unsigned groups, unsigned char *src,
                               unsigned char *dst, int rank, int i)
{
    for (unsigned k = threadIdx.x; k < groups * t->slot; k += blockDim.x) {
        unsigned g = k / t->slot, off = k % t->slot;
        src[k] = off - GUARD - t->from < t->size
                     ? gpu_byte(seed_of(rank, i, g), off - GUARD - t->from)
                     : 0x5a;
        dst[k] = (unsigned char)(0xc3 ^ off ^ i);
    }
    __syncthreads();
}

/* The bytes of `rank`, and nothing else has changed. */
__device__ static bool check(const struct task *t, unsigned groups, const unsigned char *dst,
                             int rank, int i, struct gpu_report *r)
{
    bool ok = true;
    for (unsigned k = threadIdx.x; k < groups * t->slot && ok; k += blockDim.x) {
        unsigned g = k / t->slot, off = k % t->slot, at = off - GUARD - t->to;
        unsigned char want = (unsigned char)(0xc3 ^ off ^ i);
        if (at < t->size)
            want =
                t->op == PUT_VALUE ? value_byte(rank, i, g, at) : gpu_byte(seed_of(rank, i, g), at);
        if (dst[k] != want) {
            ok = D_EQ(r, dst[k], want);
            D_EQ(r, ((unsigned long long)t->op << 56) + ((unsigned long long)t->kind << 48) + off,
                 t->size);
        }
    }
    return ok;
}

__device__ static void act(const gin_t *g, const struct task *t, const struct gpu_place *p,
                           const struct memory *m, int peer, int i, struct gpu_report *r)
{
    unsigned long long at = (unsigned long long)blockIdx.x * REGION + p->group * t->slot + GUARD;
    gin_team_t world = gin_world(g);
    gin_at_t far = gin_at(m->in.win, m->in.off + at + t->to);
    gin_at_t near_src = t->heap ? gin_at(m->out.win, m->out.off + at + t->from)
                                : gin_at_local(m->priv_out + at + t->from);
    gin_at_t near_dst = t->heap ? far : gin_at_local(m->priv_in + at + t->to);
    gin_at_t far_src = gin_at(m->out.win, m->out.off + at + t->from);
    unsigned long long v = 0;
    switch (t->op) {
    case PUT_SIGNAL:
        D_OK(r, gin_put(g, p->grp, world, peer, far, near_src, t->size, gin_weak_inc(blockIdx.x)));
        D_OK(r, gin_flush(g, p->grp)); /* the next step changes the source */
        break;
    case PUT_QUIET:
        D_OK(r, gin_put(g, p->grp, world, peer, far, near_src, t->size, gin_no_action()));
        D_OK(r, gin_quiet(g, p->grp));
        break;
    case GET:
        D_OK(r, gin_get(g, p->grp, world, peer, far_src, near_dst, t->size));
        D_OK(r, gin_flush(g, p->grp));
        break;
    default:
        for (unsigned k = 0; k < 8; k++)
            v |= (unsigned long long)value_byte(g->rank, i, p->group, k) << (8 * k);
        D_OK(r, gin_put_value(g, p->grp, world, peer, far, v, t->size, gin_weak_inc(blockIdx.x)));
        break;
    }
}

__global__ void __launch_bounds__(1024)
    mix(gin_devcomm_t dev, struct memory m, unsigned long long seed, int first, int n, int kind,
        struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    unsigned long long arrived = 0, off = (unsigned long long)blockIdx.x * REGION;
    for (int i = first; i < first + n; i++) {
        struct task t = draw(seed, i, g.size, kind);
        struct gpu_place p = gpu_place_of(t.kind);
        unsigned most = REGION / t.slot, groups = p.groups < most ? p.groups : most;
        int to = (g.rank + t.shift) % g.size, from = (g.rank - t.shift + g.size) % g.size;
        unsigned char *src = (t.heap || t.op == GET ? m.out_p : m.priv_out) + off;
        unsigned char *dst = (t.op == GET && !t.heap ? m.priv_in : m.in_p) + off;
        D_STEP(r, i);
        prepare(&t, groups, src, dst, g.rank, i);
        D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), blockIdx.x, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
        D_STEP(r, i);
        if (p.group < groups)
            act(&g, &t, &p, &m, to, i, r);
        __syncthreads();
        D_STEP(r, i);
        if (t.op == PUT_SIGNAL || t.op == PUT_VALUE) {
            arrived += groups;
            D_OK(r, gin_wait_signal(&g, gin_block(), blockIdx.x, arrived));
        } else if (t.op == PUT_QUIET) {
            D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), blockIdx.x, GIN_ORDER_ACQ_REL,
                                GIN_FENCE_PUT));
        }
        D_STEP(r, i);
        bool ok = check(&t, groups, dst, t.op == GET ? to : from, i, r);
        __syncthreads();
        if (t.op == GET) /* my neighbour may still read what the next step changes */
            D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), blockIdx.x, GIN_ORDER_ACQ_REL,
                                GIN_FENCE_NONE));
        if (!ok)
            D_EQ(r, i, -1);
    }
    D_EQ(r, gin_read_signal(&g, blockIdx.x), arrived);
}

static bool buffers(struct gpu *gp, struct memory *m)
{
    gin_devcomm_reqs_t reqs;
    gpu_reqs(&reqs);
    reqs.contexts = BLOCKS;
    reqs.world_barriers = BLOCKS;
    m->in_p = (unsigned char *)gpu_symmetric(gp, GIN_KIND_CUDA, BLOCKS * REGION, &m->in);
    m->out_p = (unsigned char *)gpu_symmetric(gp, GIN_KIND_CUDA, BLOCKS * REGION, &m->out);
    GPU_PRIVATE(&m->priv_in, BLOCKS * REGION);
    GPU_PRIVATE(&m->priv_out, BLOCKS * REGION);
    return m->in_p != NULL && m->out_p != NULL && gpu_dev(gp, &reqs);
}

static void no_buffers(struct gpu *gp, struct memory *m)
{
    gpu_dev_end(gp);
    EXPECT_OK(gin_free(gp->comm, m->in_p));
    EXPECT_OK(gin_free(gp->comm, m->out_p));
    gpu_private_free(m->priv_in);
    gpu_private_free(m->priv_out);
}

GPU_TEST(every_size_alignment_and_group, 1)
{
    struct memory m;
    if (!buffers(gp, &m))
        return;
    int n = gpu_cases(gp, (int)SIZES * OPS * 4, (int)SIZES);
    mix<<<BLOCKS, THREADS, 0, gp->stream>>>(gp->dev, m, gp->seed, 0, n, -1, gp->report);
    GPU_DONE(gp);
    no_buffers(gp, &m);
}

/* One kind after the other, so that a failure names it. */
GPU_TEST(each_kind_of_group, 2)
{
    struct memory m;
    if (!buffers(gp, &m))
        return;
    int n = gpu_cases(gp, (int)SIZES * OPS, (int)SIZES / 2);
    for (int kind = 0; kind < K_KINDS; kind++) {
        mix<<<1, THREADS, 0, gp->stream>>>(gp->dev, m, gp->seed + 1, 0, n, kind, gp->report);
        if (!GPU_DONE(gp))
            FAIL("kind of group %d", kind);
        gpu_dev_end(gp); /* signals start from 0 for the next kind */
        if (!gpu_dev(gp, NULL))
            break;
    }
    no_buffers(gp, &m);
}

/* Blocks as large as they can be and as small. */
GPU_TEST(blocks_of_all_widths, 1)
{
    struct memory m;
    static const int widths[] = {32, 64, 96, 256, 512, 1024};
    for (int w = 0; w < 6; w++) {
        if (!buffers(gp, &m))
            return;
        int n = gpu_cases(gp, (int)SIZES * 2, (int)SIZES / 3);
        mix<<<BLOCKS, (unsigned)widths[w], 0, gp->stream>>>(gp->dev, m, gp->seed + 2 + (unsigned)w,
                                                            w, n, -1, gp->report);
        if (!GPU_DONE(gp))
            FAIL("blocks of %d threads", widths[w]);
        no_buffers(gp, &m);
    }
}

/* ---- large puts of one thread: the caller does not have to copy them itself ---- */

__global__ void by_one_thread(gin_devcomm_t dev, gin_at_t in, const unsigned long long *in_p,
                              unsigned long long *src, size_t bytes, int rounds,
                              struct gpu_report *r)
{
    gin_t g;
    size_t words = bytes / 8;
    D_OK(r, gin_open(&dev, 0, &g));
    int right = (g.rank + 1) % g.size, left = (g.rank + g.size - 1) % g.size;
    for (int i = 1; i <= rounds; i++) {
        D_STEP(r, i);
        for (size_t k = threadIdx.x; k < words; k += blockDim.x)
            src[k] = gpu_word((unsigned)(g.rank + i * 16), k);
        __syncthreads();
        if (threadIdx.x == 0) {
            gin_op_opt_t opt = {};
            opt.local = gin_counter_inc(0);
            D_OK(r, gin_put_x(&g, gin_thread(), gin_world(&g), right, in, gin_at_local(src), bytes,
                              i % 2 ? gin_weak_inc(0) : gin_no_action(), &opt));
            if (i % 2 == 0)
                D_OK(r, gin_signal(&g, gin_thread(), gin_world(&g), right, gin_strong_inc(0)));
            if (i % 3 == 0)
                D_OK(r, gin_quiet(&g, gin_thread()));
            if (i % 3 == 1)
                D_OK(r, gin_wait_counter(&g, gin_thread(), 0, (unsigned)i));
            if (i % 3 == 2)
                D_OK(r, gin_flush(&g, gin_thread()));
        }
        D_OK(r, gin_wait_signal(&g, gin_block(), 0, (unsigned)i));
        for (size_t k = threadIdx.x; k < words; k += blockDim.x)
            if (in_p[k] != gpu_word((unsigned)(left + i * 16), k)) {
                D_EQ(r, in_p[k], gpu_word((unsigned)(left + i * 16), k));
                break;
            }
        __syncthreads();
        D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                            GIN_FENCE_NONE));
    }
    D_EQ(r, gin_read_counter(&g, 0), rounds);
}

GPU_TEST(large_puts_of_one_thread, 1)
{
    static const size_t large[] = {4096, 8192, 65536, 1 << 20, 4 << 20};
    gin_at_t in;
    unsigned long long *src;
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 4 << 20, &in);
    GPU_PRIVATE(&src, 4 << 20);
    for (int s = 0; p != NULL && s < 5 && gpu_dev(gp, NULL); s++) {
        by_one_thread<<<1, 256, 0, gp->stream>>>(gp->dev, in, (unsigned long long *)p, src,
                                                 large[s], gpu_rounds(gp, 120), gp->report);
        if (!GPU_DONE(gp))
            FAIL("%zu bytes", large[s]);
        gpu_dev_end(gp);
    }
    EXPECT_OK(gin_free(gp->comm, p));
    gpu_private_free(src);
}

/* ---- aligned words are never seen in part ---- */

template <class T>
__global__ void words_whole(gin_devcomm_t dev, gin_at_t at, const T *mine, int n,
                            struct gpu_report *r)
{
    gin_t g;
    const T a = (T)0x1111111111111111ull, b = (T)0xeeeeeeeeeeeeeeeeull;
    D_OK(r, gin_open(&dev, blockIdx.x, &g));
    int right = (g.rank + 1) % g.size;
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) { /* one block puts, the other looks until it is told to stop */
            for (int i = 0; i < n; i++) {
                T v = i % 2 ? a : b;
                D_OK(r, gin_put(&g, gin_thread(), gin_world(&g), right, at, gin_at_local(&v),
                                sizeof(v), gin_no_action()));
            }
            D_OK(r, gin_quiet(&g, gin_thread()));
            gin_t other;
            D_OK(r, gin_open(&dev, 1, &other));
            D_OK(r, gin_signal(&other, gin_thread(), gin_world(&g), right, gin_weak_inc(0)));
        } else {
            while (gin_test_signal(&g, gin_thread(), 0, 1) == GIN_EAGAIN) {
                T v = gpu_look(mine);
                if (v != 0 && v != a && v != b) {
                    D_EQ(r, v, a);
                    break;
                }
            }
            D_OK(r, gin_wait_signal(&g, gin_thread(), 0, 1));
        }
    }
}

GPU_TEST(aligned_words_are_whole, 1)
{
    gin_at_t at;
    int n = gpu_cases(gp, 100000, 1000);
    void *p = gpu_symmetric(gp, GIN_KIND_CUDA, 64, &at);
    for (int s = 0; s < 4 && p != NULL && gpu_dev(gp, NULL); s++) {
        if (s == 0)
            words_whole<unsigned char>
                <<<2, 32, 0, gp->stream>>>(gp->dev, at, (unsigned char *)p, n, gp->report);
        else if (s == 1)
            words_whole<unsigned short>
                <<<2, 32, 0, gp->stream>>>(gp->dev, at, (unsigned short *)p, n, gp->report);
        else if (s == 2)
            words_whole<unsigned>
                <<<2, 32, 0, gp->stream>>>(gp->dev, at, (unsigned *)p, n, gp->report);
        else
            words_whole<unsigned long long>
                <<<2, 32, 0, gp->stream>>>(gp->dev, at, (unsigned long long *)p, n, gp->report);
        GPU_DONE(gp);
        gpu_dev_end(gp);
        gpu_fill(p, 0, 64);
        CU(cudaDeviceSynchronize());
        EXPECT_OK(gin_comm_barrier(gp->comm));
    }
    EXPECT_OK(gin_free(gp->comm, p));
}
