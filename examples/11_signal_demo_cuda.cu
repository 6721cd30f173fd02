/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals between kernels: weak, strong, add, on a word of memory, with a time limit, consumed and
 * reset.
 *
 * Every rank sends to its right neighbour and hears from its left one. A signal is waited for by
 * its whole value so far. Reset is for the ends of phases: it races with the next increment, so a
 * barrier stands on both sides of it.
 */
#include "example_cuda.h"

#define PARTS 4
#define CHUNK 1000
#define BYTES (CHUNK * sizeof(int))

enum { STRONG, BYTES_HERE, UNITS }; /* ids of signals */

/* Memory of a rank: symmetric, and what it puts from. */
struct memory {
    gin_at_t inbox, flag;
    const int *in;
    int *out;
};

__device__ static void fill(int *out, int rank, int sign)
{
    for (int i = (int)threadIdx.x; i < PARTS * CHUNK; i += (int)blockDim.x)
        out[i] = sign * (rank * PARTS * CHUNK + i);
    __syncthreads();
}

__device__ static void expect(const struct memory *m, int rank, int sign, int *ok)
{
    for (int i = (int)threadIdx.x; i < PARTS * CHUNK; i += (int)blockDim.x)
        MUST(ok, m->in[i] == sign * (rank * PARTS * CHUNK + i));
}

__device__ static void meet(const gin_t *g, int *ok)
{
    CALL(ok, gin_barrier(g, gin_block(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
}

__device__ static void data(const gin_t *g, const struct memory *m, int *ok)
{
    gin_group_t us = gin_block();
    gin_team_t world = gin_world(g);
    int right = (g->rank + 1) % g->size, left = (g->rank + g->size - 1) % g->size;
    fill(m->out, g->rank, 1);
    /* begin strong */
    /* One strong signal covers all earlier puts of this context to that peer. */
    for (uint64_t p = 0; p < PARTS; p++)
        CALL(ok, gin_put(g, us, world, right, gin_at(m->inbox.win, m->inbox.off + p * BYTES),
                         gin_at_local(m->out + p * CHUNK), BYTES, gin_no_action()));
    CALL(ok, gin_signal(g, us, world, right, gin_strong_inc(STRONG)));
    CALL(ok, gin_wait_signal(g, us, STRONG, 1));
    /* end strong */
    expect(m, left, 1, ok);
    /* Flush lets me change my source. It says nothing about the peer: only behind the barrier is
     * its inbox read and free again. */
    CALL(ok, gin_flush(g, us));
    fill(m->out, g->rank, -1);
    meet(g, ok);
    /* begin weak */
    /* A weak one covers its own put. Added up, these tell how many bytes are here. */
    for (uint64_t p = 0; p < PARTS; p++)
        CALL(ok, gin_put(g, us, world, right, gin_at(m->inbox.win, m->inbox.off + p * BYTES),
                         gin_at_local(m->out + p * CHUNK), BYTES, gin_weak_add(BYTES_HERE, BYTES)));
    CALL(ok, gin_wait_signal(g, us, BYTES_HERE, PARTS * BYTES));
    /* end weak */
    expect(m, left, -1, ok);
}

__device__ static void words(const gin_t *g, const struct memory *m, int *ok)
{
    gin_group_t us = gin_block();
    gin_team_t world = gin_world(g);
    int right = (g->rank + 1) % g->size, left = (g->rank + g->size - 1) % g->size;
    /* A signal on an ordinary word of symmetric memory; set is strong unless said otherwise. */
    CALL(ok, gin_signal(g, us, world, right, gin_set_at(m->flag, 100 + (uint64_t)g->rank)));
    CALL(ok, gin_wait_signal_until_at(g, us, m->flag, GIN_CMP_NE, 0, NULL));
    MUST(ok, gin_read_signal_at(g, m->flag) == 100 + (uint64_t)left);

    /* Nobody raises UNITS yet, so this wait ends by its time limit, and nothing is lost by it. */
    gin_wait_opt_t opt = {};
    opt.timeout_ns = 1000000;
    MUST(ok, gin_wait_signal_x(g, us, UNITS, 1, &opt) == GIN_ETIMEDOUT);
    meet(g, ok);

    /* begin consume */
    /* Units that come and go: the receiver takes off what it has used; no increment is lost. */
    for (int i = 0; i < 10; i++)
        CALL(ok, gin_signal(g, us, world, right, gin_weak_inc(UNITS)));
    for (int i = 0; i < 10; i++) {
        CALL(ok, gin_wait_signal(g, us, UNITS, 1));
        if (threadIdx.x == 0) /* reads and updates of my own signals are one thread's */
            CALL(ok, gin_consume_signal(g, UNITS, 1));
        __syncthreads();
    }
    /* end consume */
    MUST(ok, gin_read_signal(g, UNITS) == 0);
}

__global__ void demo(gin_devcomm_t dev, struct memory m, int *ok)
{
    gin_t g;
    CALL(ok, gin_open(&dev, 0, &g));
    data(&g, &m, ok);
    words(&g, &m, ok);
    /* begin reset */
    /* Behind the first barrier nobody still sends of the old phase, behind the second everybody has
     * reset. */
    uint64_t old = PARTS * BYTES;
    meet(&g, ok);
    if (threadIdx.x == 0)
        CALL(ok, gin_reset_signal(&g, BYTES_HERE, &old));
    meet(&g, ok);
    CALL(ok, gin_signal(&g, gin_block(), gin_world(&g), (g.rank + 1) % g.size,
                        gin_weak_inc(BYTES_HERE)));
    CALL(ok, gin_wait_signal(&g, gin_block(), BYTES_HERE, 1));
    /* end reset */
    MUST(ok, old == PARTS * BYTES && gin_read_signal(&g, BYTES_HERE) == 1);
}

int main(void)
{
    gin_comm_t *comm;
    struct memory m;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok();
    void *in = CHECK_PTR(gin_malloc_kind(comm, GIN_KIND_CUDA, PARTS * BYTES));
    void *flag = CHECK_PTR(gin_calloc_kind(comm, GIN_KIND_CUDA, 1, sizeof(uint64_t)));
    m.in = (const int *)in;
    m.inbox = place_of(comm, in);
    m.flag = place_of(comm, flag);
    CUDA(cudaMalloc(&m.out, PARTS * BYTES)); /* a put's source may be any memory of mine */
    gin_devcomm_t dev = kernel_devcomm(comm, 1, 1);
    demo<<<1, 128>>>(dev, m, ok);
    CUDA(cudaDeviceSynchronize());
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, flag));
    CHECK(gin_free(comm, in));
    return finish(comm, *ok, "signal demo in kernels: weak, strong, _at, timeout, consume, reset");
}
