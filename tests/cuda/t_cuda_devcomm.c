/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device communicator for kernels leads to in GPU memory, read as a kernel would read it:
 * contexts, peers' cells, the table of windows, lists of ranks, barriers, the error word.
 */
#include <string.h>
#include <unistd.h>
#include "tests/cuda/cuda_test.h"

#define K 1024u
#define M (1024u * K)

static uint64_t addr(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* The peer's word that my kernels raise for a signal, and mine as I see it. */
static uint64_t *peer_cell(const struct mp *mp, int rank, uint32_t ctx, uint32_t id)
{
    const struct gin_i_dc *dc = cuda_dc(mp);
    const int32_t *lsa_of = (const int32_t *)(uintptr_t)mp->dev.lsa_of;
    uint64_t at = dc->reach.lsa_base + (uint64_t)lsa_of[rank] * dc->reach.lsa_stride +
                  dc->ctx[ctx].signals_off;
    return &((struct gin_i_cells *)(uintptr_t)at)[id].gpu;
}

MP_TEST(contexts_and_cells)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.contexts = 3;
    r.signals = 5;
    r.counters = 7;
    r.scratch = 1000;
    r.wait_timeout_ns = 77;
    if (!cuda_dev(mp, &r))
        return;
    const struct gin_i_dc *dc = cuda_dc(mp);
    gin_t g;
    EXPECT_FAILS(gin_open(&mp->dev, 0, &g), GIN_ENOTSUP, "kernels");
    EXPECT_EQ_INT(dc->magic, GIN_DEVCOMM_MAGIC);
    EXPECT_EQ_U64(dc->serial, mp->dev.serial);
    EXPECT_EQ_INT(dc->n_contexts, 3);
    EXPECT_EQ_U64(dc->wait_timeout_ns, 77);
    EXPECT_EQ_U64(*dc->error, 0);
    EXPECT_EQ_U64(dc->reach.handle, gin_heap_window(mp->comm, GIN_KIND_CUDA).w);
    EXPECT_EQ_INT(dc->reach.lsa_count, mp->size);
    EXPECT_EQ_INT(dc->reach.lsa_first, 0);
    EXPECT_EQ_INT(dc->reach.apply, GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES);
    EXPECT_EQ_U64(dc->scratch_bytes, 1000);
    EXPECT_EQ_U64(dc->scratch.win.w, dc->reach.handle);
    EXPECT(dc->all.index == GIN_ALL_CONTEXTS && dc->all.dc == dc);
    for (uint32_t c = 0; c < 3; c++) {
        const struct gin_i_ctx *x = &dc->ctx[c];
        EXPECT(x->dc == dc && x->index == c && x->n_signals == 5 && x->n_counters == 7);
        EXPECT_EQ_PTR(peer_cell(mp, mp->rank, c, 0), &x->signals[0].gpu);
        EXPECT_FILLED(x->signals, 5 * sizeof(*x->signals), 0);
        EXPECT_FILLED(x->bases, 5 * sizeof(*x->bases), 0);
        EXPECT_FILLED(x->counters, 7 * sizeof(*x->counters), 0);
        EXPECT_FILLED(x->host_signals, 5 * sizeof(*x->host_signals), 0);
        EXPECT_FILLED(x->host_counters, 7 * sizeof(*x->host_counters), 0);
        EXPECT(x->ring != NULL && x->ring->depth == 1024 && x->ring->ticket == 0);
        EXPECT_FILLED(x->ring->slots, 1024 * sizeof(*x->ring->slots), 0);
        EXPECT_FILLED(x->ring->reply_busy, x->ring->n_replies * 4, 0);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int p = 0; p < mp->size; p++)
        __atomic_fetch_add(peer_cell(mp, p, 2, 4), 1u << p, __ATOMIC_RELAXED);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_EQ_U64(dc->ctx[2].signals[4].gpu, (uint64_t)mp->size << mp->rank);
    EXPECT_EQ_U64(dc->ctx[2].signals[3].gpu, 0);
    char *scratch =
        (char *)(uintptr_t)(dc->reach.lsa_base +
                            (uint64_t)dc->reach.lsa_rank * dc->reach.lsa_stride + dc->scratch.off);
    EXPECT_FILLED(scratch, 1000, 0);
}

MP_TEST_N(without_engine, "1 2")
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.backend = GIN_BACKEND_DIRECT;
    if (!cuda_dev(mp, &r))
        return;
    const struct gin_i_ctx *x = cuda_dc(mp)->ctx;
    EXPECT(x->ring == NULL && x->host_signals == NULL && x->host_counters == NULL);
}

MP_TEST_N(the_table_of_windows_is_mirrored, "1 2 3")
{
    gin_window_t cuda, host, read_only, user, no_lsa;
    static char stack[64];
    char *h = gin_malloc(mp->comm, 64 * K);
    char *p = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 64 * K);
    EXPECT_OK(gin_window_register(mp->comm, p + K, K, 0, &cuda));
    if (!cuda_dev(mp, NULL))
        return;
    EXPECT_OK(gin_window_register(mp->comm, h + K, 2 * K, 0, &host));
    EXPECT_OK(gin_window_register(mp->comm, p, K, GIN_WIN_READ_ONLY, &read_only));
    EXPECT_OK(gin_window_register(mp->comm, p, K, GIN_WIN_NO_LSA, &no_lsa));
    EXPECT_OK(gin_window_register(mp->comm, stack, 64, 0, &user));
    const struct gin_i_window *w = cuda_window(mp, cuda);
    EXPECT(w->handle == cuda.w && w->twin == cuda.w && w->size == K && w->local == addr(p + K));
    EXPECT(w->mode == GIN_I_WINDOW_STRIDE && w->kind == GIN_KIND_CUDA);
    EXPECT_EQ_INT(w->apply, GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_U64(w->lsa_base + (uint64_t)r * w->lsa_stride, addr(gin_ptr(mp->comm, p + K, r)));
    w = cuda_window(mp, host);
    EXPECT(w->handle == host.w && w->size == 2 * K && w->local == addr(h + K));
    EXPECT(w->mode == GIN_I_WINDOW_STRIDE && w->kind == GIN_KIND_HOST);
    EXPECT_EQ_INT(w->apply, GIN_I_APPLY_STORES);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_U64(w->lsa_base + (uint64_t)r * w->lsa_stride, addr(gin_ptr(mp->comm, h + K, r)));
    w = cuda_window(mp, read_only);
    EXPECT(w->mode == GIN_I_WINDOW_STRIDE && w->flags == GIN_WIN_READ_ONLY);
    EXPECT_EQ_INT(cuda_window(mp, no_lsa)->mode, GIN_I_WINDOW_SLOW);
    w = cuda_window(mp, user);
    EXPECT(w->handle == user.w && w->mode == GIN_I_WINDOW_SLOW && w->local == 0);
    EXPECT(*cuda_dc(mp)->window_ids >= 7);
    EXPECT_OK(gin_window_deregister(mp->comm, host));
    EXPECT_FILLED(cuda_window(mp, host), sizeof(*w), 0);
    /* both heaps grow */
    w = cuda_window(mp, gin_heap_window(mp->comm, GIN_KIND_CUDA));
    EXPECT_EQ_PTR(w, cuda_dc(mp)->heap);
    uint64_t size = w->size;
    char *more = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 8 * M);
    EXPECT(w->size >= size + 8 * M);
    w = cuda_window(mp, gin_heap_window(mp->comm, GIN_KIND_HOST));
    size = w->size;
    char *even = gin_malloc(mp->comm, 20 * M);
    EXPECT(w->size >= size + 4 * M && w->size >= 20 * M);
    EXPECT_OK(gin_free(mp->comm, more));
    EXPECT_OK(gin_free(mp->comm, even));
    /* a page more of windows */
    static _Thread_local gin_window_t many[300];
    for (int i = 0; i < 300; i++)
        EXPECT_OK(gin_window_register(mp->comm, p + i, 1, 0, &many[i]));
    for (int i = 0; i < 300; i++)
        EXPECT_EQ_U64(cuda_window(mp, many[i])->local, addr(p + i));
    for (int i = 0; i < 300; i++)
        EXPECT_OK(gin_window_deregister(mp->comm, many[i]));
}

MP_TEST_N(lists_of_ranks_are_mirrored, "3 5")
{
    int before[] = {2, 0, 1}, after[5] = {1, 2, 0};
    gin_team_t a, b, c;
    EXPECT_OK(gin_team_create(mp->comm, before, 3, &a));
    if (!cuda_dev(mp, NULL))
        return;
    const struct gin_i_list *lists = cuda_dc(mp)->lists;
    int n = mp->size;
    for (int i = 3; i < n; i++)
        after[i] = i;
    EXPECT_OK(gin_team_create(mp->comm, after, n, &b));
    if (mp->rank < 3) {
        const struct gin_i_list *l = &lists[a.first % (int)GIN_I_LISTS];
        EXPECT(l->name == a.first && l->size == 3 && memcmp(l->ranks, before, sizeof(before)) == 0);
        EXPECT_OK(gin_team_free(mp->comm, a));
        EXPECT_EQ_INT(l->name, 0);
    }
    const struct gin_i_list *l = &lists[b.first % (int)GIN_I_LISTS];
    EXPECT(l->name == b.first && l->size == n);
    EXPECT(memcmp(l->ranks, after, (size_t)n * sizeof(int)) == 0);
    for (int i = 0; i < 20; i++) {
        EXPECT_OK(gin_team_create(mp->comm, after, n, &c));
        EXPECT_EQ_INT(lists[c.first % (int)GIN_I_LISTS].name, c.first);
        EXPECT_OK(gin_team_free(mp->comm, c));
    }
}

/* Arrive at a barrier as a kernel does, and see all others arrive. */
static void meet(const struct gin_i_pool *p, uint32_t index, uint64_t round)
{
    for (uint32_t i = 0; i < p->n; i++)
        __atomic_store_n((uint64_t *)(uintptr_t)(p->peers[i] + index * p->slot) + p->me, round,
                         __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < p->n; i++)
        while (__atomic_load_n((uint64_t *)(uintptr_t)(p->peers[p->me] + index * p->slot) + i,
                               __ATOMIC_ACQUIRE) < round)
            usleep(100);
}

MP_TEST(barriers_of_kernels_meet)
{
    gin_devcomm_reqs_t r;
    int reverse[8];
    for (int i = 0; i < mp->size; i++)
        reverse[i] = mp->size - 1 - i;
    gin_team_barrier_t team = {.count = 2};
    EXPECT_OK(gin_team_create(mp->comm, reverse, mp->size, &team.team));
    gin_devcomm_reqs_init(&r);
    r.world_barriers = 3;
    r.n_team_barriers = 1;
    r.team_barriers = &team;
    if (!cuda_dev(mp, &r))
        return;
    const struct gin_i_barriers *b = cuda_dc(mp)->barriers;
    EXPECT_EQ_INT(b->n_teams, 1);
    EXPECT_EQ_INT(b->fixed[GIN_BARRIER_WORLD].count, 3);
    EXPECT_EQ_INT(b->fixed[GIN_BARRIER_WORLD].beyond, -1);
    EXPECT_EQ_INT(b->teams[0].world_of[0], mp->size - 1);
    EXPECT_FILLED(b->teams[0].rounds, 2 * sizeof(struct gin_i_round), 0);
    for (uint64_t round = 1; round < 4; round++) {
        for (uint32_t i = 0; i < 3; i++)
            meet(&b->fixed[GIN_BARRIER_WORLD], i, round);
        meet(&b->teams[0], 1, round);
        meet(&b->fixed[GIN_BARRIER_LSA], 0, round);
        meet(&b->fixed[GIN_BARRIER_HYBRID], 0, round);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (uint32_t i = 0; i < 2; i++)
        EXPECT_EQ_U64(
            *(uint64_t *)(uintptr_t)(b->teams[0].peers[b->teams[0].me] + i * b->teams[0].slot),
            i == 0 ? 0 : 3);
}

/* Rank 1 has no kernels: others see it in host memory only, and meet it there. */
MP_TEST_OPT(cpu_and_gpu_ranks, .ranks = "2 3 10", .only = MP_PROCS)
{
    bool cpu = mp->rank == 1;
    gin_devcomm_reqs_t r;
    if (cpu)
        setenv("FAKE_CUDA_DEVICES", "0", 1);
    gin_devcomm_reqs_init(&r);
    r.device = cpu ? GIN_DEVICE_HOST : GIN_DEVICE_CUDA;
    if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
        return;
    uint64_t mine = 0;
    if (cpu) {
        EXPECT_OK(gin_open(&mp->dev, 0, &mp->g));
        for (int p = 0; p < mp->size; p++)
            EXPECT_OK(gin_signal(&mp->g, gin_thread(), gin_world(&mp->g), p, gin_weak_add(3, 5)));
        EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
        mine = gin_read_signal(&mp->g, 3);
    } else {
        const struct gin_i_dc *dc = cuda_dc(mp);
        const int32_t *lsa_of = (const int32_t *)(uintptr_t)mp->dev.lsa_of;
        EXPECT_EQ_INT(lsa_of[1], 1 | GIN_I_LSA_HOST_ONLY | GIN_I_LSA_NO_GPU);
        EXPECT_EQ_INT(lsa_of[0], 0);
        EXPECT_EQ_INT(dc->reach.lsa_count, 0);
        meet(&dc->barriers->fixed[GIN_BARRIER_WORLD], 0, 1);
        mine = dc->ctx[0].signals[3].gpu + dc->ctx[0].host_signals[3].cpu;
        EXPECT_EQ_INT(dc->barriers->fixed[GIN_BARRIER_WORLD].beyond, -1);
    }
    EXPECT_EQ_U64(mine, 5);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST_OPT(no_gpu_for_kernels, .ranks = "1 2", .only = MP_PROCS)
{
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    if (mp->rank == 0)
        setenv("FAKE_CUDA_DEVICES", "0", 1);
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &mp->dev), GIN_ENOTSUP,
                 mp->rank == 0 ? "finds no GPU" : "rank 0");
    r.device = GIN_DEVICE_HOST;
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev));
}

/* Whatever one rank is refused, all are, and nothing is left. */
MP_TEST_OPT(failures_are_undone, .ranks = "1 3", .only = MP_PROCS)
{
    static const struct {
        const char *entry;
        unsigned nth;
        int error;
    } tries[] = {{"cuMemAlloc", 1, 2},     {"cuMemAlloc", 2, 2},       {"cuMemcpyHtoDAsync", 2, 2},
                 {"cuMemAlloc", 2, 2},     {"cuMemHostAlloc", 1, 2},   {"cuMemHostAlloc", 2, 2},
                 {"cuStreamCreate", 2, 2}, {"cuMemcpyHtoDAsync", 1, 2}};
    void *p = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 64);
    gin_devcomm_reqs_t r;
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        mp_step(mp, "%s", tries[i].entry);
        if (mp->rank == mp->size - 1)
            fake_fail(tries[i].entry, tries[i].nth, tries[i].error);
        int st = gin_devcomm_create(mp->comm, &r, &mp->dev);
        EXPECT(st == GIN_ENOMEM || st == GIN_ENOTSUP);
        EXPECT_HAS(gin_last_error(), mp->rank == mp->size - 1 ? "cu" : "rank");
        EXPECT_OK(gin_comm_barrier(mp->comm));
        EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &u));
        EXPECT_EQ_U64(u.blocks, 1);
        EXPECT_EQ_U64(u.internal, 0);
        EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_HOST, &u));
        EXPECT_EQ_U64(u.blocks, 0);
        mp->dev.magic = 0;
    }
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* Where the host heap cannot be pinned kernels do without it, if they have no use for it. */
MP_TEST_OPT(without_pinned_memory, .ranks = "1 2", .only = MP_PROCS)
{
    gin_devcomm_reqs_t r;
    char *h = gin_malloc(mp->comm, 64);
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    if (mp->rank == mp->size - 1)
        fake_fail("cuMemHostRegister", (unsigned)mp->size, 2);
    EXPECT_FAILS(gin_devcomm_create(mp->comm, &r, &mp->dev), GIN_ENOTSUP,
                 mp->rank == mp->size - 1 ? "GIN_BACKEND_DIRECT" : "rank");
    r.backend = GIN_BACKEND_DIRECT;
    if (!EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev)))
        return;
    const struct gin_i_window *w = cuda_window(mp, gin_heap_window(mp->comm, GIN_KIND_HOST));
    bool refused = mp->rank == mp->size - 1;
    EXPECT_EQ_INT(w->mode, refused ? GIN_I_WINDOW_SLOW : GIN_I_WINDOW_STRIDE);
    EXPECT_OK(gin_free(mp->comm, h));
}

MP_TEST_N(many_come_and_go, "1 2")
{
    gin_devcomm_t dev[4];
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    long live = 0;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 4; i++)
            EXPECT_OK(gin_devcomm_create(mp->comm, &r, &dev[i]));
        for (int i = 0; i < 4; i++)
            EXPECT_OK(gin_devcomm_destroy(mp->comm, &dev[i ^ 1]));
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        if (round == 0)
            live = fake_live();
        EXPECT_EQ_INT(fake_live(), live);
        EXPECT_EQ_INT(mp_barrier(mp), 0);
    }
}

/* What a kernel with a stale copy reads: nothing, or another one than it was given. */
MP_TEST_N(stale_copies_are_told, "1 2")
{
    if (!cuda_dev(mp, NULL))
        return;
    gin_devcomm_t stale = mp->dev;
    const struct gin_i_dc *dc = cuda_dc(mp);
    EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    EXPECT_EQ_INT(dc->magic, 0);
    EXPECT_EQ_U64(dc->serial, 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (!cuda_dev(mp, NULL))
        return;
    EXPECT_EQ_U64(cuda_dc(mp)->serial, mp->dev.serial);
    EXPECT(mp->dev.serial != stale.serial);
}

/* The error word within two seconds. */
static uint64_t wait_error(const struct mp *mp)
{
    const uint64_t *error = cuda_dc(mp)->error;
    for (int i = 0; i < 2000 * MP_FACTOR && __atomic_load_n(error, __ATOMIC_ACQUIRE) == 0; i++)
        usleep(1000);
    return __atomic_load_n(error, __ATOMIC_ACQUIRE);
}

MP_TEST_N(an_abort_reaches_kernels, "2 3")
{
    if (!cuda_dev(mp, NULL))
        return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == mp->size - 1)
        gin_comm_abort(mp->comm, "test");
    EXPECT_EQ_U64(wait_error(mp), (uint32_t)GIN_EPEER | (uint64_t)(uint32_t)(mp->size - 1) << 32);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_FAILS(gin_devcomm_destroy(mp->comm, &mp->dev), GIN_EPEER, "test");
    mp->dev.magic = 0;
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "test");
    mp->comm = NULL;
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_EQ_INT(fake_live(), 0);
}

MP_TEST_OPT(a_faulted_gpu_reaches_peers, .ranks = "2 3", .only = MP_PROCS)
{
    if (!cuda_dev(mp, NULL))
        return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 1)
        fake_fault(1);
    EXPECT_EQ_U64(wait_error(mp), (uint32_t)GIN_EPEER | (uint64_t)1 << 32);
    EXPECT_FAILS(gin_comm_status(mp->comm), GIN_EPEER, "ILLEGAL_ADDRESS");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    mp->dev.magic = 0;
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "rank 1");
    mp->comm = NULL;
}

MP_TEST_OPT(a_killed_rank_reaches_kernels, .ranks = "3", .only = MP_PROCS)
{
    mp_expect_death(mp, 1);
    if (!cuda_dev(mp, NULL))
        return;
    EXPECT_OK(gin_comm_barrier(mp->comm));
    if (mp->rank == 1)
        _exit(3);
    EXPECT_EQ_U64(wait_error(mp), (uint32_t)GIN_EPEER | (uint64_t)1 << 32);
    mp->dev.magic = 0;
    EXPECT_FAILS(gin_finalize(mp->comm), GIN_EPEER, "rank 1");
    mp->comm = NULL;
}
