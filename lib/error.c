/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a communicator fails: a peer is dead, or all is over because somebody aborted it or because
 * ranks lost step. The first cause stays. Who learns of one shows it in a word of its own, which
 * its LSA peers look at in every long wait, and tells the watch, which carries it to all hosts; so
 * those learn too who cannot see the dead process themselves. The network's core is told as well:
 * operations to the dead rank fail, those to others go on.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot_watch.h"
#include "net_up.h"

#define LOOK_NS  1000000  /* between two looks at processes, whoever waits */
#define FLUSH_NS 5000000u /* for an abort to get out: so long ... */
#define FLUSHES  200      /* ... so often */

/* For the last meeting to end when somebody has gone already: both must be over, since a rank that
 * was stopped meanwhile finds the time gone. */
#define PART_NS    1000000000u
#define PART_LOOKS 25

/* Of comm->dead. Parted: gone while all leave, perhaps with good reason. */
enum { LIVES, DEAD, PARTED, PARTED_FIRST };

/* Of comm->watch: failures are rare, and its end must not meet them. */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- failing ---- */

static void tell_watch(gin_comm_t *comm, int rank, enum gi_watch_kind kind, const char *why)
{
    struct gi_watch_news n = {.rank = rank, .kind = kind};
    snprintf(n.why, sizeof(n.why), "%s", why);
    pthread_mutex_lock(&watch_lock);
    if (comm->watch != NULL)
        gi_watch_tell(comm->watch, &n);
    pthread_mutex_unlock(&watch_lock);
}

/* True for the first failure, which stays. */
static bool stick(gin_comm_t *comm, int status, int rank, const char *why)
{
    if (atomic_exchange_explicit(&comm->failing, 1, memory_order_acq_rel) != 0)
        return false;
    comm->status_rank = rank;
    snprintf(comm->status_text, sizeof(comm->status_text), "%s", why);
    atomic_store_explicit(&comm->status, status, memory_order_release);
    gi_info("comm", "failed: %s", comm->status_text);
    return true;
}

/* By the one thread that may write that word. */
static void show(struct gi_word *word, int status, int rank, const char *why)
{
    word->rank = rank;
    word->status = status;
    snprintf(word->why, sizeof(word->why), "%s", why);
    atomic_store_explicit(&word->set, 1, memory_order_release);
}

static bool end_all(gin_comm_t *comm, int status, const char *why)
{
    if (atomic_exchange_explicit(&comm->ending, 1, memory_order_acq_rel) != 0)
        return false;
    snprintf(comm->over_text, sizeof(comm->over_text), "%s", why);
    atomic_store_explicit(&comm->over, status, memory_order_release);
    return true;
}

void gi_comm_set_failed(gin_comm_t *comm, int status, int rank, const char *why)
{
    if (!end_all(comm, status, why))
        return;
    (void)stick(comm, status, rank, why);
    if (comm->up)
        show(&gi_control(comm, comm->shm->lsa_rank)->over, status, rank, why);
    tell_watch(comm, rank, GI_WATCH_OVER, why);
}

/* The text that this rank's death is told with from now on. */
static void keep_why(gin_comm_t *comm, int rank, const char *why)
{
    char *none = NULL, *text = strdup(why);
    if (text != NULL && !atomic_compare_exchange_strong(&comm->deaths[rank], &none, text))
        free(text);
}

void gi_comm_deaths_free(gin_comm_t *comm)
{
    for (int r = 0; comm->deaths != NULL && r < comm->size; r++)
        free(atomic_load(&comm->deaths[r]));
    free((void *)comm->deaths);
    comm->deaths = NULL;
}

void gi_comm_rank_died(gin_comm_t *comm, int rank, const char *why)
{
    keep_why(comm, rank, why); /* before anybody finds it dead */
    if (atomic_exchange_explicit(&comm->dead[rank], DEAD, memory_order_acq_rel) == DEAD)
        return;
    if (stick(comm, GIN_EPEER, rank, why) && comm->up)
        show(&gi_control(comm, comm->shm->lsa_rank)->death, GIN_EPEER, rank, why);
    if (comm->net != NULL) /* now that who waits for its operations finds the cause */
        gi_core_peer_dead(comm->net->core, rank, why);
    tell_watch(comm, rank, GI_WATCH_DEAD, why);
}

/* The others know me for dead, and go on without me. */
static void outlived(gin_comm_t *comm, const char *why)
{
    char text[sizeof(comm->status_text)];
    snprintf(text, sizeof(text), "the others go on without this rank: %.160s", why);
    if (end_all(comm, GIN_EPEER, text))
        (void)stick(comm, GIN_EPEER, comm->rank, text);
}

int gi_comm_fail_status(const gin_comm_t *comm)
{
    int status;
    while ((status = gi_comm_status_quiet(comm)) == GIN_OK &&
           atomic_load_explicit(&comm->failing, memory_order_acquire) != 0)
        gi_os_yield(); /* its text is being written */
    return gi_fail(status, "%s", comm->status_text);
}

/* ---- the watch ---- */

/*
 * Somebody went while I am in the last meeting. If all had come it may go, and its farewell can be
 * lost: then the meeting ends at once for me, too. If it does not, that one died before it came.
 * By the watch's thread alone.
 */
static void part(gin_comm_t *comm, int rank, const char *why)
{
    bool first = atomic_load(&comm->parting) == 0;
    uint8_t lives = LIVES;
    keep_why(comm, rank, why);
    if (!atomic_compare_exchange_strong(&comm->dead[rank], &lives, first ? PARTED_FIRST : PARTED))
        return;
    gi_info("comm", "while all leave: %s", why);
    if (first)
        atomic_store(&comm->parting, gi_now_ns());
}

static void bury(gin_comm_t *comm, uint8_t parted)
{
    for (int r = 0; r < comm->size; r++) {
        const char *why = atomic_load(&comm->deaths[r]);
        if (atomic_load_explicit(&comm->dead[r], memory_order_acquire) == parted)
            gi_comm_rank_died(comm, r, why != NULL ? why : "a rank died while all were leaving");
    }
}

static void look_at_parted(gin_comm_t *comm)
{
    uint64_t since = atomic_load_explicit(&comm->parting, memory_order_acquire);
    if (GIN_LIKELY(since == 0) || atomic_fetch_add(&comm->parting_looks, 1) < PART_LOOKS ||
        gi_now_ns() - since < PART_NS)
        return;
    bury(comm, PARTED_FIRST); /* others may have left because of it */
    bury(comm, PARTED);
}

/* By the watch's thread. */
static void hear(void *arg, const struct gi_watch_news *n)
{
    gin_comm_t *comm = arg;
    if (n->kind == GI_WATCH_OVER) {
        gi_comm_set_failed(comm, GIN_EPEER, n->rank, n->why);
    } else if (n->rank != comm->rank) {
        if (atomic_load_explicit(&comm->leaving, memory_order_acquire) != 0)
            part(comm, n->rank, n->why);
        else
            gi_comm_rank_died(comm, n->rank, n->why);
    } else {
        outlived(comm, n->why);
    }
}

static int gather(void *arg, const void *mine, void *all, size_t bytes)
{
    return gi_comm_gather(arg, mine, all, bytes);
}

int gi_comm_watch_up(gin_comm_t *comm)
{
    const struct gi_watch_config c = {
        .rank = comm->rank,
        .size = comm->size,
        .iface = comm->env.set.iface ? comm->env.iface : NULL,
        .silence_ns = comm->env.peer_timeout,
        .gather = gather,
        .hear = hear,
        .arg = comm,
    };
    struct gi_watch *w = NULL;
    int st = gi_agree_on(comm, GI_AGREE_WATCH, 0, 0, 0, GIN_OK);
    if (st == GIN_OK)
        st = gi_watch_open(&c, &w);
    pthread_mutex_lock(&watch_lock);
    comm->watch = w;
    pthread_mutex_unlock(&watch_lock);
    return st;
}

void gi_comm_watch_down(gin_comm_t *comm, int status)
{
    char why[GI_WATCH_WHY];
    if (status != GIN_OK) {
        bool told = gi_comm_status_quiet(comm) != GIN_OK; /* its text is whole then */
        snprintf(why, sizeof(why), "rank %d has left the communicator, which had failed%s%.80s",
                 comm->rank, told ? ": " : "", told ? comm->status_text : "");
        tell_watch(comm, comm->rank, GI_WATCH_DEAD, why);
    }
    pthread_mutex_lock(&watch_lock);
    struct gi_watch *w = comm->watch;
    comm->watch = NULL;
    pthread_mutex_unlock(&watch_lock);
    gi_watch_close(w);
}

/* An abort gets out before this process may end. */
static void flush_watch(gin_comm_t *comm)
{
    bool out = false;
    for (int i = 0; i < FLUSHES && !out; i++) {
        pthread_mutex_lock(&watch_lock); /* not for long: the watch's thread may want it */
        out = comm->watch == NULL || gi_watch_flush(comm->watch, gi_deadline_in(FLUSH_NS));
        pthread_mutex_unlock(&watch_lock);
    }
}

/* ---- looking ---- */

/* What somebody's word says, if it says something. */
static bool read_word(const struct gi_word *word, struct gi_word *copy)
{
    if (GIN_LIKELY(atomic_load_explicit(&word->set, memory_order_acquire) == 0))
        return false;
    copy->rank = word->rank;
    copy->status = word->status;
    memcpy(copy->why, word->why, sizeof(copy->why));
    copy->why[sizeof(copy->why) - 1] = 0;
    return true;
}

/* Peers that show a failure. */
static void look_at_words(gin_comm_t *comm)
{
    struct gi_word w;
    for (int r = 0; r < comm->shm->lsa_size; r++) {
        const struct gi_control *c = gi_control(comm, r);
        if (r == comm->shm->lsa_rank)
            continue;
        if (read_word(&c->over, &w))
            gi_comm_set_failed(comm, w.status == GIN_ENET ? GIN_ENET : GIN_EPEER, w.rank, w.why);
        if (!read_word(&c->death, &w) || w.rank < 0 || w.rank >= comm->size)
            continue;
        if (w.rank != comm->rank)
            gi_comm_rank_died(comm, w.rank, w.why);
        else
            outlived(comm, w.why);
    }
}

/* Left by gin_finalize(). A rank that I cannot see into may only end once all of us leave. */
static int has_left(const gin_comm_t *comm, int world)
{
    int lsa = comm->shm->lsa_of[world];
    if (lsa < 0)
        return atomic_load_explicit(&comm->leaving, memory_order_acquire);
    return (int)atomic_load_explicit(&gi_control(comm, lsa)->departed, memory_order_acquire);
}

/* A process ended: those of its ranks that had not left are dead. On other hosts by name the watch
 * sees that, too, and what tells of others is the same wherever they are. */
static void process_ended(gin_comm_t *comm, int first)
{
    char why[sizeof(comm->status_text)];
    for (int r = first; r < comm->size; r++) {
        const struct gi_card *card = &comm->cards[r];
        if (card->process != comm->cards[first].process || has_left(comm, r) ||
            (comm->watch != NULL && card->host != comm->cards[comm->rank].host))
            continue;
        snprintf(why, sizeof(why), "rank %d is dead: its process %d on host %.63s has ended", r,
                 (int)card->pid, card->host_id);
        gi_comm_rank_died(comm, r, why);
    }
}

static void look_at_processes(gin_comm_t *comm)
{
    uint64_t now = gi_now_ns();
    uint64_t next = atomic_load_explicit(&comm->next_look, memory_order_relaxed);
    if (now < next ||
        !atomic_compare_exchange_strong_explicit(&comm->next_look, &next, now + LOOK_NS,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    int ended = -1;
    while ((ended = gi_shm_dead_after(comm->shm, ended)) >= 0)
        process_ended(comm, ended);
}

/* The status with which all is over, or GIN_OK. */
static int look(gin_comm_t *comm)
{
    int over = atomic_load_explicit(&comm->over, memory_order_acquire);
    look_at_parted(comm);
    if (over == GIN_OK && comm->up) {
        look_at_words(comm);
        look_at_processes(comm);
        over = atomic_load_explicit(&comm->over, memory_order_acquire);
    }
    return over;
}

int gi_comm_health(void *arg)
{
    gin_comm_t *comm = arg;
    (void)look(comm);
    return gi_comm_status_quiet(comm) == GIN_OK ? GIN_OK : gi_comm_fail_status(comm);
}

int gi_comm_whole(void *arg)
{
    gin_comm_t *comm = arg;
    int over = look(comm);
    return over == GIN_OK ? GIN_OK : gi_fail(over, "%s", comm->over_text);
}

int gi_comm_rank_health(const gin_comm_t *comm, int rank)
{
    if (GIN_LIKELY(atomic_load_explicit(&comm->dead[rank], memory_order_acquire) != DEAD))
        return GIN_OK;
    const char *why = atomic_load(&comm->deaths[rank]);
    return why != NULL ? gi_fail(GIN_EPEER, "%s", why)
                       : gi_fail(GIN_EPEER, "rank %d is dead", rank);
}

int gin_comm_status(gin_comm_t *comm)
{
    int st = gi_comm_enter(comm, "gin_comm_status");
    return st == GIN_OK ? gi_comm_health(comm) : st;
}

int gin_comm_abort(gin_comm_t *comm, const char *why)
{
    char text[sizeof(comm->status_text)];
    int st = gi_comm_enter(comm, "gin_comm_abort");
    if (st != GIN_OK)
        return st;
    snprintf(text, sizeof(text), "rank %d aborted: %s", comm->rank, why != NULL ? why : "");
    gi_comm_set_failed(comm, GIN_EPEER, comm->rank, text);
    flush_watch(comm);
    if (!comm->up || (comm->shm->lsa_size < comm->size && comm->watch == NULL))
        gi_warn("comm", "%s; ranks that are not load/store accessible learn it when this one ends",
                text);
    return GIN_OK;
}

int gin_comm_shrink(gin_comm_t *comm, gin_comm_t **survivors)
{
    int st = gi_comm_enter(comm, "gin_comm_shrink");
    if (st != GIN_OK)
        return st;
    if (survivors == NULL)
        return gi_fail(GIN_EINVAL, "gin_comm_shrink: survivors is NULL");
    return gi_fail(GIN_ENOTSUP, "gin_comm_shrink is not built yet: survivors have no way to agree "
                                "on who is left; gin_finalize() and gin_init() with a new unique "
                                "id among the survivors");
}
