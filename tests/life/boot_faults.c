/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers, absentees, impostors, the dead: what others see of them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "boot/boot_tcp.h"
#include "tests/life/boot_ranks.h"

static char root[64];
static int port;

static void new_root(void)
{
    port = free_port(false);
    snprintf(root, sizeof(root), "127.0.0.1:%d", port);
}

/* Wait until somebody listens there; the connection. */
static int knock(void)
{
    for (int i = 0; i < 500; i++) {
        int fd = connect_to(port);
        if (fd >= 0)
            return fd;
        usleep(10000);
    }
    FAIL("nobody listens at port %d", port);
    return -1;
}

static void say(int fd, const void *data, size_t n)
{
    EXPECT_EQ_INT(send(fd, data, n, MSG_NOSIGNAL), n);
}

/* They all stay connected while the job starts, and the job does not care. */
TEST(strays)
{
    struct gi_tcp_hello other = {.magic = GI_TCP_MAGIC,
                                 .version = GI_TCP_VERSION,
                                 .rank = 1,
                                 .size = 4,
                                 .job = gi_tcp_fold("root"),
                                 .nonce = 5,
                                 .half = "not this one"};
    struct gi_tcp_frame answer;
    char garbage[300], text[GI_BOOT_WHY];
    int fds[40], n = 0, zero[4], pids[4];
    uint64_t t0;

    new_root();
    struct ranks only_zero = {.size = 4, .root = root, .last = -1};
    struct ranks others = {.size = 4, .root = root, .first = 1};
    memset(garbage, 'G', sizeof(garbage));
    start_ranks(&only_zero, plain_life, zero);
    fds[n++] = knock();
    for (int i = 0; i < 9; i++)
        fds[n++] = connect_to(port); /* say nothing */
    for (int i = 0; i < 5; i++) {
        fds[n] = connect_to(port);
        say(fds[n++], "x", 1);
        fds[n] = connect_to(port);
        say(fds[n++], garbage, sizeof(garbage));
        fds[n] = connect_to(port);
        say(fds[n++], &other, 40); /* a part of a hello */
        fds[n] = connect_to(port);
        say(fds[n++], &other, sizeof(other));
        close(connect_to(port));
    }
    /* of another job: is told so */
    EXPECT_EQ_INT(gi_tcp_recv_frame(fds[n - 1], &answer, text, gi_deadline_in(SECONDS(5))), 0);
    EXPECT_EQ_INT(answer.kind, GI_TCP_REFUSE);
    EXPECT_HAS(text, "secret");
    t0 = gi_now_ns();
    start_ranks(&others, plain_life, pids);
    await_ranks(&others, pids);
    await_ranks(&only_zero, zero);
    EXPECT(gi_now_ns() - t0 < SECONDS(30)); /* nobody waits for them one by one */
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void expect_failure(const struct ranks *how, int rank, int status, const char *word)
{
    struct gi_boot *b = NULL;
    int st = open_rank(how, rank, &b);

    EXPECT_EQ_INT(st, status);
    EXPECT_HAS(gin_last_error(), word);
    EXPECT_EQ_PTR(b, NULL);
    if (b != NULL)
        gi_boot_close(b);
}

static void missing_life(const struct ranks *how, int rank)
{
    expect_failure(how, rank, GIN_ETIMEDOUT, "3 of 6 ranks");
    EXPECT_HAS(gin_last_error(), "rank 3-5");
}

/* Rank 0 names the missing to all that are there. */
TEST(missing_ranks)
{
    new_root();
    struct ranks how = {.size = 6, .root = root, .last = 2, .timeout = "2s", .hasty_root = true};
    run_ranks(&how, missing_life);
}

static void no_root_life(const struct ranks *how, int rank)
{
    expect_failure(how, rank, GIN_ETIMEDOUT, "has not found rank 0");
    EXPECT_HAS(gin_last_error(), root);
}

TEST(missing_root)
{
    new_root();
    struct ranks how = {.size = 3, .root = root, .first = 1, .timeout = "300ms"};
    run_ranks(&how, no_root_life);
}

static void secret_life(const struct ranks *how, int rank)
{
    setenv("GINSHMEM_SECRET", rank == 2 ? "wrong" : "right", 1);
    if (rank == 2)
        expect_failure(how, rank, GIN_EMISMATCH, "secret");
    else
        expect_failure(how, rank, GIN_ETIMEDOUT, "rank 2; 1 callers turned away");
}

TEST(secret_differs)
{
    new_root();
    struct ranks how = {.size = 3, .root = root, .timeout = "2s", .hasty_root = true};
    run_ranks(&how, secret_life);
}

/* Who listens in the root's place learns half of the secret, and has nobody join with that. */
static void false_root_life(const struct ranks *how, int rank)
{
    setenv("GINSHMEM_SECRET", "a1b2c3d4", 1);
    expect_failure(how, rank, GIN_EMISMATCH, "does not show the secret");
}

TEST(false_root)
{
    static const unsigned char guesses[][GI_TCP_SECRET] = {"", "a1b2c3d5"};
    for (int i = 0; i < 3; i++) { /* the third gives back what it was shown */
        struct gi_tcp_hello hello;
        struct gi_tcp_frame welcome = {.magic = GI_TCP_MAGIC, .kind = GI_TCP_WELCOME};
        int pids[2];
        new_root();
        int fd = listen_on(port);
        struct ranks how = {.size = 2, .root = root, .first = 1};
        start_ranks(&how, false_root_life, pids);
        int leaf = accept(fd, NULL, NULL);
        EXPECT(leaf >= 0);
        EXPECT_EQ_INT(recv(leaf, &hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
        EXPECT_EQ_INT(memcmp(hello.half, "a\0b\0c\0d\0", 8), 0);
        gi_tcp_send_ack(leaf, i < 2 ? guesses[i] : hello.half);
        say(leaf, &welcome, sizeof(welcome));
        await_ranks(&how, pids);
        close(leaf);
        close(fd);
    }
}

static void size_life(const struct ranks *how, int rank)
{
    struct ranks mine = *how;

    if (rank == 1) {
        setenv("GINSHMEM_SIZE", "5", 1);
        expect_failure(&mine, rank, GIN_EMISMATCH, "5 ranks, rank 0 says 2");
    } else {
        expect_failure(&mine, rank, GIN_ETIMEDOUT, "5 ranks, rank 0 says 2");
    }
}

TEST(size_differs)
{
    new_root();
    struct ranks how = {.size = 2, .root = root, .timeout = "2s", .hasty_root = true};
    run_ranks(&how, size_life);
}

/* One of two that say they are rank 1. */
static void rival_life(const struct ranks *how, int rank)
{
    _Atomic int *refused = how->arg;
    struct gi_boot *b = NULL;
    int st = open_rank(how, rank, &b);

    if (st == GIN_OK) {
        meet(how, b);
        return;
    }
    EXPECT_EQ_INT(st, GIN_EINVAL);
    EXPECT_HAS(gin_last_error(), "two processes say that they are rank 1");
    ++*refused;
}

TEST(same_rank_twice)
{
    int zero[4], first[4], second[4], rest[4];
    _Atomic int *refused = shared_counter();

    new_root();
    struct ranks root_alone = {.size = 4, .root = root, .last = -1};
    struct ranks one = {.size = 4, .root = root, .first = 1, .last = 1, .arg = (void *)refused};
    struct ranks others = {.size = 4, .root = root, .first = 2};
    start_ranks(&root_alone, plain_life, zero);
    start_ranks(&one, rival_life, first);
    start_ranks(&one, rival_life, second);
    await_count(refused, 1);
    start_ranks(&others, plain_life, rest);
    await_ranks(&others, rest);
    await_ranks(&one, first);
    await_ranks(&one, second);
    await_ranks(&root_alone, zero);
    EXPECT_EQ_INT(*refused, 1);
}

/* A rank that dies before all have joined is missing again, and may come back. */
static void die_early(const struct ranks *how, int rank)
{
    struct gi_boot *b = NULL;
    open_rank(how, rank, &b);
}

/* At whatever point: before it has found the root, while it joins, when it has joined. */
TEST(died_while_joining)
{
    int first[3], early[3], rest[3];

    for (unsigned after_us = 0; after_us <= 100000; after_us = after_us * 4 + 500) {
        new_root();
        struct ranks zero = {.size = 3, .root = root, .last = -1};
        struct ranks one = {.size = 3, .root = root, .first = 1, .last = 1};
        struct ranks others = {.size = 3, .root = root, .first = 1};
        start_ranks(&zero, plain_life, first);
        start_ranks(&one, die_early, early);
        usleep(after_us);
        kill_rank(early, 1);
        start_ranks(&others, plain_life, rest);
        await_ranks(&others, rest);
        await_ranks(&zero, first);
    }
}

/* The root finds the hello of the dead, its end and the others at its door, all at once. */
TEST(died_unnoticed)
{
    struct gi_tcp_hello dead = {
        .magic = GI_TCP_MAGIC, .version = GI_TCP_VERSION, .rank = 1, .size = 3, .nonce = 5};
    int first[3], rest[3], late[3];

    for (int i = 0; i < 5; i++) {
        new_root();
        dead.job = gi_tcp_fold("root");
        struct ranks zero = {.size = 3, .root = root, .last = -1};
        struct ranks one = {.size = 3, .root = root, .first = 1, .last = 1};
        struct ranks two = {.size = 3, .root = root, .first = 2, .last = 2};
        start_ranks(&zero, plain_life, first);
        close(knock());
        kill(first[0], SIGSTOP);
        if (i % 2 == 0)
            start_ranks(&two, plain_life, rest);
        usleep(i % 2 == 0 ? 50000 : 0); /* likely before the dead one; either will do */
        int fd = knock();
        say(fd, &dead, sizeof(dead));
        if (i < 4)
            close(fd);
        if (i % 2 != 0)
            start_ranks(&two, plain_life, rest);
        usleep(50000);
        kill(first[0], SIGCONT);
        if (i == 4) /* the root has seen it alive */
            close(fd);
        start_ranks(&one, plain_life, late);
        await_ranks(&one, late);
        await_ranks(&two, rest);
        await_ranks(&zero, first);
    }
}

/* ---- after joining ---- */

struct end {
    int victim;
    bool polite; /* closes first */
    const char *text;
};

static void end_life(const struct ranks *how, int rank)
{
    const struct end *e = how->arg;
    struct gi_boot *b = NULL;
    char in = 1, out[8];

    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK) || !exchange(b, 10, 1))
        return;
    if (rank == e->victim) {
        if (e->polite)
            gi_boot_close(b);
        _exit(0);
    }
    /* now, and ever after */
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ_INT(gi_boot_allgather(b, &in, out, 1, gi_deadline_in(SECONDS(20))), GIN_EPEER);
        EXPECT_HAS(gin_last_error(), e->text);
    }
    gi_boot_close(b);
}

TEST(dead_rank)
{
    static const struct end ends[] = {{2, false, "rank 2 has died"},
                                      {0, false, "rank 0 has died"},
                                      {1, true, "rank 1 has left"},
                                      {0, true, "rank 0 has left"}};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        new_root();
        struct ranks how = {.size = 4, .root = root, .arg = (void *)(uintptr_t)&ends[i]};
        run_ranks(&how, end_life);
    }
}

static void late_life(const struct ranks *how, int rank)
{
    uint64_t patience = rank == 0 ? MILLI(1500) : SECONDS(50); /* rank 0 says who is missing */
    _Atomic int *told = how->arg;
    struct gi_boot *b = NULL;
    char in = 1, out[8];

    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK))
        return;
    if (rank == 2)
        await_count(told, 3);
    EXPECT_EQ_INT(gi_boot_allgather(b, &in, out, 1, gi_deadline_in(patience)), GIN_ETIMEDOUT);
    EXPECT_HAS(gin_last_error(), "1 of 4 ranks did not come in time: rank 2");
    ++*told;
    if (rank == 0)
        await_count(told, 4); /* the late one is to find it here */
    gi_boot_close(b);
}

TEST(late_rank)
{
    new_root();
    struct ranks how = {.size = 4, .root = root, .arg = (void *)shared_counter()};
    run_ranks(&how, late_life);
}

static void bytes_life(const struct ranks *how, int rank)
{
    struct gi_boot *b = NULL;
    char in[64] = "", out[256];
    size_t bytes = rank == 1 ? 16 : 8;

    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK))
        return;
    EXPECT_EQ_INT(gi_boot_allgather(b, in, out, bytes, gi_deadline_in(SECONDS(10))), GIN_EMISMATCH);
    EXPECT_HAS(gin_last_error(), "rank 1 gave 16 bytes, rank 0 8");
    gi_boot_close(b);
}

TEST(lengths_differ)
{
    new_root();
    struct ranks how = {.size = 3, .root = root};
    run_ranks(&how, bytes_life);
}

/* A rank that does not read must not keep the root from the others beyond the deadline. */
static void stopped_life(const struct ranks *how, int rank)
{
    uint64_t patience = rank == 0 ? MILLI(1500) : SECONDS(50);
    size_t bytes = 4u << 20;
    struct gi_boot *b = NULL;
    char *in = calloc(1, bytes), *out = malloc(3 * bytes);
    _Atomic int *told = how->arg;

    if (EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK)) {
        if (rank == 2)
            await_count(told, 2);
        EXPECT_EQ_INT(gi_boot_allgather(b, in, out, bytes, gi_deadline_in(patience)),
                      GIN_ETIMEDOUT);
        ++*told;
        if (rank == 0)
            await_count(told, 3);
        gi_boot_close(b);
    }
    free(out);
    free(in);
}

TEST(stopped_rank)
{
    new_root();
    struct ranks how = {.size = 3, .root = root, .arg = (void *)shared_counter()};
    run_ranks(&how, stopped_life);
}

/* ---- misuse ---- */

TEST(id_misused)
{
    gin_unique_id_t id, bad;
    struct ranks how = {.size = 1, .id = &id};
    struct gi_boot *b = NULL;

    EXPECT_EQ_INT(gin_unique_id(NULL), GIN_EINVAL);
    EXPECT_EQ_INT(gin_unique_id(&id), GIN_OK);
    EXPECT_EQ_INT(open_rank(&how, 0, &b), GIN_OK);
    gi_boot_close(b);
    expect_failure(&how, 0, GIN_EINVAL, "serves for one communicator only");
    bad = id;
    bad.bytes[0] ^= 1;
    how.id = &bad;
    expect_failure(&how, 0, GIN_EINVAL, "was not made by gin_unique_id()");
    memset(&bad, 0, sizeof(bad));
    expect_failure(&how, 0, GIN_EINVAL, "was not made by gin_unique_id()");
    how.id = &id;
    expect_failure(&how, 1, GIN_EINVAL, "rank 1 of 1");
    how.size = 0;
    expect_failure(&how, 0, GIN_EINVAL, "rank 0 of 0");
}

struct variables {
    const char *set; /* "A=1 B=2" */
    int status;
    const char *text;
};

static void variables_life(const struct ranks *how, int rank)
{
    const struct variables *v = how->arg;
    char text[256], *save = NULL;

    snprintf(text, sizeof(text), "%s", v->set);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        *strchr(w, '=') = '\0';
        setenv(w, w + strlen(w) + 1, 1);
    }
    expect_failure(how, rank, v->status, v->text);
}

TEST(environment)
{
    static const struct variables rows[] = {
        {"PMI_FD=999 PMI_RANK=0 PMI_SIZE=2", GIN_EINVAL, "PMI_FD=999 is not open"},
        {"PMI_FD=x PMI_RANK=0 PMI_SIZE=2", GIN_EINVAL, "PMI_FD=x is no descriptor"},
        {"PMI_FD=0 PMI_RANK=2 PMI_SIZE=2", GIN_EINVAL, "PMI_RANK and PMI_SIZE"},
        {"PMI_PORT=127.0.0.1:1", GIN_EINVAL, "PMI_ID is not"},
        {"PMI_PORT=127.0.0.1:1 PMI_ID=0", GIN_ESYS, "no connection to the launcher"},
        {"PMI_PORT=nonsense PMI_ID=0", GIN_EINVAL, "is not address:port"},
        {"PMI_RANK=0 PMI_SIZE=2", GIN_EINVAL, "started 2 processes without a PMI connection"},
        {"SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3", GIN_EINVAL, "srun --mpi=pmix"},
        {"GINSHMEM_ROOT=127.0.0.1:5", GIN_EINVAL, "GINSHMEM_RANK is not"},
        {"GINSHMEM_RANK=0", GIN_EINVAL, "GINSHMEM_ROOT is not"},
        {"GINSHMEM_RANK=3 GINSHMEM_SIZE=3 GINSHMEM_ROOT=127.0.0.1:5", GIN_EINVAL, "not below"},
        {"GINSHMEM_RANK=1 GINSHMEM_SIZE=3 GINSHMEM_ROOT=::1:5", GIN_EINVAL, "is not address:port"},
        {"GINSHMEM_RANK=1 GINSHMEM_SIZE=3 GINSHMEM_ROOT=no.such.host.invalid:5", GIN_EINVAL,
         "give the address as a number"},
        {"GINSHMEM_BOOT=tcp", GIN_EINVAL, "GINSHMEM_BOOT=tcp, but"},
        {"GINSHMEM_BOOT=pmi1", GIN_EINVAL, "PMI-1 was asked for, but neither"},
        {"WORLD_SIZE=2 RANK=0 MASTER_ADDR=localhost MASTER_PORT=x GINSHMEM_BOOT=tcp", GIN_EINVAL,
         "do not name a rank"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ranks how = {.size = 1, .arg = (void *)(uintptr_t)&rows[i]};
        unsigned before = pt_failures();
        run_ranks(&how, variables_life);
        if (pt_failures() != before)
            FAIL("with %s", rows[i].set);
    }
}

/* A launcher's variables do not count where the caller says self; a lone process is a job. */
static void self_life(const struct ranks *how, int rank)
{
    struct gi_boot *b = NULL;

    if (how->arg != NULL) {
        setenv("PMI_FD", "999", 1);
        setenv("GINSHMEM_BOOT", "self", 1);
    }
    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK))
        return;
    EXPECT_EQ_INT(b->size, 1);
    exchange(b, 100, 1);
    EXPECT_EQ_INT(gi_boot_barrier(b, 0), GIN_OK);
    gi_boot_close(b);
}

TEST(alone)
{
    struct ranks how = {.size = 1};
    run_ranks(&how, self_life);
    how.arg = &how;
    run_ranks(&how, self_life);
}

/* ---- half a connection ---- */

static void unanswered_life(const struct ranks *how, int rank)
{
    expect_failure(how, rank, GIN_ETIMEDOUT, "got no answer in time");
    EXPECT_HAS(gin_last_error(), root);
}

/* The kernel accepts where rank 0 should be, and nobody answers: rank 0 is stopped, say. */
TEST(half_open)
{
    new_root();
    int fd = listen_on(port);
    EXPECT(fd >= 0);
    struct ranks how = {.size = 3, .root = root, .first = 1, .timeout = "1s"};
    run_ranks(&how, unanswered_life);
    close(fd);
}

/* ---- an answer that stops halfway ---- */

static int asked_to_stop(void *arg)
{
    return *(_Atomic int *)arg != 0 ? gi_fail(GIN_EPEER, "enough") : GIN_OK;
}

/* What is waited for ends by the communicator's word, also while the answer is read. */
static void cut_short_life(const struct ranks *how, int rank)
{
    struct gi_boot *b = NULL;
    char mine[64] = "", all[3 * 64];
    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK))
        return;
    b->stop = asked_to_stop;
    b->stop_arg = how->arg;
    EXPECT_EQ_INT(gi_boot_allgather(b, mine, all, sizeof(mine), gi_deadline_in(SECONDS(300))),
                  GIN_EPEER);
    EXPECT_HAS(gin_last_error(), "enough");
    gi_boot_close(b);
}

TEST(answer_cut_short)
{
    static const unsigned char no_secret[GI_TCP_SECRET];
    struct gi_tcp_frame f = {.magic = GI_TCP_MAGIC};
    struct gi_tcp_hello hello;
    char record[64];
    int pids[2];
    _Atomic int *stop = shared_counter();
    new_root();
    int fd = listen_on(port);
    struct ranks how = {.size = 2, .root = root, .first = 1, .arg = (void *)(uintptr_t)stop};
    start_ranks(&how, cut_short_life, pids);
    int leaf = accept(fd, NULL, NULL);
    EXPECT(leaf >= 0);
    EXPECT_EQ_INT(recv(leaf, &hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
    gi_tcp_send_ack(leaf, no_secret);
    f.kind = GI_TCP_WELCOME;
    say(leaf, &f, sizeof(f));
    EXPECT_EQ_INT(recv(leaf, &f, sizeof(f), MSG_WAITALL), sizeof(f));
    EXPECT_EQ_INT(recv(leaf, record, sizeof(record), MSG_WAITALL), sizeof(record));
    f.bytes = 2 * sizeof(record);
    say(leaf, &f, sizeof(f));
    say(leaf, record, sizeof(record)); /* half of it */
    usleep(50000);
    atomic_store(stop, 1);
    await_ranks(&how, pids);
    close(leaf);
    close(fd);
}
