/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a kernel's way to a thread and back costs in bare instructions, step by step: the floor
 * under ginbench's engine_hop, measured in the same run. One GPU, one thread on each side; medians.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <cuda_runtime.h>

#define N 20000
#define CU(call)                                                             \
    do {                                                                     \
        cudaError_t e_ = (call);                                             \
        if (e_ != cudaSuccess) {                                             \
            fprintf(stderr, "hop: %s: %s\n", #call, cudaGetErrorString(e_)); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

/* Both sides' memory of the host: a ring of descriptors, and where the reply comes. */
struct host {
    alignas(64) uint64_t slots[64 * 8];
    alignas(64) uint64_t reply[2];
};

/* Four stores, each with its phase, so that no fence is needed. */
__device__ void store(uint64_t *slot, uint64_t i)
{
    for (int k = 0; k < 8; k += 2)
        asm volatile("st.relaxed.sys.v2.u64 [%0], {%1, %2};" ::"l"(slot + k), "l"(i), "l"(i)
                     : "memory");
}

__device__ uint64_t reply_of(const uint64_t *p)
{
    uint64_t v, w;
    asm volatile("{.reg .b128 t; ld.relaxed.sys.b128 t, [%2]; mov.b128 {%0, %1}, t;}"
                 : "=l"(v), "=l"(w)
                 : "l"(p)
                 : "memory");
    return v + (w >> 63);
}

/* Each step has what those before it have: a bare descriptor; its slot by a ticket; a place for the
 * reply, by a mark; the count of free slots. Then the first again, behind a fence. */
enum step { BARE, TICKET, MARK, CREDIT, FENCED };

template <int STEP> __global__ void hop(host *h, uint64_t *gpu, long long *t)
{
    for (uint64_t i = 1; i <= N; i++) {
        long long c = clock64();
        uint64_t ticket = i - 1, old = 0, credit = 0;
        if (STEP == CREDIT)
            asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(credit) : "l"(gpu + 16) : "memory");
        if (STEP == MARK || STEP == CREDIT)
            asm volatile("atom.relaxed.sys.exch.b64 %0, [%1], 1;"
                         : "=l"(old)
                         : "l"(gpu + 8)
                         : "memory");
        if (STEP >= TICKET && STEP <= CREDIT)
            asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], 1;"
                         : "=l"(ticket)
                         : "l"(gpu)
                         : "memory");
        if (STEP == FENCED)
            asm volatile("fence.acq_rel.sys;" ::: "memory");
        if (old != 0 || ticket - credit > N)
            return;
        store(h->slots + (ticket & 63) * 8, i);
        while (reply_of(h->reply) != i) {
        }
        if (STEP == MARK || STEP == CREDIT)
            asm volatile("st.relaxed.sys.u64 [%0], 0;" ::"l"(gpu + 8) : "memory");
        t[i - 1] = clock64() - c;
    }
}

static void serve(host *h)
{
    for (uint64_t i = 1; i <= N; i++) {
        volatile uint64_t *s = h->slots + ((i - 1) & 63) * 8;
        for (int k = 0; k < 8; k++)
            while (s[k] != i) {
            }
        __atomic_store_n(&h->reply[0], i, __ATOMIC_RELEASE);
    }
}

int main()
{
    host *h;
    uint64_t *gpu;
    long long *t;
    int khz, devices = 0;
    std::vector<long long> all(N);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("SKIP: no GPU\n");
        return 77;
    }
    CU(cudaSetDevice(0));
    CU(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    CU(cudaHostAlloc((void **)&h, sizeof(*h), cudaHostAllocMapped));
    CU(cudaMalloc((void **)&gpu, 4096));
    CU(cudaMalloc((void **)&t, N * sizeof(*t)));
    void (*const kernel[])(host *, uint64_t *, long long *) = {hop<BARE>, hop<TICKET>, hop<MARK>,
                                                               hop<CREDIT>, hop<FENCED>};
    const char *const name[] = {"floor of a hop, bare", "with a ticket",
                                "with a mark for the reply", "with the credit",
                                "bare, behind a fence"};
    for (int i = 0; i < 5; i++) {
        memset(h, 0, sizeof(*h));
        CU(cudaMemset(gpu, 0, 4096));
        CU(cudaMemset(t, 0, N * sizeof(*t)));
        CU(cudaDeviceSynchronize());
        std::thread cpu(serve, h);
        kernel[i]<<<1, 1>>>(h, gpu, t);
        cudaError_t e = cudaDeviceSynchronize();
        if (e != cudaSuccess) {
            fprintf(stderr, "hop: %s\n", cudaGetErrorString(e));
            _Exit(1);
        }
        cpu.join();
        CU(cudaMemcpy(all.data(), t, N * sizeof(*t), cudaMemcpyDeviceToHost));
        std::sort(all.begin(), all.end());
        printf("%-44s %10.3f us\n", name[i], (double)all[N / 2] * 1e3 / khz);
    }
    return 0;
}
