/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining when system calls fail on one rank, ranks are late, and strangers knock. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ginshmem/status.h>
#include "base/os.h"
#include "tests/life/shm_ranks.h"

/* ---- the n-th system call of a kind fails on one rank ---- */

struct injection {
    enum gi_os_call call;
    int err, rank, want;
};

/* One join with the n-th call failing; true when that call was reached. */
static bool join_with_failure(struct rank *r, const struct injection *f, unsigned nth)
{
    struct gi_shm *s = NULL;
    char text[32];
    int failed[MAX_SIZE];
    r->config.job[0]++;
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    int fds = count_fds(), maps = count_maps();
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    gin_clear_error();
    if (r->rank == f->rank)
        gi_os_inject(f->call, nth, 1, f->err);
    int st = gi_shm_join(&r->config, &s);
    EXPECT_EQ_INT(rank_allgather(r, &st, failed, sizeof(st)), GIN_OK);
    for (int k = 0; k < r->size; k++)
        EXPECT_EQ_INT(failed[k], st);
    if (r->rank == f->rank)
        gi_os_inject(f->call, 0, 0, 0);
    if (st == GIN_OK) {
        gi_shm_leave(s);
    } else {
        EXPECT_EQ_INT(st, f->want);
        EXPECT_EQ_PTR(s, NULL);
        snprintf(text, sizeof(text), "rank %d could not", f->rank);
        if (r->rank != f->rank)
            EXPECT_HAS(gin_last_error(), text);
        EXPECT_HAS(gin_last_error(), strerror(f->err));
    }
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    EXPECT_EQ_INT(count_fds(), fds);
    EXPECT_EQ_INT(count_maps(), maps);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    return st != GIN_OK;
}

static void fail_every_call(struct rank *r)
{
    const struct injection *f = r->arg;
    unsigned nth = 1;
    while (nth < 100 && join_with_failure(r, f, nth))
        nth++;
    EXPECT(nth > 1 && nth < 100);
    if (r->rank == f->rank)
        printf("%u calls of kind %d made to fail on rank %d of %d\n", nth - 1, (int)f->call,
               f->rank, r->size);
}

TEST(every_call_fails_once)
{
    static const struct injection f[] = {
        {GI_OS_MMAP, EPERM, 0, GIN_ESYS},    {GI_OS_MMAP, EPERM, 2, GIN_ESYS},
        {GI_OS_SOCKET, EMFILE, 0, GIN_ESYS}, {GI_OS_SOCKET, ENOMEM, 1, GIN_ENOMEM},
        {GI_OS_SOCKET, EIO, 2, GIN_ESYS},
    };
    for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++)
        run_world(&(struct world){
            .size = 3, .processes = 3, .body = fail_every_call, .arg = (void *)&f[i]});
    /* Leaders of several ranks. */
    for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++)
        run_world(&(struct world){
            .size = 6, .processes = 3, .body = fail_every_call, .arg = (void *)&f[i]});
}

static void no_addresses(struct rank *r)
{
    const struct injection f = {GI_OS_MMAP, ENOMEM, 1, GIN_ENOMEM};
    struct gi_shm *s = NULL;
    if (r->rank == 1) /* refused for ever */
        gi_os_inject(GI_OS_MMAP, 1, UINT32_MAX, ENOMEM);
    EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), r->rank == 1 ? "cannot reserve 3 times 4 MiB" : "rank 1");
    /* Refused once: a smaller stride, everywhere the same. */
    if (r->rank == 1)
        gi_os_inject(GI_OS_MMAP, 1, 1, ENOMEM);
    if (EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK)) {
        EXPECT_EQ_U64(s->stride, (uint64_t)256 << 20);
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
        gi_shm_leave(s);
    }
    if (r->rank == 1)
        gi_os_inject(GI_OS_MMAP, 0, 0, 0);
    join_with_failure(r, &f, 3); /* now of a map */
}

TEST(addresses_are_refused)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = no_addresses});
}

static void gone_peer(struct rank *r)
{
    const struct injection f = {GI_OS_PIDFD, ESRCH, 1, GIN_EPEER};
    EXPECT(join_with_failure(r, &f, 1));
    EXPECT(join_with_failure(r, &f, 2));
    EXPECT(!join_with_failure(r, &f, 3));
}

TEST(a_peer_that_is_gone)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = gone_peer});
}

/* ---- somebody is late ---- */

static void sleep_after_third(struct rank *r, unsigned nth, bool after, const void *data)
{
    (void)data;
    if (r->rank == 2 && nth == 3 && after)
        gi_os_sleep_ns(2500 * MS);
}

static void one_is_late(struct rank *r)
{
    struct gi_shm *s = NULL;
    int fds = count_fds();
    r->on_gather = sleep_after_third;
    r->config.deadline = gi_deadline_in(1200 * MS);
    EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_ETIMEDOUT);
    if (r->rank == 0)
        EXPECT_HAS(gin_last_error(), "did not arrive in time: 2");
    else
        EXPECT_HAS(gin_last_error(), "about rank 2");
    EXPECT_EQ_INT(count_fds(), fds);
}

TEST(late_ranks_are_named)
{
    run_world(&(struct world){.size = 4, .processes = 4, .body = one_is_late});
}

/* ---- somebody dies ---- */

struct death {
    int rank;
    unsigned nth;
    bool after;
};

static void die(struct rank *r, unsigned nth, bool after, const void *data)
{
    const struct death *d = r->arg;
    (void)data;
    if (r->rank == d->rank && nth == d->nth && after == d->after)
        raise(SIGKILL);
}

static void one_is_killed(struct rank *r)
{
    struct gi_shm *s = NULL;
    int fds = count_fds(), maps = count_maps();
    r->on_gather = die;
    r->patience = 400 * MS;
    r->config.deadline = gi_deadline_in(400 * MS);
    EXPECT(gi_shm_join(&r->config, &s) != GIN_OK);
    EXPECT_EQ_PTR(s, NULL);
    EXPECT_EQ_INT(count_fds(), fds);
    EXPECT_EQ_INT(count_maps(), maps);
}

TEST(killed_while_joining)
{
    for (int rank = 0; rank < 3; rank++)
        for (unsigned nth = 1; nth <= 5; nth++)
            for (int after = 0; after < 2 - (nth == 5); after++) {
                struct death d = {rank, nth, after != 0};
                char doomed[] = "...";
                doomed[rank] = 'x';
                run_world(&(struct world){
                    .size = 3, .processes = 3, .doomed = doomed, .body = one_is_killed, .arg = &d});
            }
}

/* ---- strangers ---- */

#define STRANGERS 12
static int strangers[STRANGERS], n_strangers;

static int knock(uint64_t name)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "ginshmem-%016llx",
                     (unsigned long long)name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    uint32_t len = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (uint32_t)n;
    EXPECT_EQ_INT(connect(fd, (struct sockaddr *)&sa, len), 0);
    return fd;
}

static void say(int fd, const void *data, size_t n, int pass)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec io = {(void *)data, n};
    struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
    if (pass >= 0) {
        memcpy(CMSG_DATA(&control.head), &pass, sizeof(pass));
        msg.msg_control = &control;
        msg.msg_controllen = sizeof(control);
    }
    EXPECT_EQ_INT(sendmsg(fd, &msg, 0), n);
}

/* What a genuine leader says first; layout of transport/shm/shm_fd.c. */
struct greeting {
    uint64_t magic, secret[2];
    uint32_t rank, count;
};

static uint64_t name;
static struct greeting true_words;

/* Silent, empty-handed, garbage, too long, wrong secret, with descriptors, right words (which only
 * a rank can know) from the wrong process. */
static void pester(bool right_words)
{
    char garbage[4096];
    struct greeting lie = true_words;
    lie.secret[1] ^= 1;
    memset(garbage, 0x5a, sizeof(garbage));
    n_strangers = 0;
    strangers[n_strangers++] = knock(name);
    close(knock(name));
    say(strangers[n_strangers++] = knock(name), garbage, 1, -1);
    say(strangers[n_strangers++] = knock(name), garbage, sizeof(garbage), -1);
    say(strangers[n_strangers++] = knock(name), garbage, sizeof(true_words), 0);
    say(strangers[n_strangers++] = knock(name), &lie, sizeof(lie), -1);
    say(strangers[n_strangers++] = knock(name), &lie, sizeof(lie), 0);
    if (right_words)
        say(strangers[n_strangers++] = knock(name), &true_words, sizeof(true_words), -1);
}

/* The process is right, the secret is not. */
static void pester_as_a_rank(void)
{
    struct greeting lie = true_words;
    lie.secret[0] ^= 1;
    n_strangers = 0;
    say(strangers[n_strangers++] = knock(name), &lie, sizeof(lie), -1);
}

static void as_another_user(void)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        int before = (int)pt_failures();
        if (setuid(65534) != 0)
            _exit(77);
        pester(true);
        _exit((int)pt_failures() != before);
    }
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

/* After the second allgather the root listens; strangers come before the peers do. */
static void strangers_come(struct rank *r, unsigned nth, bool after, const void *data)
{
    if (nth == 1 && after) {
        const struct gi_shm_hello *hello = data;
        name = hello[0].name;
        true_words = (struct greeting){
            0x47494e504f535431ull, {hello[1].secret[0], hello[1].secret[1]}, 1, 0};
    }
    if (nth == 2 && after && r->rank == 2) {
        pester(true);
        as_another_user();
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    } else if (nth == 2 && after) {
        if (r->rank == 1)
            pester_as_a_rank();
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    }
}

static void among_strangers(struct rank *r)
{
    struct gi_shm *s = NULL;
    for (int i = 0; i < 10; i++) {
        int fds = count_fds();
        r->on_gather = strangers_come;
        r->gathers = 0;
        if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK)) {
            fprintf(stderr, "%s\n", gin_last_error());
            _exit(1);
        }
        EXPECT_EQ_INT(s->lsa_size, r->size);
        if (r->rank != 0) { /* all were shown the door */
            for (int k = 0; k < n_strangers; k++) {
                struct pollfd p = {.fd = strangers[k], .events = POLLIN};
                EXPECT_EQ_INT(poll(&p, 1, 1000), 1);
                EXPECT((p.revents & POLLHUP) != 0);
                close(strangers[k]);
            }
        }
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
        gi_shm_leave(s);
        EXPECT_EQ_INT(count_fds(), fds);
        EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    }
}

TEST(strangers_change_nothing)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = among_strangers});
}

/* Another program answers on the root's name, or a rank lies about its user. */
static void wrong_user(struct rank *r)
{
    static struct gi_shm_rank table[8];
    struct gi_shm *s = NULL;
    memcpy(table, r->config.ranks, (size_t)r->size * sizeof(table[0]));
    table[1].uid ^= 1;
    r->config.ranks = table;
    EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_ESYS);
    EXPECT_HAS(gin_last_error(), r->rank == 0 ? "rank 1 (process" : "about rank 1");
    table[1].uid ^= 1;
    table[0].pid ^= 1;
    r->config.job[0]++;
    EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_ESYS);
    EXPECT_HAS(gin_last_error(), r->rank == 1 ? "socket of rank 0" : "rank 1 could not");
}

TEST(wrong_credentials_fail)
{
    run_world(&(struct world){.size = 3, .processes = 3, .body = wrong_user});
}

/* ---- same host id, but no common sockets ---- */

static void apart(struct rank *r)
{
    struct gi_shm *s = NULL;
    if (r->rank == 2 && unshare(CLONE_NEWNET) != 0)
        abort();
    if (!EXPECT_EQ_INT(gi_shm_join(&r->config, &s), GIN_OK))
        return;
    for (int k = 0; k < r->size; k++)
        EXPECT_EQ_INT(s->why[k], (k == 2) == (r->rank == 2) ? GI_SHM_OK : GI_SHM_NOT_PROVEN);
    EXPECT_EQ_INT(s->lsa_size, r->rank == 2 ? 1 : r->size - 1);
    EXPECT_EQ_INT(rank_barrier(r), GIN_OK);
    gi_shm_leave(s);
}

TEST(network_namespaces_are_apart)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0)
        _exit(unshare(CLONE_NEWNET) != 0);
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    if (status != 0)
        SKIP("may not make a network namespace");
    run_world(&(struct world){.size = 4, .processes = 4, .body = apart});
}
