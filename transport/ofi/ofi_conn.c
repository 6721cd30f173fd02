/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections, where endpoints have one peer each (MSG). A lane listens; its name is the address
 * with a random number that only those know who were told the name. Who posts to a peer first
 * connects to its listener, with receives on its own side, too, and says so: what the peer posts
 * goes back by that connection, unless the peer has begun one of its own. On two connections, one
 * for each direction, every message over TCP is acknowledged by a packet of its own, that on one
 * goes with what comes back.
 *
 * Both may begin at once. Then the lower rank's is for both: it leaves the other's request unread
 * until its own stands, and refuses it then; or takes it, where its own failed. By which one a rank
 * posts is settled before the first post and for good, since nothing would keep what goes by one
 * behind what went by another. A rank is connected to itself by two, each for one direction.
 *
 * A connection is made when it is first needed: until it stands posts are told to come again. One
 * that is not taken, for want of a descriptor or a queue pair on either side, is begun a few times
 * more, then for one direction: receives of an earlier try may come back as failed at any time, and
 * are not to be taken for the later one's. One that stood and ends is not made anew: what was under
 * way is unknown, and posts fail from then on. What is heard of connections, and who asks for one,
 * is ofi_event.c's.
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
    free(c->asked);
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
    c->asked = calloc(peers, sizeof(*c->asked));
    c->places = calloc(peers, sizeof(*c->places));
    for (size_t i = 0; c->out != NULL && c->in != NULL && i < peers; i++) {
        c->out[i].peer = c->in[i].peer = (int)i;
        c->out[i].mine = true;
    }
    if (c->out != NULL && c->in != NULL && c->asked != NULL && c->places != NULL &&
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
static struct fi_info *info_for(const struct gi_ofi_lane *l, const struct gi_ofi_place *to,
                                bool both)
{
    struct fi_info *i = fi_dupinfo(l->domain->pick.info);
    if (i == NULL)
        return NULL;
    i->rx_attr->size = both ? l->domain->caps.recvs : 1;
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

/* With receives, where none were posted before: a provider that takes none yet makes it one-way. */
static int connect_by(struct gi_ofi_lane *l, struct gi_ofi_conn *k, struct fi_info *info)
{
    struct gi_ofi_hello h = {.token = l->listener->places[k->peer].token,
                             .magic = GI_OFI_HELLO,
                             .rank = (uint32_t)l->domain->rank};
    if (k->both) {
        k->spent = true;
        h.both = gi_ofi_receives_of(l, k->peer, true);
    }
    return fi_connect(k->ep, info->dest_addr, &h, sizeof(h));
}

static int begin(struct gi_ofi_lane *l, struct gi_ofi_conn *k)
{
    bool both = !k->spent && k->peer != l->domain->rank;
    struct fi_info *info = info_for(l, &l->listener->places[k->peer], both);
    if (info == NULL)
        return -FI_ENOMEM;
    int rc = gi_ofi_open_conn(l, info, k);
    if (rc == 0) {
        k->both = both;
        rc = connect_by(l, k, info);
        if (rc != 0)
            gi_ofi_end_conn(k);
    }
    fi_freeinfo(info);
    if (rc == 0)
        gi_ofi_conn_enter(l->listener, k, GI_OFI_BEGUN);
    return rc;
}

/* Nothing is posted by it from now on, by either side: who sends is not to wait for receives. What
 * is under way comes back as failed. */
void gi_ofi_conn_ended(struct gi_ofi_lane *l, struct gi_ofi_conn *k, const char *why)
{
    bool shuts = k->state == GI_OFI_UP || (k->state == GI_OFI_BEGUN && !k->mine);
    if (k->state == GI_OFI_ENDED)
        return;
    gi_ofi_conn_enter(l->listener, k, GI_OFI_ENDED);
    if (shuts && k->ep != NULL)
        fi_shutdown(k->ep, 0);
    if (k->posts)
        l->peers[k->peer].ep = NULL;
    if (k->mine || k->posts)
        gi_debug("ofi", "%s: the connection %s rank %d ended: %s", l->domain->caps.name,
                 k->mine ? "to" : "from", k->peer, why);
}

void gi_ofi_conn_stands(struct gi_ofi_lane *l, struct gi_ofi_conn *k)
{
    if (k->state != GI_OFI_BEGUN)
        return;
    gi_ofi_conn_enter(l->listener, k, GI_OFI_UP);
    if (k->mine)
        gi_debug("ofi", "%s: connected to rank %d", l->domain->caps.name, k->peer);
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
static bool pauses(struct gi_ofi_lane *l, struct gi_ofi_conn *k, int error)
{
    if (!may_pass(error) || k->refused >= TRIES || l->peers[k->peer].dead)
        return false;
    k->again = gi_deadline_in((uint64_t)PAUSE_NS << k->refused++);
    k->both = false;
    gi_ofi_conn_enter(l->listener, k, GI_OFI_NONE);
    if (k->refused == 1)
        gi_info("ofi", "%s: rank %d is not reached at once: %s", l->domain->caps.name, k->peer,
                fi_strerror(error));
    return true;
}

/* ---- which of two ---- */

bool gi_ofi_goes_back(const struct gi_ofi_lane *l, int peer)
{
    const struct gi_ofi_conn *out = &l->listener->out[peer];
    return !out->posts && (!gi_ofi_conn_lives(out) || l->domain->rank > peer);
}

static struct gi_ofi_conn *choose(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_conn *in = &l->listener->in[peer];
    return in->both && gi_ofi_conn_lives(in) && gi_ofi_goes_back(l, peer) ? in
                                                                          : &l->listener->out[peer];
}

/* Where the peer's is for both there is no need to try again. */
void gi_ofi_conn_refused(struct gi_ofi_lane *l, struct gi_ofi_conn *k, int error, bool for_good)
{
    bool begun = k->state == GI_OFI_BEGUN, needed = choose(l, k->peer) == k;
    if (!begun || for_good || !needed || !pauses(l, k, error))
        gi_ofi_conn_ended(l, k, needed ? fi_strerror(error) : "the peer's is for both");
    if (begun)
        gi_ofi_end_conn(k);
}

/* One of ours, that does not live. */
static int begin_first(struct gi_ofi_lane *l, struct gi_ofi_conn *k)
{
    if (l->listener->places[k->peer].len == 0)
        return gi_fail(GIN_ESTATE, "rank %d is not known yet", k->peer);
    if (k->again > gi_now_ns())
        return GIN_EAGAIN;
    int rc = begin(l, k);
    if (rc == 0 || pauses(l, k, -rc))
        return GIN_EAGAIN;
    gi_ofi_conn_ended(l, k, fi_strerror(-rc));
    return gi_ofi_post_failed(l, k->peer, "connecting to", rc);
}

int gi_ofi_reach(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_conn *out = &l->listener->out[peer], *in = &l->listener->in[peer];
    struct gi_ofi_conn *k = choose(l, peer);
    if (out->posts || in->posts || k->state == GI_OFI_ENDED)
        return gi_fail(GIN_EPEER, "%s: there is no connection to rank %d any more",
                       l->domain->caps.name, peer);
    if (k->state == GI_OFI_NONE)
        return begin_first(l, k);
    if (k->state == GI_OFI_UP) {
        k->posts = true;
        l->peers[peer].ep = k->ep;
    }
    return GIN_EAGAIN;
}

void gi_ofi_let_go(struct gi_ofi_lane *l, int peer)
{
    struct gi_ofi_conn *in = &l->listener->in[peer];
    gi_ofi_conn_ended(l, &l->listener->out[peer], "it is dead");
    if (in->posts)
        gi_ofi_conn_ended(l, in, "it is dead");
}

/* ---- receives ---- */

/* Of ours: from before it is begun until it ends. */
struct fid_ep *gi_ofi_receiver(const struct gi_ofi_lane *l, int peer, bool mine)
{
    const struct gi_ofi_conn *k = mine ? &l->listener->out[peer] : &l->listener->in[peer];
    bool takes = mine ? k->both && k->state != GI_OFI_ENDED : gi_ofi_conn_lives(k);
    return takes ? k->ep : NULL;
}

void gi_ofi_receiver_ended(struct gi_ofi_lane *l, int peer, bool mine)
{
    struct gi_ofi_conn *k = mine ? &l->listener->out[peer] : &l->listener->in[peer];
    if (mine && k->state != GI_OFI_UP)
        k->both = false; /* what became of it is still to be heard */
    else if (gi_ofi_conn_lives(k) && (k->both || !mine))
        gi_ofi_conn_ended(l, k, "it takes no receives any more");
}
