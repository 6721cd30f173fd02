/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rank's kernel puts a block at its neighbour's, and waits. */
/* begin kernel */
#include <stdio.h>
#include <ginshmem.h>

enum { N = 1024, BYTES = N * sizeof(int) };

/* `out` and `in` are symmetric: the same places at every rank. */
__global__ void shift(gin_devcomm_t dev, gin_at_t out, gin_at_t in,
                      int *status)
{
    gin_t g;
    int st = gin_open(&dev, 0, &g); /* costs registers only */
    int right = (g.rank + 1) % g.size;
    int *mine = (int *)gin_local_ptr(&g, out);

    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        mine[i] = g.rank * N + i;
    /* the whole block puts, and so releases what each thread wrote */
    if (st == GIN_OK)
        st = gin_put(&g, gin_block(), gin_world(&g), right, in, out,
                     BYTES, gin_weak_inc(0));
    if (st == GIN_OK)
        st = gin_wait_signal(&g, gin_block(), 0, 1);
    if (threadIdx.x == 0)
        *status = st; /* the same in every thread */
}

static int run(gin_comm_t *comm, void *block, int *status)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_t dev;
    gin_at_t out, in;
    int st = gin_window_of(comm, block, &out.win, &out.off);
    if (st != GIN_OK)
        return st;
    in = gin_at(out.win, out.off + BYTES);
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    st = gin_devcomm_create(comm, &reqs, &dev);
    if (st != GIN_OK)
        return st;
    shift<<<1, 256>>>(dev, out, in, status);
    if (cudaDeviceSynchronize() != cudaSuccess)
        *status = GIN_ESYS;
    st = gin_devcomm_destroy(comm, &dev);
    return st == GIN_OK ? *status : st;
}

int main(void)
{
    gin_comm_t *comm;
    int devices, *status, st = gin_init(NULL, &comm);

    if (st != GIN_OK || cudaGetDeviceCount(&devices) != cudaSuccess)
        return 1;
    cudaSetDevice(gin_team_node(comm).rank % devices);
    cudaMallocManaged(&status, sizeof(*status));
    void *p = gin_malloc_kind(comm, GIN_KIND_CUDA, 2 * BYTES);
    st = p != NULL ? run(comm, p, status) : gin_last_status();
    if (st != GIN_OK)
        fprintf(stderr, "%s\n", gin_strerror(st));
    return gin_finalize(comm) != GIN_OK || st != GIN_OK;
}
/* end kernel */
