/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bed for the network's core: several ranks in one process, over fault(self). Opening is done by
 * one thread per rank, as it is collective; after that the test's thread drives all ranks, so that
 * a seed repeats a run.
 */
#ifndef GINSHMEM_TESTS_CORE_BED_H
#define GINSHMEM_TESTS_CORE_BED_H

#include "tests/pt.h"
#include "transport/core.h"
#include "transport/fault/fault.h"
#include "transport/self/self.h"

#define BED_RANKS  5
#define BED_RAILS  3
#define BED_SLOTS  8u
#define BED_BYTES  (256u << 10)
#define BED_WINDOW 0x00300007u /* id 7, generation 3 */
#define BED_FIXED  0x00600002u /* the window, read-only for peers */
#define BED_CELLS  0x00500009u /* the cells, for NIC atomics */

/* A record to impose. */
struct bed_mask {
    const char *name;
    struct gi_net_caps caps;
    bool native;     /* cells may be used by the NIC */
    uint32_t epochs; /* of the context */
};
extern const struct bed_mask bed_masks[];
extern const size_t bed_n_masks;
const struct bed_mask *bed_mask(const char *name);

/* Copies of a rank whose memory is "a GPU's": done late, each when somebody looks whether it is. */
#define BED_COPIES 2048u
struct bed_mover {
    struct bed_copy {
        uint64_t to, from, bytes;
        bool made;
    } copy[BED_COPIES]; /* by ticket */
    uint64_t n, random;
    uint32_t stuck; /* 1: no copy ends */
    uint32_t fail;  /* 1: copies fail; 2: when they are looked at; of those ... */
    uint64_t from;  /* ... from this one on: the first is number 0 */
    bool taken;     /* the right to update words */
    char *slabs;
};

struct bed_rank {
    struct gi_net_domain *inner, *domain;                         /* of the first rail, ... */
    struct gi_net_domain *inners[BED_RAILS], *domains[BED_RAILS]; /* ... and of all */
    struct gi_core *core;
    struct gi_core_ctx *ctx;
    struct gi_core_region *region, *cells_region;
    unsigned char *memory;
    struct bed_mover mover;
    uint64_t cells[BED_SLOTS][8]; /* [slot][0]: engine's, [1]: NIC's */
    int lost, suspect;            /* ranks that the core reported, -1: none */
    int status;
};

struct bed {
    int n;
    uint64_t seed, random;
    const struct bed_mask *mask;
    const struct bed_mask *last_mask; /* of the last rank, where it is another one */
    struct gi_fault_plan plan;
    uint64_t peer_timeout_ns;
    unsigned mutate;
    bool stuck;          /* something never came to its end */
    int fault_rank;      /* with expect_failure: only this rank has the plan */
    bool expect_failure; /* of bed_open() */
    uint32_t rails;      /* 0: one */
    uint64_t stripe;     /* puts from so many bytes on are split over them, 0: none */
    struct gi_self_hub *hub[BED_RAILS];
    struct bed_rank rank[BED_RANKS];
    struct bed_gather *gather;
    const struct gi_net_ops *inner; /* beneath the wrapper, as self but for some calls; or NULL */
    const char *provider; /* over libfabric instead of fault(self), as it is; the mask is unused */
    const char *spoilt;   /* ... in the words of GINSHMEM_TEST_NET, or NULL */
    uint32_t no_memory;   /* of fault_rank: its allocation that fails while it opens, 0: none */
    bool suspect;         /* with hooks.peer_suspect */
    bool wake;            /* with hooks.wake */
    int wakes;            /* calls of it */
    unsigned staged; /* ranks whose memory is out of the CPU's and the network's reach, by bit */
    uint64_t *aside; /* of hooks.apply: a word that the CPU "cannot reach", or NULL */
};

/* Allocations of this thread until one fails, 0: none does. For a program that wraps malloc. */
extern _Thread_local uint32_t bed_allocations;

/* Fill what is not zero already, open; false: a failure was reported. */
bool bed_open(struct bed *b, const struct bed_mask *mask, int n);
void bed_close(struct bed *b);

static inline uint64_t bed_signal(const struct bed *b, int rank, uint32_t slot)
{
    const uint64_t *cell = b->rank[rank].cells[slot];
    return GIN_LOAD_ACQUIRE(&cell[0]) + GIN_LOAD_ACQUIRE(&cell[1]);
}

void bed_step(struct bed *b);  /* one random rank polls */
void bed_round(struct bed *b); /* every rank polls once */
bool bed_idle(struct bed *b);  /* poll until nothing is under way anywhere; false: never */
int bed_put(struct bed *b, int from, int to, const struct gi_core_put *p); /* again until taken */
int bed_get(struct bed *b, int from, int to, const struct gi_core_get *g);
int bed_amo(struct bed *b, int from, int to, const struct gi_core_amo *a);
int bed_fence(struct bed *b, int from, int to);
int bed_flush(struct bed *b, int from);         /* until flushed */
int bed_quiet(struct bed *b, int from, int to); /* until settled */

/* Put bytes of my memory at `src` to the peer's at `dst`. */
struct gi_core_put bed_make_put(struct bed *b, int from, uint64_t dst, uint64_t src,
                                uint64_t bytes);
/* Add one and fetch, of a word of 8 bytes. */
struct gi_core_amo bed_fetch_inc(uint64_t off, uint64_t *old);
struct gi_core_action bed_slot(uint32_t slot, uint64_t value, bool strong);

#endif
