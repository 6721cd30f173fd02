/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls: results, deadlines, injected failures, and signals that interrupt. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/os.h"
#include "tests/pt.h"

#define MS 1000000u

TEST(machine)
{
    EXPECT(gi_os_page_size() >= 4096);
    EXPECT(gi_os_memory_total() >= 16u << 20);
    EXPECT(gi_os_cores() >= 1);
    unsigned char a[600], b[600];
    EXPECT_EQ_INT(gi_os_random(a, sizeof(a)), 0);
    EXPECT_EQ_INT(gi_os_random(b, sizeof(b)), 0);
    EXPECT(memcmp(a, b, sizeof(a)) != 0);
    char host[256], again[256], small[8];
    EXPECT_EQ_INT(gi_os_host_id(host, sizeof(host)), 0);
    EXPECT(strlen(host) < 64); /* shown whole in gin_caps_t */
    EXPECT_EQ_INT(gi_os_host_id(again, sizeof(again)), 0);
    EXPECT_EQ_STR(host, again);
    EXPECT(strlen(host) > 36 + 3);
    EXPECT_EQ_INT(gi_os_host_id(small, sizeof(small)), -ENAMETOOLONG);
    EXPECT_EQ_STR(gi_os_strerror(-ENOMEM), "12 (Cannot allocate memory)");
    EXPECT_EQ_STR(gi_os_strerror(12), "12 (Cannot allocate memory)");
}

TEST(shared_memory_over_a_reservation)
{
    size_t page = gi_os_page_size(), bytes = (8u << 20) + page;
    void *addr = NULL;
    int fd = gi_os_memfd("os-test", false);
    if (!EXPECT(fd >= 0) || !EXPECT_EQ_INT(gi_os_reserve(bytes, &addr), 0))
        return;
    EXPECT_EQ_U64((uintptr_t)addr % (2u << 20), 0);
    EXPECT_EQ_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_EQ_INT(gi_os_grow(fd, 0, 4 * page), 0);
    EXPECT_EQ_INT(gi_os_grow(fd, 2 * page, 8 * page), 0);
    struct stat s;
    EXPECT_EQ_INT(fstat(fd, &s), 0);
    EXPECT_EQ_U64((uint64_t)s.st_size, 8 * page);
    EXPECT_EQ_U64((uint64_t)s.st_blocks * 512, 8 * page);
    char *p = addr, *twin = p + 16 * page;
    EXPECT_EQ_INT(gi_os_map_shared(p, fd, 0, 8 * page), 0);
    EXPECT_EQ_INT(gi_os_map_shared(twin, fd, 4 * page, 4 * page), 0);
    EXPECT_FILLED(p, 8 * page, 0);
    memset(twin, 0x5a, page);
    EXPECT_FILLED(p + 4 * page, page, 0x5a);
    EXPECT_FILLED(p, 4 * page, 0);
    EXPECT_EQ_INT(gi_os_map_shared(NULL, fd, 0, page), -EINVAL);
    EXPECT_EQ_INT(gi_os_map_shared(twin, -1, 0, page), -EBADF);
    EXPECT_EQ_INT(gi_os_unreserve(addr, bytes), 0);
    EXPECT_EQ_INT(gi_os_close(fd), 0);
    EXPECT_EQ_INT(gi_os_reserve(0, &addr), -EINVAL);
    EXPECT_EQ_INT(gi_os_reserve(SIZE_MAX, &addr), -EINVAL);
    EXPECT_EQ_INT(gi_os_reserve(SIZE_MAX / 2, &addr), -ENOMEM);
}

TEST(injected_failures)
{
    void *addr = &addr;
    struct iovec io = {&addr, sizeof(addr)};
    int fd = gi_os_memfd("os-test", false);
    gi_os_inject(GI_OS_MMAP, 2, 1, ENOMEM);
    EXPECT_EQ_INT(gi_os_reserve(4096, &addr), 0);
    EXPECT_EQ_INT(gi_os_unreserve(addr, 4096), 0);
    addr = &addr;
    EXPECT_EQ_INT(gi_os_reserve(4096, &addr), -ENOMEM);
    EXPECT_EQ_PTR(addr, &addr);
    EXPECT_EQ_INT(gi_os_reserve(4096, &addr), 0);
    EXPECT_EQ_INT(gi_os_unreserve(addr, 4096), 0);
    gi_os_inject(GI_OS_FALLOCATE, 1, 2, ENOSPC);
    EXPECT_EQ_INT(gi_os_grow(fd, 0, 4096), -ENOSPC);
    EXPECT_EQ_INT(gi_os_grow(fd, 0, 4096), -ENOSPC);
    EXPECT_EQ_INT(gi_os_grow(fd, 0, 4096), 0);
    gi_os_inject(GI_OS_MEMFD, 1, 1, EMFILE);
    EXPECT_EQ_INT(gi_os_memfd("x", false), -EMFILE);
    gi_os_inject(GI_OS_SOCKET, 1, 1, EMFILE);
    EXPECT_EQ_INT(gi_os_socket(AF_INET, SOCK_STREAM, 0), -EMFILE);
    gi_os_inject(GI_OS_PIDFD, 1, 1, ENOSYS);
    EXPECT_EQ_INT(gi_os_pidfd_open(getpid()), -ENOSYS);
    gi_os_inject(GI_OS_CMA, 1, 2, EPERM);
    EXPECT_EQ_INT(gi_os_vm_read(getpid(), &io, &io), -EPERM);
    EXPECT_EQ_INT(gi_os_vm_write(getpid(), &io, &io), -EPERM);
    gi_os_inject(GI_OS_THREAD, 1, 1, EAGAIN);
    pthread_t t;
    EXPECT_EQ_INT(gi_os_thread(&t, NULL, NULL, NULL), -EAGAIN);
    gi_os_inject(GI_OS_MEMFD, 1, 5, EMFILE);
    gi_os_inject(GI_OS_MEMFD, 0, 0, 0); /* off again */
    int other = gi_os_memfd("x", false);
    EXPECT(other >= 0);
    gi_os_close(other);
    gi_os_close(fd);
    EXPECT_EQ_INT(gi_os_close(fd), -EBADF);
}

TEST(processes)
{
    uint64_t value = 0, theirs = 42;
    struct iovec to = {&value, sizeof(value)}, from = {&theirs, sizeof(theirs)};
    EXPECT_EQ_INT(gi_os_vm_read(getpid(), &to, &from), sizeof(value));
    EXPECT_EQ_U64(value, 42);
    value = 43;
    EXPECT_EQ_INT(gi_os_vm_write(getpid(), &to, &from), sizeof(value));
    EXPECT_EQ_U64(theirs, 43);
    from.iov_base = (void *)16;
    EXPECT_EQ_INT(gi_os_vm_read(getpid(), &to, &from), -EFAULT);
    int hold[2];
    EXPECT_EQ_INT(pipe(hold), 0);
    pid_t child = fork();
    if (child == 0) {
        char c;
        close(hold[1]);
        _exit((int)gi_os_read(hold[0], &c, 1));
    }
    int pidfd = gi_os_pidfd_open(child);
    EXPECT(pidfd >= 0);
    EXPECT(!gi_os_pidfd_dead(pidfd));
    close(hold[0]);
    close(hold[1]);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    EXPECT_EQ_INT(gi_os_poll(&p, 1, gi_deadline_in(10000ull * MS)), 1);
    EXPECT(gi_os_pidfd_dead(pidfd)); /* not yet reaped */
    int status;
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    EXPECT(gi_os_pidfd_dead(pidfd));
    EXPECT_EQ_INT(gi_os_pidfd_open(child), -ESRCH);
    gi_os_close(pidfd);
}

static int listener(struct sockaddr_in *sa)
{
    socklen_t len = sizeof(*sa);
    memset(sa, 0, sizeof(*sa));
    sa->sin_family = AF_INET;
    sa->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = gi_os_socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(fd >= 0);
    EXPECT_EQ_INT(gi_os_bind(fd, (struct sockaddr *)sa, len), 0);
    EXPECT_EQ_INT(gi_os_listen(fd, 8), 0);
    EXPECT_EQ_INT(getsockname(fd, (struct sockaddr *)sa, &len), 0);
    return fd;
}

TEST(deadlines_of_sockets)
{
    struct sockaddr_in sa;
    char c[4];
    int l = listener(&sa), pair[2];
    uint64_t began = gi_now_ns();
    EXPECT_EQ_INT(gi_os_accept(l, NULL, NULL, gi_deadline_in(30 * MS)), -ETIMEDOUT);
    EXPECT_EQ_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    EXPECT_EQ_INT(gi_os_read_full(pair[0], c, 4, gi_deadline_in(30 * MS)), -ETIMEDOUT);
    EXPECT_EQ_INT(gi_os_write(pair[1], "ab", 2), 2);
    EXPECT_EQ_INT(gi_os_read_full(pair[0], c, 4, gi_deadline_in(30 * MS)), -ETIMEDOUT);
    static char much[8 << 20];
    EXPECT_EQ_INT(gi_os_write_full(pair[0], much, sizeof(much), gi_deadline_in(30 * MS)),
                  -ETIMEDOUT);
    int pipes[2];
    EXPECT_EQ_INT(pipe(pipes), 0);
    EXPECT_EQ_INT(gi_os_write_full(pipes[1], much, sizeof(much), gi_deadline_in(30 * MS)),
                  -ETIMEDOUT);
    EXPECT(gi_now_ns() - began >= 150 * MS);
    EXPECT(gi_now_ns() - began < 30000ull * MS);
    struct pollfd p = {.fd = pair[1], .events = POLLPRI};
    EXPECT_EQ_INT(gi_os_poll(&p, 1, 0), 0);
    EXPECT_EQ_INT(gi_os_write(pair[1], "cd", 2), 2);
    close(pair[1]);
    EXPECT_EQ_INT(gi_os_read_full(pair[0], c, 2, GI_NEVER), 0);
    EXPECT_EQ_INT(gi_os_read_full(pair[0], c, 1, GI_NEVER), -ECONNRESET);
    EXPECT_EQ_INT(gi_os_write(pair[0], "x", 1), -EPIPE); /* and no SIGPIPE */
    close(pair[0]);
    close(pipes[0]);
    close(pipes[1]);
    close(l);
    int fd = gi_os_socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ_INT(gi_os_connect(fd, (struct sockaddr *)&sa, sizeof(sa), gi_deadline_in(MS)),
                  -ECONNREFUSED);
    close(fd);
}

#define CHUNK (3u << 20)

static void *send_slowly(void *arg)
{
    struct sockaddr_in *sa = arg;
    static char data[CHUNK];
    memset(data, 0x33, sizeof(data));
    gi_os_sleep_ns(50 * MS);
    int fd = gi_os_socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ_INT(gi_os_connect(fd, (struct sockaddr *)sa, sizeof(*sa), GI_NEVER), 0);
    EXPECT_EQ_INT(gi_os_write_full(fd, data, sizeof(data) / 2, GI_NEVER), 0);
    gi_os_sleep_ns(50 * MS);
    EXPECT_EQ_INT(gi_os_write_full(fd, data, sizeof(data) / 2, GI_NEVER), 0);
    gi_os_close(fd);
    return NULL;
}

static unsigned ticks;

static void on_tick(int sig)
{
    (void)sig;
    __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED);
}

/* A real-time timer without SA_RESTART: every blocking call is interrupted. */
TEST(signals_do_not_break_calls)
{
    struct sigaction sa = {.sa_handler = on_tick}, old;
    struct itimerval every = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct sockaddr_in where;
    static char data[CHUNK];
    int l = listener(&where);
    pthread_t t;
    sigaction(SIGPROF, &sa, &old);
    setitimer(ITIMER_PROF, &every, NULL);

    /* ITIMER_PROF counts processor time, so another clock drives the sleeping calls. */
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    struct itimerspec ms = {{0, MS}, {0, MS}};
    timer_t timer;
    EXPECT_EQ_INT(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
    EXPECT_EQ_INT(timer_settime(timer, 0, &ms, NULL), 0);

    /* gi_os_thread blocks signals there, so that this thread gets them all. */
    EXPECT_EQ_INT(gi_os_thread(&t, send_slowly, &where, "os-test-sender"), 0);
    int fd = gi_os_accept(l, NULL, NULL, GI_NEVER);
    EXPECT(fd >= 0);
    EXPECT_EQ_INT(gi_os_read_full(fd, data, sizeof(data), GI_NEVER), 0);
    EXPECT_FILLED(data, sizeof(data), 0x33);
    pthread_join(t, NULL);
    uint64_t began = gi_now_ns();
    gi_os_sleep_ns(50 * MS);
    EXPECT(gi_now_ns() - began >= 50 * MS);
    struct pollfd p = {.fd = l, .events = POLLIN};
    EXPECT_EQ_INT(gi_os_poll(&p, 1, gi_deadline_in(50 * MS)), 0);
    EXPECT(gi_now_ns() - began >= 100 * MS);

    /* Larger than what the kernel reserves between two signals. */
    int m = gi_os_memfd("os-test", false);
    EXPECT_EQ_INT(gi_os_grow(m, 0, 192u << 20), 0);
    struct stat s;
    EXPECT_EQ_INT(fstat(m, &s), 0);
    EXPECT_EQ_U64((uint64_t)s.st_blocks * 512, 192u << 20);

    setitimer(ITIMER_PROF, &off, NULL);
    timer_delete(timer);
    sigaction(SIGPROF, &old, NULL);
    EXPECT(__atomic_load_n(&ticks, __ATOMIC_RELAXED) > 50);
    gi_os_close(m);
    gi_os_close(fd);
    gi_os_close(l);
}
