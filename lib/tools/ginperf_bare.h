/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare provider between the two processes of a pair: libfabric's calls with nothing of the
 * library but the exchange of addresses. It keeps the rules of every provider that the library
 * does, by what fi_info says and not by names: a context for each operation, descriptors, memory
 * bound to an endpoint, completions that nobody asked for, peers that move nothing unless they
 * poll.
 */
#ifndef GI_TOOLS_GINPERF_BARE_H
#define GI_TOOLS_GINPERF_BARE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "ginperf.h"

#define BARE_WINDOW  64 /* operations under way that are to complete */
#define BARE_RECVS   16
#define BARE_MESSAGE 64u /* bytes; the library's, with 8 bytes and their signal, has 56 */

/* What a put of 8 bytes with a weak signal is made of, as the library sends it here. */
enum bare_shape {
    BARE_WRITE_IMM, /* a write with an immediate */
    BARE_WRITE_ADD, /* a write, and an atomic behind it */
    BARE_WRITE_MSG, /* a write, and a message once it is delivered */
    BARE_MSG        /* a message */
};

struct bare_recv {
    struct fi_context2 context; /* first: completions name it */
    char *bytes;
};

struct bare {
    bool tried, usable;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_eq *eq; /* of endpoints that connect: ginperf_conn.c */
    struct fid_pep *pep;
    struct fid_mr *mr;
    fi_addr_t peer;
    uint64_t key, base; /* the partner's memory */
    enum bare_shape shape;
    bool told;        /* ... and its writes ask for word of their delivery */
    bool connected;   /* endpoints of one peer each */
    bool ordered;     /* writes stay in their order */
    bool fence;       /* ... which they do not, and atomics are fenced */
    bool contexts;    /* every operation has a context of its own until it has completed */
    bool no_inject;   /* writes are not injected, whatever inject_size says */
    bool no_delivery; /* FI_DELIVERY_COMPLETE is refused: every completion says so, or none */
    bool fetches;     /* atomics fetch, or are refused */
    /* Parts of one registered range, at the same place on both ranks: numbers, which the partner
     * awaits; data, which nobody looks at; sources of these; and of each a cache line more. */
    size_t bytes; /* of each of the four */
    char *memory, *in, *out, *last, *room;
    uint64_t *word, *one, *old; /* what atomics add to, their addend, what they fetch */
    uint64_t seq;               /* last number sent or awaited */
    uint64_t arrived, awaited;  /* messages and immediates; those that a turn waits for */
    struct fi_context2 context[BARE_WINDOW], *spare[BARE_WINDOW]; /* the first `used` are not */
    unsigned used;
    struct fi_context2 quiet; /* of operations that do not complete */
    struct bare_recv recv[BARE_RECVS];
};
extern struct bare bare;

/* Opens it with the first call, after the partner; all ranks at once. */
void bare_up(struct perf *p);
/* All that was posted by either has arrived: poll until the partner says so, too, over the
 * library's network, which looks after itself. All ranks at once. */
void bare_leave(struct perf *p);
/* Say why, once, and use it no more. */
void bare_lost(const char *what, ssize_t rc);

/* ginperf_fabric.c: give the receives to the endpoint; one look at the queue, and a yield now and
 * then: a partner on the same core answers only if it gets it */
bool bare_post_receives(void);
void bare_poll(unsigned i);

/* ginperf_conn.c: the lead listens before the card is sent, its partner connects to that */
int bare_listen(void *name, size_t *room);
int bare_connect(const struct perf *p, const void *name, size_t len);
int bare_bind(struct fid_ep *ep);

#endif
