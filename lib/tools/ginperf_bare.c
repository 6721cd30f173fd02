/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening the bare provider: the one that the library uses here, asked for what the library asks,
 * so that both send the same. Without a network of the library GINSHMEM_PROVIDER names it, or tcp,
 * net and tcp;ofi_rxm are tried.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ginperf_bare.h"

#define ROOM     512u /* of the partner's card and word of the end, in the page of flags */
#define PROBED   4u   /* the signal by which the shape is found */
#define LIMIT_NS 20e9

struct bare bare;

struct card {
    uint64_t key, base, ok, len;
    char name[224];
};

/* ---- which provider ---- */

struct meant {
    char provider[64];
    const char *fabric; /* NULL: any */
    enum fi_ep_type type;
};

/* "NAME-msg" are the connected endpoints of NAME, and "efa-direct" is a fabric of efa. */
static struct meant meaning(const char *name)
{
    struct meant m = {.type = FI_EP_RDM};
    size_t len = strlen(name);
    snprintf(m.provider, sizeof(m.provider), "%s", name);
    if (len > 4 && len < sizeof(m.provider) && strcasecmp(name + len - 4, "-msg") == 0) {
        m.provider[len - 4] = 0;
        m.type = FI_EP_MSG;
    } else if (strncasecmp(name, "efa", 3) == 0) {
        m.fabric = strcasecmp(name, "efa-direct") == 0 ? "efa-direct" : "efa";
        strcpy(m.provider, "efa");
    }
    return m;
}

static struct fi_info *hints_for(const struct meant *m, uint64_t order, uint64_t more)
{
    struct fi_info *h = fi_allocinfo();
    if (h == NULL)
        return NULL;
    h->fabric_attr->prov_name = strdup(m->provider);
    h->fabric_attr->name = m->fabric != NULL ? strdup(m->fabric) : NULL;
    h->caps = FI_MSG | FI_RMA | more;
    h->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    h->ep_attr->type = m->type;
    h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
                              (m->type == FI_EP_RDM ? FI_MR_ENDPOINT : 0);
    h->domain_attr->threading = FI_THREAD_SAFE;
    h->domain_attr->av_type = m->type == FI_EP_RDM ? FI_AV_TABLE : FI_AV_UNSPEC;
    h->tx_attr->msg_order = h->rx_attr->msg_order = order;
    return h;
}

static bool is_device(const struct fi_info *i)
{
    const char *nic = getenv("GINSHMEM_NIC");
    return nic == NULL || strncmp(i->domain_attr->name, nic, strlen(nic)) == 0;
}

static struct fi_info *ask(const struct meant *m, uint64_t order, uint64_t more)
{
    struct fi_info *h = hints_for(m, order, more), *list = NULL, *found = NULL;
    uint32_t mine = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), runs = fi_version();
    if (h == NULL || fi_getinfo(FI_VERSION_LT(runs, mine) ? runs : mine, NULL, NULL, 0, h, &list))
        list = NULL;
    for (struct fi_info *i = list; i != NULL && found == NULL; i = i->next)
        if (strcmp(i->fabric_attr->prov_name, m->provider) == 0 && is_device(i) &&
            (m->fabric == NULL || strcasecmp(i->fabric_attr->name, m->fabric) == 0))
            found = fi_dupinfo(i);
    fi_freeinfo(list);
    fi_freeinfo(h);
    return found;
}

/* With as much order as there is; without, an atomic behind a write needs a fence. */
static struct fi_info *find(const char *name)
{
    static const uint64_t orders[] = {FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_SAW,
                                      FI_ORDER_WAW | FI_ORDER_RMA_WAW, 0};
    struct meant m = meaning(name);
    struct fi_info *i = NULL;
    uint64_t more = bare.shape == BARE_WRITE_ADD ? FI_ATOMIC : 0;
    for (size_t k = 0; k < 3 && i == NULL; k++) {
        bare.ordered = orders[k] != 0;
        bare.fence = more != 0 && !bare.ordered;
        i = ask(&m, orders[k], bare.fence ? more | FI_FENCE : more);
        if (i == NULL && bare.fence) {
            bare.fence = false;
            i = ask(&m, orders[k], more);
        }
    }
    bare.connected = m.type == FI_EP_MSG;
    return i;
}

/* The library's, by its name: "net (117.0, libfabric 1.17): unordered, writes ask ...". */
static struct fi_info *find_alike(const char *how)
{
    static const char *const names[] = {"tcp", "net", "tcp;ofi_rxm"};
    const char *mine = getenv("GINSHMEM_PROVIDER");
    char name[64];
    struct fi_info *i = NULL;
    bool direct = mine != NULL && strcasecmp(mine, "efa-direct") == 0; /* of one name with efa */
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(how, " "), how);
    if (name[0] != 0)
        return find(direct ? mine : name);
    if (mine != NULL && *mine != 0)
        return find(mine);
    for (size_t k = 0; k < 3 && i == NULL; k++)
        i = find(names[k]);
    return i;
}

/* ---- what the library sends ---- */

static gin_stats_t sent(struct perf *p)
{
    gin_stats_t s = {.size_of = sizeof(s)};
    gin_stats(p->comm, &s);
    return s;
}

/* What the pair's lead says, or the less of both. All ranks at once. */
static int of_pair(const struct perf *p, int mine, bool leads)
{
    int *all = malloc((size_t)p->size * sizeof(*all));
    if (all == NULL || gin_comm_allgather(p->comm, &mine, all, sizeof(mine)) != GIN_OK) {
        fprintf(stderr, "ginperf: rank %d: %s\n", p->rank,
                all != NULL ? gin_last_error() : "no memory");
        exit(1);
    }
    int other = p->peer >= 0 ? all[p->peer] : mine;
    free(all);
    return leads ? (p->lead ? mine : other) : (mine < other ? mine : other);
}

/* The second one, with nothing under way. */
static void find_shape(struct perf *p)
{
    gin_at_t dst = gin_at(p->win, p->heap_off);
    gin_stats_t a = sent(p), b = a;
    for (int i = 0; i < 2 && p->peer >= 0; i++) {
        gin_quiet(&p->g, gin_thread());
        a = sent(p);
        gin_put(&p->g, gin_thread(), p->world, p->peer, dst, gin_at_local(p->src), 8,
                gin_weak_inc(PROBED));
        gin_flush(&p->g, gin_thread());
        b = sent(p);
    }
    bool writes = b.net_writes != a.net_writes, messages = b.net_messages != a.net_messages;
    bare.shape = b.net_atomics != a.net_atomics ? BARE_WRITE_ADD
                 : !messages                    ? BARE_WRITE_IMM
                 : writes                       ? BARE_WRITE_MSG
                                                : BARE_MSG;
    if (p->peer >= 0)
        gin_quiet(&p->g, gin_thread());
    bare.shape = (enum bare_shape)of_pair(p, (int)bare.shape, true);
}

const char *perf_fabric_shape(void)
{
    if (!bare.tried)
        return NULL;
    switch (bare.shape) {
    case BARE_WRITE_IMM:
        return bare.told ? "a write with an immediate, with word of its delivery"
                         : "a write with an immediate";
    case BARE_WRITE_ADD: return "a write and an atomic";
    case BARE_WRITE_MSG: return "a write and a message behind it";
    default: return "a message";
    }
}

/* ---- objects ---- */

static bool place_parts(size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    size_t all = 4 * bytes + 3 * 64 + BARE_RECVS * BARE_MESSAGE;
    bare.bytes = bytes;
    bare.memory = aligned_alloc(4096, (all + 4095) & ~(size_t)4095);
    if (bare.memory == NULL)
        return false;
    memset(bare.memory, 0, all);
    bare.in = bare.memory;
    bare.room = bare.in + bytes;
    bare.out = bare.room + bytes;
    bare.last = bare.out + bytes;
    bare.word = (uint64_t *)(void *)(bare.last + bytes);
    bare.one = bare.word + 8;
    bare.old = bare.word + 16;
    *bare.one = 1;
    for (size_t i = 0; i < BARE_RECVS; i++)
        bare.recv[i].bytes = (char *)(bare.word + 24) + i * BARE_MESSAGE;
    for (size_t i = 0; i < BARE_WINDOW; i++)
        bare.spare[i] = &bare.context[i];
    return true;
}

static int register_parts(void)
{
    struct iovec iov = {.iov_base = bare.memory,
                        .iov_len =
                            (size_t)(bare.recv[BARE_RECVS - 1].bytes - bare.memory) + BARE_MESSAGE};
    struct fi_mr_attr a = {.mr_iov = &iov,
                           .iov_count = 1,
                           .access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                                     FI_REMOTE_WRITE,
                           .requested_key = 4711};
    int rc = fi_mr_regattr(bare.domain, &a, 0, &bare.mr);
    if (rc != 0 || !(bare.info->domain_attr->mr_mode & FI_MR_ENDPOINT))
        return rc;
    rc = fi_mr_bind(bare.mr, &bare.ep->fid, 0);
    return rc == 0 ? fi_mr_enable(bare.mr) : rc;
}

int bare_bind(struct fid_ep *ep)
{
    struct fid *to = bare.connected ? &bare.eq->fid : &bare.av->fid;
    int rc = fi_ep_bind(ep, to, 0);
    if (rc == 0)
        rc = fi_ep_bind(ep, &bare.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
    if (rc == 0)
        rc = fi_ep_bind(ep, &bare.cq->fid, FI_RECV);
    return rc == 0 ? fi_enable(ep) : rc;
}

static int open_datagrams(struct card *mine)
{
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    size_t room = sizeof(mine->name);
    int rc = fi_av_open(bare.domain, &av, &bare.av, NULL);
    if (rc == 0)
        rc = fi_endpoint(bare.domain, bare.info, &bare.ep, NULL);
    if (rc == 0)
        rc = bare_bind(bare.ep);
    if (rc == 0)
        rc = fi_getname(&bare.ep->fid, mine->name, &room);
    mine->len = room;
    return rc;
}

static int open_objects(struct card *mine)
{
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE, .size = 4096};
    const struct fi_info *i = bare.info;
    size_t room = sizeof(mine->name);
    bare.contexts = ((i->mode | i->tx_attr->mode) & (FI_CONTEXT | FI_CONTEXT2)) != 0;
    int rc = fi_fabric(i->fabric_attr, &bare.fabric, NULL);
    if (rc == 0)
        rc = fi_domain(bare.fabric, bare.info, &bare.domain, NULL);
    if (rc == 0)
        rc = fi_cq_open(bare.domain, &cq, &bare.cq, NULL);
    if (rc == 0 && bare.connected) {
        rc = bare_listen(mine->name, &room);
        mine->len = room;
    } else if (rc == 0) {
        rc = open_datagrams(mine);
    }
    if (rc == 0)
        rc = register_parts();
    if (rc == 0 && !bare.connected && !bare_post_receives())
        rc = -FI_EINVAL;
    return rc;
}

static void close_one(struct fid *fid)
{
    if (fid != NULL)
        fi_close(fid);
}

/* The shm provider would leave a file behind. Not at exit(): some providers call that from a
 * signal's handler, in the middle of a call that holds their locks. */
void perf_fabric_close(void)
{
    struct bare *b = &bare;
    bool bound = b->info != NULL && (b->info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0;
    if (bound && b->mr != NULL)
        close_one(&b->mr->fid);
    close_one(b->ep != NULL ? &b->ep->fid : NULL);
    close_one(b->pep != NULL ? &b->pep->fid : NULL);
    if (!bound && b->mr != NULL) /* receives use it until then */
        close_one(&b->mr->fid);
    close_one(b->cq != NULL ? &b->cq->fid : NULL);
    close_one(b->av != NULL ? &b->av->fid : NULL);
    close_one(b->eq != NULL ? &b->eq->fid : NULL);
    close_one(b->domain != NULL ? &b->domain->fid : NULL);
    close_one(b->fabric != NULL ? &b->fabric->fid : NULL);
    fi_freeinfo(b->info);
    free(b->memory);
}

/* ---- both together ---- */

/* In the page of flags, behind the first half, which has the flag. */
static size_t notes_off(const struct perf *p)
{
    return (2 * p->max_bytes + 2048 + 7) & ~(size_t)7;
}

static gin_at_t notes_there(const struct perf *p)
{
    return gin_at(p->win, p->heap_off + notes_off(p));
}

void bare_lost(const char *what, ssize_t rc)
{
    if (bare.usable)
        fprintf(stderr, "ginperf: bare libfabric (%s): %s: %s\n", bare.info->fabric_attr->prov_name,
                what, fi_strerror((int)(rc < 0 ? -rc : rc)));
    bare.usable = false;
}

static bool meet(const struct perf *p, const struct card *c)
{
    int rc = bare.connected ? bare_connect(p, c->name, c->len)
                            : fi_av_insert(bare.av, c->name, 1, &bare.peer, 0, NULL) - 1;
    bare.key = c->key;
    bare.base = c->base;
    if (rc != 0)
        bare_lost("meeting the partner", rc);
    return bare.usable;
}

/* Cards travel by a put into the partner's heap. */
void bare_up(struct perf *p)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    struct card mine = {.ok = 0}, other = {.ok = 0};
    if (bare.tried)
        return;
    bare.tried = true;
    bool net = gin_query(p->comm, &caps) == GIN_OK && caps.cap[GIN_CAP_NET].have == 1;
    const char *how = net ? caps.cap[GIN_CAP_NET].reason : "";
    find_shape(p);
    bare.told = strstr(how, "ask for delivery") != NULL;
    bare.info = find_alike(how);
    int rc = bare.info == NULL           ? -FI_ENODATA
             : place_parts(p->max_bytes) ? open_objects(&mine)
                                         : -FI_ENOMEM;
    if (rc == 0) {
        mine.ok = 1;
        mine.key = fi_mr_key(bare.mr);
        if (bare.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
            mine.base = (uint64_t)(uintptr_t)bare.memory;
    } else if (bare.info != NULL) {
        bare.usable = true;
        bare_lost("opening it", rc);
    }
    perf_sync(p);
    if (p->peer >= 0) {
        gin_put(&p->g, gin_thread(), p->world, p->peer, notes_there(p), gin_at_local(&mine),
                sizeof(mine), gin_no_action());
        gin_quiet(&p->g, gin_thread());
    }
    perf_sync(p);
    memcpy(&other, p->heap + notes_off(p), sizeof(other));
    bare.usable = p->peer >= 0 && !p->all && mine.ok == 1 && other.ok == 1;
    bool met = bare.usable && meet(p, &other);
    bare.usable = of_pair(p, met, false) == 1;
}

void bare_leave(struct perf *p)
{
    static uint32_t turn;
    const uint64_t *word = (const uint64_t *)(const void *)(p->heap + notes_off(p) + ROOM);
    uint64_t done = (uint64_t)0x6c656176 << 32 | ++turn;
    double end = perf_now_ns() + LIMIT_NS;
    for (unsigned i = 1; bare.used != 0 && bare.usable && perf_now_ns() < end; i++)
        bare_poll(i);
    if (p->peer >= 0) {
        gin_at_t at = notes_there(p);
        at.off += ROOM;
        gin_put_value(&p->g, gin_thread(), p->world, p->peer, at, done, 8, gin_no_action());
        gin_flush(&p->g, gin_thread());
    }
    for (unsigned i = 1; bare.usable && __atomic_load_n(word, __ATOMIC_ACQUIRE) != done; i++) {
        bare_poll(i);
        if (perf_now_ns() > end)
            bare_lost("waiting for the partner's end", -FI_ETIMEDOUT);
    }
    perf_sync(p);
}
