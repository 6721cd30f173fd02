/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors and sockets. A deadline is an absolute time of clock.h; GI_NEVER waits for ever. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/os.h"
#include "base/os_inject.h"

/* ---- what a fork()ed child lets go of ---- */

/*
 * Sockets and bells by number, since a child that kept them would hide this process's end from its
 * peers. In pages of its own: a device that has memory pinned keeps whole pages from children, with
 * all that lies beside it. Numbers beyond stay open in the child.
 */
#define KEPT_WORDS ((1u << 20) / 64)
static struct {
    _Atomic uint64_t of[KEPT_WORDS];
    atomic_int most; /* highest number so far */
    char rest[4096 - sizeof(atomic_int)];
} kept __attribute__((aligned(4096)));

static int keep(int fd)
{
    if (fd < 0 || (unsigned)fd / 64 >= KEPT_WORDS)
        return fd;
    atomic_fetch_or(&kept.of[fd / 64], 1ull << fd % 64);
    int most = atomic_load(&kept.most);
    while (most < fd && !atomic_compare_exchange_weak(&kept.most, &most, fd))
        ;
    return fd;
}

/* Before it is closed: its number may be another's at once. */
static void forget(int fd)
{
    if (fd >= 0 && (unsigned)fd / 64 < KEPT_WORDS)
        atomic_fetch_and(&kept.of[fd / 64], ~(1ull << fd % 64));
}

void gi_os_forked(void)
{
    for (int fd = 0; fd <= atomic_load(&kept.most); fd++)
        if (atomic_load(&kept.of[fd / 64]) >> fd % 64 & 1)
            gi_os_close(fd);
}

int gi_os_close(int fd)
{
    forget(fd);
    /* On Linux the descriptor is gone even after EINTR. */
    return close(fd) != 0 && errno != EINTR ? -errno : 0;
}

int gi_os_socket(int domain, int type, int protocol)
{
    int err = gi_os_injected(GI_OS_SOCKET);
    if (err != 0)
        return -err;
    int fd = socket(domain, type | SOCK_CLOEXEC, protocol);
    return fd < 0 ? -errno : keep(fd);
}

int gi_os_bind(int fd, const struct sockaddr *sa, uint32_t len)
{
    return bind(fd, sa, len) != 0 ? -errno : 0;
}

static int set_nonblocking(int fd, bool on, bool *was)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    if (was != NULL)
        *was = (flags & O_NONBLOCK) != 0;
    int want = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return want != flags && fcntl(fd, F_SETFL, want) != 0 ? -errno : 0;
}

/* Listening sockets do not block: a client that left between poll and accept must not hold us. */
int gi_os_listen(int fd, int backlog)
{
    int e = set_nonblocking(fd, true, NULL);
    if (e != 0)
        return e;
    return listen(fd, backlog) != 0 ? -errno : 0;
}

int gi_os_bell(void)
{
    int err = gi_os_injected(GI_OS_SOCKET),
        fd = err == 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    return err != 0 ? -err : fd >= 0 ? keep(fd) : -errno;
}

void gi_os_bell_ring(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void gi_os_bell_answer(int fd)
{
    uint64_t n;
    while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
        ;
}

int gi_os_poll(struct pollfd *fds, unsigned n, uint64_t deadline)
{
    for (;;) {
        struct timespec t = {0, 0}, *tp = NULL;
        if (deadline != GI_NEVER) {
            uint64_t now = gi_now_ns(), left = deadline > now ? deadline - now : 0;
            t.tv_sec = (time_t)(left / 1000000000u);
            t.tv_nsec = (long)(left % 1000000000u);
            tp = &t;
        }
        int r = ppoll(fds, n, tp, NULL);
        if (r >= 0)
            return r;
        if (errno != EINTR)
            return -errno;
    }
}

/* 0 once fd is ready (or broken: the call itself will tell), -ETIMEDOUT at the deadline. */
static int ready(int fd, short events, uint64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    int r = gi_os_poll(&p, 1, deadline);
    return r > 0 ? 0 : r == 0 ? -ETIMEDOUT : r;
}

int gi_os_accept(int fd, struct sockaddr *sa, uint32_t *len, uint64_t deadline)
{
    int err = gi_os_injected(GI_OS_SOCKET);
    uint32_t room = len != NULL ? *len : 0;
    if (err != 0)
        return -err;
    for (;;) {
        int e = ready(fd, POLLIN, deadline);
        if (e != 0)
            return e;
        if (len != NULL)
            *len = room;
        int got = accept4(fd, sa, len, SOCK_CLOEXEC);
        if (got >= 0)
            return keep(got);
        switch (errno) {
        case EINTR:
        case EAGAIN:
        case ECONNABORTED: /* and errors of the one connection, which accept() reports */
        case EPROTO:
        case ENETDOWN:
        case EHOSTDOWN:
        case ENETUNREACH:
        case EHOSTUNREACH: break;
        default: return -errno;
        }
    }
}

static int connect_within(int fd, const struct sockaddr *sa, uint32_t len, uint64_t deadline)
{
    while (connect(fd, sa, len) != 0) {
        if (errno == EAGAIN) { /* a full backlog of a Unix socket */
            if (gi_now_ns() >= deadline)
                return -ETIMEDOUT;
            gi_os_sleep_ns(1000000);
            continue;
        }
        if (errno == EISCONN)
            return 0;
        if (errno != EINPROGRESS && errno != EINTR && errno != EALREADY)
            return -errno;
        int err = ready(fd, POLLOUT, deadline);
        if (err != 0)
            return err;
        socklen_t n = sizeof(err);
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) != 0)
            return -errno;
        return -err;
    }
    return 0;
}

int gi_os_connect(int fd, const struct sockaddr *sa, uint32_t len, uint64_t deadline)
{
    bool was;
    int err = gi_os_injected(GI_OS_SOCKET);
    if (err != 0)
        return -err;
    int e = set_nonblocking(fd, true, &was);
    if (e != 0)
        return e;
    e = connect_within(fd, sa, len, deadline);
    int back = was ? 0 : set_nonblocking(fd, false, NULL);
    return e != 0 ? e : back;
}

ssize_t gi_os_read(int fd, void *buf, size_t n)
{
    for (;;) {
        ssize_t r = read(fd, buf, n);
        if (r >= 0)
            return r;
        if (errno != EINTR)
            return -errno;
    }
}

/*
 * send() where fd is a socket, since write() would raise SIGPIPE. Without `wait` it takes no more
 * than goes at once, also on blocking descriptors: a pipe that polls as ready takes PIPE_BUF.
 */
static ssize_t write_once(int fd, const void *buf, size_t n, bool wait, bool *is_socket)
{
    for (;;) {
        ssize_t r;
        if (*is_socket)
            r = send(fd, buf, n, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
        else
            r = write(fd, buf, wait || n < PIPE_BUF ? n : PIPE_BUF);
        if (r >= 0)
            return r;
        if (*is_socket && errno == ENOTSOCK)
            *is_socket = false;
        else if (errno != EINTR)
            return -errno;
    }
}

ssize_t gi_os_write(int fd, const void *buf, size_t n)
{
    bool is_socket = true;
    return write_once(fd, buf, n, true, &is_socket);
}

int gi_os_read_full(int fd, void *buf, size_t n, uint64_t deadline)
{
    for (size_t got = 0; got < n;) {
        int e = ready(fd, POLLIN, deadline);
        if (e != 0)
            return e;
        ssize_t r = gi_os_read(fd, (char *)buf + got, n - got);
        if (r == 0)
            return -ECONNRESET;
        if (r < 0 && r != -EAGAIN)
            return (int)r;
        if (r > 0)
            got += (size_t)r;
    }
    return 0;
}

int gi_os_write_full(int fd, const void *buf, size_t n, uint64_t deadline)
{
    bool is_socket = true;
    for (size_t put = 0; put < n;) {
        int e = ready(fd, POLLOUT, deadline);
        if (e != 0)
            return e;
        ssize_t r = write_once(fd, (const char *)buf + put, n - put, false, &is_socket);
        if (r < 0 && r != -EAGAIN)
            return (int)r;
        if (r > 0)
            put += (size_t)r;
    }
    return 0;
}

ssize_t gi_os_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    int err = gi_os_injected(GI_OS_SOCKET);
    if (err != 0)
        return -err;
    for (;;) {
        ssize_t r = sendmsg(fd, msg, flags | MSG_NOSIGNAL);
        if (r >= 0)
            return r;
        if (errno != EINTR)
            return -errno;
    }
}

ssize_t gi_os_recvmsg(int fd, struct msghdr *msg, int flags)
{
    int err = gi_os_injected(GI_OS_SOCKET);
    if (err != 0)
        return -err;
    for (;;) {
        ssize_t r = recvmsg(fd, msg, flags | MSG_CMSG_CLOEXEC);
        if (r >= 0)
            return r;
        if (errno != EINTR)
            return -errno;
    }
}

int gi_os_peer(int fd, pid_t *pid, uid_t *uid)
{
    struct ucred who;
    socklen_t n = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) != 0)
        return -errno;
    *pid = who.pid;
    *uid = who.uid;
    return 0;
}

int gi_os_set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) != 0 ? -errno : 0;
}

int gi_os_sockname(int fd, struct sockaddr *sa, uint32_t *len)
{
    return getsockname(fd, sa, len) != 0 ? -errno : 0;
}

int gi_os_peername(int fd, struct sockaddr *sa, uint32_t *len)
{
    return getpeername(fd, sa, len) != 0 ? -errno : 0;
}

int gi_os_dup(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return copy < 0 ? -errno : copy;
}
