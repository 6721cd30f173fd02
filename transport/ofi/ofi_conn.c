/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections, where endpoints have one peer each (MSG). A lane listens; its name is the address
 * with a random number that only those know who were told the name. Who posts to a peer first
 * connects to its listener, and uses that connection for posts alone; what the peer posts comes by
 * another one, which the peer made. So every pair has up to two, one for each direction, and nobody
 * has to give way where both begin at once; a rank is connected to itself like to any other.
 *
 * A connection is made when it is first needed: until it stands posts are told to come again. One
 * that is not taken, for want of a descriptor or a queue pair on either side, is begun a few times
 * more. One that stood and ends is not made anew: what was under way is unknown, and posts fail
 * from then on. What is heard of connections, and who asks for one, is ofi_event.c's.
 */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "transport/ofi/ofi_conn.h"

#define TRIES    8u        /* of a connection that is refused for a moment */
#define PAUSE_NS 10000000u /* after the first; each is twice as long: 2.6 s in all */

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

void gi_ofi_disconnect(struct gi_ofi_lane *l)
{
    struct gi_ofi_listener *c = l->listener;
    gi_ofi_refuse_all(l);
    for (int i = 0; i < l->domain->size; i++) {
        gi_ofi_end_conn(&c->out[i]);
        gi_ofi_end_conn(&c->in[i]);
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
    struct gi_ofi_place *p = &l->listener->places[peer];
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

int gi_ofi_open_conn(struct gi_ofi_lane *l, struct fi_info *info, struct gi_ofi_conn *k)
{
    struct fid_ep *ep;
    int rc = fi_endpoint(l->domain->domain, info, &ep, k);
    if (rc != 0)
        return rc;
    info->handle = NULL; /* the endpoint's */
    rc = gi_ofi_enable(l->domain, ep, &l->listener->eq->fid, l->cq);
    if (rc != 0) {
        fi_close(&ep->fid);
        return rc;
    }
    k->ep = ep;
    return 0;
}

void gi_ofi_end_conn(struct gi_ofi_conn *k)
{
    if (k->ep != NULL)
        fi_close(&k->ep->fid);
    k->ep = NULL;
}

/* Some providers set room in the completion queue aside for each endpoint's receives. */
static struct fi_info *info_for(const struct gi_ofi_lane *l, const struct gi_ofi_place *to)
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
    struct gi_ofi_conn *k = &l->listener->out[peer];
    const struct gi_ofi_place *to = &l->listener->places[peer];
    struct gi_ofi_hello h = {
        .token = to->token, .magic = GI_OFI_HELLO, .rank = (uint32_t)l->domain->rank};
    struct fi_info *info = info_for(l, to);
    if (info == NULL)
        return -FI_ENOMEM;
    int rc = gi_ofi_open_conn(l, info, k);
    if (rc == 0) {
        rc = fi_connect(k->ep, info->dest_addr, &h, sizeof(h));
        if (rc != 0)
            gi_ofi_end_conn(k);
    }
    fi_freeinfo(info);
    if (rc != 0)
        return rc;
    k->state = GI_OFI_BEGUN;
    l->listener->begun++;
    return 0;
}

/* Nothing is posted by it from now on. What is under way comes back as failed. */
void gi_ofi_conn_ended(struct gi_ofi_lane *l, int peer, const char *why)
{
    struct gi_ofi_conn *k = &l->listener->out[peer];
    if (k->state == GI_OFI_UP && k->ep != NULL)
        fi_shutdown(k->ep, 0);
    if (k->state == GI_OFI_BEGUN)
        l->listener->begun--;
    if (k->state != GI_OFI_ENDED)
        gi_debug("ofi", "%s: the connection to rank %d ended: %s", l->domain->caps.name, peer, why);
    k->state = GI_OFI_ENDED;
    l->peers[peer].ep = NULL;
}

void gi_ofi_conn_stands(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_conn *k = &l->listener->out[peer];
    if (k->state != GI_OFI_BEGUN)
        return;
    k->state = GI_OFI_UP;
    l->listener->begun--;
    if (!l->peers[peer].dead)
        l->peers[peer].ep = k->ep;
    gi_debug("ofi", "%s: connected to rank %d", l->domain->caps.name, peer);
}

/* All but what says that there is no way, or that it was asked for wrongly: what a provider makes
 * of a peer that lacks something, and closes what it cannot take, is anything. */
static bool may_pass(int error)
{
    static const int lasting[] = {FI_ETIMEDOUT, FI_EHOSTUNREACH, FI_ENETUNREACH, FI_EINVAL,
                                  FI_ENOSYS,    FI_EOPNOTSUPP,   FI_EACCES};
    for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++)
        if (error == lasting[i])
            return false;
    return true;
}

/* To be begun again after a pause: true. It has never stood. */
static bool pauses(struct gi_ofi_lane *l, int peer, int error)
{
    struct gi_ofi_conn *k = &l->listener->out[peer];
    if (!may_pass(error) || k->refused >= TRIES || l->peers[peer].dead)
        return false;
    k->again = gi_deadline_in((uint64_t)PAUSE_NS << k->refused++);
    k->state = GI_OFI_NONE;
    if (k->refused == 1)
        gi_info("ofi", "%s: rank %d is not reached at once: %s", l->domain->caps.name, peer,
                fi_strerror(error));
    return true;
}

void gi_ofi_conn_refused(struct gi_ofi_lane *l, int peer, int error, bool for_good)
{
    struct gi_ofi_conn *k = &l->listener->out[peer];
    bool begun = k->state == GI_OFI_BEGUN;
    if (begun && !for_good && pauses(l, peer, error))
        l->listener->begun--;
    else
        gi_ofi_conn_ended(l, peer, fi_strerror(error));
    if (begun)
        gi_ofi_end_conn(k);
}

int gi_ofi_reach(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_listener *c = l->listener;
    struct gi_ofi_conn *k = &c->out[peer];
    if (k->state == GI_OFI_BEGUN)
        return GIN_EAGAIN;
    if (k->state == GI_OFI_ENDED)
        return gi_fail(GIN_EPEER, "%s: there is no connection to rank %d any more",
                       l->domain->caps.name, peer);
    if (c->places[peer].len == 0)
        return gi_fail(GIN_ESTATE, "rank %d is not known yet", peer);
    if (k->again > gi_now_ns())
        return GIN_EAGAIN;
    int rc = begin(l, peer);
    if (rc == 0 || pauses(l, peer, -rc))
        return GIN_EAGAIN;
    gi_ofi_conn_ended(l, peer, fi_strerror(-rc));
    return gi_ofi_post_failed(l, peer, "connecting to", rc);
}

void gi_ofi_let_go(struct gi_ofi_lane *l, int peer)
{
    gi_ofi_conn_ended(l, peer, "it is dead");
}

/* ---- receives ---- */

struct fid_ep *gi_ofi_receiver(const struct gi_ofi_lane *l, int peer)
{
    const struct gi_ofi_conn *k = &l->listener->in[peer];
    return k->state == GI_OFI_UP ? k->ep : NULL;
}

void gi_ofi_receiver_ended(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_conn *k = &l->listener->in[peer];
    if (k->state == GI_OFI_UP && k->ep != NULL)
        fi_shutdown(k->ep, 0); /* whoever sends by it is not to wait for receives */
    k->state = GI_OFI_ENDED;
}
