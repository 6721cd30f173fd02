/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch's connections: who is connected with whom, and how they get to know each other. Of two
 * neighbours the one connects, at one address of the other after the next; both show the key that
 * the other gathered. A connection counts for the one when the other has answered, for the other
 * when the first beat has come: so none that was given up on the way is taken for a death.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_watch_int.h"

#define REST_NS      20000000u   /* between attempts */
#define DEAF_NS      100000000u  /* without a descriptor for who calls */
#define LONG_REST_NS 1000000000u /* ... when nobody waits for them any more */

/* ---- who ---- */

static void add(struct gi_watch_edge *edges, unsigned *n, int rank, bool mine)
{
    if (edges != NULL)
        edges[*n] = (struct gi_watch_edge){.rank = rank, .mine = mine, .fd = -1};
    ++*n;
}

unsigned gi_watch_neighbours(int rank, int size, struct gi_watch_edge *edges)
{
    unsigned n = 0;
    for (int64_t d = 1; d <= size / 2; d *= 2) {
        int after = (int)((rank + d) % size), before = (int)((rank + size - d) % size);
        if (after != before) {
            add(edges, &n, after, true);
            add(edges, &n, before, false);
        } else { /* opposite: the lower one connects */
            add(edges, &n, after, rank < after);
        }
    }
    return n;
}

/* ---- where ---- */

bool gi_watch_listen(struct gi_watch *w)
{
    struct gi_watch_card *mine = &w->card;
    struct gi_addr addr[GI_WATCH_PLACES];
    w->listener = gi_sock_listen(NULL, 0);
    if (w->listener < 0) {
        gi_info("watch", "cannot listen: %s", gi_os_strerror(w->listener));
        return false;
    }
    int n = gi_addr_local(w->config.iface, gi_sock_port(w->listener), addr, GI_WATCH_PLACES);
    int e = gi_os_random(mine->key, sizeof(mine->key));
    if (n <= 0 || e != 0) {
        const char *why = n <= 0 ? gin_last_error() : gi_os_strerror(e);
        if (w->config.iface != NULL) /* the user's word is not followed */
            gi_warn("watch", "deaths are noticed by operations alone: %s", why);
        else
            gi_info("watch", "%s", why);
        return false;
    }
    mine->n = (uint32_t)n;
    for (int i = 0; i < n; i++)
        gi_addr_pack(&addr[i], &mine->place[i]);
    return true;
}

/* ---- bytes ---- */

void gi_watch_edge_end(struct gi_watch_edge *e, enum gi_watch_step step)
{
    if (e->fd >= 0)
        gi_os_close(e->fd);
    e->fd = -1;
    e->got = e->out_n = 0;
    e->until = GI_NEVER;
    e->step = step;
}

bool gi_watch_push(struct gi_watch_edge *e)
{
    while (e->out_n > 0 && e->fd >= 0) {
        ssize_t n = gi_sock_send(e->fd, e->out, e->out_n, NULL, 0);
        if (n < 0)
            return n == -EAGAIN;
        e->out_n -= (size_t)n;
        memmove(e->out, e->out + n, e->out_n);
    }
    return true;
}

bool gi_watch_send(struct gi_watch_edge *e, const struct gi_watch_frame *f)
{
    if (f->kind == GI_FRAME_BEAT && e->out_n > 0)
        return gi_watch_push(e); /* what waits is as good */
    if (e->out_n + sizeof(*f) > e->out_cap) {
        size_t cap = e->out_cap > 0 ? 2 * e->out_cap : 8 * sizeof(*f);
        char *more = cap <= GI_WATCH_MOST ? realloc(e->out, cap) : NULL;
        if (more == NULL)
            return false;
        e->out = more;
        e->out_cap = cap;
    }
    memcpy(e->out + e->out_n, f, sizeof(*f));
    e->out_n += sizeof(*f);
    return gi_watch_push(e);
}

static struct gi_watch_frame hello(const struct gi_watch *w, const struct gi_watch_edge *to)
{
    struct gi_watch_frame f = {
        .magic = GI_WATCH_MAGIC, .kind = GI_FRAME_HELLO, .rank = w->config.rank};
    memcpy(f.key, to->card.key, sizeof(f.key));
    return f;
}

/* A hello from this rank, with my key. */
static bool is_hello(const struct gi_watch *w, const struct gi_watch_frame *f)
{
    const struct gi_watch_card *me = &w->card;
    return f->magic == GI_WATCH_MAGIC && f->kind == GI_FRAME_HELLO && f->rank >= 0 &&
           f->rank < w->config.size && ((f->key[0] ^ me->key[0]) | (f->key[1] ^ me->key[1])) == 0;
}

/* 1: a frame is whole; 0: not yet; else -errno. */
static int pull(int fd, struct gi_watch_frame *in, size_t *got)
{
    while (*got < sizeof(*in)) {
        ssize_t n = gi_sock_recv(fd, (char *)in + *got, sizeof(*in) - *got);
        if (n == -EAGAIN)
            return 0;
        if (n < 0)
            return (int)n;
        *got += (size_t)n;
    }
    *got = 0;
    return 1;
}

/* ---- mine: connecting ---- */

static void try_next(struct gi_watch_edge *e, const char *why)
{
    gi_debug("watch", "rank %d, address %u: %s", e->rank, e->place, why);
    gi_watch_edge_end(e, GI_EDGE_RESTING);
    e->until = gi_deadline_in(e->tries < GI_WATCH_TRIES ? REST_NS : LONG_REST_NS);
    if (++e->place < e->card.n)
        return;
    e->place = 0;
    if (++e->tries == GI_WATCH_TRIES)
        gi_info("watch", "rank %d is at none of its %u addresses yet: %s", e->rank, e->card.n, why);
}

static void come_up(struct gi_watch *w, struct gi_watch_edge *e)
{
    e->step = GI_EDGE_UP;
    e->until = GI_NEVER;
    e->heard = gi_now_ns();
    gi_watch_catch_up(w, e);
}

static void go_on(struct gi_watch *w, struct gi_watch_edge *e)
{
    struct gi_watch_frame f = hello(w, e);
    struct gi_addr a;
    (void)gi_addr_unpack(&e->card.place[e->place], &a); /* begin() has done it before */
    int rc = gi_os_connect(e->fd, (const struct sockaddr *)&a.sa, a.len, 0);
    if (rc == -ETIMEDOUT && e->step == GI_EDGE_CONNECTING)
        return; /* under way */
    if (rc == 0 && gi_sock_self_connected(e->fd))
        rc = -ECONNREFUSED;
    if (rc != 0) {
        try_next(e, gi_os_strerror(rc));
        return;
    }
    gi_os_set_option(e->fd, IPPROTO_TCP, TCP_NODELAY, 1);
    e->step = GI_EDGE_ASKED;
    e->until = gi_deadline_in(GI_WATCH_STEP_NS);
    if (!gi_watch_send(e, &f))
        try_next(e, "hello could not be sent");
}

static void begin(struct gi_watch *w, struct gi_watch_edge *e)
{
    struct gi_addr a;
    if (e->card.n == 0 || e->card.n > GI_WATCH_PLACES) {
        gi_watch_edge_end(e, GI_EDGE_OVER); /* it takes no part */
        return;
    }
    if (!gi_addr_unpack(&e->card.place[e->place], &a)) {
        try_next(e, "an address of unknown family");
        return;
    }
    e->fd = gi_os_socket(a.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (e->fd < 0) {
        try_next(e, gi_os_strerror(e->fd));
        return;
    }
    e->step = GI_EDGE_CONNECTING;
    e->until = gi_deadline_in(GI_WATCH_STEP_NS);
    go_on(w, e);
}

void gi_watch_edge_due(struct gi_watch *w, struct gi_watch_edge *e, uint64_t now)
{
    if (now < e->until)
        return;
    if (e->step == GI_EDGE_RESTING && e->mine)
        begin(w, e);
    else if (e->step == GI_EDGE_CONNECTING || e->step == GI_EDGE_ASKED)
        try_next(e, "no answer");
    else if (e->step == GI_EDGE_ANSWERED)
        gi_watch_edge_end(e, GI_EDGE_RESTING); /* it may come again */
    else
        e->until = GI_NEVER;
}

/* ---- both ---- */

static void asked_ready(struct gi_watch *w, struct gi_watch_edge *e)
{
    struct gi_watch_frame beat = {.magic = GI_WATCH_MAGIC, .kind = GI_FRAME_BEAT};
    int r = pull(e->fd, &e->in, &e->got);
    if (r == 0)
        return;
    if (r < 0 || !is_hello(w, &e->in) || e->in.rank != e->rank) {
        try_next(e, r < 0 ? gi_os_strerror(r) : "a stranger answers");
        return;
    }
    bool sent = gi_watch_send(e, &beat); /* first, so that the other side is up for what follows */
    come_up(w, e);
    if (!sent)
        gi_watch_lost(w, e, "its connection ended");
}

static void read_frames(struct gi_watch *w, struct gi_watch_edge *e)
{
    int r;
    while ((e->step == GI_EDGE_UP || e->step == GI_EDGE_ANSWERED) &&
           (r = pull(e->fd, &e->in, &e->got)) != 0) {
        bool sane = r > 0 && e->in.magic == GI_WATCH_MAGIC;
        if (sane && e->step == GI_EDGE_ANSWERED)
            come_up(w, e);
        if (sane)
            gi_watch_frame_came(w, e, &e->in);
        else if (e->step == GI_EDGE_ANSWERED)
            gi_watch_edge_end(e, GI_EDGE_RESTING);
        else
            gi_watch_lost(w, e,
                          r == -ECONNRESET ? "its connection ended"
                          : r < 0          ? gi_os_strerror(r)
                                           : "it sent what makes no sense");
    }
}

void gi_watch_edge_ready(struct gi_watch *w, struct gi_watch_edge *e, short revents)
{
    if (e->step == GI_EDGE_CONNECTING) {
        go_on(w, e);
        return;
    }
    if ((revents & POLLOUT) != 0)
        (void)gi_watch_push(e); /* a loss shows in reading */
    if ((revents & (POLLIN | POLLHUP | POLLERR)) == 0)
        return;
    if (e->step == GI_EDGE_ASKED)
        asked_ready(w, e);
    else
        read_frames(w, e);
}

/* ---- theirs: callers ---- */

static void drop_caller(struct gi_watch *w, unsigned i, bool close_it)
{
    int fd = w->callers[i].fd;
    w->n_callers--; /* the others keep their order */
    memmove(&w->callers[i], &w->callers[i + 1], (w->n_callers - i) * sizeof(w->callers[0]));
    if (close_it)
        gi_os_close(fd);
}

static void drop_eldest(struct gi_watch *w)
{
    unsigned eldest = 0;
    for (unsigned i = 1; i < w->n_callers; i++)
        if (w->callers[i].until < w->callers[eldest].until)
            eldest = i;
    drop_caller(w, eldest, true);
}

void gi_watch_accept(struct gi_watch *w)
{
    for (;;) {
        int fd = gi_os_accept(w->listener, NULL, NULL, 0);
        bool full = fd == -EMFILE || fd == -ENFILE;
        if (fd < 0 && !full)
            return;
        if (full && w->n_callers == 0) { /* polling the listener would only spin */
            w->deaf_until = gi_deadline_in(DEAF_NS);
            return;
        }
        if (full || w->n_callers == GI_WATCH_CALLERS)
            drop_eldest(w);
        if (full)
            continue;
        gi_os_set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        w->callers[w->n_callers++] =
            (struct gi_watch_caller){.fd = fd, .until = gi_deadline_in(5 * GI_WATCH_STEP_NS)};
    }
}

/* The neighbour that a caller says to be, if it may be that one. */
static struct gi_watch_edge *edge_of(struct gi_watch *w, const struct gi_watch_frame *f)
{
    for (unsigned i = 0; is_hello(w, f) && i < w->n_edges; i++)
        if (w->edges[i].rank == f->rank && !w->edges[i].mine)
            return w->edges[i].step == GI_EDGE_RESTING || w->edges[i].step == GI_EDGE_ANSWERED
                       ? &w->edges[i]
                       : NULL;
    return NULL;
}

static void caller_ready(struct gi_watch *w, unsigned i, uint64_t now)
{
    struct gi_watch_caller *c = &w->callers[i];
    int r = pull(c->fd, &c->in, &c->got);
    struct gi_watch_edge *e = r > 0 ? edge_of(w, &c->in) : NULL;
    if (r == 0 && now < c->until)
        return;
    if (e == NULL) {
        gi_debug("watch", "a caller was turned away");
        drop_caller(w, i, true);
        return;
    }
    struct gi_watch_frame f = hello(w, e);
    gi_watch_edge_end(e, GI_EDGE_RESTING); /* an attempt before this one */
    e->fd = c->fd;
    e->step = GI_EDGE_ANSWERED;
    /* Its next word may be late, and it would take an end of this connection for my death. */
    e->until = gi_deadline_in(5 * GI_WATCH_STEP_NS + w->config.silence_ns);
    drop_caller(w, i, false);
    if (!gi_watch_send(e, &f))
        gi_watch_edge_end(e, GI_EDGE_RESTING);
}

/* In the order in which they called: whoever called twice has given up the first call, and would
 * take an end of the second for my death. */
void gi_watch_callers_ready(struct gi_watch *w, const struct pollfd *p, uint64_t now)
{
    unsigned n = w->n_callers;
    for (unsigned k = 0, i = 0; k < n; k++) {
        unsigned before = w->n_callers;
        if (p[k].revents != 0 || now >= w->callers[i].until)
            caller_ready(w, i, now);
        i += w->n_callers == before; /* else the next one is in its place */
    }
}
