/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane: endpoint, completion queue, address vector, and the names by which lanes find each
 * other. A name carries the provider's, so that ranks whose providers differ are told so instead
 * of waiting for each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ginshmem/devcomm.h>
#include "base/log.h"
#include "transport/ofi/ofi_int.h"

/* A peer that connected at last may have ended that since: the request is read by the first look
 * that sees it, and some more are for what that brings. */
#define PARTINGS 4

/* Looks that find something, in one parting: a flood would not end. */
#define UNREAD 1000

/* ---- opening ---- */

int gi_ofi_said(const struct gi_ofi_domain *d, const char *what, int rc)
{
    return gi_fail(rc == -FI_ENOMEM ? GIN_ENOMEM : GIN_ENET, "%s: %s: %s", d->caps.name, what,
                   fi_strerror(-rc));
}

int gi_ofi_enable(const struct gi_ofi_domain *d, struct fid_ep *ep, struct fid *source,
                  struct fid_cq *cq)
{
    (void)gi_ofi_forbid_calls(d, ep); /* the record says so where it is not heeded */
    int rc = fi_ep_bind(ep, source, 0);
    if (rc == 0)
        rc = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
    if (rc == 0) /* selective receives would hide immediates of some providers */
        rc = fi_ep_bind(ep, &cq->fid, FI_RECV);
    return rc == 0 ? fi_enable(ep) : rc;
}

static int open_queue(struct gi_ofi_lane *l, uint32_t depth, uint32_t unread)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
    attr.size = depth + l->domain->receives + GI_OFI_SEND_SLOTS +
                (unread > GI_OFI_IMM_ROOM ? unread : GI_OFI_IMM_ROOM);
    l->fd = -1;
    if (l->domain->caps.wait_fd)
        attr.wait_obj = FI_WAIT_FD;
    int rc = fi_cq_open(l->domain->domain, &attr, &l->cq, NULL);
    if (rc == 0 && attr.wait_obj == FI_WAIT_FD && fi_control(&l->cq->fid, FI_GETWAIT, &l->fd) != 0)
        l->fd = -1;
    return rc;
}

/* What libfabric calls it. */
static uint32_t traffic_class(int traffic)
{
    return (traffic & GIN_TC_DSCP) != 0 ? fi_tc_dscp_set((uint8_t)(traffic & 0x3f))
                                        : FI_TC_LABEL + (uint32_t)traffic;
}

_Static_assert(FI_TC_BEST_EFFORT == FI_TC_LABEL + GIN_TC_BEST_EFFORT &&
                   FI_TC_LOW_LATENCY == FI_TC_LABEL + GIN_TC_LOW_LATENCY &&
                   FI_TC_DEDICATED_ACCESS == FI_TC_LABEL + GIN_TC_DEDICATED_ACCESS &&
                   FI_TC_BULK_DATA == FI_TC_LABEL + GIN_TC_BULK_DATA &&
                   FI_TC_SCAVENGER == FI_TC_LABEL + GIN_TC_SCAVENGER &&
                   FI_TC_NETWORK_CTRL == FI_TC_LABEL + GIN_TC_NETWORK_CTRL,
               "labels in the same order");

static int open_endpoint(struct gi_ofi_lane *l)
{
    struct fi_info *info = l->domain->pick.info, *of_class = NULL;
    if (l->traffic != 0) {
        of_class = info = fi_dupinfo(info);
        if (info == NULL)
            return -FI_ENOMEM;
        info->tx_attr->tclass = traffic_class((int)l->traffic - 1);
    }
    int rc = fi_endpoint(l->domain->domain, info, &l->ep, NULL);
    if (of_class != NULL)
        fi_freeinfo(of_class);
    if (rc != 0)
        return rc;
    rc = gi_ofi_enable(l->domain, l->ep, &l->av->fid, l->cq);
    if (rc != 0)
        fi_close(&l->ep->fid);
    return rc;
}

/* One endpoint for all peers. */
static int open_datagrams(struct gi_ofi_lane *l)
{
    struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = (size_t)l->addresses};
    int rc = fi_av_open(l->domain->domain, &attr, &l->av, NULL);
    if (rc != 0)
        return gi_ofi_said(l->domain, "opening an address vector", rc);
    rc = open_endpoint(l);
    if (rc != 0) {
        fi_close(&l->av->fid);
        return gi_ofi_said(l->domain, "opening an endpoint", rc);
    }
    return GIN_OK;
}

static int open_objects(struct gi_ofi_lane *l, uint32_t depth, uint32_t unread)
{
    int rc = open_queue(l, depth, unread);
    if (rc != 0)
        return gi_ofi_said(l->domain, "opening a completion queue", rc);
    int st = l->domain->connected ? gi_ofi_listen(l) : open_datagrams(l);
    if (st != GIN_OK)
        fi_close(&l->cq->fid);
    return st;
}

static void close_objects(struct gi_ofi_lane *l)
{
    int rc = 0;
    if (l->listener != NULL)
        gi_ofi_disconnect(l);
    else
        rc = fi_close(&l->ep->fid);
    if (rc != 0)
        gi_warn("ofi", "%s: closing an endpoint: %s", l->domain->caps.name, fi_strerror(-rc));
    fi_close(&l->cq->fid);
    if (l->listener != NULL)
        gi_ofi_unlisten(l);
    else
        fi_close(&l->av->fid);
}

static void free_lane(struct gi_ofi_lane *l)
{
    free(l->peers);
    free(l->peer_of);
    free(l);
}

static struct gi_ofi_lane *new_lane(struct gi_ofi_domain *d)
{
    struct gi_ofi_lane *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return NULL;
    l->peers = calloc((size_t)d->size, sizeof(*l->peers));
    l->addresses = (uint64_t)d->size * (d->target.ep != NULL ? 2 : 1);
    l->peer_of = calloc(l->addresses, sizeof(*l->peer_of));
    if (l->peers == NULL || l->peer_of == NULL) {
        free_lane(l);
        return NULL;
    }
    for (int i = 0; i < d->size; i++)
        l->peers[i].addr = FI_ADDR_NOTAVAIL;
    for (uint64_t i = 0; i < l->addresses; i++)
        l->peer_of[i] = GI_NET_UNKNOWN;
    l->head.ops = &gi_ofi_ops;
    l->domain = d;
    return l;
}

int gi_ofi_lane_open(struct gi_net_domain *head, const struct gi_net_lane_config *config,
                     struct gi_net_lane **lane)
{
    struct gi_ofi_domain *d = gi_ofi_domain(head);
    uint32_t depth = d->caps.depth;
    struct gi_ofi_lane *l = new_lane(d);
    if (l == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a lane to %d ranks", d->size);
    l->handler = config->handler;
    l->traffic = config->traffic;
    l->source = d->pick.rung.source;
    if (config->depth != 0 && config->depth < depth)
        depth = config->depth;
    int st = open_objects(l, depth, config->unread);
    if (st != GIN_OK)
        goto free_lane;
    st = gi_ofi_slots_open(l);
    if (st != GIN_OK)
        goto close_objects;
    *lane = &l->head;
    return GIN_OK;

close_objects:
    close_objects(l);
free_lane:
    free_lane(l);
    return st;
}

/* What is read here nobody hears of: the lane is about to close. */
static ssize_t throw_away(const struct gi_ofi_lane *l)
{
    struct fi_cq_data_entry entries[GI_OFI_BATCH];
    struct fi_cq_err_entry error = {0};
    fi_addr_t from[GI_OFI_BATCH];
    ssize_t n = fi_cq_readfrom(l->cq, entries, GI_OFI_BATCH, from);
    return n == -FI_EAVAIL ? fi_cq_readerr(l->cq, &error, 0) : n;
}

void gi_ofi_part(struct gi_net_lane *head)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    if (!l->domain->caps.part_late || l->listener != NULL)
        return;
    for (int i = 0; i < UNREAD && throw_away(l) > 0; i++)
        ;
}

void gi_ofi_lane_close(struct gi_net_lane *head)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    for (int i = 0; i < PARTINGS; i++)
        gi_ofi_part(head);
    close_objects(l);
    gi_ofi_slots_close(l);
    free_lane(l);
}

/* ---- names ---- */

/* All names of a job have one length: addresses that are texts vary, and are given room. */
#define TEXT_ROOM 176u

struct name {
    char provider[32];
    uint32_t format;
    uint32_t len;
    unsigned char address[];
};
_Static_assert(sizeof(struct name) + TEXT_ROOM <= GI_NET_NAME_MAX, "names fit");

int gi_ofi_name(struct gi_net_lane *head, void *blob, uint32_t *len)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    const struct fi_info *i = l->domain->pick.info;
    unsigned char buf[GI_NET_NAME_MAX] = {0};
    struct name *n = (struct name *)buf;
    size_t room = sizeof(buf) - sizeof(*n);
    int rc = l->listener != NULL ? gi_ofi_place(l, n->address, &room)
                                 : fi_getname(&l->ep->fid, n->address, &room);
    if (rc != 0)
        return gi_ofi_said(l->domain, "asking for an endpoint's name", rc);
    snprintf(n->provider, sizeof(n->provider), "%s", l->domain->caps.name);
    n->format = i->addr_format;
    n->len = (uint32_t)room;
    uint32_t total = (uint32_t)(sizeof(*n) + (i->addr_format == FI_ADDR_STR ? TEXT_ROOM : room));
    uint32_t target = l->domain->target.name_len; /* behind it */
    total += target;
    if (room + target > total - sizeof(*n) || total > *len || total > sizeof(buf))
        return gi_fail(GIN_ENET, "%s: an endpoint's name has %zu bytes, more than %u",
                       l->domain->caps.name, room, *len);
    memcpy(buf + total - target, l->domain->target.name, target);
    memcpy(blob, buf, total);
    *len = total;
    return GIN_OK;
}

static int check_name(const struct gi_ofi_lane *l, int peer, const struct name *n, uint32_t len)
{
    const char *mine = l->domain->caps.name;
    if (peer < 0 || peer >= l->domain->size)
        return gi_fail(GIN_EINVAL, "peer %d is not one of %d ranks", peer, l->domain->size);
    uint32_t target = l->domain->target.name_len;
    if (len < sizeof(*n) + target || n->len > len - target - sizeof(*n) ||
        n->provider[sizeof(n->provider) - 1] != 0)
        return gi_fail(GIN_EINVAL, "rank %d's name for its endpoint is no such name", peer);
    if (strncmp(n->provider, mine, sizeof(n->provider) - 1) != 0)
        return gi_fail(GIN_EMISMATCH,
                       "rank %d uses libfabric's provider %s, this rank %s; set GINSHMEM_PROVIDER",
                       peer, n->provider, mine);
    if (n->format != l->domain->pick.info->addr_format)
        return gi_fail(GIN_EMISMATCH,
                       "rank %d and this rank have %s endpoints with different kinds of addresses; "
                       "choose the devices with GINSHMEM_NIC",
                       peer, mine);
    return GIN_OK;
}

static int insert(struct gi_ofi_lane *l, const void *address, fi_addr_t *addr)
{
    int rc = fi_av_insert(l->av, address, 1, addr, 0, NULL);
    return rc == 1 ? GIN_OK
                   : gi_ofi_said(l->domain, "taking a peer's address", rc < 0 ? rc : -FI_EINVAL);
}

int gi_ofi_connect(struct gi_net_lane *head, int peer, const void *blob, uint32_t len)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    uint64_t aligned[GI_NET_NAME_MAX / 8] = {0};
    const struct name *n = (const struct name *)aligned;
    fi_addr_t addr = FI_ADDR_NOTAVAIL, target;
    if (len > sizeof(aligned))
        return gi_fail(GIN_EINVAL, "rank %d's name has %u bytes, more than any of ours", peer, len);
    memcpy(aligned, blob, len);
    int st = check_name(l, peer, n, len);
    if (st != GIN_OK)
        return st;
    if (l->listener != NULL)
        return gi_ofi_know_place(l, peer, n->address, n->len);
    if (l->peers[peer].addr != FI_ADDR_NOTAVAIL)
        return gi_fail(GIN_ESTATE, "rank %d is connected already", peer);
    st = insert(l, n->address, &addr);
    target = addr;
    if (st == GIN_OK && l->domain->target.name_len != 0)
        st = insert(l, (const char *)aligned + len - l->domain->target.name_len, &target);
    if (st != GIN_OK)
        return st;
    l->peers[peer].addr = addr;
    l->peers[peer].target = target;
    l->peers[peer].ep = l->ep;
    if (addr < l->addresses)
        l->peer_of[addr] = peer;
    return GIN_OK;
}

/*
 * Nothing more is posted to it. What is under way stays the provider's: but for ending a connection
 * there is no call that takes it back for certain, and the memory may still be read.
 */
void gi_ofi_cancel_peer(struct gi_net_lane *head, int peer)
{
    struct gi_ofi_lane *l = gi_ofi_lane(head);
    if (peer < 0 || peer >= l->domain->size)
        return;
    l->peers[peer].dead = true;
    l->peers[peer].ep = NULL;
    if (l->listener != NULL)
        gi_ofi_let_go(l, peer);
}
