/* SPDX-License-Identifier: BSD-3-Clause */
/* Between fault.c, which passes on what is no post, and fault_lane.c, which holds posts back. */
#ifndef GI_TRANSPORT_FAULT_INT_H
#define GI_TRANSPORT_FAULT_INT_H

#include <pthread.h>
#include "transport/fault/fault.h"

struct fault_domain {
    struct gi_net_domain head;
    struct gi_net_domain *inner;
    bool owner;           /* of inner */
    pthread_mutex_t lock; /* around what follows */
    struct gi_fault_plan plan;
    struct gi_net_caps caps;
    uint64_t random;
    uint32_t calls[GI_FAULT_CALLS];
    int size;
    uint8_t *peer; /* enum gi_fault_peer, by rank */
};

extern const struct gi_net_ops gi_fault_ops;

/* Count a call; its status as planned, GIN_OK: as it comes. */
int gi_fault_call(struct fault_domain *d, enum gi_fault_call call);
/* It was not taken and will be tried again: only then it is the n-th. */
void gi_fault_uncount(struct fault_domain *d, enum gi_fault_call call);
uint64_t gi_fault_below(struct fault_domain *d, uint64_t below);            /* a random number */
void gi_fault_plan_now(struct fault_domain *d, struct gi_fault_plan *plan); /* a copy */

/* fault_lane.c */
int gi_fault_lane_open(struct gi_net_domain *d, const struct gi_net_lane_config *config,
                       struct gi_net_lane **lane);
void gi_fault_lane_close(struct gi_net_lane *l);
int gi_fault_name(struct gi_net_lane *l, void *blob, uint32_t *len);
int gi_fault_connect(struct gi_net_lane *l, int peer, const void *blob, uint32_t len);
int gi_fault_write(struct gi_net_lane *l, const struct gi_net_io *io);
int gi_fault_read(struct gi_net_lane *l, const struct gi_net_io *io);
int gi_fault_amo_add(struct gi_net_lane *l, const struct gi_net_io *io);
int gi_fault_msg(struct gi_net_lane *l, int peer, const void *bytes, uint32_t len);
int gi_fault_progress(struct gi_net_lane *l, unsigned budget);
int gi_fault_progress_fd(struct gi_net_lane *l, int *fd);
void gi_fault_cancel_peer(struct gi_net_lane *l, int peer);
void gi_fault_part(struct gi_net_lane *l);

#endif
