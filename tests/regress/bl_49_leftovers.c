/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BL-49: all ranks of a job are killed in the middle of it; the next one starts as if nothing had
 * been. Neither that nor many good runs leave files.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/mp.h"

/* Entries of a folder that look like ours. */
static int entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "gin", 3) == 0;
    if (d != NULL)
        closedir(d);
    return n;
}

static int leftovers(void)
{
    return entries("/dev/shm") + entries("/tmp") + entries("/run") + entries(".");
}

/* A rank that works until it is killed, or only for a while. */
static int work(struct mp *mp, bool forever)
{
    uint64_t *running = (uint64_t *)(void *)mp->share;
    struct mp_group group; /* not that of the test's ranks */
    gin_config_t config;
    gin_comm_t *comm = NULL;
    gin_devcomm_t dev;
    gin_t g;
    mp_group(mp, &group, &config, 0, mp->rank, mp->size);
    config.heap_size = mp->config.heap_size;
    if (gin_init(&config, &comm) != GIN_OK || gin_devcomm_create(comm, NULL, &dev) != GIN_OK ||
        gin_open(&dev, 0, &g) != GIN_OK)
        return 1;
    char *p = gin_calloc(comm, 1, 4096), local[4096];
    memset(local, mp->rank, sizeof(local));
    for (int i = 0; i < 10 || forever; i++) {
        if (p == NULL ||
            gin_put(&g, gin_thread(), gin_world(&g), (mp->rank + 1) % mp->size, gin_at_ptr(&g, p),
                    gin_at_local(local), sizeof(local), gin_weak_inc(0)) != GIN_OK)
            return 2;
        if (i == 5)
            __atomic_fetch_add(running, 1, __ATOMIC_RELEASE);
    }
    if (gin_comm_barrier(comm) != GIN_OK || gin_devcomm_destroy(comm, &dev) != GIN_OK)
        return 3;
    return gin_finalize(comm) != GIN_OK;
}

/* Ranks that the test can do without. */
MP_TEST_OPT(bl_49, .ranks = "2 4", .bare = true, .only = MP_PROCS, .heap_size = 1 << 20)
{
    int before = leftovers(), runs = 100 / MP_FACTOR / mp->size;
    uint64_t *running = (uint64_t *)(void *)mp->share;
    for (int run = 0; run < runs; run++) {
        bool kills = run % 10 == 3;
        mp_step(mp, "run %d", run);
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        if (mp->rank == 0)
            *running = 0;
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        pid_t child = fork(); /* each rank of the test has one rank of the job */
        if (child == 0)
            _exit(work(mp, kills));
        while (kills && __atomic_load_n(running, __ATOMIC_ACQUIRE) < (uint64_t)mp->size)
            usleep(500);
        EXPECT_EQ_INT(mp_barrier(mp), 0);
        if (kills)
            kill(child, SIGKILL);
        int status = -1;
        EXPECT_EQ_INT(waitpid(child, &status, 0), child);
        if (!kills && !EXPECT_EQ_INT(status, 0))
            return;
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (mp->rank == 0)
        EXPECT(leftovers() <= before);
}
