/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0's side of joining: one poll loop over the listening socket, the callers that have not yet
 * said who they are, and the ranks that have. Nobody is waited for in particular.
 *
 * A rank may die while others have yet to come, and be started again. Its end and the next caller
 * reach us in any order, so no rank counts as alive because nothing was heard of its end: before
 * the job is complete, and before a caller is refused since its number is taken, the ranks
 * concerned are called and have to answer.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_tcp.h"

#define HELLO_NS    5000000000u /* for a caller to say who it is, for its rival to answer */
#define MAX_CALLERS 128         /* beyond the ranks' own; the eldest makes room */

struct caller {
    int fd;
    size_t got;
    uint64_t until;
    uint64_t call; /* of the rank whose number it claims; 0: of none yet */
    struct gi_tcp_hello hello;
};

/* A rank that has joined. */
struct member {
    uint64_t nonce;
    uint64_t call; /* the last one, 0: never called */
    bool here;     /* it has answered that */
    size_t got;    /* of the answer */
    struct gi_tcp_frame answer;
};

struct gathering {
    struct gi_tcp_boot *t;
    const struct gi_tcp_job *job;
    int listener;
    int missing;
    bool roll;      /* all are there and have been called */
    uint64_t calls; /* made so far */
    struct member *members;
    struct caller *callers;
    unsigned n_callers, max_callers;
    struct pollfd *polls;
    unsigned strays;        /* callers turned away */
    char last[GI_BOOT_WHY]; /* why the last of them */
};

static void note_stray(struct gathering *g, const char *why)
{
    g->strays++;
    snprintf(g->last, sizeof(g->last), "%s", why);
    gi_debug("boot", "a caller was turned away: %s", why);
}

static void drop_caller(struct gathering *g, unsigned i)
{
    gi_os_close(g->callers[i].fd);
    g->callers[i] = g->callers[--g->n_callers];
}

static void drop_eldest(struct gathering *g)
{
    unsigned eldest = 0;
    for (unsigned i = 1; i < g->n_callers; i++)
        if (g->callers[i].until < g->callers[eldest].until)
            eldest = i;
    note_stray(g, "too many callers that say nothing");
    drop_caller(g, eldest);
}

/* Take all who are at the door. */
static int accept_all(struct gathering *g)
{
    for (;;) {
        int fd = gi_os_accept(g->listener, NULL, NULL, 0);
        if (fd == -ETIMEDOUT)
            return GIN_OK;
        if ((fd == -EMFILE || fd == -ENFILE) && g->n_callers > 0) {
            drop_eldest(g);
            continue;
        }
        if (fd == -EMFILE || fd == -ENFILE)
            return gi_fail(GIN_ESYS,
                           "rank 0 needs a descriptor for each of %d ranks and may open no more; "
                           "raise the limit (ulimit -n)",
                           g->job->size);
        if (fd < 0)
            return gi_fail(GIN_ESYS, "accepting ranks at %s: %s", g->job->where,
                           gi_os_strerror(fd));
        gi_sock_tune(fd);
        if (g->n_callers == g->max_callers)
            drop_eldest(g);
        g->callers[g->n_callers++] = (struct caller){.fd = fd, .until = gi_deadline_in(HELLO_NS)};
    }
}

/* Take what a rank has sent, which can be answers and its end: false if it has left. */
static bool hear_rank(struct gathering *g, int rank)
{
    struct member *m = &g->members[rank];

    for (;;) {
        ssize_t n =
            gi_sock_recv(g->t->fds[rank], (char *)&m->answer + m->got, sizeof(m->answer) - m->got);
        if (n < 0)
            return n == -EAGAIN;
        m->got += (size_t)n;
        if (m->got < sizeof(m->answer))
            continue;
        m->got = 0;
        if (m->answer.magic != GI_TCP_MAGIC || m->answer.kind != GI_TCP_HERE)
            return false;
        m->here = m->answer.seq == m->call;
    }
}

static void call_rank(struct gathering *g, int rank)
{
    struct member *m = &g->members[rank];

    m->here = false;
    m->call = ++g->calls;
    gi_tcp_send_call(g->t->fds[rank], GI_TCP_CALL, m->call);
}

static void lose_rank(struct gathering *g, int rank)
{
    gi_debug("boot", "rank %d left before all had joined", rank);
    gi_os_close(g->t->fds[rank]);
    g->t->fds[rank] = -1;
    g->missing++;
    g->roll = false;
}

/* NULL if hello is a rank of this job that is wanted, else why not. */
static const char *objection(struct gathering *g, const struct gi_tcp_hello *h, int *status,
                             char *text)
{
    const struct gi_tcp_job *job = g->job;

    *status = GIN_EMISMATCH;
    if (h->version != GI_TCP_VERSION) {
        snprintf(text, GI_BOOT_WHY, "rank %u speaks version %u of the bootstrap, rank 0 version %u",
                 h->rank, h->version, GI_TCP_VERSION);
        return text;
    }
    if (h->job != job->id) {
        *status = GIN_EAGAIN; /* the caller may look elsewhere */
        return "another job listens there";
    }
    if (!gi_tcp_is_half(job->secret, false, h->half))
        return "the job secrets differ (GINSHMEM_SECRET, unique id)";
    if (h->size != (uint32_t)job->size) {
        snprintf(text, GI_BOOT_WHY, "rank %u says that there are %u ranks, rank 0 says %d", h->rank,
                 h->size, job->size);
        return text;
    }
    if (h->rank == 0 || h->rank >= h->size) {
        *status = GIN_EINVAL;
        snprintf(text, GI_BOOT_WHY, "there is no place for another rank %u of %u", h->rank,
                 h->size);
        return text;
    }
    return NULL;
}

static void refuse(struct gathering *g, unsigned i, int status, const char *why)
{
    note_stray(g, why);
    gi_tcp_send_note(g->callers[i].fd, GI_TCP_REFUSE, status, why);
    drop_caller(g, i);
}

/* The caller is the rank; its descriptor changes hands. */
static void take_rank(struct gathering *g, unsigned i)
{
    struct caller c = g->callers[i];

    g->t->fds[c.hello.rank] = c.fd;
    g->members[c.hello.rank] = (struct member){.nonce = c.hello.nonce};
    g->missing--;
    g->callers[i] = g->callers[--g->n_callers];
    gi_tcp_send_ack(c.fd, g->job->secret);
}

/* Caller i claims a number that is taken. It waits until that rank has answered or left. */
static void contend(struct gathering *g, unsigned i)
{
    struct caller *c = &g->callers[i];
    const struct member *m = &g->members[c->hello.rank];
    char text[GI_BOOT_WHY];

    if (m->nonce == c->hello.nonce) { /* it reached us by two addresses */
        drop_caller(g, i);
    } else if (c->call == 0) {
        call_rank(g, (int)c->hello.rank);
        c->call = m->call;
        c->until = gi_deadline_in(HELLO_NS);
    } else if ((m->here && m->call >= c->call) || gi_now_ns() >= c->until) {
        snprintf(text, sizeof(text), "two processes say that they are rank %u", c->hello.rank);
        refuse(g, i, GIN_EINVAL, text);
    }
}

/* A caller has said who it is. */
static void admit(struct gathering *g, unsigned i)
{
    const struct gi_tcp_hello *h = &g->callers[i].hello;
    char text[GI_BOOT_WHY];
    int status;
    const char *why = objection(g, h, &status, text);

    if (why != NULL) {
        refuse(g, i, status, why);
        return;
    }
    if (g->t->fds[h->rank] >= 0 && !hear_rank(g, (int)h->rank))
        lose_rank(g, (int)h->rank);
    if (g->t->fds[h->rank] < 0)
        take_rank(g, i);
    else
        contend(g, i);
}

/* Something came from caller i, or its time is over. */
static void serve_caller(struct gathering *g, unsigned i)
{
    struct caller *c = &g->callers[i];
    char more, *into = c->call == 0 ? (char *)&c->hello + c->got : &more;
    ssize_t n = gi_sock_recv(c->fd, into, c->call == 0 ? sizeof(c->hello) - c->got : 1);

    if ((n < 0 && n != -EAGAIN) || (n > 0 && c->call != 0)) {
        note_stray(g, c->call != 0  ? "it claimed the number of a rank that is there, and left"
                      : c->got == 0 ? "it left without a word"
                                    : "it left before it had said all");
        drop_caller(g, i);
        return;
    }
    c->got += n > 0 ? (size_t)n : 0;
    if (c->got >= sizeof(c->hello.magic) && c->hello.magic != GI_TCP_MAGIC) {
        note_stray(g, "what it sent is not from this library");
        drop_caller(g, i);
    } else if (c->got == sizeof(c->hello)) {
        admit(g, i);
    } else if (gi_now_ns() >= c->until) {
        note_stray(g, "it did not say who it is");
        drop_caller(g, i);
    }
}

/* One turn of the loop. */
static int turn(struct gathering *g, uint64_t deadline)
{
    unsigned n = 0, callers = g->n_callers;
    uint64_t until = deadline;
    int size = g->job->size, st;

    g->polls[n++] = (struct pollfd){.fd = g->listener, .events = POLLIN};
    for (unsigned i = 0; i < callers; i++) {
        g->polls[n++] = (struct pollfd){.fd = g->callers[i].fd, .events = POLLIN};
        until = g->callers[i].until < until ? g->callers[i].until : until;
    }
    for (int r = 1; r < size; r++)
        g->polls[n++] = (struct pollfd){.fd = g->t->fds[r], .events = POLLIN};
    st = gi_os_poll(g->polls, n, until);
    if (st < 0)
        return gi_fail(GIN_ESYS, "waiting for ranks: %s", gi_os_strerror(st));
    /* Ranks first, then callers from the last one on: dropping one moves the last into its place.
     */
    for (int r = 1; r < size; r++)
        if (g->polls[1 + callers + (unsigned)r - 1].revents != 0 && !hear_rank(g, r))
            lose_rank(g, r);
    for (unsigned i = callers; i-- > 0;)
        if (g->polls[1 + i].revents != 0 || g->callers[i].call != 0 ||
            gi_now_ns() >= g->callers[i].until)
            serve_caller(g, i);
    return g->polls[0].revents != 0 ? accept_all(g) : GIN_OK;
}

static int too_late(struct gathering *g)
{
    struct gi_rank_list list = {.n = 0};
    char strays[GI_BOOT_WHY + 48] = "";

    for (int r = 1; r < g->job->size; r++)
        if (g->roll ? !g->members[r].here : g->t->fds[r] < 0)
            gi_rank_list_add(&list, r);
    if (g->strays > 0)
        snprintf(strays, sizeof(strays), "; %u callers turned away, the last: %s", g->strays,
                 g->last);
    return gi_fail(GIN_ETIMEDOUT, "%d of %d ranks %s at %s in time: rank %s%s", list.n,
                   g->job->size, g->roll ? "have joined, but do not answer" : "have not joined",
                   g->job->where, gi_rank_list_text(&list), strays);
}

static bool all_here(const struct gathering *g)
{
    for (int r = 1; r < g->job->size; r++)
        if (!g->members[r].here)
            return false;
    return true;
}

static int gather(struct gathering *g, uint64_t deadline)
{
    for (;;) {
        int st;
        if (g->missing == 0 && !g->roll) {
            for (int r = 1; r < g->job->size; r++)
                call_rank(g, r);
            g->roll = true;
        }
        if (g->roll && all_here(g))
            return GIN_OK;
        st = turn(g, deadline);
        if (st != GIN_OK)
            return st;
        if (gi_now_ns() >= deadline && !(g->roll && all_here(g)))
            return too_late(g);
    }
}

int gi_tcp_gather(struct gi_tcp_boot *t, const struct gi_tcp_job *job, int listener,
                  uint64_t deadline)
{
    unsigned size = (unsigned)job->size, max_callers = size + MAX_CALLERS;
    struct gathering g = {.t = t,
                          .job = job,
                          .listener = listener,
                          .missing = job->size - 1,
                          .max_callers = max_callers};
    int st;

    g.members = calloc(size, sizeof(*g.members));
    g.callers = calloc(max_callers, sizeof(*g.callers));
    g.polls = calloc(1 + max_callers + size, sizeof(*g.polls));
    st = g.members == NULL || g.callers == NULL || g.polls == NULL
             ? gi_fail(GIN_ENOMEM, "no memory to gather %d ranks", job->size)
             : gather(&g, deadline);
    while (g.n_callers > 0)
        drop_caller(&g, 0);
    for (int r = 1; r < job->size; r++) {
        if (t->fds[r] < 0)
            continue;
        if (st == GIN_OK)
            gi_tcp_send_note(t->fds[r], GI_TCP_WELCOME, GIN_OK, NULL);
        else
            gi_tcp_send_note(t->fds[r], GI_TCP_ERROR, st, gin_last_error());
    }
    free(g.polls);
    free(g.callers);
    free(g.members);
    return st;
}
