/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of partial sums without communication in any kernel: the host gives the stream kernels,
 * puts and waits, and a CUDA graph of one round is launched for all others.
 *
 * Each round a rank adds its own numbers to what it has and passes the sum on to the right. After
 * `size` rounds everybody has met everybody's numbers.
 */
#include "example_cuda.h"

#define N     4096
#define BYTES (N * sizeof(unsigned))

enum { HERE }; /* a signal */

struct ring {
    gin_devcomm_t dev;
    gin_team_t world;
    cudaStream_t stream;
    unsigned *mine, *out, *in; /* out and in are symmetric */
    gin_at_t a_out, a_in;
};

/* out = in + mine, the first time with nothing in it. */
__global__ void add(unsigned *out, const unsigned *in, const unsigned *mine)
{
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        out[i] = in[i] + mine[i];
}

__global__ void fill(unsigned *mine, int rank)
{
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        mine[i] = (unsigned)(rank + 1) * (unsigned)(i + 1);
}

__global__ void check(const unsigned *in, int size, int *ok)
{
    unsigned all = (unsigned)size * (unsigned)(size + 1) / 2;
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        MUST(ok, in[i] == all * (unsigned)(i + 1));
}

/* What the host gives to the stream; it waits for nothing. */
static void one_round(struct ring *r)
{
    gin_stream_t s = (gin_stream_t)r->stream;
    int right = (r->world.rank + 1) % r->world.size;
    add<<<1, 256, 0, r->stream>>>(r->out, r->in, r->mine);
    /* nobody overwrites `in` before its rank has added it up */
    CHECK(gin_barrier_on_stream(&r->dev, gin_barrier_world(), 0, GIN_FENCE_ALL, s));
    CHECK(gin_put_on_stream(&r->dev, 0, r->world, right, r->a_in, r->a_out, BYTES,
                            gin_weak_inc(HERE), s));
    /* the signal is taken off, so that the next launch waits for the same value */
    CHECK(gin_wait_signal_on_stream(&r->dev, 0, HERE, 1, s));
    CHECK(gin_consume_signal_on_stream(&r->dev, 0, HERE, 1, s));
}

static cudaGraphExec_t capture(struct ring *r)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeGlobal));
    one_round(r);
    CUDA(cudaStreamEndCapture(r->stream, &graph));
    CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

int main(void)
{
    gin_comm_t *comm;
    struct ring r;
    CHECK(gin_init(NULL, &comm));
    take_gpu(comm);
    int *ok = new_ok(), size = gin_size(comm);
    r.world = gin_team_world(comm);
    r.out = (unsigned *)CHECK_PTR(gin_calloc_kind(comm, GIN_KIND_CUDA, 1, BYTES));
    r.in = (unsigned *)CHECK_PTR(gin_calloc_kind(comm, GIN_KIND_CUDA, 1, BYTES));
    r.a_out = place_of(comm, r.out);
    r.a_in = place_of(comm, r.in);
    r.dev = kernel_devcomm(comm, 1, 1);
    CUDA(cudaMalloc(&r.mine, BYTES));
    CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    fill<<<1, 256, 0, r.stream>>>(r.mine, r.world.rank);
    cudaGraphExec_t graph = capture(&r);
    for (int i = 0; i < size; i++)
        CUDA(cudaGraphLaunch(graph, r.stream));
    check<<<1, 256, 0, r.stream>>>(r.in, size, ok);
    CUDA(cudaStreamSynchronize(r.stream));
    CHECK(gin_stream_status(&r.dev)); /* a wait that failed would have said so here */
    CUDA(cudaGraphExecDestroy(graph));
    CUDA(cudaStreamDestroy(r.stream));
    CUDA(cudaFree(r.mine));
    CHECK(gin_devcomm_destroy(comm, &r.dev));
    CHECK(gin_free(comm, r.in));
    CHECK(gin_free(comm, r.out));
    return finish(comm, *ok, "a ring of sums on a stream, by a graph");
}
