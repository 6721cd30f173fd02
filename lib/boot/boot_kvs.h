/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allgather over a put/fence/get store, which is all that PMI-1, PMI-2 and PMIx have in common.
 *
 * The connection to the launcher is one per process and lasts until the process ends: launchers
 * take a finalize for good-bye, and gin_init() may be called again. Communicators share it. Every
 * communicator has a number, counted in the order of opening, which is the same on all ranks since
 * opening is collective; every allgather of it has a round; keys are made of both, so that none is
 * ever put twice.
 */
#ifndef GI_BOOT_BOOT_KVS_H
#define GI_BOOT_BOOT_KVS_H

#include <pthread.h>
#include <sys/types.h>
#include "boot/boot_impl.h"

#define GI_KVS_KEY 48

/* One value wanted. value holds cap bytes; len is set. */
struct gi_kvs_item {
    int rank; /* who put it */
    char key[GI_KVS_KEY];
    char *value;
    size_t cap, len;
};

struct gi_kvs;

/* Keep sorted. Called with the lock held; all call gi_fail() when they fail. */
struct gi_kvs_ops {
    const char *name;
    /* Values put before are there for everybody afterwards. */
    int (*fence)(struct gi_kvs *k, bool data, uint64_t deadline);
    int (*get)(struct gi_kvs *k, struct gi_kvs_item *items, unsigned n, uint64_t deadline);
    int (*put)(struct gi_kvs *k, const char *key, const char *value, size_t n, uint64_t deadline);
};

struct gi_kvs {
    const struct gi_kvs_ops *ops;
    int rank, size, local_rank, local_size;
    size_t value_max; /* bytes of one value */
    bool binary;      /* values may hold any byte */
    unsigned window;  /* items the store likes to see in one get, at most GI_PMI_WINDOW */
    char origin[96];
    /* The launcher's library or socket serves one call at a time; also guards what follows. */
    pthread_mutex_t lock;
    pid_t pid; /* who connected, 0: nobody yet */
    unsigned comms;
    struct gi_boot *now; /* whose collective is under way, which may be asked to stop */
    int broken;          /* status of a fence that failed: the ranks are out of step for good */
    char why[GI_BOOT_WHY];
};

/*
 * GIN_EPEER for a store that has nothing of rank after a fence that ended: what the launcher's call
 * said, as a text or NULL, and a number.
 */
int gi_kvs_no_record(int rank, const char *call, const char *said, int number);

/*
 * Join through a store: connect() fills in k where this process has none yet. A child of fork()
 * is refused, since the connection is its parent's.
 */
int gi_kvs_open(struct gi_kvs *k, int (*connect)(struct gi_kvs *k, uint64_t deadline),
                uint64_t deadline, struct gi_boot **boot);

#endif
