/* SPDX-License-Identifier: BSD-3-Clause */
/* Fabric and domain, and the thread that is the device of the latter. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "tests/providers/contract/contract.h"

#define MOST_EPS 1024

/* ---- the device ---- */

/* Descriptors to wait for, and how long; under the lock. */
static nfds_t what_to_wait_for(struct gc_domain *d, struct pollfd *fds, uint64_t *due)
{
    nfds_t n = 1;
    fds[0] = (struct pollfd){.fd = d->bell, .events = POLLIN};
    *due = UINT64_MAX;
    for (struct gc_ep *ep = d->eps; ep != NULL; ep = ep->next) {
        if (!ep->enabled)
            continue;
        uint64_t at = gc_nic_due(ep);
        *due = at < *due ? at : *due;
        if (n < MOST_EPS && (ep->kept == NULL || ep->p->full != GC_FULL_STALLS) &&
            gc_cq_room(ep->rx_cq))
            fds[n++] = (struct pollfd){.fd = ep->fd, .events = POLLIN};
    }
    return n;
}

static void *device(void *arg)
{
    struct gc_domain *d = arg;
    struct pollfd fds[MOST_EPS];
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        uint64_t due, ring;
        for (struct gc_ep *ep = d->eps; ep != NULL; ep = ep->next) {
            if (!ep->enabled)
                continue;
            gc_nic_step(ep);
            if (d->p->wakes && gc_dice(100) == 0)
                gc_cq_ring(ep->rx_cq);
        }
        nfds_t n = what_to_wait_for(d, fds, &due);
        pthread_mutex_unlock(&d->lock);
        uint64_t now = gc_now(), ns = due <= now ? 1000 : due - now;
        /* not for ever: a full receiver does not say when it has room */
        ns = ns < 20000000u ? ns : 20000000u;
        ppoll(fds, n, &(struct timespec){.tv_nsec = (long)ns}, NULL);
        if (fds[0].revents != 0 && read(d->bell, &ring, sizeof(ring)) < 0)
            ring = 0;
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- domain ---- */

static int domain_close(struct fid *fid)
{
    struct gc_domain *d = (struct gc_domain *)(void *)fid;
    uint64_t one = 1;
    pthread_mutex_lock(&d->lock);
    bool busy = d->eps != NULL || d->mrs != NULL || d->cqs + d->avs != 0;
    d->stop = !busy;
    pthread_mutex_unlock(&d->lock);
    if (busy)
        return gc_broken(-FI_EBUSY, "a domain is closed before all that it has");
    if (!d->p->manual && write(d->bell, &one, sizeof(one)) == sizeof(one))
        pthread_join(d->thread, NULL);
    close(d->bell);
    d->fabric->domains--;
    pthread_mutex_destroy(&d->lock);
    free(d);
    return 0;
}

static struct fi_ops domain_fi = {.size = sizeof(domain_fi), .close = domain_close};
static struct fi_ops_domain domain_ops = {.size = sizeof(domain_ops),
                                          .av_open = gc_av_open,
                                          .cq_open = gc_cq_open,
                                          .endpoint = gc_ep_open};
static struct fi_ops_mr domain_mr = {.size = sizeof(domain_mr), .regattr = gc_mr_regattr};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
                       void *context)
{
    struct gc_domain *d = calloc(1, sizeof(*d));
    const struct gc_profile *p = gc_profile();
    if (d == NULL)
        return -FI_ENOMEM;
    if ((p->mr_mode & ~info->domain_attr->mr_mode) != 0) {
        free(d);
        return gc_broken(-FI_EINVAL, "a domain is opened without the modes of registration");
    }
    d->fid.fid = (struct fid){.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_fi};
    d->fid.ops = &domain_ops;
    d->fid.mr = &domain_mr;
    d->fabric = (struct gc_fabric *)(void *)fabric;
    d->p = p;
    d->hmem = (info->caps & FI_HMEM) != 0;
    d->last_key = 0x100 + gc_dice(1u << 20);
    pthread_mutex_init(&d->lock, NULL);
    d->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->bell < 0 || (!p->manual && pthread_create(&d->thread, NULL, device, d) != 0)) {
        if (d->bell >= 0)
            close(d->bell);
        free(d);
        return -FI_ENOMEM;
    }
    d->fabric->domains++;
    *domain = &d->fid;
    return 0;
}

/* ---- fabric ---- */

static int fabric_close(struct fid *fid)
{
    struct gc_fabric *f = (struct gc_fabric *)(void *)fid;
    if (f->domains != 0)
        return gc_broken(-FI_EBUSY, "a fabric is closed before its domains");
    free(f);
    return 0;
}

static struct fi_ops fabric_fi = {.size = sizeof(fabric_fi), .close = fabric_close};
static struct fi_ops_fabric fabric_ops = {.size = sizeof(fabric_ops),
                                          .domain = domain_open,
                                          .passive_ep = gc_passive_open,
                                          .eq_open = gc_eq_open,
                                          .trywait = gc_trywait};

int gc_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
    struct gc_fabric *f = calloc(1, sizeof(*f));
    (void)attr;
    if (f == NULL)
        return -FI_ENOMEM;
    f->fid.fid = (struct fid){.fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_fi};
    f->fid.ops = &fabric_ops;
    *fabric = &f->fid;
    return 0;
}
