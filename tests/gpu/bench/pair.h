/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks for figures of kernels over the network: threads of one process, each a host of its own
 * by name. Their kernels run at the same time even on one GPU, which those of two processes do not:
 * these take turns of milliseconds. With two GPUs each has its own. Include it once.
 */
#ifndef GINSHMEM_TESTS_GPU_BENCH_PAIR_H
#define GINSHMEM_TESTS_GPU_BENCH_PAIR_H

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>
#include <cuda_runtime.h>
#include <ginshmem.h>

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
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

static double now_ns(void)
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::nano>(clock::now().time_since_epoch()).count();
}

/* One of the two. */
struct side {
    int me, peer, device;
    gin_comm_t *comm;
    cudaStream_t stream;
};

static std::barrier<> pair_meeting(2);

static void meet(void)
{
    pair_meeting.arrive_and_wait();
}

static void *need(void *p, const char *what)
{
    if (p == NULL)
        die(what, gin_last_error());
    return p;
}

static void *symmetric(const struct side *s, gin_kind_t kind, size_t bytes, gin_at_t *at)
{
    void *p = need(gin_calloc_kind(s->comm, kind, 1, bytes), "symmetric memory");
    GIN(gin_window_of(s->comm, p, &at->win, &at->off));
    return p;
}

/* No wait of a kernel lasts for ever. */
static gin_devcomm_t device_comm(const struct side *s, uint32_t barriers)
{
    gin_devcomm_t dev;
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = 1;
    reqs.world_barriers = barriers;
    reqs.wait_timeout_ns = reqs.barrier_timeout_ns = 30000000000u;
    GIN(gin_devcomm_create(s->comm, &reqs, &dev));
    return dev;
}

static void pair_side(int me, const gin_unique_id_t *id, int devices, void (*body)(struct side *))
{
    struct side s = {me, 1 - me, me % devices, NULL, NULL};
    gin_config_t config;
    gin_config_init(&config);
    config.rank = me;
    config.n_ranks = 2;
    config.unique_id = id;
    config.host_id = me == 0 ? "the-first" : "the-second";
    GIN(gin_init(&config, &s.comm));
    CU(cudaSetDevice(s.device));
    CU(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    body(&s);
    CU(cudaStreamDestroy(s.stream));
    GIN(gin_finalize(s.comm));
}

/* The body in both; 77 without a GPU. */
static int pair_run(void (*body)(struct side *), unsigned seconds)
{
    gin_unique_id_t id;
    int devices = 0;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* no kernel waits for another one's code */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("SKIP: no GPU\n");
        return 77;
    }
    alarm(seconds);
    GIN(gin_unique_id(&id));
    std::thread other(pair_side, 1, &id, devices, body);
    pair_side(0, &id, devices, body);
    other.join();
    return 0;
}

/* ---- rows, by side 0 ---- */

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

static double middle(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v.empty() ? 0 : v[v.size() / 2];
}

static void print_rows(void)
{
    for (row &r : rows) {
        std::sort(r.v.begin(), r.v.end());
        printf("%-44s %10.3f %-5s (%.3f - %.3f, %zu)\n", r.name.c_str(), middle(r.v),
               r.unit.c_str(), r.v.front(), r.v.back(), r.v.size());
    }
}

#endif
