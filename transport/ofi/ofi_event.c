/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is heard of a lane's connections, and who asks for one. A request is taken from whom knows
 * this lane's name, once from each rank; others are told for good that they are not wanted. Where
 * this rank has begun one to the same peer the lower one's goes first: see ofi_conn.c. What cannot
 * be taken now for want of something is told so, or closed, and comes again: as long as it
 * does not stand nothing is known of it here.
 *
 * Reading events is a system call on some providers. Progress does that at a pace of its own: often
 * while a connection of ours does not stand yet, else seldom enough to cost nothing.
 */
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "transport/ofi/ofi_conn.h"

#define RARELY     64u     /* progress calls between two looks at the clock */
#define IDLE_OFTEN 4u      /* ... that found nothing else */
#define PACE_NS    200000u /* between two looks at events */
#define BEGUN_NS   10000u  /* ... while connections of ours do not stand yet */
#define EVENTS     16      /* read at a time */
#define TX_OF_RX   16u     /* what a connection that only receives may send */
#define WORD_MAX   256u

/* ---- requests of others ---- */

static bool is_welcome(const struct gi_ofi_lane *l, const struct gi_ofi_hello *h, const char **why)
{
    const struct gi_ofi_listener *c = l->listener;
    *why = NULL;
    if (h->magic != GI_OFI_HELLO || h->token != c->token)
        *why = "it does not know this lane's name";
    else if (h->rank >= (uint32_t)l->domain->size)
        *why = "there is no such rank";
    else if (c->in[h->rank].state != GI_OFI_NONE || c->asked[h->rank].info != NULL)
        *why = "that rank is connected already";
    else if (l->peers[h->rank].dead)
        *why = "that rank is known to be dead";
    return *why == NULL;
}

/* Both ranks began, and ours is for both as soon as it stands. */
static bool crosses(const struct gi_ofi_lane *l, uint32_t peer, enum gi_ofi_state ours)
{
    const struct gi_ofi_conn *out = &l->listener->out[peer];
    return l->domain->rank < (int)peer && out->both && out->state == ours;
}

/* What was posted for it would come back as another one's failure, were it begun anew: so whatever
 * fails then is for good. */
static int take_in(struct gi_ofi_lane *l, struct fi_info *info, int peer, bool both)
{
    struct gi_ofi_conn *k = &l->listener->in[peer];
    info->rx_attr->size = l->domain->caps.recvs;
    info->tx_attr->size = l->domain->pick.info->tx_attr->size;
    if (!both && info->tx_attr->size > TX_OF_RX)
        info->tx_attr->size = TX_OF_RX;
    int rc = gi_ofi_open_conn(l, info, k);
    if (rc != 0)
        return rc;
    k->both = both;
    gi_ofi_conn_enter(l->listener, k, GI_OFI_BEGUN);
    rc = gi_ofi_receives_of(l, peer, false) ? fi_accept(k->ep, NULL, 0) : -FI_EIO;
    if (rc != 0) {
        gi_ofi_conn_enter(l->listener, k, GI_OFI_ENDED);
        gi_ofi_end_conn(k);
    }
    return rc;
}

/* An endpoint that was made for a request has taken it over, and ended it when it was closed. */
static void refuse(struct gi_ofi_lane *l, struct fi_info *info, bool for_good)
{
    struct gi_ofi_refusal word = {.magic = GI_OFI_HELLO, .for_good = for_good};
    if (info->handle != NULL)
        fi_reject(l->listener->pep, info->handle, &word, sizeof(word));
}

/* The info ends here. */
static void answer(struct gi_ofi_lane *l, struct fi_info *info, const struct gi_ofi_hello *h)
{
    const char *why;
    bool welcome = is_welcome(l, h, &why), spare = welcome && crosses(l, h->rank, GI_OFI_UP);
    if (welcome && !spare) {
        int peer = (int)h->rank;
        int rc = take_in(l, info, peer, h->both != 0 && gi_ofi_goes_back(l, peer));
        why = rc == 0 ? NULL : fi_strerror(-rc);
    }
    if (why != NULL)
        gi_info("ofi", "%s: a connection was refused: %s", l->domain->caps.name, why);
    if (why != NULL || spare)
        refuse(l, info, !welcome || spare);
    fi_freeinfo(info);
}

static void requested(struct gi_ofi_lane *l, struct fi_eq_cm_entry *e, size_t len)
{
    struct gi_ofi_listener *c = l->listener;
    struct gi_ofi_hello h = {.token = 0};
    const char *why;
    if (len >= sizeof(h))
        memcpy(&h, e->data, sizeof(h));
    if (!is_welcome(l, &h, &why) || !crosses(l, h.rank, GI_OFI_BEGUN)) {
        answer(l, e->info, &h);
        return;
    }
    c->asked[h.rank] = (struct gi_ofi_asked){.info = e->info, .hello = h};
    c->n_asked++;
}

static struct gi_ofi_asked no_more_asked(struct gi_ofi_listener *c, int peer)
{
    struct gi_ofi_asked a = c->asked[peer];
    c->asked[peer].info = NULL;
    c->n_asked--;
    return a;
}

static void answer_waiting(struct gi_ofi_lane *l)
{
    struct gi_ofi_listener *c = l->listener;
    for (int i = 0; i < l->domain->size && c->n_asked != 0; i++) {
        if (c->asked[i].info == NULL || crosses(l, (uint32_t)i, GI_OFI_BEGUN))
            continue;
        struct gi_ofi_asked a = no_more_asked(c, i);
        answer(l, a.info, &a.hello);
    }
}

/* ---- events ---- */

/* Whose an event is; the endpoint may be closed by now, so it is only compared. NULL: nobody's. */
static struct gi_ofi_conn *whose(const struct gi_ofi_lane *l, const struct fid *fid)
{
    struct gi_ofi_listener *c = l->listener;
    for (int i = 0; i < l->domain->size; i++) {
        if (c->out[i].ep != NULL && &c->out[i].ep->fid == fid)
            return &c->out[i];
        if (c->in[i].ep != NULL && &c->in[i].ep->fid == fid)
            return &c->in[i];
    }
    return NULL;
}

static void take_event(struct gi_ofi_lane *l, uint32_t event, struct fi_eq_cm_entry *e, size_t len)
{
    if (event == FI_CONNREQ) {
        requested(l, e, len);
        return;
    }
    struct gi_ofi_conn *k = whose(l, e->fid);
    if (k == NULL)
        return;
    if (event == FI_CONNECTED)
        gi_ofi_conn_stands(l, k);
    else if (event == FI_SHUTDOWN && k->mine)
        gi_ofi_conn_refused(l, k, FI_ECONNRESET, false);
    else if (event == FI_SHUTDOWN)
        gi_ofi_conn_ended(l, k, "its maker ended it");
}

static bool is_for_good(const void *word, size_t len)
{
    struct gi_ofi_refusal r = {.magic = 0};
    if (len >= sizeof(r))
        memcpy(&r, word, sizeof(r));
    return r.magic == GI_OFI_HELLO && r.for_good != 0;
}

static int take_error(struct gi_ofi_lane *l)
{
    unsigned char word[WORD_MAX] = {0};
    struct fi_eq_err_entry e = {.err_data = word, .err_data_size = sizeof(word)};
    ssize_t n = fi_eq_readerr(l->listener->eq, &e, 0);
    if (n == -FI_EAGAIN)
        return GIN_OK;
    if (n < 0)
        return gi_ofi_said(l->domain, "reading an error of a connection", (int)n);
    struct gi_ofi_conn *k = whose(l, e.fid);
    int error = e.err < 0 ? -e.err : e.err;
    if (k != NULL && k->mine)
        gi_ofi_conn_refused(l, k, error, e.err_data == word && is_for_good(word, sizeof(word)));
    else if (k != NULL)
        gi_ofi_conn_ended(l, k, fi_strerror(error));
    return GIN_OK;
}

struct event {
    uint32_t what;
    size_t len; /* of the data behind the entry */
    union {
        struct fi_eq_cm_entry entry;
        unsigned char room[sizeof(struct fi_eq_cm_entry) + 256];
    } u;
};

/* 1: one was read; 0: there is none; -FI_EAVAIL: an error is next; else libfabric's error. */
static ssize_t read_event(struct gi_ofi_lane *l, struct event *e)
{
    memset(&e->u, 0, sizeof(e->u));
    ssize_t n = fi_eq_read(l->listener->eq, &e->what, &e->u, sizeof(e->u), 0);
    if (n == -FI_EAGAIN || n == 0)
        return 0;
    if (n < 0)
        return n;
    e->len = (size_t)n - sizeof(e->u.entry);
    return 1;
}

static int take_events(struct gi_ofi_lane *l)
{
    struct event e;
    for (int i = 0; i < EVENTS; i++) {
        ssize_t n = read_event(l, &e);
        int st = GIN_OK;
        if (n == 0)
            break;
        if (n == -FI_EAVAIL)
            st = take_error(l);
        else if (n < 0)
            st = gi_ofi_said(l->domain, "reading events of connections", (int)n);
        else
            take_event(l, e.what, &e.u.entry, e.len);
        if (st != GIN_OK)
            return st;
    }
    return GIN_OK;
}

int gi_ofi_see_connections(struct gi_ofi_lane *l, bool idle)
{
    struct gi_ofi_listener *c = l->listener;
    if (c->begun == 0 && ++c->calls % (idle ? IDLE_OFTEN : RARELY) != 0)
        return GIN_OK;
    uint64_t now = gi_now_ns();
    if (now < c->look)
        return GIN_OK;
    int st = take_events(l);
    answer_waiting(l);
    c->look = now + (c->begun != 0 ? BEGUN_NS : PACE_NS);
    return st;
}

/* Each holds what the provider made for it; so do those that wait. What comes later finds no
 * listener. There are no more than peers, and a few events of connections that end: so many are not
 * waited for. */
void gi_ofi_refuse_all(struct gi_ofi_lane *l)
{
    struct event e;
    ssize_t n;
    for (int i = 0; i < l->domain->size && l->listener->n_asked != 0; i++) {
        if (l->listener->asked[i].info == NULL)
            continue;
        struct gi_ofi_asked a = no_more_asked(l->listener, i);
        refuse(l, a.info, true);
        fi_freeinfo(a.info);
    }
    for (int i = 0; i < 16 * l->domain->size + 64 && (n = read_event(l, &e)) != 0; i++) {
        if (n == -FI_EAVAIL) {
            struct fi_eq_err_entry ignored = {.err_data = NULL};
            if (fi_eq_readerr(l->listener->eq, &ignored, 0) < 0)
                return;
        } else if (n < 0) {
            return;
        } else if (e.what == FI_CONNREQ) {
            refuse(l, e.u.entry.info, true);
            fi_freeinfo(e.u.entry.info);
        }
    }
}
