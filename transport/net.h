/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The net ops: the 16 calls that a network must offer to the core, the record of what it is able
 * to do, and the four callbacks by which it reports. Implemented by ofi/ (libfabric), self/ (ranks
 * of one process) and fault/ (a wrapper around any other). Signals, flush, quiet, barriers and
 * counters are the core's, never an op; the core tests fields of the record, never a name.
 *
 * Peers are ranks of the communicator. Statuses are GIN_OK or negative GIN_E...; a post that
 * cannot be taken now is GIN_EAGAIN and has had no effect.
 *
 * Threads. A lane is used by one thread at a time (the core sees to it, with acquire and release
 * between two of them); several lanes of a domain at the same time by several threads. reg and
 * dereg may run beside lanes in use. Callbacks come only from inside progress() of their lane,
 * never from inside a post, and may post.
 *
 * An implementation puts the struct with its ops first into its own (struct gi_net_domain,
 * gi_net_lane, gi_net_mr are such heads).
 */
#ifndef GI_TRANSPORT_NET_H
#define GI_TRANSPORT_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ginshmem/status.h>

#define GI_NET_MSG_MAX   1024u /* bytes of a message; beyond 128 only for bundles of small puts */
#define GI_NET_NAME_MAX  256u  /* bytes of a lane's name; all names of a job have one length */
#define GI_NET_UNKNOWN   (-1)  /* peer of an arrival whose source the provider does not tell */
#define GI_NET_UNLIMITED UINT64_MAX

/* ---- what a network is able to do ---- */

enum gi_net_amo {
    GI_NET_AMO_NONE,
    GI_NET_AMO_EMULATED, /* by the target's CPU inside its progress: the core does that better */
    GI_NET_AMO_NATIVE    /* by the target's NIC */
};

enum gi_net_dc {
    GI_NET_DC_NO,  /* nothing tells that a write is in the target's memory */
    GI_NET_DC_YES, /* a write with GI_NET_DELIVERED completes when it is visible there */
    GI_NET_DC_SAME /* every write's completion says so */
};

/* Of a lane, to one peer. Filled from what the provider promises, corrected by a table of quirks
 * and by a self-test. */
struct gi_net_caps {
    /* Order. It holds for failures, too: what stays behind a post does not arrive where that one
     * fails, for a signal may be among it. A network that goes on after failures has no order. */
    uint64_t waw_bytes; /* writes up to this size stay behind earlier writes; 0: unordered */
    bool saw;           /* a message stays behind earlier writes */
    bool was;           /* a write (its immediate, too) stays behind earlier messages */
    bool raw;           /* a read stays behind earlier writes */
    bool sas;           /* messages stay in order */
    bool amo_ordered;   /* amo_add stays behind earlier writes */
    bool amo_fence;     /* GI_NET_FENCE on amo_add puts it behind everything earlier */
    /* operations */
    enum gi_net_amo amo;
    enum gi_net_dc dc;
    unsigned imm_bits;   /* 0, 32 or 64, as tested */
    bool msg_source;     /* arrived_msg() tells whose it is; GI_NET_UNKNOWN: a stranger's */
    bool imm_source;     /* arrived_imm() tells whose it is */
    bool imm_eats_recv;  /* an immediate takes one of the target's `recvs` */
    bool target_passive; /* reads and writes need no call at the target */
    bool cq_overrun;     /* nobody protects the completion queue: bound what can arrive */
    /* sizes */
    uint64_t inject;  /* most bytes of a write with GI_NET_INLINE; 0: none can */
    uint64_t max_msg; /* most bytes of one read or write, at least 1 */
    uint32_t msg_max; /* most bytes of a message, 64 .. GI_NET_MSG_MAX */
    uint32_t depth;   /* requests in flight per lane */
    uint32_t recvs;   /* messages per peer that may be under way; 0: the provider queues them */
    /* memory registration */
    bool mr_local;  /* local memory must be registered (`mr` of reads and writes) */
    bool mr_hmem;   /* device memory may be registered, by pointer; only trying tells */
    bool mr_dmabuf; /* ... by DMA-BUF */
    bool mr_calls;  /* with such memory it may call the GPU's driver while it progresses */
    /* driving it */
    bool wait_fd;     /* progress_fd() gives one that may be slept on */
    bool local;       /* leads to this machine alone: its address is the loopback's */
    bool one_queue;   /* what a dead rank owes is in front of what others answer later */
    bool fd_each;     /* every connection of every lane takes a descriptor */
    uint32_t classes; /* of traffic that it takes: 1 << enum gin_traffic_class, GI_NET_TC_DSCP */
    bool meet_early;  /* ranks that meet first beside a third one's death may lose something */
    bool part_late;   /* a lane that closes while one connects to it, or with messages unread, does
                       * harm */
    /* for gininfo: who it is; what a quirk or the self-test took away and why, '\n' between */
    const char *name, *version;
    const char *device; /* as its user names it, or NULL */
    const char *notes;
};

#define GI_NET_TC_DSCP (1u << 31) /* classes by their code point, too */

/* ---- devices ---- */

#define GI_NET_NICS 32u /* most of a host that are looked at */

struct gi_net_nic {
    char name[64];
    char bus[16];   /* "0000:1b:00.0"; "": not known */
    uint64_t speed; /* bits per second, 0: not known */
    bool down;      /* its link is */
    bool local;     /* leads to this machine alone */
};

/* ---- objects ---- */

struct gi_net_domain {
    const struct gi_net_ops *ops;
};

struct gi_net_lane {
    const struct gi_net_ops *ops;
};

/* A registered range of local memory. Offset o of it is (key, base + o) for peers. */
struct gi_net_mr {
    uint64_t key;
    uint64_t base; /* the address where the network wants addresses, else mostly 0 */
};

/*
 * Of one read, write or amo_add, in the core's memory; the network's from a post that returned
 * GIN_OK until done() or failed() or lane_close(). Never moves and is used again for others.
 */
struct gi_net_request {
    uint64_t opaque[10]; /* the network's; libfabric's context first */
};

/* ---- callbacks ---- */

struct gi_net_handler {
    void *arg;
    /* Of a post with a request: the source may be used again; what was read is here; with
     * GI_NET_DELIVERED (or GI_NET_DC_SAME) what was written is visible at the target. */
    void (*done)(void *arg, struct gi_net_request *req);
    /* Instead of done(). status: GIN_EPEER for a peer that seems to be lost, else GIN_ENET;
     * provider_error is positive, text lives until the callback returns. req NULL: something
     * without a request failed, of `peer` or GI_NET_UNKNOWN (then the lane is dead). */
    void (*failed)(void *arg, struct gi_net_request *req, int peer, int status, int provider_error,
                   const char *text);
    /* The immediate of a write whose bytes the CPU can see by now; upper half 0 if 32 bits. */
    void (*arrived_imm)(void *arg, int peer, uint64_t imm);
    /* bytes are aligned to 8 and live until the callback returns. */
    void (*arrived_msg)(void *arg, int peer, const void *bytes, uint32_t len);
};

/* ---- configurations ---- */

struct gi_net_config {
    const char *provider; /* as the user names it, or NULL */
    const char *nic;      /* domain, interface or rail within it, or NULL */
    int rank, size;       /* mine, of the communicator */
    bool self_test;
    bool gpu;         /* device memory will be registered, where the network can */
    bool any_atomics; /* those of the target's CPU are welcome, too: amo may be EMULATED */
    const void *more; /* what this implementation's own header says (fault: the inner domain) */
};

struct gi_net_lane_config {
    uint32_t context; /* for messages */
    uint32_t depth;   /* requests wanted in flight, at most caps.depth; 0: caps.depth */
    bool shared;      /* used by several threads in turn */
    uint32_t traffic; /* class + 1, one of caps.classes; 0: the network's own */
    uint32_t unread;  /* immediates to have room for, where nobody bounds them; 0: few */
    struct gi_net_handler handler;
};

enum gi_net_memory { GI_NET_HOST, GI_NET_DEVICE, GI_NET_DMABUF };

struct gi_net_memory_desc {
    enum gi_net_memory kind;
    void *addr; /* host or device address */
    uint64_t bytes;
    int device;        /* CUDA device, of device memory and DMA-BUF */
    int fd;            /* DMA-BUF; the caller closes it after the registration */
    uint64_t fd_off;   /* addr is there; a whole number of the buffer's bytes before it */
    bool remote;       /* peers may read and write it; else it is a source and destination here */
    uint64_t want_key; /* where the client chooses keys */
};

/* ---- posts ---- */

enum gi_net_flags {
    GI_NET_IMM = 1,       /* deliver imm at the target once the bytes are there; write */
    GI_NET_INLINE = 2,    /* len <= inject: the source may be used again after the call; write */
    GI_NET_DELIVERED = 4, /* done() when visible there; only with dc YES or SAME; write, amo_add */
    GI_NET_MORE = 8,      /* another post to this peer follows at once: no doorbell yet */
    GI_NET_FENCE = 16     /* amo_add, with amo_fence */
};

struct gi_net_io {
    int peer;
    unsigned flags;       /* enum gi_net_flags */
    void *local;          /* read from by a write */
    struct gi_net_mr *mr; /* of local; NULL: not registered (not with mr_local, unless INLINE) */
    uint64_t key, remote; /* remote = base + offset */
    uint64_t len;         /* 1 .. max_msg */
    uint64_t imm;
    /* Of a write with GI_NET_INLINE it may be NULL: then nothing is reported but failures. Every
     * other has one, and hears of its completion. */
    struct gi_net_request *req;
};

struct gi_net_ops {
    const char *kind; /* "self", "ofi" ... */

    /* -- domain: one per NIC or pseudo-device. Not on any hot path; gi_fail() says what failed. */
    /* Find, open and self-test. Not collective. */
    int (*open)(const struct gi_net_config *config, struct gi_net_domain **domain);
    void (*close)(struct gi_net_domain *d); /* lanes and registrations are gone */
    /* The record; constant, lives as long as the domain. */
    const struct gi_net_caps *(*caps)(struct gi_net_domain *d);
    /* Register; the key is valid on return. */
    int (*reg)(struct gi_net_domain *d, const struct gi_net_memory_desc *memory,
               struct gi_net_mr **mr);
    void (*dereg)(struct gi_net_domain *d, struct gi_net_mr *mr);
    int (*lane_open)(struct gi_net_domain *d, const struct gi_net_lane_config *config,
                     struct gi_net_lane **lane);
    /* Requests still with the network return to the core without a callback. */
    void (*lane_close)(struct gi_net_lane *l);

    /* -- lane: one per context and rail */
    /* My name for connect() at the peers; *len: room in, length out. */
    int (*name)(struct gi_net_lane *l, void *blob, uint32_t *len);
    /* Make a peer known, myself included. Called once per peer, and nobody posts to a lane before
     * it knows all its peers: some networks refuse what comes from others. May complete later:
     * posts are GIN_EAGAIN until then. */
    int (*connect)(struct gi_net_lane *l, int peer, const void *blob, uint32_t len);
    int (*write)(struct gi_net_lane *l, const struct gi_net_io *io);
    int (*read)(struct gi_net_lane *l, const struct gi_net_io *io);
    /* Add to an 8-byte word; len is 8, imm the addend, local unused. Only where amo is not NONE;
     * nothing else than amo_add ever updates the word. */
    int (*amo_add)(struct gi_net_lane *l, const struct gi_net_io *io);
    /* Two-sided, len <= msg_max. The network keeps its own copy; no completion is reported. */
    int (*msg)(struct gi_net_lane *l, int peer, const void *bytes, uint32_t len);
    /* Take up to about `budget` events; their number, or a negative status: the lane is dead (and
     * gi_fail() was called). Drives targets, too. */
    int (*progress)(struct gi_net_lane *l, unsigned budget);
    /* For sleeping. *fd: what to poll for input, -1: this lane cannot be slept on. Returns 1 if
     * nothing is pending and the caller may sleep now, 0 if it must progress first. */
    int (*progress_fd)(struct gi_net_lane *l, int *fd);
    /* The peer is dead: give up what is under way to it as soon as that can be done (failed() is
     * called from later progress; what the provider cannot take back may never be reported). */
    void (*cancel_peer)(struct gi_net_lane *l, int peer);
    /* With part_late: let connections that are being made get on and read what arrives, without
     * telling anything of it. Nobody posts to the lane any more, and lane_close() follows. */
    void (*part)(struct gi_net_lane *l);
};

#endif
