/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting ranks, and what they do in nearly every test. */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "tests/life/boot_ranks.h"

#define MOST 64

static void set_environment(const struct ranks *how, int rank)
{
    char text[16];

    if (how->timeout != NULL)
        setenv("GINSHMEM_INIT_TIMEOUT", how->timeout, 1);
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

void start_ranks(const struct ranks *how, rank_fn fn, int *pids)
{
    memset(pids, 0, (size_t)how->size * sizeof(*pids));
    fflush(NULL);
    for (int r = how->first; r <= last_of(how); r++) {
        pids[r] = fork();
        if (pids[r] != 0)
            continue;
        unsigned before = pt_failures();
        pt_deadline(60);
        set_environment(how, r);
        fn(how, r);
        fflush(NULL);
        _exit(pt_failures() != before);
    }
}

void await_ranks(const struct ranks *how, const int *pids)
{
    for (int r = how->first; r <= last_of(how); r++) {
        int status = -1;
        if (!EXPECT_EQ_INT(waitpid(pids[r], &status, 0), pids[r]) || !EXPECT_EQ_INT(status, 0))
            FAIL("rank %d of %d failed", r, how->size);
    }
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

void plain_life(const struct ranks *how, int rank)
{
    static const size_t sizes[] = {1, 8, 256, 4097, 300000};
    struct gi_boot *b = NULL;

    pt_step("rank %d opens", rank);
    if (!EXPECT_EQ_INT(open_rank(how, rank, &b), GIN_OK)) {
        FAIL("rank %d: %s", rank, gin_last_error());
        return;
    }
    EXPECT_EQ_INT(b->rank, rank);
    EXPECT_EQ_INT(b->size, how->size);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pt_step("rank %d exchanges %zu bytes", rank, sizes[i]);
        if (!exchange(b, sizes[i], (unsigned)i))
            break;
    }
    EXPECT_EQ_INT(gi_boot_barrier(b, gi_deadline_in(SECONDS(30))), GIN_OK);
    gi_boot_close(b);
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
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 64) == 0)
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
