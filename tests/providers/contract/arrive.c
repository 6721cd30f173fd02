/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes from the wire, at the target and back at the source. */
#include <stdlib.h>
#include <string.h>
#include "tests/providers/contract/contract.h"

static void answer(struct gc_ep *ep, const struct gc_head *h, enum gc_kind kind, int error)
{
    struct gc_packet *k = gc_packet(ep, kind, &h->from, 0);
    if (k == NULL)
        return;
    k->h.op = h->op;
    k->h.error = (int16_t)error;
    gc_packet_queue(ep, k, gc_now() + gc_dice(20000));
}

/* Its answer, or the end of its connection. */
static void refuse(struct gc_ep *ep, const struct gc_head *h, int error)
{
    fi_addr_t at = error != 0 && ep->p->breaks ? gc_peer_find(ep, &h->from) : FI_ADDR_NOTAVAIL;
    answer(ep, h, at != FI_ADDR_NOTAVAIL ? GC_RESET : GC_ACK, error);
    if (error != 0 && ep->p->flushes)
        gc_peer_died(ep, &h->from);
    if (at == FI_ADDR_NOTAVAIL)
        return;
    ep->av->peer[at].cut = true;
    gc_peer_flush(ep, at);
}

/* ---- memory ---- */

/* Where it goes; NULL and *error. */
static char *place(struct gc_ep *ep, const struct gc_head *h, uint64_t access, int *error)
{
    struct gc_mr *mr = gc_mr_find(ep, h->key);
    if (ep->p->known_only && gc_peer_find(ep, &h->from) == FI_ADDR_NOTAVAIL) {
        *error = gc_broken(FI_EHOSTUNREACH,
                           "a source that is not in the target's address vector reads or writes");
        return NULL;
    }
    *error = FI_EACCES;
    if (mr == NULL || (mr->access & access) == 0)
        return NULL;
    bool virtual = (ep->p->mr_mode & FI_MR_VIRT_ADDR) != 0;
    uint64_t off = virtual ? h->addr - (uint64_t)(uintptr_t)mr->addr : h->addr;
    if (off <= mr->len && h->total <= mr->len - off)
        return mr->addr + off;
    *error = gc_broken(FI_EACCES, "%s %#llx is not within the registration's %zu bytes",
                       virtual ? "address" : "offset", (unsigned long long)h->addr, mr->len);
    return NULL;
}

static void store(char *to, const char *from, size_t len)
{
    uint64_t word;
    if (len == 8 && (uintptr_t)to % 8 == 0) {
        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
        return;
    }
    memcpy(to, from, len);
}

/* ---- receives ---- */

/* There is one for it, or it is the end of it all. */
static bool has_receive(struct gc_ep *ep, const char *what)
{
    if (ep->recvs != NULL)
        return true;
    if (ep->p->full == GC_FULL_BREAKS)
        gc_broken(0, "%s finds no receive, and nothing queues it", what);
    return false;
}

/* False: it may come again. */
static bool refuse_late(struct gc_ep *ep, const struct gc_head *h)
{
    if (ep->p->full != GC_FULL_BREAKS)
        return false;
    answer(ep, h, GC_ACK, FI_ENORX);
    return true;
}

static void complete_receive(struct gc_ep *ep, const struct gc_head *h, struct fi_cq_data_entry *e)
{
    struct gc_recv *r = ep->recvs;
    ep->recvs = r->next;
    if (ep->recvs == NULL)
        ep->last_recv = &ep->recvs;
    ep->rx_used--;
    e->op_context = r->context;
    gc_context_give(ep, r->context);
    gc_cq_add(ep->rx_cq, e, gc_peer_find(ep, &h->from), NULL);
    free(r);
}

static bool arrived_msg(struct gc_ep *ep, const struct gc_head *h, const char *bytes)
{
    struct fi_cq_data_entry e = {.flags = FI_MSG | FI_RECV, .len = h->len};
    if (!has_receive(ep, "a message"))
        return refuse_late(ep, h);
    if (h->len > ep->recvs->len) {
        gc_broken(0, "a message is longer than its receive");
        return true;
    }
    memcpy(ep->recvs->bytes, bytes, h->len);
    e.buf = ep->recvs->bytes;
    complete_receive(ep, h, &e);
    answer(ep, h, GC_ACK, 0);
    return true;
}

static void arrived_imm(struct gc_ep *ep, const struct gc_head *h)
{
    struct fi_cq_data_entry e = {
        .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .len = h->total, .data = h->imm};
    if (ep->eats)
        complete_receive(ep, h, &e);
    else
        gc_cq_add(ep->rx_cq, &e, gc_peer_find(ep, &h->from), NULL);
}

/* ---- writes ---- */

static struct gc_partial **partial_of(struct gc_ep *ep, const struct gc_head *h)
{
    struct gc_partial **at = &ep->partial;
    while (*at != NULL && ((*at)->from != h->from.id || (*at)->op != h->op))
        at = &(*at)->next;
    return at;
}

/* What is left of it with this part here. */
static uint64_t left_of(struct gc_ep *ep, const struct gc_head *h)
{
    const struct gc_partial *q = *partial_of(ep, h);
    return (q != NULL ? q->left : h->total) - h->len;
}

static void count_part(struct gc_ep *ep, const struct gc_head *h, uint64_t left)
{
    struct gc_partial **at = partial_of(ep, h), *q = *at;
    if (left == 0) {
        *at = q != NULL ? q->next : NULL;
        free(q);
        return;
    }
    if (q == NULL) {
        q = calloc(1, sizeof(*q));
        if (q == NULL)
            abort();
        q->from = h->from.id;
        q->op = h->op;
        *at = q;
    }
    q->left = left;
}

static bool arrived_write(struct gc_ep *ep, const struct gc_head *h, const char *bytes)
{
    uint64_t left = left_of(ep, h);
    int error;
    if (h->off > h->total || h->len > h->total - h->off)
        return true; /* no packet of ours */
    char *to = place(ep, h, FI_REMOTE_WRITE, &error);
    if (to == NULL) {
        if (h->off == 0)
            refuse(ep, h, error);
        return true;
    }
    if (left == 0 && h->has_imm && ep->eats && !has_receive(ep, "an immediate"))
        return refuse_late(ep, h);
    store(to + h->off, bytes, h->len);
    count_part(ep, h, left);
    if (left != 0)
        return true;
    if (h->has_imm)
        arrived_imm(ep, h);
    answer(ep, h, GC_ACK, 0);
    return true;
}

static void reply(struct gc_ep *ep, const struct gc_head *h, uint64_t off, const char *bytes,
                  size_t len)
{
    struct gc_packet *k = gc_packet(ep, GC_REPLY, &h->from, len);
    if (k == NULL)
        abort();
    k->h.op = h->op;
    k->h.off = off;
    memcpy(gc_bytes(k), bytes, len);
    gc_packet_queue(ep, k, gc_now() + gc_dice(30000));
}

static void arrived_add(struct gc_ep *ep, const struct gc_head *h, const char *bytes)
{
    int error;
    uint64_t addend, old = 0, *word = (uint64_t *)(void *)place(ep, h, FI_REMOTE_WRITE, &error);
    if (word != NULL && (uintptr_t)word % 8 != 0) {
        error = gc_broken(FI_EINVAL, "an atomic on a misaligned word");
        word = NULL;
    }
    if (word != NULL) {
        memcpy(&addend, bytes, 8);
        old = __atomic_fetch_add(word, addend, __ATOMIC_ACQ_REL);
        error = 0;
    }
    if (word != NULL && h->kind == GC_FETCH)
        reply(ep, h, 0, (const char *)&old, 8);
    else
        refuse(ep, h, error);
}

/* ---- reads ---- */

static void arrived_read(struct gc_ep *ep, const struct gc_head *h)
{
    int error;
    const char *from = place(ep, h, FI_REMOTE_READ, &error);
    if (from == NULL) {
        refuse(ep, h, error);
        return;
    }
    for (uint64_t at = 0, part; at < h->total; at += part) {
        part = h->total - at < GC_PART ? h->total - at : GC_PART;
        reply(ep, h, at, from + at, part);
    }
}

/* ---- back at the source ---- */

static struct gc_op *find_op(const struct gc_ep *ep, uint64_t id)
{
    struct gc_op *op = ep->ops;
    while (op != NULL && op->id != id)
        op = op->next;
    return op;
}

static void arrived_reply(struct gc_ep *ep, const struct gc_head *h, const char *bytes)
{
    struct gc_op *op = find_op(ep, h->op);
    if (op == NULL || (op->kind != GC_READ && op->kind != GC_FETCH))
        return;
    store((op->kind == GC_READ ? op->local : op->result) + h->off, bytes, h->len);
    op->acked += h->len;
    if (op->acked == op->len) {
        gc_op_done(ep, op, 0);
        gc_op_remove(ep, op);
    }
}

static void arrived_ack(struct gc_ep *ep, const struct gc_head *h)
{
    struct gc_op *op = find_op(ep, h->op);
    if (op == NULL)
        return;
    bool broken = h->error != 0 && ep->p->flushes;
    size_t peer = op->peer;
    gc_op_done(ep, op, broken ? FI_EIO : h->error);
    gc_op_remove(ep, op);
    if (broken) /* the connection is */
        gc_peer_died(ep, &ep->av->peer[peer].addr);
}

static void arrived_reset(struct gc_ep *ep, const struct gc_head *h)
{
    fi_addr_t at = gc_peer_find(ep, &h->from);
    if (at == FI_ADDR_NOTAVAIL)
        return;
    ep->av->peer[at].cut = true;
    gc_peer_flush(ep, at);
}

static void arrived_welcome(struct gc_ep *ep, const struct gc_head *h)
{
    fi_addr_t at = gc_peer_find(ep, &h->from);
    if (at != FI_ADDR_NOTAVAIL)
        ep->av->peer[at].met = true;
}

bool gc_arrive(struct gc_ep *ep, const struct gc_head *h, const char *bytes)
{
    switch ((enum gc_kind)h->kind) {
    case GC_WRITE: return arrived_write(ep, h, bytes);
    case GC_MSG: return arrived_msg(ep, h, bytes);
    case GC_ADD:
    case GC_FETCH: arrived_add(ep, h, bytes); return true;
    case GC_READ: arrived_read(ep, h); return true;
    case GC_REPLY: arrived_reply(ep, h, bytes); return true;
    case GC_ACK: arrived_ack(ep, h); return true;
    case GC_HELLO: answer(ep, h, GC_WELCOME, 0); return true;
    case GC_WELCOME: arrived_welcome(ep, h); return true;
    case GC_RESET: arrived_reset(ep, h); return true;
    case GC_CONNECT:
    case GC_ACCEPT:
    case GC_READY:
    case GC_REJECT:
    case GC_BYE: gc_conn_arrived(ep, h); return true;
    case GC_KINDS: break;
    }
    return true;
}
