/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: whose key it is, how wide, from when on, and bound to what. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/providers/contract/contract.h"
#include "transport/ofi/ofi_dmabuf.h"

static struct gc_mr *of(struct fid *fid)
{
    return (struct gc_mr *)(void *)fid;
}

static bool in_use(const struct gc_mr *mr)
{
    for (const struct gc_ep *ep = mr->d->eps; ep != NULL; ep = ep->next) {
        for (const struct gc_op *op = ep->ops; op != NULL; op = op->next)
            if (op->mr == mr && !op->completed)
                return true;
        for (const struct gc_recv *r = ep->recvs; r != NULL; r = r->next)
            if (r->mr == mr)
                return true;
    }
    return false;
}

static int mr_close(struct fid *fid)
{
    struct gc_mr *mr = of(fid);
    struct gc_domain *d = mr->d;
    pthread_mutex_lock(&d->lock);
    if (in_use(mr))
        gc_broken(0, "memory is given back that an operation under way uses");
    struct gc_mr **at = &d->mrs;
    while (*at != mr)
        at = &(*at)->next;
    *at = mr->next;
    d->n_mrs--;
    if (mr->ep != NULL)
        mr->ep->n_mrs--;
    pthread_mutex_unlock(&d->lock);
    free(mr);
    return 0;
}

static int mr_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
    struct gc_mr *mr = of(fid);
    (void)flags;
    if ((mr->d->p->mr_mode & FI_MR_ENDPOINT) == 0)
        return gc_broken(-FI_EINVAL, "memory is bound, which this provider does not want");
    if (to->fclass != FI_CLASS_EP)
        return gc_broken(-FI_EINVAL, "memory is bound to what is no endpoint");
    if (mr->ep != NULL)
        return gc_broken(-FI_EINVAL, "memory is bound to a second endpoint");
    pthread_mutex_lock(&mr->d->lock);
    mr->ep = (struct gc_ep *)(void *)to;
    mr->ep->n_mrs++;
    pthread_mutex_unlock(&mr->d->lock);
    return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
    struct gc_mr *mr = of(fid);
    (void)arg;
    if (command != FI_ENABLE)
        return -FI_ENOSYS;
    if ((mr->d->p->mr_mode & FI_MR_ENDPOINT) == 0)
        return gc_broken(-FI_EINVAL, "memory is enabled, which this provider does not want");
    if (mr->ep == NULL)
        return gc_broken(-FI_EINVAL, "memory is enabled before it is bound to an endpoint");
    if (!mr->ep->enabled)
        return gc_broken(-FI_EOPBADSTATE, "memory is enabled before its endpoint is");
    pthread_mutex_lock(&mr->d->lock);
    mr->enabled = true;
    mr->fid.key = mr->key; /* not before */
    pthread_mutex_unlock(&mr->d->lock);
    return 0;
}

static struct fi_ops mr_fi = {
    .size = sizeof(mr_fi), .close = mr_close, .bind = mr_bind, .control = mr_control};

static bool taken(const struct gc_domain *d, uint64_t key)
{
    for (const struct gc_mr *m = d->mrs; m != NULL; m = m->next)
        if (m->key == key)
            return true;
    return false;
}

static int choose_key(struct gc_domain *d, const struct fi_mr_attr *attr, uint64_t *key)
{
    bool remote = (attr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0;
    *key = attr->requested_key;
    if ((d->p->mr_mode & FI_MR_PROV_KEY) != 0) {
        d->last_key += 0x101;
        *key = d->p->key_size == 8 ? d->last_key | 1ull << 62 : d->last_key & 0xffffffffu;
        return 0;
    }
    if (d->p->key_size < 8 && *key >> (8 * d->p->key_size) != 0)
        return gc_broken(-FI_EKEYREJECTED, "key %#llx is wider than %zu bytes",
                         (unsigned long long)*key, d->p->key_size);
    if (remote && taken(d, *key))
        return -FI_ENOKEY;
    return 0;
}

static int add(struct gc_domain *d, const struct fi_mr_attr *attr, struct gc_mr *mr)
{
    if (d->p->most_mrs != 0 && d->n_mrs >= d->p->most_mrs)
        return gc_broken(-FI_ENOSPC, "more than %zu registrations", d->p->most_mrs);
    int rc = choose_key(d, attr, &mr->key);
    if (rc != 0)
        return rc;
    mr->next = d->mrs;
    d->mrs = mr;
    d->n_mrs++;
    return 0;
}

int gc_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                  struct fid_mr **out)
{
    struct gc_domain *d = (struct gc_domain *)(void *)fid;
    bool bound = (d->p->mr_mode & FI_MR_ENDPOINT) != 0;
    if (attr->iov_count != 1 || (flags & ~FI_MR_DMABUF) != 0 || attr->offset != 0)
        return gc_broken(-FI_EINVAL, "registration of more than one plain range");
    struct gc_mr *mr = calloc(1, sizeof(*mr));
    if (mr == NULL)
        return -FI_ENOMEM;
    mr->d = d;
    mr->access = attr->access;
    int rc = gc_gpu_range(d, attr, flags, mr);
    pthread_mutex_lock(&d->lock);
    if (rc == 0)
        rc = add(d, attr, mr);
    pthread_mutex_unlock(&d->lock);
    if (rc != 0) {
        free(mr);
        return rc;
    }
    mr->fid.fid = (struct fid){.fclass = FI_CLASS_MR, .context = attr->context, .ops = &mr_fi};
    mr->fid.mem_desc = mr;
    mr->enabled = !bound;
    mr->fid.key = bound ? FI_KEY_NOTAVAIL : mr->key;
    *out = &mr->fid;
    return 0;
}

struct gc_mr *gc_mr_find(struct gc_ep *ep, uint64_t key)
{
    bool bound = (ep->p->mr_mode & FI_MR_ENDPOINT) != 0;
    for (struct gc_mr *m = ep->d->mrs; m != NULL; m = m->next)
        if (m->enabled && m->key == key && (!bound || m->ep == ep) &&
            (m->access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0)
            return m;
    return NULL;
}

int gc_mr_local(struct gc_domain *d, const void *addr, size_t len, void *desc, const char *what)
{
    const char *at = addr;
    if (len == 0)
        return 0;
    if ((d->p->mr_mode & FI_MR_LOCAL) == 0 && !(d->hmem && gc_gpu_is(addr, len)))
        return 0;
    for (const struct gc_mr *m = d->mrs; m != NULL; m = m->next)
        if (m == desc)
            return at >= m->addr && at + len <= m->addr + m->len
                       ? 0
                       : gc_broken(-FI_EINVAL, "%s: the descriptor is of other memory", what);
    return gc_broken(-FI_EINVAL, "%s: FI_MR_LOCAL, but %s", what,
                     desc == NULL ? "no descriptor" : "the descriptor is of no registration");
}
