/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing the mirror. An entry is one copy of 64 bytes: kernels compare its two ends. Nothing is
 * written that a kernel may follow before what it leads to is there.
 */
#include "mirror.h"

#include <stdlib.h>
#include <string.h>
#include "cuda_up.h"
#include "peer_tables.h"
#include "pinned.h"
#include "window_impl.h"

#define PAGE_BYTES (GIN_I_WINDOW_PAGE * sizeof(struct gin_i_window))

struct gi_mirror {
    struct gi_gpu *gpu;
    uint64_t base; /* [zeros | level 1 | lists | count of window ids] */
    uint64_t level1, lists, ids;
    uint64_t page[GIN_I_WINDOW_PAGES]; /* 0: zeros */
    struct {
        uint64_t ranks;
        int32_t room;
    } list[GIN_I_LISTS];
    uint64_t *old; /* outgrown arrays of ranks */
    size_t n_old;
    struct gi_tables tables; /* addresses of peers, for windows that have no stride */
    struct gi_pinned pinned;
};

static struct gi_mirror *mirror_of(const gin_comm_t *comm)
{
    const struct gi_cuda *c = __atomic_load_n(&comm->cuda, __ATOMIC_ACQUIRE);
    return c != NULL ? __atomic_load_n(&c->mirror, __ATOMIC_ACQUIRE) : NULL;
}

/* A write that the program cannot be told of at once. */
static void must(gin_comm_t *comm, int status)
{
    char why[160];
    if (status == GIN_OK)
        return;
    snprintf(why, sizeof(why), "rank %d's GPU could not be written: %.110s", comm->rank,
             gin_last_error());
    gi_comm_set_failed(comm, GIN_EPEER, comm->rank, why);
}

/* ---- windows ---- */

static bool in_host_heap(const gin_comm_t *comm, const struct gin_i_window *w, uint64_t *off)
{
    const struct gin_i_window *heap = gi_window_at(&comm->windows->table, 0);
    *off = w->local - heap->local;
    return heap->handle != 0 && *off < GIN_LOAD_RELAXED(&heap->size);
}

/* Memory of the program: its own addresses where GPUs know them, and a table of its peers'. */
static void show_registered(const gin_comm_t *comm, const struct gi_mirror *m,
                            const struct gi_window *p, struct gin_i_window *e)
{
    bool gpu = e->kind == GIN_KIND_CUDA;
    e->lsa_base = e->lsa_stride = 0;
    if (!gpu && !p->pinned)
        e->local = 0;
    else if (gpu && !gi_words_by_engine(comm, e))
        e->apply = GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES;
    else if (!gpu)
        e->apply = GIN_I_APPLY_STORES | (m->gpu->host_atomics ? GIN_I_APPLY_ATOMICS : 0);
    if (p->direct && p->row != 0) {
        e->mode = GIN_I_WINDOW_TABLE;
        e->peers = (const uint64_t *)(uintptr_t)gi_tables_at(&m->tables, p->row);
    }
}

/* An entry of the host's table as the GPU shall see it. */
static struct gin_i_window entry_of(const gin_comm_t *comm, const struct gi_mirror *m, uint32_t id)
{
    const struct gin_i_window *w = gi_window_at(&comm->windows->table, id);
    const struct gi_window *p = gi_window_private(&comm->windows->table, id);
    struct gin_i_window e = *w;
    uint64_t off, pinned = m->pinned.bytes > GI_CONTROL ? m->pinned.bytes - GI_CONTROL : 0;
    e.peers = NULL;
    e.apply = 0;
    if (w->handle == 0)
        return (struct gin_i_window){0};
    e.mode = GIN_I_WINDOW_SLOW;
    if (w->kind == GIN_KIND_CUDA)
        e.size = gi_window_bytes(comm, w, id);
    if (p->reg->heap == GI_NO_HEAP && (p->reg->gpu || p->pinned)) {
        show_registered(comm, m, p, &e);
        return e;
    }
    if (w->kind == GIN_KIND_CUDA) {
        e.mode = w->flags & GIN_WIN_NO_LSA ? GIN_I_WINDOW_SLOW : GIN_I_WINDOW_STRIDE;
        e.apply = gi_words_by_engine(comm, w) ? 0 : GIN_I_APPLY_ATOMICS | GIN_I_APPLY_STORES;
        return e;
    }
    if (!in_host_heap(comm, w, &off) || off >= pinned ||
        (id != 0 && w->size > pinned - off)) { /* the heap's window ends where kernels end */
        e.local = e.lsa_base = e.lsa_stride = 0;
        return e;
    }
    if (id == 0 && e.size > pinned)
        e.size = pinned;
    if (!(w->flags & GIN_WIN_NO_LSA)) {
        e.mode = GIN_I_WINDOW_STRIDE;
        e.lsa_base = (uint64_t)(uintptr_t)comm->slots + GI_CONTROL + off;
        e.lsa_stride = comm->stride;
    }
    e.apply = GIN_I_APPLY_STORES | (m->gpu->host_atomics ? GIN_I_APPLY_ATOMICS : 0);
    return e;
}

uint64_t gi_mirror_entry(const gin_comm_t *comm, uint32_t id)
{
    const struct gi_mirror *m = mirror_of(comm);
    uint64_t page = m->page[id / GIN_I_WINDOW_PAGE];
    return (page != 0 ? page : m->base) + id % GIN_I_WINDOW_PAGE * sizeof(struct gin_i_window);
}

static int reserve(struct gi_mirror *m, uint32_t id)
{
    uint64_t page = 0, *place = &m->page[id / GIN_I_WINDOW_PAGE];
    if (*place != 0)
        return GIN_OK;
    int st = gi_gpu_alloc(m->gpu, PAGE_BYTES, &page);
    if (st == GIN_OK)
        st = gi_gpu_write(m->gpu, m->level1 + id / GIN_I_WINDOW_PAGE * sizeof(uint64_t), &page,
                          sizeof(page));
    if (st == GIN_OK)
        *place = page;
    else
        gi_gpu_free(m->gpu, page);
    return st;
}

int gi_mirror_reserve(gin_comm_t *comm, uint32_t id)
{
    struct gi_mirror *m = mirror_of(comm);
    int st = m != NULL ? reserve(m, id) : GIN_OK;
    return m != NULL && st == GIN_OK ? gi_tables_reserve(&m->tables) : st;
}

/* The row of a window's peers, before its entry leads there; after it has gone, the row rests. */
static int write_peers(const gin_comm_t *comm, struct gi_mirror *m, uint32_t id)
{
    struct gi_window *p = gi_window_private(&comm->windows->table, id);
    if (!p->direct || p->row != 0 || gi_window_at(&comm->windows->table, id)->handle == 0)
        return GIN_OK;
    int st = gi_tables_reserve(&m->tables);
    if (st != GIN_OK)
        return st;
    p->row = gi_tables_take(&m->tables);
    return gi_tables_write(&m->tables, p->row, p->peers);
}

static int write_window(const gin_comm_t *comm, struct gi_mirror *m, uint32_t id)
{
    struct gi_window *p = gi_window_private(&comm->windows->table, id);
    int st = write_peers(comm, m, id);
    if (st != GIN_OK)
        return st;
    const struct gin_i_window e = entry_of(comm, m, id);
    uint32_t made = comm->windows->table.made;
    st = gi_gpu_write(m->gpu, gi_mirror_entry(comm, id), &e, sizeof(e));
    if (e.handle == 0 && p->row != 0) {
        gi_tables_give(&m->tables, p->row);
        p->row = 0;
    }
    return st == GIN_OK ? gi_gpu_write(m->gpu, m->ids, &made, sizeof(made)) : st;
}

void gi_mirror_window(gin_comm_t *comm, uint32_t id)
{
    struct gi_mirror *m = mirror_of(comm);
    if (m != NULL)
        must(comm, write_window(comm, m, id));
}

void gi_mirror_host_grown(gin_comm_t *comm)
{
    struct gi_mirror *m = mirror_of(comm);
    if (m == NULL)
        return;
    gi_pinned_grow(&m->pinned, GI_CONTROL + gi_heap_size(comm->heap));
    must(comm, write_window(comm, m, 0));
}

/* ---- lists ---- */

/* Room for n ranks at list `id`; what is there now may still be read. */
static int list_room(struct gi_mirror *m, uint32_t id, int32_t n)
{
    uint64_t ranks = 0, *old = realloc(m->old, (m->n_old + 1) * sizeof(*old));
    if (old == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a list of %d ranks", n);
    m->old = old;
    int st = gi_gpu_alloc(m->gpu, (uint64_t)n * sizeof(int32_t), &ranks);
    if (st != GIN_OK)
        return st;
    m->old[m->n_old++] = m->list[id].ranks;
    m->list[id].ranks = ranks;
    m->list[id].room = n;
    return GIN_OK;
}

static int write_list(struct gi_mirror *m, uint32_t id, int32_t name, const int32_t *ranks,
                      int32_t n)
{
    int st = name != 0 && m->list[id].room < n ? list_room(m, id, n) : GIN_OK;
    struct gin_i_list l = {.name = name,
                           .size = name != 0 ? n : 0,
                           .ranks = (const int32_t *)(uintptr_t)m->list[id].ranks};
    if (st == GIN_OK && name != 0)
        st = gi_gpu_write(m->gpu, m->list[id].ranks, ranks, (uint64_t)n * sizeof(*ranks));
    return st == GIN_OK ? gi_gpu_write(m->gpu, m->lists + id * sizeof(l), &l, sizeof(l)) : st;
}

int gi_mirror_list(gin_comm_t *comm, uint32_t id, int32_t name, const int32_t *ranks, int32_t n)
{
    struct gi_mirror *m = mirror_of(comm);
    return m != NULL ? write_list(m, id, name, ranks, n) : GIN_OK;
}

static int first_list(void *arg, uint32_t id, int32_t name, const int32_t *ranks, int32_t n)
{
    return write_list(arg, id, name, ranks, n);
}

/* ---- coming and going ---- */

static int allocate(struct gi_mirror *m)
{
    const uint64_t level1 = GIN_I_WINDOW_PAGES * sizeof(uint64_t),
                   lists = GIN_I_LISTS * sizeof(struct gin_i_list);
    uint64_t *zeros = malloc(level1);
    if (zeros == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the table of windows");
    int st = gi_gpu_alloc(m->gpu, PAGE_BYTES + level1 + lists + 64, &m->base);
    m->level1 = m->base + PAGE_BYTES;
    m->lists = m->level1 + level1;
    m->ids = m->lists + lists;
    for (uint32_t i = 0; i < GIN_I_WINDOW_PAGES; i++)
        zeros[i] = m->base;
    if (st == GIN_OK)
        st = gi_gpu_write(m->gpu, m->level1, zeros, level1);
    free(zeros);
    return st;
}

static void free_mirror(const gin_comm_t *comm, struct gi_mirror *m)
{
    for (uint32_t id = 0; id < comm->windows->table.made; id++)
        gi_window_private(&comm->windows->table, id)->row = 0;
    gi_pinned_release(&m->pinned);
    gi_tables_close(&m->tables);
    for (uint32_t i = 0; i < GIN_I_WINDOW_PAGES; i++)
        gi_gpu_free(m->gpu, m->page[i]);
    for (uint32_t i = 0; i < GIN_I_LISTS; i++)
        gi_gpu_free(m->gpu, m->list[i].ranks);
    for (size_t i = 0; i < m->n_old; i++)
        gi_gpu_free(m->gpu, m->old[i]);
    free(m->old);
    gi_gpu_free(m->gpu, m->base);
    free(m);
}

int gi_mirror_up(gin_comm_t *comm)
{
    struct gi_cuda *c = comm->cuda;
    if (c->mirror != NULL || c->gpu == NULL)
        return GIN_OK;
    struct gi_mirror *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the table of windows");
    m->gpu = c->gpu;
    m->tables = (struct gi_tables){.gpu = c->gpu, .n = (uint32_t)comm->shm->lsa_size};
    m->pinned = (struct gi_pinned){
        .gpu = c->gpu, .slots = comm->slots, .stride = comm->stride, .n = comm->shm->lsa_size};
    gi_pinned_grow(&m->pinned, GI_CONTROL + gi_heap_size(comm->heap));
    int st = allocate(m);
    for (uint32_t id = 0; st == GIN_OK && id < comm->windows->table.made; id++)
        st = reserve(m, id);
    if (st != GIN_OK)
        goto free_mirror;
    /* teams that other threads make meanwhile are in the table when it is gone through, or come by
     * gi_mirror_list(), or both */
    __atomic_store_n(&c->mirror, m, __ATOMIC_RELEASE);
    st = gi_teams_each(comm, first_list, m);
    for (uint32_t id = 0; st == GIN_OK && id < comm->windows->table.made; id++)
        st = write_window(comm, m, id);
    if (st == GIN_OK)
        return GIN_OK;
    c->mirror = NULL;
    gi_teams_live(comm); /* waits for who is about to write a list */
free_mirror:
    free_mirror(comm, m);
    return st;
}

void gi_mirror_down(gin_comm_t *comm)
{
    struct gi_mirror *m = mirror_of(comm);
    if (m == NULL)
        return;
    comm->cuda->mirror = NULL;
    free_mirror(comm, m);
}

uint64_t gi_mirror_windows(const gin_comm_t *comm)
{
    return mirror_of(comm)->level1;
}

uint64_t gi_mirror_window_ids(const gin_comm_t *comm)
{
    return mirror_of(comm)->ids;
}

uint64_t gi_mirror_lists(const gin_comm_t *comm)
{
    return mirror_of(comm)->lists;
}

uint64_t gi_mirror_pinned(const gin_comm_t *comm, const char **why)
{
    const struct gi_mirror *m = mirror_of(comm);
    *why = m->pinned.why;
    return m->pinned.bytes;
}
