/* SPDX-License-Identifier: BSD-3-Clause */
/* The harness of GPU tests: main(), which runs the bodies in every rank of a job. */
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "tests/gpu/gpu.h"

#define DEADLINE 60u /* seconds per test, more with GPU_SLOWER */

static struct gpu_test *first, **last = &first;
static const char *running = "start-up";
static struct gpu gpu;

void gpu_register(struct gpu_test *test)
{
    *last = test;
    last = &test->next;
}

/* The test hangs: say where. What is written here was made before. */
static void on_alarm(int)
{
    fprintf(stderr, "DEADLINE in %s, rank %d; kernels last said:\n", running, gpu.rank);
    gpu_show(&gpu);
    fflush(NULL);
    _exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The sum over all ranks; -1 when one is gone. */
static int sum(gin_comm_t *comm, int mine)
{
    int size = gin_size(comm), total = 0, *all = (int *)calloc((size_t)size, sizeof(int));
    if (gin_comm_allgather(comm, &mine, all, sizeof(mine)) != GIN_OK)
        total = -1;
    for (int r = 0; total >= 0 && r < size; r++)
        total += all[r];
    free(all);
    return total;
}

/* Failed ranks, -1 when the job is broken. */
static int run(struct gpu_test *t)
{
    unsigned before = pt_failures();
    double began = now();
    running = t->name;
    pt_name_run(t->name, NULL);
    alarm(DEADLINE * (gpu_slower() > 1 ? 4 : 1));
    t->body(&gpu);
    if (gpu.report != NULL)
        gpu_done(&gpu, __FILE__);
    gpu_dev_end(&gpu);
    int bad = sum(gpu.comm, pt_failures() != before);
    alarm(0);
    if (gpu.rank == 0)
        printf("%s %s[%d] %.2f s\n", bad ? "FAIL" : "ok", t->name, gpu.size, now() - began);
    fflush(NULL);
    return bad;
}

static bool chosen(const char *name, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (strstr(name, names[i]) != NULL)
            return true;
    return n == 0;
}

int main(int argc, char **argv)
{
    char why[200] = "";
    int n_run = 0, n_failed = 0, n_skipped = 0;
    gin_comm_t *comm;
    if (argc == 2 && strcmp(argv[1], "-l") == 0) {
        for (struct gpu_test *t = first; t != NULL; t = t->next)
            printf("%s: %d ranks or more\n", t->name, t->least);
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, on_alarm);
    alarm(DEADLINE);
    if (!EXPECT_OK(gin_init(NULL, &comm)))
        return 1;
    bool wanted = gpu_none == NULL || !gpu_none(gin_rank(comm), gin_size(comm));
    if (!wanted)
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    bool have = gpu_open(&gpu, comm, -1, why, sizeof(why));
    int n_wanted = sum(comm, wanted), n_have = sum(comm, have);
    if (n_have <= 0) {
        if (gpu.rank == 0)
            printf("SKIP: %s\n", why);
        return gin_finalize(comm) == GIN_OK && n_have == 0 ? 77 : 1;
    }
    if (!EXPECT_EQ_INT(n_have, n_wanted))
        return 1;
    /* those without a GPU do as many rounds as the others */
    gpu.sharers = sum(comm, gpu.sharers) / n_have;
    unsigned long long seed = gpu.rank == 0 ? pt_seed() : 0;
    unsigned long long *seeds = (unsigned long long *)calloc((size_t)gpu.size, sizeof(seed));
    if (!EXPECT_OK(gin_comm_allgather(comm, &seed, seeds, sizeof(seed))))
        return 1;
    gpu.seed = seeds[0];
    free(seeds);
    for (struct gpu_test *t = first; t != NULL; t = t->next) {
        if (!chosen(t->name, argc - 1, argv + 1))
            continue;
        n_run++;
        if (gpu.size < t->least) {
            n_skipped++;
            if (gpu.rank == 0)
                printf("SKIP %s: needs %d ranks\n", t->name, t->least);
            continue;
        }
        int bad = run(t);
        n_failed += bad != 0;
        if (bad < 0)
            return 1;
    }
    running = "the end";
    alarm(DEADLINE);
    gpu_close(&gpu);
    n_failed += !EXPECT_OK(gin_finalize(comm));
    if (n_run == 0)
        fprintf(stderr, "no test of that name\n");
    return n_failed != 0 || n_run == 0 ? 1 : n_skipped == n_run ? 77 : 0;
}
