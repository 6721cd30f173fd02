/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: joining a job, leaving it, asking about it.
 *
 * A communicator is a group of ranks with its heap, windows and transports. A process may hold
 * several, and several ranks of one communicator may be threads of one process.
 */
#ifndef GINSHMEM_INIT_H
#define GINSHMEM_INIT_H

#include <ginshmem/status.h>

#define GIN_VERSION_MAJOR 0
#define GIN_VERSION_MINOR 1
#define GIN_VERSION_PATCH 0
#define GIN_VERSION       (GIN_VERSION_MAJOR * 10000 + GIN_VERSION_MINOR * 100 + GIN_VERSION_PATCH)

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

typedef struct gin_comm gin_comm_t;

#define GIN_UNIQUE_ID_BYTES 128
/* Names a job; made by one rank and carried to the others by the program's own means. */
typedef struct gin_unique_id {
    unsigned char bytes[GIN_UNIQUE_ID_BYTES];
} gin_unique_id_t;

/*
 * The caller's own allgather: every rank passes `bytes` bytes in `in`; on return `out` holds
 * size * bytes in rank order. Returns 0, or non-zero on failure. Called by gin_init() and, while
 * the communicator lives, inside collective host calls; never concurrently for one communicator.
 */
typedef int (*gin_allgather_fn)(void *arg, const void *in, void *out, size_t bytes);

/*
 * How to join. Initialise with gin_config_init(); fields after those that the program knows keep
 * their defaults, so that older programs run with newer libraries.
 */
typedef struct gin_config {
    size_t size;      /* sizeof(gin_config_t), set by gin_config_init() */
    uint32_t version; /* GIN_VERSION, set by gin_config_init() */
    int rank;         /* my rank with unique_id or allgather; -1: ask the launcher */
    int n_ranks;      /* number of ranks with unique_id or allgather; -1: ask the launcher */
    const gin_unique_id_t *unique_id; /* NULL: not by unique id */
    gin_allgather_fn allgather;       /* NULL: not by the caller's allgather */
    void *allgather_arg;
    const char *host_id; /* NULL: this machine's; else names the host this rank pretends to be on */
    uint64_t heap_size;  /* bytes per rank at first use; 0: GINSHMEM_HEAP_SIZE */
    uint64_t heap_max;   /* limit per rank; 0: GINSHMEM_HEAP_MAX */
} gin_config_t;

/* Fill *config with the defaults. */
GIN_API void gin_config_init(gin_config_t *config);

/*
 * Join a job. Collective over its ranks. config NULL takes rank, size and the bootstrap from the
 * launcher (PMIx, PMI-1, PMI-2, GINSHMEM_RANK/SIZE/ROOT, torchrun); a process without launcher is
 * a job of one rank. Only the bootstrap and the hosts are looked at here; the heap comes up with
 * the first call that needs it. On failure *comm is NULL, on all ranks.
 *
 * GIN_EINVAL bad config or environment; GIN_EMISMATCH versions, page sizes or heap sizes differ;
 * GIN_ETIMEDOUT ranks are missing (named); GIN_ESYS, GIN_ENOMEM.
 */
GIN_API int gin_init(const gin_config_t *config, gin_comm_t **comm);

/*
 * Leave. Collective: ends with a barrier, so that no rank unmaps what another still writes to.
 * Frees everything of the communicator, heap included. comm NULL: GIN_ESTATE. When a peer is dead
 * the local resources are freed all the same and GIN_EPEER is returned.
 */
GIN_API int gin_finalize(gin_comm_t *comm);

/* Make a unique id; the calling process, which must hold rank 0, listens until all have joined. */
GIN_API int gin_unique_id(gin_unique_id_t *id);

GIN_API int gin_rank(const gin_comm_t *comm); /* my rank, or -1 */
GIN_API int gin_size(const gin_comm_t *comm); /* number of ranks, or -1 */

/* Barrier of all ranks on the host; completes all earlier operations of all contexts. Collective.
 */
GIN_API int gin_comm_barrier(gin_comm_t *comm);

/*
 * The caller's bytes of every rank, in rank order. Collective; for set-up, not for speed.
 */
GIN_API int gin_comm_allgather(gin_comm_t *comm, const void *in, void *out, size_t bytes);

/*
 * End all waits of all ranks on this communicator with GIN_EPEER; the text carries `why`. Any
 * thread, any time; afterwards only gin_finalize() makes sense.
 */
GIN_API int gin_comm_abort(gin_comm_t *comm, const char *why);

/* GIN_OK, or the sticky error of the communicator (GIN_EPEER naming the rank in gin_last_error()).
 */
GIN_API int gin_comm_status(gin_comm_t *comm);

/* Survivors go on without the dead. Not built yet: GIN_ENOTSUP with the reason. */
GIN_API int gin_comm_shrink(gin_comm_t *comm, gin_comm_t **survivors);

/* Version of the library that runs, as GIN_VERSION. */
GIN_API int gin_version(void);

GIN_END_DECLS
#endif
#endif
