/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passing memory objects to the other processes of a group: over one connection per process to the
 * root, which collects and hands out. n messages instead of n * n, and every failure is heard at
 * once: who fails closes his connections, and who waits for him reads the end of file.
 *
 * Anybody in this network namespace may connect to the root's socket, so a connection counts only
 * if the kernel says that it comes from the process and user of a rank, and its first message
 * carries that rank's secret, which went through the bootstrap. All genuine ones have sent that
 * message before the root looks (an allgather lies between), hence it never waits for a stray.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "base/clock.h"
#include "base/os.h"
#include "transport/shm/shm_int.h"

#define MAGIC 0x47494e504f535431ull /* "GINPOST1" */
#define BATCH 64                    /* descriptors in a message; the kernel takes 253 */

#define MISSING (-1) /* in post->fds */
#define PASSED  (-2) /* came, was mapped and closed */

struct message {
    uint64_t magic, secret[2];
    uint32_t rank; /* of the speaking leader */
    uint32_t count;
    uint32_t place[BATCH]; /* in the group, of each descriptor */
};
#define HEAD offsetof(struct message, place)

static int root_of(const struct gi_shm_post *p)
{
    return p->members[0];
}

/* Not every rank need have something to pass. */
static bool has_object(const struct gi_shm_post *p, int place)
{
    return p->hello[p->members[place]].fd >= 0;
}

static int my_rank(const struct gi_shm_post *p)
{
    return p->members[p->me];
}

static uint32_t address_of(const struct gi_shm_post *p, struct sockaddr_un *sa)
{
    memset(sa, 0, sizeof(*sa));
    sa->sun_family = AF_UNIX;
    int len = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "ginshmem-%016llx",
                       (unsigned long long)p->hello[root_of(p)].name);
    return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (uint32_t)len;
}

static void start_message(const struct gi_shm_post *p, struct message *m)
{
    memset(m, 0, sizeof(*m));
    m->magic = MAGIC;
    m->rank = (uint32_t)my_rank(p);
    memcpy(m->secret, p->hello[my_rank(p)].secret, sizeof(m->secret));
}

static bool genuine(const struct gi_shm_post *p, const struct message *m, ssize_t bytes, int place)
{
    int rank = p->members[place];
    return bytes >= (ssize_t)HEAD && m->magic == MAGIC && m->rank == (uint32_t)rank &&
           m->count <= BATCH && bytes == (ssize_t)(HEAD + m->count * sizeof(m->place[0])) &&
           memcmp(m->secret, p->hello[rank].secret, sizeof(m->secret)) == 0;
}

/* Does the kernel say that the other end is that rank's process? */
static bool credible(const struct gi_shm_post *p, int conn, int place, pid_t *pid, uid_t *uid)
{
    const struct gi_shm_rank *me = &p->config->ranks[my_rank(p)];
    const struct gi_shm_rank *him = &p->config->ranks[p->members[place]];
    return gi_os_peer(conn, pid, uid) == 0 && *uid == him->uid &&
           (*pid == him->pid || him->pid_space != me->pid_space);
}

/* 0 or -errno; -EPIPE or -ECONNRESET when the other end is closed. */
static int send_batch(int conn, const struct message *m, const int *fds, uint64_t deadline)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(BATCH * sizeof(int))];
    } control = {0};
    struct iovec io = {(void *)m, HEAD + m->count * sizeof(m->place[0])};
    struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
    if (m->count != 0) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(m->count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(m->count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, m->count * sizeof(int));
    }
    for (;;) {
        ssize_t r = gi_os_sendmsg(conn, &msg, MSG_DONTWAIT);
        if (r >= 0)
            return 0;
        if (r != -EAGAIN && r != -ETOOMANYREFS)
            return (int)r;
        if (gi_now_ns() >= deadline)
            return -ETIMEDOUT;
        struct pollfd pf = {.fd = conn, .events = POLLOUT};
        if (r == -EAGAIN)
            gi_os_poll(&pf, 1, deadline);
        else /* this user has RLIMIT_NOFILE descriptors in flight; they land soon */
            gi_os_sleep_ns(200000);
    }
}

static void close_all(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        gi_os_close(fds[i]);
}

/*
 * One message and its descriptors, without waiting. Bytes, 0 at the end of file, -errno. *n counts
 * the descriptors, also when a failure is returned: they are the caller's to close.
 */
static ssize_t receive(int conn, struct message *m, int *fds, int *n)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(BATCH * sizeof(int))];
    } control;
    struct iovec io = {m, sizeof(*m)};
    struct msghdr msg = {.msg_iov = &io,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof(control)};
    *n = 0;
    ssize_t r = gi_os_recvmsg(conn, &msg, MSG_DONTWAIT);
    if (r <= 0)
        return r;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        int got = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds + *n, CMSG_DATA(c), (size_t)got * sizeof(int));
        *n += got;
    }
    if ((msg.msg_flags & MSG_CTRUNC) != 0) /* some did not fit into the table of this process */
        return -EMFILE;
    return (msg.msg_flags & MSG_TRUNC) != 0 ? -EMSGSIZE : r;
}

void gi_shm_post_listen(struct gi_shm_post *p)
{
    struct sockaddr_un sa;
    uint32_t len = address_of(p, &sa);
    int e = gi_os_socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (e >= 0) {
        p->listener = e;
        e = gi_os_bind(p->listener, (struct sockaddr *)&sa, len);
    }
    if (e >= 0)
        e = gi_os_listen(p->listener, INT_MAX); /* cut to net.core.somaxconn by the kernel */
    if (e < 0)
        gi_shm_failed(p->note, GI_SHM_STEP_LISTEN, e, -1,
                      "cannot open a Unix socket for passing memory objects: %s",
                      gi_os_strerror(e));
}

void gi_shm_post_connect(struct gi_shm_post *p)
{
    struct sockaddr_un sa;
    struct message m;
    pid_t pid = 0;
    uid_t uid = 0;
    uint32_t len = address_of(p, &sa);
    int e = gi_os_socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (e >= 0) {
        p->conn[0] = e;
        e = gi_os_connect(p->conn[0], (struct sockaddr *)&sa, len, p->config->deadline);
    }
    if (e >= 0 && !credible(p, p->conn[0], 0, &pid, &uid)) {
        gi_shm_failed(p->note, GI_SHM_STEP_CONNECT, EACCES, root_of(p),
                      "the socket of rank %d (process %ld, user %ld) belongs to process %ld of "
                      "user %ld",
                      root_of(p), (long)p->config->ranks[root_of(p)].pid,
                      (long)p->config->ranks[root_of(p)].uid, (long)pid, (long)uid);
        return;
    }
    if (e >= 0) {
        start_message(p, &m);
        e = send_batch(p->conn[0], &m, NULL, p->config->deadline);
    }
    if (e < 0)
        gi_shm_failed(p->note, GI_SHM_STEP_CONNECT, e, root_of(p),
                      "cannot connect to the Unix socket of rank %d: %s", root_of(p),
                      gi_os_strerror(e));
}

/* Whose connection is it? Place in the group, or -1 for a stray or after an error. */
static int identify(const struct gi_shm_post *p, int conn, pid_t *pid, uid_t *uid, int *err)
{
    struct message m;
    int fds[BATCH], n;
    ssize_t r = receive(conn, &m, fds, &n);
    close_all(fds, n);
    if (r < 0 && r != -EAGAIN && r != -EMSGSIZE && r != -ECONNRESET) /* not a stray's doing */
        *err = (int)r;
    gi_os_peer(conn, pid, uid);
    for (int i = 1; r > 0 && i < p->n; i++)
        if (p->lead[i] == i && genuine(p, &m, r, i))
            return p->conn[i] < 0 && m.count == 0 && credible(p, conn, i, pid, uid) ? i : -1;
    return -1;
}

static void accept_all(struct gi_shm_post *p)
{
    int missing = 0, refused = 0, fd, err = -EACCES;
    pid_t pid = 0;
    uid_t uid = 0;
    for (int i = 1; i < p->n; i++)
        missing += p->lead[i] == i && p->lead[i] != p->me;
    while (missing > 0 && (fd = gi_os_accept(p->listener, NULL, NULL, 0)) != -ETIMEDOUT) {
        if (fd < 0) {
            gi_shm_failed(p->note, GI_SHM_STEP_PASS, fd, -1,
                          "cannot accept the connections of my peers: %s", gi_os_strerror(fd));
            return;
        }
        int i = identify(p, fd, &pid, &uid, &err);
        if (i > 0) {
            p->conn[i] = fd;
            missing--;
        } else {
            refused++;
            gi_os_close(fd);
        }
    }
    for (int i = 1; i < p->n && missing > 0; i++) {
        if (p->lead[i] != i || p->conn[i] >= 0)
            continue;
        gi_shm_failed(p->note, GI_SHM_STEP_PASS, err, p->members[i],
                      "rank %d (process %ld, user %ld) did not identify itself: %s; %d "
                      "connections were refused, the last of process %ld, user %ld",
                      p->members[i], (long)p->config->ranks[p->members[i]].pid,
                      (long)p->config->ranks[p->members[i]].uid, gi_os_strerror(err), refused,
                      (long)pid, (long)uid);
        return;
    }
}

static void lost(struct gi_shm_post *p, int place, int e)
{
    int rank = p->members[place];
    gi_shm_failed(p->note, GI_SHM_STEP_PASS, e == 0 ? ECONNRESET : e, rank,
                  "passing memory objects with rank %d: %s", rank,
                  e == 0 || e == -EPIPE || e == -ECONNRESET ? "it has closed the connection"
                                                            : gi_os_strerror(e));
}

/*
 * Take one message of the leader at `from`; the objects in it must be those of its process, or,
 * from the root, of others than mine. Returns how many came, -1 after a failure.
 */
static int take(struct gi_shm_post *p, int conn, int from)
{
    struct message m;
    int fds[BATCH], n;
    ssize_t r = receive(conn, &m, fds, &n);
    if (r == -EAGAIN)
        return 0;
    bool good = r > 0 && genuine(p, &m, r, from) && n == (int)m.count;
    for (int i = 0; good && i < n; i++) {
        int place = (int)m.place[i];
        good = m.place[i] < (uint32_t)p->n && has_object(p, place) && p->fds[place] == MISSING &&
               (from == 0 ? p->lead[place] != p->me : p->lead[place] == from);
        if (good)
            p->fds[place] = fds[i];
    }
    for (int i = 0; good && i < n; i++) {
        p->keep(p, (int)m.place[i], fds[i]);
        if (p->me != 0) { /* the root has yet to hand it on */
            gi_os_close(fds[i]);
            p->fds[m.place[i]] = PASSED;
        }
    }
    if (good)
        return n;
    /* What was taken over above is closed here, once. */
    for (int i = 0; i < n; i++)
        for (int k = 0; k < p->n; k++)
            if (p->fds[k] == fds[i])
                p->fds[k] = MISSING;
    close_all(fds, n);
    lost(p, from, r > 0 ? -EBADMSG : (int)r);
    return -1;
}

static int send_places(struct gi_shm_post *p, int conn, const uint32_t *places, const int *fds,
                       int n)
{
    struct message m;
    start_message(p, &m);
    for (int done = 0; done < n; done += (int)m.count) {
        m.count = (uint32_t)(n - done < BATCH ? n - done : BATCH);
        memcpy(m.place, places + done, m.count * sizeof(m.place[0]));
        int e = send_batch(conn, &m, fds + done, p->config->deadline);
        if (e != 0)
            return e;
    }
    return 0;
}

/* Objects of my own process, or (others) those of every other than `leader`'s. */
static int gather(const struct gi_shm_post *p, bool others, int leader, uint32_t *places, int *fds)
{
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        bool mine = p->lead[i] == p->me;
        if ((others ? p->lead[i] == leader : !mine) || !has_object(p, i))
            continue;
        places[n] = (uint32_t)i;
        fds[n++] = mine ? p->hello[p->members[i]].fd : p->fds[i];
    }
    return n;
}

static void say_missing(struct gi_shm_post *p)
{
    char list[160] = "";
    int first = -1, more = 0;
    for (int i = 0; i < p->n; i++) {
        size_t len = strlen(list);
        if (p->lead[i] == p->me || p->fds[i] != MISSING || !has_object(p, i))
            continue;
        first = first < 0 ? p->members[i] : first;
        if (len + 16 < sizeof(list))
            snprintf(list + len, sizeof(list) - len, " %d", p->members[i]);
        else
            more++;
    }
    gi_shm_failed(p->note, GI_SHM_STEP_PASS, ETIMEDOUT, first,
                  "the memory objects of these ranks did not arrive in time:%s%s", list,
                  more > 0 ? " ..." : "");
}

/* Take messages from the root (me a leaf) or all leaves (me the root) until `missing` came. */
static void collect(struct gi_shm_post *p, int missing, struct pollfd *pf, int *left)
{
    while (missing > 0 && p->note->status == 0) {
        int n = 0;
        for (int i = 0; i < p->n; i++)
            if (p->conn[i] >= 0 && left[i] > 0)
                pf[n++] = (struct pollfd){.fd = p->conn[i], .events = POLLIN};
        int e = gi_os_poll(pf, (unsigned)n, p->config->deadline);
        if (e == 0)
            say_missing(p);
        else if (e < 0)
            lost(p, 0, e);
        for (int i = 0, k = 0; i < p->n && e > 0 && p->note->status == 0; i++) {
            if (p->conn[i] < 0 || left[i] <= 0 || pf[k++].revents == 0)
                continue;
            int got = take(p, p->conn[i], i);
            missing -= got > 0 ? got : 0;
            left[i] -= got > 0 ? got : 0;
        }
    }
}

static void pass_as_root(struct gi_shm_post *p, struct pollfd *pf, int *scratch, uint32_t *places)
{
    int missing = 0, *left = scratch, *fds = scratch + p->n;
    accept_all(p);
    memset(left, 0, (size_t)p->n * sizeof(*left));
    for (int i = 0; i < p->n; i++)
        if (p->lead[i] != p->me && has_object(p, i)) {
            left[p->lead[i]]++;
            missing++;
        }
    collect(p, missing, pf, left);
    for (int i = 1; i < p->n && p->note->status == 0; i++) {
        if (p->conn[i] < 0)
            continue;
        int n = gather(p, true, i, places, fds);
        int e = send_places(p, p->conn[i], places, fds, n);
        if (e != 0)
            lost(p, i, e);
    }
}

static void pass_as_leaf(struct gi_shm_post *p, struct pollfd *pf, int *scratch, uint32_t *places)
{
    int *left = scratch, *fds = scratch + p->n, n = gather(p, false, 0, places, fds);
    int e = send_places(p, p->conn[0], places, fds, n);
    memset(left, 0, (size_t)p->n * sizeof(*left));
    for (int i = 0; i < p->n; i++)
        left[0] += p->lead[i] != p->me && has_object(p, i);
    if (e != 0)
        lost(p, 0, e);
    else
        collect(p, left[0], pf, left);
}

void gi_shm_post_pass(struct gi_shm_post *p)
{
    size_t n = (size_t)p->n;
    struct pollfd *pf = malloc(n * (sizeof(*pf) + 2 * sizeof(int) + sizeof(uint32_t)));
    int *scratch = (int *)(pf + n);
    uint32_t *places = (uint32_t *)(scratch + 2 * n);
    bool several = false;
    if (pf == NULL) {
        gi_shm_failed(p->note, GI_SHM_STEP_PASS, ENOMEM, -1, "no memory for %d candidates", p->n);
        return;
    }
    for (int i = 0; i < p->n; i++) {
        if (p->lead[i] == p->me && p->note->status == 0 && has_object(p, i))
            p->keep(p, i, p->hello[p->members[i]].fd);
        several = several || p->lead[i] != p->me;
    }
    if (several && p->note->status == 0 && p->me == 0)
        pass_as_root(p, pf, scratch, places);
    else if (several && p->note->status == 0)
        pass_as_leaf(p, pf, scratch, places);
    free(pf);
}

void gi_shm_post_close(struct gi_shm_post *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->conn[i] >= 0)
            gi_os_close(p->conn[i]);
        if (p->fds[i] >= 0)
            gi_os_close(p->fds[i]);
        p->conn[i] = -1;
        p->fds[i] = MISSING;
    }
    if (p->listener >= 0)
        gi_os_close(p->listener);
    p->listener = -1;
}
