/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider of libfabric for tests: it keeps the contracts of providers whose devices are not
 * here, to the letter and no further, and refuses what they refuse. Which one: the variable
 * GINCONTRACT, a name of profile.c's table. It moves bytes between processes of one host, over
 * datagram sockets; it is not fast, and says nothing about the devices' speed.
 *
 * What is refused is an error and a line on stderr that names the rule; with GINCONTRACT_STRICT=1
 * the process ends there. Whatever libginshmem does not call is not here.
 *
 * One lock per domain protects everything below it. Bytes move in gc_nic_step() alone: called by a
 * thread of the domain, the "device", or by reading the completion queue, where the profile says
 * that nothing moves without.
 */
#ifndef GINSHMEM_TESTS_CONTRACT_H
#define GINSHMEM_TESTS_CONTRACT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define GC_PART   16384u /* most bytes of a datagram */
#define GC_INJECT 256u   /* no profile injects more */

/* ---- profile.c ---- */

enum gc_imm {
    GC_IMM_UNTRUE,
    GC_IMM_FREE,
    GC_IMM_RECV
}; /* claimed only; takes no receive; takes one */
enum gc_full { GC_FULL_QUEUES, GC_FULL_STALLS, GC_FULL_BREAKS }; /* a message finds no receive */
enum gc_dead { GC_DEAD_ERROR, GC_DEAD_ONCE, GC_DEAD_AGAIN, GC_DEAD_SILENT }; /* how it shows */
enum gc_add { GC_ADD_PLAIN, GC_ADD_BOTH, GC_ADD_FETCHING, GC_ADD_WRONG };    /* atomics */

struct gc_profile {
    const char *name, *provider, *fabric, *domain;
    uint64_t caps, mode;
    int mr_mode;
    uint64_t order; /* what may be asked for */
    size_t key_size, cq_data_size, inject, max_msg, max_rma, tx, rx, most_mrs;
    enum gc_imm imm;
    enum gc_full full;
    enum gc_dead dead;
    enum gc_add adds;
    bool manual;        /* nothing moves unless the queue is read */
    bool handshake;     /* EAGAIN until the peer has answered */
    bool early;         /* a write may be complete here long before it is there */
    bool always;        /* completions are not selective */
    bool inject_writes; /* or refused, whatever inject_size says */
    bool overrun;       /* a full queue is the end of it */
    bool known_only;    /* writes from whom the target does not know are refused */
    bool wait_fd;
    bool flushes;   /* one error, and all else to that peer is cancelled */
    bool negative;  /* error codes of completions may be negative */
    bool connected; /* endpoints have one peer each (FI_EP_MSG) */
    bool breaks;    /* a wrong key ends the connection, and what is sent is lost in silence */
    bool wakes;     /* sleepers are woken for nothing, or told not to sleep */
    bool vague;     /* what cannot be posted is refused as if there were no room */
    bool hmem;      /* GPU memory is registered by its pointer ... */
    bool dmabuf;    /* ... or as DMA-BUF */
    bool calls;     /* with GPU memory it calls CUDA, and does not promise otherwise */
};

const struct gc_profile *gc_profile(void);
/* A rule is broken: says so, and returns `error`. */
int gc_broken(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint64_t gc_now(void);
uint32_t gc_dice(uint32_t below);

/* ---- objects ---- */

/* An endpoint's address: an abstract socket's name, and what tells it from a later one's. */
struct gc_addr {
    char name[16];
    uint64_t id, unused;
};

struct gc_domain {
    struct fid_domain fid;
    struct gc_fabric *fabric;
    const struct gc_profile *p;
    pthread_mutex_t lock;
    pthread_t thread;
    bool stop;
    int bell;
    struct gc_ep *eps;
    struct gc_mr *mrs;
    unsigned n_mrs, cqs, avs;
    bool hmem; /* FI_HMEM was asked for */
    uint64_t last_key;
};

struct gc_mr {
    struct fid_mr fid;
    struct gc_domain *d;
    struct gc_mr *next;
    char *addr;
    size_t len;
    uint64_t access, key;
    bool gpu;
    struct gc_ep *ep; /* with FI_MR_ENDPOINT */
    bool enabled;
};

enum gc_kind {
    GC_WRITE,
    GC_ADD,
    GC_MSG,
    GC_READ,
    GC_FETCH,
    GC_KINDS,
    GC_REPLY,
    GC_ACK,
    GC_HELLO,
    GC_WELCOME,
    GC_RESET,
    GC_CONNECT,
    GC_ACCEPT,
    GC_READY,
    GC_REJECT,
    GC_BYE
};

struct gc_peer {
    struct gc_addr addr;
    bool asked, met, dead;
    bool cut; /* its connection broke: nothing arrives any more, either way */
    bool told;
    uint64_t due[GC_KINDS]; /* of the last one in each order */
    bool fenced;            /* scratch of one step */
};

struct gc_av {
    struct fid_av fid;
    struct gc_domain *d;
    struct gc_peer *peer;
    size_t n, room;
    struct gc_ep *ep;
};

/* Events of connections. */
struct gc_eq {
    struct fid_eq fid;
    pthread_mutex_t lock; /* taken last */
    struct gc_event *first, **last;
    struct gc_pep *peps;
    unsigned users;
};

struct gc_entry {
    struct fi_cq_data_entry e;
    fi_addr_t from;
    struct gc_ep *tx; /* whose credit comes back when it is read */
};

struct gc_cq {
    struct fid_cq fid;
    struct gc_domain *d;
    size_t size, n, room, first; /* entries first .. first + n of a ring of room */
    struct gc_entry *ring;
    struct gc_error {
        struct gc_error *next;
        struct fi_cq_err_entry e;
        struct gc_ep *tx;
    } * errors, **last_error;
    int bell;
    bool overrun;
    unsigned eps;
};

struct gc_op {
    struct gc_op *next;
    enum gc_kind kind;
    uint64_t id, flags, addr, key, imm, len, at, acked;
    uint64_t floor; /* of its parts' times */
    size_t peer;
    void *context;
    char *local, *result;
    struct gc_mr *mr;
    char inject[GC_INJECT];
    bool completes, completed, sent;
    int error;
};

struct gc_recv {
    struct gc_recv *next;
    struct gc_mr *mr;
    void *context;
    char *bytes;
    size_t len;
};

struct gc_head {
    uint32_t magic;
    uint8_t kind, has_imm;
    int16_t error;
    struct gc_addr from;
    uint64_t to, op, addr, key, total, off, imm;
    uint32_t len, unused;
};

struct gc_packet {
    struct gc_packet *next, *prev;
    uint64_t due;
    struct gc_addr to;
    struct gc_head h; /* last: its bytes are behind it, as they are sent */
};
_Static_assert(offsetof(struct gc_packet, h) + sizeof(struct gc_head) == sizeof(struct gc_packet),
               "bytes follow their head");

static inline char *gc_bytes(struct gc_packet *k)
{
    return (char *)(k + 1);
}

/* A write of which not all parts are here. */
struct gc_partial {
    struct gc_partial *next;
    uint64_t from, op, left;
};

struct gc_ep {
    struct fid_ep fid;
    struct gc_ep *next;
    struct gc_domain *d;
    const struct gc_profile *p;
    struct gc_cq *tx_cq, *rx_cq;
    struct gc_av *av;
    bool selective, enabled, ordered;
    bool p2p;  /* it was told not to call CUDA */
    bool eats; /* immediates take receives */
    enum gc_state {
        GC_IDLE,
        GC_BEGUN,
        GC_ANSWERED,
        GC_UP,
        GC_DOWN
    } state; /* where it has one peer */
    struct gc_eq *eq;
    int fd;
    struct gc_addr self;
    size_t tx_used, rx_used;
    struct gc_op *ops, **last_op;
    struct gc_recv *recvs, **last_recv;
    struct gc_packet out;                /* ring head; by due */
    struct gc_packet *kept, **last_kept; /* came and found no receive */
    size_t out_n;
    struct gc_partial *partial;
    unsigned n_mrs;
};

struct gc_fabric {
    struct fid_fabric fid;
    unsigned domains;
};

/* ---- what the files offer each other; all but the openers under the domain's lock ---- */

int gc_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **info);
int gc_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int gc_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int gc_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
               void *context);
int gc_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
               void *context);
int gc_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                  struct fid_mr **mr);
int gc_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

extern struct fi_ops_msg gc_ops_msg;
extern struct fi_ops_rma gc_ops_rma;
extern struct fi_ops_atomic gc_ops_atomic;

/* gpu.c: the range of a registration. 0 or the error. */
int gc_gpu_range(const struct gc_domain *d, const struct fi_mr_attr *attr, uint64_t flags,
                 struct gc_mr *mr);
/* It is memory of a GPU, as far as the driver that tests use knows. */
bool gc_gpu_is(const void *addr, size_t len);

struct gc_mr *gc_mr_find(struct gc_ep *ep, uint64_t key);
/* The memory of a local operation, where it must be registered; 0 or the error. */
int gc_mr_local(struct gc_domain *d, const void *addr, size_t len, void *desc, const char *what);

bool gc_cq_room(const struct gc_cq *cq);
void gc_cq_ring(struct gc_cq *cq);
void gc_cq_add(struct gc_cq *cq, const struct fi_cq_data_entry *e, fi_addr_t from,
               struct gc_ep *tx);
void gc_cq_fail(struct gc_cq *cq, void *context, uint64_t flags, int error, struct gc_ep *tx);
void gc_cq_forget(struct gc_cq *cq, struct gc_ep *ep);

/* context.c: the context is the provider's while an operation is under way, all of it. */
int gc_context_take(struct gc_ep *ep, void *context);
void gc_context_give(struct gc_ep *ep, void *context);

/* nic.c */
void gc_nic_step(struct gc_ep *ep);
uint64_t gc_nic_due(const struct gc_ep *ep); /* when it should be called again */
struct gc_packet *gc_packet(struct gc_ep *ep, enum gc_kind kind, const struct gc_addr *to,
                            size_t bytes);
void gc_packet_queue(struct gc_ep *ep, struct gc_packet *k, uint64_t due);
void gc_op_done(struct gc_ep *ep, struct gc_op *op, int error);
void gc_op_remove(struct gc_ep *ep, struct gc_op *op);
void gc_peer_died(struct gc_ep *ep, const struct gc_addr *to);
/* One error has broken the connection: what else is under way is cancelled. */
void gc_peer_flush(struct gc_ep *ep, fi_addr_t at);
int gc_packet_send(int fd, const struct gc_packet *k);
int gc_socket(struct gc_addr *self);
fi_addr_t gc_peer_find(const struct gc_ep *ep, const struct gc_addr *a);

/* conn.c: endpoints that have one peer each. */
int gc_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
               void *context);
int gc_passive_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
                    void *context);
int gc_conn_open(struct gc_ep *ep, struct fid *handle); /* with the endpoint */
void gc_conn_close(struct gc_ep *ep);
void gc_conn_bind(struct gc_ep *ep, struct gc_eq *eq);
void gc_conn_died(struct gc_ep *ep);
void gc_conn_arrived(struct gc_ep *ep, const struct gc_head *h);
struct fi_info *gc_info(const struct fi_info *hints);
extern struct fi_ops_cm gc_conn_cm;

/* arrive.c: false: not now, there is no receive for it. */
bool gc_arrive(struct gc_ep *ep, const struct gc_head *h, const char *bytes);

#endif
