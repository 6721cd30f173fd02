/* SPDX-License-Identifier: BSD-3-Clause */
/* Other processes: whether they live, their memory, and whether they share this host. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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

ssize_t gi_os_vm_read(pid_t pid, const struct iovec *local, const struct iovec *remote)
{
    int err = gi_os_injected(GI_OS_CMA);
    if (err != 0)
        return -err;
    ssize_t r = process_vm_readv(pid, local, 1, remote, 1, 0);
    return r < 0 ? -errno : r;
}

ssize_t gi_os_vm_write(pid_t pid, const struct iovec *local, const struct iovec *remote)
{
    int err = gi_os_injected(GI_OS_CMA);
    if (err != 0)
        return -err;
    ssize_t r = process_vm_writev(pid, local, 1, remote, 1, 0);
    return r < 0 ? -errno : r;
}

/*
 * Processes that share boot id and the three namespaces can pass descriptors, open pidfds of each
 * other and reach each other's memory; anything less is another host.
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
        char number[32] = "?";
        if (inode != NULL)
            sscanf(inode, "[%31[0-9]", number);
        len += snprintf(text + len, sizeof(text) - (size_t)len, "/%s", number);
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
