/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's network: the domain and the core behind it, the threads that drive it for the
 * peers' sake, and what of this rank's memory peers reach by it. It comes up with the heap where a
 * rank is not load/store accessible, and with the first device communicator that leaves load/store
 * out of its paths. A job whose ranks cannot all open the same network has none, with a reason.
 */
#ifndef GI_NET_UP_H
#define GI_NET_UP_H

#include "comm.h"
#include <ginshmem/impl/desc.h>
#include "net_gpu.h"
#include "transport/core.h"

struct gi_registration;
struct gi_window;

#define GI_NET_CHUNKS 4096u /* most times that a heap grows */

/* A part of my heap that is registered; chunks are one behind another. */
struct gi_net_chunk {
    uint64_t off, bytes;
    struct gi_core_region *region;
};

struct gi_net_heap {
    struct gi_net_chunk *chunks; /* room for GI_NET_CHUNKS */
    uint32_t n_chunks;
    uint64_t covered; /* bytes in chunks */
};

struct gi_net {
    gin_comm_t *comm;
    struct gi_net_domain *domains[GI_CORE_RAILS];
    uint32_t n_domains;
    char nic[GI_CORE_RAILS][64]; /* their devices, where they were chosen ... */
    uint32_t n_nics;             /* ... so many; 0: by the environment or the provider */
    struct gi_core *core;
    bool needs_region; /* local memory has to be registered */
    struct gi_net_heap heap;
    struct gi_core_region *cuda;  /* all of the GPU heap, there or not, if nobody registers it */
    struct gi_net_heap cuda_heap; /* where some rank registers it */
    struct gi_net_stage *stage;   /* net_stage.c */
    struct gi_net_gpu gpu;        /* net_gpu.c */
    char how[240];                /* provider, version and strategy, for people */

    struct gi_net_driver *drivers; /* net_drive.c */
    uint32_t n_drivers;
    atomic_int stop;
    _Atomic uint32_t rings; /* of contexts of the backend ENGINE */
};

/* Collective; all ranks or none. GIN_OK without a network: comm->net is NULL and comm->net_why says
 * why. */
int gi_net_up(gin_comm_t *comm);
void gi_net_down(gin_comm_t *comm); /* what used it is gone; a barrier came before */
/* The domains of this rank's devices, one at least; those of all ranks are compared by others.
 * net_rails.c */
int gi_net_rails_open(struct gi_net *n);
void gi_net_rails_close(struct gi_net *n);
/* Choose them, where nobody named them. Collective. net_nics.c */
int gi_net_nics_choose(struct gi_net *n);
/* One of them leads to this machine alone. */
bool gi_net_rails_local(const struct gi_net *n);
/* The heap has grown to `size` on all ranks. Collective. */
void gi_net_heap_grown(gin_comm_t *comm, uint64_t size);
void gi_net_cuda_heap_grown(gin_comm_t *comm, uint64_t size); /* the GPU heap */
/* A registration of windows, of mine at `addr`. Collective; leaves reg->net NULL where that fails.
 */
void gi_net_reg_open(gin_comm_t *comm, struct gi_registration *reg);
void gi_net_reg_close(gin_comm_t *comm, struct gi_registration *reg);
/* The network and GPUs are up, or one of them is not yet: from now on GPU memory can be staged.
 * Collective; without that where it fails. */
void gi_net_stage_up(gin_comm_t *comm);
void gi_net_cuda_heap(gin_comm_t *comm);  /* ... the GPU heap is reached; collective */
void gi_net_stage_down(struct gi_net *n); /* its core is closed */
/* Where GDRCopy is installed: memory of mine that the CPU may copy a few bytes of. */
bool gi_net_stage_by_cpu(const struct gi_net *n);
void gi_net_stage_map(const struct gi_net *n, uint64_t addr, uint64_t bytes);
void gi_net_stage_unmap(const struct gi_net *n, uint64_t addr, uint64_t bytes);
void gi_net_stage_heap(const struct gi_net *n, uint64_t size); /* the GPU heap, so far */
/* A window that was published, or is retracted now. */
void gi_net_window_set(gin_comm_t *comm, uint64_t handle, const struct gi_window *p,
                       uint64_t bytes);
void gi_net_window_drop(gin_comm_t *comm, uint64_t handle);
/* All windows there are, when the network has come up and before it goes. The first is collective.
 */
void gi_net_windows_up(gin_comm_t *comm);
void gi_net_windows_down(gin_comm_t *comm);
/* May a window's memory be reached by it at other ranks? */
bool gi_net_has(const gin_comm_t *comm, const struct gi_window *p);

/* The network, or NULL; another thread may be bringing it up. */
static inline struct gi_net *gi_net_of(const gin_comm_t *comm)
{
    return GIN_LOAD_ACQUIRE(&comm->net);
}

/* Drive it once; of a waiting loop. arg: gin_comm_t *, with or without a network. */
void gi_net_progress(void *arg);
/* For a loop that waits for something of one context; NULL: of none, or without a network. */
static inline void gi_net_drive(const gin_comm_t *comm, struct gi_core_ctx *ctx)
{
    if (ctx != NULL)
        gi_core_poll_for(comm->net->core, ctx);
}
/* Why the communicator has no network. */
const char *gi_net_why(const gin_comm_t *comm);
/* The registered region around [addr, addr + bytes) of my memory, or NULL. */
struct gi_core_region *gi_net_region_of(gin_comm_t *comm, const void *addr, uint64_t bytes);
/* Bytes of a put that is cheaper copied than watched over. */
#define GI_NET_COPIED 16u
/* The region that an operation's local memory needs, NULL: none. copied, if given: in, the core
 * copies it in any case; out, it may have to, since no region has it. */
int gi_net_mine(gin_comm_t *comm, bool gpu, const void *addr, uint64_t bytes, bool *copied,
                struct gi_core_region **region);

/* Tests only, before any communicator: another network than libfabric's. NULL: that again. */
void gi_net_use(const struct gi_net_ops *ops, const void *(*more)(int rank));
bool gi_net_is_test(void);

#endif
