/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways to join that go well: addresses of both families, ids, threads, again and again, nested. */
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "tests/life/boot_ranks.h"

static void by_root(bool v6)
{
    static const int sizes[] = {1, 2, 5, 16};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char root[64];
        int port = free_port(v6);
        if (port == 0)
            SKIP("no loopback of that family");
        snprintf(root, sizeof(root), v6 ? "[::1]:%d" : "127.0.0.1:%d", port);
        struct ranks how = {.size = sizes[i], .root = root};
        run_ranks(&how, plain_life);
    }
}

TEST(root_v4)
{
    by_root(false);
}

TEST(root_v6)
{
    by_root(true);
}

/* Rank 0 comes last, by a while: the others must have waited. */
TEST(late_root)
{
    char root[64];
    int pids[4], zero[4];

    snprintf(root, sizeof(root), "localhost:%d", free_port(false));
    struct ranks others = {.size = 4, .root = root, .first = 1};
    struct ranks only_zero = {.size = 4, .root = root, .last = -1};
    start_ranks(&others, plain_life, pids);
    usleep(300000);
    start_ranks(&only_zero, plain_life, zero);
    await_ranks(&only_zero, zero);
    await_ranks(&others, pids);
}

static void torch_life(const struct ranks *how, int rank)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof(text), "%d", how->size);
    setenv("WORLD_SIZE", text, 1);
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", how->arg, 1);
    plain_life(how, rank);
}

/* MASTER_PORT and the port behind it are taken, by somebody who answers nothing. */
TEST(torchrun)
{
    char port_text[16];
    int port = free_port(false), taken[2];

    snprintf(port_text, sizeof(port_text), "%d", port);
    taken[0] = listen_on(port + 1);
    taken[1] = listen_on(port + 2);
    struct ranks how = {.size = 4, .arg = port_text};
    run_ranks(&how, torch_life);
    for (int i = 0; i < 2; i++)
        if (taken[i] >= 0)
            close(taken[i]);
}

TEST(id_processes)
{
    static const int sizes[] = {1, 2, 5, 16};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        gin_unique_id_t id;
        if (!EXPECT_EQ_INT(gin_unique_id(&id), GIN_OK))
            return;
        struct ranks how = {.size = sizes[i], .id = &id};
        run_ranks(&how, plain_life);
    }
}

TEST(id_threads)
{
    static const int sizes[] = {1, 2, 5, 16};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        gin_unique_id_t id;
        if (!EXPECT_EQ_INT(gin_unique_id(&id), GIN_OK))
            return;
        struct ranks how = {.size = sizes[i], .id = &id, .threads = true};
        run_ranks(&how, plain_life);
    }
}

static void on_tick(int sig)
{
    (void)sig;
}

/* Every system call is interrupted now and then. */
TEST(interrupted)
{
    struct sigaction act = {.sa_handler = on_tick};
    struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    gin_unique_id_t id;

    sigaction(SIGPROF, &act, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    for (int i = 0; i < 20; i++) {
        if (!EXPECT_EQ_INT(gin_unique_id(&id), GIN_OK))
            break;
        struct ranks how = {.size = 4, .id = &id, .threads = true};
        run_ranks(&how, plain_life);
    }
    setitimer(ITIMER_PROF, &never, NULL);
    signal(SIGPROF, SIG_IGN);
}

static void one_round(const struct ranks *how, int rank)
{
    struct gi_boot *b = NULL;

    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK))
        return;
    EXPECT_EQ_INT(b->size, how->size);
    exchange(b, 64, 1);
    gi_boot_close(b);
}

/* Four ranks, then two groups of two, a hundred times: nothing of the one is left in the other. */
TEST(again_and_again)
{
    int before = 0;

    for (int i = 0; i < 100; i++) {
        gin_unique_id_t id[3];
        for (int k = 0; k < 3; k++)
            if (!EXPECT_EQ_INT(gin_unique_id(&id[k]), GIN_OK))
                return;
        struct ranks four = {.size = 4, .id = &id[0], .threads = true};
        run_ranks(&four, one_round);
        for (int k = 1; k < 3; k++) {
            struct ranks two = {.size = 2, .id = &id[k], .threads = true};
            run_ranks(&two, one_round);
        }
        if (i == 0)
            before = open_descriptors();
    }
    EXPECT_EQ_INT(open_descriptors(), before);
}

/* The same address over and over, by processes that stay: each opens right after it closed. */
static void many_rounds(const struct ranks *how, int rank)
{
    int before = open_descriptors();

    for (int i = 0; i < 100; i++)
        one_round(how, rank);
    EXPECT_EQ_INT(open_descriptors(), before);
}

TEST(again_at_one_address)
{
    char root[64];

    snprintf(root, sizeof(root), "127.0.0.1:%d", free_port(false));
    struct ranks how = {.size = 3, .root = root};
    run_ranks(&how, many_rounds);
}

static void nested_life(const struct ranks *how, int rank)
{
    struct ranks inner = *how;
    struct gi_boot *b[2] = {NULL, NULL};

    inner.id = how->arg;
    if (!EXPECT_EQ_INT(open_rank(how, rank, &b[0]), GIN_OK))
        return;
    exchange(b[0], 100, 1);
    if (EXPECT_EQ_INT(open_rank(&inner, rank, &b[1]), GIN_OK)) {
        for (unsigned i = 0; i < 20; i++)
            exchange(b[i % 2], 100 + i, i);
        gi_boot_close(b[0]);
        exchange(b[1], 50, 3);
        gi_boot_close(b[1]);
    }
}

TEST(nested)
{
    gin_unique_id_t id[2];

    for (int threads = 0; threads < 2; threads++) {
        EXPECT_EQ_INT(gin_unique_id(&id[0]), GIN_OK);
        EXPECT_EQ_INT(gin_unique_id(&id[1]), GIN_OK);
        struct ranks how = {.size = 3, .id = &id[0], .arg = &id[1], .threads = threads != 0};
        run_ranks(&how, nested_life);
    }
}

/* ---- the caller's allgather ---- */

static struct meeting {
    pthread_barrier_t barrier;
    int size;
    char data[4][512];
    int fail_at;
} meeting;

struct member {
    int rank, calls;
};

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    struct member *me = arg;

    memcpy(meeting.data[me->rank], in, bytes);
    pthread_barrier_wait(&meeting.barrier);
    for (int r = 0; r < meeting.size; r++)
        memcpy((char *)out + (size_t)r * bytes, meeting.data[r], bytes);
    pthread_barrier_wait(&meeting.barrier);
    return ++me->calls == meeting.fail_at ? 7 : 0;
}

static void user_life(const struct ranks *how, int rank)
{
    struct member me = {.rank = rank};
    gin_config_t config = {.size = sizeof(config),
                           .rank = rank,
                           .n_ranks = how->size,
                           .allgather = gather,
                           .allgather_arg = &me};
    struct gi_boot *b = NULL;
    struct gi_env env;
    char out[4], in = (char)rank;

    EXPECT_EQ_INT(gi_env_load(&env), GIN_OK);
    if (!EXPECT_EQ_INT(gi_boot_open(&env, &config, &b), GIN_OK))
        return;
    exchange(b, 100, 1);
    EXPECT_EQ_INT(gi_boot_barrier(b, GI_NEVER), GIN_OK);
    EXPECT_EQ_INT(gi_boot_allgather(b, &in, out, 1, GI_NEVER), GIN_ESYS);
    EXPECT_HAS(gin_last_error(), "returned 7");
    gi_boot_close(b);
    gi_env_release(&env);
}

TEST(callers_allgather)
{
    meeting.size = 4;
    meeting.fail_at = 3;
    pthread_barrier_init(&meeting.barrier, NULL, 4);
    struct ranks how = {.size = 4, .threads = true};
    run_ranks(&how, user_life);
    pthread_barrier_destroy(&meeting.barrier);
}

/* ---- a host with nothing but a loopback and a name that nobody knows ---- */

static bool bare_host(void)
{
    struct ifreq lo = {.ifr_flags = IFF_UP | IFF_RUNNING};
    int fd;

    if (unshare(CLONE_NEWNET | CLONE_NEWUTS) != 0 || sethostname("no-such-host.invalid", 20) != 0)
        return false;
    strcpy(lo.ifr_name, "lo");
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) != 0)
        return false;
    close(fd);
    return true;
}

TEST(bare_host)
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        gin_unique_id_t id;
        unsigned before = pt_failures();
        if (!bare_host())
            _exit(77);
        EXPECT_EQ_INT(gin_unique_id(&id), GIN_OK);
        struct ranks by_id = {.size = 3, .id = &id}, by_name = {.size = 3};
        run_ranks(&by_id, plain_life);
        by_name.root = "no-such-host.invalid:5000";
        run_ranks(&by_name, plain_life);
        _exit(pt_failures() != before);
    }
    EXPECT_EQ_INT(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("namespaces need privileges");
    EXPECT_EQ_INT(status, 0);
}
