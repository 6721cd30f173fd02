/* SPDX-License-Identifier: BSD-3-Clause */
/* The star: frames, the collective through rank 0, and its end. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot_tcp.h"

#define GRACE_NS 1000000000u /* rank 0 gives up first and says who was missing */
#define NOTE_NS  200000000u  /* to pass on why a collective failed */

/* What rank 0 has of a rank in the collective under way. */
struct gi_tcp_rx {
    struct gi_tcp_frame frame;
    size_t got;  /* of the frame, then of its body */
    size_t sent; /* of frame and body, on the way back */
    bool done;
};

void gi_tcp_half(const unsigned char *secret, bool root, unsigned char *half)
{
    for (int i = 0; i < GI_TCP_SECRET; i++)
        half[i] = i % 2 == root ? secret[i] : 0;
}

bool gi_tcp_is_half(const unsigned char *secret, bool root, const unsigned char *shown)
{
    unsigned char half[GI_TCP_SECRET];
    unsigned diff = 0;
    gi_tcp_half(secret, root, half);
    for (int i = 0; i < GI_TCP_SECRET; i++)
        diff |= (unsigned)(half[i] ^ shown[i]);
    return diff == 0;
}

void gi_tcp_send_ack(int fd, const unsigned char *secret)
{
    unsigned char half[GI_TCP_SECRET];
    struct gi_tcp_frame f = {.magic = GI_TCP_MAGIC, .kind = GI_TCP_ACK, .bytes = sizeof(half)};
    gi_tcp_half(secret, true, half);
    (void)gi_sock_send(fd, &f, sizeof(f), half, sizeof(half));
}

uint64_t gi_tcp_fold(const char *text)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (; *text != '\0'; text++) {
        h = (h ^ (unsigned char)*text) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
    }
    return h;
}

void gi_tcp_send_note(int fd, enum gi_tcp_kind kind, int status, const char *text)
{
    size_t n = text != NULL ? strlen(text) : 0;
    struct gi_tcp_frame f = {.magic = GI_TCP_MAGIC, .kind = kind, .status = status};

    f.bytes = n < GI_BOOT_WHY ? n : GI_BOOT_WHY - 1;
    (void)gi_sock_send(fd, &f, sizeof(f), text, f.bytes);
}

void gi_tcp_send_call(int fd, enum gi_tcp_kind kind, uint64_t seq)
{
    struct gi_tcp_frame f = {.magic = GI_TCP_MAGIC, .kind = kind, .seq = seq};

    (void)gi_sock_send(fd, &f, sizeof(f), NULL, 0);
}

/* n bytes. 0, -ETIMEDOUT, -ECONNRESET, -ECANCELED where b asks for the end, another -errno. */
static int read_all(struct gi_boot *b, int fd, void *buf, size_t n, uint64_t deadline)
{
    for (size_t got = 0; got < n;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t more = gi_sock_recv(fd, (char *)buf + got, n - got);
        if (more >= 0) {
            got += (size_t)more;
            continue;
        }
        if (more != -EAGAIN)
            return (int)more;
        int e = gi_boot_poll(b, &p, 1, deadline);
        if (e <= 0)
            return e == 0 ? -ETIMEDOUT : e;
    }
    return 0;
}

static int recv_frame(struct gi_boot *b, int fd, struct gi_tcp_frame *f, char *text,
                      uint64_t deadline)
{
    int e = read_all(b, fd, f, sizeof(*f), deadline);

    text[0] = '\0';
    if (e != 0)
        return e;
    if (f->magic != GI_TCP_MAGIC || f->kind < GI_TCP_ACK || f->kind > GI_TCP_HERE)
        return -EPROTO;
    if (f->kind == GI_TCP_DATA)
        return 0;
    if (f->bytes >= GI_BOOT_WHY)
        return -EPROTO;
    e = read_all(b, fd, text, f->bytes, deadline);
    text[f->bytes] = '\0';
    return e;
}

int gi_tcp_recv_frame(int fd, struct gi_tcp_frame *f, char *text, uint64_t deadline)
{
    return recv_frame(NULL, fd, f, text, deadline);
}

/* Move on with sending frame and body; the bytes sent so far are in *sent. 0 when all is out. */
static int push(int fd, const struct gi_tcp_frame *f, const void *body, size_t *sent)
{
    size_t total = sizeof(*f) + f->bytes;

    while (*sent < total) {
        size_t head = *sent < sizeof(*f) ? sizeof(*f) - *sent : 0;
        size_t skip = *sent > sizeof(*f) ? *sent - sizeof(*f) : 0;
        ssize_t n = gi_sock_send(fd, (const char *)f + (sizeof(*f) - head), head,
                                 (const char *)body + skip, f->bytes - skip);
        if (n < 0)
            return (int)n;
        *sent += (size_t)n;
    }
    return 0;
}

/* The collective has failed for good: remember why. */
static int break_off(struct gi_tcp_boot *t, int status)
{
    t->broken = status;
    snprintf(t->why, sizeof(t->why), "%s", gin_last_error());
    return status;
}

/* ---- rank 0 ---- */

static int lost(struct gi_tcp_boot *t, int rank, int e)
{
    t->b.lost = rank;
    if (e == -ECONNRESET || e == -EPIPE)
        return gi_fail(GIN_EPEER, "rank %d has died: its connection to rank 0 ended", rank);
    return gi_fail(GIN_EPEER, "rank %d is lost: %s", rank, gi_os_strerror(e));
}

static int check_frame(struct gi_tcp_boot *t, int rank, const struct gi_tcp_frame *f, size_t bytes)
{
    if (f->magic != GI_TCP_MAGIC)
        return gi_fail(GIN_EPEER, "rank %d sent what is no frame of the bootstrap", rank);
    if (f->kind == GI_TCP_BYE)
        return gi_fail(GIN_EPEER, "rank %d has left the communicator", rank);
    if (f->kind != GI_TCP_DATA || f->seq != t->seq)
        return gi_fail(GIN_EPEER,
                       "rank %d is out of step: frame of kind %u in round %llu, not %llu", rank,
                       f->kind, (unsigned long long)f->seq, (unsigned long long)t->seq);
    if (f->bytes != bytes)
        return gi_fail(GIN_EMISMATCH, "rank %d gave %llu bytes, rank 0 %zu", rank,
                       (unsigned long long)f->bytes, bytes);
    return GIN_OK;
}

/* Take what has come from a rank. */
static int pull(struct gi_tcp_boot *t, int rank, char *out, size_t bytes)
{
    struct gi_tcp_rx *rx = &t->rx[rank];
    size_t whole = sizeof(rx->frame) + bytes;

    while (rx->got < whole) {
        bool head = rx->got < sizeof(rx->frame);
        char *into = head ? (char *)&rx->frame + rx->got
                          : out + (size_t)rank * bytes + (rx->got - sizeof(rx->frame));
        size_t want = (head ? sizeof(rx->frame) : whole) - rx->got;
        ssize_t n = gi_sock_recv(t->fds[rank], into, want);
        if (n == -EAGAIN)
            return GIN_OK;
        if (n < 0)
            return lost(t, rank, (int)n);
        rx->got += (size_t)n;
        if (rx->got == sizeof(rx->frame)) {
            int st = check_frame(t, rank, &rx->frame, bytes);
            if (st != GIN_OK)
                return st;
        }
    }
    rx->done = true;
    return GIN_OK;
}

static int too_late(struct gi_tcp_boot *t)
{
    struct gi_rank_list list = {.n = 0};

    for (int r = 1; r < t->b.size; r++)
        if (!t->rx[r].done)
            gi_rank_list_add(&list, r);
    return gi_fail(GIN_ETIMEDOUT, "%d of %d ranks did not come in time: rank %s", list.n, t->b.size,
                   gi_rank_list_text(&list));
}

/*
 * Poll the ranks that are not done, polls[r] for rank r: 1 something, 0 the deadline passed, a
 * status.
 */
static int poll_ranks(struct gi_tcp_boot *t, struct pollfd *polls, short events, uint64_t deadline)
{
    int e;

    for (int r = 1; r < t->b.size; r++)
        polls[r] = (struct pollfd){.fd = t->rx[r].done ? -1 : t->fds[r], .events = events};
    e = gi_boot_poll(&t->b, polls, (unsigned)t->b.size, deadline);
    if (e == -ECANCELED)
        return t->b.stopped;
    return e < 0 ? gi_fail(GIN_ESYS, "waiting for ranks: %s", gi_os_strerror(e)) : e > 0;
}

static int collect(struct gi_tcp_boot *t, struct pollfd *polls, char *out, size_t bytes,
                   uint64_t deadline)
{
    polls[0].fd = -1;
    for (int r = 1; r < t->b.size; r++)
        polls[r].revents = POLLIN; /* perhaps: everybody is asked once */
    for (;;) {
        int missing = 0, st;
        for (int r = 1; r < t->b.size; r++) {
            if (t->rx[r].done || polls[r].revents == 0) {
                missing += !t->rx[r].done;
                continue;
            }
            st = pull(t, r, out, bytes);
            if (st != GIN_OK)
                return st;
            missing += !t->rx[r].done;
        }
        if (missing == 0)
            return GIN_OK;
        st = poll_ranks(t, polls, POLLIN, deadline);
        if (st < 0)
            return st;
        if (st == 0)
            return too_late(t);
    }
}

/*
 * Give everybody everything. A rank that died meanwhile does not keep the others from a result that
 * is complete; the next collective will say so.
 */
static int spread(struct gi_tcp_boot *t, struct pollfd *polls, const char *out, size_t bytes,
                  uint64_t deadline)
{
    struct gi_tcp_frame f = {.magic = GI_TCP_MAGIC,
                             .kind = GI_TCP_DATA,
                             .seq = t->seq,
                             .bytes = (uint64_t)t->b.size * bytes};
    for (int r = 1; r < t->b.size; r++)
        t->rx[r].done = false;
    for (;;) {
        int left = 0, st;
        for (int r = 1; r < t->b.size; r++) {
            if (t->rx[r].done)
                continue;
            int e = push(t->fds[r], &f, out, &t->rx[r].sent);
            t->rx[r].done = e != -EAGAIN;
            if (e != 0 && e != -EAGAIN)
                break_off(t, lost(t, r, e));
            left += !t->rx[r].done;
        }
        if (left == 0)
            return GIN_OK;
        st = poll_ranks(t, polls, POLLOUT, deadline);
        if (st < 0)
            return st;
        if (st == 0)
            return too_late(t);
    }
}

/* Let the ranks know of a failure, once: nobody listens for a second one. */
static void tell_all(struct gi_tcp_boot *t, int status, const char *why)
{
    for (int r = 1; r < t->b.size && !t->told; r++)
        gi_tcp_send_note(t->fds[r], GI_TCP_ERROR, status, why);
    t->told = true;
}

static int root_allgather(struct gi_tcp_boot *t, const void *in, char *out, size_t bytes,
                          uint64_t deadline)
{
    struct pollfd *polls = calloc((size_t)t->b.size, sizeof(*polls));
    int st;

    if (polls == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a collective of %d ranks", t->b.size);
    memset(t->rx, 0, (size_t)t->b.size * sizeof(*t->rx));
    if (bytes > 0 && in != out)
        memcpy(out, in, bytes);
    st = collect(t, polls, out, bytes, deadline);
    if (st == GIN_OK)
        st = spread(t, polls, out, bytes, deadline);
    else
        tell_all(t, st, gin_last_error());
    free(polls);
    return st;
}

/* ---- the others ---- */

static int root_lost(struct gi_tcp_boot *t, int e)
{
    t->b.lost = 0;
    if (e == -ECONNRESET || e == -EPIPE)
        return gi_fail(GIN_EPEER, "rank 0 has died: the connection to it ended");
    return gi_fail(GIN_EPEER, "rank 0 is lost: %s", gi_os_strerror(e));
}

/* Rank 0 has nothing to say before it has all of this, unless that it failed or left: -EPIPE. */
static int send_mine(struct gi_tcp_boot *t, const void *in, size_t bytes, uint64_t deadline)
{
    struct gi_tcp_frame f = {
        .magic = GI_TCP_MAGIC, .kind = GI_TCP_DATA, .seq = t->seq, .bytes = bytes};
    size_t sent = 0;
    int e;

    while ((e = push(t->fd, &f, in, &sent)) == -EAGAIN) {
        struct pollfd p = {.fd = t->fd, .events = POLLOUT | POLLIN};
        e = gi_boot_poll(&t->b, &p, 1, deadline);
        if (e == 0)
            return -ETIMEDOUT;
        if (e > 0 && (p.revents & POLLIN) != 0)
            return -EPIPE;
        if (e == -ECANCELED)
            return e;
    }
    return e;
}

/* Wait for the root's answer to begin. */
static int await_answer(struct gi_tcp_boot *t, uint64_t deadline)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    int e = gi_boot_poll(&t->b, &p, 1, deadline);
    return e > 0 ? 0 : e == 0 ? -ETIMEDOUT : e;
}

static int leaf_allgather(struct gi_tcp_boot *t, const void *in, char *out, size_t bytes,
                          uint64_t deadline)
{
    uint64_t patience = deadline < GI_NEVER - GRACE_NS ? deadline + GRACE_NS : GI_NEVER;
    size_t total = (size_t)t->b.size * bytes;
    struct gi_tcp_frame f = {.kind = 0};
    char text[GI_BOOT_WHY];
    int e = send_mine(t, in, bytes, patience);

    if (e == 0)
        e = await_answer(t, patience);
    if (e == -ECANCELED)
        return t->b.stopped;

    /* Even where sending failed, rank 0 may have left word why. */
    if (e == 0 || e == -EPIPE || e == -ECONNRESET) {
        int sent = e;
        e = recv_frame(&t->b, t->fd, &f, text, sent == 0 ? patience : gi_deadline_in(NOTE_NS));
        e = e != 0 && sent != 0 ? sent : e;
    }
    if (e == -ECANCELED)
        return t->b.stopped;
    if (e == -ETIMEDOUT)
        return gi_fail(GIN_ETIMEDOUT, "rank 0 did not answer in time: it, or a rank that it waits "
                                      "for, has not come");
    if (e == -EPROTO)
        return gi_fail(GIN_EPEER, "rank 0 sent what is no frame of the bootstrap");
    if (e != 0)
        return root_lost(t, e);
    if (f.kind == GI_TCP_ERROR)
        return gi_fail(f.status, "%s", text);
    if (f.kind == GI_TCP_BYE)
        return gi_fail(GIN_EPEER, "rank 0 has left the communicator");
    if (f.kind != GI_TCP_DATA || f.seq != t->seq || f.bytes != total)
        return gi_fail(GIN_EPEER, "rank 0 is out of step: frame of kind %u in round %llu, not %llu",
                       f.kind, (unsigned long long)f.seq, (unsigned long long)t->seq);
    e = read_all(&t->b, t->fd, out, total, patience);
    if (e == -ECANCELED)
        return t->b.stopped;
    if (e == -ETIMEDOUT)
        return gi_fail(GIN_ETIMEDOUT, "rank 0 stopped in the middle of its answer");
    return e == 0 ? GIN_OK : root_lost(t, e);
}

static int tcp_allgather(struct gi_boot *b, const void *in, void *out, size_t bytes,
                         uint64_t deadline)
{
    struct gi_tcp_boot *t = (struct gi_tcp_boot *)b;
    int st;

    if (t->broken != GIN_OK) {
        if (t->fds != NULL)
            tell_all(t, t->broken, t->why);
        return gi_fail(t->broken, "%s", t->why);
    }
    t->seq++;
    st = t->fds != NULL ? root_allgather(t, in, out, bytes, deadline)
                        : leaf_allgather(t, in, out, bytes, deadline);
    return st == GIN_OK ? GIN_OK : break_off(t, st);
}

static void tcp_close(struct gi_boot *b)
{
    struct gi_tcp_boot *t = (struct gi_tcp_boot *)b;

    for (int r = 0; t->fds != NULL && r < t->b.size; r++)
        if (t->fds[r] >= 0) {
            gi_tcp_send_note(t->fds[r], GI_TCP_BYE, GIN_OK, NULL);
            gi_os_close(t->fds[r]);
        }
    if (t->fd >= 0) {
        gi_tcp_send_note(t->fd, GI_TCP_BYE, GIN_OK, NULL);
        gi_os_close(t->fd);
    }
    free(t->rx);
    free(t->fds);
    free(t);
}

static const struct gi_boot_ops tcp_ops = {
    .size = sizeof(tcp_ops),
    .name = "tcp",
    .allgather = tcp_allgather,
    .close = tcp_close,
};

static struct gi_tcp_boot *create(const struct gi_tcp_job *job, const char *origin)
{
    struct gi_tcp_boot *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->b.ops = &tcp_ops;
    t->b.rank = job->rank;
    t->b.size = job->size;
    t->b.local_rank = t->b.local_size = -1;
    snprintf(t->b.origin, sizeof(t->b.origin), "%s", origin);
    t->fd = -1;
    if (job->rank != 0)
        return t;
    t->fds = malloc((size_t)job->size * sizeof(*t->fds));
    t->rx = calloc((size_t)job->size, sizeof(*t->rx));
    for (int r = 0; t->fds != NULL && r < job->size; r++)
        t->fds[r] = -1;
    if (t->fds != NULL && t->rx != NULL)
        return t;
    free(t->rx);
    free(t->fds);
    free(t);
    return NULL;
}

int gi_tcp_open(const struct gi_tcp_job *job, int listener, const char *origin, uint64_t deadline,
                struct gi_boot **boot)
{
    struct gi_tcp_boot *t = create(job, origin);
    int st;

    if (t == NULL)
        st = gi_fail(GIN_ENOMEM, "no memory for the bootstrap of %d ranks", job->size);
    else
        st = job->rank == 0 ? gi_tcp_gather(t, job, listener, deadline)
                            : gi_tcp_join(t, job, deadline);
    if (listener >= 0)
        gi_os_close(listener);
    if (st == GIN_OK)
        *boot = &t->b;
    else if (t != NULL)
        tcp_close(&t->b);
    return st;
}
