/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of the time that moving takes over the network is hidden behind computing, in kernels
 * that do both: a stencil, whose first block sends and awaits edges while the others work, and an
 * all-to-all, whose blocks all send, work on what the step before brought, and wait. Every step is
 * a kernel of its own; the engine moves what it posted.
 *
 *     hidden = (time of computing alone + time of moving alone - time of both) / moving alone
 *
 * Computing is made a quarter longer than moving, so all of it can be hidden. Beside that figure a
 * few steps as they went: when blocks computed, by the GPU's clock, and when the engine had work
 * that was not complete, by gin_stats(). "overlap [ROUNDS]"; every word that moves is checked.
 */
#include "tests/gpu/bench/pair.h"

#define STEPS 20
#define SHOWN 3 /* steps drawn */

static int n_rounds = 3;

enum mode { COMPUTE = 1, MOVE = 2 };

struct stamps { /* by the GPU's clock; the first by its complement, for atomicMax */
    unsigned long long not_from, to, posted, seen;
};

struct job {
    gin_devcomm_t dev;
    gin_at_t in, out; /* symmetric: where the peer's words come, and mine are taken from */
    unsigned *in_p, *out_p, *next;
    int me, peer, mode, step, work;
    uint64_t base; /* of signals, before this row's steps */
    struct stamps *t;
    unsigned *bad; /* words, failed calls */
};

__device__ static unsigned long long time_now(void)
{
#ifdef GPU_EMULATED
    return (unsigned long long)clock64();
#else
    unsigned long long t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
#endif
}

#define TRY(call)                     \
    do {                              \
        if ((call) != GIN_OK)         \
            atomicAdd(&j.bad[1], 1u); \
    } while (0)

/* What a heavier computation would do with a word. */
__device__ static void grind(const struct job &j, unsigned x)
{
    for (int i = 0; i < j.work; i++)
        x = x * 1664525u + 1013904223u;
    if (x == 0x5bd1e995u && j.work < 0)
        j.bad[0] = x;
}

__device__ static void computing(const struct job &j, bool begins)
{
    if (threadIdx.x == 0 && begins)
        atomicMax(&j.t->not_from, ~time_now());
    if (!begins)
        __syncthreads();
    if (threadIdx.x == 0 && !begins)
        atomicMax(&j.t->to, time_now());
}

/* ---- stencil: rows of a torus of both ranks' bands ---- */

#define W       65536 /* words of a row, 256 KiB */
#define H       16    /* rows of a band */
#define S_BLOCK 256
#define S_GRID  40

enum { ABOVE, BELOW }; /* the neighbour's halo on that side, and its signal */

__host__ __device__ static unsigned relax(unsigned above, unsigned left, unsigned here,
                                          unsigned right, unsigned below)
{
    return above + 3 * left + 5 * here + 7 * right + 11 * below;
}

__device__ static void relax_row(const struct job &j, unsigned *to, const unsigned *above,
                                 const unsigned *row, const unsigned *below, int first, int every)
{
    for (int x = first; x < W; x += every) {
        to[x] = relax(above[x], row[(x + W - 1) % W], row[x], row[(x + 1) % W], below[x]);
        grind(j, to[x]);
    }
}

/* in: halos [turn][side][W]; out: my band. Both edges go to the one neighbour. */
__device__ static void edges(const struct job &j)
{
    gin_t g;
    gin_group_t b = gin_block();
    TRY(gin_open(&j.dev, 0, &g));
    uint64_t row = W * sizeof(unsigned), turn = (uint64_t)(j.step % 2) * 2 * row;
    TRY(gin_put(&g, b, gin_world(&g), j.peer, gin_at(j.in.win, j.in.off + turn + BELOW * row),
                j.out, row, gin_weak_inc(BELOW)));
    TRY(gin_put(&g, b, gin_world(&g), j.peer, gin_at(j.in.win, j.in.off + turn + ABOVE * row),
                gin_at(j.out.win, j.out.off + (H - 1) * row), row, gin_weak_inc(ABOVE)));
    if (threadIdx.x == 0)
        j.t->posted = time_now();
    TRY(gin_wait_signal(&g, b, ABOVE, j.base + (uint64_t)j.step + 1));
    TRY(gin_wait_signal(&g, b, BELOW, j.base + (uint64_t)j.step + 1));
    if (threadIdx.x == 0)
        j.t->seen = time_now();
    TRY(gin_flush(&g, b)); /* before the next kernel changes the edges */
}

__global__ void stencil(job j)
{
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    const unsigned *up = j.in_p + (j.step % 2) * 2 * W, *down = up + W, *cur = j.out_p;
    if (blockIdx.x == 0) {
        if (j.mode & MOVE)
            edges(j);
        job edge = j;
        edge.work = 0;
        relax_row(edge, j.next, up, cur, cur + W, t, n);
        relax_row(edge, j.next + (H - 1) * W, cur + (H - 2) * W, cur + (H - 1) * W, down, t, n);
        return;
    }
    if (!(j.mode & COMPUTE))
        j.work = 0;
    computing(j, true);
    for (int y = 1; y < H - 1; y++)
        relax_row(j, j.next + y * W, cur + (y - 1) * W, cur + y * W, cur + (y + 1) * W,
                  ((int)blockIdx.x - 1) * n + t, ((int)gridDim.x - 1) * n);
    computing(j, false);
}

/* ---- all-to-all ---- */

#define A_BLOCK 512
#define A_GRID  16
#define PIECE   16384 /* words that a block sends, 64 KiB */
#define BOXES   3     /* the one that comes, the one worked on, and one of a peer that is ahead */

__device__ static unsigned word(int step, int from, unsigned i)
{
    return ((unsigned)step * 2 + (unsigned)from) * 2654435761u ^ i;
}

__global__ void __launch_bounds__(A_BLOCK) alltoall(job j)
{
    gin_t g;
    unsigned t = threadIdx.x, n = blockDim.x, first = blockIdx.x * PIECE;
    uint64_t box = (uint64_t)A_GRID * PIECE * sizeof(unsigned), at = first * sizeof(unsigned);
    TRY(gin_open(&j.dev, 0, &g));
    if (j.mode & MOVE) {
        for (unsigned i = t; i < PIECE; i += n)
            j.out_p[first + i] = word(j.step, j.me, first + i);
        __syncthreads();
        if (t == 0) {
            TRY(gin_put(&g, gin_thread(), gin_world(&g), j.peer,
                        gin_at(j.in.win, j.in.off + (uint64_t)(j.step % BOXES) * box + at),
                        gin_at(j.out.win, j.out.off + at), PIECE * sizeof(unsigned),
                        gin_weak_inc(2 + blockIdx.x)));
            atomicMax(&j.t->posted, time_now());
        }
    }
    if (j.mode & COMPUTE) {
        const unsigned *in =
            j.in_p + (size_t)((j.step + BOXES - 1) % BOXES) * A_GRID * PIECE + first;
        computing(j, true);
        for (unsigned i = t; i < PIECE; i += n) {
            if ((j.mode & MOVE) && j.step > 0 && in[i] != word(j.step - 1, j.peer, first + i))
                atomicAdd(&j.bad[0], 1u);
            grind(j, in[i]);
        }
        computing(j, false);
    }
    if (j.mode & MOVE) {
        TRY(gin_wait_signal(&g, gin_block(), 2 + blockIdx.x, j.base + (uint64_t)j.step + 1));
        if (t == 0)
            atomicMax(&j.t->seen, time_now());
        TRY(gin_flush(&g, gin_block()));
    }
}

/* ---- clocks ---- */

/* The GPU's clock when the host's word came. */
__global__ void tell_time(volatile unsigned long long *word, int n)
{
    for (int i = 1; i <= n; i++) {
        while (word[0] != (unsigned long long)i) {
        }
        word[8] = time_now();
        __threadfence_system();
        word[16] = (unsigned long long)i;
    }
}

/* To be added to the GPU's clock for the host's; by the quickest answer of many. */
static double clock_offset(struct side *s)
{
    const int n = 200;
    volatile unsigned long long *word;
    double best = 1e18, offset = 0;
    CU(cudaHostAlloc((void **)&word, 256, cudaHostAllocPortable));
    memset((void *)word, 0, 256);
    tell_time<<<1, 1, 0, s->stream>>>(word, n);
    for (int i = 1; i <= n; i++) {
        double from = now_ns();
        word[0] = (unsigned long long)i;
        while (__atomic_load_n(&word[16], __ATOMIC_ACQUIRE) != (unsigned long long)i) {
        }
        double to = now_ns();
        if (to - from < best) {
            best = to - from;
            offset = (from + to) / 2 - (double)word[8];
        }
    }
    CU(cudaStreamSynchronize(s->stream));
    CU(cudaFreeHost((void *)word));
    return offset;
}

/* ---- a workload ---- */

struct load {
    const char *name;
    void (*kernel)(job);
    unsigned blocks, threads;
    size_t in, out; /* words */
    bool bands;     /* out and next change places */
};

static const struct load loads[] = {
    {"stencil", stencil, S_GRID, S_BLOCK, 4 * W, (size_t)H *W, true},
    {"all-to-all", alltoall, A_GRID, A_BLOCK, (size_t)BOXES *A_GRID *PIECE, (size_t)A_GRID *PIECE,
     false},
};

struct run {
    struct side *s;
    const struct load *l;
    struct job j;
    gin_at_t at_out[2];
    unsigned *out[2];
    struct stamps *t; /* of the GPU */
    unsigned *bad;
    double offset;
};

static int shared_work; /* what side 0 found right for both */

static unsigned start_word(int rank, size_t i)
{
    return (unsigned)(i * 2246822519u + (unsigned)rank * 97u);
}

static void one_step(struct run *r, int mode, int step)
{
    struct job j = r->j;
    int turn = r->l->bands ? step % 2 : 0;
    j.mode = mode;
    j.step = step;
    j.out = r->at_out[turn];
    j.out_p = r->out[turn];
    j.next = r->out[!turn];
    void (*kernel)(job) = r->l->kernel;
    kernel<<<r->l->blocks, r->l->threads, 0, r->s->stream>>>(j);
}

static void set_up(struct run *r)
{
    if (r->l->bands) {
        std::vector<unsigned> band(r->l->out);
        for (size_t i = 0; i < band.size(); i++)
            band[i] = start_word(r->s->me, i);
        CU(cudaMemcpyAsync(r->out[0], band.data(), band.size() * sizeof(unsigned),
                           cudaMemcpyHostToDevice, r->s->stream));
    }
    CU(cudaStreamSynchronize(r->s->stream));
    meet();
}

static void moved(struct run *r, int mode)
{
    if (mode & MOVE)
        r->j.base += STEPS;
}

/* Microseconds of a step. */
static double timed(struct run *r, int mode)
{
    set_up(r);
    double began = now_ns();
    for (int i = 0; i < STEPS; i++)
        one_step(r, mode, i);
    CU(cudaStreamSynchronize(r->s->stream));
    meet();
    double us = (now_ns() - began) / STEPS / 1e3;
    moved(r, mode);
    return us;
}

/* Bands of both ranks after STEPS steps, by the CPU. */
static void check_bands(struct run *r)
{
    std::vector<unsigned> a((size_t)2 * H * W), b(a.size()), mine((size_t)H * W);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = start_word((int)(i / mine.size()), i % mine.size());
    for (int s = 0; s < STEPS; s++) {
        for (size_t y = 0; y < 2 * H; y++)
            for (size_t x = 0; x < W; x++) {
                const unsigned *row = &a[y * W];
                b[y * W + x] = relax(a[(y + 2 * H - 1) % (2 * H) * W + x], row[(x + W - 1) % W],
                                     row[x], row[(x + 1) % W], a[(y + 1) % (2 * H) * W + x]);
            }
        a.swap(b);
    }
    CU(cudaMemcpy(mine.data(), r->out[STEPS % 2], mine.size() * sizeof(unsigned),
                  cudaMemcpyDeviceToHost));
    if (memcmp(mine.data(), &a[(size_t)r->s->me * H * W], mine.size() * sizeof(unsigned)) != 0)
        die("stencil", "the bands are not those of the CPU");
}

static void check(struct run *r)
{
    unsigned bad[2];
    CU(cudaMemcpy(bad, r->bad, sizeof(bad), cudaMemcpyDeviceToHost));
    if (bad[0] != 0 || bad[1] != 0) {
        fprintf(stderr, "%s, side %d: %u bad words, %u calls failed\n", r->l->name, r->s->me,
                bad[0], bad[1]);
        die("overlap", "bad data");
    }
}

/* ---- drawing ---- */

#define COLUMNS 60

static void bar(const char *what, char with, double from, double to, double whole)
{
    char line[COLUMNS + 1];
    int a = (int)(from / whole * COLUMNS), b = (int)(to / whole * COLUMNS);
    for (int i = 0; i < COLUMNS; i++)
        line[i] = i >= a && i <= b ? with : ' ';
    line[COLUMNS] = 0;
    printf("  %-8s |%s| %.0f - %.0f us\n", what, line, from, to);
}

/* A step by itself, as it goes; the engine's share of the last spell that computing covers. */
static double drawn(struct run *r, int step)
{
    gin_stats_t before = {}, after = {};
    struct stamps t = {};
    before.size_of = after.size_of = sizeof(before);
    CU(cudaMemsetAsync(r->t, 0, sizeof(*r->t), r->s->stream));
    CU(cudaStreamSynchronize(r->s->stream));
    GIN(gin_stats(r->s->comm, &before));
    meet();
    double began = now_ns();
    one_step(r, COMPUTE | MOVE, step);
    CU(cudaStreamSynchronize(r->s->stream));
    double whole = (now_ns() - began) / 1e3;
    for (int i = 0; i < 1000 && after.engine_to_ns == 0; i++)
        GIN(gin_stats(r->s->comm, &after));
    CU(cudaMemcpy(&t, r->t, sizeof(t), cudaMemcpyDeviceToHost));
    auto us = [&](unsigned long long gpu) { return ((double)gpu + r->offset - began) / 1e3; };
    double from = us(~t.not_from), to = us(t.to);
    double e_from = ((double)after.engine_from_ns - began) / 1e3;
    double e_to = ((double)after.engine_to_ns - began) / 1e3;
    double covered = std::max(0.0, std::min(to, e_to) - std::max(from, e_from));
    meet();
    if (r->s->me != 0 || after.engine_spells == before.engine_spells || e_to <= e_from)
        return -1;
    printf("%s, step %d: %.0f us, engine: %llu descriptors, %llu bytes, %llu spells, %.0f us\n",
           r->l->name, step, whole, (unsigned long long)(after.engine_taken - before.engine_taken),
           (unsigned long long)(after.engine_bytes - before.engine_bytes),
           (unsigned long long)(after.engine_spells - before.engine_spells),
           (double)(after.engine_busy_ns - before.engine_busy_ns) / 1e3);
    bar("compute", '#', from, to, whole);
    bar("engine", '=', e_from, e_to, whole);
    bar("signal", '^', us(t.seen), us(t.seen), whole);
    return covered / (e_to - e_from);
}

static void draw(struct run *r)
{
    double share = 0;
    int n = 0;
    set_up(r);
    for (int i = 0; i < STEPS; i++) {
        if (i < STEPS - SHOWN) {
            one_step(r, COMPUTE | MOVE, i);
            continue;
        }
        double part = drawn(r, i);
        share += part >= 0 ? part : 0;
        n += part >= 0;
    }
    moved(r, MOVE);
    if (n > 0)
        note(std::string(r->l->name) + ": engine's work under computing", share / n, "x");
}

/* ---- the figures ---- */

/* Work such that computing alone takes a quarter longer than moving alone. */
static void find_work(struct run *r)
{
    double moving = timed(r, MOVE);
    r->j.work = 256;
    for (int i = 0; i < 2; i++) {
        double computing = timed(r, COMPUTE);
        if (r->s->me == 0)
            shared_work = std::max(1, (int)(r->j.work * 1.25 * moving / computing));
        meet();
        r->j.work = std::min(shared_work, 10000000);
        meet();
    }
}

static void figures(struct run *r)
{
    std::string name = r->l->name;
    for (int i = 0; i < n_rounds; i++) {
        double c = timed(r, COMPUTE), m = timed(r, MOVE), both = timed(r, COMPUTE | MOVE);
        if (r->l->bands)
            check_bands(r);
        check(r);
        if (r->s->me != 0)
            continue;
        note(name + ": computing alone, a step", c, "us");
        note(name + ": moving alone, a step", m, "us");
        note(name + ": both, a step", both, "us");
        note(name + ": hidden of moving", (c + m - both) / m, "x");
    }
}

static void body(struct side *s)
{
    struct run r = {};
    r.s = s;
    CU(cudaMalloc(&r.t, sizeof(*r.t)));
    CU(cudaMalloc(&r.bad, 2 * sizeof(unsigned)));
    CU(cudaMemsetAsync(r.bad, 0, 2 * sizeof(unsigned), s->stream));
    r.offset = clock_offset(s);
    r.j.t = r.t;
    r.j.bad = r.bad;
    r.j.me = s->me;
    r.j.peer = s->peer;
    r.j.dev = device_comm(s, 1);
    for (const struct load &l : loads) {
        r.l = &l;
        r.j.base = 0;
        r.j.in_p = (unsigned *)symmetric(s, GIN_KIND_CUDA, l.in * sizeof(unsigned), &r.j.in);
        for (int i = 0; i < 2; i++)
            r.out[i] =
                (unsigned *)symmetric(s, GIN_KIND_CUDA, l.out * sizeof(unsigned), &r.at_out[i]);
        find_work(&r);
        figures(&r);
        draw(&r);
        CU(cudaStreamSynchronize(s->stream));
        check(&r);
        for (int i = 0; i < 2; i++)
            GIN(gin_free(s->comm, r.out[1 - i]));
        GIN(gin_free(s->comm, r.j.in_p));
    }
    GIN(gin_devcomm_destroy(s->comm, &r.j.dev));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        n_rounds = std::max(1, atoi(argv[1]));
    int status = pair_run(body, 200);
    if (status != 0)
        return status;
    printf("# two ranks, GPU memory, %d rounds: medians (lowest - highest)\n", n_rounds);
    print_rows();
    return 0;
}
