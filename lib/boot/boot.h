/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bring-up: who am I, how many are we, and an allgather among us before anything else works. One
 * implementation per way of being started (pmix, pmi1, pmi2, tcp, user, self), chosen once by
 * gi_boot_open(). Nothing here knows heaps, windows or transports.
 */
#ifndef GI_BOOT_BOOT_H
#define GI_BOOT_BOOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "base/env.h"

struct gi_boot;
struct gin_config;

/* Keep sorted. Every slot is filled in every implementation. */
struct gi_boot_ops {
    size_t size; /* sizeof this table */
    const char *name;
    /* out holds size*bytes; collective, serial. GIN_ETIMEDOUT names the missing ranks. */
    int (*allgather)(struct gi_boot *b, const void *in, void *out, size_t bytes, uint64_t deadline);
    void (*close)(struct gi_boot *b); /* local; frees b */
};

struct gi_boot {
    const struct gi_boot_ops *ops;
    int rank, size;
    int local_rank, local_size;     /* by the launcher's word, -1 where it says nothing */
    char origin[96];                /* for gininfo and messages: "pmi1 (PMI_FD=7)" */
    _Atomic uint64_t rounds, bytes; /* allgathers so far, and what they brought */
    /* Asked every now and then while a collective waits; what is not GIN_OK, and recorded, ends it.
     * NULL: nobody is. The caller's own allgather cannot be ended. */
    int (*stop)(void *arg);
    void *stop_arg;
    int stopped; /* what it said */
    int lost;    /* whose end broke a collective, -1: nobody's that is known */
};

/*
 * Find out how this process was started and join. config (may be NULL) comes first: its allgather,
 * its unique id; then env->boot; then what was set on purpose (GINSHMEM_RANK/SIZE/ROOT); then what
 * the launcher offers: PMIx, PMI-1, PMI-2, torchrun; a lone process is a job of one rank, and one
 * of several that were given no way to meet is refused. Collective over the job.
 */
int gi_boot_open(const struct gi_env *env, const struct gin_config *config, struct gi_boot **boot);

/* Wrappers that add the text of the failing bootstrap. */
int gi_boot_allgather(struct gi_boot *b, const void *in, void *out, size_t bytes,
                      uint64_t deadline);
int gi_boot_barrier(struct gi_boot *b, uint64_t deadline);
void gi_boot_close(struct gi_boot *b);

#endif
