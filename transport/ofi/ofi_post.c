/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads, writes and atomics: the calls that take a message with explicit flags, since the others'
 * flags come from the endpoint and differ between providers. The completion queue is selective, so
 * every post that is to be heard of says FI_COMPLETION.
 */
#include <sys/uio.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

int gi_ofi_status(int error)
{
    switch (error) {
    case FI_ECANCELED:
    case FI_ENOTCONN:
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_EHOSTUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETUNREACH:
    case FI_ESHUTDOWN:
    case FI_EIO:
    case FI_ENOENT:
    case FI_ETIMEDOUT: return GIN_EPEER;
    default: return GIN_ENET;
    }
}

int gi_ofi_post_failed(struct gi_ofi_lane *l, int peer, const char *what, ssize_t rc)
{
    int error = (int)(rc < 0 ? -rc : rc);
    return gi_fail(gi_ofi_status(error), "%s: %s rank %d: %s", l->domain->caps.name, what, peer,
                   fi_strerror(error));
}

static int not_posted(struct gi_ofi_lane *l, int peer, const char *what, ssize_t rc)
{
    if (GIN_LIKELY(rc == -FI_EAGAIN))
        return GIN_EAGAIN;
    return gi_ofi_post_failed(l, peer, what, rc);
}

int gi_ofi_refuse(struct gi_ofi_lane *l, int peer)
{
    if (l->peers[peer].dead)
        return gi_fail(GIN_EPEER, "rank %d is known to be dead", peer);
    if (l->listener != NULL)
        return gi_ofi_reach(l, peer);
    return gi_fail(GIN_ESTATE, "rank %d is not known yet", peer);
}

/* Where every completion says so, nothing is asked. */
static uint64_t delivery(const struct gi_ofi_lane *l, const struct gi_net_io *io)
{
    bool asked = (io->flags & GI_NET_DELIVERED) != 0;
    return asked && l->domain->caps.dc == GI_NET_DC_YES ? FI_DELIVERY_COMPLETE : 0;
}

static uint64_t write_flags(const struct gi_ofi_lane *l, const struct gi_net_io *io)
{
    bool heard = io->req != NULL || l->domain->inline_heard;
    uint64_t flags = heard ? FI_COMPLETION : 0;
    if (io->flags & GI_NET_IMM)
        flags |= FI_REMOTE_CQ_DATA;
    if (io->flags & GI_NET_INLINE)
        flags |= FI_INJECT;
    if (io->flags & GI_NET_MORE)
        flags |= FI_MORE;
    return flags | delivery(l, io);
}

static struct fi_msg_rma rma_message(const struct iovec *iov, void **desc,
                                     const struct fi_rma_iov *remote, struct gi_ofi_peer *p,
                                     const struct gi_net_io *io)
{
    return (struct fi_msg_rma){
        .msg_iov = iov,
        .desc = desc,
        .iov_count = 1,
        .addr = p->target,
        .rma_iov = remote,
        .rma_iov_count = 1,
        .context = io->req != NULL ? (void *)io->req : (void *)&p->context,
        .data = io->imm,
    };
}

int gi_ofi_write(struct gi_net_lane *head, const struct gi_net_io *io)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    struct gi_ofi_peer *p = &l->peers[io->peer];
    struct iovec iov = {.iov_base = io->local, .iov_len = io->len};
    struct fi_rma_iov remote = {.addr = io->remote, .len = io->len, .key = io->key};
    void *desc = gi_ofi_desc(io->mr);
    if (GIN_UNLIKELY(p->ep == NULL))
        return gi_ofi_refuse(l, io->peer);
    struct fi_msg_rma msg = rma_message(&iov, &desc, &remote, p, io);
    ssize_t rc = fi_writemsg(p->ep, &msg, write_flags(l, io));
    return GIN_LIKELY(rc == 0) ? GIN_OK : not_posted(l, io->peer, "writing to", rc);
}

int gi_ofi_read(struct gi_net_lane *head, const struct gi_net_io *io)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    struct gi_ofi_peer *p = &l->peers[io->peer];
    struct iovec iov = {.iov_base = io->local, .iov_len = io->len};
    struct fi_rma_iov remote = {.addr = io->remote, .len = io->len, .key = io->key};
    void *desc = gi_ofi_desc(io->mr);
    if (GIN_UNLIKELY(p->ep == NULL))
        return gi_ofi_refuse(l, io->peer);
    struct fi_msg_rma msg = rma_message(&iov, &desc, &remote, p, io);
    ssize_t rc = fi_readmsg(p->ep, &msg, FI_COMPLETION | (io->flags & GI_NET_MORE ? FI_MORE : 0));
    return GIN_LIKELY(rc == 0) ? GIN_OK : not_posted(l, io->peer, "reading from", rc);
}

/* Where only fetching adds exist the old value goes to one word for all. */
static ssize_t post_add(struct gi_ofi_lane *l, struct gi_ofi_peer *p, struct fi_msg_atomic *msg,
                        uint64_t addend, uint64_t flags)
{
    if (GIN_LIKELY(l->domain->add == GI_OFI_ADD))
        return fi_atomicmsg(p->ep, msg, flags);
    struct fi_ioc old = {.addr = &l->old, .count = 1};
    void *desc = gi_ofi_desc(l->old_mr);
    if (l->domain->add == GI_OFI_ADD_BY_ADDR)
        msg->addr = (fi_addr_t)addend;
    return fi_fetch_atomicmsg(p->ep, msg, &old, &desc, 1, flags & ~FI_INJECT);
}

int gi_ofi_amo_add(struct gi_net_lane *head, const struct gi_net_io *io)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    struct gi_ofi_peer *p = &l->peers[io->peer];
    uint64_t *addend = &io->req->opaque[8]; /* stays until it is complete */
    struct fi_ioc ioc = {.addr = addend, .count = 1};
    struct fi_rma_ioc remote = {.addr = io->remote, .count = 1, .key = io->key};
    uint64_t flags = FI_COMPLETION | (l->domain->caps.inject >= sizeof(*addend) ? FI_INJECT : 0);
    void *desc = NULL;
    struct fi_msg_atomic msg = {.msg_iov = &ioc,
                                .desc = &desc,
                                .iov_count = 1,
                                .addr = p->target,
                                .rma_iov = &remote,
                                .rma_iov_count = 1,
                                .datatype = FI_UINT64,
                                .op = FI_SUM,
                                .context = io->req};
    if (GIN_UNLIKELY(p->ep == NULL))
        return gi_ofi_refuse(l, io->peer);
    *addend = io->imm;
    flags |= (io->flags & GI_NET_FENCE) ? FI_FENCE : 0;
    flags |= (io->flags & GI_NET_MORE) ? FI_MORE : 0;
    flags |= delivery(l, io);
    ssize_t rc = post_add(l, p, &msg, io->imm, flags);
    return GIN_LIKELY(rc == 0) ? GIN_OK : not_posted(l, io->peer, "adding to a word of", rc);
}
