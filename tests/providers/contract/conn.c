/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints that have one peer each (FI_EP_MSG): passive ones that listen, requests and answers,
 * and the queue in which all that is told. A request is seen when the queue is read. Who accepts
 * one is connected once the other side is, and has said so. The peer of such an endpoint is the
 * first and only one of an address vector of its own.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/providers/contract/contract.h"

#define WORD_MAX 56u /* of what goes with a request: as rdma_cm has it */

struct gc_event {
    struct gc_event *next;
    uint32_t event;
    int error;
    fid_t fid;
    struct fi_info *info;
    size_t len;
    unsigned char word[WORD_MAX];
};

struct gc_pep {
    struct fid_pep fid;
    struct gc_pep *next;
    struct gc_eq *eq;
    int fd;
    bool listens;
    struct gc_addr self;
};

/* A request that was not answered yet. */
struct request {
    struct fid fid;
    struct gc_addr from;
};

/* ---- events ---- */

static void tell(struct gc_eq *eq, uint32_t event, fid_t fid, int error)
{
    struct gc_event *e = calloc(1, sizeof(*e));
    if (e == NULL)
        abort();
    e->event = event;
    e->fid = fid;
    e->error = error;
    pthread_mutex_lock(&eq->lock);
    *eq->last = e;
    eq->last = &e->next;
    pthread_mutex_unlock(&eq->lock);
}

/* What nobody is left to hear of. */
static void forget(struct gc_eq *eq, const struct fid *fid)
{
    pthread_mutex_lock(&eq->lock);
    for (struct gc_event **at = &eq->first, *e; (e = *at) != NULL;) {
        if (e->fid != fid) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        if (e->info != NULL) {
            free(e->info->handle);
            fi_freeinfo(e->info);
        }
        free(e);
    }
    for (eq->last = &eq->first; *eq->last != NULL;)
        eq->last = &(*eq->last)->next;
    pthread_mutex_unlock(&eq->lock);
}

static void requested(struct gc_eq *eq, struct gc_pep *pep, const struct gc_head *h,
                      const unsigned char *word)
{
    struct gc_event *e = calloc(1, sizeof(*e));
    struct request *r = calloc(1, sizeof(*r));
    if (e == NULL || r == NULL || (e->info = gc_info(NULL)) == NULL)
        abort();
    r->fid.fclass = FI_CLASS_CONNREQ;
    r->from = h->from;
    e->info->handle = &r->fid;
    e->event = FI_CONNREQ;
    e->fid = &pep->fid.fid;
    e->len = h->len;
    memcpy(e->word, word, h->len);
    *eq->last = e;
    eq->last = &e->next;
}

/* Under the queue's lock. */
static void look_for_requests(struct gc_eq *eq)
{
    _Alignas(8) unsigned char buf[sizeof(struct gc_head) + WORD_MAX];
    struct gc_head h;
    for (struct gc_pep *pep = eq->peps; pep != NULL; pep = pep->next)
        while (pep->listens) {
            ssize_t n = recv(pep->fd, buf, sizeof(buf), 0);
            if (n < (ssize_t)sizeof(h))
                break;
            memcpy(&h, buf, sizeof(h));
            if (h.to == pep->self.id && h.kind == GC_CONNECT && h.len <= WORD_MAX &&
                (size_t)n == sizeof(h) + h.len)
                requested(eq, pep, &h, buf + sizeof(h));
        }
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
    struct gc_eq *eq = (struct gc_eq *)(void *)fid;
    struct fi_eq_cm_entry entry = {0};
    ssize_t n = -FI_EAGAIN;
    (void)flags;
    pthread_mutex_lock(&eq->lock);
    look_for_requests(eq);
    struct gc_event *e = eq->first;
    if (e != NULL && e->error != 0) {
        n = -FI_EAVAIL;
    } else if (e != NULL && len < sizeof(entry) + e->len) {
        n = -FI_ETOOSMALL;
    } else if (e != NULL) {
        entry.fid = e->fid;
        entry.info = e->info;
        *event = e->event;
        n = (ssize_t)(sizeof(entry) + e->len);
        memcpy(buf, &entry, sizeof(entry));
        memcpy((char *)buf + sizeof(entry), e->word, e->len);
        eq->first = e->next;
        if (e->next == NULL)
            eq->last = &eq->first;
        free(e);
    }
    pthread_mutex_unlock(&eq->lock);
    return n;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *out, uint64_t flags)
{
    struct gc_eq *eq = (struct gc_eq *)(void *)fid;
    (void)flags;
    pthread_mutex_lock(&eq->lock);
    struct gc_event *e = eq->first;
    if (e != NULL && e->error != 0) {
        out->fid = e->fid;
        out->err = e->error;
        out->err_data_size = 0;
        eq->first = e->next;
        if (e->next == NULL)
            eq->last = &eq->first;
    } else {
        e = NULL;
    }
    pthread_mutex_unlock(&eq->lock);
    free(e);
    return e != NULL ? (ssize_t)sizeof(*out) : -FI_EAGAIN;
}

static int eq_close(struct fid *fid)
{
    struct gc_eq *eq = (struct gc_eq *)(void *)fid;
    if (eq->users != 0)
        return gc_broken(-FI_EBUSY, "a queue of events is closed before its endpoints");
    for (struct gc_event *e = eq->first, *next; e != NULL; e = next) {
        next = e->next;
        free(e);
    }
    pthread_mutex_destroy(&eq->lock);
    free(eq);
    return 0;
}

static struct fi_ops eq_fi = {.size = sizeof(eq_fi), .close = eq_close};
static struct fi_ops_eq eq_ops = {.size = sizeof(eq_ops), .read = eq_read, .readerr = eq_readerr};

int gc_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
               void *context)
{
    struct gc_eq *eq = calloc(1, sizeof(*eq));
    (void)fabric, (void)attr;
    if (eq == NULL)
        return -FI_ENOMEM;
    pthread_mutex_init(&eq->lock, NULL);
    eq->last = &eq->first;
    eq->fid.fid = (struct fid){.fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fi};
    eq->fid.ops = &eq_ops;
    *out = &eq->fid;
    return 0;
}

/* ---- those that listen ---- */

static void count(struct gc_eq *eq, int by)
{
    pthread_mutex_lock(&eq->lock);
    eq->users += (unsigned)by;
    pthread_mutex_unlock(&eq->lock);
}

static int pep_close(struct fid *fid)
{
    struct gc_pep *pep = (struct gc_pep *)(void *)fid;
    if (pep->eq != NULL) {
        pthread_mutex_lock(&pep->eq->lock);
        struct gc_pep **at = &pep->eq->peps;
        while (*at != pep)
            at = &(*at)->next;
        *at = pep->next;
        pthread_mutex_unlock(&pep->eq->lock);
        forget(pep->eq, fid);
        count(pep->eq, -1);
    }
    close(pep->fd);
    free(pep);
    return 0;
}

static int pep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
    struct gc_pep *pep = (struct gc_pep *)(void *)fid;
    (void)flags;
    if (to->fclass != FI_CLASS_EQ || pep->eq != NULL)
        return gc_broken(-FI_EINVAL, "a passive endpoint is bound to what is no queue of events");
    pep->eq = (struct gc_eq *)(void *)to;
    count(pep->eq, 1);
    pthread_mutex_lock(&pep->eq->lock);
    pep->next = pep->eq->peps;
    pep->eq->peps = pep;
    pthread_mutex_unlock(&pep->eq->lock);
    return 0;
}

static int pep_listen(struct fid_pep *fid)
{
    struct gc_pep *pep = (struct gc_pep *)(void *)fid;
    if (pep->eq == NULL)
        return gc_broken(-FI_ENOEQ, "a passive endpoint listens without a queue of events");
    pep->listens = true;
    return 0;
}

static int pep_getname(fid_t fid, void *addr, size_t *len)
{
    struct gc_pep *pep = (struct gc_pep *)(void *)fid;
    size_t room = *len;
    *len = sizeof(pep->self);
    if (!pep->listens)
        return gc_broken(-FI_EOPBADSTATE, "the name of a passive endpoint that does not listen");
    if (room < sizeof(pep->self))
        return -FI_ETOOSMALL;
    memcpy(addr, &pep->self, sizeof(pep->self));
    return 0;
}

static void send_now(int fd, const struct gc_addr *from, const struct gc_addr *to,
                     enum gc_kind kind)
{
    struct gc_ep like = {.self = *from};
    struct gc_packet *k = gc_packet(&like, kind, to, 0);
    for (int i = 0; k != NULL && i < 100 && gc_packet_send(fd, k) == FI_EAGAIN; i++)
        usleep(100);
    free(k);
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *word, size_t len)
{
    struct gc_pep *pep = (struct gc_pep *)(void *)fid;
    struct request *r = (struct request *)(void *)handle;
    (void)word, (void)len;
    send_now(pep->fd, &pep->self, &r->from, GC_REJECT);
    free(r);
    return 0;
}

static struct fi_ops pep_fi = {.size = sizeof(pep_fi), .close = pep_close, .bind = pep_bind};
static struct fi_ops_ep pep_ops = {.size = sizeof(pep_ops)};
static struct fi_ops_cm pep_cm = {
    .size = sizeof(pep_cm), .getname = pep_getname, .listen = pep_listen, .reject = pep_reject};

int gc_passive_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **out,
                    void *context)
{
    struct gc_pep *pep = calloc(1, sizeof(*pep));
    (void)fabric, (void)info;
    if (pep == NULL || (pep->fd = gc_socket(&pep->self)) < 0) {
        free(pep);
        return -FI_ENOMEM;
    }
    pep->fid.fid = (struct fid){.fclass = FI_CLASS_PEP, .context = context, .ops = &pep_fi};
    pep->fid.ops = &pep_ops;
    pep->fid.cm = &pep_cm;
    *out = &pep->fid;
    return 0;
}

/* ---- those that have a peer ---- */

int gc_conn_open(struct gc_ep *ep, struct fid *handle)
{
    struct request *r = (struct request *)(void *)handle;
    ep->av = calloc(1, sizeof(*ep->av));
    if (ep->av == NULL || (ep->av->peer = calloc(1, sizeof(*ep->av->peer))) == NULL) {
        free(ep->av);
        return -FI_ENOMEM;
    }
    ep->av->n = ep->av->room = 1;
    if (r != NULL) {
        ep->av->peer[0].addr = r->from;
        free(r);
    }
    return 0;
}

void gc_conn_bind(struct gc_ep *ep, struct gc_eq *eq)
{
    ep->eq = eq;
    count(eq, 1);
}

static void part(struct gc_ep *ep)
{
    bool told = ep->state == GC_UP || ep->state == GC_ANSWERED;
    if (told)
        send_now(ep->fd, &ep->self, &ep->av->peer[0].addr, GC_BYE);
    ep->state = told ? GC_DOWN : ep->state;
}

void gc_conn_close(struct gc_ep *ep)
{
    part(ep);
    if (ep->eq != NULL) {
        forget(ep->eq, &ep->fid.fid);
        count(ep->eq, -1);
    }
    free(ep->av->peer);
    free(ep->av);
    ep->av = NULL;
}

/* Receives that nothing will come to. */
static void flush_receives(struct gc_ep *ep)
{
    struct gc_recv *r = ep->recvs;
    ep->recvs = NULL;
    ep->last_recv = &ep->recvs;
    ep->rx_used = 0;
    for (struct gc_recv *next; r != NULL; r = next) {
        next = r->next;
        gc_context_give(ep, r->context);
        gc_cq_fail(ep->rx_cq, r->context, FI_MSG | FI_RECV, FI_ECANCELED, NULL);
        free(r);
    }
}

/* Its peer is marked as dead. */
void gc_conn_died(struct gc_ep *ep)
{
    if (ep->state == GC_BEGUN)
        tell(ep->eq, 0, &ep->fid.fid, FI_ECONNREFUSED);
    else if (ep->state == GC_ANSWERED)
        tell(ep->eq, 0, &ep->fid.fid, FI_ECONNABORTED);
    else if (ep->state == GC_UP)
        tell(ep->eq, FI_SHUTDOWN, &ep->fid.fid, 0);
    ep->state = GC_DOWN;
    flush_receives(ep);
}

void gc_conn_arrived(struct gc_ep *ep, const struct gc_head *h)
{
    struct gc_peer *peer = &ep->av->peer[0];
    if (!ep->p->connected)
        return;
    if (h->kind == GC_ACCEPT && ep->state == GC_BEGUN) {
        struct gc_packet *k = gc_packet(ep, GC_READY, &h->from, 0);
        peer->addr = h->from;
        ep->state = GC_UP;
        tell(ep->eq, FI_CONNECTED, &ep->fid.fid, 0);
        if (k != NULL)
            gc_packet_queue(ep, k, gc_now() + gc_dice(500000));
    } else if (h->kind == GC_READY && ep->state == GC_ANSWERED) {
        ep->state = GC_UP;
        tell(ep->eq, FI_CONNECTED, &ep->fid.fid, 0);
    } else if (h->kind == GC_BYE || (h->kind == GC_REJECT && ep->state == GC_BEGUN)) {
        gc_peer_died(ep, &peer->addr);
    }
}

static int conn_connect(struct fid_ep *fid, const void *addr, const void *word, size_t len)
{
    struct gc_ep *ep = (struct gc_ep *)(void *)fid;
    uint64_t one = 1;
    if (!ep->enabled || ep->state != GC_IDLE)
        return gc_broken(-FI_EOPBADSTATE, "connecting an endpoint that is not enabled, or again");
    if (len > WORD_MAX)
        return gc_broken(-FI_EINVAL, "%zu bytes with a request, more than %u", len, WORD_MAX);
    pthread_mutex_lock(&ep->d->lock);
    memcpy(&ep->av->peer[0].addr, addr, sizeof(struct gc_addr));
    struct gc_packet *k = gc_packet(ep, GC_CONNECT, &ep->av->peer[0].addr, len);
    if (k != NULL) {
        if (len != 0)
            memcpy(gc_bytes(k), word, len);
        gc_packet_queue(ep, k, gc_now() + gc_dice(500000));
        ep->state = GC_BEGUN;
    }
    pthread_mutex_unlock(&ep->d->lock);
    return k != NULL && write(ep->d->bell, &one, sizeof(one)) > 0 ? 0 : -FI_ENOMEM;
}

static int conn_accept(struct fid_ep *fid, const void *word, size_t len)
{
    struct gc_ep *ep = (struct gc_ep *)(void *)fid;
    uint64_t one = 1;
    (void)word, (void)len;
    if (!ep->enabled || ep->state != GC_IDLE || ep->av->peer[0].addr.id == 0)
        return gc_broken(-FI_EOPBADSTATE, "accepting by an endpoint that is not of a request");
    pthread_mutex_lock(&ep->d->lock);
    struct gc_packet *k = gc_packet(ep, GC_ACCEPT, &ep->av->peer[0].addr, 0);
    if (k != NULL) {
        gc_packet_queue(ep, k, gc_now() + gc_dice(500000));
        ep->state = GC_ANSWERED;
    }
    pthread_mutex_unlock(&ep->d->lock);
    return k != NULL && write(ep->d->bell, &one, sizeof(one)) > 0 ? 0 : -FI_ENOMEM;
}

static int conn_shutdown(struct fid_ep *fid, uint64_t flags)
{
    struct gc_ep *ep = (struct gc_ep *)(void *)fid;
    (void)flags;
    pthread_mutex_lock(&ep->d->lock);
    part(ep);
    if (!ep->av->peer[0].dead) {
        ep->av->peer[0].dead = true;
        flush_receives(ep);
        gc_peer_flush(ep, 0);
    }
    pthread_mutex_unlock(&ep->d->lock);
    return 0;
}

struct fi_ops_cm gc_conn_cm = {.size = sizeof(gc_conn_cm),
                               .connect = conn_connect,
                               .accept = conn_accept,
                               .shutdown = conn_shutdown};
