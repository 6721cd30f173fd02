/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stencil with overlap: halos travel while the inside is computed.
 *
 * The field is cut into bands of rows. One kernel per step: its first block puts the band's two
 * edges to the neighbours, waits for theirs and relaxes the rows that need them; the other blocks
 * relax the inside meanwhile. Signals live on from kernel to kernel. Halos have two places, used in
 * turn: a neighbour sends step s + 2 only once it has our halo of step s + 1, which we send after
 * the use of its halo of step s.
 */
#include <math.h>
#include "example_cuda.h"

#define W     256 /* of a row */
#define H     192 /* rows of the field, without its border of zeros */
#define STEPS 60

enum { ABOVE, BELOW }; /* sides, and ids of signals: the halo on that side is here */

__host__ __device__ static double start(int y, int x)
{
    return (y * 31 + x * 17) % 100 / 10.0;
}

/* Row `to` from the rows around `from`. */
__host__ __device__ static void relax(double *to, const double *above, const double *from,
                                      const double *below, int x)
{
    double left = x > 0 ? from[x - 1] : 0, right = x < W - 1 ? from[x + 1] : 0;
    to[x] = 0.25 * (above[x] + left + right + below[x]);
}

/* halos: [turn][side][W]; rows 0 .. h-1 of cur and next are mine. */
__global__ void step(gin_devcomm_t dev, int s, int h, double *next, const double *cur,
                     gin_at_t halos, const double *halo, int *ok)
{
    int t = (int)threadIdx.x, threads = (int)blockDim.x;
    if (blockIdx.x > 0) { /* the inside needs nobody */
        for (int y = (int)blockIdx.x; y < h - 1; y += (int)gridDim.x - 1)
            for (int x = t; x < W; x += threads)
                relax(next + y * W, cur + (y - 1) * W, cur + y * W, cur + (y + 1) * W, x);
        return;
    }
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    int above = g.rank - 1, below = g.rank < g.size - 1 ? g.rank + 1 : -1;
    uint64_t turn = (uint64_t)(s % 2) * 2 * W * sizeof(double), row = W * sizeof(double);
    /* begin overlap */
    /* My upper edge is the halo below the rank above me, and the other way round. */
    if (above >= 0)
        CALL(ok, gin_put(&g, gin_block(), gin_world(&g), above,
                         gin_at(halos.win, halos.off + turn + BELOW * row), gin_at_local(cur), row,
                         gin_weak_inc(BELOW)));
    if (below >= 0)
        CALL(ok, gin_put(&g, gin_block(), gin_world(&g), below,
                         gin_at(halos.win, halos.off + turn + ABOVE * row),
                         gin_at_local(cur + (h - 1) * W), row, gin_weak_inc(ABOVE)));
    if (above >= 0)
        CALL(ok, gin_wait_signal(&g, gin_block(), ABOVE, (uint64_t)s + 1));
    if (below >= 0)
        CALL(ok, gin_wait_signal(&g, gin_block(), BELOW, (uint64_t)s + 1));
    /* end overlap */
    const double *up = halo + turn / sizeof(double), *down = up + W; /* zeros at the border */
    for (int x = t; x < W; x += threads) {
        relax(next, up, cur, h > 1 ? cur + W : down, x);
        if (h > 1)
            relax(next + (h - 1) * W, cur + (h - 2) * W, cur + (h - 1) * W, down, x);
    }
    /* before the next kernel changes the edges */
    CALL(ok, gin_flush(&g, gin_block()));
}

/* The whole field by the CPU. */
static double *serial(void)
{
    double *a = (double *)calloc((H + 2) * W, sizeof(double));
    double *b = (double *)calloc((H + 2) * W, sizeof(double));
    for (int i = 0; i < H * W; i++)
        a[W + i] = start(i / W, i % W);
    for (int s = 0; s < STEPS; s++) {
        for (int y = 1; y <= H; y++)
            for (int x = 0; x < W; x++)
                relax(b + y * W, a + (y - 1) * W, a + y * W, a + (y + 1) * W, x);
        double *c = a;
        a = b;
        b = c;
    }
    free(b);
    return a;
}

int main(void)
{
    gin_comm_t *comm;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok(), rank = gin_rank(comm), size = gin_size(comm);
    int y0 = rank * H / size, h = (rank + 1) * H / size - y0;
    size_t bytes = (size_t)h * W * sizeof(double);
    if (size > H)
        return finish(comm, 1, "stencil in kernels: too many ranks for the field, nothing done");
    double *halo = (double *)CHECK_PTR(gin_calloc_kind(comm, GIN_KIND_CUDA, 4 * W, sizeof(double)));
    double *cur, *next, *mine = (double *)malloc(bytes);
    for (int i = 0; i < h * W; i++)
        mine[i] = start(y0 + i / W, i % W);
    CUDA(cudaMalloc(&cur, bytes));
    CUDA(cudaMalloc(&next, bytes));
    CUDA(cudaMemcpy(cur, mine, bytes, cudaMemcpyHostToDevice));
    gin_devcomm_t dev = kernel_devcomm(comm, 1, 1);
    for (int s = 0; s < STEPS; s++) {
        step<<<17, 128>>>(dev, s, h, next, cur, place_of(comm, halo), halo, ok);
        double *c = cur;
        cur = next;
        next = c;
    }
    CUDA(cudaDeviceSynchronize()); /* within cudaMemcpy() the network could not copy */
    CUDA(cudaMemcpy(mine, cur, bytes, cudaMemcpyDeviceToHost));
    double *whole = serial();
    for (int i = 0; i < h * W; i++)
        *ok = *ok && fabs(mine[i] - whole[(y0 + 1) * W + i]) < 1e-9;
    free(whole);
    free(mine);
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, halo));
    return finish(comm, *ok, "stencil in kernels: 192 x 256, 60 steps");
}
