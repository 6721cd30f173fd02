/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: slots of one size for receives, posted again as soon as they were read, and slots for
 * messages too long to be injected. A receive that cannot be posted at once is posted by a later
 * progress. Both kinds of slot lie in one block each, so that a completion's context tells what it
 * was.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

/*
 * Where the provider queues what finds no receive, their number is a matter of speed. Elsewhere
 * every peer may have caps.recvs messages under way to one lane, whose receives are all peers':
 * more peers need more of them, and what the provider has not got is taken off each one's share.
 */
int gi_ofi_share_receives(struct gi_ofi_domain *d)
{
    size_t most = d->pick.info->rx_attr->size, peers = (size_t)d->size, n = GI_OFI_RECV_SLOTS;
    if (d->connected) { /* each endpoint has its own, and there may be two for a peer */
        d->caps.recvs = (uint32_t)(most < GI_OFI_CONN_RECVS ? most : GI_OFI_CONN_RECVS);
        if (d->caps.recvs < GI_OFI_RECVS_EACH)
            return gi_fail(GIN_ENOTSUP, "%s has %zu receives for each connection; %u are needed",
                           d->pick.text, most, GI_OFI_RECVS_EACH);
        d->receives = 2 * (uint32_t)peers * d->caps.recvs;
        return GIN_OK;
    }
    if (most < GI_OFI_RECV_LEAST)
        most = GI_OFI_RECV_LEAST;
    if (d->caps.recvs != 0 && n < peers * d->caps.recvs)
        n = peers * d->caps.recvs;
    d->receives = (uint32_t)(n < most ? n : most);
    if (d->caps.recvs == 0 || d->receives >= peers * d->caps.recvs)
        return GIN_OK;
    uint32_t each = d->receives / (uint32_t)peers;
    if (each < GI_OFI_RECVS_EACH)
        return gi_fail(GIN_ENOTSUP,
                       "%s has %u receives for %zu ranks and queues no message that finds none; "
                       "%u for each are needed",
                       d->pick.text, d->receives, peers, GI_OFI_RECVS_EACH);
    gi_ofi_note(d, "receives: %u of %u for each rank: the provider has %u in all", each,
                d->caps.recvs, d->receives);
    d->caps.recvs = each;
    return GIN_OK;
}

static int register_slab(struct gi_ofi_lane *l, size_t bytes)
{
    struct gi_net_memory_desc m = {.kind = GI_NET_HOST, .addr = l->slab, .bytes = bytes};
    struct gi_net_memory_desc old = {.kind = GI_NET_HOST, .addr = &l->old, .bytes = sizeof(l->old)};
    if (!l->domain->caps.mr_local)
        return GIN_OK;
    int st = gi_ofi_reg(&l->domain->head, &m, &l->slab_mr);
    if (st == GIN_OK && l->domain->connected)
        st = gi_ofi_reg(&l->domain->head, &old, &l->old_mr);
    return st;
}

int gi_ofi_slots_open(struct gi_ofi_lane *l)
{
    size_t n = l->domain->receives, all = n + GI_OFI_SEND_SLOTS;
    int st = GIN_ENOMEM;
    l->recv = calloc(all, sizeof(*l->recv));
    if (l->recv == NULL || posix_memalign((void **)&l->slab, 64, all * GI_NET_MSG_MAX) != 0) {
        l->slab = NULL;
        gi_fail(st, "no memory for %zu messages of a lane", all);
        goto free_slots;
    }
    st = register_slab(l, all * GI_NET_MSG_MAX);
    if (st != GIN_OK)
        goto free_slots;
    l->recv_end = l->send = l->recv + n;
    l->send_end = l->recv + all;
    for (size_t i = all; i-- > 0;) {
        struct gi_ofi_slot *s = &l->recv[i], **list = i < n ? &l->unposted : &l->free_sends;
        s->bytes = l->slab + i * GI_NET_MSG_MAX;
        s->peer = GI_NET_UNKNOWN;
        if (i < n && l->listener != NULL) {
            s->peer = (int)(i / l->domain->caps.recvs / 2);
            s->mine = i / l->domain->caps.recvs % 2 != 0;
            continue; /* until there is a connection */
        }
        s->next = *list;
        *list = s;
    }
    st = gi_ofi_post_receives(l);
    if (st != GIN_OK)
        goto free_slots;
    return GIN_OK;

free_slots:
    gi_ofi_slots_close(l);
    return st;
}

/* The endpoint is closed, or nothing was posted. */
void gi_ofi_slots_close(struct gi_ofi_lane *l)
{
    if (l->old_mr != NULL)
        gi_ofi_dereg(&l->domain->head, l->old_mr);
    if (l->slab_mr != NULL)
        gi_ofi_dereg(&l->domain->head, l->slab_mr);
    free(l->slab);
    free(l->recv);
    l->slab_mr = l->old_mr = NULL;
    l->slab = NULL;
    l->recv = NULL;
}

static ssize_t post_receive(struct gi_ofi_lane *l, struct fid_ep *ep, struct gi_ofi_slot *s)
{
    void *desc = gi_ofi_desc(l->slab_mr);
    struct iovec iov = {.iov_base = s->bytes, .iov_len = GI_NET_MSG_MAX};
    struct fi_msg msg = {
        .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = s};
    return fi_recvmsg(ep, &msg, FI_COMPLETION);
}

/* One that is not taken now holds up only those of its connection. */
static int post_by_connections(struct gi_ofi_lane *l)
{
    for (struct gi_ofi_slot **at = &l->unposted, *s; (s = *at) != NULL;) {
        struct fid_ep *ep = gi_ofi_receiver(l, s->peer, s->mine);
        ssize_t rc = ep != NULL ? post_receive(l, ep, s) : 0;
        if (rc != 0 && rc != -FI_EAGAIN)
            gi_ofi_receiver_ended(l, s->peer, s->mine);
        if (rc == -FI_EAGAIN)
            at = &s->next;
        else
            *at = s->next; /* posted, or of no use any more */
    }
    return GIN_OK;
}

bool gi_ofi_receives_of(struct gi_ofi_lane *l, int peer, bool mine)
{
    uint32_t n = l->domain->caps.recvs;
    struct gi_ofi_slot *first = l->recv + (2 * (size_t)peer + mine) * n;
    for (struct gi_ofi_slot *s = first; s < first + n; s++) {
        s->next = l->unposted;
        l->unposted = s;
    }
    (void)post_by_connections(l);
    return gi_ofi_receiver(l, peer, mine) != NULL;
}

int gi_ofi_post_receives(struct gi_ofi_lane *l)
{
    if (l->listener != NULL)
        return post_by_connections(l);
    while (l->unposted != NULL) {
        struct gi_ofi_slot *s = l->unposted;
        ssize_t rc = post_receive(l, l->ep, s);
        if (rc == -FI_EAGAIN)
            return GIN_OK;
        if (rc != 0)
            return gi_fail(GIN_ENET, "%s: posting a receive: %s", l->domain->caps.name,
                           fi_strerror((int)-rc));
        l->unposted = s->next;
    }
    return GIN_OK;
}

int gi_ofi_msg(struct gi_net_lane *head, int peer, const void *bytes, uint32_t len)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    struct gi_ofi_peer *p = &l->peers[peer];
    struct gi_ofi_slot *s = NULL;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    void *desc = gi_ofi_desc(l->slab_mr);
    struct fi_msg msg = {
        .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = p->addr, .context = &p->context};
    uint64_t flags = FI_INJECT;
    if (GIN_UNLIKELY(p->ep == NULL))
        return gi_ofi_refuse(l, peer);
    if (len > l->domain->inject || l->domain->contexts) {
        s = l->free_sends;
        if (s == NULL)
            return GIN_EAGAIN;
        s->peer = peer;
        msg.context = s;
        flags |= FI_COMPLETION;
    }
    if (len > l->domain->inject) {
        memcpy(s->bytes, bytes, len);
        iov.iov_base = s->bytes;
        flags = FI_COMPLETION;
    }
    ssize_t rc = fi_sendmsg(p->ep, &msg, flags);
    if (GIN_LIKELY(rc == 0)) {
        if (s != NULL)
            l->free_sends = s->next;
        return GIN_OK;
    }
    return rc == -FI_EAGAIN ? GIN_EAGAIN : gi_ofi_post_failed(l, peer, "sending to", rc);
}
