/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process waits for on a GPU on which another process' kernel waits: two processes, one GPU,
 * nothing of the library. The one holds the GPU in one of several ways; the other measures what an
 * engine does meanwhile: copies by the copy engine, words written by a stream, an empty kernel.
 * Then kernels of both hand a word of host memory to each other, which needs both to run.
 *
 * The guess that it is to prove or not: without MPS the driver gives the whole compute engine to
 * one process for a slice of some 2 ms, and a kernel that polls keeps it to the slice's end,
 * pausing or not. A hop between kernels of two processes then costs a slice; what goes through the
 * queue of the compute engine, such as words written by a stream, and perhaps the start of a copy,
 * costs the holder's slice, too; the copy engines' own work goes on. If so, staging between two
 * processes on one GPU is bound by slices, and only kernels that end, or MPS, help.
 *
 * What it tells: whether processes take turns as wholes, so that copies and stream operations
 * of one wait as long as a kernel of the other polls, or whether only their kernels do; and whether
 * a kernel that pauses, or ends early, gives the GPU away sooner. CUDA's multi-process service
 * (MPS) would let both run at once; where the daemon is, run this under it, too.
 */
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cuda.h>
#include <cuda_runtime.h>

#define CU(call)                                                               \
    do {                                                                       \
        cudaError_t e_ = (call);                                               \
        if (e_ != cudaSuccess) {                                               \
            fprintf(stderr, "turns: %s: %s\n", #call, cudaGetErrorString(e_)); \
            _Exit(1);                                                          \
        }                                                                      \
    } while (0)

enum hold { IDLE, POLLS, PAUSES, FULL, SHORT, HOLDS, BY_TURNS, BY_TURNS_PAUSING, END };
static const char *const hold_names[HOLDS] = {"idle", "polls", "pauses", "full grid", "50 us each"};

#define HOPS 40
#define MIB  ((size_t)1 << 20)

/* Between the processes. */
struct shared {
    std::atomic<int> wanted, have; /* what the holder is to do, and does */
    alignas(4096) unsigned long long word[512];
};

static double now_us(void)
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double, std::micro>(clock::now().time_since_epoch()).count();
}

/* ---- kernels ---- */

__global__ void hold_on(const volatile unsigned *stop, unsigned pause, long long clocks)
{
    long long began = clock64();
    while (*stop == 0 && (clocks == 0 || clock64() - began < clocks))
        if (pause != 0)
            __nanosleep(pause);
}

__global__ void nothing(void)
{
}

/* Mine are the numbers of one parity. */
__global__ void by_turns(volatile unsigned long long *word, unsigned long long first,
                         unsigned pause)
{
    for (unsigned long long i = first; i < 2 * HOPS; i += 2) {
        while (*word != i)
            if (pause != 0)
                __nanosleep(pause);
        __threadfence_system();
        *word = i + 1;
    }
}

static volatile unsigned long long *mapped(struct shared *sh)
{
    void *p;
    CU(cudaHostRegister(sh->word, sizeof(sh->word), cudaHostRegisterMapped));
    CU(cudaHostGetDevicePointer(&p, sh->word, 0));
    return (volatile unsigned long long *)p;
}

/* ---- who holds the GPU ---- */

static void hold(struct shared *sh, int how, unsigned *stop, cudaStream_t s)
{
    int khz;
    CU(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    *stop = 0;
    if (how != IDLE && how != SHORT)
        hold_on<<<how == FULL ? 1024 : 1, how == FULL ? 256 : 1, 0, s>>>(
            stop, how == PAUSES ? 1000u : 0u, 0);
    usleep(20000); /* it runs */
    sh->have = how;
    while (sh->wanted == how) {
        if (how != SHORT) {
            usleep(100);
            continue;
        }
        for (int i = 0; i < 8; i++) /* a few wait in the stream, so it does not run dry */
            hold_on<<<1, 1, 0, s>>>(stop, 0, khz / 20);
        CU(cudaStreamSynchronize(s));
    }
    *(volatile unsigned *)stop = 1;
    CU(cudaStreamSynchronize(s));
}

static int holder(struct shared *sh)
{
    unsigned *stop;
    cudaStream_t s;
    int devices = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        sh->have = END;
        return 0;
    }
    CU(cudaHostAlloc((void **)&stop, 64, cudaHostAllocMapped));
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    volatile unsigned long long *word = mapped(sh);
    CU(cudaFree(0));
    for (int how; (how = sh->wanted) != END;) {
        if (how < HOLDS) {
            hold(sh, how, stop, s);
            continue;
        }
        by_turns<<<1, 1, 0, s>>>(word, 1, how == BY_TURNS_PAUSING ? 1000 : 0);
        sh->have = how;
        CU(cudaStreamSynchronize(s));
        while (sh->wanted == how)
            usleep(100);
    }
    return 0;
}

static bool become(struct shared *sh, int how)
{
    sh->wanted = how;
    while (sh->have != how && sh->have != END)
        usleep(100);
    return sh->have == how;
}

/* ---- who measures ---- */

enum op { KERNEL, DOWN_4K, UP_4K, DOWN_MIB, UP_MIB, GPU_MIB, WRITE, COPY_AND_WRITE, OPS };
static const char *const op_names[OPS] = {"an empty kernel",
                                          "copy 4 KiB, GPU to host",
                                          "copy 4 KiB, host to GPU",
                                          "copy 1 MiB, GPU to host",
                                          "copy 1 MiB, host to GPU",
                                          "copy 1 MiB, GPU to GPU",
                                          "word written by the stream",
                                          "copy 4 KiB and a word, as engines do"};

struct tools {
    cudaStream_t s;
    char *gpu, *host;
    uint64_t *word; /* of the host */
    uint64_t word_at, written;
    decltype(&cuStreamWriteValue64) write;
};

static void write_word(struct tools *t)
{
    t->written++;
    if (t->write((CUstream)t->s, t->word_at, t->written, 0) != CUDA_SUCCESS) {
        fprintf(stderr, "turns: cuStreamWriteValue64 fails\n");
        _Exit(1);
    }
    while (__atomic_load_n(t->word, __ATOMIC_ACQUIRE) != t->written) {
    }
}

static void copy(struct tools *t, int op)
{
    size_t n = op == DOWN_4K || op == UP_4K || op == COPY_AND_WRITE ? 4096 : MIB;
    if (op == GPU_MIB)
        CU(cudaMemcpyAsync(t->gpu + MIB, t->gpu, n, cudaMemcpyDeviceToDevice, t->s));
    else if (op == UP_4K || op == UP_MIB)
        CU(cudaMemcpyAsync(t->gpu, t->host, n, cudaMemcpyHostToDevice, t->s));
    else
        CU(cudaMemcpyAsync(t->host, t->gpu, n, cudaMemcpyDeviceToHost, t->s));
}

static double once(struct tools *t, int op)
{
    double began = now_us();
    if (op == KERNEL)
        nothing<<<1, 1, 0, t->s>>>();
    else if (op != WRITE)
        copy(t, op);
    if (op == WRITE || op == COPY_AND_WRITE)
        write_word(t);
    else
        CU(cudaStreamSynchronize(t->s));
    return now_us() - began;
}

static double middle(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

static double measured(struct tools *t, int op)
{
    std::vector<double> v;
    double end = now_us() + 400e3;
    once(t, op);
    for (int i = 0; i < 200 && (i < 5 || now_us() < end); i++) {
        v.push_back(once(t, op));
        usleep(500); /* not one behind the other, as in a stream of its own */
    }
    return middle(v);
}

static double hop(struct shared *sh, struct tools *t, volatile unsigned long long *word, int how)
{
    __atomic_store_n(&sh->word[0], ~0ull, __ATOMIC_RELEASE);
    if (!become(sh, how))
        _Exit(1);
    usleep(20000);
    double began = now_us();
    __atomic_store_n(&sh->word[0], 0ull, __ATOMIC_RELEASE);
    by_turns<<<1, 1, 0, t->s>>>(word, 0, how == BY_TURNS_PAUSING ? 1000 : 0);
    CU(cudaStreamSynchronize(t->s));
    while (__atomic_load_n(&sh->word[0], __ATOMIC_ACQUIRE) != 2 * HOPS)
        usleep(10);
    return (now_us() - began) / (2 * HOPS);
}

static void report(double us[HOLDS][OPS])
{
    printf("%-38s", "us; the other process' kernel:");
    for (int h = 0; h < HOLDS; h++)
        printf(" %12s", hold_names[h]);
    printf("\n");
    for (int op = 0; op < OPS; op++) {
        printf("%-38s", op_names[op]);
        for (int h = 0; h < HOLDS; h++)
            printf(" %12.1f", us[h][op]);
        printf("\n");
    }
    double copies = us[POLLS][DOWN_4K] / us[IDLE][DOWN_4K],
           words = us[POLLS][WRITE] / us[IDLE][WRITE];
    double kernels = us[POLLS][KERNEL] / us[IDLE][KERNEL];
    printf(
        "beside a kernel that polls an empty kernel takes %.0f, a copy %.0f, a word %.0f times as "
        "long\n",
        kernels, copies, words);
    printf("=> %s\n", copies < 3 && words < 3 ? "only kernels take turns: the engine does not wait"
                      : copies < 3            ? "copies do not wait, words written by streams do"
                                              : "processes take turns as wholes");
}

int main(void)
{
    double us[HOLDS][OPS];
    struct shared *sh = (struct shared *)mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct tools t = {};
    void *entry = NULL;
    alarm(100);
    sh->have = -1;
    pid_t child = fork(); /* before CUDA is used */
    if (child == 0)
        _exit(holder(sh));
    if (!become(sh, IDLE)) {
        printf("SKIP: no GPU\n");
        return 77;
    }
    cudaDriverEntryPointQueryResult found;
    CU(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry, 12000, cudaEnableDefault,
                                        &found));
    t.write = (decltype(t.write))entry;
    CU(cudaStreamCreateWithFlags(&t.s, cudaStreamNonBlocking));
    CU(cudaMalloc(&t.gpu, 2 * MIB));
    CU(cudaHostAlloc((void **)&t.host, MIB, cudaHostAllocPortable));
    CU(cudaHostAlloc((void **)&t.word, 64, cudaHostAllocMapped));
    *t.word = 0;
    t.word_at = (uint64_t)(uintptr_t)t.word;
    volatile unsigned long long *word = mapped(sh);
    for (int h = 0; h < HOLDS; h++) {
        if (!become(sh, h))
            return 1;
        for (int op = 0; op < OPS; op++)
            us[h][op] = measured(&t, op);
    }
    report(us);
    printf("a word handed from kernel to kernel: %.1f us each\n", hop(sh, &t, word, BY_TURNS));
    printf("the same by kernels that pause: %.1f us\n", hop(sh, &t, word, BY_TURNS_PAUSING));
    sh->wanted = END;
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
