/* SPDX-License-Identifier: BSD-3-Clause */
/* Before anything is posted: what is offered to whom, memory, and the order of making and ending.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/providers/t_contract.h"

/* ---- what is offered ---- */

/* True: nothing, with the hints as they are. */
static bool nothing_for(struct fi_info *h)
{
    struct fi_info *info = NULL;
    int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info);
    if (info != NULL)
        fi_freeinfo(info);
    fi_freeinfo(h);
    return rc == -FI_ENODATA;
}

#define REFUSED_FOR(id, profile, change) \
    RULE(id, profile)                    \
    {                                    \
        struct fi_info *h = w_hints();   \
        CHECK(!nothing_for(w_hints()));  \
        change;                          \
        CHECK(nothing_for(h));           \
    }

REFUSED_FOR(registration_modes, "efa", h->domain_attr->mr_mode = 0)
REFUSED_FOR(local_registration, "efa-direct", h->domain_attr->mr_mode &= ~FI_MR_LOCAL)
REFUSED_FOR(memory_of_endpoints, "cxi", h->domain_attr->mr_mode &= ~FI_MR_ENDPOINT)
REFUSED_FOR(keys_of_the_provider, "cxi-relaxed", h->domain_attr->mr_mode &= ~FI_MR_PROV_KEY)
REFUSED_FOR(contexts_to_scribble_on, "efa-direct", h->mode &= ~FI_CONTEXT2)
REFUSED_FOR(receives_for_immediates, "verbs-msg", h->mode &= ~FI_RX_CQ_DATA)
REFUSED_FOR(no_order_of_writes, "efa", h->tx_attr->msg_order = FI_ORDER_WAW)
REFUSED_FOR(no_order_of_messages, "efa-direct", h->tx_attr->msg_order = FI_ORDER_SAS)
REFUSED_FOR(no_order_without_waw, "cxi-relaxed", h->rx_attr->msg_order = FI_ORDER_WAW)
REFUSED_FOR(no_atomics, "efa-direct", h->caps |= FI_ATOMIC)
REFUSED_FOR(connected_only, "verbs-msg", h->ep_attr->type = FI_EP_RDM)
REFUSED_FOR(long_messages, "efa-direct", h->ep_attr->max_msg_size = 65537)

/* Names of layers that would stand on top of it find nothing. */
REFUSED_FOR(layers, "verbs-msg", {
    free(h->fabric_attr->prov_name);
    h->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
})

/* ---- memory ---- */

RULE(key_before_enabling, "cxi")
{
    struct fid_mr *mr;
    w_open(w);
    CHECK(w_regattr(w, w->from, 64, 7, &mr) == 0);
    CHECK(fi_mr_key(mr) == FI_KEY_NOTAVAIL);
    CHECK(fi_mr_enable(mr) == -FI_EINVAL);
    SAID("enabled before it is bound");
    struct fid_ep *ep;
    CHECK(fi_endpoint(w->domain, w->info, &ep, NULL) == 0);
    CHECK(fi_mr_bind(mr, &ep->fid, 0) == 0);
    CHECK(fi_mr_enable(mr) == -FI_EOPBADSTATE);
    SAID("enabled before its endpoint");
}

RULE(memory_is_not_bound, "efa")
{
    w_open(w);
    CHECK(fi_mr_bind(w->to_mr, &w->ep->fid, 0) == -FI_EINVAL);
    SAID("does not want");
}

RULE(chosen_keys_are_short, "cxi")
{
    struct fid_mr *mr;
    w_open(w);
    CHECK(w_regattr(w, w->from, 64, 1ull << 32, &mr) == -FI_EKEYREJECTED);
    SAID("wider than 4");
    CHECK(w_regattr(w, w->from, 64, fi_mr_key(w->to_mr), &mr) == -FI_ENOKEY);
}

RULE(given_keys_are_long, "cxi-relaxed")
{
    w_open(w);
    CHECK(fi_mr_key(w->to_mr) >> 32 != 0);
}

RULE(few_registrations, "cxi")
{
    struct fid_mr *mr;
    int rc = 0, n = 3;
    w_open(w);
    while (n < 200 && rc == 0)
        rc = w_regattr(w, w->from, 64, 1000 + (unsigned)n++, &mr);
    CHECK(rc == -FI_ENOSPC && n == 101);
    SAID("more than 100 registrations");
}

RULE(memory_in_use_is_given_back, "efa-direct")
{
    w_open(w);
    struct post p = w_post(w);
    CHECK(W_WRITE(w, &p) == 0);
    fi_close(&w->from_mr->fid);
    SAID("an operation under way uses");
}

RULE(memory_of_receives_is_given_back, "verbs-msg")
{
    w_open(w);
    CHECK(w_recv(w, 0) == 0);
    fi_close(&w->slot_mr->fid);
    SAID("an operation under way uses");
}

/* ---- making and ending ---- */

RULE(vectors_of_one_endpoint, "efa-direct")
{
    struct fi_av_attr attr = {.type = FI_AV_MAP};
    struct fid_ep *ep;
    struct fid_av *av;
    w_open(w);
    CHECK(fi_endpoint(w->domain, w->info, &ep, NULL) == 0);
    CHECK(fi_ep_bind(ep, &w->av->fid, 0) == -FI_EINVAL);
    SAID("second endpoint");
    CHECK(fi_enable(ep) == -FI_ENOCQ);
    SAID("without a queue");
    CHECK(fi_av_open(w->domain, &attr, &av, NULL) == -FI_ENOSYS);
    SAID("FI_AV_MAP");
}

RULE(no_sleeping, "efa")
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .size = 8, .wait_obj = FI_WAIT_FD};
    struct fid_cq *cq;
    w_open(w);
    CHECK(fi_cq_open(w->domain, &attr, &cq, NULL) == -FI_ENOSYS);
}

RULE(order_of_ends, "cxi")
{
    w_open(w);
    CHECK(fi_close(&w->domain->fid) == -FI_EBUSY);
    SAID("a domain is closed before");
    CHECK(fi_close(&w->cq->fid) == -FI_EBUSY);
    SAID("closed before its endpoints");
    CHECK(fi_close(&w->av->fid) == -FI_EBUSY);
    SAID("closed before its endpoint");
    CHECK(fi_close(&w->ep->fid) == -FI_EBUSY);
    SAID("closed before the memory bound to it");
    CHECK(fi_close(&w->fabric->fid) == -FI_EBUSY);
    SAID("a fabric is closed before");
}

RULE(order_of_connecting, "verbs-msg")
{
    struct fid_ep *ep;
    w_open(w);
    CHECK(fi_endpoint(w->domain, w->info, &ep, NULL) == 0);
    CHECK(fi_ep_bind(ep, &w->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    CHECK(fi_enable(ep) == -FI_ENOEQ);
    SAID("without a queue of events");
    CHECK(fi_ep_bind(ep, &w->eq->fid, 0) == 0 && fi_enable(ep) == 0);
    struct fid_ep *other = w->ep;
    struct post p = w_post(w);
    w->ep = ep;
    CHECK(w_write_once(w, &p) == -FI_ENOTCONN);
    SAID("before the endpoint is connected");
    CHECK(fi_accept(ep, NULL, 0) == -FI_EOPBADSTATE);
    SAID("not of a request");
    CHECK(fi_connect(other, "", NULL, 0) == -FI_EOPBADSTATE);
    SAID("or again");
    CHECK(fi_close(&w->eq->fid) == -FI_EBUSY);
    SAID("events is closed before");
}

static int half(struct world *w, struct fi_info *info, struct fid_ep **ep)
{
    int rc = fi_endpoint(w->domain, info, ep, NULL);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->cq->fid, FI_TRANSMIT | FI_RECV);
    if (rc == 0)
        rc = fi_ep_bind(*ep, &w->eq->fid, 0);
    return rc == 0 ? fi_enable(*ep) : rc;
}

static uint32_t next_event(struct world *w, struct fi_eq_cm_entry *e)
{
    char buf[sizeof(*e) + 64];
    uint32_t event = 0;
    uint64_t end = w_now() + 5000000000u;
    while (fi_eq_read(w->eq, &event, buf, sizeof(buf), 0) == -FI_EAGAIN && w_now() < end)
        usleep(100);
    memcpy(e, buf, sizeof(*e));
    return event;
}

/* Who accepts is connected only when the other side has said that it is. */
RULE(accepting_is_not_being_connected, "verbs-msg")
{
    struct fi_eq_cm_entry e;
    unsigned early = 0;
    char name[64];
    size_t len = sizeof(name);
    w_open(w);
    struct post p = w_post(w);
    CHECK(fi_getname(&w->pep->fid, name, &len) == 0);
    for (int i = 0; i < 8; i++) { /* the other side may be quick */
        struct fid_ep *asks, *ep;
        CHECK(half(w, w->info, &asks) == 0 && fi_connect(asks, name, NULL, 0) == 0);
        if (!CHECK(next_event(w, &e) == FI_CONNREQ))
            return;
        CHECK(half(w, e.info, &ep) == 0 && fi_accept(ep, NULL, 0) == 0);
        fi_freeinfo(e.info);
        w->ep = ep;
        early += w_write_once(w, &p) == -FI_ENOTCONN;
        CHECK(next_event(w, &e) == FI_CONNECTED && e.fid == &asks->fid);
        CHECK(next_event(w, &e) == FI_CONNECTED && e.fid == &ep->fid);
        CHECK(W_WRITE(w, &p) == 0 && w_wait(w, 5000) == 1);
    }
    CHECK(early > 0);
    SAID("before the endpoint is connected");
}
