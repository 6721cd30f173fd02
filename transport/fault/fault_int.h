/* SPDX-License-Identifier: BSD-3-Clause */
/* Between fault.c, which passes on what is no post, fault_lane.c, which holds posts back, and
 * fault_pass.c, which passes on those that nothing is asked of. */
#ifndef GI_TRANSPORT_FAULT_INT_H
#define GI_TRANSPORT_FAULT_INT_H

#include <pthread.h>
#include "transport/fault/fault.h"

struct fault_domain {
    struct gi_net_domain head;
    struct gi_net_domain *inner;
    const struct gi_net_caps *own; /* the inner one's */
    bool owner;                    /* of inner */
    bool plain;                    /* posts may pass; atomic */
    pthread_mutex_t lock;          /* around what follows */
    struct gi_fault_plan plan;
    struct gi_net_caps caps;
    uint64_t random;
    uint32_t calls[GI_FAULT_CALLS];
    int size;
    uint8_t *peer; /* enum gi_fault_peer, by rank */
};

enum gi_fault_kind { K_WRITE, K_READ, K_AMO, K_MSG };

/* What failed to a peer: what is ordered behind it fails as well. */
struct broken {
    unsigned kinds; /* bits of enum gi_fault_kind */
    int status, error;
};

struct fault_lane {
    struct gi_net_lane head;
    struct fault_domain *d;
    struct gi_net_lane *inner;
    const struct gi_net_ops *ops;
    struct gi_net_handler handler;
    struct held *held, *flying; /* held: in order */
    struct news *news, **news_end;
    uint32_t n_held, in_use;
    uint32_t passed;       /* requests of the caller's that the inner network has */
    struct broken *broken; /* by peer */
    int more;              /* peer to which the last post was to be followed by another, or -1 */
};

extern const struct gi_net_ops gi_fault_ops;

/* Count a call; its status as planned, GIN_OK: as it comes. */
int gi_fault_call(struct fault_domain *d, enum gi_fault_call call);
/* It was not taken and will be tried again: only then it is the n-th. */
void gi_fault_uncount(struct fault_domain *d, enum gi_fault_call call);
uint64_t gi_fault_below(struct fault_domain *d, uint64_t below);            /* a random number */
void gi_fault_plan_now(struct fault_domain *d, struct gi_fault_plan *plan); /* a copy */

/* fault_pass.c */
void gi_fault_see_plain(struct fault_domain *d); /* of a new plan */
/* What is wrong with a post, or NULL. */
const char *gi_fault_mistake(struct fault_lane *l, enum gi_fault_kind kind,
                             const struct gi_net_io *io, uint32_t len);
bool gi_fault_passes(const struct fault_lane *l, enum gi_fault_kind kind,
                     const struct gi_net_io *io);
int gi_fault_pass(struct fault_lane *l, enum gi_fault_kind kind, const struct gi_net_io *io);
int gi_fault_pass_msg(struct fault_lane *l, int peer, const void *bytes, uint32_t len);

static inline bool gi_fault_is_plain(const struct fault_domain *d)
{
    return __atomic_load_n(&d->plain, __ATOMIC_ACQUIRE);
}

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
