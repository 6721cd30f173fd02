/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device communicators: what threads and kernels need for one-sided operations, with contexts,
 * signals, counters and barriers, in 64 bytes that are passed by value.
 */
#ifndef GINSHMEM_DEVCOMM_H
#define GINSHMEM_DEVCOMM_H

#include <ginshmem/team.h>
#include <ginshmem/window.h>

enum gin_device { GIN_DEVICE_HOST = 0, GIN_DEVICE_CUDA = 1 };

enum gin_backend {
    GIN_BACKEND_AUTO = 0,   /* DIRECT for host threads, ENGINE for kernels */
    GIN_BACKEND_DIRECT = 1, /* host threads post themselves and drive progress while they wait */
    GIN_BACKEND_ENGINE = 2, /* descriptor ring and host thread */
    GIN_BACKEND_GDA = 3     /* the device writes the NIC's queue; not built: GIN_ENOTSUP */
};

enum gin_connection {
    GIN_CONNECT_FULL = 0, /* every peer */
    GIN_CONNECT_RAIL = 1, /* LSA peers and the rail team; others are refused by name */
    GIN_CONNECT_NONE = 2  /* LSA peers only */
};

/* Of the network. Which of them a provider heeds gininfo tells; others are GIN_ENOTSUP. */
enum gin_traffic_class {
    GIN_TC_DEFAULT = -1, /* the provider's */
    GIN_TC_BEST_EFFORT = 0,
    GIN_TC_LOW_LATENCY = 1,
    GIN_TC_DEDICATED_ACCESS = 2,
    GIN_TC_BULK_DATA = 3,
    GIN_TC_SCAVENGER = 4, /* whatever others leave */
    GIN_TC_NETWORK_CTRL = 5,
    GIN_TC_DSCP = 0x100 /* and a code point, 0 to 63: gin_tc_dscp() */
};

enum gin_barrier_kind {
    GIN_BARRIER_WORLD = 0,
    GIN_BARRIER_LSA = 1,
    GIN_BARRIER_RAIL = 2,
    GIN_BARRIER_HYBRID = 3, /* world: LSA inside, rails between */
    GIN_BARRIER_TEAM = 4    /* a team of gin_devcomm_reqs_t.team_barriers */
};

/* Multicast addresses (multimem) of the LSA team's GPU heaps. */
enum gin_multimem {
    GIN_MULTIMEM_NONE = 0,
    GIN_MULTIMEM_NEEDED = 1, /* GIN_ENOTSUP, with the reason, where they cannot be had */
    GIN_MULTIMEM_WISHED = 2  /* used where they can be had: the same results without */
};

/* What a strong signal over a network without order is made to follow earlier puts by. */
enum gin_strategy {
    GIN_STRATEGY_AUTO = 0, /* what GINSHMEM_STRATEGY says */
    GIN_STRATEGY_S = 1,    /* the source sends it when they are delivered */
    GIN_STRATEGY_EPOCH = 2 /* the target counts them, where the network allows that; else as S */
};

/* Which barrier: a kind, and for GIN_BARRIER_TEAM the place in team_barriers. */
typedef struct gin_barrier {
    uint32_t kind;
    uint32_t place;
} gin_barrier_t;

/* Demand for barriers of one team. Every rank lists the same counts in the same order; a rank that
 * is no member passes the invalid team. */
typedef struct gin_team_barrier {
    gin_team_t team;
    uint32_t count;       /* barrier indices 0 .. count-1 */
    gin_barrier_t handle; /* out */
} gin_team_barrier_t;

/*
 * What a device communicator shall hold. Initialise with gin_devcomm_reqs_init(). Numbers must be
 * equal on all ranks (GIN_EMISMATCH), the device may differ: a CPU rank may signal a GPU rank.
 */
typedef struct gin_devcomm_reqs {
    size_t size;             /* sizeof this struct, set by gin_devcomm_reqs_init() */
    uint32_t version;        /* GIN_VERSION, likewise */
    uint32_t device;         /* enum gin_device; default HOST */
    uint32_t contexts;       /* 1 .. 1024; default 4 */
    uint32_t signals;        /* per context, 0 .. 1 Mi; default 64 */
    uint32_t counters;       /* per context, 0 .. 1 Mi; default 64 */
    uint32_t world_barriers; /* barrier indices of each kind, 0 .. 65536; default 1 */
    uint32_t lsa_barriers;
    uint32_t rail_barriers;
    uint32_t hybrid_barriers;
    uint32_t n_team_barriers;
    gin_team_barrier_t *team_barriers; /* default none */
    size_t scratch;                    /* bytes of symmetric scratch, gin_scratch(); default 0 */
    uint32_t connection;               /* enum gin_connection; default FULL */
    uint32_t paths;                    /* allowed: GIN_PATH_LSA | GIN_PATH_CMA ...; 0: all */
    int strong;                        /* strong signals needed; default 1 */
    int va;                            /* signals on window words (_at) needed; default 1 */
    uint32_t backend;                  /* enum gin_backend; default AUTO */
    uint32_t queue_depth;              /* descriptors per ring; 0: default */
    int32_t traffic_class;             /* enum gin_traffic_class; default -1, the provider's */
    uint64_t wait_timeout_ns;          /* of waits without a timeout of their own; 0: none */
    uint64_t barrier_timeout_ns;       /* of barriers; 0: none */
    uint32_t multimem;                 /* enum gin_multimem; default NONE */
    uint32_t strategy;                 /* enum gin_strategy; default AUTO */
    uint32_t collectives;              /* indices of collectives, 0 .. 4096; default 1 */
    uint32_t reserved;                 /* 0 */
    size_t collective_scratch;         /* bytes for each of them; 0: GINSHMEM_COLL_SCRATCH */
    uint64_t collective_timeout_ns;    /* of collectives; 0: GINSHMEM_COLL_TIMEOUT */
} gin_devcomm_reqs_t;

/*
 * The device communicator. 64 bytes, plain data; pass it to kernels and threads by value. Fields
 * are the library's.
 */
typedef struct gin_devcomm {
    uint32_t magic;
    uint16_t abi;
    uint16_t flags;
    int32_t rank, size;
    uint32_t n_contexts, n_signals, n_counters;
    uint32_t device;
    uint64_t state;   /* struct gin_i_dc of this rank, in the device's address space */
    uint64_t windows; /* level-1 table of windows */
    uint64_t lsa_of;  /* world rank -> LSA index */
    uint64_t serial;  /* of the device communicator in this process */
} gin_devcomm_t;
GIN_STATIC_ASSERT(sizeof(gin_devcomm_t) == 64, "a device communicator is one cache line");

/*
 * Which paths the inlined code of kernels carries; define it before the first header to leave out
 * what a kernel cannot meet. Without GIN_PATH_NET there is no engine: what needs it is GIN_ENOTSUP.
 */
#ifndef GIN_KERNEL_PATHS
#define GIN_KERNEL_PATHS (GIN_PATH_LSA | GIN_PATH_NET)
#endif

/*
 * 1, before the first header: kernels' calls with a bad id, rank, place, alignment or group print
 * one line that says what is wrong and where, and trap, instead of returning the status. 0: nothing
 * of it is compiled.
 */
#ifndef GIN_KERNEL_CHECK
#define GIN_KERNEL_CHECK 0
#endif

#define GIN_DEVCOMM_MAGIC 0x47494e44u /* "GIND" */
#define GIN_DEVCOMM_ABI   1

/* The class of traffic with this code point of IP's differentiated services, 0 to 63. */
GIN_VALUE int32_t gin_tc_dscp(unsigned point)
{
    return (int32_t)(GIN_TC_DSCP | point);
}

GIN_VALUE gin_barrier_t gin_barrier_of(enum gin_barrier_kind kind)
{
    gin_barrier_t b;
    b.kind = (uint32_t)kind;
    b.place = 0;
    return b;
}

GIN_VALUE gin_barrier_t gin_barrier_world(void)
{
    return gin_barrier_of(GIN_BARRIER_WORLD);
}

GIN_VALUE gin_barrier_t gin_barrier_lsa(void)
{
    return gin_barrier_of(GIN_BARRIER_LSA);
}

GIN_VALUE gin_barrier_t gin_barrier_rail(void)
{
    return gin_barrier_of(GIN_BARRIER_RAIL);
}

GIN_VALUE gin_barrier_t gin_barrier_hybrid(void)
{
    return gin_barrier_of(GIN_BARRIER_HYBRID);
}

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/* Fill *reqs with the documented defaults. */
GIN_API void gin_devcomm_reqs_init(gin_devcomm_reqs_t *reqs);

/*
 * Make a device communicator. Collective. reqs NULL: the defaults. Brings the heap up.
 * GIN_ENOTSUP names what cannot be had and why; GIN_EINVAL, GIN_EMISMATCH, GIN_ENOMEM.
 */
GIN_API int gin_devcomm_create(gin_comm_t *comm, gin_devcomm_reqs_t *reqs, gin_devcomm_t *dev);
/* Free it. Collective; operations in flight are completed first. Contexts bound to it die. */
GIN_API int gin_devcomm_destroy(gin_comm_t *comm, gin_devcomm_t *dev);

GIN_END_DECLS
#endif
#endif
