/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the completion queue tells. The context says whose an entry is: a slot's, a peer's (a post
 * without a request), a request's, or nobody's (an immediate, where it takes no receive).
 */
#include <stdint.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

/* Errors that belong to no post are the provider's trouble with a source; so many are a flood. */
#define STRANGE_ERRORS 10000u

static bool within(const void *p, const void *first, const void *end)
{
    return (uintptr_t)p >= (uintptr_t)first && (uintptr_t)p < (uintptr_t)end;
}

/* Of a receive (NULL: an immediate without one). */
static int peer_of(const struct gi_ofi_lane *l, const struct gi_ofi_slot *s, fi_addr_t from)
{
    if (l->listener != NULL)
        return s != NULL ? s->peer : GI_NET_UNKNOWN;
    return l->source && from < l->addresses ? l->peer_of[from] : GI_NET_UNKNOWN;
}

static void give_back_send(struct gi_ofi_lane *l, struct gi_ofi_slot *s)
{
    s->next = l->free_sends;
    l->free_sends = s;
}

static void give_back_receive(struct gi_ofi_lane *l, struct gi_ofi_slot *s)
{
    s->next = l->unposted;
    l->unposted = s;
}

static void arrived_imm(struct gi_ofi_lane *l, const struct gi_ofi_slot *s, uint64_t data,
                        fi_addr_t from)
{
    int peer = l->domain->imm_source ? peer_of(l, s, from) : GI_NET_UNKNOWN;
    if (l->domain->caps.imm_bits == 32)
        data = (uint32_t)data;
    l->handler.arrived_imm(l->handler.arg, peer, data);
}

static void take(struct gi_ofi_lane *l, const struct fi_cq_data_entry *e, fi_addr_t from)
{
    struct gi_ofi_slot *s = e->op_context;
    if (within(s, l->recv, l->recv_end)) {
        if (e->flags & FI_REMOTE_CQ_DATA)
            arrived_imm(l, s, e->data, from);
        else
            l->handler.arrived_msg(l->handler.arg, peer_of(l, s, from), s->bytes, (uint32_t)e->len);
        give_back_receive(l, s);
    } else if ((e->flags & FI_REMOTE_CQ_DATA) && (s == NULL || (e->flags & FI_REMOTE_WRITE))) {
        /* some providers set the first flag at the source, too */
        arrived_imm(l, NULL, e->data, from);
    } else if (within(s, l->send, l->send_end)) {
        give_back_send(l, s);
    } else if (s != NULL && !within(s, l->peers, l->peers + l->domain->size)) {
        l->handler.done(l->handler.arg, e->op_context);
    }
}

/* An error that no post of ours caused: a source went away, a receive was cancelled. */
static int strange(struct gi_ofi_lane *l, int error, const char *text)
{
    if (l->strange++ < 4)
        gi_info("ofi", "%s: an error without an operation: %s", l->domain->caps.name, text);
    return l->strange < STRANGE_ERRORS
               ? GIN_OK
               : gi_fail(GIN_ENET, "%s: a flood of errors, the last: %s (%d)", l->domain->caps.name,
                         text, error);
}

static int report(struct gi_ofi_lane *l, const struct fi_cq_err_entry *e, int error,
                  const char *text)
{
    struct gi_ofi_slot *s = e->op_context;
    int status = gi_ofi_status(error), peer = GI_NET_UNKNOWN;
    struct gi_net_request *req = NULL;
    if (within(s, l->recv, l->recv_end) && l->listener != NULL) {
        gi_ofi_receiver_ended(l, s->peer, s->mine);
        return GIN_OK;
    }
    if (within(s, l->recv, l->recv_end)) {
        give_back_receive(l, s);
        return strange(l, error, text);
    }
    if (s == NULL)
        return strange(l, error, text);
    if (within(s, l->send, l->send_end)) {
        peer = s->peer;
        give_back_send(l, s);
    } else if (within(s, l->peers, l->peers + l->domain->size)) {
        peer = (int)((struct gi_ofi_peer *)(void *)s - l->peers);
    } else {
        req = e->op_context;
    }
    l->handler.failed(l->handler.arg, req, peer, status, error, text);
    return GIN_OK;
}

static int take_error(struct gi_ofi_lane *l)
{
    struct fi_cq_err_entry e = {0};
    char buf[160] = "";
    ssize_t rc = fi_cq_readerr(l->cq, &e, 0);
    if (rc == -FI_EAGAIN)
        return GIN_OK;
    if (rc < 0)
        return gi_fail(GIN_ENET, "%s: reading an error: %s", l->domain->caps.name,
                       fi_strerror((int)-rc));
    /* Some versions store it negative. */
    int error = e.err < 0 ? -e.err : e.err;
    const char *text = fi_cq_strerror(l->cq, e.prov_errno, e.err_data, buf, sizeof(buf));
    if (text == NULL || *text == 0 || e.prov_errno == 0)
        text = fi_strerror(error);
    return report(l, &e, error, text);
}

/* Connections tell their peer by the slot. */
static ssize_t read_queue(const struct gi_ofi_lane *l, bool connected,
                          struct fi_cq_data_entry *entries, fi_addr_t *from)
{
    return !connected ? fi_cq_readfrom(l->cq, entries, GI_OFI_BATCH, from)
                      : fi_cq_read(l->cq, entries, GI_OFI_BATCH);
}

int gi_ofi_progress(struct gi_net_lane *head, unsigned budget)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    struct fi_cq_data_entry entries[GI_OFI_BATCH];
    fi_addr_t from[GI_OFI_BATCH];
    const bool connected = l->listener != NULL;
    unsigned total = 0;
    ssize_t n;
    do {
        n = read_queue(l, connected, entries, from);
        if (GIN_UNLIKELY(n < 0 && n != -FI_EAGAIN)) {
            if (n != -FI_EAVAIL)
                return gi_fail(GIN_ENET, "%s: reading completions: %s", l->domain->caps.name,
                               fi_strerror((int)-n));
            int st = take_error(l);
            if (st != GIN_OK)
                return st;
            n = GI_OFI_BATCH; /* there may be more */
            total++;
            continue;
        }
        for (ssize_t i = 0; i < n; i++)
            take(l, &entries[i], connected ? FI_ADDR_NOTAVAIL : from[i]);
        total += n > 0 ? (unsigned)n : 0;
    } while (n == GI_OFI_BATCH && total < budget);
    if (GIN_UNLIKELY(connected)) {
        int st = gi_ofi_see_connections(l, total == 0);
        if (st != GIN_OK)
            return st;
    }
    if (GIN_UNLIKELY(l->unposted != NULL)) {
        int st = gi_ofi_post_receives(l);
        if (st != GIN_OK)
            return st;
    }
    return (int)total;
}

int gi_ofi_progress_fd(struct gi_net_lane *head, int *fd)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    struct fid *fids[1] = {&l->cq->fid};
    *fd = l->domain->caps.wait_fd ? l->fd : -1;
    if (*fd < 0 || l->unposted != NULL)
        return 0;
    return fi_trywait(l->domain->fabric, fids, 1) == 0;
}
