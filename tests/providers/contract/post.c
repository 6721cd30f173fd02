/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: the rules are looked at first, then whether it can be taken now. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/providers/contract/contract.h"

static struct gc_ep *of(struct fid_ep *fid)
{
    return (struct gc_ep *)(void *)fid;
}

/* ---- what may be posted at all ---- */

static int check_target(const struct gc_ep *ep, fi_addr_t addr, const char *what)
{
    if (!ep->enabled)
        return gc_broken(-FI_EOPBADSTATE, "%s on an endpoint that is not enabled", what);
    if (ep->p->connected)
        return ep->state == GC_UP || ep->state == GC_DOWN
                   ? 0
                   : gc_broken(-FI_ENOTCONN, "%s before the endpoint is connected", what);
    if (addr >= ep->av->n)
        return gc_broken(-FI_EINVAL, "%s to an address that was not inserted", what);
    return 0;
}

static int check_flags(const struct gc_ep *ep, uint64_t flags, size_t len, const char *what)
{
    const struct gc_profile *p = ep->p;
    if ((flags & FI_INJECT) != 0 && len > p->inject)
        return gc_broken(-FI_EINVAL, "%s: %zu bytes with FI_INJECT, more than %zu", what, len,
                         p->inject);
    if ((flags & FI_DELIVERY_COMPLETE) != 0 && !p->early)
        return -FI_EOPNOTSUPP; /* only asking tells who has it */
    if ((flags & FI_FENCE) != 0 && (p->caps & FI_FENCE) == 0)
        return gc_broken(-FI_EOPNOTSUPP, "%s: FI_FENCE is not offered", what);
    return 0;
}

static int check_key(const struct gc_ep *ep, uint64_t key)
{
    if (ep->p->key_size < 8 && key >> (8 * ep->p->key_size) != 0)
        return gc_broken(-FI_EKEYREJECTED, "a remote key is wider than %zu bytes", ep->p->key_size);
    return 0;
}

/* ---- whether it can be taken now ---- */

static int say_hello(struct gc_ep *ep, struct gc_peer *peer)
{
    if (!peer->asked) {
        struct gc_packet *k = gc_packet(ep, GC_HELLO, &peer->addr, 0);
        if (k != NULL)
            gc_packet_queue(ep, k, gc_now());
        peer->asked = k != NULL;
    }
    return -FI_EAGAIN;
}

static int room(struct gc_ep *ep, fi_addr_t addr)
{
    struct gc_peer *peer = &ep->av->peer[addr];
    if (ep->p->handshake && !peer->met)
        return say_hello(ep, peer);
    if (peer->dead && (ep->p->dead == GC_DEAD_AGAIN || (ep->p->dead == GC_DEAD_ONCE && peer->told)))
        return -FI_EAGAIN;
    return ep->tx_used >= ep->p->tx || gc_dice(64) == 0 ? -FI_EAGAIN : 0;
}

static struct gc_op *new_op(struct gc_ep *ep, enum gc_kind kind, fi_addr_t addr, uint64_t flags,
                            void *context)
{
    static uint64_t ids;
    struct gc_op *op = calloc(1, sizeof(*op));
    if (op == NULL)
        return NULL;
    op->kind = kind;
    op->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    op->peer = addr;
    op->flags = flags;
    op->context = context;
    op->completes = !ep->selective || (flags & FI_COMPLETION) != 0;
    return op;
}

static void put_in(struct gc_ep *ep, struct gc_op *op)
{
    uint64_t one = 1;
    if ((op->flags & FI_INJECT) != 0 || op->kind == GC_FETCH) {
        memcpy(op->inject, op->local, op->len);
        op->local = op->inject;
    }
    *ep->last_op = op;
    ep->last_op = &op->next;
    ep->tx_used++;
    if (!ep->p->manual && write(ep->d->bell, &one, sizeof(one)) < 0)
        return; /* it rings already */
}

/* The whole of a post but for what is its kind's; under the lock. */
static int post(struct gc_ep *ep, struct gc_op *like, fi_addr_t addr, void *context)
{
    if (ep->p->connected)
        addr = 0; /* whatever it says */
    int rc = room(ep, addr);
    if (rc != 0)
        return rc;
    rc = gc_context_take(ep, context);
    if (rc != 0)
        return rc;
    struct gc_op *op = new_op(ep, like->kind, addr, like->flags, context);
    if (op == NULL)
        return -FI_ENOMEM;
    op->local = like->local;
    op->result = like->result;
    op->mr = like->mr;
    op->len = like->len;
    op->addr = like->addr;
    op->key = like->key;
    op->imm = like->imm;
    put_in(ep, op);
    return 0;
}

static struct gc_mr *desc_of(const struct gc_ep *ep, void **desc, uint64_t flags)
{
    bool used = (ep->p->mr_mode & FI_MR_LOCAL) != 0 && (flags & FI_INJECT) == 0;
    return used && desc != NULL ? desc[0] : NULL;
}

/* ---- reads and writes ---- */

static int check_rma(struct gc_ep *ep, const struct fi_msg_rma *m, uint64_t flags, const char *what)
{
    if (m->iov_count != 1 || m->rma_iov_count != 1)
        return gc_broken(-FI_EINVAL, "%s: more than one piece", what);
    size_t len = m->msg_iov->iov_len;
    if (len != m->rma_iov->len)
        return gc_broken(-FI_EINVAL, "%s: lengths differ", what);
    if (len > ep->p->max_rma)
        return gc_broken(-FI_EMSGSIZE, "%s: %zu bytes, more than %zu", what, len, ep->p->max_rma);
    int rc = check_target(ep, m->addr, what);
    if (rc == 0)
        rc = check_flags(ep, flags, len, what);
    if (rc == 0)
        rc = check_key(ep, m->rma_iov->key);
    if (rc == 0 && (flags & FI_INJECT) == 0)
        rc = gc_mr_local(ep->d, m->msg_iov->iov_base, len, m->desc != NULL ? m->desc[0] : NULL,
                         what);
    return rc;
}

static ssize_t rma(struct gc_ep *ep, enum gc_kind kind, const struct fi_msg_rma *m, uint64_t flags,
                   const char *what)
{
    pthread_mutex_lock(&ep->d->lock);
    int rc = check_rma(ep, m, flags, what);
    struct gc_op like = {.kind = kind,
                         .flags = flags,
                         .local = m->msg_iov->iov_base,
                         .len = m->msg_iov->iov_len,
                         .addr = m->rma_iov->addr,
                         .key = m->rma_iov->key,
                         .mr = desc_of(ep, m->desc, flags),
                         .imm = ep->p->cq_data_size < 8 ? (uint32_t)m->data : m->data};
    if (rc == 0)
        rc = post(ep, &like, m->addr, m->context);
    pthread_mutex_unlock(&ep->d->lock);
    return rc;
}

static ssize_t ep_writemsg(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags)
{
    struct gc_ep *ep = of(fid);
    /* What these claim and do not do is for those to find out who believed it. */
    if ((flags & FI_REMOTE_CQ_DATA) != 0 && ep->p->imm == GC_IMM_UNTRUE)
        return -FI_EINVAL;
    if ((flags & FI_INJECT) != 0 && !ep->p->inject_writes)
        return -FI_EOPNOTSUPP;
    return rma(ep, GC_WRITE, m, flags, "a write");
}

/* By the flags of an endpoint: not called, and not there where it would not work. */
static ssize_t ep_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
                            uint64_t data, fi_addr_t to, uint64_t addr, uint64_t key, void *context)
{
    (void)fid, (void)buf, (void)len, (void)desc, (void)data, (void)to, (void)addr, (void)key;
    (void)context;
    return -FI_ENOSYS;
}

static ssize_t ep_readmsg(struct fid_ep *fid, const struct fi_msg_rma *m, uint64_t flags)
{
    return rma(of(fid), GC_READ, m, flags, "a read");
}

/* ---- messages ---- */

static ssize_t ep_sendmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
    struct gc_ep *ep = of(fid);
    size_t len = m->iov_count == 1 ? m->msg_iov->iov_len : SIZE_MAX;
    pthread_mutex_lock(&ep->d->lock);
    int rc = check_target(ep, m->addr, "a message");
    if (rc == 0 && len > ep->p->max_msg)
        rc = gc_broken(-FI_EMSGSIZE, "a message of more than %zu bytes", ep->p->max_msg);
    if (rc == 0)
        rc = check_flags(ep, flags, len, "a message");
    if (rc == 0 && (flags & FI_INJECT) == 0)
        rc = gc_mr_local(ep->d, m->msg_iov->iov_base, len, m->desc != NULL ? m->desc[0] : NULL,
                         "a message");
    struct gc_op like = {.kind = GC_MSG,
                         .flags = flags,
                         .local = m->msg_iov->iov_base,
                         .mr = desc_of(ep, m->desc, flags),
                         .len = len};
    if (rc == 0)
        rc = post(ep, &like, m->addr, m->context);
    pthread_mutex_unlock(&ep->d->lock);
    return rc;
}

static int take_recv(struct gc_ep *ep, const struct fi_msg *m)
{
    if (ep->rx_used >= ep->p->rx)
        return -FI_EAGAIN;
    int rc = gc_context_take(ep, m->context);
    if (rc != 0)
        return rc;
    struct gc_recv *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return -FI_ENOMEM;
    *r = (struct gc_recv){.context = m->context,
                          .mr = desc_of(ep, m->desc, 0),
                          .bytes = m->msg_iov->iov_base,
                          .len = m->msg_iov->iov_len};
    *ep->last_recv = r;
    ep->last_recv = &r->next;
    ep->rx_used++;
    return 0;
}

static ssize_t ep_recvmsg(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags)
{
    struct gc_ep *ep = of(fid);
    uint64_t one = 1;
    (void)flags;
    if (!ep->enabled || m->iov_count != 1)
        return gc_broken(-FI_EOPBADSTATE, "a receive on an endpoint that is not enabled");
    pthread_mutex_lock(&ep->d->lock);
    int rc = gc_mr_local(ep->d, m->msg_iov->iov_base, m->msg_iov->iov_len,
                         m->desc != NULL ? m->desc[0] : NULL, "a receive");
    if (rc == 0)
        rc = take_recv(ep, m);
    if (rc == 0 && ep->kept != NULL && write(ep->d->bell, &one, sizeof(one)) < 0)
        rc = 0;
    pthread_mutex_unlock(&ep->d->lock);
    return rc;
}

/* ---- atomics ---- */

static bool gc_fetches(const struct gc_ep *ep)
{
    return ep->p->adds != GC_ADD_PLAIN;
}

static int check_atomic(struct gc_ep *ep, const struct fi_msg_atomic *m, uint64_t flags,
                        bool fetches)
{
    if ((ep->p->caps & FI_ATOMIC) == 0)
        return gc_broken(-FI_EOPNOTSUPP, "an atomic, which is not offered");
    if (m->iov_count != 1 || m->rma_iov_count != 1 || m->msg_iov->count != 1 ||
        m->rma_iov->count != 1)
        return gc_broken(-FI_EINVAL, "an atomic on more than one word");
    bool plain = ep->p->adds <= GC_ADD_BOTH;
    if (m->datatype != FI_UINT64 || m->op != FI_SUM || (fetches ? !gc_fetches(ep) : !plain))
        return -FI_EOPNOTSUPP;
    if (fetches && (flags & FI_INJECT) != 0)
        return gc_broken(-FI_EINVAL, "a fetching atomic with FI_INJECT");
    if (ep->p->vague && m->rma_iov->addr % 8 != 0)
        return -FI_EAGAIN; /* for ever */
    int rc = check_target(ep, m->addr, "an atomic");
    if (rc == 0)
        rc = check_flags(ep, flags, 8, "an atomic");
    return rc != 0 ? rc : check_key(ep, m->rma_iov->key);
}

static ssize_t ep_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *m, uint64_t flags)
{
    struct gc_ep *ep = of(fid);
    pthread_mutex_lock(&ep->d->lock);
    int rc = check_atomic(ep, m, flags, false);
    struct gc_op like = {.kind = GC_ADD,
                         .flags = flags,
                         .local = m->msg_iov->addr,
                         .len = 8,
                         .addr = m->rma_iov->addr,
                         .key = m->rma_iov->key};
    if (rc == 0)
        rc = post(ep, &like, m->addr, m->context);
    pthread_mutex_unlock(&ep->d->lock);
    return rc;
}

static ssize_t ep_fetch_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *m,
                                  struct fi_ioc *old, void **old_desc, size_t count, uint64_t flags)
{
    struct gc_ep *ep = of(fid);
    uint64_t addend = ep->p->adds == GC_ADD_WRONG ? m->addr : *(const uint64_t *)m->msg_iov->addr;
    pthread_mutex_lock(&ep->d->lock);
    int rc = check_atomic(ep, m, flags, true);
    if (rc == 0 && (count != 1 || old->count != 1))
        rc = gc_broken(-FI_EINVAL, "an atomic fetches more than one word");
    if (rc == 0)
        rc = gc_mr_local(ep->d, old->addr, 8, old_desc != NULL ? old_desc[0] : NULL,
                         "a fetched word");
    struct gc_op like = {.kind = GC_FETCH,
                         .flags = flags,
                         .local = (char *)&addend,
                         .result = old->addr,
                         .mr = desc_of(ep, old_desc, flags),
                         .len = 8,
                         .addr = m->rma_iov->addr,
                         .key = m->rma_iov->key};
    if (rc == 0)
        rc = post(ep, &like, m->addr, m->context);
    pthread_mutex_unlock(&ep->d->lock);
    return rc;
}

struct fi_ops_msg gc_ops_msg = {
    .size = sizeof(gc_ops_msg), .recvmsg = ep_recvmsg, .sendmsg = ep_sendmsg};
struct fi_ops_rma gc_ops_rma = {.size = sizeof(gc_ops_rma),
                                .readmsg = ep_readmsg,
                                .writemsg = ep_writemsg,
                                .writedata = ep_writedata};
struct fi_ops_atomic gc_ops_atomic = {
    .size = sizeof(gc_ops_atomic), .writemsg = ep_atomicmsg, .readwritemsg = ep_fetch_atomicmsg};
