/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided figures of kernels, in rows that a program for another library can print, too, so that
 * both can be compared: "ginrun -n 2 ginbench [ROUNDS]". One GPU per rank; ranks 0 and 1, 2 and 3
 * are partners. A row is the median over the rounds, with the lowest and highest.
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include <ginshmem.h>

#define BIG ((size_t)256 << 20)

static int me, n_ranks, peer, n_rounds = 5;
static gin_comm_t *comm;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "ginbench: rank %d: %s: %s\n", me, what, why);
    fflush(NULL);
    _Exit(1);
}
#define CU(call)                                \
    do {                                        \
        cudaError_t e_ = (call);                \
        if (e_ != cudaSuccess)                  \
            die(#call, cudaGetErrorString(e_)); \
    } while (0)
#define GIN(call)                         \
    do {                                  \
        if ((call) != GIN_OK)             \
            die(#call, gin_last_error()); \
    } while (0)

static double now_s(void)
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

/* ---- rows ---- */

struct row {
    std::string name, unit;
    std::vector<double> v;
};
static std::vector<row> rows;

static void note(const std::string &name, double v, const char *unit)
{
    for (row &r : rows)
        if (r.name == name) {
            r.v.push_back(v);
            return;
        }
    rows.push_back({name, unit, {v}});
}

static void print_rows(void)
{
    for (row &r : rows) {
        std::sort(r.v.begin(), r.v.end());
        printf("%-44s %10.3f %-5s (%.3f - %.3f, %zu)\n", r.name.c_str(), r.v[r.v.size() / 2],
               r.unit.c_str(), r.v.front(), r.v.back(), r.v.size());
    }
}

/* ---- kernels: times in clocks per iteration after a tenth of them ---- */

struct args {
    gin_devcomm_t dev;
    gin_at_t dst, src, flags, host; /* symmetric; flags: 64 words; host: of host memory */
    int me, peer, iters;
    size_t bytes;
    long long *out; /* clocks, then the first bad status */
};

#define WARM(i)              \
    if ((i) == a.iters / 10) \
    c = clock64()
#define TRY(call)                                   \
    do {                                            \
        int st_ = (call);                           \
        if (st_ != GIN_OK) {                        \
            *(volatile long long *)&a.out[1] = st_; \
            return;                                 \
        }                                           \
    } while (0)
#define DONE()            \
    if (threadIdx.x == 0) \
    a.out[0] = clock64() - c

__global__ void put_quiet_thread(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_put(&g, gin_thread(), gin_world(&g), a.peer, a.dst, a.src, a.bytes,
                    gin_no_action()));
        TRY(gin_quiet(&g, gin_thread()));
    }
    DONE();
}

__global__ void put_quiet_block(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_put(&g, gin_block(), gin_world(&g), a.peer, a.dst, a.src, a.bytes,
                    gin_no_action()));
        TRY(gin_quiet(&g, gin_block()));
    }
    DONE();
}

__global__ void get_flush_block(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_get(&g, gin_block(), gin_world(&g), a.peer, a.src, a.dst, a.bytes));
        TRY(gin_flush(&g, gin_block()));
    }
    DONE();
}

__global__ void value_pingpong(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 1; i <= a.iters; i++) {
        WARM(i);
        for (int half = 0; half < 2; half++)
            if (half == (a.me & 1))
                TRY(gin_put_value(&g, gin_thread(), gin_world(&g), a.peer, a.flags, (uint64_t)i, 8,
                                  gin_no_action()));
            else
                TRY(gin_wait_signal_until_at(&g, gin_thread(), a.flags, GIN_CMP_GE, (uint64_t)i,
                                             NULL));
    }
    DONE();
}

/* HOW 0: a slot signal, weak; 1: strong; 2: a word of memory is set */
template <int HOW> __global__ void signal_pingpong(args a)
{
    gin_t g;
    long long c = 0;
    gin_at_t word = gin_at(a.flags.win, a.flags.off + 64);
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 1; i <= a.iters; i++) {
        WARM(i);
        for (int half = 0; half < 2; half++) {
            if (half == (a.me & 1)) {
                gin_action_t how = HOW == 0   ? gin_weak_inc(0)
                                   : HOW == 1 ? gin_strong_inc(0)
                                              : gin_weak_set_at(word, (uint64_t)i);
                TRY(gin_put(&g, gin_block(), gin_world(&g), a.peer, a.dst, a.src, a.bytes, how));
            } else if (HOW < 2) {
                TRY(gin_wait_signal(&g, gin_block(), 0, (uint64_t)i));
            } else {
                TRY(gin_wait_signal_until_at(&g, gin_block(), word, GIN_CMP_GE, (uint64_t)i, NULL));
            }
        }
    }
    DONE();
}

__global__ void fetch_add(args a)
{
    gin_t g;
    long long c = 0;
    uint64_t old;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_amo_fetch_add(&g, gin_thread(), gin_world(&g), a.peer,
                              gin_at(a.flags.win, a.flags.off + 128), 1, &old));
    }
    DONE();
}

template <int BLOCK> __global__ void barriers(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_barrier(&g, BLOCK ? gin_block() : gin_thread(), gin_barrier_world(), 0,
                        GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    }
    DONE();
}

__global__ void __launch_bounds__(1024) put_all(args a)
{
    gin_t g;
    size_t per = a.bytes / gridDim.x;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++)
        TRY(gin_put(&g, gin_block(), gin_world(&g), a.peer,
                    gin_at(a.dst.win, a.dst.off + per * blockIdx.x),
                    gin_at(a.src.win, a.src.off + per * blockIdx.x), per, gin_no_action()));
    TRY(gin_quiet(&g, gin_block()));
}

__global__ void __launch_bounds__(1024) get_all(args a)
{
    gin_t g;
    size_t per = a.bytes / gridDim.x;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++)
        TRY(gin_get(&g, gin_block(), gin_world(&g), a.peer,
                    gin_at(a.src.win, a.src.off + per * blockIdx.x),
                    gin_at(a.dst.win, a.dst.off + per * blockIdx.x), per));
    TRY(gin_flush(&g, gin_block()));
}

/* A word of host memory has the CPU as its applier: there and back through the engine. */
__global__ void engine_hop(args a)
{
    gin_t g;
    long long c = 0;
    uint64_t old;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_amo_fetch_add(&g, gin_thread(), gin_world(&g), a.me, a.host, 1, &old));
    }
    DONE();
}

__global__ void engine_quiet(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_amo_add(&g, gin_thread(), gin_world(&g), a.me, a.host, 1));
        TRY(gin_quiet(&g, gin_thread()));
    }
    DONE();
}

__global__ void __launch_bounds__(1024) engine_rate(args a)
{
    gin_t g;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++)
        TRY(gin_amo_add(&g, gin_thread(), gin_world(&g), a.me, a.host, 1));
    TRY(gin_quiet(&g, gin_thread()));
}

/* ---- the runs ---- */

static args a;
static int clock_khz, with_devcomms;
static bool shared; /* ranks share a GPU */

/* Signals and flags start from zero for each row. */
static void fresh(void)
{
    gin_devcomm_reqs_t reqs;
    CU(cudaDeviceSynchronize());
    if (with_devcomms++)
        GIN(gin_devcomm_destroy(comm, &a.dev));
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    GIN(gin_devcomm_create(comm, &reqs, &a.dev));
    CU(cudaMemset((void *)gin_ptr(comm, (void *)(uintptr_t)a.out[8], me), 0, 512));
    CU(cudaDeviceSynchronize());
    GIN(gin_comm_barrier(comm));
}

/* Everybody is done; rank 0 takes down. */
static bool finished(const std::string &name)
{
    CU(cudaDeviceSynchronize());
    long long st = a.out[1];
    a.out[1] = 0;
    GIN(gin_comm_barrier(comm));
    if (st != 0 && me == 0)
        printf("%-44s        n/a %s\n", name.c_str(), gin_status_name((int)st));
    return st == 0 && me == 0;
}

template <class K>
static void timed(const std::string &name, K kernel, int threads, int iters, double per, bool both)
{
    a.iters = iters;
    if (both || me == 0)
        kernel<<<1, (unsigned)threads>>>(a);
    if (finished(name))
        note(name, (double)a.out[0] * 1e3 / clock_khz / (iters - iters / 10) / per, "us");
}

static std::string sized(const char *what, size_t bytes, const char *more)
{
    return std::string(what) + " " + std::to_string(bytes) + " B" + more;
}

static void latencies(void)
{
    static const size_t three[] = {8, 1024, 65536}, four[] = {8, 4096, 65536, 1 << 20};
    for (size_t z : three) {
        a.bytes = z;
        timed(sized("put_thread_quiet", z, ""), put_quiet_thread, 1, z < 65536 ? 1000 : 200, 1,
              false);
    }
    for (size_t z : four) {
        a.bytes = z;
        timed(sized("put_block_quiet", z, ""), put_quiet_block, 512, 1000, 1, false);
        timed(sized("get_block_quiet", z, ""), get_flush_block, 512, 1000, 1, false);
    }
    if (n_ranks % 2 == 0) {
        timed("p_pingpong oneway", value_pingpong, 1, 20000, 2, true);
        for (size_t z : four) {
            a.bytes = z;
            fresh();
            timed(sized("put_signal_block_pingpong", z, " oneway"), signal_pingpong<0>, 512, 2000,
                  2, true);
        }
        a.bytes = 8;
        fresh();
        timed("put_signal_strong_pingpong 8 B oneway", signal_pingpong<1>, 512, 2000, 2, true);
        fresh();
        timed("put_set_word_pingpong 8 B oneway", signal_pingpong<2>, 512, 2000, 2, true);
    }
    timed("atomic_fetch_add", fetch_add, 1, 10000, 1, false);
    timed("device_barrier_all", barriers<0>, 1, 10000, 1, true);
    timed("device_barrier_all, block of 512", barriers<1>, 512, 10000, 1, true);
}

static void bandwidths(cudaEvent_t from, cudaEvent_t to)
{
    static const int blocks[] = {1, 4, 8, 16, 32, 64, 132};
    float ms = 0;
    a.bytes = BIG;
    a.iters = 4;
    for (int b : blocks)
        for (int get = 0; get < 2; get++) {
            std::string name =
                std::string(get ? "get_bw " : "put_bw ") + std::to_string(b) + " CTAs";
            if (me == 0) {
                CU(cudaEventRecord(from));
                if (get)
                    get_all<<<(unsigned)b, 1024>>>(a);
                else
                    put_all<<<(unsigned)b, 1024>>>(a);
                CU(cudaEventRecord(to));
                CU(cudaDeviceSynchronize());
                CU(cudaEventElapsedTime(&ms, from, to));
            }
            if (finished(name))
                note(name, (double)a.iters * (double)BIG / ms / 1e6, "GB/s");
        }
}

static void engine(cudaEvent_t from, cudaEvent_t to)
{
    float ms = 0;
    timed("engine_hop", engine_hop, 1, 5000, 1, false);
    timed("engine_hop by quiet", engine_quiet, 1, 5000, 1, false);
    for (int threads : {1, 32, 256, 1024}) {
        std::string name = "engine_rate " + std::to_string(threads) + " threads";
        a.iters = threads == 1 ? 20000 : 1000000 / threads;
        if (me == 0) {
            CU(cudaEventRecord(from));
            engine_rate<<<1, (unsigned)threads>>>(a);
            CU(cudaEventRecord(to));
            CU(cudaDeviceSynchronize());
            CU(cudaEventElapsedTime(&ms, from, to));
        }
        if (finished(name))
            note(name, (double)a.iters * threads / ms / 1e3, "M/s");
    }
}

#include "tests/gpu/bench/on_stream.h"

static gin_at_t place(const void *p)
{
    gin_at_t at;
    GIN(gin_window_of(comm, p, &at.win, &at.off));
    return at;
}

static void *need(void *p, const char *what)
{
    if (p == NULL)
        die(what, gin_last_error());
    return p;
}

/* Bring-up, with the CUDA context there already. */
static void start(void)
{
    size_t free0, free1, total;
    int devices = 0;
    double t0 = now_s();
    GIN(gin_init(NULL, &comm));
    double t1 = now_s();
    me = gin_rank(comm);
    n_ranks = gin_size(comm);
    peer = n_ranks == 1 ? 0 : (me ^ 1) < n_ranks ? me ^ 1 : 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        if (me == 0)
            printf("SKIP: no GPU\n");
        GIN(gin_finalize(comm));
        exit(77);
    }
    shared = gin_team_node(comm).size > devices;
    CU(cudaSetDevice(gin_team_node(comm).rank % devices));
    CU(cudaFree(0));
    double t2 = now_s();
    GIN(gin_comm_barrier(comm));
    CU(cudaMemGetInfo(&free0, &total));
    double t3 = now_s();
    void *first = need(gin_malloc_kind(comm, GIN_KIND_CUDA, 64), "first malloc");
    GIN(gin_devcomm_create(comm, NULL, &a.dev));
    GIN(gin_devcomm_destroy(comm, &a.dev));
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    GIN(gin_devcomm_create(comm, &reqs, &a.dev));
    double t4 = now_s();
    CU(cudaMemGetInfo(&free1, &total));
    GIN(gin_devcomm_destroy(comm, &a.dev));
    GIN(gin_free(comm, first));
    if (me == 0) {
        note("bare_cuda_context_s", t2 - t1, "s");
        note("init_s", t1 - t0 + (t4 - t3), "s");
        note("gpu_memory_taken", ((double)free0 - (double)free1) / 1048576, "MiB");
    }
}

static void mallocs(void)
{
    double t = now_s();
    for (int i = 0; i < 100; i++)
        GIN(gin_free(comm, need(gin_malloc_kind(comm, GIN_KIND_CUDA, 4096), "malloc")));
    if (me == 0)
        note("malloc_free_4k_us", (now_s() - t) * 1e4, "us");
}

int main(int argc, char **argv)
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (argc > 1)
        n_rounds = std::max(1, atoi(argv[1]));
    start();
    double t0 = now_s();
    void *d = need(gin_malloc_kind(comm, GIN_KIND_CUDA, BIG), "malloc");
    void *s = need(gin_malloc_kind(comm, GIN_KIND_CUDA, BIG), "malloc");
    void *f = need(gin_calloc_kind(comm, GIN_KIND_CUDA, 64, 8), "calloc");
    if (me == 0)
        note("malloc3_ms", (now_s() - t0) * 1e3, "ms");
    void *h = need(gin_calloc(comm, 64, 8), "calloc");
    a.dst = place(d);
    a.src = place(s);
    a.flags = place(f);
    a.host = place(h);
    a.me = me;
    a.peer = peer;
    CU(cudaHostAlloc((void **)&a.out, 256, cudaHostAllocPortable));
    memset(a.out, 0, 256);
    a.out[8] = (long long)(uintptr_t)f;
    CU(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0));
    CU(cudaMemset(s, me + 1, BIG));
    cudaEvent_t from, to;
    CU(cudaEventCreate(&from));
    CU(cudaEventCreate(&to));
    CU(cudaEventCreate(&began));
    CU(cudaEventCreate(&ended));
    CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int r = 0; r < n_rounds; r++) {
        fresh();
        latencies();
        bandwidths(from, to);
        engine(from, to);
        on_streams();
        mallocs();
    }
    unsigned char last = 0;
    CU(cudaMemcpy(&last, (char *)d + BIG - 1, 1, cudaMemcpyDeviceToHost));
    CU(cudaDeviceSynchronize());
    GIN(gin_devcomm_destroy(comm, &a.dev));
    GIN(gin_free(comm, d));
    GIN(gin_free(comm, s));
    GIN(gin_free(comm, f));
    GIN(gin_free(comm, h));
    double t = now_s();
    GIN(gin_finalize(comm));
    if (me == 0) {
        note("finalize_s", now_s() - t, "s");
        print_rows();
        printf("last byte %u\n", last);
    }
    return last == peer + 1 ? 0 : 1;
}
