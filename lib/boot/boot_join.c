/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other ranks' side of joining. A root may be found at several places (addresses of its host,
 * ports), some of which lead nowhere or to a stranger: they are tried side by side, a little apart,
 * and the first that acknowledges us is the root. A root that is not there yet comes later.
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

#define MS          1000000u
#define APART_NS    (30 * MS) /* between the first attempts at two places */
#define FIRST_NS    (1 * MS)  /* wait before the second attempt; doubles */
#define LONGEST_NS  (100 * MS)
#define STRANGER_NS (500 * MS)  /* wait before a place that is somebody else's is asked again */
#define ANSWER_NS   (1000 * MS) /* for the rest of an answer that has begun */
#define GRACE_NS    (1000 * MS) /* rank 0, whose deadline it is too, knows better who is missing */

enum step { RESTING, CONNECTING, ASKING };

struct attempt {
    enum step step;
    int fd;
    uint64_t next;  /* when to begin again, RESTING */
    uint64_t pause; /* after the next failure */
};

struct search {
    const struct gi_tcp_job *job;
    struct gi_tcp_hello hello;
    struct attempt at[GI_TCP_PLACES];
    char last[GI_BOOT_WHY]; /* the latest disappointment */
};

static void rest(struct search *s, int i, uint64_t pause, const char *what, const char *why)
{
    struct attempt *a = &s->at[i];
    char where[GI_ADDR_TEXT];
    uint64_t now = gi_now_ns();

    if (a->fd >= 0)
        gi_os_close(a->fd);
    a->fd = -1;
    a->step = RESTING;
    a->next = now + pause;
    a->pause = pause >= STRANGER_NS ? LONGEST_NS : a->pause;
    snprintf(s->last, sizeof(s->last), "%s: %s%s", gi_addr_text(&s->job->place[i], where), what,
             why);
    /* No need to keep apart from a place that failed. */
    for (int j = i + 1; j < s->job->n_places; j++)
        if (s->at[j].step == RESTING && s->at[j].pause == FIRST_NS) {
            s->at[j].next = now < s->at[j].next ? now : s->at[j].next;
            break;
        }
}

static void fail_attempt(struct search *s, int i, const char *what, int e)
{
    uint64_t pause = s->at[i].pause;

    s->at[i].pause = pause * 2 < LONGEST_NS ? pause * 2 : LONGEST_NS;
    rest(s, i, pause, what, gi_os_strerror(e));
}

/* Connected, perhaps: say hello. */
static void go_on(struct search *s, int i)
{
    const struct gi_addr *place = &s->job->place[i];
    struct attempt *a = &s->at[i];
    int e = gi_os_connect(a->fd, (const struct sockaddr *)&place->sa, place->len, 0);
    ssize_t n;

    if (e == -ETIMEDOUT && gi_now_ns() < a->next)
        return; /* under way */
    if (e == 0 && gi_sock_self_connected(a->fd))
        e = -ECONNREFUSED;
    if (e != 0) {
        fail_attempt(s, i, "", e);
        return;
    }
    gi_sock_tune(a->fd);
    n = gi_sock_send(a->fd, &s->hello, sizeof(s->hello), NULL, 0);
    if (n == sizeof(s->hello))
        a->step = ASKING;
    else
        fail_attempt(s, i, "hello: ", n < 0 ? (int)n : -EMSGSIZE);
}

static void begin(struct search *s, int i)
{
    struct attempt *a = &s->at[i];
    int fd = gi_os_socket(s->job->place[i].sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        fail_attempt(s, i, "socket: ", fd);
        return;
    }
    a->fd = fd;
    a->step = CONNECTING;
    a->next = GI_NEVER;
    go_on(s, i);
}

/* Place i takes us in: if it is the root, it knows the job's secret. */
static int prove(struct search *s, int i, const struct gi_tcp_frame *f, const char *shown, int *fd)
{
    struct attempt *a = &s->at[i];

    if (f->bytes == GI_TCP_SECRET &&
        gi_tcp_is_half(s->job->secret, true, (const unsigned char *)shown)) {
        *fd = a->fd;
        a->fd = -1;
    } else if (s->job->alone) {
        return gi_fail(GIN_EMISMATCH,
                       "what listens at %s takes rank %d in, but does not show the secret that "
                       "rank 0 has (GINSHMEM_SECRET, alike on all ranks): it may be a stranger",
                       s->job->where, s->job->rank);
    } else {
        rest(s, i, STRANGER_NS, "", "what listens there does not show the job's secret");
    }
    return GIN_OK;
}

/* Place i answers. GIN_OK: *fd is the root's connection, or still -1; else the end of the search.
 */
static int hear(struct search *s, int i, int *fd)
{
    struct attempt *a = &s->at[i];
    struct gi_tcp_frame f;
    char text[GI_BOOT_WHY];
    int e = gi_tcp_recv_frame(a->fd, &f, text, gi_deadline_in(ANSWER_NS));

    if (e == -EPROTO || e == -ETIMEDOUT) {
        rest(s, i, STRANGER_NS, "", "what listens there is not from this library");
    } else if (e != 0) {
        fail_attempt(s, i, "no answer: ", e);
    } else if (f.kind == GI_TCP_ACK) {
        return prove(s, i, &f, text, fd);
    } else if (f.kind == GI_TCP_REFUSE && f.status == GIN_EAGAIN && !s->job->alone) {
        rest(s, i, STRANGER_NS, "", text);
    } else if (f.kind == GI_TCP_REFUSE) {
        return gi_fail(f.status == GIN_EAGAIN ? GIN_EMISMATCH : f.status,
                       "rank 0 at %s refuses rank %d: %s", s->job->where, s->job->rank, text);
    } else {
        rest(s, i, STRANGER_NS, "", "what listens there is no rank 0 that waits");
    }
    return GIN_OK;
}

static int turn(struct search *s, uint64_t deadline, int *fd)
{
    struct pollfd polls[GI_TCP_PLACES];
    uint64_t now = gi_now_ns(), until = deadline;
    int n = s->job->n_places, e, st = GIN_OK;

    for (int i = 0; i < n; i++)
        if (s->at[i].step == RESTING && s->at[i].next <= now)
            begin(s, i);
    for (int i = 0; i < n; i++) {
        const struct attempt *a = &s->at[i];
        polls[i] = (struct pollfd){.fd = a->fd, .events = a->step == CONNECTING ? POLLOUT : POLLIN};
        if (a->step == RESTING && a->next < until)
            until = a->next;
    }
    e = gi_os_poll(polls, (unsigned)n, until);
    if (e < 0)
        return gi_fail(GIN_ESYS, "looking for rank 0: %s", gi_os_strerror(e));
    for (int i = 0; i < n && st == GIN_OK && *fd < 0; i++) {
        if (polls[i].revents == 0)
            continue;
        if (s->at[i].step == CONNECTING) {
            s->at[i].next = 0; /* ready: it must be a success or a failure now */
            go_on(s, i);
        } else {
            st = hear(s, i, fd);
        }
    }
    return st;
}

static int too_late(const struct search *s)
{
    char where[GI_ADDR_TEXT];
    for (int i = 0; i < s->job->n_places; i++)
        if (s->at[i].step == ASKING)
            return gi_fail(GIN_ETIMEDOUT,
                           "rank %d reached %s, where rank 0 should be, and got no answer in time: "
                           "it is stopped, or what listens there is something else",
                           s->job->rank, gi_addr_text(&s->job->place[i], where));
    return gi_fail(GIN_ETIMEDOUT, "rank %d has not found rank 0 at %s in time%s%s", s->job->rank,
                   s->job->where, s->last[0] != '\0' ? "; last, " : "", s->last);
}

/* Find the root; *fd is the connection that it acknowledged. */
static int find_root(struct search *s, uint64_t deadline, int *fd)
{
    uint64_t now = gi_now_ns();
    int st = GIN_OK;

    *fd = -1;
    for (int i = 0; i < s->job->n_places; i++)
        s->at[i] = (struct attempt){
            .step = RESTING, .fd = -1, .next = now + (uint64_t)i * APART_NS, .pause = FIRST_NS};
    while (st == GIN_OK && *fd < 0) {
        st = turn(s, deadline, fd);
        if (st == GIN_OK && *fd < 0 && gi_now_ns() >= deadline)
            st = too_late(s);
    }
    for (int i = 0; i < s->job->n_places; i++)
        if (s->at[i].fd >= 0)
            gi_os_close(s->at[i].fd);
    return st;
}

/* GIN_OK, GIN_EAGAIN when the root vanished (another may come), or the failure. */
static int await_welcome(const struct search *s, int fd, uint64_t deadline)
{
    struct gi_tcp_frame f;
    char text[GI_BOOT_WHY];
    uint64_t patience = deadline < GI_NEVER - GRACE_NS ? deadline + GRACE_NS : GI_NEVER;
    int e;

    while ((e = gi_tcp_recv_frame(fd, &f, text, patience)) == 0 && f.kind == GI_TCP_CALL)
        gi_tcp_send_call(fd, GI_TCP_HERE, f.seq);
    if (e == -ETIMEDOUT)
        return gi_fail(GIN_ETIMEDOUT,
                       "rank %d has joined rank 0 at %s, but others had not in time, and rank 0 "
                       "would say which: it is stopped or cut off, too",
                       s->job->rank, s->job->where);
    if (e != 0)
        return GIN_EAGAIN;
    if (f.kind == GI_TCP_WELCOME)
        return GIN_OK;
    if (f.kind == GI_TCP_ERROR)
        return gi_fail(f.status, "%s", text);
    return gi_fail(GIN_ESYS, "rank 0 at %s sent a frame of kind %u in place of a welcome",
                   s->job->where, f.kind);
}

int gi_tcp_join(struct gi_tcp_boot *t, const struct gi_tcp_job *job, uint64_t deadline)
{
    struct search s = {.job = job,
                       .hello = {.magic = GI_TCP_MAGIC,
                                 .version = GI_TCP_VERSION,
                                 .rank = (uint32_t)job->rank,
                                 .size = (uint32_t)job->size,
                                 .job = job->id}};
    int e = gi_os_random(&s.hello.nonce, sizeof(s.hello.nonce)), fd, st;

    if (e != 0)
        return gi_fail(GIN_ESYS, "random number: %s", gi_os_strerror(e));
    gi_tcp_half(job->secret, false, s.hello.half);
    for (;;) {
        st = find_root(&s, deadline, &fd);
        if (st != GIN_OK)
            return st;
        st = await_welcome(&s, fd, deadline);
        if (st == GIN_OK) {
            t->fd = fd;
            return GIN_OK;
        }
        gi_os_close(fd);
        if (st != GIN_EAGAIN)
            return st;
        snprintf(s.last, sizeof(s.last), "rank 0 left before all had joined");
        if (gi_now_ns() >= deadline)
            return too_late(&s);
    }
}
