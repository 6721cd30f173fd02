/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows over memory that the library did not make: of cudaMalloc(), parts of a larger allocation
 * (another one on each rank, as caching allocators give), VMM memory in several pieces, pinned host
 * memory. Kernels put, get, signal and count there, byte for byte.
 */
#include "tests/gpu/gpu.h"
#ifndef GPU_EMULATED
#include <cuda.h>
#endif

#define WORDS 20000u
#define BYTES (WORDS * 8ull + 64) /* the last 64 bytes: a flag and a tally */

/* lsa: ranks that are reached by loads and stores; others are left alone. */
__global__ void use(gin_devcomm_t dev, gin_window_t win, unsigned long long *mine,
                    unsigned long long *priv, const unsigned char *lsa, int n, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    gin_team_t w = gin_world(&g);
    gin_group_t b = gin_block();
    const unsigned half = WORDS / 2;
    unsigned came = 0;
    for (int i = 1; i <= n; i++) {
        int to = (g.rank + i) % g.size, from = (g.rank + g.size * n - i) % g.size;
        D_STEP(r, i);
        for (unsigned k = threadIdx.x; k < half; k += blockDim.x) {
            priv[k] = gpu_word((unsigned)g.rank + 64ull * (unsigned)i, k);
            mine[half + k] = gpu_word((unsigned)g.rank + 64ull * (unsigned)i, k + half);
        }
        D_OK(r, gin_barrier(&g, b, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
        if (lsa[to])
            D_OK(r, gin_put(&g, b, w, to, gin_at(win, 0), gin_at_local(priv), half * 8ull,
                            gin_weak_inc(0)));
        if (lsa[from]) {
            D_OK(r, gin_wait_signal(&g, b, 0, ++came));
            for (unsigned k = threadIdx.x; k < half; k += blockDim.x)
                if (mine[k] != gpu_word((unsigned)from + 64ull * (unsigned)i, k)) {
                    D_EQ(r, mine[k], gpu_word((unsigned)from + 64ull * (unsigned)i, k));
                    break;
                }
        }
        if (lsa[to]) {
            D_OK(r,
                 gin_get(&g, b, w, to, gin_at(win, half * 8ull), gin_at_local(priv), half * 8ull));
            D_OK(r, gin_flush(&g, b));
            for (unsigned k = threadIdx.x; k < half; k += blockDim.x)
                if (priv[k] != gpu_word((unsigned)to + 64ull * (unsigned)i, k + half)) {
                    D_EQ(r, priv[k], gpu_word((unsigned)to + 64ull * (unsigned)i, k + half));
                    break;
                }
            D_OK(r, gin_signal(&g, b, w, to, gin_strong_inc_at(gin_at(win, WORDS * 8ull))));
            D_OK(r, gin_amo_add(&g, b, w, to, gin_at(win, WORDS * 8ull + 8), 3));
            D_EQ(r,
                 gin_put(&g, b, w, to, gin_at(win, BYTES - 7), gin_at_local(priv), 8,
                         gin_no_action()),
                 GIN_ERANGE);
        }
        D_OK(r, gin_barrier(&g, b, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
        if (lsa[from])
            D_EQ(r, gpu_look(&mine[WORDS]) >= 1 && gpu_look(&mine[WORDS + 1]) >= 3, 1);
    }
}

/* Which peers must work: those reached by load and store, and myself. */
static void check_window(struct gpu *gp, void *mem, const char *what, bool must)
{
    gin_window_t win;
    unsigned long long *priv;
    unsigned char *lsa;
    if (!EXPECT_OK(gin_window_register(gp->comm, mem, BYTES, 0, &win)) || !gpu_dev(gp, NULL))
        return;
    CU(cudaMalloc(&priv, BYTES));
    CU(cudaHostAlloc(&lsa, 1024, cudaHostAllocPortable));
    for (int r = 0; r < gp->size; r++) {
        gin_path_t path = gin_window_path(gp->comm, win, r);
        lsa[r] = path == GIN_PATH_LSA || path == GIN_PATH_SELF;
        if (must && !lsa[r])
            FAIL("%s: rank %d is not reached by load and store: %s", what, r, gin_last_error());
    }
    int all = 1;
    for (int r = 0; r < gp->size; r++)
        all = all && lsa[r];
    if (gp->rank == 0 && !all)
        printf("%s: not all ranks by load and store\n", what);
    CU(cudaMemset(mem, 0, BYTES));
    CU(cudaDeviceSynchronize());
    EXPECT_OK(gin_comm_barrier(gp->comm));
    use<<<1, 256, 0, gp->stream>>>(gp->dev, win, (unsigned long long *)mem, priv, lsa,
                                   gpu_cases(gp, 40, gp->size), gp->report);
    if (!GPU_DONE(gp))
        FAIL("%s", what);
    gpu_dev_end(gp);
    EXPECT_OK(gin_window_deregister(gp->comm, win));
    CU(cudaFree(priv));
    CU(cudaFreeHost(lsa));
}

#ifdef GPU_EMULATED
#define MUST false /* ordinary memory of other processes is not mapped */
#else
#define MUST true
#endif

GPU_TEST(memory_of_cudaMalloc, 1)
{
    for (int again = 0; again < 2; again++) {
        void *p;
        CU(cudaMalloc(&p, BYTES));
        check_window(gp, p, "cudaMalloc", MUST);
        check_window(gp, p, "cudaMalloc, registered again", MUST);
        CU(cudaFree(p));
    }
}

GPU_TEST(parts_of_a_larger_allocation, 1)
{
    char *p;
    size_t shift = 512 * (1 + (size_t)gp->rank); /* another place on each rank */
    CU(cudaMalloc(&p, 64 << 20));
    check_window(gp, p + shift, "a part", MUST);
    check_window(gp, p + (5 << 20) + shift, "a part behind 5 MiB", MUST);
    /* two that live at once */
    gin_window_t first;
    if (EXPECT_OK(gin_window_register(gp->comm, p + (20 << 20), 1 << 20, 0, &first))) {
        check_window(gp, p + (30 << 20) + shift, "a part beside another window", MUST);
        check_window(gp, p + (20 << 20) + 4096, "a part of another window", MUST);
        EXPECT_OK(gin_window_deregister(gp->comm, first));
    }
    CU(cudaFree(p));
}

GPU_TEST(pinned_host_memory, 1)
{
    void *p;
    CU(cudaHostAlloc(&p, BYTES, cudaHostAllocPortable));
    check_window(gp, p, "pinned host memory", false);
    CU(cudaFreeHost(p));
}

/* A block of a caching allocator: many windows in it at once, kernels use all. */
GPU_TEST(many_windows_in_one_block, 1)
{
    enum { WINDOWS = 8 };
    gin_window_t win[WINDOWS];
    char *p;
    CU(cudaMalloc(&p, 32 << 20));
    for (int i = 0; i < WINDOWS; i++)
        EXPECT_OK(gin_window_register(gp->comm,
                                      p + ((size_t)i << 20) + 512 * (size_t)((gp->rank + i) % 3),
                                      1 << 19, 0, &win[i]));
    check_window(gp, p + (10 << 20) + 2048, "the ninth", MUST);
    for (int i = 0; i < WINDOWS; i += 2)
        EXPECT_OK(gin_window_deregister(gp->comm, win[i]));
    check_window(gp, p + (12 << 20), "after some have gone", MUST);
    for (int i = 1; i < WINDOWS; i += 2)
        EXPECT_OK(gin_window_deregister(gp->comm, win[i]));
    check_window(gp, p + (14 << 20), "after all have gone", MUST);
    CU(cudaFree(p));
}

GPU_TEST(part_of_the_heap, 1)
{
    char *p = (char *)gpu_symmetric(gp, GIN_KIND_CUDA, 2 * BYTES, NULL);
    if (p == NULL)
        return;
    check_window(gp, p + 128, "a part of the heap", true);
    EXPECT_OK(gin_free(gp->comm, p));
}

#ifndef GPU_EMULATED
/* ---- VMM memory: one range of addresses, several pieces ---- */

template <class F> static F *entry(const char *name)
{
    void *f = NULL;
    cudaDriverEntryPointQueryResult how;
    CU(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &how));
    return (F *)f;
}

static void driver(CUresult e, const char *what)
{
    if (e == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: driver error %d\n", what, (int)e);
    _Exit(1);
}
#define DRV(name, ...) driver(entry<decltype(name)>(#name)(__VA_ARGS__), #name)

GPU_TEST(memory_that_can_be_no_window, 1)
{
    void *p, *q;
    gin_window_t win;
    CU(cudaMalloc(&p, 1 << 20));
    CU(cudaMallocManaged(&q, 1 << 20));
    void *bad = gp->rank == gp->size - 1 ? q : p;
    EXPECT_FAILS(gin_window_register(gp->comm, bad, 4096, 0, &win), GIN_ENOTSUP, "managed");
    CU(cudaFree(q));
    CU(cudaMallocAsync(&q, 1 << 20, gp->stream));
    CU(cudaStreamSynchronize(gp->stream));
    bad = gp->rank == 0 ? q : p;
    EXPECT_FAILS(gin_window_register(gp->comm, bad, 4096, 0, &win), GIN_ENOTSUP, "pool");
    CU(cudaFreeAsync(q, gp->stream));
    EXPECT_FAILS(gin_window_register(gp->comm, (char *)p + 4096, 1 << 20, 0, &win), GIN_EINVAL,
                 "not wholly in the allocation");
    check_window(gp, p, "after what was refused", true);
    CU(cudaFree(p));
}

GPU_TEST(vmm_memory_in_pieces, 1)
{
    const size_t piece = 2 << 20, pieces = 3;
    CUmemAllocationProp prop = {};
    CUmemGenericAllocationHandle handle[3];
    CUmemAccessDesc access = {};
    CUdeviceptr at = 0;
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = gp->device;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    DRV(cuMemAddressReserve, &at, pieces * piece, 0, 0, 0);
    for (size_t i = 0; i < pieces; i++) {
        DRV(cuMemCreate, &handle[i], piece, &prop, 0);
        DRV(cuMemMap, at + i * piece, piece, 0, handle[i], 0);
    }
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRV(cuMemSetAccess, at, pieces * piece, &access, 1);
    /* across the border of two pieces */
    check_window(gp, (char *)at + piece - 80000, "VMM memory", true);
    check_window(gp, (char *)at + 2 * piece - 40000 - 512 * (size_t)gp->rank,
                 "VMM memory, another part", true);
    CU(cudaDeviceSynchronize());
    EXPECT_OK(gin_comm_barrier(gp->comm));
    DRV(cuMemUnmap, at, pieces * piece);
    for (size_t i = 0; i < pieces; i++)
        DRV(cuMemRelease, handle[i]);
    DRV(cuMemAddressFree, at, pieces * piece);
}
#endif
