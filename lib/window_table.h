/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two-level table of windows that inlined code reads (impl/state.h), and which id is whose.
 *
 * Pages never move and are not freed while the communicator lives. A fork()ed child finds the
 * pages zeroed, which refuses every handle; level 1 stays, so that its look-ups need no test.
 *
 * Ids are handed out in the same order on every rank. Taking an id can fail only when no freed one
 * is left; giving it back then leaves it where the next take would have found it on a rank where
 * taking failed. So one rank's failure, undone everywhere, keeps the tables equal.
 */
#ifndef GI_WINDOW_TABLE_H
#define GI_WINDOW_TABLE_H

#include <stdbool.h>
#include <ginshmem/impl/state.h>

#define GI_WINDOW_ID_BITS 20
#define GI_WINDOW_IDS     (1u << GI_WINDOW_ID_BITS)
#define GI_WINDOW_NO_ID   GI_WINDOW_IDS

struct gi_registration;

/* What only the library knows of a window. */
struct gi_window {
    struct gi_registration *reg;
    uint64_t off;       /* of the window in the registration's memory */
    uint64_t *peers;    /* owned; what struct gin_i_window.peers shows */
    uint64_t gpu_bytes; /* size, where my part is GPU memory */
    bool pinned;        /* my part is host memory that GPUs reach at the same address */
    bool direct;        /* kernels reach all LSA peers' parts at `peers` */
    uint32_t row;       /* mirror.c: of `peers` in GPU memory, 0: none */
    uint32_t next;      /* free list */
};

struct gi_window_table {
    struct gin_i_window **level1;
    struct gi_window *pages[GIN_I_WINDOW_PAGES];
    uint32_t n_pages;    /* pages 0 .. n_pages-1 exist */
    uint32_t made;       /* ids 0 .. made-1 were taken at least once */
    uint32_t free;       /* last given, GI_WINDOW_NO_ID: none */
    uint32_t live;       /* ids taken */
    uint32_t generation; /* of the last handle; 1 .. 2^31-1 */
};

/* seed is the same on all ranks and another one for other communicators: their handles differ. */
int gi_window_table_open(struct gi_window_table *t, uint64_t seed);
/* Returns level 1, emptied, for free(): a stale gin_t may still look into it. */
void *gi_window_table_close(struct gi_window_table *t);

int gi_window_table_take(struct gi_window_table *t, uint32_t *id);
void gi_window_table_give(struct gi_window_table *t, uint32_t id);

/* Level 1 whose pages are all zeros. Process-wide. */
const struct gin_i_window *const *gi_window_table_empty(void);

static inline uint32_t gi_window_id(uint64_t handle)
{
    return (uint32_t)handle & (GI_WINDOW_IDS - 1);
}

static inline struct gin_i_window *gi_window_at(const struct gi_window_table *t, uint32_t id)
{
    return &t->level1[id / GIN_I_WINDOW_PAGE][id % GIN_I_WINDOW_PAGE];
}

static inline struct gi_window *gi_window_private(const struct gi_window_table *t, uint32_t id)
{
    return &t->pages[id / GIN_I_WINDOW_PAGE][id % GIN_I_WINDOW_PAGE];
}

/*
 * Make a taken id live: `w` says everything but the handle, which is made here, stored last and
 * returned.
 */
uint64_t gi_window_table_publish(struct gi_window_table *t, uint32_t id,
                                 const struct gin_i_window *w);
/* The handle dies first, then the rest; the id stays taken. */
void gi_window_table_retract(struct gi_window_table *t, uint32_t id);

/* The live window of a name, which is its id and the low 12 bits of its generation, as descriptors
 * and the network's messages have it; or NULL. Any thread. */
static inline const struct gin_i_window *gi_window_table_named(const struct gi_window_table *t,
                                                               uint32_t name)
{
    const struct gin_i_window *w = gi_window_at(t, name & (GI_WINDOW_IDS - 1));
    uint64_t handle = GIN_LOAD_ACQUIRE(&w->handle);
    bool live = handle != 0 && ((uint32_t)(handle >> 32) & 0xfff) == name >> GI_WINDOW_ID_BITS;
    return live ? w : NULL;
}

/* The live window of a handle, or NULL. Any thread. */
const struct gin_i_window *gi_window_table_find(const struct gi_window_table *t, uint64_t handle);

#endif
