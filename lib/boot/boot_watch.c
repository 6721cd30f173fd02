/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch's thread: it polls the connections, beats, measures silence and passes news on. Only it
 * touches the connections; others leave what they have to tell in a list and ring.
 *
 * Silence is measured on this rank's clock, and only while this rank ran itself: whoever was
 * stopped and goes on finds all the others silent, and must not accuse them.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_watch_int.h"

#define SETTLE_NS   5000000000u /* to be connected with all neighbours at the start */
#define FAREWELL_NS 500000000u  /* for the last words */

/* ---- news ---- */

/* True for the first who knows it. */
static bool learn(struct gi_watch *w, const struct gi_watch_news *n)
{
    unsigned char *known = &w->known[n->kind == GI_WATCH_OVER ? w->config.size : n->rank];
    pthread_mutex_lock(&w->lock);
    bool first = *known == 0;
    *known = 1;
    pthread_mutex_unlock(&w->lock);
    return first;
}

/* False: no memory, and the list is as it was. */
static bool append(struct gi_watch_list *list, const struct gi_watch_news *n)
{
    if (list->n == list->cap) {
        unsigned cap = list->cap * 2 + 4;
        struct gi_watch_news *more = realloc(list->news, cap * sizeof(*more));
        if (more == NULL)
            return false;
        list->news = more;
        list->cap = cap;
    }
    list->news[list->n++] = *n;
    return true;
}

static void send_news(struct gi_watch_edge *e, const struct gi_watch_news *n)
{
    struct gi_watch_frame f = {
        .magic = GI_WATCH_MAGIC, .kind = GI_FRAME_NEWS, .news = (uint16_t)n->kind, .rank = n->rank};
    memcpy(f.why, n->why, sizeof(f.why));
    (void)gi_watch_send(e, &f); /* a loss shows in reading */
    if (n->kind == GI_WATCH_DEAD && e->rank == n->rank && e->step == GI_EDGE_UP)
        e->step = GI_EDGE_DEAD;
}

/*
 * To all but where it came from; the dead one itself is told, for it may be only stopped. It is
 * kept for the connections that are not there yet.
 */
static void spread(struct gi_watch *w, const struct gi_watch_news *n,
                   const struct gi_watch_edge *from)
{
    (void)append(&w->kept, n); /* without memory only the late ones miss it */
    for (unsigned i = 0; i < w->n_edges; i++)
        if (&w->edges[i] != from && w->edges[i].step == GI_EDGE_UP)
            send_news(&w->edges[i], n);
}

void gi_watch_catch_up(struct gi_watch *w, struct gi_watch_edge *e)
{
    for (unsigned i = 0; i < w->kept.n; i++)
        send_news(e, &w->kept.news[i]);
}

/* Somebody else's news, or what this thread found out. */
static void hear(struct gi_watch *w, const struct gi_watch_news *n,
                 const struct gi_watch_edge *from)
{
    if (!learn(w, n))
        return;
    spread(w, n, from);
    w->config.hear(w->config.arg, n);
}

void gi_watch_lost(struct gi_watch *w, struct gi_watch_edge *e, const char *why)
{
    struct gi_watch_news n = {.rank = e->rank, .kind = GI_WATCH_DEAD};
    gi_watch_edge_end(e, GI_EDGE_OVER);
    snprintf(n.why, sizeof(n.why), "rank %d is dead: %s", e->rank, why);
    hear(w, &n, NULL);
}

static void silent(struct gi_watch *w, struct gi_watch_edge *e)
{
    struct gi_watch_news n = {.rank = e->rank, .kind = GI_WATCH_DEAD};
    snprintf(n.why, sizeof(n.why),
             "rank %d is dead: stopped or unreachable, silent for %.1f s (GINSHMEM_PEER_TIMEOUT)",
             e->rank, (double)w->config.silence_ns * 1e-9);
    hear(w, &n, NULL);
    e->step = GI_EDGE_DEAD;
}

void gi_watch_frame_came(struct gi_watch *w, struct gi_watch_edge *e,
                         const struct gi_watch_frame *f)
{
    struct gi_watch_news n = {.rank = f->rank, .kind = f->news};
    e->heard = gi_now_ns();
    if (f->kind == GI_FRAME_FAREWELL)
        gi_watch_edge_end(e, GI_EDGE_OVER);
    if (f->kind != GI_FRAME_NEWS || f->rank < 0 || f->rank >= w->config.size ||
        (n.kind != GI_WATCH_DEAD && n.kind != GI_WATCH_OVER))
        return;
    memcpy(n.why, f->why, sizeof(n.why));
    n.why[sizeof(n.why) - 1] = '\0';
    hear(w, &n, e);
}

void gi_watch_tell(struct gi_watch *w, const struct gi_watch_news *n)
{
    if (!learn(w, n))
        return;
    pthread_mutex_lock(&w->lock);
    if (append(&w->told, n))
        w->idle = false;
    pthread_mutex_unlock(&w->lock);
    gi_os_bell_ring(w->bell);
}

/* What others of this rank told. True: the end has been asked for. */
static bool take_told(struct gi_watch *w)
{
    struct gi_watch_news n;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        bool stop = w->stop, any = w->told.n > 0;
        if (any) {
            n = w->told.news[0];
            memmove(w->told.news, w->told.news + 1, --w->told.n * sizeof(n));
        }
        pthread_mutex_unlock(&w->lock);
        if (!any)
            return stop;
        spread(w, &n, NULL);
    }
}

/* ---- the loop ---- */

static void beat(struct gi_watch *w, uint64_t now)
{
    struct gi_watch_frame f = {.magic = GI_WATCH_MAGIC, .kind = GI_FRAME_BEAT};
    w->next_beat =
        w->config.silence_ns / 4 < GI_NEVER - now ? now + w->config.silence_ns / 4 : GI_NEVER;
    for (unsigned i = 0; i < w->n_edges; i++)
        if (w->edges[i].step == GI_EDGE_UP)
            (void)gi_watch_send(&w->edges[i], &f);
}

/* What time has brought; when to look again. */
static uint64_t look_at_clock(struct gi_watch *w, uint64_t now)
{
    uint64_t silence = w->config.silence_ns;
    if (now >= w->next_beat)
        beat(w, now);
    uint64_t until = w->next_beat;
    if (now < w->deaf_until && w->deaf_until < until)
        until = w->deaf_until;
    for (unsigned i = 0; i < w->n_callers; i++)
        until = w->callers[i].until < until ? w->callers[i].until : until;
    for (unsigned i = 0; i < w->n_edges; i++) {
        struct gi_watch_edge *e = &w->edges[i];
        gi_watch_edge_due(w, e, now);
        if (e->step == GI_EDGE_UP && now > e->heard && now - e->heard >= silence)
            silent(w, e);
        until = e->until < until ? e->until : until;
    }
    return until;
}

/*
 * Far more time has passed since `wanted` than this thread needs for anything: it was stopped,
 * wherever that was, and the others may have spoken. That time is nobody's silence, and no more
 * than that: on a crowded machine every sleep is too long. Called after a sleep and before silence
 * is judged, so that no stretch of time escapes.
 */
static void forgive(struct gi_watch *w, uint64_t wanted, uint64_t now)
{
    w->awake = now;
    uint64_t lost = now > wanted ? now - wanted : 0;
    if (lost < w->config.silence_ns / 8)
        return;
    for (unsigned i = 0; i < w->n_edges; i++) {
        uint64_t *heard = &w->edges[i].heard;
        *heard = *heard + lost < now ? *heard + lost : now;
    }
}

/* Are all connections there that will be, and all bytes sent (true)? Tell who waits for that. */
static bool show_state(struct gi_watch *w)
{
    bool settled = true, idle = true;
    for (unsigned i = 0; i < w->n_edges; i++) {
        const struct gi_watch_edge *e = &w->edges[i];
        settled = settled && (e->step >= GI_EDGE_UP || e->tries >= GI_WATCH_TRIES);
        idle = idle && (e->out_n == 0 || e->step == GI_EDGE_DEAD); /* the dead take nothing */
    }
    pthread_mutex_lock(&w->lock);
    idle = idle && w->told.n == 0;
    if (w->settled != settled || w->idle != idle)
        pthread_cond_broadcast(&w->cond);
    w->settled = settled;
    w->idle = idle;
    pthread_mutex_unlock(&w->lock);
    return idle;
}

static unsigned fill_polls(struct gi_watch *w, struct pollfd *p)
{
    unsigned n = 0;
    p[n++] = (struct pollfd){.fd = w->bell, .events = POLLIN};
    bool deaf = gi_now_ns() < w->deaf_until;
    p[n++] = (struct pollfd){.fd = deaf ? -1 : w->listener, .events = POLLIN};
    for (unsigned i = 0; i < w->n_edges; i++) {
        const struct gi_watch_edge *e = &w->edges[i];
        short want = e->step == GI_EDGE_CONNECTING || e->out_n > 0 ? POLLOUT : 0;
        want |= e->step != GI_EDGE_CONNECTING ? POLLIN : 0;
        p[n++] = (struct pollfd){.fd = e->step != GI_EDGE_DEAD ? e->fd : -1, .events = want};
    }
    for (unsigned i = 0; i < w->n_callers; i++)
        p[n++] = (struct pollfd){.fd = w->callers[i].fd, .events = POLLIN};
    return n;
}

static void serve(struct gi_watch *w, const struct pollfd *p)
{
    uint64_t now = gi_now_ns();
    if (p[0].revents != 0)
        gi_os_bell_answer(w->bell);
    for (unsigned i = 0; i < w->n_edges; i++)
        if (p[2 + i].revents != 0)
            gi_watch_edge_ready(w, &w->edges[i], p[2 + i].revents);
    gi_watch_callers_ready(w, p + 2 + w->n_edges, now);
    if (p[1].revents != 0)
        gi_watch_accept(w);
}

static void turn(struct gi_watch *w, struct pollfd *polls, uint64_t latest)
{
    uint64_t now = gi_now_ns();
    forgive(w, w->awake != 0 ? w->awake : now, now);
    uint64_t until = look_at_clock(w, now);
    (void)show_state(w);
    until = until < latest ? until : latest;
    unsigned n = fill_polls(w, polls);
    if (gi_os_poll(polls, n, until) < 0)
        gi_os_sleep_ns(1000000);
    forgive(w, until > now ? until : now, gi_now_ns());
    serve(w, polls);
}

/* Last words: the neighbours take what follows for no death. */
static void leave(struct gi_watch *w, struct pollfd *polls)
{
    struct gi_watch_frame f = {.magic = GI_WATCH_MAGIC, .kind = GI_FRAME_FAREWELL};
    uint64_t until = gi_deadline_in(FAREWELL_NS);
    for (unsigned i = 0; i < w->n_edges; i++)
        if (w->edges[i].step >= GI_EDGE_ANSWERED && w->edges[i].step <= GI_EDGE_DEAD) {
            if (w->edges[i].step == GI_EDGE_ANSWERED)
                gi_watch_catch_up(w, &w->edges[i]); /* it may think this connection up */
            (void)gi_watch_send(&w->edges[i], &f);
        }
    while (!show_state(w) && gi_now_ns() < until) {
        unsigned n = fill_polls(w, polls);
        (void)gi_os_poll(polls, n, until);
        serve(w, polls);
    }
}

static void *run(void *arg)
{
    struct gi_watch *w = arg;
    struct pollfd *polls = calloc(2 + w->n_edges + GI_WATCH_CALLERS, sizeof(*polls));
    gi_log_set_rank(w->config.rank);
    while (polls != NULL && !take_told(w))
        turn(w, polls, GI_NEVER);
    if (polls != NULL)
        leave(w, polls);
    free(polls);
    return NULL;
}

/* ---- opening and closing ---- */

static void free_watch(struct gi_watch *w)
{
    for (unsigned i = 0; w->edges != NULL && i < w->n_edges; i++) {
        gi_watch_edge_end(&w->edges[i], GI_EDGE_OVER);
        free(w->edges[i].out);
    }
    for (unsigned i = 0; i < w->n_callers; i++)
        gi_os_close(w->callers[i].fd);
    if (w->listener >= 0)
        gi_os_close(w->listener);
    if (w->bell >= 0)
        gi_os_close(w->bell);
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->lock);
    free(w->told.news);
    free(w->kept.news);
    free(w->known);
    free(w->edges);
    free(w);
}

static struct gi_watch *new_watch(const struct gi_watch_config *config)
{
    struct gi_watch *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;
    if (w == NULL)
        return NULL;
    w->config = *config;
    w->listener = -1;
    w->bell = gi_os_bell();
    w->next_beat = 0;
    w->n_edges = gi_watch_neighbours(config->rank, config->size, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
    w->known = calloc((size_t)config->size + 1, 1);
    w->edges = calloc(w->n_edges + 1, sizeof(*w->edges));
    if (w->edges != NULL)
        gi_watch_neighbours(config->rank, config->size, w->edges);
    if (w->known != NULL && w->edges != NULL && w->bell >= 0)
        return w;
    free_watch(w);
    return NULL;
}

/* Wait until one of the flags that the thread shows is up; false at the deadline. */
static bool await(struct gi_watch *w, const bool *flag, uint64_t deadline)
{
    struct timespec t = {.tv_sec = (time_t)(deadline / 1000000000u),
                         .tv_nsec = (long)(deadline % 1000000000u)};
    int e = 0;
    pthread_mutex_lock(&w->lock);
    while (!*flag && e == 0)
        e = pthread_cond_timedwait(&w->cond, &w->lock, &t);
    bool up = *flag;
    pthread_mutex_unlock(&w->lock);
    return up;
}

/* Everybody's cards; I keep those of my neighbours. */
static int gather(struct gi_watch *w, const struct gi_watch_config *c)
{
    struct gi_watch_card none = {.n = 0}, *all = calloc((size_t)c->size, sizeof(*all));
    int st = all != NULL ? c->gather(c->arg, w != NULL ? &w->card : &none, all, sizeof(*all))
                         : gi_fail(GIN_ENOMEM, "no memory for a watch over %d ranks", c->size);
    for (unsigned i = 0; st == GIN_OK && w != NULL && i < w->n_edges; i++)
        w->edges[i].card = all[w->edges[i].rank];
    free(all);
    return st;
}

int gi_watch_open(const struct gi_watch_config *config, struct gi_watch **out)
{
    struct gi_watch *w = new_watch(config);
    *out = NULL;
    if (w != NULL && !gi_watch_listen(w)) {
        free_watch(w);
        w = NULL;
    }
    int st = gather(w, config), e = 0; /* who cannot take part gathers all the same */
    if (st == GIN_OK && w != NULL)
        e = gi_os_thread(&w->thread, run, w, "gin-watch");
    if (st != GIN_OK || w == NULL || e != 0) {
        if (e != 0)
            gi_info("watch", "no thread: %s", gi_os_strerror(e));
        if (w != NULL)
            free_watch(w);
        return st;
    }
    if (!await(w, &w->settled, gi_deadline_in(SETTLE_NS)))
        gi_info("watch", "not all neighbours are connected");
    *out = w;
    return GIN_OK;
}

bool gi_watch_flush(struct gi_watch *w, uint64_t deadline)
{
    return await(w, &w->idle, deadline);
}

void gi_watch_close(struct gi_watch *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
    gi_os_bell_ring(w->bell);
    pthread_join(w->thread, NULL);
    free_watch(w);
}
