/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting ranks, and what they do in nearly every test. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "tests/life/boot_ranks.h"

#define MOST     64
#define AFTER_NS SECONDS(5) /* for the others to end after one has failed */

/* Children that were started and are not known to have ended. */
static struct child {
    int pid; /* 0: a free place */
    bool ended;
    int status;
} children[4 * MOST];
static uint64_t no_longer; /* than this do they live after one has failed; 0: none has */

static void set_environment(const struct ranks *how, int rank)
{
    char text[16];

    if (how->timeout != NULL)
        setenv("GINSHMEM_INIT_TIMEOUT", how->hasty_root && rank != 0 ? "50s" : how->timeout, 1);
    if (how->root == NULL)
        return;
    snprintf(text, sizeof(text), "%d", rank);
    setenv("GINSHMEM_RANK", text, 1);
    snprintf(text, sizeof(text), "%d", how->size);
    setenv("GINSHMEM_SIZE", text, 1);
    setenv("GINSHMEM_ROOT", how->root, 1);
}

static int last_of(const struct ranks *how)
{
    return how->last > 0 ? how->last : how->last < 0 ? 0 : how->size - 1;
}

static struct child *child_of(int pid)
{
    for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++)
        if (children[i].pid == pid)
            return &children[i];
    FAIL("no room for, or no child %d", pid);
    exit(1);
}

void start_ranks(const struct ranks *how, rank_fn fn, int *pids)
{
    bool others = false;

    for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++)
        others |= children[i].pid != 0;
    no_longer = others ? no_longer : 0;
    memset(pids, 0, (size_t)how->size * sizeof(*pids));
    fflush(NULL);
    for (int r = how->first; r <= last_of(how); r++) {
        pids[r] = fork();
        if (pids[r] != 0) {
            *child_of(0) = (struct child){.pid = pids[r]};
            continue;
        }
        unsigned before = pt_failures();
        pt_deadline(60);
        set_environment(how, r);
        fn(how, r);
        fflush(NULL);
        _exit(pt_failures() != before);
    }
}

/* Look who has ended; end those that have waited long enough for one that failed. */
static void look(void)
{
    for (size_t i = 0; i < sizeof(children) / sizeof(children[0]); i++) {
        struct child *c = &children[i];
        if (c->pid == 0 || c->ended)
            continue;
        c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
        if (c->ended && c->status != 0 && no_longer == 0)
            no_longer = gi_deadline_in(AFTER_NS);
        if (!c->ended && no_longer != 0 && gi_now_ns() >= no_longer)
            kill(c->pid, SIGKILL);
    }
}

void await_ranks(const struct ranks *how, const int *pids)
{
    for (int r = how->first; r <= last_of(how); r++) {
        if (pids[r] == 0)
            continue;
        struct child *c = child_of(pids[r]);
        for (look(); !c->ended; look())
            usleep(1000);
        if (!EXPECT_EQ_INT(c->status, 0))
            FAIL("rank %d of %d failed", r, how->size);
        *c = (struct child){.pid = 0};
    }
}

void kill_rank(int *pids, int rank)
{
    struct child *c = child_of(pids[rank]);

    EXPECT(!c->ended);
    kill(c->pid, SIGKILL);
    EXPECT_EQ_INT(waitpid(c->pid, NULL, 0), c->pid);
    *c = (struct child){.pid = 0};
    pids[rank] = 0;
}

_Atomic int *shared_counter(void)
{
    static _Atomic int *counter;

    if (counter == NULL)
        counter =
            mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *counter = 0;
    return counter;
}

void await_count(_Atomic int *counter, int least)
{
    while (*counter < least)
        usleep(1000);
}

struct thread_rank {
    const struct ranks *how;
    rank_fn fn;
    int rank;
    pthread_t thread;
};

static void *thread_main(void *arg)
{
    struct thread_rank *t = arg;
    t->fn(t->how, t->rank);
    return NULL;
}

void run_ranks(const struct ranks *how, rank_fn fn)
{
    struct thread_rank t[MOST];
    int pids[MOST];

    if (!how->threads) {
        start_ranks(how, fn, pids);
        await_ranks(how, pids);
        return;
    }
    for (int r = how->first; r <= last_of(how); r++) {
        t[r] = (struct thread_rank){.how = how, .fn = fn, .rank = r};
        pthread_create(&t[r].thread, NULL, thread_main, &t[r]);
    }
    for (int r = how->first; r <= last_of(how); r++)
        pthread_join(t[r].thread, NULL);
}

int open_rank(const struct ranks *how, int rank, struct gi_boot **boot)
{
    gin_config_t config = {.size = sizeof(config),
                           .version = GIN_VERSION,
                           .rank = rank,
                           .n_ranks = how->size,
                           .unique_id = how->id};
    struct gi_env env;
    int st = gi_env_load(&env);

    if (!EXPECT_EQ_INT(st, GIN_OK))
        return st;
    st = gi_boot_open(&env, how->id != NULL ? &config : NULL, boot);
    gi_env_release(&env);
    return st;
}

bool exchange(struct gi_boot *b, size_t bytes, unsigned salt)
{
    size_t total = (size_t)b->size * bytes;
    unsigned char *in = malloc(bytes + 1), *out = malloc(total + 1);
    bool ok;

    for (size_t i = 0; i < bytes; i++)
        in[i] = (unsigned char)(i * 7 + (unsigned)b->rank * 131 + salt);
    memset(out, 0xee, total + 1);
    ok = EXPECT_EQ_INT(gi_boot_allgather(b, in, out, bytes, gi_deadline_in(SECONDS(30))), GIN_OK);
    if (!ok)
        FAIL("rank %d: %s", b->rank, gin_last_error());
    for (size_t i = 0; ok && i < total; i++) {
        size_t r = i / bytes, k = i % bytes;
        ok = out[i] == (unsigned char)(k * 7 + r * 131 + salt);
        if (!ok)
            FAIL("rank %d: byte %zu of rank %zu is wrong", b->rank, k, r);
    }
    EXPECT_EQ_INT(out[total], 0xee);
    free(out);
    free(in);
    return ok;
}

void meet(const struct ranks *how, struct gi_boot *b)
{
    static const size_t sizes[] = {1, 8, 256, 4097, 300000};

    EXPECT_EQ_INT(b->size, how->size);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pt_step("rank %d exchanges %zu bytes", b->rank, sizes[i]);
        if (!exchange(b, sizes[i], (unsigned)i))
            break;
    }
    EXPECT_EQ_INT(gi_boot_barrier(b, gi_deadline_in(SECONDS(30))), GIN_OK);
    gi_boot_close(b);
}

void plain_life(const struct ranks *how, int rank)
{
    struct gi_boot *b = NULL;

    pt_step("rank %d opens", rank);
    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK)) {
        FAIL("rank %d: %s", rank, gin_last_error());
        return;
    }
    EXPECT_EQ_INT(b->rank, rank);
    meet(how, b);
}

int free_port(bool v6)
{
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr *sa = v6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
    socklen_t len = v6 ? sizeof(a6) : sizeof(a4);
    int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0), port = 0;

    if (fd < 0)
        return 0;
    if (bind(fd, sa, len) == 0 && getsockname(fd, sa, &len) == 0)
        port = ntohs(v6 ? a6.sin6_port : a4.sin_port);
    close(fd);
    return port;
}

int connect_to(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int listen_on(int port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_ANY)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1; /* whoever had the port is gone */

    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
        bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 64) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n - 3; /* ".", ".." and the folder itself */
}
