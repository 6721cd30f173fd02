/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that belongs to an endpoint (FI_MR_ENDPOINT). Each domain then has one endpoint that
 * nobody posts to anything by: all memory that peers reach is bound to it, and it is the target of
 * every lane's reads, writes and atomics, so that a region is registered once and has one key.
 * Messages still go from lane to lane: nothing keeps them behind the writes, nor the writes behind
 * them. Its queue stays empty, and is not read: targets of such providers are passive.
 */
#include <string.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

int gi_ofi_target_open(struct gi_ofi_domain *d)
{
    struct gi_ofi_target *t = &d->target;
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE, .size = 64};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = (size_t)d->size};
    size_t room = sizeof(t->name);
    if ((d->pick.info->domain_attr->mr_mode & FI_MR_ENDPOINT) == 0)
        return GIN_OK;
    int st = GIN_OK, rc = fi_cq_open(d->domain, &cq, &t->cq, NULL);
    if (rc != 0)
        return gi_ofi_said(d, "opening the queue of memory's endpoint", rc);
    rc = fi_av_open(d->domain, &av, &t->av, NULL);
    if (rc != 0) {
        st = gi_ofi_said(d, "opening the address vector of memory's endpoint", rc);
        goto close_cq;
    }
    rc = fi_endpoint(d->domain, d->pick.info, &t->ep, NULL);
    if (rc != 0) {
        st = gi_ofi_said(d, "opening memory's endpoint", rc);
        goto close_av;
    }
    rc = gi_ofi_enable(d, t->ep, &t->av->fid, t->cq);
    if (rc == 0)
        rc = fi_getname(&t->ep->fid, t->name, &room);
    if (rc != 0) {
        st = gi_ofi_said(d, "enabling memory's endpoint", rc);
        goto close_ep;
    }
    t->name_len = (uint32_t)room;
    return GIN_OK;

close_ep:
    fi_close(&t->ep->fid);
    t->ep = NULL;
close_av:
    fi_close(&t->av->fid);
close_cq:
    fi_close(&t->cq->fid);
    return st;
}

void gi_ofi_target_close(struct gi_ofi_domain *d)
{
    struct gi_ofi_target *t = &d->target;
    if (t->ep == NULL)
        return;
    int rc = fi_close(&t->ep->fid);
    if (rc != 0)
        gi_warn("ofi", "%s: closing the endpoint that memory is bound to: %s", d->caps.name,
                fi_strerror(-rc));
    fi_close(&t->av->fid);
    fi_close(&t->cq->fid);
    t->ep = NULL;
}

int gi_ofi_target_bind(struct gi_ofi_domain *d, struct fid_mr *mr)
{
    if (d->target.ep == NULL)
        return 0;
    int rc = fi_mr_bind(mr, &d->target.ep->fid, 0);
    return rc != 0 ? rc : fi_mr_enable(mr);
}
