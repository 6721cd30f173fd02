/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between address spaces by the kernel (process_vm_readv and _writev), for memory that is
 * not mapped here. Whether they are allowed is tried, not guessed: Yama, namespaces and seccomp all
 * have a say. Nothing here can tell a process from a later one of the same pid; the caller asks
 * gi_shm_has_exited() about that.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/shm/shm_int.h"

typedef ssize_t (*copy_fn)(pid_t pid, const struct iovec *local, const struct iovec *remote);

/* The kernel stops early at its limit, at a signal, and before a page that it cannot reach. */
static int copy_all(copy_fn copy, pid_t pid, void *local, void *remote, size_t bytes, size_t *done)
{
    for (*done = 0; *done < bytes;) {
        struct iovec l = {(char *)local + *done, bytes - *done};
        struct iovec r = {(char *)remote + *done, bytes - *done};
        ssize_t n = copy(pid, &l, &r);
        if (n < 0)
            return (int)n;
        if (n == 0)
            return -EFAULT;
        *done += (size_t)n;
    }
    return 0;
}

/* The setting of Yama, or "" where there is none. */
static const char *yama(char *text, size_t n)
{
    char value[16];
    text[0] = 0;
    if (gi_os_read_file("/proc/sys/kernel/yama/ptrace_scope", value, sizeof(value)) > 0)
        snprintf(text, n, "; kernel.yama.ptrace_scope is %d, and must be 0", value[0] - '0');
    return text;
}

static int explain(int e, const char *call, pid_t pid, const void *remote, size_t bytes,
                   size_t done)
{
    char scope[64];
    switch (-e) {
    case ESRCH: return gi_fail(GIN_EPEER, "%s: process %ld has exited", call, (long)pid);
    case EFAULT:
        return gi_fail(GIN_ESYS,
                       "%s: of %zu bytes at %p of process %ld, those from byte %zu on are not "
                       "mapped there or here",
                       call, bytes, remote, (long)pid, done);
    case EPERM:
        return gi_fail(GIN_ESYS, "%s: process %ld may not be accessed%s", call, (long)pid,
                       yama(scope, sizeof(scope)));
    default:
        return gi_fail(GIN_ESYS, "%s: %zu bytes at %p of process %ld: %s", call, bytes, remote,
                       (long)pid, gi_os_strerror(e));
    }
}

int gi_cma_write(pid_t pid, void *remote, const void *local, size_t bytes)
{
    size_t done;
    int e = copy_all(gi_os_vm_write, pid, (void *)local, remote, bytes, &done);
    return e == 0 ? GIN_OK : explain(e, "process_vm_writev", pid, remote, bytes, done);
}

int gi_cma_read(pid_t pid, void *local, const void *remote, size_t bytes)
{
    size_t done;
    int e = copy_all(gi_os_vm_read, pid, local, (void *)remote, bytes, &done);
    return e == 0 ? GIN_OK : explain(e, "process_vm_readv", pid, remote, bytes, done);
}

/* Read the word that names the process, and write it back as it is. */
static bool probe(const struct gi_shm_rank *who, int rank, char *reason, size_t n)
{
    uint64_t word = 0;
    size_t done;
    char scope[64] = "";
    void *there = (void *)(uintptr_t)who->probe;
    const char *call = "readv";
    int e = copy_all(gi_os_vm_read, who->pid, &word, there, sizeof(word), &done);
    if (e == 0 && word != who->process) {
        snprintf(reason, n, "process %ld is not that of rank %d", (long)who->pid, rank);
        return false;
    }
    if (e == 0) {
        call = "writev";
        e = copy_all(gi_os_vm_write, who->pid, &word, there, sizeof(word), &done);
    }
    if (e != 0)
        snprintf(reason, n, "process_vm_%s to rank %d: %s%s", call, rank, gi_os_strerror(e),
                 e == -EPERM ? yama(scope, sizeof(scope)) : "");
    return e == 0;
}

void gi_cma_probe(const struct gi_shm_config *c, struct gi_shm *s, struct gi_shm_pair *pairs)
{
    const struct gi_shm_rank *me = &c->ranks[c->rank];
    int n = 0;
    s->cma_reason[0] = 0;
    if (!c->cma) {
        snprintf(s->cma_reason, sizeof(s->cma_reason), "switched off");
        return;
    }
    for (int r = 0; r < c->size; r++)
        if (c->ranks[r].pid_space == me->pid_space)
            pairs[n++] = (struct gi_shm_pair){{c->ranks[r].process}, r};
    gi_shm_sort_pairs(pairs, n);
    for (int i = 0, worst = c->size; i < n; i++) {
        int rank = pairs[i].rank;
        char reason[sizeof(s->cma_reason)];
        if (i > 0 && pairs[i].key[0] == pairs[i - 1].key[0]) {
            s->cma[rank] = s->cma[pairs[i - 1].rank];
            continue;
        }
        s->cma[rank] = probe(&c->ranks[rank], rank, reason, sizeof(reason));
        if (!s->cma[rank] && rank < worst) { /* the reason is that of the lowest rank */
            worst = rank;
            memcpy(s->cma_reason, reason, sizeof(reason));
        }
    }
}
