/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator made by hand, as kernels see one: several ranks on one GPU, their heaps one behind
 * the other in one block of memory, windows of every mode, barriers, lists, rings. It shows the
 * device code the structs of impl/state.h without the library, so that either side can be tried
 * alone. World ranks 0 .. n-1 are GPU ranks; rank n is a CPU rank, whose host windows are within
 * reach; rank n+1 is on another host.
 */
#ifndef GINSHMEM_TESTS_GPU_FAKE_H
#define GINSHMEM_TESTS_GPU_FAKE_H

#include "tests/gpu/device/bed.h"
#include <ginshmem/impl/desc.h>

enum {
    FAKE_MAX = 4, /* GPU ranks */
    FAKE_CONTEXTS = 2,
    FAKE_SIGNALS = 16,
    FAKE_COUNTERS = 8,
    FAKE_BARRIERS = 4, /* indices per kind */
    FAKE_DEPTH = 8,    /* of rings: small, so that they wrap */
    FAKE_REPLIES = 4,
    FAKE_LIST = 5 /* place of the list of ranks */
};
#define FAKE_USER   ((uint64_t)1 << 17) /* bytes of a heap for tests */
#define FAKE_CELLS  FAKE_USER           /* heap offset of the cells */
#define FAKE_INBOX  (FAKE_CELLS + FAKE_CONTEXTS * FAKE_SIGNALS * 64)
#define FAKE_SLOT   64u /* bytes of an inbox */
#define FAKE_KINDS  5   /* barrier kinds with a pool */
#define FAKE_STRIDE (FAKE_INBOX + FAKE_KINDS * FAKE_BARRIERS * FAKE_SLOT)
#define FAKE_WINDOW 8192u /* bytes of the other windows */

/* Ids of windows. The heap's real size is larger than what bindings know, as after growth. */
enum { FAKE_HEAP = 1, FAKE_TABLE = 2, FAKE_HOST = 3, FAKE_FAR = 4, FAKE_READ_ONLY = 300 };

GIN_VALUE gin_window_t fake_window(uint32_t id)
{
    gin_window_t w = {(uint64_t)(7 + id) << 32 | id};
    return w;
}

/* One rank's part. */
struct fake_rank {
    gin_devcomm_t dev;
    struct gin_i_dc dc;
    struct gin_i_ctx ctx[FAKE_CONTEXTS];
    struct gin_i_ring *rings[FAKE_CONTEXTS];
    struct gin_i_ring_host *ring_host[FAKE_CONTEXTS];
    struct gin_i_desc *slots[FAKE_CONTEXTS];
    struct gin_i_reply *replies[FAKE_CONTEXTS];
    struct gin_i_cells *host_cells; /* of all contexts */
    uint64_t *host_counters;
    uint64_t *error;
    char *host;  /* memory behind FAKE_HOST */
    char *table; /* behind FAKE_TABLE */
    char *far;   /* behind FAKE_FAR, by the engine only */
};

struct fake {
    int n; /* GPU ranks */
    char *heaps;
    uint64_t multicast;                  /* address behind which all heaps lie, 0: none */
    struct fake_rank rank[FAKE_MAX + 1]; /* the last used one is the CPU rank's */
    int stop;
    uint64_t *hold; /* struct launch */
};

static inline char *fake_heap(const struct fake *f, int r)
{
    return f->heaps + (uint64_t)r * FAKE_STRIDE;
}

/* Device memory holding a copy of `bytes` at src, or zeros. */
static inline void *fake_copy(const void *src, size_t bytes)
{
    void *p = bed_device_alloc(bytes);
    if (src != NULL)
        bed_copy(p, src, bytes);
    return p;
}

static inline struct gin_i_window fake_entry(uint32_t id, int r)
{
    struct gin_i_window w;
    memset(&w, 0, sizeof(w));
    (void)r;
    w.handle = w.twin = fake_window(id).w;
    w.size = FAKE_WINDOW;
    w.mode = GIN_I_WINDOW_STRIDE;
    w.kind = GIN_KIND_CUDA;
    w.apply = GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES;
    return w;
}

/* Rank r's table of windows; level 1 in device memory. */
static inline uint64_t fake_windows(struct fake *f, int r)
{
    static const struct gin_i_window none[GIN_I_WINDOW_PAGE] = {};
    struct gin_i_window pages[2][GIN_I_WINDOW_PAGE];
    uint64_t level1[GIN_I_WINDOW_PAGES], peers[FAKE_MAX + 1];
    memset(pages, 0, sizeof(pages));
    struct gin_i_window *w = &pages[0][FAKE_HEAP];
    *w = fake_entry(FAKE_HEAP, r);
    w->size = FAKE_USER;
    w->local = (uint64_t)fake_heap(f, r);
    w->lsa_base = (uint64_t)f->heaps;
    w->lsa_stride = FAKE_STRIDE;
    w = &pages[0][FAKE_TABLE];
    *w = fake_entry(FAKE_TABLE, r);
    w->mode = GIN_I_WINDOW_TABLE;
    w->local = (uint64_t)f->rank[r].table;
    for (int i = 0; i <= FAKE_MAX; i++)
        peers[i] = i < f->n ? (uint64_t)f->rank[i].table : 0;
    w->peers = (const uint64_t *)fake_copy(peers, sizeof(peers));
    w = &pages[0][FAKE_HOST]; /* host memory: no atomics of GPUs */
    *w = fake_entry(FAKE_HOST, r);
    w->kind = GIN_KIND_HOST;
    w->apply = GIN_I_APPLY_STORES;
    w->local = (uint64_t)f->rank[r].host;
    w->lsa_base = (uint64_t)f->rank[0].host;
    w->lsa_stride = FAKE_WINDOW;
    w = &pages[0][FAKE_FAR];
    *w = fake_entry(FAKE_FAR, r);
    w->mode = GIN_I_WINDOW_SLOW;
    w->local = (uint64_t)f->rank[r].far;
    w = &pages[1][FAKE_READ_ONLY - GIN_I_WINDOW_PAGE];
    *w = fake_entry(FAKE_READ_ONLY, r);
    w->flags = GIN_WIN_READ_ONLY;
    w->local = (uint64_t)fake_heap(f, r);
    w->lsa_base = (uint64_t)f->heaps;
    w->lsa_stride = FAKE_STRIDE;
    uint64_t zeros = (uint64_t)fake_copy(none, sizeof(none));
    for (uint32_t i = 0; i < GIN_I_WINDOW_PAGES; i++)
        level1[i] = zeros;
    level1[0] = (uint64_t)fake_copy(pages[0], sizeof(pages[0]));
    level1[1] = (uint64_t)fake_copy(pages[1], sizeof(pages[1]));
    return (uint64_t)fake_copy(level1, sizeof(level1));
}

/* world, LSA and the list's team of all GPU ranks; rail of me alone; hybrid beyond reach. */
static inline const struct gin_i_barriers *fake_barriers(struct fake *f, int r)
{
    struct gin_i_barriers b;
    struct gin_i_pool pools[FAKE_KINDS];
    memset(&b, 0, sizeof(b));
    memset(pools, 0, sizeof(pools));
    for (int k = 0; k < FAKE_KINDS; k++) {
        uint64_t peers[FAKE_MAX];
        struct gin_i_pool *p = &pools[k];
        int alone = k == GIN_BARRIER_RAIL;
        p->count = FAKE_BARRIERS;
        p->n = alone ? 1 : (uint32_t)f->n;
        /* the list goes backwards */
        p->me = alone ? 0 : (uint32_t)(k == GIN_BARRIER_TEAM ? f->n - 1 - r : r);
        p->beyond = k == GIN_BARRIER_HYBRID ? f->n + 1 : -1;
        p->slot = FAKE_SLOT;
        if (f->multicast != 0 && !alone)
            p->multimem = f->multicast + FAKE_INBOX + (uint64_t)k * FAKE_BARRIERS * FAKE_SLOT;
        for (int i = 0; i < f->n; i++)
            peers[i] = (uint64_t)fake_heap(f, alone                   ? r
                                              : k == GIN_BARRIER_TEAM ? f->n - 1 - i
                                                                      : i) +
                       FAKE_INBOX + (uint64_t)k * FAKE_BARRIERS * FAKE_SLOT;
        p->peers = (const uint64_t *)fake_copy(peers, sizeof(peers));
        p->rounds =
            (struct gin_i_round *)fake_copy(NULL, FAKE_BARRIERS * sizeof(struct gin_i_round));
    }
    memcpy(b.fixed, pools, sizeof(b.fixed));
    struct gin_i_pool teams[2]; /* the second one is no team of mine */
    teams[0] = teams[1] = pools[GIN_BARRIER_TEAM];
    teams[1].n = 0;
    b.teams = (const struct gin_i_pool *)fake_copy(teams, sizeof(teams));
    b.n_teams = 2;
    return (const struct gin_i_barriers *)fake_copy(&b, sizeof(b));
}

static inline struct gin_i_ring *fake_ring(struct fake_rank *me, int c)
{
    struct gin_i_ring ring;
    memset(&ring, 0, sizeof(ring));
    me->slots[c] = (struct gin_i_desc *)bed_host_alloc(FAKE_DEPTH * sizeof(struct gin_i_desc));
    me->ring_host[c] = (struct gin_i_ring_host *)bed_host_alloc(sizeof(struct gin_i_ring_host));
    me->replies[c] =
        (struct gin_i_reply *)bed_host_alloc(FAKE_REPLIES * sizeof(struct gin_i_reply));
    ring.slots = me->slots[c];
    ring.host = me->ring_host[c];
    ring.replies = me->replies[c];
    ring.reply_busy = (uint32_t *)fake_copy(NULL, FAKE_REPLIES * sizeof(uint32_t));
    ring.depth = FAKE_DEPTH;
    ring.n_replies = FAKE_REPLIES;
    return (struct gin_i_ring *)fake_copy(&ring, sizeof(ring));
}

GIN_VALUE gin_team_t fake_team(int size, int rank, int first, int stride)
{
    gin_team_t t = {size, rank, first, stride};
    return t;
}

static inline void fake_contexts(struct fake *f, int r, struct gin_i_dc *where, int rings)
{
    struct fake_rank *me = &f->rank[r];
    struct gin_i_base *bases = (struct gin_i_base *)fake_copy(NULL, FAKE_CONTEXTS * FAKE_SIGNALS *
                                                                        sizeof(struct gin_i_base));
    struct gin_i_counter *counters = (struct gin_i_counter *)fake_copy(
        NULL, FAKE_CONTEXTS * FAKE_COUNTERS * sizeof(struct gin_i_counter));
    for (int c = 0; c < FAKE_CONTEXTS; c++) {
        struct gin_i_ctx *x = &me->ctx[c];
        x->dc = where;
        x->signals_off = FAKE_CELLS + (uint64_t)c * FAKE_SIGNALS * sizeof(struct gin_i_cells);
        x->signals = (struct gin_i_cells *)(fake_heap(f, r) + x->signals_off);
        x->bases = bases + c * FAKE_SIGNALS;
        x->counters = counters + c * FAKE_COUNTERS;
        x->n_signals = FAKE_SIGNALS;
        x->n_counters = FAKE_COUNTERS;
        x->index = (uint32_t)c;
        if (rings) {
            me->rings[c] = x->ring = fake_ring(me, c);
            x->host_signals = me->host_cells + c * FAKE_SIGNALS;
            x->host_counters = me->host_counters + c * FAKE_COUNTERS;
        }
    }
}

/* Rank r's device communicator. shortcut 0: every LSA rank is read from the table. */
static inline void fake_rank_up(struct fake *f, int r, int rings, int shortcut)
{
    struct fake_rank *me = &f->rank[r];
    struct gin_i_dc *dc = &me->dc, *where = (struct gin_i_dc *)bed_device_alloc(sizeof(*dc));
    int32_t lsa_of[FAKE_MAX + 2], ranks[FAKE_MAX];
    static struct gin_i_list lists[GIN_I_LISTS];
    uint32_t ids = FAKE_READ_ONLY + 1;
    fake_contexts(f, r, where, rings);
    dc->magic = GIN_DEVCOMM_MAGIC;
    dc->flags = GIN_I_DC_STRONG | GIN_I_DC_VA;
    dc->n_contexts = FAKE_CONTEXTS;
    dc->ctx = (struct gin_i_ctx *)fake_copy(me->ctx, sizeof(me->ctx));
    dc->world = fake_team(f->n + 2, r, 0, 1);
    dc->lsa = fake_team(f->n + (shortcut ? 0 : 1), r, 0, 1); /* with the CPU rank, or without */
    dc->node = dc->lsa;
    dc->rail = fake_team(1, 0, r, 1);
    dc->scratch = gin_at(fake_window(FAKE_TABLE), 64);
    dc->all.index = GIN_ALL_CONTEXTS;
    dc->all.dc = where;
    dc->reach.lsa_base = (uint64_t)f->heaps;
    dc->reach.lsa_stride = FAKE_STRIDE;
    dc->reach.handle = fake_window(FAKE_HEAP).w;
    dc->reach.size = FAKE_USER / 2; /* it has grown since */
    dc->reach.lsa_rank = r;
    dc->reach.lsa_count = shortcut ? f->n : 0;
    dc->reach.apply = GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES;
    dc->error = me->error = (uint64_t *)bed_host_alloc(64);
    dc->barriers = fake_barriers(f, r);
    for (int i = 0; i < f->n; i++)
        ranks[i] = f->n - 1 - i;
    lists[FAKE_LIST].name = (int32_t)GIN_I_LISTS * 3 + FAKE_LIST;
    lists[FAKE_LIST].size = f->n;
    lists[FAKE_LIST].ranks = (const int32_t *)fake_copy(ranks, sizeof(ranks));
    dc->lists = (const struct gin_i_list *)fake_copy(lists, sizeof(lists));
    dc->window_ids = (const uint32_t *)fake_copy(&ids, sizeof(ids));
    dc->multimem = f->multicast;
    dc->engine_thread = 8192;
    dc->engine_warp = 32768;
    dc->serial = 40 + (uint64_t)r;
    bed_copy(where, dc, sizeof(*dc));
    for (int i = 0; i < f->n; i++)
        lsa_of[i] = i;
    lsa_of[f->n] = f->n | GIN_I_LSA_HOST_ONLY;
    lsa_of[f->n + 1] = -1;
    memset(&me->dev, 0, sizeof(me->dev));
    me->dev.magic = GIN_DEVCOMM_MAGIC;
    me->dev.abi = GIN_DEVCOMM_ABI;
    me->dev.rank = r;
    me->dev.size = f->n + 2;
    me->dev.n_contexts = FAKE_CONTEXTS;
    me->dev.n_signals = FAKE_SIGNALS;
    me->dev.n_counters = FAKE_COUNTERS;
    me->dev.device = GIN_DEVICE_CUDA;
    me->dev.serial = dc->serial;
    me->dev.state = (uint64_t)where;
    me->dev.windows = fake_windows(f, r);
    me->dev.lsa_of = (uint64_t)fake_copy(lsa_of, sizeof(lsa_of));
}

/* Real multicast needs more than one GPU. */
static inline uint64_t fake_multicast(const struct fake *f)
{
#ifdef GIN_EMULATE
    emu_multicast.base = (uint64_t)1 << 60; /* no address of anything */
    emu_multicast.bytes = emu_multicast.stride = FAKE_STRIDE;
    emu_multicast.heaps = (uint64_t)f->heaps;
    emu_multicast.n = f->n;
    return emu_multicast.base;
#else
    (void)f;
    return 0;
#endif
}

static inline struct fake *fake_up(int n, int rings, int shortcut, int multicast)
{
    struct fake *f = (struct fake *)calloc(1, sizeof(*f));
    f->n = n;
    f->heaps = (char *)bed_device_alloc((uint64_t)n * FAKE_STRIDE);
    f->hold = (uint64_t *)bed_host_alloc(64);
    f->multicast = multicast ? fake_multicast(f) : 0;
    char *host = (char *)bed_host_alloc((uint64_t)(n + 1) * FAKE_WINDOW);
    for (int r = 0; r <= n; r++) {
        f->rank[r].host = host + (uint64_t)r * FAKE_WINDOW;
        f->rank[r].table = (char *)bed_device_alloc(FAKE_WINDOW);
        f->rank[r].far = (char *)bed_device_alloc(FAKE_WINDOW);
        f->rank[r].host_cells = (struct gin_i_cells *)bed_host_alloc(FAKE_CONTEXTS * FAKE_SIGNALS *
                                                                     sizeof(struct gin_i_cells));
        f->rank[r].host_counters =
            (uint64_t *)bed_host_alloc(FAKE_CONTEXTS * FAKE_COUNTERS * sizeof(uint64_t));
    }
    for (int r = 0; r < n; r++)
        fake_rank_up(f, r, rings, shortcut);
    return f;
}

#endif
