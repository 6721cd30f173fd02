/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginperf --cuda: a few figures of operations in kernels between pairs of ranks, each beside what
 * the hardware does without the library in the same run: a store and a poll for words, the copy
 * engine for blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/module.h"
#include "ginperf.h"
#include "ginperf_cuda.h"

#define MIB       ((size_t)1 << 20)
#define MAX_ROUND 100

enum limit { NO_LIMIT, WORDS, COPIES };

static const struct row {
    const char *what, *kernel;
    size_t bytes;
    unsigned threads;
    int iters, halves; /* halves: one way is that part of a round */
    enum limit limit;
} rows[] = {
    {"store and poll, one way (bare)", "raw_pingpong", 8, 1, 2000, 2, NO_LIMIT},
    {"value and poll, one way", "value_pingpong", 8, 1, 2000, 2, WORDS},
    {"put 8 B + signal, block, one way", "signal_pingpong", 8, 256, 2000, 2, WORDS},
    {"barrier, block", "barriers", 8, 256, 2000, 1, WORDS},
    {"copy engine, 1 MiB (bare)", NULL, MIB, 0, 200, 1, NO_LIMIT},
    {"put 1 MiB + signal, block, one way", "signal_pingpong", MIB, 512, 100, 2, COPIES},
    {"get 1 MiB + flush, block", "get_flush", MIB, 512, 100, 1, COPIES},
    {"put 1 MiB + quiet, thread (engine)", "put_quiet_thread", MIB, 1, 100, 1, COPIES},
    {"kernel to engine and back", "engine_hop", 8, 1, 2000, 1, NO_LIMIT},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct run {
    struct perf_cuda a;
    gin_comm_t *comm;
    char *heap; /* src | dst | words */
    uint64_t *host;
    char why[200];
};

static int fail(const struct run *r, const char *what)
{
    fprintf(stderr, "ginperf: --cuda: %s: %s\n", what, r->why[0] != 0 ? r->why : gin_last_error());
    return 1;
}

/* Whether all ranks are well; everybody calls it. */
static bool all_well(struct run *r, bool well)
{
    unsigned char mine = well, all[4096];
    int n = gin_size(r->comm);
    if (n > (int)sizeof(all) || gin_comm_allgather(r->comm, &mine, all, 1) != GIN_OK)
        return false;
    for (int i = 0; i < n; i++)
        well = well && all[i] != 0;
    return well;
}

/* Signals and words start from zero for each row. */
static int fresh(struct run *r, bool first)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.device = GIN_DEVICE_CUDA;
    reqs.contexts = 1;
    if (!first &&
        (gin_devcomm_destroy(r->comm, &r->a.dev) != GIN_OK || gin_free(r->comm, r->heap) != GIN_OK))
        return fail(r, "freeing");
    r->heap = gin_calloc_kind(r->comm, GIN_KIND_CUDA, 1, 2 * MIB + 4096);
    if (r->heap == NULL || gin_devcomm_create(r->comm, &reqs, &r->a.dev) != GIN_OK)
        return fail(r, "GPU memory and device communicator");
    if (gin_window_of(r->comm, r->heap, &r->a.src.win, &r->a.src.off) != GIN_OK ||
        gin_window_of(r->comm, r->host, &r->a.host.win, &r->a.host.off) != GIN_OK)
        return fail(r, "windows");
    r->a.dst = gin_at(r->a.src.win, r->a.src.off + MIB);
    r->a.word = gin_at(r->a.src.win, r->a.src.off + 2 * MIB);
    char *theirs = gin_ptr(r->comm, r->heap, r->a.peer);
    if (theirs == NULL)
        return fail(r, "the partner's GPU memory");
    r->a.mine = (uint64_t *)(void *)(r->heap + 2 * MIB + 64);
    r->a.theirs = (uint64_t *)(void *)(theirs + 2 * MIB + 64);
    return 0;
}

/* Nanoseconds of one operation here; negative: it failed. */
static double measure(struct run *r, const struct row *row)
{
    r->a.bytes = row->bytes;
    r->a.iters = row->iters;
    *r->a.ns = 0;
    *r->a.status = GIN_OK;
    if (gin_comm_barrier(r->comm) != GIN_OK)
        return -1;
    if (row->kernel == NULL) {
        uint64_t to = (uint64_t)(uintptr_t)r->a.theirs - 64 - MIB;
        uint64_t from = (uint64_t)(uintptr_t)r->heap;
        if (gi_module_copy(to, from, row->bytes, 10, r->why, sizeof(r->why)) != 0)
            return -1;
        double began = perf_now_ns();
        return gi_module_copy(to, from, row->bytes, row->iters, r->why, sizeof(r->why)) != 0
                   ? -1
                   : (perf_now_ns() - began) / row->iters;
    }
    if (gi_module_run(row->kernel, 1, row->threads, &r->a, r->why, sizeof(r->why)) != 0)
        return -1;
    if (*r->a.status != GIN_OK) {
        snprintf(r->why, sizeof(r->why), "%s", gin_strerror(*r->a.status));
        return -1;
    }
    return (double)*r->a.ns / row->iters / row->halves;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(const struct row *row, double *v, int n, double limit)
{
    qsort(v, (size_t)n, sizeof(*v), compare);
    double median = v[n / 2];
    printf("%-36s %9.3f us (%.3f - %.3f)", row->what, median / 1e3, v[0] / 1e3, v[n - 1] / 1e3);
    if (row->bytes >= MIB)
        printf("  %6.1f GB/s", (double)row->bytes / median);
    if (limit > 0)
        printf("  %.2f of the bare one", median / limit);
    printf("\n");
}

static int run_rows(struct run *r, int rounds)
{
    double limits[COPIES + 1] = {0}, v[MAX_ROUND];
    int rank = gin_rank(r->comm), st = 0;
    if (rank == 0)
        printf("# ranks in kernels: %d, rounds: %d; medians (lowest - highest)\n",
               gin_size(r->comm), rounds);
    for (size_t i = 0; i < ROWS && st == 0; i++) {
        const struct row *row = &rows[i];
        for (int k = 0; k < rounds && st == 0; k++) {
            st = fresh(r, i == 0 && k == 0);
            v[k] = st == 0 ? measure(r, row) : -1;
            if (!all_well(r, v[k] >= 0))
                st = v[k] < 0 ? fail(r, row->what) : 1;
        }
        if (st != 0)
            break;
        if (rank == 0)
            print(row, v, rounds, limits[row->limit]);
        if (row->limit == NO_LIMIT && row->kernel == NULL)
            limits[COPIES] = v[rounds / 2];
        else if (i == 0)
            limits[WORDS] = v[rounds / 2];
        fflush(stdout);
    }
    return st;
}

int perf_cuda_run(gin_comm_t *comm, int rounds)
{
    struct run r = {.comm = comm};
    int rank = gin_rank(comm), size = gin_size(comm);
    bool well =
        gi_module_open(perf_cuda_image, gin_team_node(comm).rank, r.why, sizeof(r.why)) == 0;
    if (!all_well(&r, well))
        return well ? 1 : fail(&r, "kernels");
    if (size % 2 != 0) {
        snprintf(r.why, sizeof(r.why), "%d ranks make no pairs", size);
        return rank == 0 ? fail(&r, "ranks") : 1;
    }
    r.a.peer = rank ^ 1;
    r.a.first = rank % 2 == 0;
    r.host = gin_calloc(comm, 1, 64);
    r.a.ns = gi_module_host_alloc(64);
    r.a.status = r.a.ns != NULL ? (int *)(void *)(r.a.ns + 1) : NULL;
    if (!all_well(&r, r.host != NULL && r.a.ns != NULL))
        return fail(&r, "memory");
    return run_rows(&r, rounds < MAX_ROUND ? rounds : MAX_ROUND);
}
