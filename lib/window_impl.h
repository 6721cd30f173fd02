/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms of windows share: the state of a communicator's windows, registrations, and one in
 * the making.
 */
#ifndef GI_WINDOW_IMPL_H
#define GI_WINDOW_IMPL_H

#include "comm.h"
#include "cuda/memory.h"
#include "transport/cuda/parts.h"
#include "window_index.h"
#include "window_table.h"

#define GI_NOT_HEAP     UINT64_MAX /* as offset in the heap */
#define GI_THE_HEAP     0u         /* id of the host heap's window */
#define GI_CUDA_HEAP_ID 1u         /* id of the GPU heap's window */
struct gi_core_region;

enum gi_which_heap { GI_NO_HEAP, GI_HOST_HEAP, GI_CUDA_HEAP };

/*
 * Memory of all ranks that windows lie in. Windows whose ranges lie in one registration at the same
 * offset on every rank share it; the last one to go takes it along. The heap is one registration
 * whose addresses follow from the LSA slots; `addr` is NULL there.
 */
struct gi_registration {
    uint64_t *addr; /* by world rank: where it starts in that rank's address space */
    uint64_t bytes;
    uint32_t strict;                    /* GIN_WIN_STRICT_ORDERING: another key with a network */
    uint32_t heap;                      /* enum gi_which_heap */
    struct gi_cuda_parts *parts;        /* GPU memory outside the heap; NULL: no LSA wanted */
    bool gpu;                           /* it is GPU memory outside the heap */
    int windows;                        /* that share it */
    struct gi_core_region *net;         /* what the network reaches; NULL: nothing, or the heap */
    struct gi_registration *next, **at; /* list; at: who points here */
};

/* Ranges announced by gin_local_register(), in memory of one kind. */
struct gi_local_range {
    uint64_t start, bytes, count;
    enum gi_gpu_memory place;
};

struct gi_windows {
    struct gi_window_table table;
    struct gi_window_index index;     /* registered windows; the heap's is not in it */
    struct gi_registration heap;      /* windows 0: not up */
    struct gi_registration cuda_heap; /* likewise */
    struct gi_registration *regs;
    uint64_t n_regs;
    bool same_process; /* an LSA peer is a thread of this process */

    pthread_mutex_t local_lock;
    struct gi_local_range *local; /* by start, older first */
    uint64_t n_local, local_capacity;
};

/* One registration in the making. */
struct gi_draft {
    const char *call;
    void *ptr;
    uint64_t bytes;
    unsigned flags;
    enum gi_which_heap heap;
    uint64_t heap_off; /* GI_NOT_HEAP: other memory */
    uint32_t place;    /* enum gi_gpu_memory of my part, or GI_PLACE_NONE; heaps: UNKNOWN */
    bool gpu;          /* all ranks that have a part passed GPU memory outside the heap */
    bool pinned;       /* my LSA team is of this process, and its parts are pinned */
    uint32_t id;
    struct gi_registration *reg; /* fresh, to be used unless one can be shared */
    uint64_t *peers;             /* for mode TABLE, or NULL */
};
#define GI_PLACE_NONE 7u /* NULL: a rank without GPU has no part of GPU memory */

static inline struct gin_i_window *gi_heap_window(const gin_comm_t *comm)
{
    return gi_window_at(&comm->windows->table, GI_THE_HEAP);
}

static inline struct gin_i_window *gi_cuda_window(const gin_comm_t *comm)
{
    return gi_window_at(&comm->windows->table, GI_CUDA_HEAP_ID);
}

/* The registration in which the draft's memory lies on every rank at one offset, or NULL. */
struct gi_registration *gi_registration_find(const gin_comm_t *comm, const struct gi_draft *draft,
                                             uint64_t *off);

/* ---- window_cuda.c ---- */

/* Fill draft->place. Local. */
void gi_draft_place(const gin_comm_t *comm, struct gi_draft *draft);
/*
 * All ranks' records of the draft are in comm->records, no rank has failed: is it GPU memory, and
 * everywhere? GIN_OK, or the refusal of all ranks.
 */
int gi_draft_judge(const gin_comm_t *comm, struct gi_draft *draft);
/* Collective, for draft->gpu: find out how the GPUs reach it. Undone with the registration. */
int gi_draft_open(gin_comm_t *comm, struct gi_draft *draft);
/* ---- window_reach.c ---- */

/* My GPU's address of LSA rank lsa's part of a window in GPU memory; 0: it does not reach it. */
uint64_t gi_window_on_gpu(const gin_comm_t *comm, const struct gin_i_window *w, int lsa);

/* Forget how GPUs reach memory outside the heap: they go. */
void gi_windows_forget_gpus(struct gi_windows *ws);

/* Bytes of a window. Of GPU memory the table that host threads' inlined code reads shows none. */
static inline uint64_t gi_window_bytes(const gin_comm_t *comm, const struct gin_i_window *w,
                                       uint32_t id)
{
    return w->kind == GIN_KIND_CUDA
               ? GIN_LOAD_RELAXED(&gi_window_private(&comm->windows->table, id)->gpu_bytes)
               : GIN_LOAD_RELAXED(&w->size);
}

/* ---- operand.c: memory of mine that the program names by its address ---- */

/* What the driver says of all of [addr, addr + bytes), bytes != 0; GIN_EINVAL: of several kinds. */
int gi_operand_look(const gin_comm_t *comm, uint64_t addr, uint64_t bytes,
                    enum gi_gpu_memory *place);
/* The driver is asked where nothing else knows. */
int gi_operand_is_gpu(gin_comm_t *comm, uint64_t addr, uint64_t bytes, bool *gpu);
/* window_local.c: announced memory holds it all. False, too, while somebody announces some. */
bool gi_local_place(gin_comm_t *comm, uint64_t addr, uint64_t bytes, enum gi_gpu_memory *place);

/* GIN_ESTATE with a text naming `call` unless the window is live. */
int gi_window_check_live(const gin_comm_t *comm, const char *call, gin_window_t win);
/* GIN_EINVAL or GIN_ERANGE with a text naming `call` unless [ptr, ptr + bytes) may be memory. */
int gi_window_check_range(const char *call, const void *ptr, uint64_t bytes);

#endif
