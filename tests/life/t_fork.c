/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BL-47: a process that has joined forks. The child may exec or exit, by which nothing of the
 * parent's goes away; its calls get GIN_ESTATE. The parent goes on.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/life/refused_calls.h"

static int ended(pid_t child)
{
    int status = -1;
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Exchange with the neighbours: everything still works. */
static void goes_on(struct mp *mp, uint64_t *word, uint64_t round)
{
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    EXPECT_OK(gin_put_value(&mp->g, gin_thread(), gin_world(&mp->g), right,
                            gin_at_ptr(&mp->g, word), round * 100 + (uint64_t)mp->rank, 8,
                            gin_weak_inc(0)));
    EXPECT_OK(gin_wait_signal(&mp->g, gin_thread(), 0, round));
    EXPECT_EQ_U64(*word, round * 100 + (uint64_t)left);
    char *p = gin_malloc(mp->comm, 100 * round);
    EXPECT(p != NULL);
    EXPECT_OK(gin_free(mp->comm, p));
    EXPECT_OK(gin_barrier(&mp->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
}

/* What the child does; its exit status says whether it went well. */
static int child_calls(struct mp *mp, gin_window_t win)
{
    unsigned before = pt_failures();
    gin_t g;
    refused_calls(mp->comm);
    STATE(gin_open(&mp->dev, 0, &g));
    refused_operations(&mp->g, gin_at(win, 0));
    return pt_failures() != before;
}

static void forks(struct mp *mp)
{
    gin_window_t win;
    if (!mp_dev(mp, NULL))
        return;
    uint64_t *word = gin_calloc(mp->comm, 8, 8);
    EXPECT_OK(gin_window_register(mp->comm, word, 64, 0, &win));
    EXPECT_OK(gin_comm_barrier(mp->comm));
    uint64_t round = 0;
    goes_on(mp, word, ++round);
    for (int how = 0; how < 5; how++) {
        mp_step(mp, "fork %d", how);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            switch (how) {
            case 0: _exit(0);
            case 1: exit(0);
            case 2: execlp("true", "true", (char *)NULL); _exit(1);
            case 3: _exit(child_calls(mp, win));
            default:
                /* its own job of one rank, in spite of all */
                _exit(gin_finalize(mp->comm) != GIN_ESTATE);
            }
        }
        if (!EXPECT(child > 0))
            return;
        goes_on(mp, word, ++round);
        EXPECT_EQ_INT(ended(child), 0);
        goes_on(mp, word, ++round);
    }
    EXPECT_OK(gin_heap_check(mp->comm));
    EXPECT_OK(gin_window_deregister(mp->comm, win));
    EXPECT_OK(gin_free(mp->comm, word));
}

MP_TEST_N(children_end_and_the_parent_goes_on, "1 2 3")
{
#if defined(__SANITIZE_THREAD__)
    if (mp->threads)
        MP_SKIP("the thread sanitizer ends a child that a program with threads forks");
#endif
    forks(mp);
}

/* A child may join another job than its parent's. */
MP_TEST_OPT(a_child_joins_a_job_of_its_own, .ranks = "1 2", .only = MP_PROCS)
{
    if (!mp_dev(mp, NULL))
        return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        gin_comm_t *comm = NULL;
        unsigned before = pt_failures();
        if (EXPECT_OK(gin_init(NULL, &comm))) {
            char *p = gin_calloc(comm, 1, 100);
            EXPECT(p != NULL);
            EXPECT_OK(gin_comm_barrier(comm));
            EXPECT_EQ_INT(gin_size(comm), 1);
            EXPECT_OK(gin_finalize(comm));
        }
        _exit(pt_failures() != before);
    }
    EXPECT_EQ_INT(ended(child), 0);
    EXPECT_OK(gin_comm_barrier(mp->comm));
}
