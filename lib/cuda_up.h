/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's GPUs and their heap. Comes up, on all ranks, with the first collective call that
 * asks for GPU memory or kernels; a rank without GPU takes part, and its heap is accounting alone:
 * the same offsets, at addresses where there is nothing.
 */
#ifndef GI_CUDA_UP_H
#define GI_CUDA_UP_H

#include "comm.h"
#include "cuda/gpu.h"
#include "transport/cuda/map.h"

#define GI_CONTROL_CUDA                                                      \
    GI_CONTROL /* bytes before the GPU heap in every slot: the proof's token \
                */

struct gi_cuda {
    gin_comm_t *comm;
    struct gi_gpu *gpu;   /* NULL: this rank has none */
    int n_gpus;           /* ranks that have one */
    bool fabric;          /* heaps are shown by fabric handles */
    char fabric_why[120]; /* why not, where that was asked for, or "" */
    int *devices;         /* by world rank: as its process numbers it; -1: none */
    struct gi_cuda_map *map;
    struct gi_segment segment;
    struct gi_heap *heap;
    struct gi_mirror *mirror; /* mirror.c: up with the first device communicator for kernels */
    struct gi_engine *engine; /* engine.c: the thread that serves kernels */
    atomic_int words;         /* somebody applies an update to a word of GPU memory */
    uint64_t internal;        /* bytes of it that device communicators hold */
};

/*
 * Collective. GIN_OK when the GPU heap is up, or comes up here. GIN_ENOTSUP, with the first rank's
 * reason, where no rank has a GPU. Failures are those of all ranks.
 */
int gi_cuda_up(gin_comm_t *comm);
void gi_cuda_down(gin_comm_t *comm);

/* My address of offset 0 of the GPU heap. */
static inline uint64_t gi_cuda_heap_base(const struct gi_cuda *c)
{
    return gi_cuda_slot(c->map, c->comm->shm->lsa_rank) + GI_CONTROL_CUDA;
}

/* Every rank has a GPU, and all GPUs reach each other's memory: their atomics may apply updates. */
static inline bool gi_cuda_atomics(const gin_comm_t *comm)
{
    const struct gi_cuda *c = comm->cuda;
    return c->map->complete && c->n_gpus == comm->size && comm->shm->lsa_size == comm->size;
}

/* Who applies updates of the words of a window in GPU memory: their owner's engine alone, or all
 * GPUs by their atomics. The same on all ranks. */
bool gi_words_by_engine(const gin_comm_t *comm, const struct gin_i_window *w); /* window_cuda.c */

/* The right to apply such updates, of which this rank has one: the engine takes it, and whoever
 * serves the network. It is held for as long as two copies take. */
static inline bool gi_words_try(struct gi_cuda *c)
{
    int nobody = 0;
    return atomic_compare_exchange_strong_explicit(&c->words, &nobody, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void gi_words_give(struct gi_cuda *c)
{
    atomic_store_explicit(&c->words, 0, memory_order_release);
}

/* Is it an address of my part of the GPU heap, there already or not? */
static inline bool gi_cuda_owns(const gin_comm_t *comm, uint64_t addr)
{
    const struct gi_cuda *c = __atomic_load_n(&comm->cuda, __ATOMIC_ACQUIRE);
    return c != NULL && addr - gi_cuda_heap_base(c) < c->map->stride - GI_CONTROL_CUDA;
}

/* Does it touch anybody's slot? */
static inline bool gi_cuda_touches(const gin_comm_t *comm, uint64_t addr, uint64_t bytes)
{
    const struct gi_cuda *c = __atomic_load_n(&comm->cuda, __ATOMIC_ACQUIRE);
    uint64_t all = c != NULL ? (uint64_t)comm->shm->lsa_size * c->map->stride : 0;
    return c != NULL && bytes != 0 && addr < c->map->base + all &&
           addr + (bytes - 1) >= c->map->base;
}

#endif
