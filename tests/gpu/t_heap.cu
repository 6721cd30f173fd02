/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU heap: blocks keep their contents while it grows, kernels of an older device communicator
 * reach what came later, what is freed is used again, mistakes are the same on all ranks.
 */
#include "tests/gpu/gpu.h"

__global__ void fill(unsigned long long *p, size_t words, unsigned long long seed)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < words; k += step)
        p[k] = gpu_word(seed, k);
}

/* My memory is what `rank` fills with this seed. */
__global__ void check(const unsigned long long *p, size_t words, unsigned long long seed,
                      struct gpu_report *r)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < words; k += step)
        if (p[k] != gpu_word(seed, k)) {
            D_EQ(r, p[k], gpu_word(seed, k));
            D_EQ(r, k, words);
            return;
        }
}

/* The right neighbour's memory holds what it filled in: its last words, by a get. */
__global__ void ends(gin_devcomm_t dev, gin_at_t at, size_t words, unsigned long long seed,
                     unsigned long long *tmp, struct gpu_report *r)
{
    gin_t g;
    D_OK(r, gin_open(&dev, 0, &g));
    int right = (g.rank + 1) % g.size;
    unsigned n = words < 64 ? (unsigned)words : 64;
    D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
    D_OK(r, gin_get(&g, gin_block(), gin_world(&g), right, gin_at(at.win, at.off + (words - n) * 8),
                    gin_at_local(tmp), n * 8ull));
    D_OK(r, gin_flush(&g, gin_block()));
    for (unsigned k = threadIdx.x; k < n; k += blockDim.x)
        D_EQ(r, tmp[k], gpu_word(seed + (unsigned)right, words - n + k));
    D_OK(r, gin_barrier(&g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
}

GPU_TEST(growth_under_a_device_communicator, 1)
{
    enum { BLOCKS = 9 };
    unsigned long long *p[BLOCKS], *tmp;
    size_t words[BLOCKS];
    gin_at_t at[BLOCKS];
    int n = 0;
    CU(cudaMalloc(&tmp, 4096));
    if (!gpu_dev(gp, NULL)) /* before all blocks */
        return;
    for (n = 0; n < BLOCKS; n++) {
        words[n] = ((size_t)1000 << (2 * n)) / 8; /* 1000 B .. 64 MB */
        p[n] = (unsigned long long *)gpu_symmetric(gp, GIN_KIND_CUDA, words[n] * 8, &at[n]);
        if (p[n] == NULL)
            break;
        fill<<<64, 256, 0, gp->stream>>>(p[n], words[n], 100u * (unsigned)n + (unsigned)gp->rank);
        for (int i = 0; i <= n; i++) {
            check<<<64, 256, 0, gp->stream>>>(p[i], words[i],
                                              100u * (unsigned)i + (unsigned)gp->rank, gp->report);
            ends<<<1, 64, 0, gp->stream>>>(gp->dev, at[i], words[i], 100u * (unsigned)i, tmp,
                                           gp->report);
        }
        if (!GPU_DONE(gp))
            FAIL("block %d of %zu words", n, words[n]);
    }
    EXPECT_OK(gin_heap_check(gp->comm));
    for (int i = 0; i < n; i += 2)
        EXPECT_OK(gin_free(gp->comm, p[i]));
    for (int i = 1; i < n; i += 2) {
        check<<<64, 256, 0, gp->stream>>>(p[i], words[i], 100u * (unsigned)i + (unsigned)gp->rank,
                                          gp->report);
        GPU_DONE(gp);
        EXPECT_OK(gin_free(gp->comm, p[i]));
    }
    CU(cudaFree(tmp));
}

GPU_TEST(zeroed_aligned_and_used_again, 1)
{
    gin_heap_usage_t before = {}, after = {};
    unsigned char *host = (unsigned char *)malloc(100000);
    before.size_of = after.size_of = sizeof(before);
    void *first = gin_malloc_kind(gp->comm, GIN_KIND_CUDA, 64);
    EXPECT_OK(gin_heap_usage(gp->comm, GIN_KIND_CUDA, &before));
    for (int i = 0; i < 50; i++) {
        size_t align = (size_t)64 << i % 10, bytes = 1 + (size_t)i * 1999;
        char *p = (char *)gin_aligned_alloc_kind(gp->comm, GIN_KIND_CUDA, align, bytes);
        if (!EXPECT(p != NULL && (uintptr_t)p % align == 0))
            break;
        CU(cudaMemset(p, 0xff, bytes));
        CU(cudaDeviceSynchronize());
        EXPECT_OK(gin_free(gp->comm, p));
        p = (char *)gin_calloc_kind(gp->comm, GIN_KIND_CUDA, 1, bytes);
        CU(cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost));
        EXPECT_FILLED(host, bytes, 0);
        EXPECT_OK(gin_free(gp->comm, p));
    }
    EXPECT_OK(gin_heap_usage(gp->comm, GIN_KIND_CUDA, &after));
    EXPECT_EQ_U64(after.used, before.used);
    EXPECT_EQ_U64(after.blocks, before.blocks);
    EXPECT_OK(gin_free(gp->comm, first));
    free(host);
}

GPU_TEST(mistakes_are_everybodys, 2)
{
    void *p = gin_malloc_kind(gp->comm, GIN_KIND_CUDA, 4096);
    EXPECT(p != NULL);
    EXPECT(gin_malloc_kind(gp->comm, GIN_KIND_CUDA, gp->rank == 1 ? 64 : 128) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_EMISMATCH);
    EXPECT(gin_malloc_kind(gp->comm, gp->rank == 1 ? GIN_KIND_CUDA : GIN_KIND_HOST, 64) == NULL ||
           GIN_KIND_CUDA == GIN_KIND_HOST);
    EXPECT(gin_malloc_kind(gp->comm, GIN_KIND_CUDA, (size_t)1 << 50) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_FAILS(gin_free(gp->comm, (char *)p + 64), GIN_EINVAL, "gin_free");
    void *q = gin_malloc_kind(gp->comm, GIN_KIND_CUDA, 100);
    EXPECT(q != NULL);
    EXPECT_OK(gin_free(gp->comm, q));
    EXPECT_OK(gin_free(gp->comm, p));
}

/* What the host says of addresses of GPU memory. */
GPU_TEST(addresses, 1)
{
    gin_at_t at;
    char *p = (char *)gpu_symmetric(gp, GIN_KIND_CUDA, 4096, &at);
    gin_window_info_t info = {};
    info.size_of = sizeof(info);
    if (p == NULL)
        return;
    EXPECT(gin_window_equal(at.win, gin_heap_window(gp->comm, GIN_KIND_CUDA)));
    EXPECT_OK(gin_window_query(gp->comm, at.win, &info));
    EXPECT_EQ_INT(info.is_heap, 1);
    EXPECT_EQ_INT(info.kind, GIN_KIND_CUDA);
    EXPECT_EQ_PTR((char *)info.base + at.off, p);
    for (int r = 0; r < gp->size; r++) {
        gin_path_t path = gin_window_path(gp->comm, at.win, r);
        EXPECT_EQ_INT(path, r == gp->rank ? GIN_PATH_SELF : GIN_PATH_LSA);
        void *there = gin_ptr(gp->comm, p, r);
        EXPECT(there != NULL && (r != gp->rank || there == p));
        /* the address works for copies, too */
        unsigned v = 0x1234u + (unsigned)r, back = 0;
        CU(cudaMemcpy((char *)there + 4 * gp->rank, &v, 4, cudaMemcpyDefault));
        CU(cudaMemcpy(&back, (char *)there + 4 * gp->rank, 4, cudaMemcpyDefault));
        EXPECT_EQ_INT(back, v);
    }
    EXPECT_OK(gin_comm_barrier(gp->comm));
    EXPECT_OK(gin_free(gp->comm, p));
}
