/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of capabilities, as the provider promises them. What is known to be untrue is
 * corrected by ofi_quirk.c, what is found to be untrue by ofi_selftest.c. */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

/* Longer pieces gain nothing, and some providers fail with them. */
#define MOST_BYTES (1ull << 30)
#define MOST_DEPTH 4096u

void gi_ofi_note(struct gi_ofi_domain *d, const char *fmt, ...)
{
    size_t len = strlen(d->notes);
    va_list ap;
    if (len + 2 >= sizeof(d->notes))
        return;
    if (len != 0)
        d->notes[len++] = '\n';
    va_start(ap, fmt);
    vsnprintf(d->notes + len, sizeof(d->notes) - len, fmt, ap);
    va_end(ap);
}

/* Both sides keep an order only where both were asked. */
static uint64_t orders(const struct fi_info *i)
{
    return i->tx_attr->msg_order & i->rx_attr->msg_order;
}

/* Memory belongs to an endpoint of its own, which messages do not go to; immediates would. */
static bool bound(const struct fi_info *i)
{
    return (i->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
}

static void fill_order(struct gi_net_caps *c, const struct fi_info *i)
{
    uint64_t o = orders(i), most = i->ep_attr->max_order_waw_size;
    if (o & (FI_ORDER_WAW | FI_ORDER_RMA_WAW))
        c->waw_bytes = most;
    c->saw = (o & FI_ORDER_SAW) != 0 && !bound(i);
    c->was = (o & FI_ORDER_WAS) != 0 && !bound(i);
    c->raw = (o & (FI_ORDER_RAW | FI_ORDER_RMA_RAW)) != 0 &&
             i->ep_attr->max_order_raw_size >= c->max_msg;
    c->sas = (o & FI_ORDER_SAS) != 0;
    /* FI_ORDER_RMA_WAW and FI_ORDER_ATOMIC_WAW order each kind among itself only. */
    c->amo_ordered = c->amo != GI_NET_AMO_NONE && (o & FI_ORDER_WAW) != 0 && most >= 8;
}

static void fill_operations(struct gi_net_caps *c, const struct gi_ofi_domain *d)
{
    const struct fi_info *i = d->pick.info;
    size_t data = i->domain_attr->cq_data_size;
    c->amo = d->pick.rung.atomic ? GI_NET_AMO_NATIVE : GI_NET_AMO_NONE;
    c->amo_fence = c->amo == GI_NET_AMO_NATIVE && (i->caps & FI_FENCE) != 0;
    c->dc = GI_NET_DC_YES; /* the self-test tells */
    c->imm_bits = bound(i) ? 0 : data >= 8 ? 64 : data >= 4 ? 32 : 0;
    c->imm_eats_recv = ((i->mode | i->rx_attr->mode) & FI_RX_CQ_DATA) != 0;
    c->cq_overrun = i->domain_attr->resource_mgmt != FI_RM_ENABLED;
}

/* The provider keeps its own in a post's context, whether or not it is heard of again. */
static bool own_contexts(const struct fi_info *i)
{
    return ((i->mode | i->tx_attr->mode) & (FI_CONTEXT | FI_CONTEXT2)) != 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void fill_sizes(struct gi_net_caps *c, const struct fi_info *i)
{
    /* A write without a request would share its context. */
    c->inject = own_contexts(i) ? 0 : i->tx_attr->inject_size;
    c->max_msg = least(i->ep_attr->max_msg_size, MOST_BYTES);
    c->msg_max = (uint32_t)least(i->ep_attr->max_msg_size, GI_NET_MSG_MAX);
    c->depth = (uint32_t)least(i->tx_attr->size, MOST_DEPTH);
}

static void fill_memory(struct gi_ofi_domain *d)
{
    const struct fi_info *i = d->pick.info;
    int mode = i->domain_attr->mr_mode;
    size_t bytes = i->domain_attr->mr_key_size;
    d->client_keys = (mode & FI_MR_PROV_KEY) == 0;
    d->virt_addr = (mode & FI_MR_VIRT_ADDR) != 0;
    d->key_mask = bytes >= 8 ? INT64_MAX : (1ull << (8 * bytes)) - 1;
    d->caps.mr_local = (mode & FI_MR_LOCAL) != 0;
    d->caps.mr_hmem = d->pick.rung.hmem;
    d->caps.mr_dmabuf = d->pick.rung.hmem && (d->dmabuf || gi_ofi_has_dmabuf());
}

bool gi_ofi_is_loopback(const struct fi_info *i)
{
    const struct sockaddr_in *in = i->src_addr;
    if (i->src_addr == NULL)
        return false;
    if (i->addr_format == FI_SOCKADDR_IN)
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    return i->addr_format == FI_SOCKADDR_IN6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)i->src_addr)->sin6_addr);
}

void gi_ofi_fill_caps(struct gi_ofi_domain *d)
{
    const struct fi_info *i = d->pick.info;
    uint32_t v = i->fabric_attr->prov_version, lib = fi_version();
    struct gi_net_caps *c = &d->caps;
    fill_sizes(c, i);
    fill_operations(c, d);
    fill_order(c, i);
    fill_memory(d);
    d->connected = i->ep_attr->type == FI_EP_MSG;
    d->imm_source = d->pick.rung.source || (d->connected && c->imm_eats_recv);
    c->imm_source = d->imm_source;
    c->msg_source = d->pick.rung.source || d->connected;
    d->inject = i->tx_attr->inject_size;
    d->contexts = own_contexts(i);
    snprintf(d->name, sizeof(d->name), "%s%s", i->fabric_attr->prov_name,
             d->connected ? "-msg" : "");
    c->name = d->name;
    snprintf(d->version, sizeof(d->version), "%u.%u, libfabric %u.%u", FI_MAJOR(v), FI_MINOR(v),
             FI_MAJOR(lib), FI_MINOR(lib));
    c->version = d->version;
    c->local = gi_ofi_is_loopback(i);
    c->fd_each = i->addr_format == FI_SOCKADDR_IN || i->addr_format == FI_SOCKADDR_IN6;
    c->notes = d->notes;
    gi_ofi_note(d, "device: %s of %s", i->domain_attr->name, i->fabric_attr->name);
    d->caps.device = i->domain_attr->name;
    if (bound(i))
        gi_ofi_note(d, "memory: bound to one endpoint of each rank (FI_MR_ENDPOINT)");
    if (d->pick.rung_text[0] != 0)
        gi_ofi_note(d, "asked%s: the provider refuses more", d->pick.rung_text);
}
