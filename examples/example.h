/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples share: ending on a failing call, and one summary line at the end. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <ginshmem.h>

/* Of functions that kernels call, too. */
#ifdef __CUDACC__
#define BOTH __host__ __device__ static inline
#else
#define BOTH static inline
#endif

/* Go on only if the call succeeded. The other ranks notice that this one is gone and end too. */
#define CHECK(call) check((call), #call)
static inline void check(int status, const char *what)
{
    if (status == GIN_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, gin_status_name(status), gin_last_error());
    exit(1);
}

/* The same for calls that return pointers. */
#define CHECK_PTR(call) check_ptr((call), #call)
static inline void *check_ptr(void *p, const char *what)
{
    if (p == NULL)
        check(gin_last_status(), what);
    return p;
}

/* Rank 0 prints how it reaches the heap of each rank: the ranks of the first path, the second ...
 */
static inline void show_paths(gin_comm_t *comm)
{
    static const struct {
        gin_path_t path;
        const char *name;
    } paths[] = {{GIN_PATH_SELF, "self"},
                 {GIN_PATH_LSA, "load and store"},
                 {GIN_PATH_CMA, "copies between processes"},
                 {GIN_PATH_NET, "network"},
                 {GIN_PATH_NONE, "no path"}};
    gin_window_t heap = gin_heap_window(comm, GIN_KIND_HOST);
    if (gin_rank(comm) != 0)
        return;
    printf("paths of rank 0:");
    for (size_t i = 0, n, all = 0; i < sizeof(paths) / sizeof(paths[0]); i++, all += n) {
        n = 0;
        for (int peer = 0; peer < gin_size(comm); peer++)
            if (gin_window_path(comm, heap, peer) == paths[i].path)
                printf("%s %d", n++ > 0 ? "" : all > 0 ? ", to" : " to", peer);
        if (n > 0)
            printf(" by %s", paths[i].name);
    }
    gin_caps_t caps = {.size = sizeof(caps)};
    CHECK(gin_query(comm, &caps));
    if (caps.cap[GIN_CAP_NET].have == 1)
        printf("; network: %s", caps.cap[GIN_CAP_NET].reason);
    printf("\n");
}

/* Has each host as many ranks as the others? Then each rail has a rank on each of them. */
static inline int hosts_are_even(gin_comm_t *comm)
{
    int even = 1, size = gin_size(comm), mine[2], *all;
    mine[0] = gin_team_lsa(comm).size;
    mine[1] = gin_team_rail(comm).size;
    all = (int *)malloc((size_t)size * sizeof(mine));
    CHECK(gin_comm_allgather(comm, mine, all, sizeof(mine)));
    for (int r = 0; r < size; r++)
        even = even && all[2 * r] == mine[0] && all[2 * r + 1] * mine[0] == size;
    free(all);
    return even;
}

/*
 * Rank 0 prints "text: n ranks, OK" if all ranks say so. Leaves the job and returns what main()
 * returns.
 */
static inline int finish(gin_comm_t *comm, int ok, const char *text)
{
    int rank = gin_rank(comm), size = gin_size(comm), bad = 0;
    int *all = (int *)calloc((size_t)size, sizeof(*all));
    CHECK(gin_comm_allgather(comm, &ok, all, sizeof(ok)));
    for (int r = 0; r < size; r++)
        bad += !all[r];
    free(all);
    if (rank == 0)
        printf("%s: %d rank%s, %s\n", text, size, size == 1 ? "" : "s", bad == 0 ? "OK" : "FAILED");
    CHECK(gin_finalize(comm));
    return bad != 0;
}

#endif
