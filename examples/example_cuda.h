/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples with kernels share beside example.h: a GPU, and ending on a failing call. */
#ifndef EXAMPLE_CUDA_H
#define EXAMPLE_CUDA_H

#include <cuda_runtime.h>
#include "example.h"

#define CUDA(call) cuda_check((call), #call)
static inline void cuda_check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

/*
 * Choose my GPU: the ranks of a host take its GPUs in turn. That must be done before the first call
 * that needs GPU memory, and can be: the node team is known as soon as gin_init() is back. Without
 * a GPU the program ends here.
 */
static inline void take_gpu(gin_comm_t *comm)
{
    int n = 0;
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        if (gin_rank(comm) == 0)
            printf("SKIP: no GPU: %s\n", e != cudaSuccess ? cudaGetErrorString(e) : "none found");
        fflush(stdout);
        CHECK(gin_finalize(comm));
        exit(77);
    }
    CUDA(cudaSetDevice(gin_team_node(comm).rank % n));
}

/* An integer that host and kernel see; kernels clear it when something is wrong. */
static inline int *new_ok(void)
{
    int *ok;
    CUDA(cudaHostAlloc((void **)&ok, sizeof(*ok), cudaHostAllocPortable));
    *ok = 1;
    return ok;
}

/* In kernels: a call must succeed, a condition must hold. */
#define MUST(ok, condition)          \
    do {                             \
        if (!(condition))            \
            *(volatile int *)ok = 0; \
    } while (0)
#define CALL(ok, call) MUST(ok, (call) == GIN_OK)

/* The place of a block of symmetric memory: what kernels name it by. */
static inline gin_at_t place_of(gin_comm_t *comm, const void *p)
{
    gin_at_t at;
    CHECK(gin_window_of(comm, p, &at.win, &at.off));
    return at;
}

/* A device communicator for kernels. */
static inline gin_devcomm_t kernel_devcomm(gin_comm_t *comm, uint32_t contexts, uint32_t barriers)
{
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = contexts;
    reqs.world_barriers = reqs.lsa_barriers = barriers;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));
    return dev;
}

#endif
