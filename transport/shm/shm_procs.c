/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the other processes of this host live. One pidfd per process, shared by all ranks and
 * communicators of this one, becomes readable when the process has exited, even while nobody has
 * reaped it. Where there are no pidfds (before Linux 5.3, or refused by a sandbox) each look reads
 * /proc/PID/stat instead; a different time of start is a different process.
 *
 * A pidfd cannot be somebody else's: it is opened in the middle of a join, and the join fails
 * unless its process takes part in a later step.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/shm/shm_int.h"

/* A process; lives while a communicator watches it. */
struct watched {
    struct watched *next;
    uint64_t process;
    pid_t pid;
    int pidfd;      /* or -1: no pidfds here */
    uint64_t start; /* then: when it began */
    unsigned refs;
};

struct gi_shm_procs {
    const struct gi_shm_rank *ranks; /* by world rank */
    int n;
    struct {
        struct watched *w;
        int rank; /* its lowest */
    } list[];     /* by rank */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *all;

static int watch_start(struct watched *w)
{
    int e = gi_os_pidfd_open(w->pid);
    w->pidfd = e >= 0 ? e : -1;
    if (e >= 0 || e == -ESRCH)
        return e < 0 ? e : 0;
    gi_info("shm", "no pidfd of process %ld: %s; looking into /proc instead", (long)w->pid,
            gi_os_strerror(e));
    return gi_os_process_start(w->pid, &w->start);
}

static int watch(uint64_t process, pid_t pid, struct watched **out)
{
    int e = 0;
    pthread_mutex_lock(&lock);
    struct watched *w = all;
    while (w != NULL && (w->process != process || w->pid != pid))
        w = w->next;
    if (w == NULL) {
        w = calloc(1, sizeof(*w));
        if (w == NULL) {
            e = -ENOMEM;
            goto unlock;
        }
        w->process = process;
        w->pid = pid;
        e = watch_start(w);
        if (e != 0) {
            free(w);
            goto unlock;
        }
        w->next = all;
        all = w;
    }
    w->refs++;
    *out = w;
unlock:
    pthread_mutex_unlock(&lock);
    return e;
}

static void unwatch(struct watched *w)
{
    pthread_mutex_lock(&lock);
    if (--w->refs == 0) {
        struct watched **p = &all;
        while (*p != w)
            p = &(*p)->next;
        *p = w->next;
        if (w->pidfd >= 0)
            gi_os_close(w->pidfd);
        free(w);
    }
    pthread_mutex_unlock(&lock);
}

/* Ranks of other processes of my pid space, the lowest of each, in rank order. */
static int others(const struct gi_shm_config *c, struct gi_shm_pair *pairs)
{
    const struct gi_shm_rank *me = &c->ranks[c->rank];
    int n = 0, m = 0;
    for (int r = 0; r < c->size; r++)
        if (c->ranks[r].pid_space == me->pid_space && c->ranks[r].process != me->process)
            pairs[n++] = (struct gi_shm_pair){{c->ranks[r].process}, r};
    gi_shm_sort_pairs(pairs, n);
    for (int i = 0; i < n; i++)
        if (i == 0 || pairs[i].key[0] != pairs[i - 1].key[0])
            pairs[m++] = (struct gi_shm_pair){{0}, pairs[i].rank};
    gi_shm_sort_pairs(pairs, m);
    return m;
}

int gi_shm_procs_open(const struct gi_shm_config *c, struct gi_shm_procs **out,
                      struct gi_shm_note *note)
{
    struct gi_shm_pair *pairs = malloc((size_t)c->size * sizeof(*pairs));
    if (pairs == NULL)
        return gi_shm_failed(note, GI_SHM_STEP_WATCH, ENOMEM, -1, "no memory to watch processes");
    int n = others(c, pairs), st = 0;
    struct gi_shm_procs *p = malloc(sizeof(*p) + (size_t)n * sizeof(p->list[0]));
    if (p == NULL) {
        st = gi_shm_failed(note, GI_SHM_STEP_WATCH, ENOMEM, -1, "no memory to watch processes");
        goto free_pairs;
    }
    p->ranks = c->ranks;
    for (p->n = 0; p->n < n; p->n++) {
        int rank = pairs[p->n].rank;
        const struct gi_shm_rank *him = &c->ranks[rank];
        int e = watch(him->process, him->pid, &p->list[p->n].w);
        if (e != 0) {
            st = gi_shm_failed(note, GI_SHM_STEP_WATCH, e, rank,
                               "cannot watch process %ld of rank %d: %s", (long)him->pid, rank,
                               gi_os_strerror(e));
            gi_shm_procs_close(p);
            goto free_pairs;
        }
        p->list[p->n].rank = rank;
    }
    *out = p;
free_pairs:
    free(pairs);
    return st;
}

void gi_shm_procs_close(struct gi_shm_procs *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->n; i++)
        unwatch(p->list[i].w);
    free(p);
}

static bool gone(const struct watched *w)
{
    uint64_t start = 0;
    return gi_os_process_start(w->pid, &start) == -ESRCH ||
           (w->start != 0 && start != 0 && start != w->start);
}

/* Any thread, at the same time as others: the pollfds live on the stack. */
int gi_shm_procs_dead(struct gi_shm_procs *p, int after)
{
    struct pollfd pf[64];
    int from = 0;
    while (from < p->n && p->list[from].rank <= after)
        from++;
    for (; from < p->n; from += 64) {
        int n = p->n - from < 64 ? p->n - from : 64, pidfds = 0;
        for (int i = 0; i < n; i++) {
            pf[i] = (struct pollfd){.fd = p->list[from + i].w->pidfd, .events = POLLIN};
            pidfds += pf[i].fd >= 0;
        }
        int ready = pidfds > 0 ? gi_os_poll(pf, (unsigned)n, 0) : 0;
        if (ready <= 0 && pidfds == n)
            continue;
        for (int i = 0; i < n; i++)
            if (pf[i].fd >= 0 ? ready > 0 && pf[i].revents != 0 : gone(p->list[from + i].w))
                return p->list[from + i].rank;
    }
    return -1;
}

bool gi_shm_procs_ended(struct gi_shm_procs *p, int rank)
{
    for (int i = 0; i < p->n; i++) {
        const struct watched *w = p->list[i].w;
        if (w->process == p->ranks[rank].process)
            return w->pidfd >= 0 ? gi_os_pidfd_dead(w->pidfd) : gone(w);
    }
    return false;
}
