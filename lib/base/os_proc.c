/* SPDX-License-Identifier: BSD-3-Clause */
/* Other processes: whether they live, their memory, and whether they share this host. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/os.h"
#include "base/os_inject.h"

int gi_os_pidfd_open(pid_t pid)
{
    int err = gi_os_injected(GI_OS_PIDFD);
    if (err != 0)
        return -err;
    long fd = syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : (int)fd;
}

bool gi_os_pidfd_dead(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return gi_os_poll(&p, 1, 0) > 0 && (p.revents & POLLIN) != 0;
}

/* Where "(comm) S ..." of /proc/PID/stat goes on: comm may hold anything, parentheses too. */
int gi_os_process_start(pid_t pid, uint64_t *start)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int len = gi_os_read_file(path, text, sizeof(text));
    const char *rest = len > 0 ? strrchr(text, ')') : NULL;
    long threads;
    unsigned long long began;
    char state;
    if (rest != NULL &&
        sscanf(rest,
               ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &state, &threads, &began) == 3) {
        /* A zombie with threads is one whose first thread alone has ended. */
        if ((state == 'Z' || state == 'X') && threads <= 1)
            return -ESRCH;
        *start = began;
        return 0;
    }
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return -ESRCH;
    *start = 0;
    return 0;
}

uint64_t gi_os_namespace(const char *kind)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static int injected_cma(struct iovec *cut)
{
    int err = gi_os_injected(GI_OS_CMA);
    if (err < 0 && cut->iov_len > (size_t)-err)
        cut->iov_len = (size_t)-err;
    return err > 0 ? err : 0;
}

ssize_t gi_os_vm_read(pid_t pid, const struct iovec *local, const struct iovec *remote)
{
    struct iovec cut = *remote;
    int err = injected_cma(&cut);
    if (err != 0)
        return -err;
    ssize_t r = process_vm_readv(pid, local, 1, &cut, 1, 0);
    return r < 0 ? -errno : r;
}

ssize_t gi_os_vm_write(pid_t pid, const struct iovec *local, const struct iovec *remote)
{
    struct iovec cut = *remote;
    int err = injected_cma(&cut);
    if (err != 0)
        return -err;
    ssize_t r = process_vm_writev(pid, local, 1, &cut, 1, 0);
    return r < 0 ? -errno : r;
}

/*
 * Processes that share boot id and the three namespaces can pass descriptors, open pidfds of each
 * other and reach each other's memory; anything less is another host. In hexadecimal it fits into
 * the 63 letters that cards and gin_caps_t show.
 */
int gi_os_host_id(char *buf, size_t n)
{
    static const char *const spaces[] = {"ipc", "net", "pid"};
    char text[512];
    int len = gi_os_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text) - 200);
    if (len < 0)
        return len;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
        len--;
    for (int i = 0; i < 3; i++) {
        char path[32], link[64];
        snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i]);
        ssize_t r = readlink(path, link, sizeof(link) - 1);
        if (r < 0)
            return -errno;
        link[r] = 0;
        const char *inode = strchr(link, '[');
        unsigned long number = inode != NULL ? strtoul(inode + 1, NULL, 10) : 0;
        len += snprintf(text + len, sizeof(text) - (size_t)len, "/%lx", number);
    }
    if ((size_t)len >= n)
        return -ENAMETOOLONG;
    memcpy(buf, text, (size_t)len + 1);
    return 0;
}

static bool handled_by(int sig, void (*handler)(int))
{
    struct sigaction now;
    return sigaction(sig, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
           now.sa_handler == handler;
}

int gi_os_signal_take(int sig, void (*handler)(int))
{
    struct sigaction ours = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (!handled_by(sig, SIG_DFL))
        return 0;
    sigemptyset(&ours.sa_mask);
    return sigaction(sig, &ours, NULL) == 0 ? 1 : -errno;
}

void gi_os_signal_give_back(int sig, void (*handler)(int))
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigemptyset(&dfl.sa_mask);
    if (handled_by(sig, handler))
        sigaction(sig, &dfl, NULL);
}

/* Cores of a list such as "0-15,32-47". */
static void parse_cores(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long from = strtoul(text, &end, 10), to = from;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        for (; from <= to && from < CPU_SETSIZE; from++)
            CPU_SET(from, set);
        text = *end == ',' ? end + 1 : end;
    }
}

void gi_os_stay_near(const char *pci)
{
    char path[96], text[1024];
    cpu_set_t near, may;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.32s/local_cpulist", pci);
    if (gi_os_read_file(path, text, sizeof(text)) < 0 ||
        sched_getaffinity(0, sizeof(may), &may) != 0)
        return;
    parse_cores(text, &near);
    CPU_AND(&near, &near, &may);
    if (CPU_COUNT(&near) > 0)
        sched_setaffinity(0, sizeof(near), &near);
}
