/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-44: joining and leaving again and again, in other groups, nested, without anything left. */
#include <pthread.h>
#include <string.h>
#include "tests/mp.h"

/* A little of everything on a communicator of this rank and size. */
static void use(gin_comm_t *comm, int rank, int size)
{
    gin_devcomm_t dev;
    gin_t g;
    EXPECT_EQ_INT(gin_rank(comm), rank);
    EXPECT_EQ_INT(gin_size(comm), size);
    uint64_t *p = gin_calloc(comm, (size_t)size, 8);
    if (!EXPECT(p != NULL) || !EXPECT_OK(gin_devcomm_create(comm, NULL, &dev)))
        return;
    EXPECT_OK(gin_open(&dev, 0, &g));
    EXPECT_EQ_INT(gin_world(&g).size, size);
    for (int to = 0; to < size; to++)
        EXPECT_OK(gin_put_value(&g, gin_thread(), gin_world(&g), to, gin_at_ptr(&g, p + rank),
                                (uint64_t)(size * 1000 + rank), 8, gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, (uint64_t)size));
    for (int r = 0; r < size; r++)
        EXPECT_EQ_U64(p[r], (uint64_t)(size * 1000 + r));
    EXPECT_OK(gin_devcomm_destroy(comm, &dev));
    EXPECT_OK(gin_free(comm, p));
}

/* All, then two groups, then single ranks, then all again. */
MP_TEST_OPT(other_sizes, .ranks = "1 2 4 5", .bare = true, .heap_size = 1 << 18)
{
    for (int round = 0; round < 3; round++) {
        struct mp_group group;
        gin_config_t config;
        gin_comm_t *comm = NULL;
        mp_step(mp, "all, round %d", round);
        EXPECT_OK(gin_init(&mp->config, &comm));
        use(comm, mp->rank, mp->size);
        EXPECT_OK(gin_finalize(comm));

        int color = mp->rank % 2, n = (mp->size + 1 - color) / 2;
        mp_step(mp, "half, round %d", round);
        mp_group(mp, &group, &config, color, mp->rank / 2, n);
        EXPECT_OK(gin_init(&config, &comm));
        use(comm, mp->rank / 2, n);
        EXPECT_OK(gin_finalize(comm));

        mp_step(mp, "alone, round %d", round);
        mp_group(mp, &group, &config, mp->rank, 0, 1);
        EXPECT_OK(gin_init(&config, &comm));
        use(comm, 0, 1);
        EXPECT_OK(gin_finalize(comm));
        EXPECT_OK(gin_init(NULL, &comm)); /* no launcher: a job of one */
        use(comm, 0, 1);
        EXPECT_OK(gin_finalize(comm));
        EXPECT_EQ_INT(mp_barrier(mp), 0); /* groups of one name may not overlap */
    }
}

/* What fails on one rank before the first exchange is no wait for the others. */
MP_TEST_OPT(one_has_no_log_file, .ranks = "2 3", .only = MP_PROCS, .bare = true)
{
    gin_comm_t *comm = NULL;
    if (mp->rank == 1)
        setenv("GINSHMEM_LOG_FILE", "/no/such/folder/log", 1);
    EXPECT_FAILS(gin_init(&mp->config, &comm), GIN_EINVAL,
                 mp->rank == 1 ? "/no/such/folder/log" : "rank 1 has failed");
}

/* Several at once, taken down in another order. */
MP_TEST_OPT(nested, .ranks = "1 2 4", .bare = true, .heap_size = 1 << 18)
{
    struct mp_group group;
    gin_config_t config;
    gin_comm_t *all = NULL, *half = NULL, *alone = NULL, *again = NULL;
    int color = mp->rank % 2, n = (mp->size + 1 - color) / 2;
    mp_group(mp, &group, &config, color, mp->rank / 2, n);
    EXPECT_OK(gin_init(&mp->config, &all));
    EXPECT_OK(gin_init(&config, &half));
    use(half, mp->rank / 2, n);
    use(all, mp->rank, mp->size);
    EXPECT_OK(gin_init(NULL, &alone));        /* no launcher: a job of one */
    EXPECT_OK(gin_init(&mp->config, &again)); /* the same ranks once more */
    use(alone, 0, 1);
    use(again, mp->rank, mp->size);
    use(half, mp->rank / 2, n);
    EXPECT_OK(gin_finalize(all));
    use(again, mp->rank, mp->size);
    use(half, mp->rank / 2, n);
    EXPECT_OK(gin_finalize(half));
    use(alone, 0, 1);
    EXPECT_OK(gin_finalize(again));
    EXPECT_OK(gin_finalize(alone));
}

static void count(struct mp *mp, int *fds, int *maps)
{
    *fds = *maps = 0;
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (!mp->threads || mp->rank == 0) {
        *fds = mp_count_fds();
        *maps = mp_count_maps();
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
}

MP_TEST_OPT(a_hundred_cycles, .ranks = "1 2 4", .bare = true, .heap_size = 1 << 18)
{
    int fds = 0, maps = 0, fds2, maps2;
    for (int i = 0; i < 100; i++) {
        gin_comm_t *comm = NULL;
        mp_step(mp, "cycle %d", i);
        if (i == 5)
            count(mp, &fds, &maps);
        if (!EXPECT_OK(gin_init(&mp->config, &comm)))
            return;
        if (i % 3 != 2)
            use(comm, mp->rank, mp->size);
        else if (i % 2) /* nothing but a heap, which is left to finalize */
            EXPECT(gin_malloc(comm, 1000) != NULL);
        if (!EXPECT_OK(gin_finalize(comm)))
            return;
    }
    count(mp, &fds2, &maps2);
    EXPECT_EQ_INT(fds2, fds);
    EXPECT_EQ_INT(maps2, maps);
}

/* Threads of one process each run jobs of one rank of their own. */
static void *own_jobs(void *arg)
{
    for (int i = 0; i < 20; i++) {
        gin_comm_t *comm = NULL;
        if (!EXPECT_OK(gin_init(NULL, &comm)))
            break;
        use(comm, 0, 1);
        EXPECT_OK(gin_finalize(comm));
    }
    return arg;
}

MP_TEST_OPT(many_jobs_of_one_process, .ranks = "1", .bare = true, .heap_size = 1 << 18)
{
    pthread_t thread[6];
    (void)mp;
    for (int i = 0; i < 6; i++)
        EXPECT_EQ_INT(pthread_create(&thread[i], NULL, own_jobs, NULL), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
}

/* A failed init leaves nothing, and a later one works. */
MP_TEST_OPT(after_a_failed_init, .ranks = "1 2", .bare = true, .heap_size = 1 << 18)
{
    int fds = 0, maps = 0, fds2, maps2;
    gin_comm_t *comm = NULL;
    gin_config_t bad = mp->config;
    bad.rank = mp->size;
    count(mp, &fds, &maps);
    for (int i = 0; i < 20; i++) {
        EXPECT_FAILS(gin_init(&bad, &comm), GIN_EINVAL, "gin_init");
        EXPECT(comm == NULL);
    }
    if (mp->size > 1) {
        gin_config_t differs = mp->config;
        differs.heap_size = (uint64_t)(mp->rank + 1) << 20;
        EXPECT_FAILS(gin_init(&differs, &comm), GIN_EMISMATCH, "heap");
        if (!mp->threads) {
            setenv("GINSHMEM_HUGEPAGES", mp->rank == 0 ? "no" : "try", 1);
            EXPECT_FAILS(gin_init(&mp->config, &comm), GIN_EMISMATCH, "rank 0 has no, rank 1");
            EXPECT_HAS(gin_last_error(), "has try; set GINSHMEM_HUGEPAGES");
            unsetenv("GINSHMEM_HUGEPAGES");
            setenv("GINSHMEM_PEER_TIMEOUT", mp->rank == 0 ? "60s" : "61s", 1);
            EXPECT_FAILS(gin_init(&mp->config, &comm), GIN_EMISMATCH,
                         "GINSHMEM_PEER_TIMEOUT alike");
            unsetenv("GINSHMEM_PEER_TIMEOUT");
        }
    }
    count(mp, &fds2, &maps2);
    EXPECT_EQ_INT(fds2, fds);
    if (mp_up(mp))
        use(mp->comm, mp->rank, mp->size);
}
