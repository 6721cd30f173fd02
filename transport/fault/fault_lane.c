/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fault wrapper's lane. A post that is held back is a copy of what was asked for; each progress
 * lets some go, any that the record's order allows to overtake what is in front of it. What
 * breaks the record's own rules (too long, an immediate too wide, an unregistered source ...) is
 * refused with GIN_EINVAL, so that a core that does not obey is caught. Order holds for failures,
 * too (net.h): what would have stayed behind a post that failed fails with it.
 */
#include "transport/fault/fault_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"

#define WRONG_KEY 0x123456u /* what a key is spoilt with */

struct held {
    struct gi_net_request inner; /* first */
    struct held *next;
    uint64_t due; /* it leaves no sooner */
    enum gi_fault_kind kind;
    struct gi_net_io io; /* req: the caller's, NULL once it was told */
    uint32_t len;        /* of a message */
    char *copy;          /* of bytes that the caller has back */
    uint64_t bytes[GI_NET_MSG_MAX / 8];
};

/* What is to be told at the next progress. */
struct news {
    struct news *next;
    uint64_t due; /* ... no sooner */
    struct gi_net_request *req;
    int peer, status, provider_error;
    char text[128];
};

static void done(void *arg, struct gi_net_request *req);
static void failed(void *arg, struct gi_net_request *req, int peer, int status, int error,
                   const char *text);

static void arrived_imm(void *arg, int peer, uint64_t imm)
{
    struct fault_lane *l = arg;
    l->handler.arrived_imm(l->handler.arg, peer, imm);
}

static void arrived_msg(void *arg, int peer, const void *bytes, uint32_t len)
{
    struct fault_lane *l = arg;
    l->handler.arrived_msg(l->handler.arg, peer, bytes, len);
}

int gi_fault_lane_open(struct gi_net_domain *domain, const struct gi_net_lane_config *config,
                       struct gi_net_lane **lane)
{
    struct fault_domain *d = (struct fault_domain *)domain;
    int st = gi_fault_call(d, GI_FAULT_LANE_OPEN);
    if (st != GIN_OK)
        return gi_fail(st, "a lane was made to fail");
    struct fault_lane *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the fault wrapper's lane");
    struct gi_net_lane_config c = *config;
    c.handler = (struct gi_net_handler){.arg = l,
                                        .done = done,
                                        .failed = failed,
                                        .arrived_imm = arrived_imm,
                                        .arrived_msg = arrived_msg};
    *l = (struct fault_lane){
        .head = {.ops = &gi_fault_ops}, .d = d, .ops = d->inner->ops, .handler = config->handler};
    l->news_end = &l->news;
    l->more = -1;
    l->broken = calloc((size_t)d->size, sizeof(*l->broken));
    st = l->broken != NULL ? l->ops->lane_open(d->inner, &c, &l->inner)
                           : gi_fail(GIN_ENOMEM, "no memory for the fault wrapper's lane");
    if (st != GIN_OK) {
        free(l->broken);
        free(l);
        return st;
    }
    *lane = &l->head;
    return GIN_OK;
}

static void free_held(struct fault_lane *l, struct held *h)
{
    l->in_use--;
    free(h->copy);
    free(h);
}

void gi_fault_lane_close(struct gi_net_lane *lane)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    struct held *h;
    l->ops->lane_close(l->inner);
    while ((h = l->held) != NULL) {
        l->held = h->next;
        free_held(l, h);
    }
    while ((h = l->flying) != NULL) {
        l->flying = h->next;
        free_held(l, h);
    }
    while (l->news != NULL) {
        struct news *n = l->news;
        l->news = n->next;
        free(n);
    }
    free(l->broken);
    free(l);
}

int gi_fault_name(struct gi_net_lane *lane, void *blob, uint32_t *len)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    return l->ops->name(l->inner, blob, len);
}

int gi_fault_connect(struct gi_net_lane *lane, int peer, const void *blob, uint32_t len)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    int st = gi_fault_call(l->d, GI_FAULT_CONNECT);
    return st != GIN_OK ? gi_fail(st, "a connection was made to fail")
                        : l->ops->connect(l->inner, peer, blob, len);
}

/* ---- what is told later ---- */

static int tell_at(struct fault_lane *l, uint64_t due, struct gi_net_request *req, int peer,
                   int status, int provider_error, const char *text)
{
    struct news *n = malloc(sizeof(*n));
    if (n == NULL)
        return GIN_EAGAIN;
    *n = (struct news){
        .due = due, .req = req, .peer = peer, .status = status, .provider_error = provider_error};
    snprintf(n->text, sizeof(n->text), "%s", text);
    *l->news_end = n;
    l->news_end = &n->next;
    return GIN_OK;
}

static int tell_later(struct fault_lane *l, struct gi_net_request *req, int peer, int status,
                      int provider_error, const char *text)
{
    return tell_at(l, 0, req, peer, status, provider_error, text);
}

/* Those that are not due yet stay, in their order. */
static int tell_news(struct fault_lane *l)
{
    int count = 0;
    struct news *n, *list = l->news;
    uint64_t now = list != NULL ? gi_now_ns() : 0;
    l->news = NULL;
    l->news_end = &l->news;
    while ((n = list) != NULL) {
        list = n->next;
        if (n->due > now) {
            n->next = NULL;
            *l->news_end = n;
            l->news_end = &n->next;
            continue;
        }
        if (n->status == GIN_OK)
            l->handler.done(l->handler.arg, n->req);
        else
            l->handler.failed(l->handler.arg, n->req, n->peer, n->status, n->provider_error,
                              n->text);
        free(n);
        count++;
    }
    return count;
}

/* When something that starts now has gone one way; 0: at once. */
static uint64_t one_way(const struct gi_fault_plan *plan)
{
    return plan->delay != 0 ? gi_now_ns() + plan->delay * 1000ull : 0;
}

/* When word comes of what the inner network has done: 0, if it is of the source alone. */
static uint64_t word_back(struct fault_lane *l, const struct held *h)
{
    struct gi_fault_plan plan;
    if (h->due == 0 || (h->kind == K_WRITE && (h->io.flags & GI_NET_DELIVERED) == 0 &&
                        l->d->caps.dc != GI_NET_DC_SAME))
        return 0;
    gi_fault_plan_now(l->d, &plan);
    return one_way(&plan);
}

static bool take_off(struct held **list, const struct held *h)
{
    for (; *list != NULL; list = &(*list)->next)
        if (*list == h) {
            *list = h->next;
            return true;
        }
    return false;
}

static void done(void *arg, struct gi_net_request *req)
{
    struct fault_lane *l = arg;
    struct held *h = (struct held *)req;
    if (!take_off(&l->flying, h)) {
        l->passed--;
        l->handler.done(l->handler.arg, req);
        return;
    }
    struct gi_net_request *told = h->io.req;
    uint64_t back = word_back(l, h);
    int peer = h->io.peer;
    free_held(l, h);
    if (told != NULL && (back == 0 || tell_at(l, back, told, peer, GIN_OK, 0, "") != GIN_OK))
        l->handler.done(l->handler.arg, told);
}

static void note_failure(struct fault_lane *l, const struct held *h, int status, int error)
{
    struct broken *b = &l->broken[h->io.peer];
    if (h->kind == K_READ) /* nothing is ordered behind those */
        return;
    b->kinds |= 1u << h->kind;
    b->status = status;
    b->error = error;
}

static void failed(void *arg, struct gi_net_request *req, int peer, int status, int error,
                   const char *text)
{
    struct fault_lane *l = arg;
    struct held *h = (struct held *)req;
    struct gi_net_request *told = req;
    if (req != NULL && take_off(&l->flying, h)) {
        peer = h->io.peer;
        told = h->io.req;
        note_failure(l, h, status, error);
        free_held(l, h);
    } else if (req != NULL) {
        l->passed--;
    }
    l->handler.failed(l->handler.arg, told, peer, status, error, text);
}

/* ---- order ---- */

/* The record says that b, posted after a, stays behind it. */
static bool stays_behind(const struct gi_net_caps *c, const struct held *a, const struct held *b)
{
    bool write = a->kind == K_WRITE || a->kind == K_AMO;
    if (a->io.peer != b->io.peer)
        return false;
    switch (b->kind) {
    case K_WRITE: return write ? c->waw_bytes >= b->io.len : a->kind == K_MSG && c->was;
    case K_MSG: return write ? c->saw : a->kind == K_MSG && c->sas;
    case K_READ: return write && c->raw;
    default: return (b->io.flags & GI_NET_FENCE) != 0 || (write && c->amo_ordered);
    }
}

/* Something failed that it stays behind: it must not arrive either. */
static bool follows_failure(const struct fault_lane *l, const struct held *h)
{
    struct held a = {.io.peer = h->io.peer};
    for (a.kind = K_WRITE; a.kind <= K_MSG; a.kind++)
        if ((l->broken[h->io.peer].kinds & 1u << a.kind) != 0 && stays_behind(&l->d->caps, &a, h))
            return true;
    return false;
}

static bool inner_fences(const struct fault_lane *l)
{
    return l->d->own->amo_fence;
}

/* A fence that the inner network does not have is waiting for what is under way. */
static bool may_go(const struct fault_lane *l, const struct held *h)
{
    if (h->due != 0 && h->due > gi_now_ns())
        return false;
    for (const struct held *a = l->held; a != h; a = a->next)
        if (stays_behind(&l->d->caps, a, h))
            return false;
    if (h->kind != K_AMO || !(h->io.flags & GI_NET_FENCE) || inner_fences(l))
        return true;
    if (l->passed != 0)
        return false;
    for (const struct held *a = l->flying; a != NULL; a = a->next)
        if (a->io.peer == h->io.peer)
            return false;
    return true;
}

static bool wants_local(const struct fault_lane *l)
{
    return l->d->own->mr_local;
}

/* Hand it to the network; it leaves the list of held ones. */
static int let_go(struct fault_lane *l, struct held *h)
{
    struct gi_net_io io = h->io;
    int st;
    io.req = &h->inner;
    if (h->copy != NULL)
        io.local = h->copy;
    io.flags &= ~(unsigned)GI_NET_MORE;
    if (!wants_local(l)) /* a copy is not registered */
        io.flags &= ~(unsigned)GI_NET_INLINE;
    if (!inner_fences(l))
        io.flags &= ~(unsigned)GI_NET_FENCE;
    if (l->d->own->dc == GI_NET_DC_NO)
        io.flags &= ~(unsigned)GI_NET_DELIVERED;
    switch (h->kind) {
    case K_WRITE: st = l->ops->write(l->inner, &io); break;
    case K_READ: st = l->ops->read(l->inner, &io); break;
    case K_AMO: st = l->ops->amo_add(l->inner, &io); break;
    default: st = l->ops->msg(l->inner, io.peer, h->bytes, h->len); break;
    }
    if (st != GIN_OK)
        return st;
    take_off(&l->held, h);
    l->n_held--;
    if (h->kind == K_MSG) {
        free_held(l, h);
    } else {
        h->next = l->flying;
        l->flying = h;
    }
    return GIN_OK;
}

/* ---- posts ---- */

static int append(struct fault_lane *l, const struct held *what, const struct gi_fault_plan *plan)
{
    const struct gi_net_caps *c = &l->d->caps;
    bool inline_ = what->kind == K_WRITE && (what->io.flags & GI_NET_INLINE) != 0;
    bool late = what->kind == K_WRITE || what->kind == K_AMO;
    bool early = plan->early && late && c->dc != GI_NET_DC_SAME && !wants_local(l) &&
                 (what->io.flags & GI_NET_DELIVERED) == 0;
    struct held *h = malloc(sizeof(*h)), **at = &l->held;
    if (h == NULL)
        return GIN_EAGAIN;
    *h = *what;
    h->due = one_way(plan);
    if (inline_ || (early && what->kind == K_WRITE)) {
        h->copy = malloc(h->io.len);
        if (h->copy == NULL) {
            free(h);
            return GIN_EAGAIN;
        }
        memcpy(h->copy, h->io.local, h->io.len);
    }
    while (*at != NULL)
        at = &(*at)->next;
    *at = h;
    l->n_held++;
    l->in_use++;
    int st = plan->hold == 0 && may_go(l, h) ? let_go(l, h) : GIN_OK;
    if (st != GIN_OK) {
        take_off(&l->held, h);
        l->n_held--;
        free_held(l, h);
        return st;
    }
    if (early && h->io.req != NULL && tell_later(l, h->io.req, h->io.peer, GIN_OK, 0, "") == GIN_OK)
        h->io.req = NULL;
    return GIN_OK;
}

/* What is not to fail. */
static int take(struct fault_lane *l, const struct held *what, const struct gi_fault_plan *plan)
{
    struct fault_domain *d = l->d;
    if (plan->again != 0 && gi_fault_below(d, 1000) < plan->again)
        return GIN_EAGAIN;
    if (what->kind == K_WRITE && plan->silent != 0 && gi_fault_below(d, 1000) < plan->silent)
        return what->io.req != NULL ? tell_later(l, what->io.req, what->io.peer, GIN_OK, 0, "")
                                    : GIN_OK;
    if ((l->n_held > plan->hold && plan->delay == 0) ||
        l->in_use + l->passed >= d->caps.depth + plan->hold)
        return GIN_EAGAIN;
    int st = append(l, what, plan);
    if (st == GIN_OK && (what->io.flags & GI_NET_MORE) != 0)
        l->more = what->io.peer;
    return st;
}

static int post(struct fault_lane *l, const struct held *what, enum gi_fault_call call)
{
    struct fault_domain *d = l->d;
    struct gi_fault_plan plan;
    const char *why = gi_fault_mistake(l, what->kind, &what->io, what->len);
    uint8_t peer = __atomic_load_n(&d->peer[what->io.peer], __ATOMIC_RELAXED);
    gi_fault_plan_now(d, &plan);
    if (why != NULL)
        return gi_fail(GIN_EINVAL, "the core posted %s", why);
    if (peer == GI_FAULT_PEER_AGAIN)
        return GIN_EAGAIN;
    if (peer == GI_FAULT_PEER_SILENT)
        return GIN_OK;
    int st = gi_fault_call(d, call);
    if (st == GIN_EAGAIN)
        return st;
    if (st != GIN_OK) {
        note_failure(l, what, st, plan.provider_error);
        return tell_later(l, what->io.req, what->io.peer, st, plan.provider_error, "made to fail");
    }
    if (follows_failure(l, what)) {
        const struct broken *b = &l->broken[what->io.peer];
        return tell_later(l, what->io.req, what->io.peer, b->status, b->error,
                          "behind what failed");
    }
    st = take(l, what, &plan);
    if (st == GIN_EAGAIN)
        gi_fault_uncount(d, call);
    return st;
}

int gi_fault_write(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    if (gi_fault_passes(l, K_WRITE, io))
        return gi_fault_pass(l, K_WRITE, io);
    struct held h = {.kind = K_WRITE, .io = *io};
    if (gi_fault_call(l->d, GI_FAULT_KEY) != GIN_OK)
        h.io.key ^= WRONG_KEY;
    int st = post(l, &h, GI_FAULT_WRITE);
    if (st == GIN_EAGAIN)
        gi_fault_uncount(l->d, GI_FAULT_KEY);
    return st;
}

int gi_fault_read(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    if (gi_fault_passes(l, K_READ, io))
        return gi_fault_pass(l, K_READ, io);
    struct held h = {.kind = K_READ, .io = *io};
    return post(l, &h, GI_FAULT_READ);
}

int gi_fault_amo_add(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    if (gi_fault_passes(l, K_AMO, io))
        return gi_fault_pass(l, K_AMO, io);
    struct held h = {.kind = K_AMO, .io = *io};
    return post(l, &h, GI_FAULT_AMO);
}

int gi_fault_msg(struct gi_net_lane *lane, int peer, const void *bytes, uint32_t len)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    struct gi_net_io io = {.peer = peer};
    if (gi_fault_passes(l, K_MSG, &io))
        return gi_fault_pass_msg(l, peer, bytes, len);
    struct held h = {.kind = K_MSG, .io = io, .len = len};
    if (len <= sizeof(h.bytes))
        memcpy(h.bytes, bytes, len);
    return post(l, &h, GI_FAULT_MSG);
}

/* ---- progress ---- */

/* The network refuses for good what was taken long ago. */
static bool give_up(struct fault_lane *l, struct held *h, int status)
{
    const char *text = gin_last_status() == status ? gin_last_error() : "refused";
    if (tell_later(l, h->io.req, h->io.peer, status, 0, text) != GIN_OK)
        return false;
    note_failure(l, h, status, 0);
    take_off(&l->held, h);
    l->n_held--;
    free_held(l, h);
    return true;
}

static int let_some_go(struct fault_lane *l, const struct gi_fault_plan *plan)
{
    int gone = 0;
    uint64_t tries = l->n_held != 0 ? gi_fault_below(l->d, 2 * (uint64_t)l->n_held) : 0;
    if (plan->hold == 0)
        tries = l->n_held;
    while (tries-- != 0 && l->n_held != 0) {
        uint64_t skip = plan->hold != 0 ? gi_fault_below(l->d, l->n_held) : 0;
        struct held *h = l->held;
        while (skip-- != 0)
            h = h->next;
        int st = may_go(l, h) ? let_go(l, h) : GIN_EAGAIN;
        gone += st == GIN_OK || (st != GIN_EAGAIN && give_up(l, h, st));
    }
    return gone;
}

int gi_fault_progress(struct gi_net_lane *lane, unsigned budget)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    struct gi_fault_plan plan;
    int n = 0, st = gi_fault_is_plain(l->d) ? GIN_OK : gi_fault_call(l->d, GI_FAULT_PROGRESS);
    if (l->more >= 0)
        return gi_fail(GIN_EINVAL, "nothing followed a post with GI_NET_MORE to rank %d", l->more);
    if (st == GIN_EAGAIN)
        return 0;
    if (st != GIN_OK)
        return gi_fail(st, "progress was made to fail");
    if (l->news != NULL || l->n_held != 0) {
        gi_fault_plan_now(l->d, &plan);
        n = tell_news(l);
        n += let_some_go(l, &plan);
    }
    int inner = l->ops->progress(l->inner, budget);
    return inner < 0 ? inner : n + inner;
}

int gi_fault_progress_fd(struct gi_net_lane *lane, int *fd)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    if (l->held != NULL || l->news != NULL) {
        *fd = -1;
        return 0;
    }
    return l->ops->progress_fd(l->inner, fd);
}

void gi_fault_cancel_peer(struct gi_net_lane *lane, int peer)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    for (struct held **at = &l->held; *at != NULL;) {
        struct held *h = *at;
        if (h->io.peer != peer) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        l->n_held--;
        if (h->io.req != NULL)
            tell_later(l, h->io.req, peer, GIN_EPEER, 0, "given up");
        free_held(l, h);
    }
    l->ops->cancel_peer(l->inner, peer);
}

/* What fails by plan is progress of the core's, not of what the inner network has to tidy up. */
void gi_fault_part(struct gi_net_lane *lane)
{
    struct fault_lane *l = (struct fault_lane *)lane;
    l->ops->part(l->inner);
}
