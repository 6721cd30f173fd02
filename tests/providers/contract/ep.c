/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint: what must be bound before it is enabled, its name, its end. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "tests/providers/contract/contract.h"

static struct gc_ep *of(struct fid *fid)
{
    return (struct gc_ep *)(void *)fid;
}

static void drop_all(struct gc_ep *ep)
{
    for (struct gc_op *o = ep->ops, *next; o != NULL; o = next) {
        next = o->next;
        free(o);
    }
    for (struct gc_recv *r = ep->recvs, *next; r != NULL; r = next) {
        next = r->next;
        free(r);
    }
    for (struct gc_packet *k = ep->out.next, *next; k != &ep->out; k = next) {
        next = k->next;
        free(k);
    }
    for (struct gc_packet *k = ep->kept, *next; k != NULL; k = next) {
        next = k->next;
        free(k);
    }
    for (struct gc_partial *q = ep->partial, *next; q != NULL; q = next) {
        next = q->next;
        free(q);
    }
}

static void unlink_ep(struct gc_ep *ep)
{
    struct gc_ep **at = &ep->d->eps;
    while (*at != ep)
        at = &(*at)->next;
    *at = ep->next;
    if (ep->tx_cq != NULL) {
        gc_cq_forget(ep->tx_cq, ep);
        ep->tx_cq->eps--;
    }
    if (ep->rx_cq != NULL)
        ep->rx_cq->eps--;
    if (ep->av != NULL)
        ep->av->ep = NULL;
}

static int ep_close(struct fid *fid)
{
    struct gc_ep *ep = of(fid);
    struct gc_domain *d = ep->d;
    pthread_mutex_lock(&d->lock);
    if (ep->n_mrs != 0) {
        pthread_mutex_unlock(&d->lock);
        return gc_broken(-FI_EBUSY, "an endpoint is closed before the memory bound to it");
    }
    if (ep->p->connected)
        gc_conn_close(ep);
    unlink_ep(ep);
    close(ep->fd);
    drop_all(ep);
    pthread_mutex_unlock(&d->lock);
    free(ep);
    return 0;
}

static int bind_cq(struct gc_ep *ep, struct gc_cq *cq, uint64_t flags)
{
    if ((flags & FI_TRANSMIT) != 0) {
        ep->tx_cq = cq;
        ep->selective = (flags & FI_SELECTIVE_COMPLETION) != 0 && !ep->p->always;
        cq->eps++;
    }
    if ((flags & FI_RECV) != 0) {
        ep->rx_cq = cq;
        cq->eps++;
    }
    return 0;
}

static int bind_av(struct gc_ep *ep, struct gc_av *av)
{
    if (av->ep != NULL)
        return gc_broken(-FI_EINVAL, "an address vector is bound to a second endpoint");
    av->ep = ep;
    ep->av = av;
    return 0;
}

static int ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
    struct gc_ep *ep = of(fid);
    int rc = -FI_ENOSYS;
    if (ep->enabled)
        return gc_broken(-FI_EOPBADSTATE, "something is bound to an enabled endpoint");
    pthread_mutex_lock(&ep->d->lock);
    if (to->fclass == FI_CLASS_CQ)
        rc = bind_cq(ep, (struct gc_cq *)(void *)to, flags);
    else if (to->fclass == FI_CLASS_EQ && ep->p->connected)
        gc_conn_bind(ep, (struct gc_eq *)(void *)to), rc = 0;
    else if (to->fclass == FI_CLASS_AV && !ep->p->connected)
        rc = bind_av(ep, (struct gc_av *)(void *)to);
    pthread_mutex_unlock(&ep->d->lock);
    return rc;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
    struct gc_ep *ep = of(fid);
    (void)arg;
    if (command != FI_ENABLE)
        return -FI_ENOSYS;
    if (ep->tx_cq == NULL || ep->rx_cq == NULL)
        return gc_broken(-FI_ENOCQ, "an endpoint is enabled without a queue");
    if (ep->p->connected && ep->eq == NULL)
        return gc_broken(-FI_ENOEQ, "an endpoint is enabled without a queue of events");
    if (ep->av == NULL)
        return gc_broken(-FI_ENOAV, "an endpoint is enabled without an address vector");
    pthread_mutex_lock(&ep->d->lock);
    ep->enabled = true;
    pthread_mutex_unlock(&ep->d->lock);
    return 0;
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
    struct gc_ep *ep = of(fid);
    size_t room = *len;
    *len = sizeof(ep->self);
    if (!ep->enabled)
        return gc_broken(-FI_EOPBADSTATE, "an endpoint's name is asked before it is enabled");
    if (room < sizeof(ep->self))
        return -FI_ETOOSMALL;
    memcpy(addr, &ep->self, sizeof(ep->self));
    return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
    struct gc_ep *ep = of(fid);
    const int *p2p = value;
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_FI_HMEM_P2P || !ep->d->hmem)
        return -FI_ENOPROTOOPT;
    if (ep->enabled || len != sizeof(*p2p))
        return gc_broken(-FI_EINVAL, "an option is set of an enabled endpoint");
    ep->p2p = *p2p == FI_HMEM_P2P_REQUIRED;
    return ep->p->calls && ep->p2p ? -FI_EOPNOTSUPP : 0;
}

static struct fi_ops ep_fi = {
    .size = sizeof(ep_fi), .close = ep_close, .bind = ep_bind, .control = ep_control};
static struct fi_ops_ep ep_ops = {.size = sizeof(ep_ops), .setopt = ep_setopt};
static struct fi_ops_cm ep_cm = {.size = sizeof(ep_cm), .getname = ep_getname};

/* A socket with a name that the system chooses, and that leaves nothing behind. */
int gc_socket(struct gc_addr *self)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(a);
    int size = 1 << 20;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&a, sizeof(a.sun_family)) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    memcpy(self->name, a.sun_path, sizeof(self->name));
    self->id = gc_now() << 20 ^ (uint64_t)getpid() << 44 ^ gc_dice(1u << 20);
    return fd;
}

int gc_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
    struct gc_ep *ep = calloc(1, sizeof(*ep));
    if (ep == NULL)
        return -FI_ENOMEM;
    ep->d = (struct gc_domain *)(void *)domain;
    ep->p = ep->d->p;
    ep->ordered = (info->tx_attr->msg_order & info->rx_attr->msg_order & ep->p->order &
                   (FI_ORDER_WAW | FI_ORDER_RMA_WAW)) != 0;
    ep->eats = ((info->mode | info->rx_attr->mode) & FI_RX_CQ_DATA) != 0;
    ep->last_op = &ep->ops;
    ep->last_recv = &ep->recvs;
    ep->last_kept = &ep->kept;
    ep->out.next = ep->out.prev = &ep->out;
    ep->fd = gc_socket(&ep->self);
    if (ep->fd < 0 || (ep->p->connected && gc_conn_open(ep, info->handle) != 0)) {
        if (ep->fd >= 0)
            close(ep->fd);
        free(ep);
        return -FI_ENOMEM;
    }
    ep->fid.fid = (struct fid){.fclass = FI_CLASS_EP, .context = context, .ops = &ep_fi};
    ep->fid.ops = &ep_ops;
    ep->fid.cm = ep->p->connected ? &gc_conn_cm : &ep_cm;
    ep->fid.msg = &gc_ops_msg;
    ep->fid.rma = &gc_ops_rma;
    ep->fid.atomic = &gc_ops_atomic;
    pthread_mutex_lock(&ep->d->lock);
    ep->next = ep->d->eps;
    ep->d->eps = ep;
    pthread_mutex_unlock(&ep->d->lock);
    *out = &ep->fid;
    return 0;
}
