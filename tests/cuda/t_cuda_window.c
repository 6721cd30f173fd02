/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows over memory that the program got from the driver: allocations and parts of them, mapped
 * memory in pieces, pinned memory. What a kernel would find of them is followed by the CPU, into
 * the peers' memory. Whatever fails on one rank fails on all, and leaves nothing.
 */
#include <cuda.h>
#include <string.h>
#include "tests/cuda/cuda_test.h"

#define K     1024u
#define M     (1024u * K)
#define PIECE (2u * M)

#define NAME(f)  NAME_(f)
#define NAME_(f) #f
#define DRV(f)   ((__typeof__(f) *)fake(NAME(f)))

/* The GPU that a rank gets when it has chosen none, made current. */
static void use_gpu(const struct mp *mp)
{
    CUcontext c;
    EXPECT_EQ_INT(DRV(cuDevicePrimaryCtxRetain)(&c, mp->rank % 2), 0);
    EXPECT_EQ_INT(DRV(cuCtxPushCurrent)(c), 0);
}

static void leave_gpu(const struct mp *mp)
{
    CUcontext c;
    EXPECT_EQ_INT(DRV(cuCtxPopCurrent)(&c), 0);
    EXPECT_EQ_INT(DRV(cuDevicePrimaryCtxRelease)(mp->rank % 2), 0);
}

static char *gpu_alloc(size_t bytes)
{
    CUdeviceptr p = 0;
    EXPECT_EQ_INT(DRV(cuMemAlloc)(&p, bytes), 0);
    return (char *)(uintptr_t)p;
}

static void gpu_free(const void *p)
{
    EXPECT_EQ_INT(DRV(cuMemFree)((CUdeviceptr)(uintptr_t)p), 0);
}

/* Pieces side by side. */
static char *map_pieces(const struct mp *mp, int n, int types)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = (CUmemAllocationHandleType)types,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr at = 0;
    prop.location.id = mp->rank % 2;
    access.location = prop.location;
    EXPECT_EQ_INT(DRV(cuMemAddressReserve)(&at, (size_t)n * PIECE, 0, 0, 0), 0);
    for (int i = 0; i < n; i++) {
        EXPECT_EQ_INT(DRV(cuMemCreate)(&h, PIECE, &prop, 0), 0);
        EXPECT_EQ_INT(DRV(cuMemMap)(at + (size_t)i * PIECE, PIECE, 0, h, 0), 0);
        EXPECT_EQ_INT(DRV(cuMemRelease)(h), 0);
    }
    EXPECT_EQ_INT(DRV(cuMemSetAccess)(at, (size_t)n * PIECE, &access, 1), 0);
    return (char *)(uintptr_t)at;
}

static void unmap_pieces(const void *p, int n)
{
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)p;
    for (int i = 0; i < n; i++)
        EXPECT_EQ_INT(DRV(cuMemUnmap)(at + (size_t)i * PIECE, PIECE), 0);
    EXPECT_EQ_INT(DRV(cuMemAddressFree)(at, (size_t)n * PIECE), 0);
}

/* What kernels find of a window that they may use directly: every rank writes into all others. */
static void check_direct(struct mp *mp, gin_window_t win, char *mine, size_t bytes, int kind)
{
    const struct gin_i_window *e = cuda_window(mp, win);
    EXPECT(e->handle == win.w && e->twin == win.w);
    EXPECT_EQ_U64(e->size, bytes);
    EXPECT_EQ_PTR((char *)(uintptr_t)e->local, mine);
    EXPECT_EQ_INT(e->kind, kind);
    EXPECT(kind != GIN_KIND_CUDA || e->apply == (GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES));
    if (!EXPECT_EQ_INT(e->mode, GIN_I_WINDOW_TABLE) || !EXPECT(e->peers != NULL))
        return;
    memset(mine, 0, bytes);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int r = 0; r < mp->size; r++) {
        char *there = (char *)(uintptr_t)e->peers[r];
        if (!EXPECT(there != NULL))
            continue;
        EXPECT(r != mp->rank || there == mine);
        EXPECT_EQ_PTR(gin_ptr(mp->comm, mine + 5, r), there + 5);
        EXPECT_EQ_INT(gin_window_path(mp->comm, win, r),
                      r == mp->rank ? GIN_PATH_SELF : GIN_PATH_LSA);
        there[mp->rank] = (char)(r + 1);
        there[bytes - 1 - (size_t)mp->rank] = (char)(mp->rank + 1);
    }
    EXPECT_OK(gin_comm_barrier(mp->comm));
    for (int r = 0; r < mp->size; r++)
        EXPECT(mine[r] == mp->rank + 1 && mine[bytes - 1 - (size_t)r] == r + 1);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}

static void use_window(struct mp *mp, char *mine, size_t bytes)
{
    gin_window_t win, at;
    uint64_t off;
    gin_window_info_t info = {.size_of = sizeof(info)};
    if (!EXPECT_OK(gin_window_register(mp->comm, mine, bytes, 0, &win)))
        return;
    EXPECT_OK(gin_window_query(mp->comm, win, &info));
    EXPECT(info.base == mine && info.size == bytes && info.kind == GIN_KIND_CUDA && !info.is_heap);
    EXPECT_OK(gin_window_of(mp->comm, mine + bytes - 1, &at, &off));
    EXPECT(gin_window_equal(at, win) && off == bytes - 1);
    check_direct(mp, win, mine, bytes, GIN_KIND_CUDA);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_EQ_U64(cuda_window(mp, win)->handle, 0);
}

/* All ranks must have got this far before any looks at what its process holds. */
static long live(struct mp *mp)
{
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    long n = fake_live();
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    return n;
}

MP_TEST(allocations_and_parts)
{
    use_gpu(mp);
    if (!cuda_dev(mp, NULL))
        return;
    char *p = gpu_alloc(9 * M);
    use_window(mp, p, 9 * M); /* rows and pages of tables are there afterwards */
    long before = live(mp);
    use_window(mp, p, 9 * M);
    use_window(mp, p + 512 * (1 + mp->rank), 5 * M + 7);
    gin_window_t one, two, part;
    char *other = p + 4 * M + 4 * K * (unsigned)mp->rank;
    EXPECT_OK(gin_window_register(mp->comm, p, 64 * K, 0, &one));
    EXPECT_OK(gin_window_register(mp->comm, other, 64 * K, 0, &two));
    EXPECT_OK(gin_window_register(mp->comm, p + K, K, GIN_WIN_READ_ONLY, &part));
    gin_window_info_t info = {.size_of = sizeof(info)};
    EXPECT_OK(gin_window_query(mp->comm, part, &info));
    EXPECT_EQ_INT(info.shared, 2);
    /* several windows in one allocation: one handle of each peer that has another process */
    EXPECT_EQ_INT(live(mp), before + (mp->threads ? 0 : mp->size - 1));
    check_direct(mp, two, other, 64 * K, GIN_KIND_CUDA);
    check_direct(mp, one, p, 64 * K, GIN_KIND_CUDA);
    check_direct(mp, part, p + K, K, GIN_KIND_CUDA);
    EXPECT_EQ_U64(cuda_window(mp, part)->flags, GIN_WIN_READ_ONLY);
    EXPECT_OK(gin_window_deregister(mp->comm, one));
    check_direct(mp, two, other, 64 * K, GIN_KIND_CUDA);
    EXPECT_OK(gin_window_deregister(mp->comm, two));
    check_direct(mp, part, p + K, K, GIN_KIND_CUDA);
    EXPECT_OK(gin_window_deregister(mp->comm, part));
    EXPECT_EQ_INT(live(mp), before);
    /* what lies behind it is the machine's business, so the text is, too */
    EXPECT_FAILS(gin_window_register(mp->comm, p + M, 9 * M, 0, &one), GIN_EINVAL,
                 "gin_window_register");
    EXPECT_EQ_INT(live(mp), before);
    gpu_free(p);
    leave_gpu(mp);
}

/* The first call that has to do with GPUs; device communicators come after it. */
MP_TEST_N(registered_before_all_else, "1 2 3")
{
    gin_window_t win;
    use_gpu(mp);
    char *p = gpu_alloc(100 * K);
    EXPECT_OK(gin_window_register(mp->comm, p + 256, 10 * K, 0, &win));
    if (!cuda_dev(mp, NULL))
        return;
    check_direct(mp, win, p + 256, 10 * K, GIN_KIND_CUDA);
    EXPECT(mp_down(mp)); /* forgotten windows go with the communicator */
    gpu_free(p);
    leave_gpu(mp);
    EXPECT_EQ_INT(live(mp), 0);
}

MP_TEST(mapped_memory_in_pieces)
{
    use_gpu(mp);
    if (!cuda_dev(mp, NULL))
        return;
    int n = 2 + mp->rank % 2; /* not as many everywhere */
    char *p = map_pieces(mp, n, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    char *part = p + PIECE - 80000 - 512 * (unsigned)mp->rank;
    use_window(mp, part, 160000);
    long before = live(mp);
    use_window(mp, p, 2 * PIECE);
    use_window(mp, p + 100, K);
    use_window(mp, part, 160000);
    EXPECT_EQ_INT(live(mp), before);
    gin_window_t win;
    EXPECT_FAILS(gin_window_register(mp->comm, p + PIECE, 4 * PIECE, 0, &win), GIN_EINVAL,
                 "gin_window_register");
    EXPECT_EQ_INT(live(mp), before);
    unmap_pieces(p, n);
    p = map_pieces(mp, 2, 0);
    if (mp->size == 1 || mp->threads)
        use_window(mp, p + K, PIECE);
    else
        EXPECT_FAILS(gin_window_register(mp->comm, p + K, PIECE, 0, &win), GIN_ENOTSUP,
                     "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
    unmap_pieces(p, 2);
    leave_gpu(mp);
}

/* Memory that can be no window, on the last rank alone. */
static void refuse(struct mp *mp, char *good, void *bad, int status, const char *text)
{
    bool who = mp->rank == mp->size - 1;
    gin_window_t win = gin_window_none();
    long before = live(mp);
    EXPECT_FAILS(gin_window_register(mp->comm, who ? bad : good, 16 * K, 0, &win), status, text);
    EXPECT(gin_window_equal(win, gin_window_none()));
    EXPECT_EQ_INT(live(mp), before);
}

MP_TEST_N(what_can_be_no_window, "1 2 3")
{
    unsigned long long (*other)(int, size_t) =
        (unsigned long long (*)(int, size_t))fake("fake_cuda_other");
    static char host[16 * K];
    CUcontext c;
    use_gpu(mp);
    char *p = gpu_alloc(64 * K);
    EXPECT(gin_malloc_kind(mp->comm, GIN_KIND_CUDA, 8) != NULL);
    char *managed = (char *)(uintptr_t)other(1, 64 * K),
         *pool = (char *)(uintptr_t)other(0, 64 * K);
    refuse(mp, p, managed, GIN_ENOTSUP, "managed");
    refuse(mp, p, pool, GIN_ENOTSUP, "of a memory pool");
    EXPECT_EQ_INT(DRV(cuDevicePrimaryCtxRetain)(&c, 1 - mp->rank % 2), 0);
    EXPECT_EQ_INT(DRV(cuCtxPushCurrent)(c), 0);
    char *far = gpu_alloc(64 * K);
    EXPECT_EQ_INT(DRV(cuCtxPopCurrent)(&c), 0);
    refuse(mp, p, far, GIN_ENOTSUP, "this rank uses GPU");
    refuse(mp, p, NULL, GIN_EINVAL, "NULL");
    if (mp->size > 1)
        refuse(mp, p, host, GIN_EMISMATCH, "passed GPU memory");
    EXPECT_EQ_INT(DRV(cuDevicePrimaryCtxRelease)(1 - mp->rank % 2), 0);
    gpu_free(far);
    gpu_free(managed);
    gpu_free(pool);
    gpu_free(p);
    leave_gpu(mp);
}

MP_TEST_OPT(ranks_without_gpu_pass_null, .ranks = "2 3", .only = MP_PROCS)
{
    bool none = mp->rank == 1;
    gin_window_t win;
    char *p = NULL;
    if (none)
        setenv("FAKE_CUDA_DEVICES", "0", 1);
    else
        use_gpu(mp);
    if (!none)
        p = gpu_alloc(64 * K);
    if (!EXPECT_OK(gin_window_register(mp->comm, p, 64 * K, 0, &win)))
        return;
    for (int r = 0; r < mp->size; r++) {
        gin_path_t path = gin_window_path(mp->comm, win, r);
        if (r != mp->rank)
            EXPECT_EQ_INT(path, none || r == 1 ? GIN_PATH_NONE : GIN_PATH_LSA);
        if (path == GIN_PATH_NONE)
            EXPECT_HAS(gin_last_error(), none ? "this rank has no GPU" : "that rank has no GPU");
    }
    EXPECT_OK(gin_window_deregister(mp->comm, win));
}

MP_TEST(pinned_memory)
{
    gin_window_t win;
    void *p = NULL, *q = NULL;
    use_gpu(mp);
    EXPECT_EQ_INT(DRV(cuMemHostAlloc)(&p, 64 * K, 0), 0);
    EXPECT_EQ_INT(posix_memalign(&q, 4096, 64 * K), 0);
    memset(q, 0, 64 * K);
    EXPECT_EQ_INT(DRV(cuMemHostRegister)(q, 64 * K, 0), 0);
    if (!cuda_dev(mp, NULL))
        return;
    for (int i = 0; i < 2; i++) {
        char *mine = (i == 0 ? (char *)p : (char *)q) + 64;
        EXPECT_OK(gin_window_register(mp->comm, mine, 32 * K, 0, &win));
        const struct gin_i_window *e = cuda_window(mp, win);
        EXPECT_EQ_PTR((char *)(uintptr_t)e->local, mine);
        if (mp->size == 1 || mp->threads) {
            check_direct(mp, win, mine, 32 * K, GIN_KIND_HOST);
            EXPECT_EQ_INT(e->apply, GIN_I_APPLY_STORES);
        } else { /* by process_vm calls, hence by the engine */
            EXPECT_EQ_INT(e->mode, GIN_I_WINDOW_SLOW);
            EXPECT_EQ_INT(gin_window_path(mp->comm, win, (mp->rank + 1) % mp->size), GIN_PATH_CMA);
        }
        EXPECT_OK(gin_window_deregister(mp->comm, win));
    }
    /* more than what is pinned: for the CPU alone */
    EXPECT_OK(gin_window_register(mp->comm, mp->size == 1 ? (char *)&win : (char *)&q, 8, 0, &win));
    EXPECT_EQ_U64(cuda_window(mp, win)->local, 0);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_EQ_INT(DRV(cuMemHostUnregister)(q), 0);
    EXPECT_EQ_INT(DRV(cuMemFreeHost)(p), 0);
    free(q);
    leave_gpu(mp);
}

/* One rank fails in an entry; then all try again. */
static void fail_entry(struct mp *mp, char *mine, size_t bytes, const char *entry)
{
    int who = mp->size - 1;
    gin_window_t win = gin_window_none();
    mp_step(mp, "%s", entry);
    long before = live(mp);
    if (mp->rank == who)
        fake_fail(entry, 1, 2); /* out of memory */
    EXPECT_FAILS(gin_window_register(mp->comm, mine, bytes, 0, &win),
                 strcmp(entry, "cuMemRetainAllocationHandle") != 0 ? GIN_ENOMEM : GIN_ENOTSUP,
                 entry);
    if (mp->rank != who)
        EXPECT_HAS(gin_last_error(), "rank");
    fake_fail("", 0, 0);
    EXPECT_EQ_INT(live(mp), before);
    use_window(mp, mine, bytes);
}

MP_TEST_OPT(failures_are_everybodys, .ranks = "1 2 3", .only = MP_PROCS)
{
    static const char *const near[] = {"cuMemGetAddressRange", "cuMemRetainAllocationHandle",
                                       "cuMemGetAllocationPropertiesFromHandle"};
    static const char *const shown[] = {"cuMemExportToShareableHandle",
                                        "cuMemImportFromShareableHandle", "cuMemAddressReserve",
                                        "cuMemMap", "cuMemSetAccess"};
    use_gpu(mp);
    if (!cuda_dev(mp, NULL))
        return;
    char *p = gpu_alloc(1 * M), *q = map_pieces(mp, 2, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    use_window(mp, p, K);
    fail_entry(mp, p, 1 * M, "cuMemGetAddressRange");
    for (int i = 0; i < 3; i++)
        fail_entry(mp, q + K, PIECE, near[i]);
    for (int i = 0; i < 5 && mp->size > 1; i++)
        fail_entry(mp, q + K, PIECE, shown[i]);
    if (mp->size > 1) {
        fail_entry(mp, p, 1 * M, "cuIpcGetMemHandle");
        fail_entry(mp, p, 1 * M, "cuIpcOpenMemHandle");
    }
    unmap_pieces(q, 2);
    gpu_free(p);
    leave_gpu(mp);
}

/* A GPU that may not use a peer's memory: no kernel uses the window directly, and it is said why.
 */
MP_TEST_OPT(refused_peers_make_it_slow, .ranks = "2 3", .only = MP_PROCS)
{
    gin_window_t win;
    use_gpu(mp);
    if (!cuda_dev(mp, NULL))
        return;
    for (int i = 0; i < 2; i++) {
        char *p = i == 0 ? gpu_alloc(64 * K)
                         : map_pieces(mp, 1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (mp->rank == 0)
            fake_fail(i == 0 ? "cuIpcOpenMemHandle" : "cuMemSetAccess", 1, 217);
        EXPECT_OK(gin_window_register(mp->comm, p, 64 * K, 0, &win));
        const struct gin_i_window *e = cuda_window(mp, win);
        EXPECT_EQ_INT(e->mode, GIN_I_WINDOW_SLOW);
        EXPECT_EQ_INT(e->apply, 0);
        EXPECT_EQ_PTR((char *)(uintptr_t)e->local, p);
        int refused = 0;
        for (int r = 0; r < mp->size; r++)
            if (gin_window_path(mp->comm, win, r) == GIN_PATH_NONE) {
                refused++;
                EXPECT_HAS(gin_last_error(), i == 0 ? "cuIpcOpenMemHandle" : "may not use");
            }
        EXPECT_EQ_INT(refused, mp->rank == 0);
        EXPECT_OK(gin_window_deregister(mp->comm, win));
        if (i == 0)
            gpu_free(p);
        else
            unmap_pieces(p, 1);
    }
    leave_gpu(mp);
}

/* Host threads copy to and from it, too. */
MP_TEST_N(host_threads_copy, "1 2 3")
{
    gin_window_t win;
    use_gpu(mp);
    char *p = gpu_alloc(64 * K), *h = gin_malloc(mp->comm, 8 * K);
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    if (!EXPECT_OK(gin_window_register(mp->comm, p, 64 * K, 0, &win)) || !mp_dev(mp, NULL))
        return;
    memset(p, 0, 64 * K);
    mp_poison(h, 4 * K, 10 + (uint64_t)mp->rank);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_put(&mp->g, gin_thread(), gin_world(&mp->g), right, gin_at(win, 128),
                      gin_at_ptr(&mp->g, h), 4 * K, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, 1));
    MP_CHECK_PATTERN(p + 128, 4 * K, 10 + (uint64_t)left);
    EXPECT_OK(gin_get(&mp->g, gin_thread(), gin_world(&mp->g), right, gin_at(win, 128),
                      gin_at_ptr(&mp->g, h + 4 * K), 4 * K));
    EXPECT_OK(gin_flush(&mp->g, gin_thread()));
    MP_CHECK_PATTERN(h + 4 * K, 4 * K, 10 + (uint64_t)mp->rank);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_free(mp->comm, h));
    gpu_free(p);
    leave_gpu(mp);
}

MP_TEST_N(flags, "1 2 3")
{
    gin_window_t win;
    use_gpu(mp);
    if (!cuda_dev(mp, NULL))
        return;
    char *p = gpu_alloc(64 * K);
    EXPECT_OK(gin_window_register(mp->comm, p, K, GIN_WIN_NO_LSA, &win));
    EXPECT_EQ_INT(cuda_window(mp, win)->mode, GIN_I_WINDOW_SLOW);
    for (int r = 0; r < mp->size; r++)
        EXPECT_EQ_INT(gin_window_path(mp->comm, win, r),
                      r == mp->rank ? GIN_PATH_SELF : GIN_PATH_NONE);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_window_register(mp->comm, p, K, GIN_WIN_READ_ONLY, &win));
    check_direct(mp, win, p, K, GIN_KIND_CUDA);
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    gpu_free(p);
    leave_gpu(mp);
}

/* Rows of peers' addresses come back, but not at once. */
MP_TEST_N(many_in_turn, "2")
{
    gin_window_t win;
    use_gpu(mp);
    if (!cuda_dev(mp, NULL))
        return;
    char *p = gpu_alloc(64 * K);
    const uint64_t *first = NULL;
    int again = 0;
    for (int i = 0; i < 2000 && again == 0; i++) {
        if (!EXPECT_OK(gin_window_register(mp->comm, p, K, 0, &win)))
            return;
        const struct gin_i_window *e = cuda_window(mp, win);
        EXPECT_EQ_PTR((char *)(uintptr_t)e->peers[mp->rank], p);
        first = i == 0 ? e->peers : first;
        again = i > 0 && e->peers == first ? i : 0;
        EXPECT_OK(gin_window_deregister(mp->comm, win));
    }
    EXPECT(again > 1000);
    gpu_free(p);
    leave_gpu(mp);
}
