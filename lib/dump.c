/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dump, which runs in a signal handler while other threads join, leave and wait: it takes no
 * lock, allocates nothing and reads communicators through a table of its own. Removing one waits
 * until no dump is under way; a dump on the removing thread itself is over before that goes on.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/line.h"
#include "comm.h"
#include "dump.h"

#define SHOWN 64 /* communicators of one process; more are not shown */

static const struct gin_comm *table[SHOWN];
static unsigned dumping;
static bool installed;

void gi_dump_add(const struct gin_comm *comm)
{
    for (unsigned i = 0; i < SHOWN; i++) {
        const struct gin_comm *none = NULL;
        if (__atomic_compare_exchange_n(&table[i], &none, comm, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return;
    }
}

void gi_dump_remove(const struct gin_comm *comm)
{
    for (unsigned i = 0; i < SHOWN; i++) {
        const struct gin_comm *it = comm;
        if (__atomic_compare_exchange_n(&table[i], &it, NULL, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            break;
    }
    while (__atomic_load_n(&dumping, __ATOMIC_SEQ_CST) != 0)
        gi_os_yield();
}

static void show(const struct gin_comm *comm, int fd)
{
    struct gi_line l = {.n = 0};
    int status = gi_comm_status_quiet(comm);
    gi_line_text(&l, "ginshmem[");
    gi_line_number(&l, (uint64_t)comm->rank);
    gi_line_text(&l, "] of ");
    gi_line_number(&l, (uint64_t)comm->size);
    gi_line_text(&l, ": ");
    gi_line_text(&l, gin_status_name(status));
    if (status != GIN_OK) {
        gi_line_text(&l, ", ");
        gi_line_text(&l, comm->status_text);
    }
    gi_line_text(&l, "; collective calls ");
    gi_line_number(&l, atomic_load_explicit(&comm->n_agreements, memory_order_relaxed));
    gi_line_text(&l, ", waits ");
    gi_line_number(&l, atomic_load_explicit(&comm->n_waits, memory_order_relaxed));
    gi_line_write(&l, fd);
}

void gin_dump(int fd)
{
    __atomic_fetch_add(&dumping, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < SHOWN; i++) {
        const struct gin_comm *comm = __atomic_load_n(&table[i], __ATOMIC_SEQ_CST);
        if (comm != NULL)
            show(comm, fd);
    }
    __atomic_fetch_sub(&dumping, 1, __ATOMIC_SEQ_CST);
    gi_wait_dump(fd);
}

static void on_signal(int sig)
{
    int e = errno;
    (void)sig;
    gin_dump(STDERR_FILENO);
    errno = e;
}

void gi_dump_install(bool wanted)
{
    if (wanted && !installed)
        installed = gi_os_signal_take(SIGUSR1, on_signal) > 0;
}

void gi_dump_uninstall(void)
{
    if (installed)
        gi_os_signal_give_back(SIGUSR1, on_signal);
    installed = false;
}
