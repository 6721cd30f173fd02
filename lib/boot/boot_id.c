/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three ways to tell ranks where rank 0 listens: a unique id, GINSHMEM_ROOT, torchrun's variables.
 *
 * The process that makes a unique id begins to listen at once, so that the other ranks may come
 * before rank 0; rank 0 must be in that process (or be its fork()ed child) and takes the listening
 * socket over. An id serves once.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_id.h"
#include "boot/boot_tcp.h"

#define ID_MAGIC      0x474e4946u /* another one whenever the bytes behind it change */
#define ID_ADDRS      3
#define ID_SECRET     32
#define BUSY_PAUSE_NS 50000000u
#define BUSY_NS       5000000000u /* a port that stays taken that long will stay so */
#define TORCH_PORTS   8

/* What the 128 bytes of an id hold. */
struct id {
    uint32_t magic;
    uint8_t n_addrs, zero[3];
    uint64_t job;
    unsigned char secret[ID_SECRET];
    struct gi_addr_packed addr[ID_ADDRS];
    unsigned char pad[128 - 48 - 24 * ID_ADDRS];
};
_Static_assert(sizeof(struct id) == sizeof(struct gin_unique_id), "an id fills its 128 bytes");

/* Ids made here whose rank 0 has not come yet. */
struct pending {
    uint64_t job;
    int listener;
    pid_t pid; /* who made it: a fork()ed child inherits the list and the socket */
    struct pending *next;
};
static struct pending *pending;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;

static int fill_id(const struct gi_env *env, int listener, struct id *id)
{
    struct gi_addr addr[ID_ADDRS];
    int n =
        gi_addr_local(env->set.iface ? env->iface : NULL, gi_sock_port(listener), addr, ID_ADDRS);
    int e = n < 0 ? 0 : gi_os_random(id->secret, sizeof(id->secret));

    if (n < 0)
        return n;
    if (e == 0)
        e = gi_os_random(&id->job, sizeof(id->job));
    if (e != 0)
        return gi_fail(GIN_ESYS, "random numbers for a unique id: %s", gi_os_strerror(e));
    id->magic = ID_MAGIC;
    for (int i = 0; i < n; i++)
        gi_addr_pack(&addr[i], &id->addr[id->n_addrs++]);
    return GIN_OK;
}

int gi_boot_unique_id(const struct gi_env *env, struct gin_unique_id *out)
{
    struct id id;
    struct pending *p = calloc(1, sizeof(*p));
    int st;

    if (p == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a unique id");
    p->listener = gi_sock_listen(NULL, 0);
    if (p->listener < 0) {
        st = gi_fail(GIN_ESYS, "a listening socket for the unique id: %s",
                     gi_os_strerror(p->listener));
        goto free_pending;
    }
    memset(&id, 0, sizeof(id));
    st = fill_id(env, p->listener, &id);
    if (st != GIN_OK)
        goto close_listener;
    p->job = id.job;
    p->pid = getpid();
    pthread_mutex_lock(&pending_lock);
    p->next = pending;
    pending = p;
    pthread_mutex_unlock(&pending_lock);
    memcpy(out, &id, sizeof(id));
    return GIN_OK;

close_listener:
    gi_os_close(p->listener);
free_pending:
    free(p);
    return st;
}

int gin_unique_id(gin_unique_id_t *id)
{
    struct gi_env env;
    int st;

    if (id == NULL)
        return gi_fail(GIN_EINVAL, "gin_unique_id: id is NULL");
    st = gi_env_load(&env);
    if (st != GIN_OK)
        return gi_fail_context("gin_unique_id");
    st = gi_boot_unique_id(&env, id);
    gi_env_release(&env);
    return st == GIN_OK ? GIN_OK : gi_fail_context("gin_unique_id");
}

/*
 * The listening socket of an id for rank 0, or -1. A child of fork() that is another rank closes
 * its copy: with it open, callers would queue for a rank 0 that is gone.
 */
static int adopt_listener(uint64_t job, int rank)
{
    int fd = -1;

    pthread_mutex_lock(&pending_lock);
    for (struct pending **link = &pending, *p; (p = *link) != NULL;) {
        if (p->job == job && (rank == 0 || p->pid != getpid())) {
            fd = p->listener;
            *link = p->next;
            free(p);
            break;
        }
        link = &p->next;
    }
    pthread_mutex_unlock(&pending_lock);
    if (fd >= 0 && rank != 0) {
        gi_os_close(fd);
        fd = -1;
    }
    return fd;
}

static void say_where(struct gi_tcp_job *job)
{
    if (job->n_places > 0)
        gi_addr_text(&job->place[0], job->where);
}

/* As fill_id() leaves one. */
static bool is_whole(const struct id *id)
{
    bool whole = id->magic == ID_MAGIC && id->n_addrs != 0 && id->n_addrs <= ID_ADDRS;
    for (int i = 0; whole && i < id->n_addrs; i++)
        whole = id->addr[i].port != 0;
    return whole;
}

int gi_boot_id_open(const struct gi_env *env, const struct gin_unique_id *bytes, int rank, int size,
                    uint64_t deadline, struct gi_boot **boot)
{
    struct gi_tcp_job job = {.rank = rank, .size = size};
    struct id id;
    char origin[96];
    int listener;

    (void)env;
    memcpy(&id, bytes, sizeof(id));
    if (!is_whole(&id))
        return gi_fail(GIN_EINVAL, "the unique id was not made by gin_unique_id() of this library, "
                                   "or was damaged on its way");
    job.id = id.job;
    memcpy(job.secret, id.secret, ID_SECRET);
    for (int i = 0; i < id.n_addrs; i++)
        if (!gi_addr_unpack(&id.addr[i], &job.place[job.n_places++]))
            return gi_fail(GIN_EINVAL, "the unique id has an address of unknown family %u",
                           id.addr[i].family);
    say_where(&job);
    listener = adopt_listener(id.job, rank);
    if (rank == 0 && listener < 0)
        return gi_fail(GIN_EINVAL, "rank 0 must be in the process that made the unique id, and an "
                                   "id serves for one communicator only: this process made no such "
                                   "id, or has used it");
    snprintf(origin, sizeof(origin), "tcp (unique id, rank 0 at %.50s)", job.where);
    return gi_tcp_open(&job, listener, origin, deadline, boot);
}

/* ---- an address that both sides know ---- */

static int take_secret(const struct gi_env *env, struct gi_tcp_job *job)
{
    size_t n = env->set.secret ? strlen(env->secret) : 0;

    if (n > sizeof(job->secret))
        return gi_fail(GIN_EINVAL, "GINSHMEM_SECRET has %zu characters; at most %zu count", n,
                       sizeof(job->secret));
    if (n > 0)
        memcpy(job->secret, env->secret, n);
    return GIN_OK;
}

/*
 * Listen at one of the ports from port on. At the address itself where it is a number of this
 * host, else at all: a name may mean anything, and an address may be translated on the way.
 */
static int listen_at(const char *host, uint16_t port, int ports)
{
    struct gi_addr a[2];
    int n = gi_addr_number(host, port, a, 2), fd = -EADDRINUSE;

    for (int i = 0; i < ports && fd == -EADDRINUSE && port + i <= 65535; i++) {
        if (n > 0)
            gi_addr_set_port(&a[0], (uint16_t)(port + i));
        fd = gi_sock_listen(n > 0 ? &a[0] : NULL, (uint16_t)(port + i));
        if (fd == -EADDRNOTAVAIL && n > 0)
            fd = gi_sock_listen(NULL, (uint16_t)(port + i));
    }
    return fd;
}

/*
 * A port may be taken for a moment: by the communicator before, or by the far end of some
 * connection that got this number by chance.
 */
static int listen_patiently(const char *host, uint16_t port, int ports, uint64_t deadline)
{
    uint64_t until = gi_deadline_in(BUSY_NS);
    int fd;

    until = until < deadline ? until : deadline;
    while ((fd = listen_at(host, port, ports)) == -EADDRINUSE && gi_now_ns() < until)
        gi_os_sleep_ns(BUSY_PAUSE_NS);
    if (fd < 0)
        return gi_fail(GIN_ESYS, "rank 0 cannot listen at %s, port %u%s: %s", host, port,
                       ports > 1 ? " and the next ones" : "", gi_os_strerror(fd));
    return fd;
}

static int open_at(const char *host, uint16_t port, int ports, struct gi_tcp_job *job,
                   const char *origin, uint64_t deadline, struct gi_boot **boot)
{
    int listener = -1, n;

    snprintf(job->where, sizeof(job->where), strchr(host, ':') ? "[%.60s]:%u" : "%.60s:%u", host,
             port);
    if (job->rank == 0) {
        if (job->size == 1)
            return gi_tcp_open(job, -1, origin, deadline, boot);
        listener = listen_patiently(host, port, ports, deadline);
        return listener < 0 ? listener : gi_tcp_open(job, listener, origin, deadline, boot);
    }
    for (int i = 0; i < ports && port + i <= 65535; i++) {
        int room = (GI_TCP_PLACES - job->n_places) / (ports - i);
        n = gi_addr_lookup(host, (uint16_t)(port + i), job->place + job->n_places, room);
        if (n < 0)
            return n;
        job->n_places += n;
    }
    job->alone = ports == 1;
    return gi_tcp_open(job, listener, origin, deadline, boot);
}

bool gi_boot_root_offered(const struct gi_env *env, const char **why)
{
    bool all = env->set.rank && env->set.size && env->set.root;

    *why = all ? "GINSHMEM_RANK, SIZE and ROOT are set"
           : env->set.rank || env->set.size || env->set.root
               ? "of GINSHMEM_RANK, SIZE and ROOT "
                 "only some are set"
               : "GINSHMEM_RANK, SIZE and ROOT are not set";
    return all;
}

int gi_boot_root_open(const struct gi_env *env, uint64_t deadline, struct gi_boot **boot)
{
    struct gi_tcp_job job = {.id = gi_tcp_fold("root")};
    char host[256], origin[96];
    uint16_t port;
    int st;

    if (env->rank >= env->size)
        return gi_fail(GIN_EINVAL, "GINSHMEM_RANK=%llu is not below GINSHMEM_SIZE=%llu",
                       (unsigned long long)env->rank, (unsigned long long)env->size);
    if (!gi_addr_split(env->root, host, sizeof(host), &port))
        return gi_fail(GIN_EINVAL, "GINSHMEM_ROOT=%s is not address:port or [IPv6 address]:port",
                       env->root);
    job.rank = (int)env->rank;
    job.size = (int)env->size;
    st = take_secret(env, &job);
    if (st != GIN_OK)
        return st;
    snprintf(origin, sizeof(origin), "tcp (GINSHMEM_ROOT=%.70s)", env->root);
    return open_at(host, port, 1, &job, origin, deadline, boot);
}

bool gi_boot_torch_offered(const char **why)
{
    int rank, size;
    bool all = gi_boot_env_int("WORLD_SIZE", 1, INT_MAX, &size) &&
               gi_boot_env_int("RANK", 0, size - 1, &rank) &&
               gi_env_foreign("MASTER_ADDR") != NULL && gi_env_foreign("MASTER_PORT") != NULL;

    *why = all ? "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set"
               : "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are not all set";
    return all;
}

/*
 * MASTER_PORT itself is taken: torchrun's own store listens there. Rank 0 takes the first free port
 * of the eight after it, and the others try them all; the job's number, made of MASTER_PORT and
 * torchrun's run id, tells the jobs of neighbouring ports apart.
 */
int gi_boot_torch_open(const struct gi_env *env, uint64_t deadline, struct gi_boot **boot)
{
    struct gi_tcp_job job = {.rank = 0};
    const char *host = gi_env_foreign("MASTER_ADDR"), *run = gi_env_foreign("TORCHELASTIC_RUN_ID"),
               *again = gi_env_foreign("TORCHELASTIC_RESTART_COUNT");
    char name[256], origin[96];
    int port, st;

    if (!gi_boot_env_int("WORLD_SIZE", 1, INT_MAX, &job.size) ||
        !gi_boot_env_int("RANK", 0, job.size - 1, &job.rank) || host == NULL ||
        !gi_boot_env_int("MASTER_PORT", 1, 65535 - TORCH_PORTS, &port))
        return gi_fail(GIN_EINVAL,
                       "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT do not name a "
                       "rank, a size, a host and a port up to %d",
                       65535 - TORCH_PORTS);
    st = take_secret(env, &job);
    if (st != GIN_OK)
        return st;
    snprintf(name, sizeof(name), "torch %d %.100s %.20s", port, run ? run : "", again ? again : "");
    job.id = gi_tcp_fold(name);
    snprintf(origin, sizeof(origin), "tcp (torchrun, MASTER_ADDR=%.50s)", host);
    st = open_at(host, (uint16_t)(port + 1), TORCH_PORTS, &job, origin, deadline, boot);
    if (st == GIN_OK)
        gi_boot_env_local(&(*boot)->local_rank, &(*boot)->local_size);
    return st;
}
