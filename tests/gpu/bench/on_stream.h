/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginbench's rows of operations that the host gives to streams: what one of many costs there, one
 * behind the other, and out of a graph. Part of ginbench.cu.
 */
#ifndef GINSHMEM_TESTS_GPU_BENCH_ON_STREAM_H
#define GINSHMEM_TESTS_GPU_BENCH_ON_STREAM_H

static cudaStream_t stream;
static cudaEvent_t began, ended;

/* One operation on the stream, the i-th; false: refused. */
typedef int (*on_stream)(gin_stream_t s, int i);

static int put_one(gin_stream_t s, int)
{
    return gin_put_on_stream(&a.dev, 0, gin_team_world(comm), a.peer, a.dst, a.src, a.bytes,
                             gin_no_action(), s);
}

static int put_signal_one(gin_stream_t s, int)
{
    return gin_put_on_stream(&a.dev, 0, gin_team_world(comm), a.peer, a.dst, a.src, a.bytes,
                             gin_weak_inc(7), s);
}

static int value_one(gin_stream_t s, int i)
{
    return gin_put_value_on_stream(&a.dev, 0, gin_team_world(comm), a.peer, a.dst, (uint64_t)i, 8,
                                   gin_no_action(), s);
}

static int barrier_one(gin_stream_t s, int)
{
    return gin_barrier_on_stream(&a.dev, gin_barrier_world(), 0, GIN_FENCE_ALL, s);
}

/* There and back: half of it is one put with its signal and the other's wait. */
static int pingpong_one(gin_stream_t s, int i)
{
    int st = GIN_OK;
    for (int half = 0; st == GIN_OK && half < 2; half++)
        st = half == (me & 1) ? put_signal_one(s, i)
                              : gin_wait_signal_on_stream(&a.dev, 0, 7, (uint64_t)i + 1, s);
    return st;
}

static void streamed(const std::string &name, on_stream one, int iters, double per, bool both)
{
    float ms = 0;
    int at = 0, st = GIN_OK;
    for (int warm = 0; warm < 2 && (both || me == 0); warm++) {
        CU(cudaEventRecord(began, stream));
        for (int i = 0; st == GIN_OK && i < iters; i++)
            st = one((gin_stream_t)stream, at++);
        CU(cudaEventRecord(ended, stream));
        CU(cudaStreamSynchronize(stream));
        CU(cudaEventElapsedTime(&ms, began, ended));
    }
    if (st == GIN_OK)
        st = gin_stream_status(&a.dev);
    a.out[1] = st;
    if (finished(name))
        note(name, (double)ms * 1e3 / iters / per, "us");
}

static void graphed(const std::string &name, on_stream one)
{
    const int iters = 100, launches = 20;
    float ms = 0;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int st = GIN_OK;
    CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; st == GIN_OK && i < iters; i++)
        st = one((gin_stream_t)stream, i);
    CU(cudaStreamEndCapture(stream, &graph));
    CU(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int warm = 0; warm < 2; warm++) {
        CU(cudaEventRecord(began, stream));
        for (int i = 0; i < launches; i++)
            CU(cudaGraphLaunch(exec, stream));
        CU(cudaEventRecord(ended, stream));
        CU(cudaStreamSynchronize(stream));
        CU(cudaEventElapsedTime(&ms, began, ended));
    }
    CU(cudaGraphExecDestroy(exec));
    CU(cudaGraphDestroy(graph));
    a.out[1] = st != GIN_OK ? st : gin_stream_status(&a.dev);
    if (finished(name))
        note(name, (double)ms * 1e3 / iters / launches, "us");
}

static void on_streams(void)
{
    static const size_t sizes[] = {8, 65536, 1 << 20};
    int few = n_ranks > 1 && shared ? 20 : 1000; /* processes on one GPU take turns */
    fresh();
    for (size_t z : sizes) {
        a.bytes = z;
        streamed(sized("putmem_on_stream", z, ""), put_one, 1000, 1, false);
    }
    a.bytes = 8;
    streamed("put_value_on_stream 8 B", value_one, 1000, 1, false);
    streamed("put_signal_on_stream 8 B", put_signal_one, 1000, 1, false);
    graphed("putmem_on_stream 8 B, graph", put_one);
    graphed("put_value_on_stream 8 B, graph", value_one);
    streamed("barrier_all_on_stream", barrier_one, few, 1, true);
    if (!shared || n_ranks == 1)
        graphed("barrier_all_on_stream, graph", barrier_one);
    if (n_ranks % 2 == 0)
        for (size_t z : sizes) {
            a.bytes = z;
            fresh();
            streamed(sized("put_signal_wait_on_stream", z, " oneway"), pingpong_one, few, 2, true);
        }
    fresh();
}

#endif
