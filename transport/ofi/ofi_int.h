/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this folder share. A domain is one fabric and one domain of libfabric; a lane
 * is one reliable datagram endpoint with one completion queue and one address vector of its own,
 * so that nothing of libfabric is used by two threads at a time but the domain. Of a domain with
 * MSG endpoints a lane is a listener and one or two connections for each peer.
 */
#ifndef GI_OFI_INT_H
#define GI_OFI_INT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "transport/ofi/ofi.h"
#include "transport/ofi/ofi_find.h"

#define GI_OFI_RECV_SLOTS 512u  /* messages that may arrive between two progress calls, at least */
#define GI_OFI_RECV_LEAST 16u   /* ... whatever a provider says of itself */
#define GI_OFI_RECVS_EACH 4u    /* fewest per peer: a message, its answer, two without credit */
#define GI_OFI_SEND_SLOTS 128u  /* messages under way that are too long to be injected */
#define GI_OFI_IMM_ROOM   1024u /* immediates that may arrive between two progress calls */
#define GI_OFI_BATCH      32u   /* entries that are taken from the queue at a time */
#define GI_OFI_CONN_RECVS 32u   /* receives posted on each connection */
#define GI_OFI_PLACE_MAX  64u   /* bytes of a listener's address */

_Static_assert(sizeof(struct fi_context2) <= 8 * sizeof(uint64_t),
               "opaque[8] of a request and the rest are free");

/* How an atomic add is asked for, as the self-test found it. */
enum gi_ofi_add {
    GI_OFI_ADD,         /* as it is meant */
    GI_OFI_ADD_FETCH,   /* with the old value fetched, and thrown away */
    GI_OFI_ADD_BY_ADDR, /* ... and the addend where a connected endpoint needs no address, too */
    GI_OFI_ADDS
};

/* ofi_target.c: what memory is bound to, and where peers find it. */
struct gi_ofi_target {
    struct fid_ep *ep; /* NULL: memory is the domain's */
    struct fid_cq *cq;
    struct fid_av *av;
    unsigned char name[96];
    uint32_t name_len;
};

struct gi_ofi_domain {
    struct gi_net_domain head;
    struct gi_ofi_pick pick;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct gi_ofi_target target;
    int rank, size;
    bool client_keys, virt_addr;
    bool dmabuf;    /* FI_MR_DMABUF is used whatever libfabric's version */
    bool contexts;  /* every post needs a context of its own until it has completed */
    bool connected; /* MSG endpoints */
    enum gi_ofi_add add;
    bool imm_source;   /* immediates tell whose they are */
    bool inline_heard; /* inline writes ask for a completion, though nobody waits for it */
    uint32_t receives; /* posted per lane, for all its peers */
    uint64_t inject;   /* most bytes of a message that needs no slot, as tested */
    uint64_t key_mask; /* of keys that the client chooses */
    struct gi_net_caps caps;
    char name[48], version[48];
    char notes[1600];
};

struct gi_ofi_mr {
    struct gi_net_mr head;
    struct fid_mr *mr; /* NULL: nothing had to be registered */
    void *desc;
};

/* A receive posted, or a message under way. Its context comes first: completions name it. */
struct gi_ofi_slot {
    struct fi_context2 context;
    unsigned char *bytes;
    struct gi_ofi_slot *next; /* sends: in the free list; receives: not posted yet */
    int peer;                 /* of a send; of a receive on a connection */
    bool mine;                /* ... which this rank makes */
};

struct gi_ofi_peer {
    /* Context of posts without a request, so that their failures name the peer. */
    struct fi_context2 context;
    fi_addr_t addr;
    fi_addr_t target;  /* of reads, writes and atomics: the same, or what its memory is bound to */
    struct fid_ep *ep; /* to post by; NULL: gi_ofi_refuse() says why not */
    bool dead;
};

struct gi_ofi_listener;

struct gi_ofi_lane {
    struct gi_net_lane head;
    struct gi_ofi_domain *domain;
    struct fid_cq *cq;
    struct fid_ep *ep; /* NULL, and no vector, where there are connections */
    struct fid_av *av;
    struct gi_ofi_listener *listener; /* NULL: one endpoint for all */
    struct gi_net_handler handler;
    struct gi_ofi_peer *peers; /* by rank */
    int *peer_of;              /* rank of an entry of the address vector */
    uint64_t addresses;        /* ... so many at the most */
    uint32_t traffic;          /* class + 1, 0: the provider's */
    bool source;               /* arrivals tell theirs */
    int fd;                    /* of the queue, -1: none */
    struct gi_ofi_slot *recv, *recv_end, *unposted;
    struct gi_ofi_slot *send, *send_end, *free_sends;
    unsigned char *slab; /* bytes of all slots */
    struct gi_net_mr *slab_mr;
    uint64_t old; /* what adds fetch, which nobody reads */
    struct gi_net_mr *old_mr;
    unsigned strange; /* errors that belong to nothing */
};

static inline struct gi_ofi_domain *gi_ofi_domain(struct gi_net_domain *d)
{
    return (struct gi_ofi_domain *)d;
}

static inline struct gi_ofi_lane *gi_ofi_lane(struct gi_net_lane *l)
{
    return (struct gi_ofi_lane *)l;
}

static inline void *gi_ofi_desc(struct gi_net_mr *mr)
{
    return mr != NULL ? ((struct gi_ofi_mr *)mr)->desc : NULL;
}

/* ofi_caps.c: the record out of what the provider promised; ofi_quirk.c: corrections of it. */
void gi_ofi_fill_caps(struct gi_ofi_domain *d);
bool gi_ofi_is_loopback(const struct fi_info *i);
void gi_ofi_apply_quirks(struct gi_ofi_domain *d);
/* Add a line to the record's notes. */
void gi_ofi_note(struct gi_ofi_domain *d, const char *fmt, ...) GIN_PRINTF(2, 3);

/* ofi_msg.c: how many receives a lane posts, and so how many messages each peer may send. */
int gi_ofi_share_receives(struct gi_ofi_domain *d);

/* ofi_selftest.c: lowers what does not work; an error where writes or messages do not. */
int gi_ofi_self_test(struct gi_ofi_domain *d);

/* ofi_target.c: all do nothing where memory is the domain's */
int gi_ofi_target_open(struct gi_ofi_domain *d);
void gi_ofi_target_close(struct gi_ofi_domain *d);
/* Bind and enable: its key is valid then. 0 or a negative error of libfabric. */
int gi_ofi_target_bind(struct gi_ofi_domain *d, struct fid_mr *mr);

/* ofi_mr.c */
int gi_ofi_reg(struct gi_net_domain *d, const struct gi_net_memory_desc *m, struct gi_net_mr **mr);
void gi_ofi_dereg(struct gi_net_domain *d, struct gi_net_mr *mr);

/* ofi_gpu.c */
/* Headers and library know FI_MR_DMABUF. */
bool gi_ofi_has_dmabuf(void);
/* Of an endpoint that is not enabled yet, where device memory may be registered: no calls of the
 * GPU's driver by the provider. False: it does not promise that. */
bool gi_ofi_forbid_calls(const struct gi_ofi_domain *d, struct fid_ep *ep);
/* Tells the record whether it would, by an endpoint that is thrown away. */
void gi_ofi_probe_calls(struct gi_ofi_domain *d);

/* ofi_lane.c */
/* What failed while objects are opened; returns the status. */
int gi_ofi_said(const struct gi_ofi_domain *d, const char *what, int rc);
/* Binds and enables an endpoint; source: the address vector, or the queue of connections' events.
 * libfabric's status. */
int gi_ofi_enable(const struct gi_ofi_domain *d, struct fid_ep *ep, struct fid *source,
                  struct fid_cq *cq);
int gi_ofi_lane_open(struct gi_net_domain *d, const struct gi_net_lane_config *c,
                     struct gi_net_lane **lane);
void gi_ofi_lane_close(struct gi_net_lane *l);
int gi_ofi_name(struct gi_net_lane *l, void *blob, uint32_t *len);
int gi_ofi_connect(struct gi_net_lane *l, int peer, const void *blob, uint32_t len);
void gi_ofi_cancel_peer(struct gi_net_lane *l, int peer);
void gi_ofi_part(struct gi_net_lane *l);

/* ofi_conn.c: of lanes with connections */
int gi_ofi_listen(struct gi_ofi_lane *l);
void gi_ofi_disconnect(struct gi_ofi_lane *l); /* before the completion queue is closed */
void gi_ofi_unlisten(struct gi_ofi_lane *l);   /* after it */
/* Where peers find the listener; *room: the length. 0 or a negative error of libfabric. */
int gi_ofi_place(struct gi_ofi_lane *l, void *at, size_t *room);
int gi_ofi_know_place(struct gi_ofi_lane *l, int peer, const void *at, size_t len);
/* Connect to a peer if that has not begun: GIN_EAGAIN as long as it does not stand; or why it will
 * not. */
int gi_ofi_reach(struct gi_ofi_lane *l, int peer);
void gi_ofi_let_go(struct gi_ofi_lane *l, int peer);
/* What takes a peer's messages, by the connection that it made or by mine; NULL: not, or no longer.
 */
struct fid_ep *gi_ofi_receiver(const struct gi_ofi_lane *l, int peer, bool mine);
void gi_ofi_receiver_ended(struct gi_ofi_lane *l, int peer, bool mine);

/* ofi_event.c: by every progress(); idle: which found nothing else */
int gi_ofi_see_connections(struct gi_ofi_lane *l, bool idle);

/* ofi_post.c */
/* The status of a post to a peer to which there is no endpoint (now). */
int gi_ofi_refuse(struct gi_ofi_lane *l, int peer);
int gi_ofi_write(struct gi_net_lane *l, const struct gi_net_io *io);
int gi_ofi_read(struct gi_net_lane *l, const struct gi_net_io *io);
int gi_ofi_amo_add(struct gi_net_lane *l, const struct gi_net_io *io);
/* GIN_EPEER for what sounds like a lost peer, else GIN_ENET; error is positive. */
int gi_ofi_status(int error);
/* The status of a post that returned rc, an error said with gi_fail(). */
int gi_ofi_post_failed(struct gi_ofi_lane *l, int peer, const char *what, ssize_t rc);

/* ofi_msg.c */
int gi_ofi_slots_open(struct gi_ofi_lane *l);
void gi_ofi_slots_close(struct gi_ofi_lane *l);
int gi_ofi_post_receives(struct gi_ofi_lane *l); /* those that are not posted */
/* Post those of a connection: with receiver() by now; false: it takes none. */
bool gi_ofi_receives_of(struct gi_ofi_lane *l, int peer, bool mine);
int gi_ofi_msg(struct gi_net_lane *l, int peer, const void *bytes, uint32_t len);

/* ofi_progress.c */
int gi_ofi_progress(struct gi_net_lane *l, unsigned budget);
int gi_ofi_progress_fd(struct gi_net_lane *l, int *fd);

#endif
