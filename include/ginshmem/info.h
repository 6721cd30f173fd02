/* SPDX-License-Identifier: BSD-3-Clause */
/* What this library can do here and, where it cannot, why; and what it has done so far. */
#ifndef GINSHMEM_INFO_H
#define GINSHMEM_INFO_H

#include <ginshmem/devcomm.h>

typedef enum gin_cap {
    GIN_CAP_LSA = 0,        /* load/store access to peers of this host */
    GIN_CAP_CMA = 1,        /* process_vm_readv/writev to peers of this host */
    GIN_CAP_NET = 2,        /* network */
    GIN_CAP_CUDA = 3,       /* kernels and GPU memory */
    GIN_CAP_MULTIMEM = 4,   /* multicast addresses */
    GIN_CAP_ENGINE = 5,     /* descriptor ring with host thread */
    GIN_CAP_GDA = 6,        /* device writes the NIC's queue */
    GIN_CAP_HUGEPAGES = 7,  /* heap on huge pages */
    GIN_CAP_SHRINK = 8,     /* gin_comm_shrink() */
    GIN_CAP_PEER_DEATH = 9, /* peers' deaths are noticed */
    GIN_CAP_GPU_NET = 10,   /* GPU memory gets to the network */
    GIN_CAPS = 11
} gin_cap_t;

typedef struct gin_caps {
    size_t size;      /* sizeof this struct, set by the caller */
    uint32_t version; /* of the library */
    int rank, n_ranks;
    int lsa_rank, lsa_size;   /* -1, 0 before the heap is up */
    int node_rank, node_size; /* same host id */
    int n_hosts;
    int n_lsa_teams; /* 0 before the heap is up */
    char host_id[64];
    char bootstrap[96]; /* "pmi1 (PMI_FD=7)" */
    struct {
        int have;         /* 1: yes, 0: no, -1: not known before the heap is up */
        char reason[160]; /* why, or how */
    } cap[GIN_CAPS];
} gin_caps_t;

typedef struct gin_stats {
    size_t size_of;         /* sizeof this struct, set by the caller */
    uint64_t windows;       /* live windows */
    uint64_t registrations; /* memory registrations behind them */
    uint64_t teams;         /* live lists */
    uint64_t devcomms;      /* live device communicators */
    uint64_t mapped;        /* bytes of address space this process holds for the communicator */
    uint64_t agreements;    /* collective host calls so far */
    uint64_t waits;         /* waits that did not end at the first look */
    uint64_t cma_calls;     /* process_vm_readv/writev */
    /* the network, of the live device communicators: what this rank has sent */
    uint64_t net_writes;   /* with or without a signal */
    uint64_t net_reads;    /* demands for bytes */
    uint64_t net_atomics;  /* that the NIC does */
    uint64_t net_messages; /* that carry signals, atomics, small puts */
    uint64_t net_bundled;  /* small puts that shared messages */
    uint64_t net_controls; /* acknowledgements, replies, demands for them, refusals */
    uint64_t net_again;    /* posts that the network could not take at once */
    /* the bootstrap */
    uint64_t boot_rounds; /* allgathers */
    uint64_t boot_bytes;  /* that they brought this rank */
    /* collectives, of the live device communicators */
    uint64_t collectives; /* calls that all members came to */
    uint64_t coll_flat;   /* of them, between all members directly */
    uint64_t coll_two;    /* by way of hosts */
    /* the thread that serves kernels, while there is a device communicator for them */
    uint64_t engine_taken;   /* descriptors */
    uint64_t engine_bytes;   /* of their puts and gets */
    uint64_t engine_spells;  /* times without a break in which some were not complete */
    uint64_t engine_busy_ns; /* what these took, together */
    uint64_t engine_from_ns; /* when the last one began, */
    uint64_t engine_to_ns;   /* and ended, by CLOCK_MONOTONIC; 0: it lasts */
    /* further ways of collectives */
    uint64_t coll_tree;  /* in as many rounds as the number of members has bits */
    uint64_t coll_chain; /* each to the next one */
} gin_stats_t;

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/* Fill *caps. Local; caps->size must be set. */
GIN_API int gin_query(gin_comm_t *comm, gin_caps_t *caps);
GIN_API const char *gin_cap_name(gin_cap_t cap); /* "lsa" ...; "?" beyond GIN_CAPS */
/* Fill *stats. Local. */
GIN_API int gin_stats(gin_comm_t *comm, gin_stats_t *stats);
/* Print who waits for what in this process to a file descriptor; what SIGUSR1 does. */
GIN_API void gin_dump(int fd);

GIN_END_DECLS
#endif
#endif
