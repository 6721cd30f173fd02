/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BL-50, BL-56: tight limits and failing system calls end in a status with a text that helps, on
 * all ranks, never in a signal; and a second try without them works.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/os.h"
#include "tests/mp.h"

/* Lower a soft limit, so that it can be raised again. */
static bool limit(int which, rlim_t to, struct rlimit *old)
{
    struct rlimit r;
    if (getrlimit((__rlimit_resource_t)which, old) != 0)
        return false;
    r = *old;
    r.rlim_cur = to < r.rlim_max ? to : r.rlim_max;
    return setrlimit((__rlimit_resource_t)which, &r) == 0;
}

static void restore(int which, const struct rlimit *old)
{
    EXPECT_EQ_INT(setrlimit((__rlimit_resource_t)which, old), 0);
}

/* Everything that takes resources. The first failing status, with its text as the last error. */
static int whole_life(struct mp *mp, uint64_t heap, uint64_t user_bytes)
{
    gin_config_t config = mp->config;
    gin_comm_t *comm = NULL;
    gin_devcomm_t dev;
    gin_window_t win;
    static char user[65536];
    config.heap_size = heap;
    int st = gin_init(&config, &comm);
    if (st != GIN_OK) {
        EXPECT(comm == NULL);
        return st;
    }
    char text[600];
    char *p = gin_malloc(comm, heap / 2);
    st = p != NULL ? GIN_OK : gin_last_status();
    if (p != NULL) {
        memset(p, 1, heap / 2); /* the pages are there */
        st = gin_devcomm_create(comm, NULL, &dev);
    }
    if (st == GIN_OK)
        st = gin_window_register(comm, user, user_bytes, 0, &win);
    if (st == GIN_OK) {
        char *q = gin_malloc(comm, heap * 2); /* grows */
        st = q != NULL ? GIN_OK : gin_last_status();
        if (q != NULL)
            memset(q, 1, heap * 2);
    }
    snprintf(text, sizeof(text), "%s", gin_last_error());
    int end = gin_finalize(comm);
    if (st == GIN_OK && end != GIN_OK)
        return end;
    if (st != GIN_OK)
        EXPECT_OK(end);
    if (st != GIN_OK && text[0] == 0)
        FAIL("%s without a text", gin_status_name(st));
    /* finalize may have its own words */
    snprintf(mp->share + mp->rank * 600, 600, "%s", text);
    return st;
}

static const char *said(struct mp *mp)
{
    return mp->share + mp->rank * 600;
}

/* Same outcome on all ranks. */
static bool together(struct mp *mp, int st, const char *what)
{
    int all[mp->size];
    EXPECT_EQ_INT(mp_allgather(mp, &st, all, sizeof(st)), 0);
    for (int r = 0; r < mp->size; r++)
        if ((all[r] == GIN_OK) != (all[0] == GIN_OK)) {
            FAIL("%s: rank %d got %s, rank 0 %s", what, r, gin_status_name(all[r]),
                 gin_status_name(all[0]));
            return false;
        }
    return true;
}

static const struct call {
    enum gi_os_call call;
    const char *name;
    int err;
} calls[] = {
    {GI_OS_MEMFD, "memfd", EMFILE},         {GI_OS_MEMFD, "memfd", ENOMEM},
    {GI_OS_FALLOCATE, "fallocate", ENOSPC}, {GI_OS_FALLOCATE, "fallocate", ENOMEM},
    {GI_OS_MMAP, "mmap", ENOMEM},           {GI_OS_SOCKET, "socket", EMFILE},
    {GI_OS_SOCKET, "socket", EACCES},       {GI_OS_PIDFD, "pidfd", ENOSYS},
    {GI_OS_PIDFD, "pidfd", EMFILE},         {GI_OS_CMA, "process_vm", EPERM},
    {GI_OS_THREAD, "thread", EAGAIN},
};

/* The n-th call of each kind fails on the last rank, once; until there is no n-th call. */
MP_TEST_OPT(the_nth_call_fails, .ranks = "1 2 3", .bare = true, .only = MP_PROCS,
            .env = "GINSHMEM_HEAP_CHUNK=1M GINSHMEM_INIT_TIMEOUT=20s GINSHMEM_COLL_TIMEOUT=20s")
{
    enum { MOST = 40 };
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        unsigned failures = 0;
        for (unsigned n = 1; n <= MOST; n++) {
            int fds = mp_count_fds();
            mp_step(mp, "%s call %u fails with %d", calls[i].name, n, calls[i].err);
            if (mp->rank == mp->size - 1)
                gi_os_inject(calls[i].call, n, 1, calls[i].err);
            int st = whole_life(mp, 1 << 20, 65536);
            gi_os_inject(calls[i].call, 0, 0, 0);
            if (!together(mp, st, calls[i].name))
                return;
            failures += st != GIN_OK;
            if (st != GIN_OK && st != GIN_ESYS && st != GIN_ENOMEM && st != GIN_EPEER)
                FAIL("%s call %u: %s, %s", calls[i].name, n, gin_status_name(st), said(mp));
            EXPECT_EQ_INT(mp_count_fds(), fds);
            if (st == GIN_OK && n > 12)
                break;
        }
        if (mp->rank == 0)
            printf("%s, errno %d: %u of its calls were needed\n", calls[i].name, calls[i].err,
                   failures);
        EXPECT_OK(whole_life(mp, 1 << 20, 65536)); /* all as before */
    }
}

/* Every call of a kind fails from the start. */
MP_TEST_OPT(all_calls_fail, .ranks = "1 2", .bare = true, .only = MP_PROCS,
            .env = "GINSHMEM_INIT_TIMEOUT=20s GINSHMEM_COLL_TIMEOUT=20s")
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        mp_step(mp, "all %s calls fail with %d", calls[i].name, calls[i].err);
        gi_os_inject(calls[i].call, 1, 1u << 30, calls[i].err);
        int st = whole_life(mp, 1 << 20, 65536);
        gi_os_inject(calls[i].call, 0, 0, 0);
        together(mp, st, calls[i].name);
        if (calls[i].call == GI_OS_FALLOCATE) {
            EXPECT_EQ_INT(st, GIN_ENOMEM);
            EXPECT_HAS(gin_last_error(), "GINSHMEM_HEAP_SIZE");
        }
        EXPECT_OK(whole_life(mp, 1 << 20, 65536));
    }
}

MP_TEST_OPT(files_of_limited_size, .ranks = "1 2", .bare = true, .only = MP_PROCS)
{
    struct rlimit old;
    if (!limit(RLIMIT_FSIZE, 2 << 20, &old))
        MP_SKIP("cannot set RLIMIT_FSIZE");
    int st = whole_life(mp, 16 << 20, 64); /* no SIGXFSZ, no SIGBUS */
    EXPECT_EQ_INT(st, GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "RLIMIT_FSIZE");
    st = whole_life(mp, 1 << 20, 64); /* fits at first; the growth does not */
    EXPECT_EQ_INT(st, GIN_ENOMEM);
    EXPECT_HAS(said(mp), "RLIMIT_FSIZE");
    restore(RLIMIT_FSIZE, &old);
    EXPECT_OK(whole_life(mp, 16 << 20, 64));
}

MP_TEST_OPT(little_address_space, .ranks = "1 2", .bare = true, .only = MP_PROCS)
{
#if MP_FACTOR > 1
    MP_SKIP("sanitizers take more address space than this leaves");
#endif
    struct rlimit old;
    if (!limit(RLIMIT_AS, (rlim_t)512 << 20, &old))
        MP_SKIP("cannot set RLIMIT_AS");
    int st = whole_life(mp, 1 << 20, 64); /* GINSHMEM_HEAP_MAX is far beyond: less is taken */
    EXPECT_OK(st);
    st = whole_life(mp, (uint64_t)600 << 20, 64);
    EXPECT_EQ_INT(st, GIN_ENOMEM);
    EXPECT(gin_last_error()[0] != 0);
    restore(RLIMIT_AS, &old);
    EXPECT_OK(whole_life(mp, 1 << 20, 64));
}

MP_TEST_OPT(few_descriptors, .ranks = "1 2 5", .bare = true, .only = MP_PROCS,
            .env = "GINSHMEM_INIT_TIMEOUT=20s GINSHMEM_COLL_TIMEOUT=20s")
{
    struct rlimit old;
    int used = mp_count_fds(), worked = 0;
    for (int more = 0; more < 24; more += more < 8 ? 1 : 4) {
        mp_step(mp, "%d descriptors to be had", more);
        if (!limit(RLIMIT_NOFILE, (rlim_t)(used + more), &old))
            MP_SKIP("cannot set RLIMIT_NOFILE");
        int st = whole_life(mp, 1 << 20, 64);
        char text[600];
        snprintf(text, sizeof(text), "%s", said(mp));
        restore(RLIMIT_NOFILE, &old);
        together(mp, st, "few descriptors");
        if (st != GIN_OK && st != GIN_ESYS && st != GIN_ENOMEM)
            FAIL("%d descriptors: %s, %s", more, gin_status_name(st), text);
        worked += st == GIN_OK;
        EXPECT_EQ_INT(mp_count_fds(), used);
    }
    EXPECT(worked > 0);
    EXPECT_OK(whole_life(mp, 1 << 20, 64));
}

MP_TEST_OPT(no_locked_memory_and_no_processes, .ranks = "1 2", .bare = true)
{
    struct rlimit lock, proc;
    int one = mp->threads && mp->rank != 0; /* limits are the process's */
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (!one && (!limit(RLIMIT_MEMLOCK, 65536, &lock) || !limit(RLIMIT_NPROC, 1, &proc)))
        FAIL("cannot set limits");
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    EXPECT_OK(whole_life(mp, 4 << 20, 64)); /* pins nothing, starts nothing */
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (!one) {
        restore(RLIMIT_MEMLOCK, &lock);
        restore(RLIMIT_NPROC, &proc);
    }
}

/* More than the machine has: refused, not killed. */
MP_TEST_OPT(more_than_there_is, .ranks = "1 2", .bare = true)
{
    uint64_t bytes = (gi_os_memory_total() / 2) * 3;
    gin_config_t config = mp->config;
    config.heap_size = bytes & ~(uint64_t)0xffff;
    gin_comm_t *comm = NULL;
    EXPECT_OK(gin_init(&config, &comm)); /* the heap comes later */
    EXPECT(gin_malloc(comm, 64) == NULL);
    EXPECT_EQ_INT(gin_last_status(), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "GINSHMEM_HEAP_SIZE");
    EXPECT_OK(gin_finalize(comm));
}
