/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of a lane: what ofi_conn.c, which makes them, and ofi_event.c, which hears of them,
 * share. */
#ifndef GI_OFI_CONN_H
#define GI_OFI_CONN_H

#include "transport/ofi/ofi_int.h"

#define GI_OFI_HELLO 0x6e6e6f63u /* of a request to connect: "conn" */

enum gi_ofi_state { GI_OFI_NONE, GI_OFI_BEGUN, GI_OFI_UP, GI_OFI_ENDED };

/* What a lane says when it connects: whom it means, who it is, and whether it has receives there.
 */
struct gi_ofi_hello {
    uint64_t token;
    uint32_t magic, rank;
    uint32_t both, unused;
};

/* ... and what it hears from who does not take it. Not all providers carry it; what ends a request
 * without it may pass. */
struct gi_ofi_refusal {
    uint32_t magic;
    uint32_t for_good;
};

/* One that this rank makes, or that a peer made. */
struct gi_ofi_conn {
    struct fid_ep *ep;
    enum gi_ofi_state state; /* BEGUN: asked for, or accepted, and not heard of since */
    int peer;
    bool mine;        /* this rank is its maker */
    bool both;        /* its maker has receives on it, and the other side can post by it */
    bool posts;       /* this rank posts by it, or did: never by another one */
    bool spent;       /* receives were posted on an earlier one, and may still come back */
    unsigned refused; /* so often, for a moment */
    uint64_t again;   /* not to be begun before */
};

struct gi_ofi_listener {
    struct fid_pep *pep;
    struct fid_eq *eq;
    uint64_t token;
    struct gi_ofi_conn *out, *in; /* by rank */
    struct gi_ofi_asked {
        struct fi_info *info; /* NULL: none */
        struct gi_ofi_hello hello;
    } * asked; /* requests that wait for what becomes of ours, by rank */
    unsigned n_asked;
    unsigned begun; /* connections that do not stand yet, of both kinds */
    unsigned calls;
    uint64_t look; /* at events: not before */
    struct gi_ofi_place {
        uint64_t token;
        uint32_t len;
        unsigned char address[GI_OFI_PLACE_MAX];
    } * places; /* where the peers listen */
};

static inline bool gi_ofi_conn_lives(const struct gi_ofi_conn *k)
{
    return k->state == GI_OFI_BEGUN || k->state == GI_OFI_UP;
}

static inline void gi_ofi_conn_enter(struct gi_ofi_listener *c, struct gi_ofi_conn *k,
                                     enum gi_ofi_state state)
{
    c->begun += state == GI_OFI_BEGUN;
    c->begun -= k->state == GI_OFI_BEGUN;
    k->state = state;
}

/* ofi_conn.c */
/* Bound to the lane's queues and enabled; closed again where it fails, what was asked for with it.
 */
int gi_ofi_open_conn(struct gi_ofi_lane *l, struct fi_info *info, struct gi_ofi_conn *k);
void gi_ofi_end_conn(struct gi_ofi_conn *k);
/* May this rank post by what a peer, that says it has receives there, is making now? */
bool gi_ofi_goes_back(const struct gi_ofi_lane *l, int peer);
/* It stands; it ended; one of ours was not taken: for good, or to be begun again. */
void gi_ofi_conn_stands(struct gi_ofi_lane *l, struct gi_ofi_conn *k);
void gi_ofi_conn_ended(struct gi_ofi_lane *l, struct gi_ofi_conn *k, const char *why);
void gi_ofi_conn_refused(struct gi_ofi_lane *l, struct gi_ofi_conn *k, int error, bool for_good);

/* ofi_event.c */
void gi_ofi_refuse_all(struct gi_ofi_lane *l); /* requests that nobody has read */

#endif
