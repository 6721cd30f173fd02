/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of tests whose operations run in kernels. A program is a file of
 *
 *     GPU_TEST(name, least) { ... gp->rank, gp->size, gp->stream ... }
 *
 * that runs in every rank of a job ("ginrun -n 4 t_put_get [NAME...]") when the job has `least`
 * ranks; all bodies of a program use one communicator and one CUDA context. Ranks take the GPUs of
 * their machine in turn, so several may share one. Exit status: 0 passed, 77 skipped, else failed.
 *
 * Kernels report through a struct gpu_report: D_EQ() and its kin take down what differs, D_STEP()
 * what a block does next. GPU_DONE() waits for the kernels and prints what they took down. When a
 * test's deadline passes, every rank prints the steps and leaves.
 *
 * The same files compile for host threads (tests/gpu/emu): a block is then one thread. So kernels
 * must be right for any number of threads in a block.
 */
#ifndef GINSHMEM_TESTS_GPU_H
#define GINSHMEM_TESTS_GPU_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime.h>
#include <ginshmem.h>

extern "C" {
#include "tests/mp.h"
}

/* ---- what kernels take down ---- */

#define GPU_RECORDS 12u
#define GPU_STEPS   8u

struct gpu_report {
    unsigned failures;
    unsigned taken;
    struct {
        unsigned line, block, thread;
        long long got, want;
    } record[GPU_RECORDS];
    unsigned long long step[GPU_STEPS]; /* of blocks: line << 40 | number */
};

__device__ static inline bool gpu_fail(struct gpu_report *r, unsigned line, long long got,
                                       long long want)
{
    unsigned i = atomicAdd(&r->failures, 1u);
    if (i < GPU_RECORDS) {
        r->record[i].line = line;
        r->record[i].block = blockIdx.x;
        r->record[i].thread = threadIdx.x;
        r->record[i].got = got;
        r->record[i].want = want;
        __threadfence_system();
        atomicAdd(&r->taken, 1u);
    }
    return false;
}

__device__ static inline bool gpu_eq(struct gpu_report *r, unsigned line, long long got,
                                     long long want)
{
    return got == want || gpu_fail(r, line, got, want);
}

__device__ static inline void gpu_step(struct gpu_report *r, unsigned line, unsigned long long n)
{
    if (threadIdx.x == 0 && blockIdx.x < GPU_STEPS)
        *(volatile unsigned long long *)&r->step[blockIdx.x] = (unsigned long long)line << 40 | n;
}

#define D_EQ(r, got, want) gpu_eq((r), __LINE__, (long long)(got), (long long)(want))
#define D_OK(r, call)      gpu_eq((r), __LINE__, (call), GIN_OK)
#define D_EXPECT(r, cond)  gpu_eq((r), __LINE__, (cond) ? 1 : 0, 1)
#define D_STEP(r, n)       gpu_step((r), __LINE__, (unsigned long long)(n))

/* ---- patterns ---- */

/* Bytes that depend on seed and place. */
__device__ static inline unsigned long long gpu_word(unsigned long long seed, unsigned long long i)
{
    unsigned long long x = (i + 1) * 0x9e3779b97f4a7c15ull ^ (seed + 1) * 0xbf58476d1ce4e5b9ull;
    return (x ^ x >> 29) * 0x94d049bb133111ebull;
}
__device__ static inline unsigned char gpu_byte(unsigned long long seed, unsigned long long i)
{
    return (unsigned char)(gpu_word(seed, i / 8) >> (8 * (i % 8)));
}
/* A random number below n, the same wherever it is asked for. */
__device__ static inline unsigned gpu_draw(unsigned long long seed, unsigned long long i,
                                           unsigned n)
{
    return (unsigned)((gpu_word(seed, i) >> 20) % n);
}

/* A value that may change under the compiler's eyes. */
template <class T> __device__ static inline T gpu_look(const T *p)
{
    return *(const volatile T *)p;
}

/* ---- groups ---- */

enum gpu_kind { K_THREAD, K_WARP, K_BLOCK, K_TILE, K_LANES, K_SPAN, K_KINDS };

/* What a thread is in its block when that is cut into groups of a kind. */
struct gpu_place {
    gin_group_t grp;
    unsigned group, groups; /* my group in the block, and how many there are */
    bool lead;              /* I speak for my group */
};

__device__ static inline unsigned gpu_warps(void)
{
    return (blockDim.x + 31) / 32;
}

/* K_LANES: even and odd lanes; K_SPAN: both halves of the block's warps. */
__device__ static inline struct gpu_place gpu_place_of(enum gpu_kind kind)
{
    unsigned t = threadIdx.x, warps = gpu_warps(), half = warps / 2 ? warps / 2 : 1;
    struct gpu_place p = {gin_thread(), t, blockDim.x, true};
    switch (kind) {
    case K_WARP: p = {gin_warp(), t / 32, warps, t % 32 == 0}; break;
    case K_BLOCK: p = {gin_block(), 0, 1, t == 0}; break;
    case K_TILE: p = {gin_tile(8), t / 8, (blockDim.x + 7) / 8, t % 8 == 0}; break;
    case K_LANES:
        p = {gin_lanes(t % 2 ? 0xaaaaaaaau : 0x55555555u), t / 32 * 2 + t % 2,
             blockDim.x > 1 ? warps * 2 : 1, t % 32 < 2};
        break;
    case K_SPAN:
        p = t / 32 < half ? gpu_place{gin_warp_span(0, half, 1), 0, warps > 1 ? 2u : 1u, t == 0}
                          : gpu_place{gin_warp_span(half, warps - half, 2), 1, 2,
                                      t / 32 == half && t % 32 == 0};
        break;
    default: break;
    }
    return p;
}

/* ---- the host's side ---- */

/* What a body gets: a rank with its GPU. */
struct gpu {
    gin_comm_t *comm;
    int rank, size;
    int devices; /* GPUs of this machine */
    int device;  /* mine, -1: none */
    int sharers; /* most ranks on one GPU, which take turns if they are processes */
    cudaStream_t stream;
    struct gpu_report *report;
    gin_devcomm_t dev;       /* made by gpu_dev() */
    unsigned long long seed; /* the same on all ranks */
};

/* GPUs of this machine; *why says why there is none. Makes no context. */
int gpu_count(char *why, size_t n);
/*
 * Take a GPU for this rank and make what gpu.h needs there; device -1: the ranks of a machine in
 * turn, which is collective. false: there is none, why says the reason. Before the communicator
 * has touched CUDA.
 */
bool gpu_open(struct gpu *gp, gin_comm_t *comm, int device, char *why, size_t n);
void gpu_close(struct gpu *gp);

/* A device communicator for kernels; reqs NULL: the defaults. Undone after the body. */
bool gpu_dev(struct gpu *gp, gin_devcomm_reqs_t *reqs);
void gpu_reqs(gin_devcomm_reqs_t *reqs); /* defaults, on the GPU */
bool gpu_dev_end(struct gpu *gp);
/* Zeroed symmetric memory of a kind, and its place. Freed by gin_free(). */
void *gpu_symmetric(struct gpu *gp, gin_kind_t kind, size_t bytes, gin_at_t *at);
/*
 * GPU_NET=host|gpu: device communicators leave load and store out of their paths, so all that
 * kernels do takes the network; and with `host` what they work on lies in host memory.
 */
bool gpu_net(void);
bool gpu_net_host(void);
/* Whether that leaves a test nothing to do, which is said: it works by plain loads and stores. */
bool gpu_net_skips(const struct gpu *gp, const char *test);
/* Memory of this rank's own, GPU memory unless gpu_net_host(). */
void *gpu_private(size_t bytes);
void gpu_private_free(void *p);
/* Such memory, or symmetric memory, filled with a byte: done when it returns. */
void gpu_fill(void *p, int byte, size_t bytes);
/* Wait for the kernels of gp->stream; what they took down counts as failures. */
#define GPU_DONE(gp) gpu_done((gp), __FILE__)
bool gpu_done(struct gpu *gp, const char *file);
/* How much slower this run is than others: GPU_SLOWER, for tools that look on. */
int gpu_slower(void);
/* How often to do something that takes `n` rounds when every rank has a GPU of its own. */
int gpu_rounds(const struct gpu *gp, int n);
/* The same for cases that do much per round; not fewer than `least`. */
int gpu_cases(const struct gpu *gp, int n, int least);
/* Print what kernels do; for deadlines. Calls no CUDA. */
void gpu_show(const struct gpu *gp);

/* A CUDA call that only fails when all is lost. */
#define CU(call) gpu_cuda(__FILE__, __LINE__, (call), #call)
static inline void gpu_cuda(const char *file, int line, cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(e));
    fflush(NULL);
    _Exit(1);
}

struct gpu_test {
    const char *name;
    void (*body)(struct gpu *gp);
    int least; /* ranks */
    struct gpu_test *next;
};
void gpu_register(struct gpu_test *test);
/* A program may define this: ranks for which it is true get no GPU. */
extern "C" __attribute__((weak)) bool gpu_none(int rank, int size);

/* T *p of so many bytes */
#define GPU_PRIVATE(p, bytes) (*(p) = (decltype(*(p) + 0))gpu_private(bytes))

#define GPU_TEST(test, least)                                             \
    static void gpu_body_##test(struct gpu *gp);                          \
    __attribute__((constructor)) static void gpu_register_##test(void)    \
    {                                                                     \
        static struct gpu_test t = {#test, gpu_body_##test, least, NULL}; \
        gpu_register(&t);                                                 \
    }                                                                     \
    static void gpu_body_##test(struct gpu *gp)

#endif
