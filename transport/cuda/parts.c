/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps, each ended by an allgather in which all ranks learn whether to go on: everybody describes
 * his part; if any is mapped memory, leaders reserve addresses and the pieces travel, one of each
 * rank at a time; everybody opens handles and makes up his table.
 */
#include "transport/cuda/parts.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/os.h"
#include "cuda/memory.h"
#include "transport/cuda/report.h"
#include "transport/cuda/team.h"

typedef unsigned long long ull;

/* A rank's part, as it is shown. */
struct card {
    struct gi_cuda_report head;
    uint64_t addr;  /* 0: no part */
    uint64_t off;   /* of it in the allocation or, for mapped memory, in its first piece */
    uint64_t first; /* mapped: address of the first piece, and bytes of all */
    uint64_t span;
    uint32_t pieces; /* 0: of cuMemAlloc() */
    uint32_t complete;
    uint64_t context; /* of cuMemAlloc(): the CUDA context, for ranks of the process */
    uint64_t region;  /* struct gi_cuda_pieces of the process that its leader made */
    struct gi_gpu_ipc handle;
};

struct extent {
    uint64_t addr, bytes;
};

/* Pieces of other processes, mapped here. One per process. */
struct gi_cuda_pieces {
    atomic_int refs;
    uint64_t base, bytes;
    uint64_t *start; /* by LSA rank: where its pieces are, 0: not here */
    int n_devices;
    int *devices;     /* of my process' ranks, each once */
    uint8_t *refused; /* LSA rank * n_devices: that device may not use them */
    struct extent *extents;
    size_t n_extents;
    char memory[];
};

/* What a rank works with. */
struct work {
    const struct gi_cuda_parts_config *c;
    struct gi_cuda_parts *parts;
    struct card mine, *all;     /* all: by world rank */
    struct gi_gpu_piece *piece; /* my own */
    uint32_t n_pieces, rounds;
    uint64_t *sizes; /* of pieces: world rank * rounds */
    uint64_t *next;  /* leader: by LSA rank, where the next piece goes */
    uint32_t round;
    bool leader, failed;
};

static int world_of(const struct work *w, int slot)
{
    return w->c->team->world_of[slot];
}

static bool in_process(const struct work *w, int slot)
{
    return gi_cuda_in_process(&w->c->shm, w->c->team, slot);
}

static int lead_of(const struct work *w)
{
    return gi_cuda_leader(&w->c->shm, w->c->team);
}

/* Say how it went, hear how it went everywhere; cards are renewed. */
static int meet(struct work *w, int status)
{
    void *got = NULL;
    gi_cuda_say(&w->mine.head, status, w->failed);
    int st = gi_cuda_hear(&w->c->shm, &w->mine, sizeof(w->mine), &got);
    free(w->all);
    w->all = got;
    return st;
}

/* ---- my own part ---- */

/* Does a GPU of another process want to see it? */
static bool is_shown(const struct work *w)
{
    for (int i = 0; i < w->c->team->lsa_size; i++)
        if (!in_process(w, i) && w->c->devices[world_of(w, i)] >= 0)
            return true;
    return false;
}

static int describe_plain(struct work *w)
{
    const struct gi_cuda_parts_config *c = w->c;
    uint64_t start, bytes;
    int st = gi_gpu_allocation(c->gpu, c->addr, &start, &bytes);
    if (st != GIN_OK)
        return st;
    w->mine.off = c->addr - start;
    if (w->mine.off > bytes || c->bytes > bytes - w->mine.off)
        return gi_fail(GIN_EINVAL, "[%#llx, +%llu) is not wholly in the allocation [%#llx, +%llu)",
                       (ull)c->addr, (ull)c->bytes, (ull)start, (ull)bytes);
    return is_shown(w) ? gi_gpu_ipc_get(c->gpu, start, &w->mine.handle) : GIN_OK;
}

static int describe_mapped(struct work *w)
{
    const struct gi_cuda_parts_config *c = w->c;
    int st = gi_gpu_pieces(c->gpu, c->addr, c->bytes, is_shown(w), &w->piece, &w->n_pieces);
    if (st != GIN_OK)
        return st;
    w->mine.pieces = w->n_pieces;
    w->mine.first = w->piece[0].addr;
    w->mine.off = c->addr - w->piece[0].addr;
    for (uint32_t i = 0; i < w->n_pieces; i++)
        w->mine.span += w->piece[i].bytes;
    return GIN_OK;
}

static int describe(struct work *w)
{
    const struct gi_cuda_parts_config *c = w->c;
    struct gi_gpu_range r;
    if (c->gpu == NULL)
        return c->addr == 0 ? GIN_OK
                            : gi_fail(GIN_ENOTSUP, "GPU memory on a rank that uses no GPU");
    if (c->addr == 0)
        return gi_fail(GIN_EINVAL, "NULL on a rank with a GPU, where others passed GPU memory");
    gi_gpu_look(c->driver, c->addr, &r);
    if (r.device != c->gpu->device)
        return gi_fail(GIN_ENOTSUP, "memory of GPU %d; this rank uses GPU %d (%s)", r.device,
                       c->gpu->device, c->gpu->name);
    w->mine.addr = c->addr;
    w->mine.context = (uint64_t)(uintptr_t)r.context;
    return r.legacy ? describe_plain(w) : describe_mapped(w);
}

/* ---- pieces of other processes ---- */

static struct gi_cuda_pieces *new_pieces(const struct work *w)
{
    size_t n = (size_t)w->c->team->lsa_size;
    struct gi_cuda_pieces *p = calloc(1, sizeof(*p) + n * (sizeof(uint64_t) + sizeof(int)) + n * n);
    if (p == NULL)
        return NULL;
    p->start = (uint64_t *)(void *)p->memory;
    p->devices = (int *)(void *)(p->start + n);
    p->refused = (uint8_t *)(p->devices + n);
    for (int i = 0; i < w->c->team->lsa_size; i++) {
        int k = 0, device = w->c->devices[world_of(w, i)];
        if (!in_process(w, i))
            continue;
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
        while (k < p->n_devices && p->devices[k] != device)
            k++;
        if (device >= 0 && k == p->n_devices)
            p->devices[p->n_devices++] = device;
    }
    return p;
}

static void drop_pieces(struct gi_cuda_pieces *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < p->n_extents; i++)
        gi_gpu_unmap(p->extents[i].addr, p->extents[i].bytes);
    if (p->base != 0)
        gi_gpu_unreserve(p->base, p->bytes);
    free(p->extents);
    free(p);
}

/* Leader: one range of addresses for the pieces of all other processes. */
static int reserve(struct work *w, struct gi_cuda_pieces **pieces)
{
    uint64_t at;
    struct gi_cuda_pieces *p = new_pieces(w);
    if (p == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the pieces of peers' GPU memory");
    for (int i = 0; i < w->c->team->lsa_size && p->n_devices > 0; i++)
        if (!in_process(w, i) && w->all[world_of(w, i)].pieces != 0)
            p->bytes += w->all[world_of(w, i)].span;
    int st = p->bytes != 0 ? gi_gpu_reserve(p->bytes, 0, &p->base) : GIN_OK;
    if (st != GIN_OK) {
        free(p);
        return st;
    }
    at = p->base;
    for (int i = 0; i < w->c->team->lsa_size && p->base != 0; i++)
        if (!in_process(w, i) && w->all[world_of(w, i)].pieces != 0) {
            p->start[i] = w->next[i] = at;
            at += w->all[world_of(w, i)].span;
        }
    *pieces = p;
    return GIN_OK;
}

static int allow(struct gi_cuda_pieces *p, int slot, const struct extent *e)
{
    for (int d = 0; d < p->n_devices; d++) {
        uint8_t *refused = &p->refused[slot * p->n_devices + d];
        int st = *refused ? GIN_OK : gi_gpu_allow(e->addr, e->bytes, p->devices[d]);
        if (st != GIN_OK && st != GIN_ENOTSUP)
            return st;
        *refused |= st != GIN_OK;
    }
    return GIN_OK;
}

/* gi_shm_keep_fn: a piece came. */
static int keep(void *arg, int slot, int fd)
{
    struct work *w = arg;
    struct gi_cuda_pieces *p = w->parts->pieces;
    struct extent e = {.addr = w->next[slot],
                       .bytes = w->sizes[(size_t)world_of(w, slot) * w->rounds + w->round]};
    uint64_t object;
    if (p->start[slot] == 0)
        return GIN_OK;
    struct extent *more = realloc(p->extents, (p->n_extents + 1) * sizeof(*more));
    if (more != NULL)
        p->extents = more;
    int st = more != NULL ? gi_gpu_object_import(fd, &object)
                          : gi_fail(GIN_ENOMEM, "no memory to map pieces of GPU memory");
    if (st == GIN_OK) {
        st = gi_gpu_map(e.addr, e.bytes, object);
        gi_gpu_object_release(object);
    }
    if (st == GIN_OK) {
        p->extents[p->n_extents++] = e;
        w->next[slot] += e.bytes;
        st = allow(p, slot, &e);
    }
    w->failed = w->failed || st != GIN_OK;
    return st;
}

/* One piece of every rank that has so many. */
static int pass(struct work *w)
{
    struct gi_shm_config c = w->c->shm;
    int fd = -1, st = GIN_OK;
    if (w->round < w->n_pieces && is_shown(w))
        st = gi_gpu_object_export(w->piece[w->round].object, &fd);
    w->failed = st != GIN_OK;
    st = gi_shm_pass(&c, w->c->team, fd, st, keep, w);
    if (fd >= 0)
        gi_os_close(fd);
    return meet(w, st);
}

/* Sizes of all pieces. Who is so short of memory that he cannot hold them lets the others wait. */
static int gather_sizes(struct work *w)
{
    const struct gi_shm_config *c = &w->c->shm;
    size_t row = w->rounds * sizeof(uint64_t);
    uint64_t *mine = calloc(w->rounds, sizeof(*mine));
    w->sizes = calloc((size_t)c->size, row);
    int st = mine != NULL && w->sizes != NULL
                 ? GIN_OK
                 : gi_fail(GIN_ENOMEM, "no memory for the sizes of %u pieces", w->rounds);
    for (uint32_t i = 0; st == GIN_OK && i < w->n_pieces; i++)
        mine[i] = w->piece[i].bytes;
    if (st == GIN_OK)
        st = c->allgather(c->arg, mine, w->sizes, row);
    free(mine);
    return st;
}

static int pass_all(struct work *w)
{
    struct gi_cuda_pieces *made = NULL;
    int st = GIN_OK;
    for (int r = 0; r < w->c->shm.size; r++)
        w->rounds = w->all[r].pieces > w->rounds ? w->all[r].pieces : w->rounds;
    if (w->rounds == 0)
        return GIN_OK;
    if (w->leader)
        st = reserve(w, &made);
    w->failed = st != GIN_OK;
    w->mine.region = (uint64_t)(uintptr_t)made;
    st = meet(w, st);
    if (st != GIN_OK) { /* nobody came */
        if (made != NULL)
            atomic_store_explicit(&made->refs, 1, memory_order_relaxed);
        drop_pieces(made);
        return st;
    }
    w->parts->pieces = (struct gi_cuda_pieces *)(uintptr_t)w->all[world_of(w, lead_of(w))].region;
    st = gather_sizes(w);
    for (; st == GIN_OK && w->round < w->rounds; w->round++)
        st = pass(w);
    return st;
}

/* ---- the table ---- */

static void unreached(struct work *w, int slot, const char *why)
{
    if (w->parts->why[0] == 0)
        snprintf(w->parts->why, sizeof(w->parts->why), "rank %d's memory: %.100s",
                 world_of(w, slot), why);
    w->parts->complete = false;
}

/* A rank of my process: its own address, if my GPU may go there. */
static int find_near(struct work *w, int slot, const struct card *o)
{
    struct gi_gpu *g = w->c->gpu;
    int st = GIN_OK;
    if (o->pieces != 0 && w->c->devices[world_of(w, slot)] != g->device)
        st = gi_gpu_allow(o->first, o->span, g->device);
    else if (o->pieces == 0 && o->context != (uint64_t)(uintptr_t)g->context)
        st = gi_gpu_befriend(g, (void *)(uintptr_t)o->context);
    if (st == GIN_OK)
        w->parts->at[slot] = o->addr;
    return st;
}

static int find_far(struct work *w, int slot, const struct card *o)
{
    struct gi_cuda_parts *p = w->parts;
    uint64_t base;
    if (o->pieces == 0) {
        int st = gi_gpu_ipc_open(w->c->gpu, &o->handle, &base);
        if (st != GIN_OK)
            return st;
        p->open[slot] = base;
        p->at[slot] = base + o->off;
        return GIN_OK;
    }
    for (int d = 0; d < p->pieces->n_devices; d++)
        if (p->pieces->devices[d] == w->c->gpu->device &&
            p->pieces->refused[slot * p->pieces->n_devices + d])
            return gi_fail(GIN_ENOTSUP, "GPU %d may not use it", w->c->gpu->device);
    p->at[slot] = p->pieces->start[slot] + o->off;
    return GIN_OK;
}

static int find_all(struct work *w)
{
    int st = GIN_OK;
    w->parts->complete = true;
    if (w->c->gpu == NULL)
        return GIN_OK;
    for (int i = 0; st == GIN_OK && i < w->c->team->lsa_size; i++) {
        const struct card *o = &w->all[world_of(w, i)];
        if (o->addr == 0)
            continue;
        if (i == w->c->team->lsa_rank)
            w->parts->at[i] = o->addr;
        else if (!w->c->reach[i])
            unreached(w, i, "my GPU does not reach GPU memory of that rank");
        else
            st = in_process(w, i) ? find_near(w, i, o) : find_far(w, i, o);
        if (st == GIN_ENOTSUP) {
            unreached(w, i, gin_last_error());
            st = GIN_OK;
        }
    }
    return st;
}

/* Everybody's verdict about the whole. */
static void judge(struct work *w)
{
    struct gi_cuda_parts *p = w->parts;
    for (int r = 0; r < w->c->shm.size; r++) {
        if (w->all[r].complete)
            continue;
        p->complete = false;
        if (p->why[0] == 0)
            snprintf(p->why, sizeof(p->why), "rank %d does not reach all of it", r);
    }
}

/* ---- opening and closing ---- */

static struct gi_cuda_parts *new_parts(const struct gi_cuda_parts_config *c)
{
    size_t n = (size_t)c->team->lsa_size;
    struct gi_cuda_parts *p = calloc(1, sizeof(*p) + 2 * n * sizeof(uint64_t));
    if (p == NULL)
        return NULL;
    p->n = c->team->lsa_size;
    p->gpu = c->gpu;
    p->at = (uint64_t *)(p + 1);
    p->open = p->at + n;
    return p;
}

static int open_all(struct work *w)
{
    size_t n = (size_t)w->c->team->lsa_size;
    w->leader = lead_of(w) == w->c->team->lsa_rank;
    w->parts = new_parts(w->c);
    w->next = calloc(n, sizeof(*w->next));
    int st = w->parts != NULL && w->next != NULL
                 ? describe(w)
                 : gi_fail(GIN_ENOMEM, "no memory for the GPU memory of %zu ranks", n);
    w->failed = st != GIN_OK;
    st = meet(w, st);
    if (st == GIN_OK)
        st = pass_all(w);
    if (st != GIN_OK)
        return st;
    st = find_all(w);
    w->failed = st != GIN_OK;
    w->mine.complete = w->parts->complete;
    st = meet(w, st);
    if (st == GIN_OK)
        judge(w);
    return st;
}

int gi_cuda_parts_open(const struct gi_cuda_parts_config *c, struct gi_cuda_parts **parts)
{
    struct work w = {.c = c};
    int st = open_all(&w);
    gi_gpu_pieces_free(w.piece, w.n_pieces);
    free(w.all);
    free(w.sizes);
    free(w.next);
    if (st == GIN_OK)
        *parts = w.parts;
    else
        gi_cuda_parts_close(w.parts);
    return st;
}

void gi_cuda_parts_close(struct gi_cuda_parts *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->n; i++)
        if (p->open[i] != 0)
            gi_gpu_ipc_close(p->gpu, p->open[i]);
    drop_pieces(p->pieces);
    free(p);
}
