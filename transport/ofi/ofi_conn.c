/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections, where endpoints have one peer each (MSG). A lane listens; its name is the address
 * with a random number that only those know who were told the name. Who posts to a peer first
 * connects to its listener, and uses that connection for posts alone; what the peer posts comes by
 * another one, which the peer made. So every pair has up to two, one for each direction, and nobody
 * has to give way where both begin at once; a rank is connected to itself like to any other.
 *
 * A connection is made when it is first needed: until it stands posts are told to come again. One
 * that ends is not made anew: what was under way is unknown, and posts fail from then on. Receives
 * are posted for each peer that has connected. Events are read now and then by progress().
 */
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "transport/ofi/ofi_int.h"

#define MAGIC      0x6e6e6f63u /* of a request to connect: "conn" */
#define RARELY     64u         /* progress calls between two looks at events */
#define IDLE_OFTEN 8u          /* ... that found nothing else */
#define EVENTS     16          /* read at a time */
#define TX_OF_RX   16u         /* what a connection that only receives may send */
#define WORD_MAX   64u

enum state { NONE, BEGUN, UP, ENDED };

/* What a lane says when it connects: whom it means, and who it is. */
struct hello {
    uint64_t token;
    uint32_t magic, rank;
};

/* One direction to or from a peer. */
struct conn {
    struct fid_ep *ep;
    enum state state;
};

struct gi_ofi_listener {
    struct fid_pep *pep;
    struct fid_eq *eq;
    uint64_t token;
    struct conn *out, *in; /* by rank */
    unsigned begun;        /* connections that do not stand yet */
    unsigned calls;
    struct place {
        uint64_t token;
        uint32_t len;
        unsigned char address[GI_OFI_PLACE_MAX];
    } * places; /* where the peers listen */
};

/* ---- listening ---- */

static void free_listener(struct gi_ofi_listener *c)
{
    free(c->out);
    free(c->in);
    free(c->places);
    free(c);
}

static struct gi_ofi_listener *new_listener(size_t peers)
{
    struct gi_ofi_listener *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->out = calloc(peers, sizeof(*c->out));
    c->in = calloc(peers, sizeof(*c->in));
    c->places = calloc(peers, sizeof(*c->places));
    if (c->out != NULL && c->in != NULL && c->places != NULL &&
        gi_os_random(&c->token, sizeof(c->token)) == 0)
        return c;
    free_listener(c);
    return NULL;
}

static int listen_at(struct gi_ofi_lane *l, struct gi_ofi_listener *c)
{
    struct fi_eq_attr attr = {.size = 4 * (size_t)l->domain->size + 64, .wait_obj = FI_WAIT_NONE};
    int rc = fi_eq_open(l->domain->fabric, &attr, &c->eq, NULL);
    if (rc != 0)
        return rc;
    rc = fi_passive_ep(l->domain->fabric, l->domain->pick.info, &c->pep, NULL);
    if (rc != 0)
        goto close_queue;
    rc = fi_pep_bind(c->pep, &c->eq->fid, 0);
    if (rc == 0)
        rc = fi_listen(c->pep);
    if (rc == 0)
        return 0;
    fi_close(&c->pep->fid);
close_queue:
    fi_close(&c->eq->fid);
    return rc;
}

int gi_ofi_listen(struct gi_ofi_lane *l)
{
    struct gi_ofi_listener *c = new_listener((size_t)l->domain->size);
    if (c == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for connections to %d ranks", l->domain->size);
    int rc = listen_at(l, c);
    if (rc != 0) {
        free_listener(c);
        return gi_ofi_said(l->domain, "listening for connections", rc);
    }
    l->listener = c;
    return GIN_OK;
}

static void end(struct conn *k)
{
    if (k->ep != NULL)
        fi_close(&k->ep->fid);
    k->ep = NULL;
}

void gi_ofi_disconnect(struct gi_ofi_lane *l)
{
    struct gi_ofi_listener *c = l->listener;
    for (int i = 0; i < l->domain->size; i++) {
        end(&c->out[i]);
        end(&c->in[i]);
    }
    fi_close(&c->pep->fid);
}

/* After the completion queue, to which connections were bound. */
void gi_ofi_unlisten(struct gi_ofi_lane *l)
{
    fi_close(&l->listener->eq->fid);
    free_listener(l->listener);
    l->listener = NULL;
}

int gi_ofi_place(struct gi_ofi_lane *l, void *at, size_t *room)
{
    struct gi_ofi_listener *c = l->listener;
    size_t len = *room - sizeof(c->token);
    int rc = fi_getname(&c->pep->fid, (char *)at + sizeof(c->token), &len);
    if (rc == 0 && len > GI_OFI_PLACE_MAX)
        rc = -FI_ETOOSMALL;
    if (rc != 0)
        return rc;
    memcpy(at, &c->token, sizeof(c->token));
    *room = sizeof(c->token) + len;
    return 0;
}

int gi_ofi_know_place(struct gi_ofi_lane *l, int peer, const void *at, size_t len)
{
    struct place *p = &l->listener->places[peer];
    if (p->len != 0)
        return gi_fail(GIN_ESTATE, "rank %d is connected already", peer);
    if (len <= sizeof(p->token) || len - sizeof(p->token) > sizeof(p->address))
        return gi_fail(GIN_EINVAL, "rank %d's name for its listener is no such name", peer);
    memcpy(&p->token, at, sizeof(p->token));
    p->len = (uint32_t)(len - sizeof(p->token));
    memcpy(p->address, (const char *)at + sizeof(p->token), p->len);
    return GIN_OK;
}

/* ---- one connection ---- */

/* Bound to the lane's queues and enabled; closed again where it fails. */
static int open_endpoint(struct gi_ofi_lane *l, struct fi_info *info, struct conn *k)
{
    struct fid_ep *ep;
    int rc = fi_endpoint(l->domain->domain, info, &ep, k);
    if (rc != 0)
        return rc;
    rc = gi_ofi_enable(ep, &l->listener->eq->fid, l->cq);
    if (rc != 0) {
        fi_close(&ep->fid);
        return rc;
    }
    k->ep = ep;
    return 0;
}

/* Some providers set room in the completion queue aside for each endpoint's receives. */
static struct fi_info *info_for(const struct gi_ofi_lane *l, const struct place *to)
{
    struct fi_info *i = fi_dupinfo(l->domain->pick.info);
    if (i == NULL)
        return NULL;
    i->rx_attr->size = 1;
    free(i->dest_addr);
    i->dest_addrlen = to->len;
    i->dest_addr = malloc(to->len);
    if (i->dest_addr == NULL) {
        fi_freeinfo(i);
        return NULL;
    }
    memcpy(i->dest_addr, to->address, to->len);
    return i;
}

static int begin(struct gi_ofi_lane *l, int peer)
{
    struct conn *k = &l->listener->out[peer];
    const struct place *to = &l->listener->places[peer];
    struct hello h = {.token = to->token, .magic = MAGIC, .rank = (uint32_t)l->domain->rank};
    struct fi_info *info = info_for(l, to);
    if (info == NULL)
        return -FI_ENOMEM;
    int rc = open_endpoint(l, info, k);
    if (rc == 0) {
        rc = fi_connect(k->ep, info->dest_addr, &h, sizeof(h));
        if (rc != 0)
            end(k);
    }
    fi_freeinfo(info);
    if (rc != 0)
        return rc;
    k->state = BEGUN;
    l->listener->begun++;
    return 0;
}

/* Nothing is posted by it from now on. What is under way comes back as failed. */
static void out_ended(struct gi_ofi_lane *l, int peer, const char *why)
{
    struct conn *k = &l->listener->out[peer];
    if (k->state == UP && k->ep != NULL)
        fi_shutdown(k->ep, 0);
    if (k->state == BEGUN)
        l->listener->begun--;
    if (k->state != ENDED)
        gi_debug("ofi", "%s: the connection to rank %d ended: %s", l->domain->caps.name, peer, why);
    k->state = ENDED;
    l->peers[peer].ep = NULL;
}

int gi_ofi_reach(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_listener *c = l->listener;
    struct conn *k = &c->out[peer];
    if (k->state == BEGUN)
        return GIN_EAGAIN;
    if (k->state == ENDED)
        return gi_fail(GIN_EPEER, "%s: there is no connection to rank %d any more",
                       l->domain->caps.name, peer);
    if (c->places[peer].len == 0)
        return gi_fail(GIN_ESTATE, "rank %d is not known yet", peer);
    int rc = begin(l, peer);
    if (rc == 0 || rc == -FI_EAGAIN)
        return GIN_EAGAIN;
    out_ended(l, peer, fi_strerror(-rc));
    return gi_ofi_post_failed(l, peer, "connecting to", rc);
}

void gi_ofi_let_go(struct gi_ofi_lane *l, int peer)
{
    out_ended(l, peer, "it is dead");
}

/* ---- requests of others ---- */

static bool is_welcome(const struct gi_ofi_lane *l, const struct hello *h, size_t len,
                       const char **why)
{
    const struct gi_ofi_listener *c = l->listener;
    *why = NULL;
    if (len < sizeof(*h) || h->magic != MAGIC || h->token != c->token)
        *why = "it does not know this lane's name";
    else if (h->rank >= (uint32_t)l->domain->size)
        *why = "there is no such rank";
    else if (c->in[h->rank].state != NONE)
        *why = "that rank is connected already";
    else if (l->peers[h->rank].dead)
        *why = "that rank is known to be dead";
    return *why == NULL;
}

static int take_in(struct gi_ofi_lane *l, struct fi_info *info, int peer)
{
    struct conn *k = &l->listener->in[peer];
    info->rx_attr->size = l->domain->caps.recvs;
    if (info->tx_attr->size > TX_OF_RX)
        info->tx_attr->size = TX_OF_RX;
    int rc = open_endpoint(l, info, k);
    if (rc != 0)
        return rc;
    k->state = UP;
    rc = gi_ofi_receives_of(l, peer) == GIN_OK ? fi_accept(k->ep, NULL, 0) : -FI_EIO;
    if (rc != 0) {
        k->state = ENDED;
        end(k);
    }
    return rc;
}

static void requested(struct gi_ofi_lane *l, struct fi_eq_cm_entry *e, size_t len)
{
    struct hello h = {.token = 0};
    const char *why;
    memcpy(&h, e->data, len < sizeof(h) ? len : sizeof(h));
    if (is_welcome(l, &h, len, &why)) {
        int rc = take_in(l, e->info, (int)h.rank);
        if (rc == 0) {
            fi_freeinfo(e->info);
            return;
        }
        why = fi_strerror(-rc);
    }
    gi_info("ofi", "%s: a connection was refused: %s", l->domain->caps.name, why);
    fi_reject(l->listener->pep, e->info->handle, NULL, 0);
    fi_freeinfo(e->info);
}

/* ---- events ---- */

/* Whose an event is; the endpoint may be closed by now, so it is only compared. NULL: nobody's. */
static struct conn *whose(const struct gi_ofi_lane *l, const struct fid *fid, int *peer, bool *out)
{
    struct gi_ofi_listener *c = l->listener;
    for (int i = 0; i < l->domain->size; i++) {
        *peer = i;
        *out = c->out[i].ep != NULL && &c->out[i].ep->fid == fid;
        if (*out)
            return &c->out[i];
        if (c->in[i].ep != NULL && &c->in[i].ep->fid == fid)
            return &c->in[i];
    }
    return NULL;
}

static void stands(struct gi_ofi_lane *l, struct conn *k, int peer)
{
    if (k->state != BEGUN)
        return;
    k->state = UP;
    l->listener->begun--;
    if (!l->peers[peer].dead)
        l->peers[peer].ep = k->ep;
    gi_debug("ofi", "%s: connected to rank %d", l->domain->caps.name, peer);
}

/* No second try: the first may have been taken there, unseen from here. */
static void failed(struct gi_ofi_lane *l, struct conn *k, int peer, int error)
{
    bool begun = k->state == BEGUN;
    out_ended(l, peer, fi_strerror(error));
    if (begun)
        end(k);
}

static void take_event(struct gi_ofi_lane *l, uint32_t event, struct fi_eq_cm_entry *e, size_t len)
{
    int peer;
    bool out;
    if (event == FI_CONNREQ) {
        requested(l, e, len);
        return;
    }
    struct conn *k = whose(l, e->fid, &peer, &out);
    if (k == NULL)
        return;
    if (event == FI_CONNECTED && out)
        stands(l, k, peer);
    else if (event == FI_SHUTDOWN && out)
        failed(l, k, peer, FI_ECONNRESET);
    else if (event == FI_SHUTDOWN)
        k->state = ENDED;
}

static int take_error(struct gi_ofi_lane *l)
{
    unsigned char word[WORD_MAX];
    struct fi_eq_err_entry e = {.err_data = word, .err_data_size = sizeof(word)};
    int peer;
    bool out;
    ssize_t n = fi_eq_readerr(l->listener->eq, &e, 0);
    if (n == -FI_EAGAIN)
        return GIN_OK;
    if (n < 0)
        return gi_ofi_said(l->domain, "reading an error of a connection", (int)n);
    struct conn *k = whose(l, e.fid, &peer, &out);
    if (k != NULL && out)
        failed(l, k, peer, e.err < 0 ? -e.err : e.err);
    else if (k != NULL)
        k->state = ENDED;
    return GIN_OK;
}

static int take_events(struct gi_ofi_lane *l)
{
    union {
        struct fi_eq_cm_entry entry;
        unsigned char room[sizeof(struct fi_eq_cm_entry) + 256];
    } u;
    for (int i = 0; i < EVENTS; i++) {
        uint32_t event;
        memset(&u, 0, sizeof(u));
        ssize_t n = fi_eq_read(l->listener->eq, &event, &u, sizeof(u), 0);
        if (n == -FI_EAGAIN || n == 0)
            break;
        if (n == -FI_EAVAIL) {
            int st = take_error(l);
            if (st != GIN_OK)
                return st;
        } else if (n < 0) {
            return gi_ofi_said(l->domain, "reading events of connections", (int)n);
        } else {
            take_event(l, event, &u.entry, (size_t)n - sizeof(u.entry));
        }
    }
    return GIN_OK;
}

int gi_ofi_see_connections(struct gi_ofi_lane *l, bool idle)
{
    struct gi_ofi_listener *c = l->listener;
    if (c->begun == 0 && ++c->calls % (idle ? IDLE_OFTEN : RARELY) != 0)
        return GIN_OK;
    return take_events(l);
}

/* ---- receives ---- */

struct fid_ep *gi_ofi_receiver(const struct gi_ofi_lane *l, int peer)
{
    const struct conn *k = &l->listener->in[peer];
    return k->state == UP ? k->ep : NULL;
}

void gi_ofi_receiver_ended(struct gi_ofi_lane *l, int peer)
{
    struct conn *k = &l->listener->in[peer];
    if (k->state == UP && k->ep != NULL)
        fi_shutdown(k->ep, 0); /* whoever sends by it is not to wait for receives */
    k->state = ENDED;
}
