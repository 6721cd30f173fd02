/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making and freeing device communicators, and binding their contexts. Everything that the ranks
 * must agree on travels in one record; the symmetric block is taken only when all agree.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "colls.h"
#include "devcomm_cuda.h"
#include "engine.h"
#include "multimem.h"
#include "net_ops.h"
#include "retired.h"
#include "stream.h"

#define NET_SPIN 32u

/* ---- agreement ---- */

/* What must be equal on all ranks, in this order. */
static const char *const number_names[] = {"contexts",
                                           "signals",
                                           "counters",
                                           "world_barriers",
                                           "lsa_barriers",
                                           "rail_barriers",
                                           "hybrid_barriers",
                                           "teams",
                                           "team barriers",
                                           "scratch",
                                           "connection",
                                           "paths",
                                           "strong",
                                           "va",
                                           "bytes of barriers",
                                           "multimem",
                                           "traffic_class",
                                           "strategy",
                                           "collectives",
                                           "collective_scratch (GINSHMEM_COLL_SCRATCH)",
                                           "GINSHMEM_COLL_ALGO, COST or the like (hash)",
                                           "GINSHMEM_COLL_ORDER (1: rank)"};
#define NUMBERS (sizeof(number_names) / sizeof(number_names[0]))

struct ballot {
    uint64_t number[NUMBERS];
    uint32_t device, engine; /* may differ */
};

static void ballot_fill(struct ballot *b, const gin_comm_t *comm, const gin_devcomm_reqs_t *r,
                        uint64_t barrier_bytes)
{
    uint64_t counts = 0;
    for (uint32_t i = 0; i < r->n_team_barriers; i++)
        counts = counts * 31 + r->team_barriers[i].count;
    const uint64_t n[NUMBERS] = {r->contexts,
                                 r->signals,
                                 r->counters,
                                 r->world_barriers,
                                 r->lsa_barriers,
                                 r->rail_barriers,
                                 r->hybrid_barriers,
                                 r->n_team_barriers,
                                 counts,
                                 r->scratch,
                                 r->connection,
                                 r->paths,
                                 r->strong != 0,
                                 r->va != 0,
                                 barrier_bytes,
                                 r->multimem,
                                 (uint64_t)(int64_t)r->traffic_class,
                                 r->strategy,
                                 r->collectives,
                                 r->collective_scratch,
                                 r->collectives != 0 ? gi_colls_choice(comm) : 0,
                                 r->collectives != 0 && gi_colls_in_rank_order(comm)};
    memcpy(b->number, n, sizeof(n));
    b->device = r->device;
    b->engine = r->device == GIN_DEVICE_CUDA && r->backend != GIN_BACKEND_DIRECT;
}

static int ballots_count(const struct ballot *all, int size)
{
    for (int r = 1; r < size; r++)
        for (size_t i = 0; i < NUMBERS; i++)
            if (all[r].number[i] != all[0].number[i])
                return gi_fail(GIN_EMISMATCH,
                               "gin_devcomm_create: %s differs: rank 0 passed %" PRId64
                               ", rank %d passed %" PRId64,
                               number_names[i], (int64_t)all[0].number[i], r,
                               (int64_t)all[r].number[i]);
    return GIN_OK;
}

/* Who has kernels, and what that means for all. */
static void note_devices(struct gi_devcomm *d, const struct ballot *all)
{
    bool cpu = false, engine = false;
    for (int r = 0; r < d->comm->size; r++) {
        d->device_of[r] = (uint8_t)all[r].device;
        d->kernels = d->kernels || all[r].device == GIN_DEVICE_CUDA;
        cpu = cpu || all[r].device == GIN_DEVICE_HOST;
        engine = engine || all[r].engine;
    }
    d->host_signals = d->kernels && (cpu || engine);
}

/*
 * First whether all ranks make this call and none refuses it, then what they ask for: ranks in
 * different calls would not meet in the gathering.
 */
static int agree_reqs(gin_comm_t *comm, struct gi_devcomm *d, const gin_devcomm_reqs_t *r,
                      uint64_t barrier_bytes, int st)
{
    struct ballot mine, *all = malloc((size_t)comm->size * sizeof(*all));
    if (d != NULL)
        d->device_of = malloc((size_t)comm->size);
    if (st == GIN_OK && (all == NULL || d->device_of == NULL))
        st = gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %d ranks", comm->size);
    st = gi_agree_on(comm, GI_AGREE_DEVCOMM, 0, 0, 0, st);
    if (st == GIN_OK) {
        ballot_fill(&mine, comm, r, barrier_bytes);
        st = gi_comm_gather(comm, &mine, all, sizeof(mine));
    }
    if (st == GIN_OK)
        st = ballots_count(all, comm->size);
    if (st == GIN_OK)
        note_devices(d, all);
    free(all);
    return st;
}

/* ---- making ---- */

static bool without_lsa(const gin_devcomm_reqs_t *r)
{
    return r->paths != 0 && !(r->paths & GIN_PATH_LSA);
}

/* Without load/store nobody is an LSA peer but I. Behind the contexts, as stale ones read it. */
static void fill_lsa_of(struct gi_devcomm *d)
{
    const gin_comm_t *comm = d->comm;
    if (!without_lsa(&d->reqs))
        return;
    d->lsa_of = (int32_t *)(void *)((char *)d->dc + d->dc_bytes) - comm->size;
    for (int r = 0; r < comm->size; r++)
        d->lsa_of[r] = r == comm->rank ? comm->shm->lsa_rank : -1;
}

/* All ranks know by now that they ask for the same. */
static int network_up(gin_comm_t *comm, const gin_devcomm_reqs_t *r)
{
    bool asked = r->paths != 0 && (r->paths & GIN_PATH_NET);
    if ((!asked && !without_lsa(r)) || comm->size == 1)
        return GIN_OK;
    int st = gi_net_up(comm);
    if (st == GIN_OK && comm->net == NULL && without_lsa(r))
        st = gi_fail(GIN_ENOTSUP,
                     "gin_devcomm_create: paths 0x%x leave out load/store access, and there is no "
                     "network: %s",
                     r->paths, gi_net_why(comm));
    return st;
}

/* Private parts; the heap block is there already. */
static int private_up(struct gi_devcomm *d)
{
    static _Atomic uint64_t made; /* so that a stale copy is told from what took its memory */
    const gin_devcomm_reqs_t *r = &d->reqs;
    size_t n = r->contexts;
    d->dc_bytes = sizeof(*d->dc) + 64 + n * sizeof(struct gin_i_ctx);
    if (without_lsa(r))
        d->dc_bytes += ((size_t)d->comm->size * sizeof(*d->lsa_of) + 7) & ~(size_t)7;
    d->dc = gi_retired_take(d->dc_bytes);
    d->bases = calloc(n * r->signals + 1, sizeof(*d->bases));
    d->counters = calloc(n * r->counters + 1, sizeof(*d->counters));
    if (d->dc == NULL || d->bases == NULL || d->counters == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %zu contexts", n);
    d->dc->serial = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;
    fill_lsa_of(d);
    int st = gi_net_contexts_open(d);
    if (st == GIN_OK)
        st = gi_net_meet(d);
    if (st == GIN_OK)
        st = gi_barriers_open(d->comm, &d->reqs, d->barriers_off, d->kernels, &d->barriers);
    if (st == GIN_OK)
        st = gi_colls_open(d, d->colls_off, &d->colls);
    if (st == GIN_OK && r->device == GIN_DEVICE_CUDA)
        st = gi_devcomm_cuda_open(d);
    if (st == GIN_OK && d->kernel != NULL)
        st = gi_streams_open(d);
    return st == GIN_OK && d->kernel != NULL ? gi_engine_add(d) : st;
}

static void private_down(struct gi_devcomm *d)
{
    gi_net_contexts_close(d); /* first: the network writes to what follows */
    gi_streams_close(d);
    gi_devcomm_cuda_close(d);
    gi_multimem_close(d);
    gi_colls_close(d->colls);
    gi_barriers_close(d->barriers);
    gi_retired_give(d->dc, d->dc_bytes);
    free(d->counters);
    free(d->bases);
    free(d->teams);
    free(d->device_of);
    free(d);
}

static void fill_contexts(struct gi_devcomm *d)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    struct gin_i_dc *dc = d->dc;
    dc->ctx = (struct gin_i_ctx *)(((uintptr_t)(dc + 1) + 63) & ~(uintptr_t)63);
    char *mine = (char *)gi_control(d->comm, d->comm->shm->lsa_rank);
    for (uint32_t c = 0; c < r->contexts; c++) {
        struct gin_i_ctx *x = &dc->ctx[c];
        x->dc = dc;
        x->signals_off = d->off + (uint64_t)c * r->signals * sizeof(struct gin_i_cells);
        x->signals = (struct gin_i_cells *)(mine + GI_CONTROL + x->signals_off);
        x->bases = d->bases + (size_t)c * r->signals;
        x->counters = d->counters + (size_t)c * r->counters;
        x->n_signals = r->signals;
        x->n_counters = r->counters;
        x->index = c;
    }
    dc->all.dc = dc;
    dc->all.index = GIN_ALL_CONTEXTS;
}

static void fill(struct gi_devcomm *d, gin_devcomm_t *dev)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    gin_comm_t *comm = d->comm;
    struct gin_i_dc *dc = d->dc;
    fill_contexts(d);
    dc->n_contexts = r->contexts;
    dc->flags = (r->strong ? GIN_I_DC_STRONG : 0u) | (r->va ? GIN_I_DC_VA : 0u) |
                (comm->env.check ? GIN_I_DC_CHECK : 0u) | (d->net != NULL ? GIN_I_DC_NET : 0u);
    /* inlined waits do not drive the network; the library's do */
    dc->spin = d->net != NULL && comm->spin > NET_SPIN ? NET_SPIN : comm->spin;
    dc->heap = gi_window_find(comm, gin_heap_window(comm, GIN_KIND_HOST));
    if (r->scratch != 0)
        dc->scratch = gin_at(gin_heap_window(comm, GIN_KIND_HOST), d->scratch_off);
    dc->scratch_bytes = r->scratch;
    dc->world = comm->world;
    dc->node = comm->node;
    dc->lsa = comm->lsa;
    dc->rail = comm->rail;
    dc->comm = comm;
    dc->priv = d;
    dc->reach.lsa_base = (uint64_t)(uintptr_t)comm->slots + GI_CONTROL;
    dc->reach.lsa_stride = comm->stride;
    dc->reach.handle = gin_heap_window(comm, GIN_KIND_HOST).w;
    dc->reach.size = dc->heap->size;
    dc->reach.lsa_rank = comm->shm->lsa_rank;
    dc->magic = GIN_DEVCOMM_MAGIC;
    memset(dev, 0, sizeof(*dev));
    dev->magic = GIN_DEVCOMM_MAGIC;
    dev->abi = GIN_DEVCOMM_ABI;
    dev->rank = comm->rank;
    dev->size = comm->size;
    dev->n_contexts = r->contexts;
    dev->n_signals = r->signals;
    dev->n_counters = r->counters;
    dev->device = r->device;
    dev->state = (uint64_t)(uintptr_t)dc;
    dev->windows = (uint64_t)(uintptr_t)gi_windows_table(comm);
    dev->lsa_of = (uint64_t)(uintptr_t)(d->lsa_of != NULL ? d->lsa_of : comm->lsa_of);
    dev->serial = dc->serial;
    if (d->kernel != NULL)
        gi_devcomm_cuda_show(d, dev);
}

/* My own copy of the demands, as long as the device communicator lives. */
static int keep_teams(struct gi_devcomm *d, gin_team_barrier_t *given)
{
    uint32_t n = d->reqs.n_team_barriers;
    if (n == 0)
        return GIN_OK;
    d->teams = malloc(n * sizeof(*d->teams));
    if (d->teams == NULL)
        return gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory for %u teams", n);
    memcpy(d->teams, given, n * sizeof(*d->teams));
    d->reqs.team_barriers = d->teams;
    for (uint32_t i = 0; i < n; i++) {
        d->teams[i].handle.kind = GIN_BARRIER_TEAM;
        d->teams[i].handle.place = i;
    }
    return GIN_OK;
}

/* Offsets in the host's block, and its bytes; `barriers` are theirs. */
static void plan_block(struct gi_devcomm *d, uint64_t barriers)
{
    const gin_devcomm_reqs_t *r = &d->reqs;
    d->barriers_off = gi_cells_bytes(r);
    d->colls_off = d->barriers_off + ((barriers + 63) & ~(uint64_t)63);
    d->scratch_off = d->colls_off + gi_colls_bytes(d->comm, r);
    d->words_off = d->scratch_off + ((r->scratch + 63) & ~(uint64_t)63);
    d->bytes = d->words_off + gi_kernel_colls_words(d) + 64;
}

/* Collectives do with less where the heap has no room for all that they were to have. */
static int host_block_take(struct gi_devcomm *d, uint64_t barriers)
{
    gin_comm_t *comm = d->comm;
    plan_block(d, barriers);
    int st = gi_memory_take(comm, GIN_KIND_HOST, d->bytes, &d->off);
    const uint64_t wished = d->bytes;
    if (st == GIN_ENOMEM && gi_colls_shrink(comm, &d->reqs)) {
        plan_block(d, barriers);
        st = gi_memory_take(comm, GIN_KIND_HOST, d->bytes, &d->off);
        if (st == GIN_OK && comm->rank == 0)
            gi_warn("coll", "short messages, for the heap has no room for %" PRIu64 " bytes",
                    wished);
    }
    if (st != GIN_OK && d->reqs.collectives != 0)
        return gi_fail_context("%" PRIu32 " collectives take %" PRIu64 " bytes at least",
                               d->reqs.collectives, gi_colls_bytes(comm, &d->reqs));
    d->barriers_off += d->off;
    d->colls_off += d->off;
    d->scratch_off += d->off;
    d->words_off += d->off;
    return st;
}

/* The symmetric blocks. Collective: all ranks have them, or none. */
static int blocks_take(struct gi_devcomm *d, uint64_t barriers)
{
    int st = d->kernels ? gi_cuda_up(d->comm) : GIN_OK;
    if (st != GIN_OK)
        return st;
    st = host_block_take(d, barriers);
    if (st != GIN_OK || !d->kernels)
        return st;
    d->cuda_bytes = gi_devcomm_cuda_plan(d);
    st = gi_memory_take(d->comm, GIN_KIND_CUDA, d->cuda_bytes, &d->cuda_off);
    if (st != GIN_OK)
        gi_memory_give(d->comm, GIN_KIND_HOST, d->off);
    return st;
}

static int blocks_give(struct gi_devcomm *d)
{
    int st = gi_memory_give(d->comm, GIN_KIND_HOST, d->off);
    return st == GIN_OK && d->kernels ? gi_memory_give(d->comm, GIN_KIND_CUDA, d->cuda_off) : st;
}

/* What all ranks ask for, and the bytes that barriers of host threads take then. Collective, for d
 * NULL, too: whoever has no memory says so. */
static int adopt(gin_comm_t *comm, struct gi_devcomm *d, gin_devcomm_reqs_t *given,
                 const gin_devcomm_t *dev, uint64_t *barriers)
{
    gin_devcomm_reqs_t r;
    int asked = gi_devcomm_reqs_adopt(given, &r);
    if (asked == GIN_OK && r.strategy == GIN_STRATEGY_AUTO)
        r.strategy = strcmp(comm->env.strategy, "epoch") == 0 ? GIN_STRATEGY_EPOCH : GIN_STRATEGY_S;
    if (asked == GIN_OK && r.collective_scratch == 0)
        r.collective_scratch = comm->env.coll_scratch;
    if (asked == GIN_OK && r.collectives != 0)
        asked = gi_colls_check(comm);
    if (asked == GIN_OK)
        asked = gi_colls_fit(comm, &r);
    int st = d != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "gin_devcomm_create: no memory");
    if (st == GIN_OK)
        st = dev != NULL ? asked : gi_fail(GIN_EINVAL, "gin_devcomm_create: dev is NULL");
    *barriers = st == GIN_OK ? gi_barriers_bytes(comm, &r, false) : 0;
    if (st == GIN_OK) {
        d->comm = comm;
        d->reqs = r;
        d->wait_timeout_ns = r.wait_timeout_ns;
        d->barrier_timeout_ns = r.barrier_timeout_ns;
        st = keep_teams(d, r.team_barriers);
    }
    return agree_reqs(comm, d, &r, *barriers, st);
}

/* Blocks and private parts. Collective: all ranks have them, or none. */
static int build(struct gi_devcomm *d, uint64_t barriers)
{
    char why[256];
    if (d->kernels)
        barriers = gi_barriers_bytes(d->comm, &d->reqs, true);
    int st = blocks_take(d, barriers);
    if (st != GIN_OK) {
        gi_fail_context("gin_devcomm_create");
        return st;
    }
    st = gi_multimem_open(d);
    if (st != GIN_OK)
        goto give_blocks;
    st = private_up(d);
    /* also the barrier after which peers may write into the zeroed block */
    st = gi_agree_on(d->comm, GI_AGREE_DEVCOMM, d->off, d->bytes, 0, st);
    if (st == GIN_OK)
        return GIN_OK;
    gi_engine_remove(d);
give_blocks:
    snprintf(why, sizeof(why), "%s", gin_last_error());
    return blocks_give(d) == GIN_OK ? st : gi_fail(st, "%s", why); /* not what came of it */
}

static int create(gin_comm_t *comm, gin_devcomm_reqs_t *given, gin_devcomm_t *dev)
{
    struct gi_devcomm *d = calloc(1, sizeof(*d));
    uint64_t barriers;
    int st = adopt(comm, d, given, dev, &barriers);
    if (st == GIN_OK)
        st = network_up(comm, &d->reqs);
    if (st == GIN_OK)
        st = build(d, barriers);
    if (st != GIN_OK) {
        if (d != NULL)
            private_down(d);
        return st;
    }
    fill(d, dev);
    for (uint32_t i = 0; given != NULL && i < d->reqs.n_team_barriers; i++)
        given->team_barriers[i].handle = d->teams[i].handle;
    d->next = comm->devcomms;
    comm->devcomms = d;
    return GIN_OK;
}

int gin_devcomm_create(gin_comm_t *comm, gin_devcomm_reqs_t *reqs, gin_devcomm_t *dev)
{
    int st = gi_comm_enter_up(comm, "gin_devcomm_create");
    return st == GIN_OK ? create(comm, reqs, dev) : st;
}

/* ---- freeing ---- */

static struct gi_devcomm **find(gin_comm_t *comm, const gin_devcomm_t *dev)
{
    if (dev == NULL || dev->magic != GIN_DEVCOMM_MAGIC)
        return NULL;
    for (struct gi_devcomm **p = &comm->devcomms; *p != NULL; p = &(*p)->next)
        if ((*p)->dc->serial == dev->serial)
            return p;
    return NULL;
}

int gin_devcomm_destroy(gin_comm_t *comm, gin_devcomm_t *dev)
{
    int st = gi_comm_enter(comm, "gin_devcomm_destroy");
    if (st != GIN_OK)
        return st;
    struct gi_devcomm **p = find(comm, dev);
    if (p == NULL)
        return gi_fail(GIN_ESTATE, "gin_devcomm_destroy: not a live device communicator of this "
                                   "communicator (destroyed already?)");
    struct gi_devcomm *d = *p;
    gi_engine_drain(comm, d);
    if (gi_net_quiet_all(comm, "gin_devcomm_destroy") != GIN_OK)
        gi_info("devcomm", "destroyed with operations under way: %s", gin_last_error());
    st = blocks_give(d); /* meets the others: none of them uses the blocks any more */
    if (st != GIN_OK) {
        gi_fail_context("gin_devcomm_destroy");
        return st;
    }
    *p = d->next;
    gi_engine_remove(d); /* others' engines may have asked this one until they had met */
    private_down(d);
    memset(dev, 0, sizeof(*dev));
    return GIN_OK;
}

void gi_devcomms_close(gin_comm_t *comm)
{
    while (comm->devcomms != NULL) {
        struct gi_devcomm *d = comm->devcomms;
        comm->devcomms = d->next;
        gi_engine_drain(comm, d);
        gi_engine_remove(d);
        private_down(d);
    }
}
