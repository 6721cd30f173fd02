/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device communicator behind its 64 public bytes. Its symmetric memory is one block of the host
 * heap: [signal cells of all contexts | barrier inboxes | collectives' workspaces | scratch | words
 * of kernels' collectives]; what only the owner touches is private. Where kernels take part every
 * rank has a second block, in the GPU heap: [signal cells | inboxes | scratch | collectives'
 * workspaces], and kernels' private state lies in GPU memory (devcomm_cuda.c).
 */
#ifndef GI_DEVCOMM_H
#define GI_DEVCOMM_H

#include "comm.h"

struct gi_barriers;    /* lib/barrier.c's part */
struct gi_colls;       /* lib/coll's */
struct gi_kernel_side; /* lib/devcomm_cuda.c's */
struct gi_stream_side; /* lib/stream_side.c's */
struct gi_core_ctx;
struct gi_net_ring;

struct gi_devcomm {
    gin_comm_t *comm;
    struct gin_i_dc *dc; /* and its contexts, in one block that a fork()ed child finds zeroed */
    size_t dc_bytes;
    uint64_t off, bytes;                           /* symmetric block: heap offset, size */
    uint64_t barriers_off, colls_off, scratch_off; /* heap offsets */
    uint64_t words_off;                            /* likewise: of kernels' collectives */
    struct gin_i_base *bases;
    struct gin_i_counter *counters;
    gin_devcomm_reqs_t reqs;                      /* as asked; team_barriers points to teams */
    gin_team_barrier_t *teams;                    /* copy of reqs.team_barriers */
    uint64_t wait_timeout_ns, barrier_timeout_ns; /* 0: none */
    struct gi_barriers *barriers;
    struct gi_colls *colls;
    struct gi_core_ctx **net;      /* by context, then the barriers'; NULL: no network */
    struct gi_net_loan *net_loans; /* registrations for one operation (net_lend.c) */
    bool net_beside;           /* some ranks are reached by the network and by process_vm calls */
    struct gi_net_ring *rings; /* by context: engine_net.c; NULL: threads post themselves */
    int32_t *lsa_of; /* what contexts see, where paths leave load/store out; in dc's block */

    uint8_t *device_of; /* by world rank: enum gin_device */
    bool kernels;       /* some rank's device is CUDA: all have a block in the GPU heap, too */
    bool host_signals;  /* CPU ranks or engines raise signals of kernels, in the host heap */
    uint64_t cuda_off, cuda_bytes;                    /* that block: heap offset, size */
    uint64_t cuda_barriers, cuda_scratch, cuda_colls; /* offsets in it */
    uint64_t host_reach;               /* bytes of host slots that my kernels reach */
    struct gi_kernel_side *kernel;     /* mine; NULL: my device is HOST */
    struct gi_stream_side *stream;     /* beside it */
    struct gi_cuda_multimem *multimem; /* lib/multimem.c; NULL: none */
    struct gi_devcomm *next;
};

/* devcomm_reqs.c: what is asked for, with defaults for the rest; NULL: all of them. */
int gi_devcomm_reqs_adopt(const gin_devcomm_reqs_t *given, gin_devcomm_reqs_t *r);

/* Bytes of all contexts' signal cells; either kind of block begins with them. */
static inline uint64_t gi_cells_bytes(const gin_devcomm_reqs_t *r)
{
    return (uint64_t)r->contexts * r->signals * sizeof(struct gin_i_cells);
}

/* LSA rank of a world rank on its paths, -1: none. */
static inline int gi_lsa_on(const struct gi_devcomm *d, int world)
{
    return d->lsa_of != NULL ? d->lsa_of[world] : d->comm->shm->lsa_of[world];
}

static inline struct gi_devcomm *gi_devcomm_of(const gin_t *g)
{
    return g->dc->priv;
}

static inline gin_comm_t *gi_comm_of(const gin_t *g)
{
    return g->dc->comm;
}

/*
 * First step of every slow call: g is bound to a live context (or to all of them, where `all`
 * allows it), and a host caller is a thread. Records a text that begins with `call`.
 */
int gi_op_enter(const gin_t *g, gin_group_t grp, int all, const char *call);

#endif
