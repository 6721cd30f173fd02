/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels as threads (tests/gpu/device/emulate.h): the device code itself, over a real engine. */
#include "tests/gpu/device/bed.h"
#include "tests/cuda/far_kernels.h"

struct block {
    struct far_run *run;
    unsigned index;
};

static bool same(struct far_run *run, int line, long long got, long long want)
{
    if (got == want)
        return true;
    if (__atomic_fetch_add(&run->failures, 1, __ATOMIC_RELAXED) == 0) {
        run->line = line;
        run->got = got;
        run->want = want;
    }
    return false;
}
#define SAME(got, want) same(b->run, __LINE__, (long long)(got), (long long)(want))
#define OK(call)        SAME(call, GIN_OK)

static unsigned char byte_of(int rank, int round, unsigned block, unsigned i)
{
    return (unsigned char)((unsigned)rank * 31 + (unsigned)round * 7 + block * 3 + i * 13 +
                           i / 256);
}

static gin_group_t group_of(const struct far_run *run)
{
    return run->group == GIN_GROUP_BLOCK  ? gin_block()
           : run->group == GIN_GROUP_WARP ? gin_warp()
                                          : gin_thread();
}

/* My part in the group; groups of threads and warps leave the work to the block's first. */
static bool takes_part(gin_group_t grp)
{
    return grp.kind == GIN_GROUP_BLOCK ||
           (grp.kind == GIN_GROUP_WARP ? emu_me.linear < 32 : emu_me.linear == 0);
}

static unsigned lanes_of(gin_group_t grp)
{
    unsigned n = emu_threads();
    return grp.kind == GIN_GROUP_BLOCK ? n : grp.kind == GIN_GROUP_WARP ? (n < 32 ? n : 32) : 1;
}

static gin_at_t at_plus(gin_at_t at, uint64_t off)
{
    return gin_at(at.win, at.off + off);
}

static void round_of(const struct block *b, const gin_t *g, gin_group_t grp, int i)
{
    struct far_run *run = b->run;
    static const unsigned sizes[] = {8, 1, 64, 300, 4096, 3, FAR_BYTES, 256};
    const unsigned n = sizes[(unsigned)i % 8], at = b->index * FAR_BYTES;
    const int right = (g->rank + 1) % g->size, left = (g->rank + g->size - 1) % g->size;
    const gin_team_t w = gin_world(g);
    gin_op_opt_t opt = {};
    opt.local = gin_counter_inc(1);
    for (unsigned k = emu_me.linear; k < n; k += lanes_of(grp)) {
        run->out_p[at + k] = byte_of(g->rank, i, b->index, k);
        run->back_p[at + k] = 0xee;
    }
    OK(gin_put_x(g, grp, w, right, at_plus(run->in, at), at_plus(run->out, at), n,
                 i % 2 ? gin_weak_inc(0) : gin_no_action(), &opt));
    if (i % 2 == 0)
        OK(gin_signal(g, grp, w, right, gin_strong_inc(0)));
    OK(gin_wait_signal(g, grp, 0, (uint64_t)i));
    for (unsigned k = 0; k < n; k++)
        if (!SAME(run->in_p[at + k], byte_of(left, i, b->index, k)))
            break;
    OK(gin_wait_counter(g, grp, 1, (uint64_t)i));
    OK(gin_get(g, grp, w, right, at_plus(run->in, at), at_plus(run->back, at), n));
    OK(gin_flush(g, grp));
    for (unsigned k = 0; k < n; k++)
        if (!SAME(run->back_p[at + k], byte_of(g->rank, i, b->index, k)))
            break;
    /* a value with a word that is set; whoever sees the word sees the value */
    const gin_at_t word = at_plus(run->words, b->index * 128), flag = at_plus(word, 8);
    OK(gin_put_value(g, grp, w, right, word, (uint64_t)i * 3, 8, gin_set_at(flag, (uint64_t)i)));
    OK(gin_wait_signal_at(g, grp, flag, (uint64_t)i, NULL));
    OK(gin_fence(g, grp, w, right));
    OK(gin_signal(g, grp, w, right, gin_weak_add(2, 5)));
    gin_request_t req;
    OK(gin_flush_async(g, grp, w, right, &req));
    OK(gin_wait(g, grp, &req));
    OK(gin_wait_signal(g, grp, 2, (uint64_t)i * 5));
    /* everybody counts at rank 0 */
    uint64_t was = ~(uint64_t)0;
    OK(gin_amo_fetch_add(g, grp, w, 0, at_plus(word, 16), 1, &was));
    SAME(was < (uint64_t)run->rounds * (uint64_t)g->size, 1);
    OK(gin_amo_add32(g, grp, w, 0, at_plus(word, 24), 2));
    OK(gin_quiet(g, grp));
    OK(gin_barrier(g, grp, gin_barrier_world(), b->index, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    OK(gin_amo_fetch(g, grp, w, 0, at_plus(word, 16), &was));
    SAME(was, (uint64_t)i * (uint64_t)g->size);
    OK(gin_barrier(g, grp, gin_barrier_hybrid(), b->index, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
}

static void exchange(void *arg)
{
    const struct block *b = (const struct block *)arg;
    gin_group_t grp = group_of(b->run);
    gin_t g;
    if (!takes_part(grp) || !OK(gin_open(&b->run->dev, b->index, &g)))
        return;
    for (int i = 1; i <= b->run->rounds && gin_status(&g) == GIN_OK; i++)
        round_of(b, &g, grp, i);
    OK(gin_status(&g));
}

/* Words that each rank writes by puts alone; no member may see an old one. */
static void barriers(void *arg)
{
    const struct block *b = (const struct block *)arg;
    gin_group_t grp = group_of(b->run);
    gin_t g;
    if (!takes_part(grp) || !OK(gin_open(&b->run->dev, b->index, &g)))
        return;
    const uint64_t *mine = (const uint64_t *)gin_local_ptr(&g, b->run->in);
    for (int i = 1; i <= b->run->rounds; i++) {
        for (int r = 0; r < g.size; r++)
            OK(gin_put_value(&g, grp, gin_world(&g), r,
                             at_plus(b->run->in, 8 * (b->index * 64 + (unsigned)g.rank)),
                             (uint64_t)i, 8, gin_no_action()));
        OK(gin_barrier(&g, grp, gin_barrier_world(), b->index, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
        for (int r = 0; r < g.size; r++)
            SAME(__atomic_load_n(&mine[b->index * 64 + (unsigned)r], __ATOMIC_RELAXED) >=
                     (uint64_t)i,
                 1);
    }
}

static void stuck(void *arg)
{
    const struct block *b = (const struct block *)arg;
    gin_t g;
    if (emu_me.linear != 0 || !OK(gin_open(&b->run->dev, b->index, &g)))
        return;
    int st = gin_wait_signal(&g, gin_thread(), 9, 1);
    if (b->index == 0)
        b->run->status = st;
    SAME(st == GIN_OK, 0);
    SAME(gin_quiet(&g, gin_thread()) == GIN_EAGAIN, 0);
}

/* The first block's quiet ends, though the others, in the same context, put until it has. */
static void quiet(void *arg)
{
    const struct block *b = (const struct block *)arg;
    struct far_run *run = b->run;
    gin_t g;
    if (emu_me.linear != 0 || !OK(gin_open(&run->dev, 0, &g)))
        return;
    const int right = (g.rank + 1) % g.size;
    const gin_at_t at = at_plus(run->in, b->index * FAR_BYTES);
    for (int i = 0;
         b->index == 0 ? i < run->rounds : __atomic_load_n(&run->status, __ATOMIC_RELAXED) == 0;
         i++) {
        OK(gin_put_value(&g, gin_thread(), gin_world(&g), right, at, 7, 8, gin_no_action()));
        if (b->index == 0)
            OK(gin_quiet(&g, gin_thread()));
    }
    if (b->index == 0)
        __atomic_store_n(&run->status, 1, __ATOMIC_RELAXED);
}

static void dead(void *arg)
{
    const struct block *b = (const struct block *)arg;
    gin_t g;
    if (emu_me.linear != 0 || !OK(gin_open(&b->run->dev, b->index, &g)))
        return;
    gin_i_ring_abandon(g.ring, GIN_ENET);
    SAME(gin_barrier(&g, gin_thread(), gin_barrier_world(), b->index, GIN_ORDER_ACQ_REL,
                     GIN_FENCE_NONE),
         GIN_ENET);
}

static void launch(struct far_run *run, void (*kernel)(void *), uint32_t threads)
{
    struct block block[FAR_BLOCKS];
    struct emu_launch launched[FAR_BLOCKS];
    struct emu_dim dim = {threads, 1, 1};
    for (unsigned i = 0; i < FAR_BLOCKS; i++) {
        block[i] = (struct block){run, i};
        launched[i] = emu_launch_block(dim, kernel, &block[i]);
    }
    for (unsigned i = 0; i < FAR_BLOCKS; i++)
        emu_join(&launched[i]);
}

static uint32_t threads_for(const struct far_run *run)
{
    return run->group == GIN_GROUP_BLOCK ? 8 : run->group == GIN_GROUP_WARP ? 4 : 1;
}

void far_exchange(struct far_run *run)
{
    launch(run, exchange, threads_for(run));
}

void far_barriers(struct far_run *run)
{
    launch(run, barriers, threads_for(run));
}

void far_stuck(struct far_run *run)
{
    launch(run, stuck, 1);
}

void far_quiet(struct far_run *run)
{
    launch(run, quiet, 1);
}

void far_dead(struct far_run *run)
{
    launch(run, dead, 1);
}
