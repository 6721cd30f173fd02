/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LSA over host memory: every rank's memory object (a memfd) mapped side by side in one flat range
 * of addresses, lsa_size slots of `stride` bytes. Ranks that are threads of one process share one
 * range, refcounted in a process-wide cache, so that 256 of them do not make 65 536 maps.
 *
 * A slot is mapped once, in full: memory beyond the object's end appears when its owner grows it.
 * Mapping is proven, not assumed: each rank stores a token in the first 64 bytes of its object, and
 * only ranks that read each other's tokens form an LSA team.
 */
#ifndef GI_TRANSPORT_SHM_H
#define GI_TRANSPORT_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One rank, as far as mapping and copying need to know it. */
struct gi_shm_rank {
    uint64_t host;      /* equal values propose load/store access */
    uint64_t process;   /* equal values: threads of one process */
    uint64_t pid_space; /* equal values: pids mean the same */
    uint64_t probe;     /* address in that process of a word that holds `process` */
    pid_t pid;
    uid_t uid; /* effective: what the kernel tells about the end of a socket */
};

typedef int (*gi_shm_allgather_fn)(void *arg, const void *in, void *out, size_t bytes);

struct gi_shm_config {
    int rank, size;
    const struct gi_shm_rank *ranks; /* by world rank; lives as long as the map */
    uint64_t job[2];                 /* names the communicator; same on all ranks */
    int fd;              /* my memory object, stays the caller's; its first page is reserved */
    uint64_t stride;     /* wished slot size, rounded up to 2 MiB; the agreed one may be smaller */
    uint64_t min_stride; /* below it the join fails (GIN_ENOMEM) */
    bool lsa;            /* false: be alone (GINSHMEM_DISABLE_LSA) */
    bool cma;            /* false: no process_vm calls */
    gi_shm_allgather_fn allgather;
    void *arg;
    uint64_t deadline;
};

enum gi_shm_why { /* why a rank is not load/store accessible */
                  GI_SHM_OK = 0,
                  GI_SHM_OTHER_HOST,
                  GI_SHM_DISABLED,
                  GI_SHM_NOT_PROVEN /* same host id, but the token could not be read back */
};

struct gi_shm {
    char *base;
    uint64_t stride;
    int lsa_rank, lsa_size;
    int *world_of;   /* by LSA rank */
    int32_t *lsa_of; /* by world rank: LSA rank in MY team, -1 outside */
    int *team_of;    /* by world rank: number of its LSA team, by first appearance */
    int *index_of;   /* by world rank: its LSA rank in its own team */
    int n_teams;
    uint8_t *why; /* by world rank: enum gi_shm_why */
    uint8_t *cma; /* by world rank: 1 when a probe of process_vm_readv and writev worked */
    char cma_reason[128];
    uint64_t mapped; /* bytes of address space of the range */
    struct gi_shm_region *region;
    struct gi_shm_procs *procs; /* pidfds of other processes, one each */
};

/*
 * Collective over all ranks of the communicator, four allgathers or five. Fails on all ranks or on
 * none, unless an allgather itself fails.
 */
int gi_shm_join(const struct gi_shm_config *config, struct gi_shm **shm);
/* Local; the last leaver of a process unmaps. */
void gi_shm_leave(struct gi_shm *shm);

/*
 * Hand a descriptor of every rank to each other process of its LSA team. Collective over all ranks,
 * two allgathers; a rank whose status (recorded) is not GIN_OK stops all. In each process its
 * lowest LSA rank gets the objects: keep() is called for those of all ranks that have one, its own
 * process' ones included, and returns GIN_OK or a recorded failure; the descriptor is not its own.
 * A failure on the way stops this rank alone: the caller agrees with the others afterwards.
 */
typedef int (*gi_shm_keep_fn)(void *arg, int lsa_rank, int fd);
int gi_shm_pass(const struct gi_shm_config *config, const struct gi_shm *shm, int fd, int status,
                gi_shm_keep_fn keep, void *arg);

/*
 * Lowest world rank above `after` whose process, in this pid space, has exited, or -1. Each process
 * goes by its lowest rank, in rising order. One poll(2); any thread.
 */
int gi_shm_dead_after(struct gi_shm *shm, int after);
/* Whether the process of this rank has exited, as far as it is watched. One poll(2); any thread. */
bool gi_shm_has_exited(struct gi_shm *shm, int rank);

/*
 * Copy to or from another process; handles short counts. GIN_OK, GIN_EPEER (gone), GIN_ESYS. After
 * a failure a part may have been copied. A pid outlives its process: ask gi_shm_has_exited() first.
 */
int gi_cma_write(pid_t pid, void *remote, const void *local, size_t bytes);
int gi_cma_read(pid_t pid, void *local, const void *remote, size_t bytes);

#endif
