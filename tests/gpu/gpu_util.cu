/* SPDX-License-Identifier: BSD-3-Clause */
/* The harness of GPU tests: a rank and its GPU. */
#include "tests/gpu/gpu.h"

/* A kernel that waits for another must not wait for that one's code to be loaded. */
__attribute__((constructor)) static void load_at_once(void)
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    /* nor behind that one in a queue to the GPU that two streams share */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
}

int gpu_count(char *why, size_t n)
{
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess)
        count = 0;
    if (count == 0)
        snprintf(why, n, "no GPU: %s", e != cudaSuccess ? cudaGetErrorString(e) : "none found");
    return count;
}

/* Ranks of this machine, whatever hosts they were told to be: made-up ones share its GPUs. */
struct seat {
    char machine[40];
    int devices;
};

static struct seat seat_of(int devices)
{
    struct seat s = {};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f == NULL || fgets(s.machine, sizeof(s.machine), f) == NULL)
        snprintf(s.machine, sizeof(s.machine), "unknown");
    if (f != NULL)
        fclose(f);
    s.devices = devices;
    return s;
}

/* My turn among those that want one of its GPUs, and how many they are. Collective. */
static int take_turn(const struct gpu *gp, int *takers)
{
    struct seat mine = seat_of(gp->devices);
    struct seat *all = (struct seat *)calloc((size_t)gp->size, sizeof(mine));
    int turn = 0;
    *takers = 0;
    if (!EXPECT_OK(gin_comm_allgather(gp->comm, &mine, all, sizeof(mine))))
        memset(all, 0, (size_t)gp->size * sizeof(mine));
    for (int r = 0; r < gp->size; r++)
        if (all[r].devices > 0 && strcmp(all[r].machine, mine.machine) == 0) {
            turn += r < gp->rank;
            ++*takers;
        }
    free(all);
    return turn;
}

bool gpu_open(struct gpu *gp, gin_comm_t *comm, int device, char *why, size_t n)
{
    int takers = 1;
    memset(gp, 0, sizeof(*gp));
    gp->comm = comm;
    gp->rank = gin_rank(comm);
    gp->size = gin_size(comm);
    gp->device = -1;
    gp->devices = gpu_count(why, n);
    int turn = device >= 0 ? device : take_turn(gp, &takers);
    if (gp->devices == 0)
        return false;
    gp->device = device >= 0 ? device : turn % gp->devices;
    gp->sharers = (takers + gp->devices - 1) / gp->devices;
    CU(cudaSetDevice(gp->device));
    CU(cudaFree(NULL));
    CU(cudaStreamCreateWithFlags(&gp->stream, cudaStreamNonBlocking));
    /* host memory, so that a hanging kernel's report can be read */
    CU(cudaHostAlloc((void **)&gp->report, sizeof(*gp->report), cudaHostAllocPortable));
    memset(gp->report, 0, sizeof(*gp->report));
    return true;
}

void gpu_close(struct gpu *gp)
{
    if (gp->device < 0)
        return;
    CU(cudaStreamDestroy(gp->stream));
    CU(cudaFreeHost(gp->report));
    gp->report = NULL;
}

bool gpu_net(void)
{
    return getenv("GPU_NET") != NULL && *getenv("GPU_NET") != 0;
}

bool gpu_net_host(void)
{
    return gpu_net() && strcmp(getenv("GPU_NET"), "host") == 0;
}

bool gpu_net_skips(const struct gpu *gp, const char *test)
{
    if (gpu_net() && gp->rank == 0)
        printf("SKIP %s: it takes plain loads and stores of peers' memory\n", test);
    return gpu_net();
}

void *gpu_private(size_t bytes)
{
    void *p = NULL;
    if (!gpu_net_host()) {
        CU(cudaMalloc((char **)&p, bytes));
        return p;
    }
    CU(cudaHostAlloc((char **)&p, bytes, cudaHostAllocPortable));
    return p;
}

void gpu_private_free(void *p)
{
    if (gpu_net_host())
        CU(cudaFreeHost(p));
    else
        CU(cudaFree(p));
}

void gpu_fill(void *p, int byte, size_t bytes)
{
    if (gpu_net_host()) {
        memset(p, byte, bytes);
        return;
    }
    CU(cudaMemset(p, byte, bytes));
    CU(cudaDeviceSynchronize());
}

void gpu_reqs(gin_devcomm_reqs_t *reqs)
{
    gin_devcomm_reqs_init(reqs);
    reqs->device = GIN_DEVICE_CUDA;
    if (gpu_net())
        reqs->paths = GIN_PATH_SELF | GIN_PATH_NET;
}

bool gpu_dev(struct gpu *gp, gin_devcomm_reqs_t *reqs)
{
    gin_devcomm_reqs_t mine;
    gpu_reqs(&mine);
    return EXPECT_OK(gin_devcomm_create(gp->comm, reqs != NULL ? reqs : &mine, &gp->dev));
}

bool gpu_dev_end(struct gpu *gp)
{
    bool ok = gp->dev.magic == 0 || EXPECT_OK(gin_devcomm_destroy(gp->comm, &gp->dev));
    memset(&gp->dev, 0, sizeof(gp->dev));
    return ok;
}

void *gpu_symmetric(struct gpu *gp, gin_kind_t kind, size_t bytes, gin_at_t *at)
{
    void *p = gin_calloc_kind(gp->comm, gpu_net_host() ? GIN_KIND_HOST : kind, 1, bytes);
    if (p == NULL) {
        FAIL("no symmetric memory of %zu bytes: %s", bytes, gin_last_error());
        return NULL;
    }
    gin_at_t place = gin_at(gin_window_none(), 0);
    EXPECT_OK(gin_window_of(gp->comm, p, &place.win, &place.off));
    if (at != NULL)
        *at = place;
    return p;
}

bool gpu_done(struct gpu *gp, const char *file)
{
    CU(cudaStreamSynchronize(gp->stream));
    CU(cudaGetLastError());
    struct gpu_report *r = gp->report;
    unsigned n = r->failures;
    for (unsigned i = 0; i < n && i < GPU_RECORDS; i++)
        pt_fail(file, (int)r->record[i].line,
                "rank %d, block %u, thread %u: %lld, not %lld (0x%llx, 0x%llx)", gp->rank,
                r->record[i].block, r->record[i].thread, r->record[i].got, r->record[i].want,
                (unsigned long long)r->record[i].got, (unsigned long long)r->record[i].want);
    if (n > GPU_RECORDS)
        pt_fail(file, 0, "rank %d: %u failures of kernels in all", gp->rank, n);
    memset(r, 0, sizeof(*r));
    return n == 0;
}

int gpu_slower(void)
{
    const char *text = getenv("GPU_SLOWER");
    int n = text != NULL ? atoi(text) : 1;
    return n > 1 ? n : 1;
}

int gpu_cases(const struct gpu *gp, int n, int least)
{
    n /= gpu_slower() * (gp->sharers > 1 ? 6 : 1);
    return n > least ? n : least;
}

/* Processes on one GPU take turns of milliseconds, so every hop between them costs that much. */
int gpu_rounds(const struct gpu *gp, int n)
{
    return gpu_cases(gp, gp->sharers > 1 ? n / 10 : n, n < 4 ? n : 4);
}

void gpu_show(const struct gpu *gp)
{
    const struct gpu_report *r = gp->report;
    if (r == NULL)
        return;
    for (unsigned i = 0; i < GPU_STEPS; i++)
        if (r->step[i] != 0)
            fprintf(stderr, "  rank %d, block %u: line %llu, step %llu\n", gp->rank, i,
                    r->step[i] >> 40, r->step[i] & 0xffffffffffull);
    for (unsigned i = 0; i < r->failures && i < GPU_RECORDS; i++)
        fprintf(stderr, "  rank %d, block %u, thread %u: line %u: %lld, not %lld\n", gp->rank,
                r->record[i].block, r->record[i].thread, r->record[i].line, r->record[i].got,
                r->record[i].want);
}
