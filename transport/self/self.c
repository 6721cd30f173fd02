/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks of one process as a network. One lock for the whole hub: this is for tests. A write copies
 * at once, and what it leaves for the target's CPU (immediates, messages) waits in the inbox of the
 * target's lane; completions wait in a ring of the source's. Lanes live as long as the hub, so that
 * a peer's late post finds a closed one.
 */
#include "transport/self/self.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

#define DEPTH  256u
#define INJECT 64u
#define RUN    32u /* events taken out of the lock at once */

struct arrival {
    int peer;
    bool is_imm;
    uint32_t len;
    uint64_t imm;
    uint64_t bytes[GI_NET_MSG_MAX / 8];
};

struct completion {
    struct gi_net_request *req;
    int peer, status, provider_error;
};

struct self_mr {
    struct gi_net_mr head;
    char *addr;
    uint64_t bytes;
    bool remote;
    struct self_mr *next;
};

struct self_lane {
    struct gi_net_lane head;
    struct self_domain *d;
    struct self_lane *next; /* of the hub */
    struct gi_net_handler handler;
    bool closed;
    struct self_lane **peers; /* by rank */
    struct completion done[DEPTH];
    uint32_t done_head, done_count, in_flight;
    struct arrival *inbox;
    uint32_t in_head, in_count, in_room;
};

struct self_domain {
    struct gi_net_domain head;
    struct gi_self_hub *hub;
    int rank, size;
    uint64_t next_key;
    struct self_mr *mrs;
};

struct gi_self_hub {
    pthread_mutex_t lock;
    struct self_lane *lanes;
    uint8_t *dead;
    int ranks;
};

int gi_self_hub_open(struct gi_self_hub **hub)
{
    struct gi_self_hub *h = calloc(1, sizeof(*h));
    if (h == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a network within the process");
    pthread_mutex_init(&h->lock, NULL);
    *hub = h;
    return GIN_OK;
}

void gi_self_hub_close(struct gi_self_hub *hub)
{
    while (hub->lanes != NULL) {
        struct self_lane *l = hub->lanes;
        hub->lanes = l->next;
        free(l->peers);
        free(l->inbox);
        free(l);
    }
    pthread_mutex_destroy(&hub->lock);
    free(hub->dead);
    free(hub);
}

void gi_self_kill(struct gi_self_hub *hub, int rank)
{
    pthread_mutex_lock(&hub->lock);
    if (rank >= 0 && rank < hub->ranks)
        hub->dead[rank] = 1;
    pthread_mutex_unlock(&hub->lock);
}

/* ---- domain ---- */

static const struct gi_net_caps self_caps = {.waw_bytes = GI_NET_UNLIMITED,
                                             .saw = true,
                                             .was = true,
                                             .raw = true,
                                             .sas = true,
                                             .amo_ordered = true,
                                             .amo = GI_NET_AMO_NATIVE,
                                             .dc = GI_NET_DC_SAME,
                                             .imm_bits = 64,
                                             .msg_source = true,
                                             .imm_source = true,
                                             .target_passive = true,
                                             .inject = INJECT,
                                             .max_msg = GI_NET_UNLIMITED,
                                             .msg_max = GI_NET_MSG_MAX,
                                             .depth = DEPTH,
                                             .name = "self",
                                             .version = "1",
                                             .notes = ""};

static int self_open(const struct gi_net_config *config, struct gi_net_domain **domain)
{
    struct gi_self_hub *hub = (struct gi_self_hub *)(uintptr_t)config->more;
    struct self_domain *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a network within the process");
    *d = (struct self_domain){.head = {.ops = &gi_self_ops},
                              .hub = hub,
                              .rank = config->rank,
                              .size = config->size,
                              .next_key = 0x5e1f0000};
    pthread_mutex_lock(&hub->lock);
    uint8_t *dead = config->size > hub->ranks ? calloc((size_t)config->size, 1) : hub->dead;
    if (dead != NULL && dead != hub->dead) {
        if (hub->ranks != 0)
            memcpy(dead, hub->dead, (size_t)hub->ranks);
        free(hub->dead);
        hub->dead = dead;
        hub->ranks = config->size;
    }
    pthread_mutex_unlock(&hub->lock);
    if (dead == NULL) {
        free(d);
        return gi_fail(GIN_ENOMEM, "no memory for a network within the process");
    }
    *domain = &d->head;
    return GIN_OK;
}

static void self_close(struct gi_net_domain *d)
{
    free(d);
}

static const struct gi_net_caps *self_get_caps(struct gi_net_domain *d)
{
    (void)d;
    return &self_caps;
}

static int self_reg(struct gi_net_domain *domain, const struct gi_net_memory_desc *memory,
                    struct gi_net_mr **mr)
{
    struct self_domain *d = (struct self_domain *)domain;
    struct self_mr *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a registration");
    pthread_mutex_lock(&d->hub->lock);
    d->next_key += 0x9e37;
    *m = (struct self_mr){.head = {.key = d->next_key},
                          .addr = memory->addr,
                          .bytes = memory->bytes,
                          .remote = memory->remote,
                          .next = d->mrs};
    d->mrs = m;
    pthread_mutex_unlock(&d->hub->lock);
    *mr = &m->head;
    return GIN_OK;
}

static void self_dereg(struct gi_net_domain *domain, struct gi_net_mr *mr)
{
    struct self_domain *d = (struct self_domain *)domain;
    pthread_mutex_lock(&d->hub->lock);
    for (struct self_mr **at = &d->mrs; *at != NULL; at = &(*at)->next)
        if (&(*at)->head == mr) {
            *at = (*at)->next;
            break;
        }
    pthread_mutex_unlock(&d->hub->lock);
    free(mr);
}

/* ---- lanes ---- */

static int self_lane_open(struct gi_net_domain *domain, const struct gi_net_lane_config *config,
                          struct gi_net_lane **lane)
{
    struct self_domain *d = (struct self_domain *)domain;
    struct self_lane *l = calloc(1, sizeof(*l));
    if (l == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a lane");
    l->head.ops = &gi_self_ops;
    l->d = d;
    l->handler = config->handler;
    l->peers = calloc((size_t)d->size, sizeof(struct self_lane *));
    if (l->peers == NULL) {
        free(l);
        return gi_fail(GIN_ENOMEM, "no memory for a lane to %d ranks", d->size);
    }
    pthread_mutex_lock(&d->hub->lock);
    l->next = d->hub->lanes;
    d->hub->lanes = l;
    pthread_mutex_unlock(&d->hub->lock);
    *lane = &l->head;
    return GIN_OK;
}

static void self_lane_close(struct gi_net_lane *lane)
{
    struct self_lane *l = (struct self_lane *)lane;
    pthread_mutex_lock(&l->d->hub->lock);
    l->closed = true;
    pthread_mutex_unlock(&l->d->hub->lock);
}

static int self_name(struct gi_net_lane *lane, void *blob, uint32_t *len)
{
    uint64_t name = (uint64_t)(uintptr_t)lane;
    if (*len < sizeof(name))
        return gi_fail(GIN_ERANGE, "a lane's name has %zu bytes", sizeof(name));
    memcpy(blob, &name, sizeof(name));
    *len = sizeof(name);
    return GIN_OK;
}

static int self_connect(struct gi_net_lane *lane, int peer, const void *blob, uint32_t len)
{
    struct self_lane *l = (struct self_lane *)lane;
    uint64_t name;
    if (len != sizeof(name))
        return gi_fail(GIN_EINVAL, "rank %d's lane has a name of %u bytes", peer, len);
    memcpy(&name, blob, sizeof(name));
    l->peers[peer] = (struct self_lane *)(uintptr_t)name;
    return GIN_OK;
}

/* ---- posts; the lock is held by those below ---- */

static bool is_lost(const struct self_lane *l, int peer)
{
    const uint8_t *dead = l->d->hub->dead;
    return dead[peer] != 0 || dead[l->d->rank] != 0 || l->peers[peer]->closed;
}

static void complete(struct self_lane *l, const struct gi_net_io *io, int status, int error)
{
    if (io->req == NULL && status == GIN_OK)
        return;
    l->done[(l->done_head + l->done_count++) % DEPTH] = (struct completion){
        .req = io->req, .peer = io->peer, .status = status, .provider_error = error};
}

static char *memory_of(struct self_domain *d, const struct gi_net_io *io)
{
    for (struct self_mr *m = d->mrs; m != NULL; m = m->next)
        if (m->head.key == io->key)
            return m->remote && io->remote <= m->bytes && io->len <= m->bytes - io->remote
                       ? m->addr + io->remote
                       : NULL;
    return NULL;
}

static struct arrival *arrive(struct self_lane *to, int from)
{
    if (to->in_count == to->in_room) {
        uint32_t room = to->in_room != 0 ? 2 * to->in_room : 64;
        struct arrival *more = malloc(room * sizeof(*more));
        if (more == NULL)
            return NULL;
        for (uint32_t i = 0; i < to->in_count; i++)
            more[i] = to->inbox[(to->in_head + i) % to->in_room];
        free(to->inbox);
        to->inbox = more;
        to->in_room = room;
        to->in_head = 0;
    }
    struct arrival *a = &to->inbox[(to->in_head + to->in_count++) % to->in_room];
    a->peer = from;
    a->is_imm = false;
    a->len = 0;
    return a;
}

enum io_kind { IO_WRITE, IO_READ, IO_AMO };

static int do_io(struct self_lane *l, const struct gi_net_io *io, enum io_kind kind)
{
    if (l->done_count + l->in_flight >= DEPTH)
        return GIN_EAGAIN;
    if (is_lost(l, io->peer)) {
        l->in_flight += io->req != NULL && l->in_flight < DEPTH / 2;
        return GIN_OK;
    }
    struct self_lane *to = l->peers[io->peer];
    char *at = memory_of(to->d, io);
    if (at == NULL) {
        complete(l, io, GIN_ENET, 13 /* EACCES */);
        return GIN_OK;
    }
    if (kind == IO_READ) {
        memcpy(io->local, at, io->len);
    } else if (kind == IO_AMO) {
        __atomic_fetch_add((uint64_t *)(void *)at, io->imm, __ATOMIC_SEQ_CST);
    } else {
        memcpy(at, io->local, io->len);
        struct arrival *a = io->flags & GI_NET_IMM ? arrive(to, l->d->rank) : NULL;
        if (a != NULL) {
            a->is_imm = true;
            a->imm = io->imm;
        }
    }
    complete(l, io, GIN_OK, 0);
    return GIN_OK;
}

static int locked_io(struct gi_net_lane *lane, const struct gi_net_io *io, enum io_kind kind)
{
    struct self_lane *l = (struct self_lane *)lane;
    pthread_mutex_lock(&l->d->hub->lock);
    int st = do_io(l, io, kind);
    pthread_mutex_unlock(&l->d->hub->lock);
    return st;
}

static int self_write(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    return locked_io(lane, io, IO_WRITE);
}

static int self_read(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    return locked_io(lane, io, IO_READ);
}

static int self_amo_add(struct gi_net_lane *lane, const struct gi_net_io *io)
{
    return locked_io(lane, io, IO_AMO);
}

static int self_msg(struct gi_net_lane *lane, int peer, const void *bytes, uint32_t len)
{
    struct self_lane *l = (struct self_lane *)lane;
    pthread_mutex_lock(&l->d->hub->lock);
    if (!is_lost(l, peer)) {
        struct arrival *a = arrive(l->peers[peer], l->d->rank);
        if (a != NULL) {
            a->len = len;
            memcpy(a->bytes, bytes, len);
        }
    }
    pthread_mutex_unlock(&l->d->hub->lock);
    return GIN_OK;
}

/* ---- progress ---- */

static uint32_t take(struct self_lane *l, struct completion *done, uint32_t *n_done,
                     struct arrival *in, uint32_t *n_in, uint32_t budget)
{
    pthread_mutex_lock(&l->d->hub->lock);
    bool alive = l->d->hub->dead[l->d->rank] == 0;
    for (*n_done = 0; alive && *n_done < budget && l->done_count != 0; l->done_count--) {
        done[(*n_done)++] = l->done[l->done_head];
        l->done_head = (l->done_head + 1) % DEPTH;
    }
    for (*n_in = 0; alive && *n_in < budget && l->in_count != 0; l->in_count--) {
        in[(*n_in)++] = l->inbox[l->in_head];
        l->in_head = (l->in_head + 1) % l->in_room;
    }
    pthread_mutex_unlock(&l->d->hub->lock);
    return *n_done + *n_in;
}

static int self_progress(struct gi_net_lane *lane, unsigned budget)
{
    struct self_lane *l = (struct self_lane *)lane;
    const struct gi_net_handler *h = &l->handler;
    struct completion done[RUN];
    struct arrival in[RUN];
    uint32_t n_done, n_in, n = take(l, done, &n_done, in, &n_in, budget < RUN ? budget : RUN);
    for (uint32_t i = 0; i < n_done; i++) {
        if (done[i].status == GIN_OK)
            h->done(h->arg, done[i].req);
        else
            h->failed(h->arg, done[i].req, done[i].peer, done[i].status, done[i].provider_error,
                      "no such memory at the target");
    }
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i].is_imm)
            h->arrived_imm(h->arg, in[i].peer, in[i].imm);
        else
            h->arrived_msg(h->arg, in[i].peer, in[i].bytes, in[i].len);
    }
    return (int)n;
}

static int self_progress_fd(struct gi_net_lane *lane, int *fd)
{
    (void)lane;
    *fd = -1;
    return 0;
}

static void self_cancel_peer(struct gi_net_lane *lane, int peer)
{
    (void)lane;
    (void)peer;
}

const struct gi_net_ops gi_self_ops = {.kind = "self",
                                       .open = self_open,
                                       .close = self_close,
                                       .caps = self_get_caps,
                                       .reg = self_reg,
                                       .dereg = self_dereg,
                                       .lane_open = self_lane_open,
                                       .lane_close = self_lane_close,
                                       .name = self_name,
                                       .connect = self_connect,
                                       .write = self_write,
                                       .read = self_read,
                                       .amo_add = self_amo_add,
                                       .msg = self_msg,
                                       .progress = self_progress,
                                       .progress_fd = self_progress_fd,
                                       .cancel_peer = self_cancel_peer};
