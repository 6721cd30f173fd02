/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms of windows share: the state of a communicator's windows, registrations.
 */
#ifndef GI_WINDOW_IMPL_H
#define GI_WINDOW_IMPL_H

#include "comm.h"
#include "window_index.h"
#include "window_table.h"

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
    int windows;                        /* that share it */
    struct gi_registration *next, **at; /* list; at: who points here */
};

/* Ranges announced by gin_local_register(). */
struct gi_local_range {
    uint64_t start, bytes, count;
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

/* Bytes of a window. Of GPU memory the table that host threads' inlined code reads shows none. */
static inline uint64_t gi_window_bytes(const gin_comm_t *comm, const struct gin_i_window *w,
                                       uint32_t id)
{
    return w->kind == GIN_KIND_CUDA
               ? GIN_LOAD_RELAXED(&gi_window_private(&comm->windows->table, id)->gpu_bytes)
               : GIN_LOAD_RELAXED(&w->size);
}

/* GIN_EINVAL or GIN_ERANGE with a text naming `call` unless [ptr, ptr + bytes) may be memory. */
int gi_window_check_range(const char *call, const void *ptr, uint64_t bytes);

#endif
