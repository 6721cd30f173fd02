/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks for the tests of transport/shm, which stands below communicators: processes, threads of one
 * process, or threads of several, with an allgather over shared memory.
 *
 *     struct world w = {.size = 4, .processes = 2, .body = body};
 *     run_world(&w);
 */
#ifndef GINSHMEM_TESTS_SHM_RANKS_H
#define GINSHMEM_TESTS_SHM_RANKS_H

#include <sys/types.h>
#include "base/clock.h"
#include "transport/shm/shm_int.h"
#include "tests/pt.h"

#define MS       1000000ull
#define MAX_SIZE 256
#define RECORD   8192 /* bytes per rank in an allgather */

struct ranks_shared;

struct rank {
    int rank, size, process, processes;
    struct gi_shm_config config; /* ready for gi_shm_join(); config.fd is the rank's object */
    unsigned gathers;            /* allgathers so far */
    uint64_t patience;           /* ns that a barrier waits */
    void (*on_gather)(struct rank *r, unsigned nth, bool after, const void *data);
    unsigned parity;
    struct ranks_shared *shared;
    void *arg;
};

struct world {
    int size, processes;
    bool blocks;        /* rank r is in process r / (size / processes), else r % processes */
    const char *hosts;  /* rank r is on host hosts[r % length]; NULL: all on one */
    const char *doomed; /* processes with a 'x' may be killed */
    void (*body)(struct rank *r);
    void *arg;
    bool keep_zombies; /* do not reap before all have ended or are doomed */
};

/* True when every rank's body ran without a failed expectation. */
bool run_world(const struct world *w);

int rank_barrier(struct rank *r); /* 0, or GIN_ETIMEDOUT */
int rank_allgather(void *rank, const void *in, void *out, size_t bytes);
void rank_survivors(struct rank *r, int n); /* once: wait until n ranks have called it */
pid_t pid_of(const struct rank *r, int rank);

int count_fds(void);
/* Lines of /proc/self/maps that are objects of ranks or reservations of 256 MiB and more. */
int count_maps(void);
int count_dev_shm(void);

#define OBJECT_NAME "shm-test-object"

#endif
