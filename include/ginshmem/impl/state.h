/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library shares with inlined code: windows, contexts, device communicators. Filled by
 * lib/window.c and lib/devcomm.c, read by impl/ops.h and its kin. Not API, but part of the ABI: the
 * layouts change only with GIN_DEVCOMM_ABI.
 *
 * All of it lives in memory that a fork()ed child finds zeroed. Zeroed state refuses everything in
 * the inlined code (no id, size or handle is valid), which then asks the library, which says
 * GIN_ESTATE.
 */
#ifndef GINSHMEM_IMPL_STATE_H
#define GINSHMEM_IMPL_STATE_H

#include <ginshmem/devcomm.h>

/* How inlined code may reach a window at LSA peers. */
enum gin_i_window_mode {
    GIN_I_WINDOW_SLOW = 0,   /* by the library only: not mapped, read-only, no LSA wanted */
    GIN_I_WINDOW_STRIDE = 1, /* lsa_base + lsa_rank * lsa_stride */
    GIN_I_WINDOW_TABLE = 2   /* peers[lsa_rank], 0 where not mapped */
};

/* One window on one rank; a cache line. */
struct gin_i_window {
    uint64_t handle; /* gin_window_t.w of the live window, else 0 */
    uint64_t size;   /* bytes; the heap's grows */
    uint64_t local;  /* my address of offset 0 */
    uint64_t lsa_base;
    uint64_t lsa_stride;
    const uint64_t *peers;
    uint32_t mode;  /* enum gin_i_window_mode */
    uint32_t flags; /* enum gin_window_flags */
    uint64_t unused;
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_window) == 64, "a window is one cache line");

/* Two-level table: handle bits 0-7 index a page, bits 8-19 choose it. Unused pages are one page of
 * zeros, so that lookups need no test. */
#define GIN_I_WINDOW_PAGE  256u
#define GIN_I_WINDOW_PAGES 4096u
#define GIN_I_WINDOW_LOCAL (~(uint64_t)0) /* handle of gin_at_local() */

/* A slot signal's cells in the owner's control block: one word per kind of updater. */
struct gin_i_cells {
    uint64_t cpu; /* CPU peers, by atomic adds */
    uint64_t net; /* the owner's engine, for network peers */
    uint64_t unused[6];
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_cells) == 64, "updaters of two signals never share a line");

/* Owner's side of a signal or counter: value = cells - base. Private memory. */
struct gin_i_base {
    uint64_t base;
    uint64_t shadow;
};

/* A local counter. */
struct gin_i_counter {
    uint64_t cell;
    uint64_t base;
};

struct gin_i_dc;

/* A context on one rank. */
struct gin_i_ctx {
    struct gin_i_dc *dc;
    uint64_t signals_off;        /* of the cells, from the start of a rank's LSA slot */
    struct gin_i_cells *signals; /* mine */
    struct gin_i_base *bases;    /* one per signal */
    struct gin_i_counter *counters;
    uint32_t n_signals, n_counters;
    uint32_t index; /* GIN_ALL_CONTEXTS for the pseudo-context */
    int32_t error;  /* sticky status */
    uint64_t unused;
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_ctx) == 64, "a context is one cache line");

enum gin_i_dc_flags {
    GIN_I_DC_STRONG = 1, /* strong signals may be used */
    GIN_I_DC_VA = 2,     /* _at signals may be used */
    GIN_I_DC_CHECK = 4   /* GINSHMEM_CHECK=1: everything goes through the library */
};

/* A device communicator on one rank. */
struct gin_i_dc {
    uint32_t magic; /* GIN_DEVCOMM_MAGIC while live */
    uint32_t flags;
    uint32_t n_contexts;
    uint32_t spin; /* polls before a wait leaves the inlined code */
    struct gin_i_ctx *ctx;
    const struct gin_i_window *heap; /* the host heap's window */
    gin_at_t scratch;
    uint64_t scratch_bytes;
    gin_team_t world, node, lsa, rail;
    struct gin_i_ctx all; /* what GIN_ALL_CONTEXTS binds to */
    void *comm;           /* gin_comm_t */
    void *priv;           /* lib/devcomm.c's */
};

/* A context bound to a thread. Fields are the library's. */
typedef struct gin {
    struct gin_i_dc *dc;
    struct gin_i_ctx *ctx;
    const struct gin_i_window *const *windows;
    const int32_t *lsa_of; /* world rank -> LSA rank, -1 where not load/store accessible */
    uint64_t lsa_base;     /* start of LSA rank 0's slot: control block, then heap */
    uint64_t lsa_stride;
    int32_t rank, size; /* in the communicator */
} gin_t;

#endif
