/* SPDX-License-Identifier: BSD-3-Clause */
/* The address vector: one for each endpoint, as EFA wants it. */
#include <stdlib.h>
#include <string.h>
#include "tests/providers/contract/contract.h"

static int av_close(struct fid *fid)
{
    struct gc_av *av = (struct gc_av *)(void *)fid;
    if (av->ep != NULL)
        return gc_broken(-FI_EBUSY, "an address vector is closed before its endpoint");
    pthread_mutex_lock(&av->d->lock);
    av->d->avs--;
    pthread_mutex_unlock(&av->d->lock);
    free(av->peer);
    free(av);
    return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out,
                     uint64_t flags, void *context)
{
    struct gc_av *av = (struct gc_av *)(void *)fid;
    const struct gc_addr *a = addr;
    (void)flags, (void)context;
    pthread_mutex_lock(&av->d->lock);
    for (size_t i = 0; i < count; i++) {
        if (av->n == av->room) {
            size_t room = av->room * 2 + 8;
            struct gc_peer *p = realloc(av->peer, room * sizeof(*p));
            if (p == NULL) {
                pthread_mutex_unlock(&av->d->lock);
                return -FI_ENOMEM;
            }
            av->peer = p;
            av->room = room;
        }
        av->peer[av->n] = (struct gc_peer){.addr = a[i]};
        out[i] = av->n++;
    }
    pthread_mutex_unlock(&av->d->lock);
    return (int)count;
}

static struct fi_ops av_fi = {.size = sizeof(av_fi), .close = av_close};
static struct fi_ops_av av_ops = {.size = sizeof(av_ops), .insert = av_insert};

int gc_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out,
               void *context)
{
    struct gc_domain *d = (struct gc_domain *)(void *)domain;
    if (attr->type == FI_AV_MAP)
        return gc_broken(-FI_ENOSYS, "an address vector of type FI_AV_MAP");
    struct gc_av *av = calloc(1, sizeof(*av));
    if (av == NULL)
        return -FI_ENOMEM;
    av->d = d;
    av->fid.fid = (struct fid){.fclass = FI_CLASS_AV, .context = context, .ops = &av_fi};
    av->fid.ops = &av_ops;
    pthread_mutex_lock(&d->lock);
    d->avs++;
    pthread_mutex_unlock(&d->lock);
    *out = &av->fid;
    return 0;
}

fi_addr_t gc_peer_find(const struct gc_ep *ep, const struct gc_addr *a)
{
    for (size_t i = 0; i < ep->av->n; i++)
        if (ep->av->peer[i].addr.id == a->id)
            return i;
    return FI_ADDR_NOTAVAIL;
}
