/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks for tests of the bootstrap alone: processes or threads that call gi_boot_open(). */
#ifndef GINSHMEM_TESTS_LIFE_BOOT_RANKS_H
#define GINSHMEM_TESTS_LIFE_BOOT_RANKS_H

#include <ginshmem/init.h>
#include "boot/boot.h"
#include "tests/pt.h"

#define SECONDS(n) ((uint64_t)(n)*1000000000u)
#define MILLI(n)   ((uint64_t)(n)*1000000u)

struct ranks {
    int size;
    int first, last; /* ranks to start; last 0: size - 1, -1: rank 0 alone */
    bool threads;
    const char *root;    /* GINSHMEM_ROOT, or NULL */
    const char *timeout; /* GINSHMEM_INIT_TIMEOUT, or NULL */
    bool hasty_root;     /* the timeout is rank 0's alone: others wait for what it says */
    gin_unique_id_t *id; /* or NULL */
    void *arg;
};

/* Body of a rank. */
typedef void (*rank_fn)(const struct ranks *how, int rank);

/* Run fn on the ranks; a rank fails when an expectation of it does or when it is killed. */
void run_ranks(const struct ranks *how, rank_fn fn);
/*
 * The two halves for processes. pids holds size entries, zero where no rank was started. Ranks that
 * go on waiting for one that failed, in whichever set, are ended and have failed, too.
 */
void start_ranks(const struct ranks *how, rank_fn fn, int *pids);
void await_ranks(const struct ranks *how, const int *pids);
/* End a rank of a set, which is not awaited then. */
void kill_rank(int *pids, int rank);

/* Open as this rank; the status. */
int open_rank(const struct ranks *how, int rank, struct gi_boot **boot);
/* Exchange records of that size and check them all. */
bool exchange(struct gi_boot *b, size_t bytes, unsigned salt);
/* A plain life: open, and the rest of it. */
void plain_life(const struct ranks *how, int rank);
/* Exchange and close. */
void meet(const struct ranks *how, struct gi_boot *b);
/* A counter that all ranks share, from 0 on in each test that asks for it. */
_Atomic int *shared_counter(void);
/* Until it has come that far. */
void await_count(_Atomic int *counter, int least);

/* A port that nobody listens at right now, at the loopback of that family; 0: no such family. */
int free_port(bool v6);
/* Connection to the loopback's port, -1 if none. */
int connect_to(int port);
/* Listening socket at that port, -1 if it is taken. */
int listen_on(int port);
/* Descriptors of this process that are open. */
int open_descriptors(void);

#endif
