/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joining and leaving: a table of parts, brought up in order and taken down backwards. Nothing here
 * touches memory windows or the network; the heap comes up with the first call that needs it.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot_watch.h"
#include "card.h"
#include "dump.h"
#include "net_ops.h"
#include "retired.h"

/* Live communicators of the process: the first one takes SIGUSR1, the last one gives it back. */
static struct {
    pthread_mutex_t lock;
    int count;
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Raised in every fork()ed child: cheaper to compare than asking for the process id. */
static unsigned forks;
static pthread_once_t fork_watch = PTHREAD_ONCE_INIT;

/* Touches nothing that was allocated: pages with pinned memory in them are not the child's. */
static void forked(void)
{
    forks++;
    /* the child's copy of the lock may be held by a thread that it does not have */
    pthread_mutex_init(&live.lock, NULL);
    gi_os_forked();
    gi_retired_forked();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

void gin_config_init(gin_config_t *config)
{
    if (config == NULL)
        return;
    memset(config, 0, sizeof(*config));
    config->size = sizeof(*config);
    config->version = GIN_VERSION;
    config->rank = config->n_ranks = -1;
}

int gin_version(void)
{
    return GIN_VERSION;
}

/* ---- parts ---- */

/* The config as this library knows it: what an older program does not know keeps its default. */
static int config_adopt(const gin_config_t *given, gin_config_t *config)
{
    gin_config_init(config);
    if (given == NULL)
        return GIN_OK;
    if (given->size < offsetof(gin_config_t, allgather) || given->size > 4096)
        return gi_fail(GIN_EINVAL,
                       "gin_init: config->size is %zu, this library knows %zu; initialise the "
                       "config with gin_config_init()",
                       given->size, sizeof(*config));
    memcpy(config, given, given->size < sizeof(*config) ? given->size : sizeof(*config));
    return GIN_OK;
}

/* The config's word before the environment's. A default gives way to what was asked for. */
static int size_heap(struct gi_env *env, const gin_config_t *config)
{
    bool sized = config->heap_size != 0 || env->set.heap_size;
    bool limited = config->heap_max != 0 || env->set.heap_max;
    if (config->heap_size != 0)
        env->heap_size = config->heap_size;
    if (config->heap_max != 0)
        env->heap_max = config->heap_max;
    if (env->heap_size <= env->heap_max)
        return GIN_OK;
    if (sized && limited)
        return gi_fail(GIN_EINVAL,
                       "gin_init: a heap of %llu bytes (heap_size, GINSHMEM_HEAP_SIZE) is above "
                       "its limit of %llu (heap_max, GINSHMEM_HEAP_MAX)",
                       (unsigned long long)env->heap_size, (unsigned long long)env->heap_max);
    if (limited)
        env->heap_size = env->heap_max;
    else
        env->heap_max = env->heap_size;
    return GIN_OK;
}

static int env_up(gin_comm_t *comm, const gin_config_t *config)
{
    int st = gi_env_load(&comm->env);
    if (st != GIN_OK)
        return st;
    st = size_heap(&comm->env, config);
    if (st != GIN_OK)
        gi_env_release(&comm->env);
    else
        gi_wait_set_warn(comm->env.wait_warn);
    return st;
}

static void env_down(gin_comm_t *comm)
{
    gi_env_release(&comm->env);
}

static int boot_up(gin_comm_t *comm, const gin_config_t *config)
{
    int st = gi_boot_open(&comm->env, config, &comm->boot);
    if (st != GIN_OK)
        return st;
    comm->rank = comm->boot->rank;
    comm->size = comm->boot->size;
    comm->boot->stop = gi_comm_health;
    comm->boot->stop_arg = comm;
    gi_log_set_rank(comm->rank);
    /* Others wait for this rank's card: a failure goes there. */
    comm->early = gi_log_setup(comm->env.log, comm->env.log_file, comm->rank);
    return GIN_OK;
}

static void boot_down(gin_comm_t *comm)
{
    gi_boot_close(comm->boot);
}

static void cards_down(gin_comm_t *comm)
{
    free(comm->cards);
    free(comm->records);
    gi_comm_deaths_free(comm);
    free((void *)comm->dead);
}

static int cards_up(gin_comm_t *comm, const gin_config_t *config)
{
    struct gi_card mine;
    int st, early = comm->early;
    if (early == GIN_OK)
        early = gi_card_make(comm, config, &mine);
    if (early != GIN_OK)
        mine = (struct gi_card){.magic = GI_COMM_MAGIC, .status = early};
    comm->cards = calloc((size_t)comm->size, sizeof(*comm->cards));
    comm->records = calloc((size_t)comm->size, sizeof(*comm->records));
    comm->dead = calloc((size_t)comm->size, sizeof(*comm->dead));
    comm->deaths = calloc((size_t)comm->size, sizeof(*comm->deaths));
    if (comm->cards == NULL || comm->records == NULL || comm->dead == NULL ||
        comm->deaths == NULL) {
        cards_down(comm);
        return gi_fail(GIN_ENOMEM, "gin_init: no memory for %d ranks", comm->size);
    }
    st = gi_boot_allgather(comm->boot, &mine, comm->cards, sizeof(mine),
                           gi_deadline_in(comm->env.init_timeout));
    if (st == GIN_OK)
        st = early != GIN_OK ? early : gi_cards_check(comm->cards, comm->size);
    if (st != GIN_OK)
        cards_down(comm);
    return st;
}

static int teams_up(gin_comm_t *comm, const gin_config_t *config)
{
    (void)config;
    return gi_teams_open(comm);
}

static int topology_up(gin_comm_t *comm, const gin_config_t *config)
{
    (void)config;
    return gi_topology_open(comm);
}

static int windows_up(gin_comm_t *comm, const gin_config_t *config)
{
    (void)config;
    return gi_windows_open(comm);
}

static const struct part {
    const char *name;
    int (*up)(gin_comm_t *comm, const gin_config_t *config);
    void (*down)(gin_comm_t *comm);
} parts[] = {
    {"environment", env_up, env_down},
    {"bootstrap", boot_up, boot_down},
    {"cards", cards_up, cards_down},
    {"teams", teams_up, gi_teams_close},
    {"topology", topology_up, gi_topology_close},
    {"windows", windows_up, gi_windows_close},
};
#define PARTS      (sizeof(parts) / sizeof(parts[0]))
#define PART_CARDS 2

static void parts_down(gin_comm_t *comm, size_t n)
{
    while (n-- > 0)
        parts[n].down(comm);
}

/* ---- joining ---- */

static void live_add(gin_comm_t *comm)
{
    pthread_mutex_lock(&live.lock);
    gi_dump_add(comm);
    if (live.count++ == 0)
        gi_dump_install(comm->env.signal_dump != 0);
    pthread_mutex_unlock(&live.lock);
}

static void live_remove(gin_comm_t *comm)
{
    pthread_mutex_lock(&live.lock);
    gi_dump_remove(comm);
    if (--live.count == 0)
        gi_dump_uninstall();
    pthread_mutex_unlock(&live.lock);
}

/*
 * What came up after the cards may have failed on some ranks only; nobody may then have a
 * communicator. The records are room for the votes.
 */
static int consent(gin_comm_t *comm, int mine)
{
    int32_t vote = mine, *votes = (int32_t *)(void *)comm->records;
    int st = gi_boot_allgather(comm->boot, &vote, votes, sizeof(vote),
                               gi_deadline_in(comm->env.init_timeout));
    if (mine != GIN_OK || st != GIN_OK)
        return mine != GIN_OK ? mine : st;
    for (int r = 0; r < comm->size; r++)
        if (votes[r] != GIN_OK)
            return gi_fail(votes[r], "gin_init: failed on rank %d (%s)", r,
                           gin_status_name(votes[r]));
    return GIN_OK;
}

int gin_init(const gin_config_t *given, gin_comm_t **out)
{
    gin_config_t config;
    size_t n = 0;
    if (out == NULL)
        return gi_fail(GIN_EINVAL, "gin_init: comm is NULL");
    *out = NULL;
    int st = config_adopt(given, &config);
    if (st != GIN_OK)
        return st;
    gin_comm_t *comm = calloc(1, sizeof(*comm));
    if (comm == NULL)
        return gi_fail(GIN_ENOMEM, "gin_init: no memory for a communicator");
    pthread_once(&fork_watch, watch_forks);
    comm->forks = forks;
    for (; n < PARTS; n++) {
        st = parts[n].up(comm, &config);
        if (st != GIN_OK)
            break;
        gi_debug("init", "%s up", parts[n].name);
    }
    if (n > PART_CARDS)
        st = consent(comm, st);
    if (st != GIN_OK) {
        parts_down(comm, n);
        free(comm->stale_windows);
        free(comm);
        return st;
    }
    comm->magic = GI_COMM_MAGIC;
    live_add(comm);
    gi_info("init", "rank %d of %d on host %d of %d (%s), by %s", comm->rank, comm->size,
            comm->host_of[comm->rank], comm->n_hosts, comm->cards[comm->rank].host_id,
            comm->boot->origin);
    *out = comm;
    return GIN_OK;
}

/*
 * A dead communicator stays readable until GRAVES others have died after it, so that a call on a
 * stale handle or context is refused and does not read freed memory.
 */
#define GRAVES 64

static void bury(gin_comm_t *comm)
{
    static gin_comm_t *graves[GRAVES];
    static unsigned next;
    pthread_mutex_lock(&live.lock);
    gin_comm_t *oldest = graves[next % GRAVES];
    graves[next++ % GRAVES] = comm;
    pthread_mutex_unlock(&live.lock);
    if (oldest != NULL) {
        free(oldest->stale_windows);
        free(oldest->lsa_of);
        free(oldest);
    }
}

int gin_finalize(gin_comm_t *comm)
{
    int st = gi_comm_enter(comm, "gin_finalize");
    if (st != GIN_OK)
        return st;
    /* the last meeting: nobody unmaps what another still writes to */
    if (gi_net_quiet_all(comm, "gin_finalize") != GIN_OK)
        gi_info("init", "leaving with operations under way: %s", gin_last_error());
    atomic_store_explicit(&comm->leaving, 1, memory_order_release);
    st = gi_agree_on(comm, GI_AGREE_FINALIZE, 0, 0, 0, GIN_OK);
    if (comm->up && st == GIN_OK)
        atomic_store_explicit(&gi_control(comm, comm->shm->lsa_rank)->departed, 1,
                              memory_order_release);
    gi_comm_watch_down(comm, st);
    live_remove(comm);
    gi_devcomms_close(comm);
    if (comm->up)
        gi_memory_down(comm);
    parts_down(comm, PARTS);
    comm->magic = 0;
    bury(comm);
    return st;
}

/* ---- asking ---- */

int gi_comm_enter(const gin_comm_t *comm, const char *call)
{
    if (GIN_UNLIKELY(comm == NULL))
        return gi_fail(GIN_ESTATE, "%s: no communicator (NULL): call gin_init() first", call);
    if (GIN_UNLIKELY(comm->magic != GI_COMM_MAGIC))
        return gi_fail(GIN_ESTATE, "%s: the communicator has been finalized or is none", call);
    if (GIN_UNLIKELY(comm->forks != forks))
        return gi_fail(GIN_ESTATE,
                       "%s: this is a fork()ed child of the process that joined; a child may only "
                       "exec or exit",
                       call);
    return GIN_OK;
}

int gi_comm_enter_up(gin_comm_t *comm, const char *call)
{
    int st = gi_comm_enter(comm, call);
    if (GIN_UNLIKELY(st == GIN_OK && !comm->up))
        st = gi_memory_up(comm);
    return st;
}

int gin_rank(const gin_comm_t *comm)
{
    return gi_comm_enter(comm, "gin_rank") == GIN_OK ? comm->rank : -1;
}

int gin_size(const gin_comm_t *comm)
{
    return gi_comm_enter(comm, "gin_size") == GIN_OK ? comm->size : -1;
}

int gin_comm_barrier(gin_comm_t *comm)
{
    int st = gi_comm_enter(comm, "gin_comm_barrier");
    if (st != GIN_OK)
        return st;
    GIN_FENCE_SEQ_CST(); /* my stores into peers' memory come before my arrival */
    st = gi_net_quiet_all(comm, "gin_comm_barrier");
    return gi_agree_on(comm, GI_AGREE_BARRIER, 0, 0, 0, st);
}

int gin_comm_allgather(gin_comm_t *comm, const void *in, void *out, size_t bytes)
{
    int st = gi_comm_enter(comm, "gin_comm_allgather");
    if (st != GIN_OK)
        return st;
    if (bytes != 0 && (in == NULL || out == NULL))
        st = gi_fail(GIN_EINVAL, "gin_comm_allgather: %s is NULL with %zu bytes",
                     in == NULL ? "in" : "out", bytes);
    st = gi_agree_on(comm, GI_AGREE_ALLGATHER, bytes, 0, 0, st); /* the others do not wait */
    return st == GIN_OK && bytes != 0 ? gi_comm_gather(comm, in, out, bytes) : st;
}
