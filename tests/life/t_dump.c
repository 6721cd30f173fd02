/* SPDX-License-Identifier: BSD-3-Clause */
/* gin_dump() and SIGUSR1: who waits for what, and whose handler it is. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "tests/mp.h"

static gin_group_t me(void)
{
    return gin_thread();
}

struct waiter {
    gin_t g;
    int which, st;
};

static void *wait_a_while(void *arg)
{
    struct waiter *w = arg;
    gin_wait_opt_t opt = {.timeout_ns = 50000000000u};
    if (w->which == 0)
        w->st = gin_wait_signal_x(&w->g, me(), 3, 17, &opt);
    else
        w->st = gin_barrier_x(&w->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0, &opt);
    return NULL;
}

/* Run fn with standard error in a file; what it printed. */
static void catch_stderr(void (*fn)(void), char *text, size_t n)
{
    char name[] = "/tmp/ginshmem-dump-XXXXXX";
    int fd = mkstemp(name), saved = dup(STDERR_FILENO);
    if (!EXPECT(fd >= 0 && saved >= 0))
        return;
    unlink(name);
    dup2(fd, STDERR_FILENO);
    fn();
    dup2(saved, STDERR_FILENO);
    ssize_t got = pread(fd, text, n - 1, 0);
    text[got > 0 ? got : 0] = 0;
    close(saved);
    close(fd);
}

static void by_signal(void)
{
    raise(SIGUSR1);
}

static void by_call(void)
{
    gin_dump(STDERR_FILENO);
}

/* Two ranks; one shows a thread in a wait and another in a barrier that the other is late for. */
MP_TEST_OPT(dump_says_who_waits_for_what, .ranks = "2", .only = MP_PROCS)
{
    struct waiter w[2];
    pthread_t thread[2];
    char text[4096];
    if (!mp_dev(mp, NULL))
        return;
    if (mp->rank == 0) {
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_add(3, 5)));
        for (int i = 0; i < 2; i++) {
            w[i] = (struct waiter){mp->g, i, 1};
            EXPECT_EQ_INT(pthread_create(&thread[i], NULL, wait_a_while, &w[i]), 0);
        }
        uint64_t until = gi_deadline_in(40000000000u);
        do /* until both are there */
            catch_stderr(by_call, text, sizeof(text));
        while ((strstr(text, "wanted 17") == NULL || strstr(text, "round 1") == NULL) &&
               gi_now_ns() < until);
        for (int i = 0; i < 2; i++) {
            text[0] = 0;
            catch_stderr(i == 0 ? by_call : by_signal, text, sizeof(text));
            EXPECT_HAS(text, "ginshmem[0] of 2: GIN_OK");
            EXPECT_HAS(text, "ginshmem[0] waits ");
            EXPECT_HAS(text, "signal 3 of context 0, which is 5, wanted 17");
            EXPECT_HAS(text, "world barrier 0, round 1, where rank 1 has not arrived");
        }
        EXPECT_OK(gin_signal(&mp->g, me(), gin_world(&mp->g), 0, gin_weak_add(3, 12)));
    }
    EXPECT_EQ_INT(mp_barrier(mp), 0);
    if (mp->rank == 1)
        EXPECT_OK(gin_barrier(&mp->g, me(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, 0));
    for (int i = 0; mp->rank == 0 && i < 2; i++) {
        pthread_join(thread[i], NULL);
        EXPECT_OK(w[i].st);
    }
    if (mp->rank == 0) {
        catch_stderr(by_call, text, sizeof(text));
        EXPECT_HAS(text, "no thread waits");
    }
}

static volatile sig_atomic_t mine;

static void my_handler(int sig)
{
    (void)sig;
    mine++;
}

static void (*handler_now(void))(int)
{
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    return now.sa_handler;
}

MP_TEST_OPT(the_handler_comes_and_goes, .ranks = "1", .only = MP_PROCS, .bare = true)
{
    gin_comm_t *a, *b;
    EXPECT(handler_now() == SIG_DFL);
    EXPECT_OK(gin_init(&mp->config, &a));
    EXPECT(handler_now() != SIG_DFL);
    EXPECT_OK(gin_init(&mp->config, &b));
    EXPECT_OK(gin_finalize(a));
    EXPECT(handler_now() != SIG_DFL);
    EXPECT_OK(gin_finalize(b));
    EXPECT(handler_now() == SIG_DFL);

    EXPECT_OK(gin_init(&mp->config, &a));
    signal(SIGUSR1, my_handler); /* the program takes it over */
    EXPECT_OK(gin_finalize(a));
    EXPECT(handler_now() == my_handler);
    EXPECT_OK(gin_init(&mp->config, &a)); /* and had it before */
    EXPECT(handler_now() == my_handler);
    raise(SIGUSR1);
    EXPECT_EQ_INT(mine, 1);
    EXPECT_OK(gin_finalize(a));
    EXPECT(handler_now() == my_handler);
    signal(SIGUSR1, SIG_DFL);

    setenv("GINSHMEM_SIGNAL_DUMP", "0", 1);
    EXPECT_OK(gin_init(&mp->config, &a));
    EXPECT(handler_now() == SIG_DFL);
    EXPECT_OK(gin_finalize(a));
}
