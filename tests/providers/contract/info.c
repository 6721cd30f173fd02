/* SPDX-License-Identifier: BSD-3-Clause */
/* What is offered, and to whom: nothing to those who do not offer the modes that it takes. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "tests/providers/contract/contract.h"

static bool differs(const char *wanted, const char *mine)
{
    return wanted != NULL && strcasecmp(wanted, mine) != 0;
}

static bool suits_endpoint(const struct gc_profile *p, const struct fi_info *h)
{
    uint64_t mode = p->mode & ~FI_RX_CQ_DATA;
    enum fi_ep_type type = p->connected ? FI_EP_MSG : FI_EP_RDM;
    if (h->ep_attr != NULL && h->ep_attr->type != FI_EP_UNSPEC && h->ep_attr->type != type)
        return false;
    if (h->ep_attr != NULL && h->ep_attr->max_msg_size > p->max_rma)
        return false;
    if (h->tx_attr != NULL && (h->tx_attr->msg_order & ~p->order) != 0)
        return false;
    if (h->tx_attr != NULL && h->tx_attr->inject_size > p->inject)
        return false;
    if (h->rx_attr != NULL && (h->rx_attr->msg_order & ~p->order) != 0)
        return false;
    return (h->caps & ~p->caps) == 0 && (mode & ~h->mode) == 0;
}

static bool suits(const struct gc_profile *p, const struct fi_info *h)
{
    if (h == NULL)
        return true;
    const struct fi_domain_attr *d = h->domain_attr;
    const struct fi_fabric_attr *f = h->fabric_attr;
    /* Those who would stand on top of it ask with their own names, too: none of that. */
    if (f != NULL && (differs(f->prov_name, p->provider) || differs(f->name, p->fabric)))
        return false;
    if (d != NULL && differs(d->name, p->domain))
        return false;
    if (d != NULL && (p->mr_mode & ~d->mr_mode) != 0)
        return false;
    /* Who has GPU memory must be ready to register it. */
    if ((h->caps & FI_HMEM) != 0 && (d == NULL || (d->mr_mode & FI_MR_HMEM) == 0))
        return false;
    /* Where immediates take receives whether one likes it or not, the mode must be offered. */
    if ((p->mode & FI_RX_CQ_DATA & ~h->mode) != 0)
        return false;
    return suits_endpoint(p, h);
}

static void fill_domain(const struct gc_profile *p, struct fi_domain_attr *d)
{
    d->name = strdup(p->domain);
    d->threading = FI_THREAD_SAFE;
    d->control_progress = d->data_progress = p->manual ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO;
    d->resource_mgmt = p->overrun ? FI_RM_DISABLED : FI_RM_ENABLED;
    d->av_type = FI_AV_TABLE;
    d->mr_mode = p->mr_mode;
    d->mr_key_size = p->key_size;
    d->cq_data_size = p->cq_data_size;
    d->cq_cnt = d->ep_cnt = 256;
    d->tx_ctx_cnt = d->rx_ctx_cnt = 256;
    d->max_ep_tx_ctx = d->max_ep_rx_ctx = 1;
    d->mr_iov_limit = 1;
    d->mr_cnt = p->most_mrs != 0 ? p->most_mrs : 65536;
    d->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

static void fill_endpoint(const struct gc_profile *p, const struct fi_info *h, struct fi_info *i)
{
    uint64_t tx = h != NULL && h->tx_attr != NULL ? h->tx_attr->msg_order : p->order;
    uint64_t rx = h != NULL && h->rx_attr != NULL ? h->rx_attr->msg_order : p->order;
    /* Order that costs nothing is given without asking. */
    i->tx_attr->msg_order = tx | (p->order & ~FI_ORDER_WAW & ~FI_ORDER_RMA_WAW);
    i->rx_attr->msg_order = rx | (p->order & ~FI_ORDER_WAW & ~FI_ORDER_RMA_WAW);
    i->ep_attr->type = p->connected ? FI_EP_MSG : FI_EP_RDM;
    i->ep_attr->max_msg_size = p->max_rma;
    if ((tx & rx & (FI_ORDER_WAW | FI_ORDER_RMA_WAW)) != 0)
        i->ep_attr->max_order_waw_size = p->max_rma;
    if ((p->order & FI_ORDER_RAW) != 0)
        i->ep_attr->max_order_raw_size = p->max_rma;
    i->ep_attr->tx_ctx_cnt = i->ep_attr->rx_ctx_cnt = 1;
    i->tx_attr->inject_size = p->inject;
    i->tx_attr->size = p->tx;
    i->rx_attr->size = p->rx;
    i->tx_attr->iov_limit = i->rx_attr->iov_limit = i->tx_attr->rma_iov_limit = 1;
    i->tx_attr->caps = i->rx_attr->caps = i->caps;
    i->tx_attr->mode = i->rx_attr->mode = i->mode;
}

struct fi_info *gc_info(const struct fi_info *hints)
{
    const struct gc_profile *p = gc_profile();
    struct fi_info *i = fi_allocinfo();
    if (i == NULL)
        return NULL;
    i->fabric_attr->name = strdup(p->fabric); /* libfabric adds the provider's */
    fill_domain(p, i->domain_attr);
    i->caps = hints != NULL && hints->caps != 0 ? hints->caps : p->caps & ~FI_HMEM;
    if (i->caps & FI_HMEM)
        i->domain_attr->mr_mode |= FI_MR_HMEM;
    i->mode = p->mode;
    /* Who offers to lose receives to immediates, loses them. */
    if (p->imm == GC_IMM_RECV)
        i->mode |= FI_RX_CQ_DATA;
    i->addr_format = FI_ADDR_PSMX; /* none of the usual ones */
    fill_endpoint(p, hints, i);
    return i;
}

int gc_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **info)
{
    const struct gc_profile *p = gc_profile();
    (void)version, (void)node, (void)service, (void)flags;
    if (p == NULL || !suits(p, hints))
        return -FI_ENODATA;
    *info = gc_info(hints);
    return *info != NULL ? 0 : -FI_ENOMEM;
}
