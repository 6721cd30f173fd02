/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device: cuts operations into parts, lets each go at a time of its own, and takes in what
 * comes. What keeps its order goes at or behind its predecessor's time; what need not, at a time
 * that dice choose: so everything arrives in any order that the contract allows, and late.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "tests/providers/contract/contract.h"

#define MAGIC    0x67636f6eu
#define MOST_OUT 192u   /* parts under way that an endpoint makes for its own operations */
#define WHOLE    64u    /* bytes that arrive at once */
#define SOON_NS  60000u /* the usual time on the way, at most */
#define LATE_NS  1500000u
#define RETRY_NS 30000u
#define BATCH    64

/* ---- packets ---- */

struct gc_packet *gc_packet(struct gc_ep *ep, enum gc_kind kind, const struct gc_addr *to,
                            size_t bytes)
{
    struct gc_packet *k = calloc(1, sizeof(*k) + bytes);
    if (k == NULL)
        return NULL;
    k->to = *to;
    k->h.magic = MAGIC;
    k->h.kind = (uint8_t)kind;
    k->h.from = ep->self;
    k->h.to = to->id;
    k->h.len = (uint32_t)bytes;
    return k;
}

/* Behind all that go no later. */
void gc_packet_queue(struct gc_ep *ep, struct gc_packet *k, uint64_t due)
{
    struct gc_packet *at = ep->out.prev;
    while (at != &ep->out && at->due > due)
        at = at->prev;
    k->due = due;
    k->prev = at;
    k->next = at->next;
    at->next->prev = k;
    at->next = k;
    ep->out_n++;
}

static void drop(struct gc_ep *ep, struct gc_packet *k)
{
    k->prev->next = k->next;
    k->next->prev = k->prev;
    ep->out_n--;
    free(k);
}

static uint64_t some_time(void)
{
    return gc_now() + (gc_dice(32) == 0 ? gc_dice(LATE_NS) : gc_dice(SOON_NS));
}

/* ---- operations ---- */

/* Those that keep their order among themselves; GC_KINDS: it has none. */
static enum gc_kind order_of(const struct gc_ep *ep, enum gc_kind kind)
{
    bool all = ep->ordered && (ep->p->order & FI_ORDER_SAW) != 0;
    if (all)
        return GC_WRITE;
    if (kind == GC_WRITE || kind == GC_ADD || kind == GC_FETCH)
        return ep->ordered ? GC_WRITE : GC_KINDS;
    return kind == GC_MSG && (ep->p->order & FI_ORDER_SAS) != 0 ? GC_MSG : GC_KINDS;
}

void gc_op_done(struct gc_ep *ep, struct gc_op *op, int error)
{
    static const uint64_t flags[] = {[GC_WRITE] = FI_RMA | FI_WRITE,
                                     [GC_READ] = FI_RMA | FI_READ,
                                     [GC_MSG] = FI_MSG | FI_SEND,
                                     [GC_FETCH] = FI_ATOMIC | FI_READ,
                                     [GC_ADD] = FI_ATOMIC | FI_WRITE};
    struct fi_cq_data_entry e = {.op_context = op->context, .flags = flags[op->kind]};
    if (op->completed)
        return;
    op->completed = true;
    gc_context_give(ep, op->context);
    if (error != 0)
        gc_cq_fail(ep->tx_cq, op->context, e.flags, error, ep);
    else if (op->completes)
        gc_cq_add(ep->tx_cq, &e, FI_ADDR_NOTAVAIL, ep);
    else
        ep->tx_used--;
}

void gc_op_remove(struct gc_ep *ep, struct gc_op *op)
{
    struct gc_op **at = &ep->ops;
    while (*at != op)
        at = &(*at)->next;
    *at = op->next;
    if (op->next == NULL)
        ep->last_op = at;
    free(op);
}

static size_t part_of(const struct gc_op *op)
{
    size_t left = op->len - op->at;
    if (op->kind != GC_WRITE || op->len <= WHOLE)
        return left;
    size_t part = WHOLE + gc_dice(GC_PART - WHOLE);
    part -= op->at + part < op->len ? part % 8 : 0;
    return part < left ? part : left;
}

static bool send_part(struct gc_ep *ep, struct gc_op *op)
{
    struct gc_peer *peer = &ep->av->peer[op->peer];
    enum gc_kind order = order_of(ep, op->kind);
    size_t part = part_of(op), bytes = op->kind == GC_READ ? 0 : part;
    struct gc_packet *k = gc_packet(ep, op->kind, &peer->addr, bytes);
    if (k == NULL)
        return false;
    memcpy(gc_bytes(k), op->local + op->at, bytes);
    k->h.op = op->id;
    k->h.addr = op->addr;
    k->h.key = op->key;
    k->h.total = op->len;
    k->h.off = op->at;
    k->h.imm = op->imm;
    k->h.has_imm = (op->flags & FI_REMOTE_CQ_DATA) != 0;
    uint64_t due = some_time();
    if (order != GC_KINDS) {
        due = due < op->floor ? op->floor : due;
        peer->due[order] = due < peer->due[order] ? peer->due[order] : due;
    }
    gc_packet_queue(ep, k, due);
    op->at += part;
    return true;
}

/* Complete before it has arrived. */
static bool is_early(const struct gc_ep *ep, const struct gc_op *op)
{
    return ep->p->early && op->kind != GC_READ && op->kind != GC_FETCH &&
           (op->flags & FI_DELIVERY_COMPLETE) == 0;
}

/* False: no more of them now. */
static bool cut(struct gc_ep *ep, struct gc_op *op)
{
    enum gc_kind order = order_of(ep, op->kind);
    if (op->at == 0 && order != GC_KINDS)
        op->floor = ep->av->peer[op->peer].due[order];
    while (op->at < op->len)
        if (ep->out_n >= MOST_OUT || !send_part(ep, op))
            return false;
    op->sent = true;
    if (is_early(ep, op))
        gc_op_done(ep, op, 0);
    return true;
}

static void fail_to_dead(struct gc_ep *ep, struct gc_op *op)
{
    struct gc_peer *peer = &ep->av->peer[op->peer];
    op->sent = true;
    if (ep->p->dead == GC_DEAD_ERROR && !peer->cut) {
        gc_op_done(ep, op, ep->p->flushes ? FI_ECANCELED : FI_EHOSTUNREACH);
        gc_op_remove(ep, op);
    } else if (ep->p->dead == GC_DEAD_ONCE && !peer->told && !peer->cut) {
        peer->told = true;
        gc_op_done(ep, op, FI_ENOTCONN);
        gc_op_remove(ep, op);
    } else if (is_early(ep, op)) {
        gc_op_done(ep, op, 0);
        if (peer->cut)
            gc_op_remove(ep, op);
    } else if (peer->cut) { /* the only ones that tell of a loss */
        gc_op_done(ep, op, FI_ENOTCONN);
        gc_op_remove(ep, op);
    }
}

/* A fenced operation, and all behind it to that peer, wait for all before it. */
static void cut_all(struct gc_ep *ep)
{
    for (size_t i = 0; i < ep->av->n; i++)
        ep->av->peer[i].fenced = false;
    for (struct gc_op *op = ep->ops, *next; op != NULL; op = next) {
        struct gc_peer *peer = &ep->av->peer[op->peer];
        next = op->next;
        if (op->sent)
            continue;
        if (peer->dead || peer->cut) {
            fail_to_dead(ep, op);
            continue;
        }
        if ((op->flags & FI_FENCE) != 0 && op->at == 0)
            for (const struct gc_op *o = ep->ops; o != op && !peer->fenced; o = o->next)
                peer->fenced = o->peer == op->peer;
        if (!peer->fenced && !cut(ep, op))
            return;
    }
}

/* ---- the wire ---- */

int gc_packet_send(int fd, const struct gc_packet *k)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, k->to.name, sizeof(k->to.name));
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 6);
    ssize_t rc =
        sendto(fd, &k->h, sizeof(k->h) + k->h.len, MSG_NOSIGNAL, (struct sockaddr *)&a, len);
    return rc >= 0 ? 0 : errno;
}

static void release(struct gc_ep *ep)
{
    uint64_t full[16], now = gc_now();
    unsigned n = 0;
    for (struct gc_packet *k = ep->out.next, *next; k != &ep->out && k->due <= now; k = next) {
        bool skip = false;
        next = k->next;
        for (unsigned i = 0; i < n; i++)
            skip |= full[i] == k->to.id;
        if (skip)
            continue;
        int rc = gc_packet_send(ep->fd, k);
        if (rc == EAGAIN || rc == ENOBUFS) {
            if (n == 16)
                return;
            full[n++] = k->to.id;
            continue;
        }
        struct gc_addr to = k->to;
        drop(ep, k);
        if (rc != 0) {
            gc_peer_died(ep, &to);
            next = ep->out.next;
        }
    }
}

void gc_peer_died(struct gc_ep *ep, const struct gc_addr *to)
{
    fi_addr_t at = gc_peer_find(ep, to);
    if (at == FI_ADDR_NOTAVAIL || ep->av->peer[at].dead)
        return;
    ep->av->peer[at].dead = true;
    if (ep->p->connected)
        gc_conn_died(ep);
    if (ep->p->dead == GC_DEAD_ERROR || ep->p->dead == GC_DEAD_ONCE)
        gc_peer_flush(ep, at);
}

void gc_peer_flush(struct gc_ep *ep, fi_addr_t at)
{
    for (struct gc_op *op = ep->ops, *next; op != NULL; op = next) {
        next = op->next;
        if (op->peer == at)
            fail_to_dead(ep, op);
    }
}

/* What came before receives were there, in its order. */
static void again(struct gc_ep *ep)
{
    while (ep->kept != NULL && gc_cq_room(ep->rx_cq)) {
        struct gc_packet *k = ep->kept;
        if (!gc_arrive(ep, &k->h, gc_bytes(k)))
            return;
        ep->kept = k->next;
        if (ep->kept == NULL)
            ep->last_kept = &ep->kept;
        free(k);
    }
}

static void keep(struct gc_ep *ep, const struct gc_head *h, const char *bytes)
{
    struct gc_packet *k = gc_packet(ep, (enum gc_kind)h->kind, &h->from, h->len);
    if (k == NULL)
        return;
    k->h = *h;
    memcpy(gc_bytes(k), bytes, h->len);
    *ep->last_kept = k;
    ep->last_kept = &k->next;
}

/* Of a source that the target has cut off: nobody is told. */
static bool is_lost(const struct gc_ep *ep, const struct gc_head *h)
{
    bool ends = ep->p->breaks || ep->p->flushes;
    fi_addr_t at = ends ? gc_peer_find(ep, &h->from) : FI_ADDR_NOTAVAIL;
    const struct gc_peer *peer = at != FI_ADDR_NOTAVAIL ? &ep->av->peer[at] : NULL;
    return peer != NULL && (peer->cut || (peer->dead && ep->p->flushes));
}

static void take_in(struct gc_ep *ep)
{
    static _Thread_local _Alignas(16) char buf[sizeof(struct gc_head) + GC_PART];
    struct gc_head h;
    for (unsigned i = 0; i < BATCH && gc_cq_room(ep->rx_cq); i++) {
        if (ep->kept != NULL && ep->p->full == GC_FULL_STALLS)
            return;
        ssize_t n = recv(ep->fd, buf, sizeof(buf), 0);
        if (n < (ssize_t)sizeof(h))
            return;
        memcpy(&h, buf, sizeof(h));
        if (h.magic != MAGIC || h.to != ep->self.id || (size_t)n != sizeof(h) + h.len)
            continue; /* for another one that had this name */
        if (is_lost(ep, &h))
            continue;
        bool behind = h.kind == GC_MSG && ep->kept != NULL;
        if (behind || !gc_arrive(ep, &h, buf + sizeof(h)))
            keep(ep, &h, buf + sizeof(h));
    }
}

void gc_nic_step(struct gc_ep *ep)
{
    again(ep);
    take_in(ep);
    cut_all(ep);
    release(ep);
}

uint64_t gc_nic_due(const struct gc_ep *ep)
{
    const struct gc_packet *k = ep->out.next;
    uint64_t now = gc_now();
    if (k == &ep->out)
        return UINT64_MAX;
    return k->due <= now ? now + RETRY_NS : k->due;
}
