/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory and the windows that lead there: between core_region.c, core_window.c and the
 * rest of the core.
 */
#ifndef GI_TRANSPORT_CORE_MEMORY_H
#define GI_TRANSPORT_CORE_MEMORY_H

#include "transport/core.h"

struct gi_core_key {
    uint64_t key, base;
};

/* A peer's part of a region. */
struct gi_core_part {
    uint64_t bytes;
    uint16_t host;   /* the CPU there can reach it */
    uint16_t staged; /* the network cannot */
};

struct gi_core_region {
    struct gi_net_mr *mr[GI_CORE_RAILS];
    uint64_t addr, bytes;      /* mine */
    bool device, staged;       /* the CPU cannot reach my part; the network cannot */
    bool lands;                /* counted in the core's */
    struct gi_core_part *part; /* by rank; NULL: local only */
    struct gi_core_key *key;   /* by rank * rails + rail */
};

struct gi_core_window {
    uint32_t name, n;
    bool slow;                    /* some of it is out of the CPU's reach, somewhere */
    struct gi_core_window *older; /* of the same slot, kept until the window is dropped */
    struct gi_core_piece piece[];
};

#define GI_CORE_WINDOW_PAGE  256u
#define GI_CORE_WINDOW_PAGES 4096u

/* Where bytes of a window are at a peer. */
struct gi_core_place {
    uint64_t key, remote;
    uint64_t run; /* bytes that follow at the same key */
    bool host, staged;
    struct gi_net_mr *mr; /* of my part of the region */
};
/* GIN_ESTATE, GIN_ERANGE: no such window, or bytes outside of it; quiet. */
int gi_core_locate(const struct gi_core *core, uint32_t rail, int peer, uint32_t name, uint64_t off,
                   uint64_t bytes, struct gi_core_place *place);
/* Some of the window is out of the CPU's reach, at whatever rank; or there is no such window. */
bool gi_core_window_is_slow(const struct gi_core *core, uint32_t name);
/* Some of the bytes, which are in the window, are staged there. */
bool gi_core_any_staged(const struct gi_core *core, int peer, uint32_t name, uint64_t off,
                        uint64_t bytes);

#endif
