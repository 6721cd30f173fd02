/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on a collective call. Each rank does its part tentatively, shows a record of it to all
 * others in one exchange and gets the same verdict as they: go on, or undo.
 *
 * The records travel through whatever the caller's exchange is made of; this room only compares.
 */
#ifndef GI_HEAP_AGREE_H
#define GI_HEAP_AGREE_H

#include <stdint.h>

/*
 * Calls that are agreed on: X(id, name in messages, names of size, align, offset and extra there).
 */
#define GI_AGREE_OPS(X)                                                                    \
    X(MALLOC, "gin_malloc", "size", "alignment", "offset", "flags")                        \
    X(MALLOC_END, "gin_malloc", "size", "alignment", "offset", "flags")                    \
    X(FREE, "gin_free", "size", "alignment", "offset", "flags")                            \
    X(REALLOC, "gin_realloc", "size", "alignment", "new offset", "offset")                 \
    X(REALLOC_END, "gin_realloc", "size", "alignment", "new offset", "offset")             \
    X(HEAP, "bring-up of the heap", "size", "limit", "chunk", "granule")                   \
    X(WATCH, "bring-up of the watch", "size", "limit", "offset", "flags")                  \
    X(NETWORK, "bring-up of the network", "size", "limit", "offset", "flags")              \
    X(REGION, "registration with the network", "size", "limit", "offset", "flags")         \
    X(CUDA, "bring-up of the GPU heap", "size", "limit", "chunk", "granule")               \
    X(WINDOW, "gin_window_register", "flags", "heap offset", "id", "bytes")                \
    X(WINDOW_FREE, "gin_window_deregister", "window", "second value", "id", "flags")       \
    X(TEAM, "gin_team_create", "first value", "second value", "id", "flags")               \
    X(TEAM_SPLIT, "gin_team_split", "first value", "second value", "third value", "flags") \
    X(TEAM_FREE, "gin_team_free", "team", "second value", "id", "flags")                   \
    X(DEVCOMM, "gin_devcomm_create", "place", "size", "third value", "flags")              \
    X(DEVCOMM_FREE, "gin_devcomm_destroy", "place", "size", "third value", "flags")        \
    X(BARRIER, "gin_comm_barrier", "first value", "second value", "third value", "flags")  \
    X(ALLGATHER, "gin_comm_allgather", "size", "second value", "third value", "flags")     \
    X(FINALIZE, "gin_finalize", "first value", "second value", "third value", "flags")

enum gi_agree_op {
    GI_AGREE_NONE,
#define GI_AGREE_ID(id, ...) GI_AGREE_##id,
    GI_AGREE_OPS(GI_AGREE_ID)
#undef GI_AGREE_ID
        GI_AGREE_N_OPS
};

/* One rank's side of one call; a cache line, so that showing it is one transfer. */
struct gi_agree_record {
    uint64_t seq; /* number of the collective call on this rank */
    uint32_t op;  /* enum gi_agree_op */
    uint32_t kind;
    /* arguments: compared before anything else */
    uint64_t size, align, extra;
    /* outcome: compared when no rank failed */
    uint64_t offset, fingerprint;
    int32_t status;
    uint32_t zero;
};

_Static_assert(sizeof(struct gi_agree_record) == 64, "one line per rank");

/*
 * Collective: show my record and get all ranks' in rank order, valid until the next exchange. Not
 * GIN_OK (recorded with gi_fail) when not all ranks' records could be had.
 */
typedef int (*gi_agree_exchange_fn)(void *arg, const struct gi_agree_record *mine,
                                    const struct gi_agree_record **all);

/*
 * Exchange and judge. All ranks return the same: GIN_EMISMATCH with both values in the text when
 * number, call or arguments differ; else the status of the first rank that failed, named in the
 * text; else GIN_EMISMATCH when outcomes differ; else GIN_OK. The text of this rank's own failure
 * is kept. A failing exchange returns its status.
 */
int gi_agree(const struct gi_agree_record *mine, int size, gi_agree_exchange_fn exchange,
             void *arg);

/* The judging half, for those who have the records already. */
int gi_agree_judge(const struct gi_agree_record *mine, int size, const struct gi_agree_record *all);

#endif
