/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Product of matrices with its sum over ranks, in a kernel: 23_gemm_allreduce with the tiles dealt
 * out to blocks. Block b of each rank has the same tiles, meets block b of its neighbours by
 * barrier indices of its own, and is summing up the tiles before while the others multiply: near
 * ones by loads and stores, far ones by puts along the rail.
 *
 * What other hosts send has two places, used in turn: who has their sums of a round knows that they
 * are through with the one before.
 */
#include "example_cuda.h"
#include "gemm.h"

#define BLOCKS  9 /* TILES / BLOCKS tiles each */
#define THREADS 256
#define ROUNDS  6

struct memory {
    gin_at_t mine_at, c_at, far_at, sum_at;
    double *a, *b, *mine, *c, *far, *sum; /* as in struct product */
};

__device__ static gin_at_t number(gin_at_t at, int i)
{
    return gin_at(at.win, at.off + (uint64_t)i * sizeof(double));
}

__device__ static void multiply_by_block(const struct memory *m, int tile)
{
    const double *a = m->a + tile / SIDE * EDGE * DEEP, *b = m->b + tile % SIDE * EDGE;
    for (int i = (int)threadIdx.x; i < TILE; i += (int)blockDim.x) {
        double sum = 0;
        for (int k = 0; k < DEEP; k++)
            sum += a[i / EDGE * DEEP + k] * b[k * SIDE * EDGE + i % EDGE];
        m->mine[tile * TILE + i] = sum;
    }
}

__global__ void __launch_bounds__(THREADS)
    product(gin_devcomm_t dev, struct memory m, int round, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    gin_team_t lsa = gin_lsa(&g), rail = gin_rail(&g);
    int hosts = rail.size, host = rail.rank, b = (int)blockIdx.x, threads = (int)blockDim.x;
    int first = TILE * lsa.rank / lsa.size, last = TILE * (lsa.rank + 1) / lsa.size;
    int tiles = TILES / BLOCKS, begin = first + (int)threadIdx.x;
    for (int j = 0; j < tiles + 2; j++) {
        /* begin steps */
        if (j < tiles) {
            multiply_by_block(&m, j * BLOCKS + b);
            CALL(ok, gin_lsa_arrive(&g, gin_block(), (uint32_t)(2 * b + j % 2), GIN_ORDER_RELEASE));
        }
        if (j >= 1 && j - 1 < tiles) {
            int tile = (j - 1) * BLOCKS + b, turn = round % 2 * TILES + tile;
            CALL(ok, gin_lsa_wait(&g, gin_block(), (uint32_t)(2 * b + (j - 1) % 2),
                                  GIN_ORDER_ACQUIRE, NULL));
            for (int i = begin; i < last; i += threads) {
                double sum = 0;
                for (int r = 0; r < lsa.size; r++)
                    sum += ((const double *)gin_lsa_ptr(&g, r, m.mine_at))[tile * TILE + i];
                m.sum[tile * TILE + i] = sum;
            }
            for (int h = (host + 1) % hosts; h != host; h = (h + 1) % hosts)
                CALL(ok, gin_put(&g, gin_block(), rail, h,
                                 number(m.far_at, (turn * hosts + host) * TILE + first),
                                 number(m.sum_at, tile * TILE + first),
                                 (size_t)(last - first) * sizeof(double),
                                 gin_weak_inc((uint32_t)turn)));
        }
        if (j >= 2) {
            int tile = (j - 2) * BLOCKS + b, turn = round % 2 * TILES + tile;
            CALL(ok, gin_wait_signal(&g, gin_block(), (uint32_t)turn,
                                     (uint64_t)(hosts - 1) * (uint64_t)(round / 2 + 1)));
            for (int i = begin; i < last; i += threads) {
                double sum = m.sum[tile * TILE + i];
                for (int h = 0; h < hosts; h++)
                    sum += h != host ? m.far[(turn * hosts + h) * TILE + i] : 0;
                for (int r = 0; r < lsa.size; r++)
                    ((double *)gin_lsa_ptr(&g, r, m.c_at))[tile * TILE + i] = sum;
            }
        }
        /* end steps */
    }
    CALL(ok, gin_barrier(&g, gin_block(), gin_barrier_lsa(), (uint32_t)(2 * BLOCKS + b),
                         GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    CALL(ok, gin_flush(&g, gin_block())); /* sums may change */
}

static double *take(gin_comm_t *comm, size_t numbers, gin_at_t *at)
{
    void *p = CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, numbers * sizeof(double)));
    *at = place_of(comm, p);
    return (double *)p;
}

int main(void)
{
    const size_t all = (size_t)TILES * TILE, part = (size_t)SIDE * EDGE * DEEP;
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    struct memory m;
    struct product p = {};
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok();
    double *right = (double *)malloc(all * sizeof(double)),
           *c = (double *)malloc(all * sizeof(double));
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = 1;
    reqs.signals = 2 * TILES;
    reqs.lsa_barriers = 3 * BLOCKS;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));
    if (!hosts_are_even(comm))
        return finish(comm, 1, "gemm: more ranks on some hosts than on others, nothing done");
    m.mine = take(comm, all, &m.mine_at);
    m.c = take(comm, all, &m.c_at);
    m.sum = take(comm, all, &m.sum_at);
    m.far = take(comm, 2 * all * (size_t)gin_team_rail(comm).size, &m.far_at);
    CUDA(cudaMalloc(&m.a, part * sizeof(double)));
    CUDA(cudaMalloc(&m.b, part * sizeof(double)));
    p.a = (double *)malloc(part * sizeof(double));
    p.b = (double *)malloc(part * sizeof(double));
    p.size = gin_size(comm);

    for (int round = 0; round < ROUNDS; round++) {
        p.round = round;
        alone(&p, right);
        fill(&p, gin_rank(comm));
        CUDA(cudaMemcpy(m.a, p.a, part * sizeof(double), cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(m.b, p.b, part * sizeof(double), cudaMemcpyHostToDevice));
        product<<<BLOCKS, THREADS>>>(dev, m, round, ok);
        CUDA(cudaDeviceSynchronize()); /* within cudaMemcpy() the network could not copy */
        CUDA(cudaMemcpy(c, m.c, all * sizeof(double), cudaMemcpyDeviceToHost));
        *ok = *ok && is_same(c, right);
    }
    CHECK(gin_devcomm_destroy(comm, &dev));
    double *blocks[] = {m.far, m.sum, m.c, m.mine};
    for (int i = 0; i < 4; i++)
        CHECK(gin_free(comm, blocks[i]));
    free(p.a), free(p.b), free(right), free(c);
    return finish(comm, *ok, "gemm in kernels, sum over ranks: 288 x 288, 6 rounds");
}
