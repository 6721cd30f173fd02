/* SPDX-License-Identifier: BSD-3-Clause */
/* The completion queue: what it holds, and what becomes of what it does not hold. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "tests/providers/contract/contract.h"

#define MARGIN 16u /* entries that one arrival may make, and then some */

static struct gc_cq *of(struct fid *fid)
{
    return (struct gc_cq *)(void *)fid;
}

void gc_cq_ring(struct gc_cq *cq)
{
    uint64_t one = 1;
    if (cq->bell >= 0 && write(cq->bell, &one, sizeof(one)) < 0)
        return;
}

/* Providers that protect their queues take nothing in while there is no room. */
bool gc_cq_room(const struct gc_cq *cq)
{
    return cq->d->p->overrun || cq->n + MARGIN < cq->size;
}

void gc_cq_add(struct gc_cq *cq, const struct fi_cq_data_entry *e, fi_addr_t from, struct gc_ep *tx)
{
    if (cq->d->p->overrun && cq->n >= cq->size && !cq->overrun) {
        gc_broken(0, "a completion queue of %zu entries is overrun", cq->size);
        cq->overrun = true;
    }
    if (cq->n == cq->room) {
        size_t room = cq->room * 2 + 64;
        struct gc_entry *r = malloc(room * sizeof(*r));
        if (r == NULL)
            abort();
        for (size_t i = 0; i < cq->n; i++)
            r[i] = cq->ring[(cq->first + i) % cq->room];
        free(cq->ring);
        cq->ring = r;
        cq->room = room;
        cq->first = 0;
    }
    cq->ring[(cq->first + cq->n) % cq->room] = (struct gc_entry){*e, from, tx};
    __atomic_store_n(&cq->n, cq->n + 1, __ATOMIC_RELEASE);
    gc_cq_ring(cq);
}

void gc_cq_fail(struct gc_cq *cq, void *context, uint64_t flags, int error, struct gc_ep *tx)
{
    struct gc_error *x = calloc(1, sizeof(*x));
    if (x == NULL)
        abort();
    x->e.op_context = context;
    x->e.flags = flags;
    x->e.err = cq->d->p->negative && gc_dice(2) == 0 ? -error : error;
    x->tx = tx;
    *cq->last_error = x;
    cq->last_error = &x->next;
    gc_cq_ring(cq);
}

void gc_cq_forget(struct gc_cq *cq, struct gc_ep *ep)
{
    for (size_t i = 0; i < cq->n; i++) {
        struct gc_entry *e = &cq->ring[(cq->first + i) % cq->room];
        e->tx = e->tx == ep ? NULL : e->tx;
    }
    for (struct gc_error *x = cq->errors; x != NULL; x = x->next)
        x->tx = x->tx == ep ? NULL : x->tx;
}

/* ---- reading ---- */

static void drive(struct gc_cq *cq)
{
    for (struct gc_ep *ep = cq->d->eps; ep != NULL; ep = ep->next)
        if (ep->enabled && (ep->tx_cq == cq || ep->rx_cq == cq))
            gc_nic_step(ep);
}

static ssize_t take(struct gc_cq *cq, struct fi_cq_data_entry *out, size_t count, fi_addr_t *from)
{
    size_t k = 0;
    if (cq->overrun)
        return -FI_EOVERRUN;
    if (cq->errors != NULL)
        return -FI_EAVAIL;
    for (; k < count && cq->n != 0; k++) {
        struct gc_entry *e = &cq->ring[cq->first];
        out[k] = e->e;
        if (from != NULL)
            from[k] = e->from;
        if (e->tx != NULL)
            e->tx->tx_used--;
        cq->first = (cq->first + 1) % cq->room;
        cq->n--;
    }
    return k != 0 ? (ssize_t)k : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *from)
{
    struct gc_cq *cq = (struct gc_cq *)(void *)fid;
    pthread_mutex_lock(&cq->d->lock);
    if (cq->d->p->manual)
        drive(cq);
    bool was_full = !gc_cq_room(cq);
    ssize_t n = take(cq, buf, count, from);
    uint64_t one = 1;
    if (was_full && n > 0 && write(cq->d->bell, &one, sizeof(one)) < 0)
        n = n + 0; /* the bell rings already */
    pthread_mutex_unlock(&cq->d->lock);
    return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *e, uint64_t flags)
{
    struct gc_cq *cq = (struct gc_cq *)(void *)fid;
    (void)flags;
    pthread_mutex_lock(&cq->d->lock);
    struct gc_error *x = cq->errors;
    if (x != NULL) {
        cq->errors = x->next;
        if (x->next == NULL)
            cq->last_error = &cq->errors;
        *e = x->e;
        if (x->tx != NULL)
            x->tx->tx_used--;
    }
    pthread_mutex_unlock(&cq->d->lock);
    free(x);
    return x != NULL ? 1 : -FI_EAGAIN;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *data, char *buf,
                               size_t len)
{
    (void)fid, (void)prov_errno, (void)data, (void)buf, (void)len;
    return "as the contract has it";
}

/* ---- waiting ---- */

int gc_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
    int rc = 0;
    (void)fabric;
    for (int i = 0; i < count; i++) {
        struct gc_cq *cq = of(fids[i]);
        uint64_t rings;
        pthread_mutex_lock(&cq->d->lock);
        if (cq->bell < 0)
            rc = gc_broken(-FI_EINVAL, "waiting for a queue that cannot be waited for");
        else if (cq->n != 0 || cq->errors != NULL || cq->overrun ||
                 (cq->d->p->wakes && gc_dice(8) == 0))
            rc = -FI_EAGAIN;
        else if (read(cq->bell, &rings, sizeof(rings)) < 0)
            rings = 0;
        pthread_mutex_unlock(&cq->d->lock);
    }
    return rc;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
    struct gc_cq *cq = of(fid);
    if (command != FI_GETWAIT || cq->bell < 0)
        return -FI_ENOSYS;
    *(int *)arg = cq->bell;
    return 0;
}

static int cq_close(struct fid *fid)
{
    struct gc_cq *cq = of(fid);
    if (cq->eps != 0)
        return gc_broken(-FI_EBUSY, "a completion queue is closed before its endpoints");
    for (struct gc_error *x = cq->errors, *next; x != NULL; x = next) {
        next = x->next;
        free(x);
    }
    if (cq->bell >= 0)
        close(cq->bell);
    pthread_mutex_lock(&cq->d->lock);
    cq->d->cqs--;
    pthread_mutex_unlock(&cq->d->lock);
    free(cq->ring);
    free(cq);
    return 0;
}

static struct fi_ops cq_fi = {.size = sizeof(cq_fi), .close = cq_close, .control = cq_control};
static struct fi_ops_cq cq_ops = {.size = sizeof(cq_ops),
                                  .read = cq_read,
                                  .readfrom = cq_readfrom,
                                  .readerr = cq_readerr,
                                  .strerror = cq_strerror};

int gc_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
               void *context)
{
    struct gc_domain *d = (struct gc_domain *)(void *)domain;
    bool wait = attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC;
    if (attr->format != FI_CQ_FORMAT_DATA || (wait && !d->p->wait_fd))
        return -FI_ENOSYS;
    struct gc_cq *cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return -FI_ENOMEM;
    cq->d = d;
    cq->size = attr->size;
    cq->last_error = &cq->errors;
    cq->bell = wait ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    cq->fid.fid = (struct fid){.fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fi};
    cq->fid.ops = &cq_ops;
    pthread_mutex_lock(&d->lock);
    d->cqs++;
    pthread_mutex_unlock(&d->lock);
    *out = &cq->fid;
    return 0;
}
