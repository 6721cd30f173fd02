/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU heap: the same offsets everywhere, growth, peers' memory mapped, failures of one rank
 * undone on all. GPU memory of the fake driver can be looked at by the CPU where it is mapped.
 */
#include <cuda.h>
#include <stdio.h>
#include <string.h>
#include "tests/cuda/cuda_test.h"

#define K 1024u
#define M (1024u * K)

static void *take(struct mp *mp, size_t bytes)
{
    void *p = gin_malloc_kind(mp->comm, GIN_KIND_CUDA, bytes);
    if (!EXPECT(p != NULL))
        FAIL("rank %d: %s", mp->rank, gin_last_error());
    return p;
}

static uint64_t offset(struct mp *mp, const void *p)
{
    gin_window_t win;
    uint64_t off = 0;
    EXPECT_OK(gin_window_of(mp->comm, p, &win, &off));
    EXPECT(gin_window_equal(win, gin_heap_window(mp->comm, GIN_KIND_CUDA)));
    return off;
}

/* Equal on all ranks. */
static void same(struct mp *mp, uint64_t value)
{
    uint64_t all[64];
    EXPECT_EQ_INT(mp_allgather(mp, &value, all, sizeof(value)), 0);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_U64(all[r], value);
}

/* Everybody fills its block, then reads all blocks. */
static void exchange(struct mp *mp, char *p, size_t bytes, uint64_t seed)
{
    mp_poison(p, bytes, seed + (uint64_t)mp->rank);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int r = 0; r < mp->size; r++) {
        const char *there = gin_ptr(mp->comm, p, r);
        if (EXPECT(there != NULL))
            MP_CHECK_PATTERN(there, bytes, seed + (uint64_t)r);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

MP_TEST(blocks_are_symmetric_and_mapped)
{
    EXPECT(gin_window_equal(gin_heap_window(mp->comm, GIN_KIND_CUDA), gin_window_none()));
    char *p = take(mp, 100 * K);
    same(mp, offset(mp, p));
    EXPECT_EQ_U64((uintptr_t)p % 64, 0);
    exchange(mp, p, 100 * K, 1);
    char *q = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 1000, 1);
    if (EXPECT(q != NULL))
        EXPECT_FILLED(q, 1000, 0);
    char *a = gin_aligned_alloc_kind(mp->comm, GIN_KIND_CUDA, 64 * K, 10);
    EXPECT_EQ_U64((uintptr_t)a % (64 * K), 0);
    mp_poison(p, 100 * K, 7);
    char *more = gin_realloc(mp->comm, p, 300 * K);
    if (EXPECT(more != NULL))
        MP_CHECK_PATTERN(more, 100 * K, 7);
    same(mp, offset(mp, more));
    EXPECT_OK(gin_free(mp->comm, more));
    EXPECT_OK(gin_free(mp->comm, q));
    EXPECT_OK(gin_free(mp->comm, a));
    EXPECT_FAILS(gin_free(mp->comm, a), GIN_EINVAL, "gin_free");
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &u));
    EXPECT_EQ_U64(u.blocks, 0);
    EXPECT_HAS(u.backing, "GPU");
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_EQ_INT(caps.cap[GIN_CAP_CUDA].have, 1);
    EXPECT_HAS(caps.cap[GIN_CAP_CUDA].reason, "Fake");
    EXPECT_OK(gin_heap_check(mp->comm));
}

MP_TEST_N(growth_reaches_all_ranks, "1 2 3 5")
{
    char *p[8];
    gin_window_info_t info = {.size_of = sizeof(info)};
    for (int i = 0; i < 8; i++) {
        p[i] = take(mp, 3 * M);
        same(mp, offset(mp, p[i]));
    }
    EXPECT_OK(gin_window_query(mp->comm, gin_heap_window(mp->comm, GIN_KIND_CUDA), &info));
    EXPECT(info.size >= 24 * M && info.is_heap && info.kind == GIN_KIND_CUDA);
    for (int i = 0; i < 8; i++)
        exchange(mp, p[i], 3 * M, (uint64_t)i);
    char *q = gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 9, M);
    if (EXPECT(q != NULL))
        EXPECT_FILLED(q, 9 * M, 0);
    EXPECT(gin_malloc_kind(mp->comm, GIN_KIND_CUDA, (size_t)1 << 30) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "GINSHMEM_CUDA_HEAP_MAX");
    for (int i = 0; i < 8; i++)
        EXPECT_OK(gin_free(mp->comm, p[i]));
}

MP_TEST_N(small_blocks_ask_nothing_of_the_driver, "2")
{
    void *p = take(mp, 4 * K);
    gin_devcomm_reqs_t r;
    gin_devcomm_reqs_init(&r);
    r.device = GIN_DEVICE_CUDA;
    r.backend = GIN_BACKEND_DIRECT;
    EXPECT_OK(gin_devcomm_create(mp->comm, &r, &mp->dev));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    long calls = fake_calls();
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int i = 0; i < 100; i++) {
        void *q = take(mp, 4 * K);
        EXPECT_OK(gin_free(mp->comm, q));
    }
    EXPECT_EQ_INT(fake_calls(), calls);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, p));
}

/* One rank fails in an entry while the heap grows; then all try again. */
static void fail_growth(struct mp *mp, const char *entry, unsigned nth, int status)
{
    int who = mp->size - 1;
    mp_step(mp, "%s", entry);
    gin_heap_usage_t before = {.size_of = sizeof(before)}, after = before;
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &before));
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    long live = fake_live();
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (mp->rank == who)
        fake_fail(entry, nth, 2); /* out of memory */
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT(gin_calloc_kind(mp->comm, GIN_KIND_CUDA, 1, 6 * M) == NULL);
    EXPECT_EQ_INT(gin_last_status(), status);
    EXPECT_HAS(gin_last_error(),
               mp->rank == who || strcmp(entry, "cuMemsetD8Async") != 0 ? "cuMem" : "rank");
    if (mp->rank != who)
        EXPECT_HAS(gin_last_error(), "rank");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_EQ_INT(fake_live(), live);
    fake_fail("", 0, 0);
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &after));
    EXPECT_EQ_U64(after.size, before.size);
    EXPECT_EQ_U64(after.used, before.used);
    EXPECT_EQ_INT(mp_barrier(mp), 0);
}

MP_TEST_OPT(failed_growth_is_undone, .ranks = "1 2 3", .only = MP_PROCS)
{
    char *p = take(mp, 1 * M);
    fail_growth(mp, "cuMemCreate", 1, GIN_ENOMEM);
    fail_growth(mp, "cuMemMap", 1, GIN_ENOMEM);
    fail_growth(mp, "cuMemSetAccess", 1, GIN_ENOMEM);
    fail_growth(mp, "cuMemsetD8Async", 1, GIN_ENOMEM);
    if (mp->size > 1) {
        fail_growth(mp, "cuMemExportToShareableHandle", 1, GIN_ENOMEM);
        fail_growth(mp, "cuMemImportFromShareableHandle", 1, GIN_ENOMEM);
        fail_growth(mp, "cuMemMap", (unsigned)mp->size, GIN_ENOMEM);
    }
    char *q = take(mp, 6 * M);
    exchange(mp, q, 6 * M, 3);
    exchange(mp, p, 1 * M, 4);
}

/* Whatever fails while the heap comes up, nothing is left and the next try succeeds. */
MP_TEST_OPT(failed_bring_up_is_undone, .ranks = "1 2 3", .only = MP_PROCS)
{
    static const char *const entries[] = {
        "cuDevicePrimaryCtxRetain", "cuStreamCreate",    "cuMemCreate",      "cuMemMap",
        "cuMemSetAccess",           "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"};
    int who = mp->size - 1;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        mp_step(mp, "%s", entries[i]);
        if (mp->rank == who) /* a rank's own memory comes last */
            fake_fail(entries[i], i == 4 || i == 6 ? (unsigned)mp->size : 1, 2);
        EXPECT(gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 8) == NULL);
        EXPECT(gin_last_status() == GIN_ENOMEM || gin_last_status() == GIN_ESYS);
        EXPECT_HAS(gin_last_error(), i == 0   ? "cannot get a CUDA context"
                                     : i == 6 ? "read back"
                                              : entries[i]);
        if (mp->rank != who)
            EXPECT_HAS(gin_last_error(), "rank");
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        EXPECT_EQ_INT(fake_live(), 0);
        EXPECT_EQ_INT(mp_barrier(mp), 0);
    }
    char *p = take(mp, 8);
    exchange(mp, p, 8, 3);
}

/* Addresses are asked for again, with a smaller limit of the heap. */
MP_TEST_OPT(scarce_addresses_lower_the_limit, .ranks = "1 3", .only = MP_PROCS)
{
    if (mp->rank == mp->size - 1)
        fake_fail("cuMemAddressReserve", 1, 2);
    take(mp, 8);
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    EXPECT_OK(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &u));
    EXPECT(u.max < 130 * M && u.max > 100 * M);
}

/* A GPU that may not use a peer's memory does not reach that rank; all else works. */
MP_TEST_OPT(refused_peer_access_is_said, .ranks = "2 3", .only = MP_PROCS)
{
    if (mp->rank == 0)
        fake_fail("cuMemSetAccess", 1, 217);
    char *p = take(mp, 64);
    int refused = 0;
    for (int r = 0; r < mp->size; r++)
        if (gin_ptr(mp->comm, p, r) == NULL) {
            refused++;
            EXPECT_HAS(gin_last_error(), "could not be read back");
            EXPECT_EQ_INT(gin_window_path(mp->comm, gin_heap_window(mp->comm, GIN_KIND_CUDA), r),
                          GIN_PATH_NONE);
        }
    EXPECT_EQ_INT(refused, mp->rank == 0);
    p = take(mp, 6 * M);
    EXPECT_OK(gin_free(mp->comm, p));
}

MP_TEST_OPT(ranks_without_gpu_take_part, .ranks = "2 3", .only = MP_PROCS)
{
    bool none = mp->rank == 1;
    if (none)
        setenv("FAKE_CUDA_DEVICES", "0", 1);
    char *p = take(mp, 6 * M), *q = take(mp, 64);
    same(mp, offset(mp, p));
    same(mp, offset(mp, q));
    for (int r = 0; r < mp->size; r++) {
        const char *there = gin_ptr(mp->comm, p, r);
        if (r == mp->rank)
            EXPECT(there == p);
        else if (none || r == 1) {
            EXPECT(there == NULL);
            EXPECT_HAS(gin_last_error(), none ? "this rank has no GPU" : "that rank has no GPU");
        } else {
            EXPECT(there != NULL);
        }
    }
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_EQ_INT(caps.cap[GIN_CAP_CUDA].have, !none);
    if (none)
        EXPECT_HAS(caps.cap[GIN_CAP_CUDA].reason, "no GPU");
    q = gin_realloc(mp->comm, q, 12 * M);
    EXPECT(q != NULL);
    EXPECT_OK(gin_free(mp->comm, p));
    EXPECT_OK(gin_free(mp->comm, q));
}

MP_TEST_OPT(no_gpu_anywhere, .ranks = "1 2", .env = "FAKE_CUDA_DEVICES=0")
{
    for (int i = 0; i < 2; i++) {
        EXPECT(gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 8) == NULL);
        EXPECT_EQ_INT(gin_last_status(), GIN_ENOTSUP);
        EXPECT_HAS(gin_last_error(), "finds no GPU");
    }
    gin_caps_t caps = {.size = sizeof(caps)};
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_EQ_INT(caps.cap[GIN_CAP_CUDA].have, 0);
    EXPECT_HAS(caps.cap[GIN_CAP_CUDA].reason, "finds no GPU");
    gin_heap_usage_t u = {.size_of = sizeof(u)};
    EXPECT_FAILS(gin_heap_usage(mp->comm, GIN_KIND_CUDA, &u), GIN_ENOTSUP, "finds no GPU");
}

MP_TEST_N(kinds_must_agree, "2 3")
{
    gin_kind_t kind = mp->rank == 0 ? GIN_KIND_HOST : GIN_KIND_CUDA;
    EXPECT(gin_malloc_kind(mp->comm, kind, 8) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    char *c = take(mp, 64), *h = gin_malloc(mp->comm, 64);
    EXPECT(gin_malloc_kind(mp->comm, kind, 8) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "kind");
    EXPECT_FAILS(gin_free(mp->comm, mp->rank == 0 ? h : c), GIN_EMISMATCH, "");
    EXPECT_OK(gin_free(mp->comm, c));
    EXPECT_OK(gin_free(mp->comm, h));
}

MP_TEST_N(windows_over_gpu_memory, "1 2 3")
{
    gin_window_t win, at;
    uint64_t off;
    gin_window_info_t info = {.size_of = sizeof(info)};
    char *p = take(mp, 10 * K), *h = gin_malloc(mp->comm, 64);
    if (!EXPECT_OK(gin_window_register(mp->comm, p + K, 4 * K, 0, &win)))
        return;
    EXPECT_OK(gin_window_query(mp->comm, win, &info));
    EXPECT(info.base == p + K && info.size == 4 * K && info.kind == GIN_KIND_CUDA && !info.is_heap);
    EXPECT_EQ_INT(info.shared, 2);
    EXPECT_OK(gin_window_of(mp->comm, p + K + 5, &at, &off));
    EXPECT(gin_window_equal(at, win) && off == 5);
    for (int r = 0; r < mp->size; r++) {
        EXPECT(gin_ptr(mp->comm, p + K, r) == (char *)gin_ptr(mp->comm, p, r) + K);
        EXPECT_EQ_INT(gin_window_path(mp->comm, win, r),
                      r == mp->rank ? GIN_PATH_SELF : GIN_PATH_LSA);
    }
    if (!mp_dev(mp, NULL))
        return;
    /* host threads copy to and from it, and do not wait for its words */
    gin_at_t cuda = gin_at(win, 8), host = gin_at_ptr(&mp->g, h);
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), 0, cuda, host, 8, gin_no_action()));
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), 0, host, cuda, 8, gin_no_action()));
    EXPECT_OK(gin_signal(&mp->g, gin_thread(), gin_world(&mp->g), 0, gin_set_at(cuda, 1)));
    EXPECT_FAILS(gin_wait_signal_at(&mp->g, gin_thread(), cuda, 1, NULL), GIN_ENOTSUP,
                 "GPU memory");
    EXPECT_FAILS(gin_window_deregister(mp->comm, gin_heap_window(mp->comm, GIN_KIND_CUDA)),
                 GIN_EINVAL, "heap");
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_FAILS(gin_window_register(mp->comm, p - 64 * K, 128 * K, 0, &win), GIN_EINVAL, "heap");
    EXPECT_OK(gin_free(mp->comm, p));
}

/* By fabric handles where all can, by descriptors with the reason where one cannot. */
MP_TEST_OPT(fabric_handles, .ranks = "1 2 3", .env = "GINSHMEM_CUDA_FABRIC=1")
{
    gin_caps_t caps = {.size = sizeof(caps)};
    bool none = !mp->threads && mp->size > 1 && mp->rank == 1;
    if (none)
        setenv("FAKE_CUDA_NO_FABRIC", "1", 1);
    char *p = take(mp, 1 * M), *q = take(mp, 6 * M);
    exchange(mp, p, 1 * M, 1);
    exchange(mp, q, 6 * M, 2);
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_HAS(caps.cap[GIN_CAP_CUDA].reason, none                           ? "cuMemCreate"
                                              : !mp->threads && mp->size > 1 ? "rank 1 has"
                                                                             : "; fabric handles");
}

MP_TEST_OPT(failed_growth_by_fabric_handles, .ranks = "2 3", .only = MP_PROCS,
            .env = "GINSHMEM_CUDA_FABRIC=1")
{
    char *p = take(mp, 1 * M);
    exchange(mp, p, 1 * M, 1);
    fail_growth(mp, "cuMemCreate", 1, GIN_ENOMEM);
    fail_growth(mp, "cuMemExportToShareableHandle", 1, GIN_ENOMEM);
    fail_growth(mp, "cuMemImportFromShareableHandle", 1, GIN_ENOMEM);
    fail_growth(mp, "cuMemMap", 1, GIN_ENOMEM);
    p = take(mp, 6 * M);
    exchange(mp, p, 6 * M, 2);
}

/* The node team first, then a device, then memory there. */
MP_TEST_N(a_device_chosen_late, "1 2 3")
{
    CUcontext c;
    gin_caps_t caps = {.size = sizeof(caps)};
    char want[32];
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_EQ_INT(caps.cap[GIN_CAP_CUDA].have, -1);
    int device = (caps.node_rank + 1) % 2; /* another one than without choice */
    EXPECT_EQ_INT(
        ((CUresult(*)(CUcontext *, CUdevice))fake("cuDevicePrimaryCtxRetain"))(&c, device), 0);
    EXPECT_EQ_INT(((CUresult(*)(CUcontext))fake("cuCtxSetCurrent"))(c), 0);
    char *p = take(mp, 64);
    EXPECT_OK(gin_query(mp->comm, &caps));
    snprintf(want, sizeof(want), "GPU %d (Fake %d), its primary", device, device);
    EXPECT_HAS(caps.cap[GIN_CAP_CUDA].reason, want);
    exchange(mp, p, 64, 9);
}

MP_TEST_OPT(finalize_frees_everything, .ranks = "1 2 3", .bare = true)
{
    for (int i = 0; i < 3; i++) {
        if (!mp_up(mp))
            return;
        take(mp, 64);
        take(mp, 6 * M);
        EXPECT(fake_live() > 0);
        if (!mp_down(mp))
            return;
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        EXPECT_EQ_INT(fake_live(), 0);
        EXPECT_EQ_INT(mp_barrier(mp), 0);
    }
}
