/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wrapper around any other net ops that is as bad as a network may be: it takes capabilities
 * away, reorders what the record that is left does not order, delivers after it said "complete",
 * answers GIN_EAGAIN, and fails on purpose. Test only; what it does follows from its seed.
 */
#ifndef GI_TRANSPORT_FAULT_H
#define GI_TRANSPORT_FAULT_H

#include "transport/net.h"

enum gi_fault_call {
    GI_FAULT_WRITE,
    GI_FAULT_READ,
    GI_FAULT_AMO,
    GI_FAULT_MSG,
    GI_FAULT_PROGRESS,
    GI_FAULT_REG,
    GI_FAULT_LANE_OPEN,
    GI_FAULT_CONNECT,
    GI_FAULT_KEY, /* a write that goes out with a wrong key; no status */
    GI_FAULT_CALLS
};

/* gi_net_config.more of gi_fault_ops.open. All zero but `inner`: changes nothing. */
struct gi_fault_plan {
    struct gi_net_domain *inner; /* the caller's, closed by it afterwards */
    uint64_t seed;
    /* the record, as it is to be; NULL: the inner one's. Only what it lacks against the inner
     * one's is honest, so start from a copy of that. */
    const struct gi_net_caps *caps;
    uint32_t hold;  /* posts per lane that may be held back; 0: none */
    bool early;     /* say "complete" before the bytes left, where the record allows it */
    uint32_t delay; /* microseconds that a post takes to its target, and word of it back; 0: none */
    uint32_t again; /* of 1000 posts so many are GIN_EAGAIN */
    /* From the first[call]-th call on (counted from 1; 0: never), count[call] calls fail with
     * status[call]: at once for GIN_EAGAIN and what is no post, else by failed(). */
    uint32_t first[GI_FAULT_CALLS], count[GI_FAULT_CALLS];
    int status[GI_FAULT_CALLS];
    int provider_error; /* told with it; may be negative, which a careful reader survives */
    uint32_t silent;    /* of 1000 writes so many are lost and yet completed */
};

extern const struct gi_net_ops gi_fault_ops;

/* Wrap *domain in what a text says (see fault_wrap.c). It then belongs to the wrapper, which closes
 * it; where that fails, it stays the caller's. */
int gi_fault_wrap(const char *text, int rank, int size, struct gi_net_domain **domain);

/* Such a text asks for a class that has atomics: the inner domain needs any_atomics. */
bool gi_fault_needs_atomics(const char *text);

/* Change the plan of a domain while it is in use; inner stays. Any thread. */
void gi_fault_set(struct gi_net_domain *d, const struct gi_fault_plan *plan);
/* Posts to a peer: GIN_EAGAIN for ever, or swallowed in silence; or as before. Any thread. */
enum gi_fault_peer { GI_FAULT_PEER_WELL, GI_FAULT_PEER_AGAIN, GI_FAULT_PEER_SILENT };
void gi_fault_peer(struct gi_net_domain *d, int peer, enum gi_fault_peer how);

#endif
