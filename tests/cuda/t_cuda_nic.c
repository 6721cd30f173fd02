/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory that the network itself reads and writes, against a driver without GPU and a network
 * that takes its memory for the host's (the fault wrapper). Which way is taken and why, and that
 * data, signals and order are the same by each; what is forced and cannot be had is refused.
 */
#include <dirent.h>
#include "tests/cuda/net_test.h"

#define NET "GINSHMEM_TEST_NET="

/* What gin_query() says of it; mp_net() came before, and GPU memory was asked for. */
static const char *way(struct mp *mp, int *have)
{
    static _Thread_local gin_caps_t caps;
    caps.size = sizeof(caps);
    EXPECT_OK(gin_query(mp->comm, &caps));
    *have = caps.cap[GIN_CAP_GPU_NET].have;
    return caps.cap[GIN_CAP_GPU_NET].reason;
}

static bool says(struct mp *mp, const char *text)
{
    int have;
    const char *reason = way(mp, &have);
    if (have == 1 && strstr(reason, text) != NULL)
        return true;
    FAIL("gpu-net is %d, \"%s\", without \"%s\"", have, reason, text);
    return false;
}

static bool up(struct mp *mp, const char *text)
{
    fake_use(mp->rank % 2);
    if (!mp_net(mp, NULL))
        return false;
    char *any = block(mp, GIN_KIND_CUDA, 64);
    EXPECT_OK(gin_free(mp->comm, any));
    return any != NULL && says(mp, text);
}

static uint64_t writes(struct mp *mp)
{
    gin_stats_t s = {.size_of = sizeof(s)};
    EXPECT_OK(gin_stats(mp->comm, &s));
    return s.net_writes;
}

/* Everything by a way; direct: by writes of the network, of which one put of MOST bytes has some.
 */
static void moves(struct mp *mp, const char *text, bool direct)
{
    uint64_t signals = 0;
    if (!up(mp, text))
        return;
    there_and_back(mp, GIN_KIND_CUDA, GIN_KIND_CUDA, &signals);
    there_and_back(mp, GIN_KIND_HOST, GIN_KIND_CUDA, &signals);
    there_and_back(mp, GIN_KIND_CUDA, GIN_KIND_HOST, &signals);
    char *src = block(mp, GIN_KIND_CUDA, MOST), *dst = block(mp, GIN_KIND_CUDA, MOST);
    uint64_t before = writes(mp);
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), right(mp), gin_at_ptr(&mp->g, dst),
                      gin_at_ptr(&mp->g, src), MOST, gin_no_action()));
    EXPECT_OK(gin_quiet(&mp->g, gin_thread()));
    EXPECT_EQ_INT(writes(mp) != before, direct);
    meet(mp);
    EXPECT_OK(gin_free(mp->comm, src));
    EXPECT_OK(gin_free(mp->comm, dst));
}

MP_TEST_OPT(by_dmabuf, .ranks = "2 3", .hosts = "ABC", .env = NET "dmabuf=1,hmem=1")
{
    moves(mp, "registered as DMA-BUF", true);
}

MP_TEST_OPT(by_pointer, .ranks = "2", .hosts = "AB", .env = NET "hmem=1")
{
    moves(mp, "registered by FI_HMEM", true);
}

MP_TEST_OPT(by_pointer_where_nothing_is_exported, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,hmem=1 FAKE_CUDA_RDMA=nodmabuf")
{
    moves(mp, "registered by FI_HMEM", true);
}

MP_TEST_OPT(by_the_host, .ranks = "2", .hosts = "AB", .only = MP_PROCS)
{
    moves(mp, "staged through the host: dmabuf: ", false);
}

MP_TEST_OPT(by_the_host_as_told, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,hmem=1 GINSHMEM_GPU_NET=stage")
{
    moves(mp, "GINSHMEM_GPU_NET=stage", false);
}

/* A GPU that is full is no reason to have no network. */
MP_TEST_OPT(by_the_host_without_memory, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,hmem=1")
{
    fake_use(mp->rank % 2);
    fake_fail("cuMemCreate", 1, 2);
    moves(mp, "staged through the host: no memory to try with: ", false);
}

MP_TEST_OPT(by_pointer_as_told, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,hmem=1 GINSHMEM_GPU_NET=hmem")
{
    moves(mp, "registered by FI_HMEM, as GINSHMEM_GPU_NET says", true);
}

/* What is tried at bring-up may be refused later: one part of the memory is staged, others not. */
MP_TEST_OPT(order_is_the_same, .ranks = "2 3", .hosts = "ABC", .only = MP_THREADS,
            .env = NET "dmabuf=1")
{
    fake_use(mp->rank % 2);
    order(mp);
}

MP_TEST_OPT(order_without_order, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "class=C,hold=4,early=1,seed=9,dmabuf=1")
{
    fake_use(mp->rank % 2);
    order(mp);
}

/* Puts go in messages there, which take the CPU at both ends: only gets use what is registered. */
MP_TEST_OPT(puts_in_messages, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "class=C,dc=0,dmabuf=1")
{
    moves(mp, "registered as DMA-BUF", false);
}

MP_TEST_OPT(local_memory_is_registered, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,local=1,max_msg=60000,depth=4")
{
    moves(mp, "registered as DMA-BUF", true);
}

/* ---- whether it is right to ---- */

MP_TEST_OPT(no_context_yet, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,hmem=1")
{
    if (!mp_net(mp, NULL))
        return;
    EXPECT_OK(gin_free(mp->comm, block(mp, GIN_KIND_CUDA, 64)));
    says(mp, "staged through the host: no CUDA context");
}

MP_TEST_OPT(a_provider_that_calls_cuda, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "hmem=1,calls=1")
{
    moves(mp, "may call CUDA", false);
}

MP_TEST_OPT(a_provider_that_may_call_cuda, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "hmem=1,calls=1 GINSHMEM_GPU_NET=hmem GINSHMEM_LOG=error")
{
    moves(mp, "registered by FI_HMEM", true);
}

/* The GPU is told of what arrived before a signal tells of it. */
static void flushed(struct mp *mp)
{
    const gin_t *g = &mp->g;
    if (!up(mp, "flushed before signals"))
        return;
    char *src = block(mp, GIN_KIND_CUDA, K), *dst = block(mp, GIN_KIND_CUDA, K);
    gin_at_t at = gin_at_ptr(g, dst), from = gin_at_ptr(g, src);
    meet(mp);
    for (uint64_t i = 1; i <= 20; i++) {
        long before = fake_flushes();
        EXPECT_OK(gin_barrier(g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_NONE));
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), at, from, K,
                          i % 2 != 0 ? gin_weak_inc(1) : gin_strong_inc(1)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, i));
        EXPECT(fake_flushes() > before);
        before = fake_flushes();
        EXPECT_OK(gin_get(g, gin_thread(), gin_world(g), right(mp), at, from, K));
        EXPECT_OK(gin_flush(g, gin_thread()));
        EXPECT(fake_flushes() > before);
        meet(mp);
    }
}

MP_TEST_OPT(flushed_before_signals, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,dc=0 FAKE_CUDA_RDMA=flush")
{
    flushed(mp);
}

MP_TEST_OPT(flushed_before_messages, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "imm=0,dmabuf=1,dc=0 FAKE_CUDA_RDMA=flush")
{
    flushed(mp);
}

MP_TEST_OPT(signals_do_not_wait_for_a_flush, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1 FAKE_CUDA_RDMA=flush")
{
    moves(mp, "has to be told of what arrives", false);
}

MP_TEST_OPT(nothing_flushes, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1,hmem=1 FAKE_CUDA_RDMA=blind")
{
    moves(mp, "has no cuFlushGPUDirectRDMAWrites", false);
}

/* ---- forced, and not to be had ---- */

static void refused(struct mp *mp, const char *text)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    gin_devcomm_reqs_t reqs;
    fake_use(mp->rank % 2);
    gin_devcomm_reqs_init(&reqs);
    if (!mp_dev(mp, &reqs))
        return;
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_EQ_INT(caps.cap[GIN_CAP_NET].have, 0);
    EXPECT(strstr(caps.cap[GIN_CAP_NET].reason, text) != NULL);
    EXPECT_EQ_INT(caps.cap[GIN_CAP_GPU_NET].have, 0);
    char *b = gin_malloc(mp->comm, 64);
    EXPECT_FAILS(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), right(mp), gin_at_ptr(&mp->g, b),
                         gin_at_ptr(&mp->g, b), 8, gin_no_action()),
                 GIN_ENOTSUP, text);
}

#define QUIET " GINSHMEM_LOG=error"

MP_TEST_OPT(no_dmabuf_to_be_had, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "hmem=1 GINSHMEM_GPU_NET=dmabuf" QUIET)
{
    refused(mp, "GINSHMEM_GPU_NET=dmabuf: dmabuf: ");
}

MP_TEST_OPT(no_pointers_to_be_had, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1 GINSHMEM_GPU_NET=hmem" QUIET)
{
    refused(mp, "GINSHMEM_GPU_NET=hmem: hmem: ");
}

MP_TEST_OPT(no_flush_to_be_had, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1 GINSHMEM_GPU_NET=dmabuf FAKE_CUDA_RDMA=blind" QUIET)
{
    refused(mp, "GINSHMEM_GPU_NET=dmabuf: dmabuf: ");
}

/* ---- memory that is not the heap's first ---- */

static unsigned descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

/* Windows begin and end anywhere in an allocation; no descriptor is left behind. */
MP_TEST_OPT(windows_anywhere, .ranks = "2", .hosts = "AB", .only = MP_PROCS, .env = NET "dmabuf=1")
{
    const gin_t *g = &mp->g;
    static const size_t offs[] = {0, 8, 4096, 4104, 9000, 65528};
    if (!up(mp, "DMA-BUF"))
        return;
    unsigned long long base = 0;
    EXPECT(((int (*)(void *, size_t))fake("cuMemAlloc_v2"))(&base, 200 * K) == 0);
    char *src = block(mp, GIN_KIND_CUDA, 70 * K);
    unsigned had = 0;
    for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
        gin_window_t win;
        char *p = (char *)(uintptr_t)(base + offs[i]);
        size_t n = 60000 + 8 * i;
        memset((char *)(uintptr_t)base, 0x7e, 200 * K);
        mp_poison(src, n, seed_of(i, mp->rank));
        EXPECT_OK(gin_window_register(mp->comm, p, n, 0, &win));
        had = i == 0 ? descriptors() : had;
        EXPECT_EQ_INT(descriptors(), had);
        meet(mp);
        uint64_t before = writes(mp);
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), gin_at(win, 0),
                          gin_at_ptr(g, src), n, gin_strong_inc(1)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, i + 1));
        EXPECT(writes(mp) > before);
        MP_CHECK_PATTERN(p, n, seed_of(i, left(mp)));
        EXPECT_FILLED(p + n, 64, 0x7e);
        if (offs[i] != 0)
            EXPECT_EQ_INT(p[-1], 0x7e);
        meet(mp);
        EXPECT_OK(gin_window_deregister(mp->comm, win));
    }
}

/* The heap grows; on one rank the new part cannot be shown, and is staged. */
MP_TEST_OPT(one_part_is_staged, .ranks = "2", .hosts = "AB", .only = MP_PROCS,
            .env = NET "dmabuf=1 GINSHMEM_CUDA_HEAP_SIZE=4M")
{
    const gin_t *g = &mp->g;
    const size_t n = 64 * K;
    gin_heap_usage_t heap_now = {.size_of = sizeof(heap_now)};
    if (!up(mp, "DMA-BUF"))
        return;
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &heap_now));
    const uint64_t edge = heap_now.size;
    char *src = block(mp, GIN_KIND_CUDA, n), *back = block(mp, GIN_KIND_CUDA, n);
    if (mp->rank == 1)
        fake_fail("cuMemGetHandleForAddressRange", 1, 801);
    char *more = block(mp, GIN_KIND_CUDA, edge);
    if (more == NULL)
        return;
    gin_at_t heap = gin_at_ptr(g, src), at = {heap.win, edge - n / 2};
    char *here = src - heap.off + at.off;
    for (uint64_t i = 1; i <= 4; i++) {
        mp_poison(src, n, seed_of(i, mp->rank));
        meet(mp);
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), at, gin_at_ptr(g, src), n,
                          i % 2 != 0 ? gin_weak_inc(1) : gin_strong_inc(1)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 1, i));
        MP_CHECK_PATTERN(here, n, seed_of(i, left(mp)));
        meet(mp);
        EXPECT_OK(gin_get(g, gin_thread(), gin_world(g), right(mp), at, gin_at_ptr(g, back), n));
        EXPECT_OK(gin_flush(g, gin_thread()));
        MP_CHECK_PATTERN(back, n, seed_of(i, mp->rank));
        /* from the edge, too */
        EXPECT_OK(gin_put(g, gin_thread(), gin_world(g), right(mp), gin_at_ptr(g, back), at, n,
                          gin_strong_inc(2)));
        EXPECT_OK(gin_wait_signal(g, gin_thread(), 2, i));
        MP_CHECK_PATTERN(back, n, seed_of(i, (mp->rank + mp->size - 2) % mp->size));
        meet(mp);
    }
}
