/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two or more ranks with one domain, one lane and one registered block each, over the bare net
 * ops. Waits drive progress; what arrives is written down.
 */
#ifndef GINSHMEM_TESTS_PROVIDERS_BED_H
#define GINSHMEM_TESTS_PROVIDERS_BED_H

#include <ginshmem.h>
#include <string.h>
#include "base/clock.h"
#include "base/os.h"
#include "tests/mp.h"
#include "transport/net.h"

#define BED_BYTES (4u << 20)
#define BED_RANKS 8
#define BED_NS    (40ull * 1000000000u) /* a wait that lasts longer has failed */

struct bed_request {
    struct gi_net_request net; /* first */
    unsigned done, failed;
    int status;
};

struct bed {
    struct mp *mp;
    const struct gi_net_ops *ops;
    struct gi_net_domain *domain;
    const struct gi_net_caps *caps;
    struct gi_net_lane *lane;
    struct gi_net_mr *mr, *local_mr;
    unsigned char *memory, *local; /* written by peers; my sources and destinations */
    struct bed_card {
        uint64_t key, base;
        uint32_t name_len;
        unsigned char name[GI_NET_NAME_MAX];
    } cards[BED_RANKS];
    unsigned syncs;
    /* what arrived */
    unsigned imms, msgs, failures; /* failures without a request */
    int last_status, last_peer;
    void (*on_imm)(struct bed *b, int peer, uint64_t imm);
    void (*on_msg)(struct bed *b, int peer, const void *bytes, uint32_t len);
    void *arg;
};

/* False where this provider is not here (the run is skipped) or does not open (it failed). */
bool bed_open(struct bed *b, struct mp *mp, const struct gi_net_ops *ops, const char *provider);
void bed_close(struct bed *b);
bool bed_reopen_lane(struct bed *b); /* all ranks */

void bed_progress(struct bed *b);
/* All ranks; drives progress. False when it takes too long. */
bool bed_sync(struct bed *b);

/* Posts, driving progress on GIN_EAGAIN; the status. *again counts, may be NULL. */
int bed_post(struct bed *b, int (*fn)(struct gi_net_lane *, const struct gi_net_io *),
             const struct gi_net_io *io, uint64_t *again);
/* All ranks: inline writes, of which nothing is to be heard, to a peer that makes no progress. */
void bed_crowd(struct bed *b, int peer);
int bed_msg(struct bed *b, int peer, const void *bytes, uint32_t len);
struct gi_net_io bed_io(struct bed *b, int peer, uint64_t local_off, uint64_t remote_off,
                        uint64_t len, struct bed_request *req);

/* Until the condition holds: true. */
#define BED_UNTIL(b, cond)                      \
    ({                                          \
        uint64_t end_ = gi_deadline_in(BED_NS); \
        while (!(cond) && gi_now_ns() < end_)   \
            bed_progress(b);                    \
        EXPECT(cond);                           \
    })

#endif
