/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: what becomes one, agreed by all ranks, and what shares a registration.
 *
 * Registering is tentative first: each rank checks its arguments and takes an id and memory, then
 * one exchange shows flags, bytes, offset in the heap, id and address of all ranks, then all commit
 * or all undo. Whether a registration is shared follows from the addresses that everyone has seen,
 * so that all ranks decide alike.
 *
 * A sub-window of the heap must have the same heap offset on every rank, as its peers' addresses
 * are computed. GIN_WIN_NO_LSA makes heap memory like other memory: its peers are reached by
 * process_vm_readv/writev at the addresses they showed. What the program got from CUDA,
 * window_cuda.c looks at.
 */
#include <stdlib.h>
#include <string.h>
#include "cuda_up.h"
#include "engine.h"
#include "mirror.h"
#include "net_ops.h"
#include "window_impl.h"

#define ALL_FLAGS (GIN_WIN_STRICT_ORDERING | GIN_WIN_NO_LSA | GIN_WIN_READ_ONLY)

int gi_windows_open(gin_comm_t *comm)
{
    uint32_t heap_id, cuda_id;
    struct gi_windows *ws = calloc(1, sizeof(*ws));
    if (ws == NULL)
        return gi_fail(GIN_ENOMEM, "windows: no memory for their state");
    int st = gi_window_table_open(&ws->table, comm->cards[0].job[0]);
    if (st != GIN_OK)
        goto free_state;
    st = gi_window_table_take(&ws->table, &heap_id);
    if (st == GIN_OK)
        st = gi_window_table_take(&ws->table, &cuda_id);
    if (st != GIN_OK)
        goto close_table;
    pthread_mutex_init(&ws->local_lock, NULL);
    ws->heap.heap = GI_HOST_HEAP;
    ws->cuda_heap.heap = GI_CUDA_HEAP;
    comm->windows = ws;
    return GIN_OK;
close_table:
    free(gi_window_table_close(&ws->table));
free_state:
    free(ws);
    return st;
}

static void free_registration(struct gi_registration *reg)
{
    if (reg == NULL)
        return;
    gi_cuda_parts_close(reg->parts);
    free(reg->addr);
    free(reg);
}

void gi_windows_close(gin_comm_t *comm)
{
    struct gi_windows *ws = comm->windows;
    if (ws == NULL)
        return;
    for (uint32_t id = 0; id < ws->table.made; id++)
        free(gi_window_private(&ws->table, id)->peers);
    while (ws->regs != NULL) {
        struct gi_registration *reg = ws->regs;
        ws->regs = reg->next;
        free_registration(reg);
    }
    gi_window_index_close(&ws->index);
    comm->stale_windows = gi_window_table_close(&ws->table);
    pthread_mutex_destroy(&ws->local_lock);
    free(ws->local);
    free(ws);
    comm->windows = NULL;
}

static void open_heap(gin_comm_t *comm, uint64_t size)
{
    struct gi_windows *ws = comm->windows;
    const uint64_t process = comm->cards[comm->rank].process;
    uint64_t base = (uint64_t)(uintptr_t)comm->slots + GI_CONTROL;
    ws->same_process = false;
    for (int r = 0; r < comm->size; r++)
        ws->same_process |=
            r != comm->rank && comm->shm->lsa_of[r] >= 0 && comm->cards[r].process == process;
    gi_window_private(&ws->table, GI_THE_HEAP)->reg = &ws->heap;
    struct gin_i_window w = {
        .size = size,
        .local = base + (uint64_t)comm->shm->lsa_rank * comm->stride,
        .lsa_base = base,
        .lsa_stride = comm->stride,
        .mode = GIN_I_WINDOW_STRIDE,
    };
    gi_window_table_publish(&ws->table, GI_THE_HEAP, &w);
}

int gi_window_heap(gin_comm_t *comm, uint64_t size)
{
    struct gi_windows *ws = comm->windows;
    if (size == 0) {
        gi_window_table_retract(&ws->table, GI_THE_HEAP);
        ws->heap.windows = 0;
    } else if (ws->heap.windows == 0) {
        open_heap(comm, size);
        ws->heap.windows = 1;
    } else {
        uint64_t had = GIN_LOAD_RELAXED(&gi_heap_window(comm)->size);
        GIN_STORE_RELEASE(&gi_heap_window(comm)->size, size);
        if (size != had) {
            gi_net_heap_grown(comm, size);
            gi_net_window_set(comm, gi_heap_window(comm)->handle,
                              gi_window_private(&ws->table, GI_THE_HEAP), size);
            gi_mirror_host_grown(comm);
        }
    }
    return GIN_OK;
}

/* Host threads' inlined code sees a window of size 0, and leaves it to the library. */
int gi_window_cuda_heap(gin_comm_t *comm, uint64_t size)
{
    struct gi_windows *ws = comm->windows;
    struct gi_window *p = gi_window_private(&ws->table, GI_CUDA_HEAP_ID);
    if (size == p->gpu_bytes)
        return GIN_OK;
    GIN_STORE_RELAXED(&p->gpu_bytes, size);
    if (size == 0) {
        gi_window_table_retract(&ws->table, GI_CUDA_HEAP_ID);
        gi_windows_forget_gpus(ws);
    } else if (ws->cuda_heap.windows == 0) {
        const struct gin_i_window w = {.local = gi_cuda_heap_base(comm->cuda),
                                       .lsa_base = comm->cuda->map->base + GI_CONTROL_CUDA,
                                       .lsa_stride = comm->cuda->map->stride,
                                       .kind = GIN_KIND_CUDA};
        p->reg = &ws->cuda_heap;
        gi_window_table_publish(&ws->table, GI_CUDA_HEAP_ID, &w);
    }
    ws->cuda_heap.windows = size != 0;
    gi_net_cuda_heap_grown(comm, size);
    gi_mirror_window(comm, GI_CUDA_HEAP_ID);
    return GIN_OK;
}

const struct gin_i_window *const *gi_windows_table(const gin_comm_t *comm)
{
    return (const struct gin_i_window *const *)comm->windows->table.level1;
}

const struct gin_i_window *const *gi_windows_empty(void)
{
    return gi_window_table_empty();
}

const struct gin_i_window *gi_window_find(const gin_comm_t *comm, gin_window_t win)
{
    return gi_window_table_find(&comm->windows->table, win.w);
}

uint64_t gi_window_size(const gin_comm_t *comm, const struct gin_i_window *w)
{
    return gi_window_bytes(comm, w, gi_window_id(w->handle));
}

void gi_windows_count(const gin_comm_t *comm, uint64_t *windows, uint64_t *registrations)
{
    const struct gi_windows *ws = comm->windows;
    uint64_t heap = (ws->heap.windows != 0) + (uint64_t)(ws->cuda_heap.windows != 0);
    *windows = ws->table.live - 2 + heap; /* the heaps' ids are taken from the start */
    *registrations = ws->n_regs + heap;
}

/* ---- registering ---- */

/* All of it in the heap that w is the window of? */
static bool in_heap(const gin_comm_t *comm, struct gi_draft *d, const struct gin_i_window *w,
                    enum gi_which_heap heap)
{
    uint64_t off = (uint64_t)(uintptr_t)d->ptr - w->local;
    uint64_t size = gi_window_bytes(comm, w, heap == GI_CUDA_HEAP ? GI_CUDA_HEAP_ID : GI_THE_HEAP);
    if (off > size || d->bytes > size - off)
        return false;
    d->heap = heap;
    d->heap_off = off;
    return true;
}

/* Where the draft's memory lies: a heap of mine, or memory that is no rank's slot. */
static int locate(const gin_comm_t *comm, struct gi_draft *d)
{
    const struct gin_i_window *heap = gi_heap_window(comm);
    uint64_t start = (uint64_t)(uintptr_t)d->ptr, slots = (uint64_t)(uintptr_t)comm->slots;
    uint64_t end = slots + (uint64_t)comm->shm->lsa_size * comm->stride;
    d->heap_off = GI_NOT_HEAP;
    if (d->bytes == 0 || in_heap(comm, d, heap, GI_HOST_HEAP))
        return GIN_OK;
    if (gi_cuda_touches(comm, start, d->bytes))
        return in_heap(comm, d, gi_cuda_window(comm), GI_CUDA_HEAP)
                   ? GIN_OK
                   : gi_fail(GIN_EINVAL,
                             "%s: [%p, +%llu) is not wholly in my GPU heap [%#llx, +%llu)", d->call,
                             d->ptr, (unsigned long long)d->bytes,
                             (unsigned long long)gi_cuda_window(comm)->local,
                             (unsigned long long)gi_heap_size(comm->cuda->heap));
    if (start >= end || start + (d->bytes - 1) < slots)
        return GIN_OK;
    return gi_fail(GIN_EINVAL,
                   "%s: [%p, +%llu) is not wholly in my heap [%#llx, +%llu), but touches memory "
                   "of the library or of a peer",
                   d->call, d->ptr, (unsigned long long)d->bytes, (unsigned long long)heap->local,
                   (unsigned long long)heap->size);
}

static int check(const gin_comm_t *comm, struct gi_draft *d, const gin_window_t *win)
{
    if (win == NULL)
        return gi_fail(GIN_EINVAL, "%s: no place for the window (NULL)", d->call);
    if (d->flags & ~(unsigned)ALL_FLAGS)
        return gi_fail(GIN_EINVAL, "%s: flags %#x; known are %#x", d->call, d->flags, ALL_FLAGS);
    if (gi_cuda_touches(comm, (uint64_t)(uintptr_t)d->ptr, d->bytes)) /* nothing the CPU can test */
        return locate(comm, d);
    gi_draft_place(comm, d);
    if (d->place != GI_GPU_UNKNOWN && d->place != GI_GPU_PINNED) /* judged when all are seen */
        return GIN_OK;
    int st = gi_window_check_range(d->call, d->ptr, d->bytes);
    return st == GIN_OK ? locate(comm, d) : st;
}

/* Take all that the commit may need. */
static int prepare(gin_comm_t *comm, struct gi_draft *d)
{
    struct gi_windows *ws = comm->windows;
    int st = gi_window_table_take(&ws->table, &d->id);
    if (st != GIN_OK)
        return st;
    st = gi_mirror_reserve(comm, d->id);
    if (st == GIN_OK)
        st = gi_window_index_reserve(&ws->index);
    if (st != GIN_OK)
        goto give_id;
    d->reg = calloc(1, sizeof(*d->reg));
    uint64_t *addr = calloc((size_t)comm->size, sizeof(*addr));
    bool peers = ws->same_process || d->place != GI_GPU_UNKNOWN;
    if (peers)
        d->peers = calloc((size_t)comm->shm->lsa_size, sizeof(*d->peers));
    if (d->reg == NULL || addr == NULL || (peers && d->peers == NULL)) {
        st =
            gi_fail(GIN_ENOMEM, "%s: no memory for the addresses of %d ranks", d->call, comm->size);
        free(addr);
        goto free_memory;
    }
    d->reg->addr = addr;
    return GIN_OK;
free_memory:
    free(d->reg);
    free(d->peers);
    d->reg = NULL;
    d->peers = NULL;
give_id:
    gi_window_table_give(&ws->table, d->id);
    return st;
}

static void undo(gin_comm_t *comm, struct gi_draft *d)
{
    if (d->reg == NULL)
        return;
    free_registration(d->reg);
    free(d->peers);
    gi_window_table_give(&comm->windows->table, d->id);
}

/* A heap at one rank, other memory at another one? (Two heaps differ in kind.) */
static int judge_heaps(const gin_comm_t *comm, const struct gi_draft *d,
                       const struct gi_agree_record *mine)
{
    for (int r = 0; r < comm->size; r++) {
        const struct gi_agree_record *o = &comm->records[r];
        if (o->seq == mine->seq && o->op == mine->op &&
            (o->align == GI_NOT_HEAP) != (mine->align == GI_NOT_HEAP))
            return gi_fail(GIN_EMISMATCH,
                           "%s: rank %d passed heap memory, rank %d memory outside the heap",
                           d->call, mine->align == GI_NOT_HEAP ? r : comm->rank,
                           mine->align == GI_NOT_HEAP ? comm->rank : r);
    }
    return GIN_OK;
}

/* Keep everyone's address, and leave in the records what must be equal. */
static void take_addresses(gin_comm_t *comm, struct gi_draft *d, struct gi_agree_record *mine,
                           bool failed)
{
    mine->kind &= 0xff;
    for (int r = 0; r < comm->size; r++) {
        struct gi_agree_record *o = &comm->records[r];
        if (d->reg != NULL)
            d->reg->addr[r] = o->fingerprint;
        o->kind &= 0xff;    /* places were judged */
        o->fingerprint = 0; /* addresses may differ, and nothing else */
        if (failed) {       /* who failed may not have looked there */
            o->align = mine->align;
            o->kind = mine->kind;
        }
    }
    mine->fingerprint = 0;
}

/* Show my draft, take everyone's address, get the verdict. */
static int agree(gin_comm_t *comm, struct gi_draft *d, int st)
{
    const struct gi_agree_record *all;
    struct gi_agree_record mine = {
        .seq = ++comm->calls,
        .op = GI_AGREE_WINDOW,
        .kind = d->heap | d->place << 8,
        .size = d->flags,
        .align = d->heap_off,
        .extra = d->bytes,
        .offset = d->id,
        .fingerprint = (uint64_t)(uintptr_t)d->ptr,
        .status = st,
    };
    int exchanged = gi_exchange(comm, &mine, &all);
    if (exchanged != GIN_OK) {
        gi_fail_context("%s", d->call);
        return exchanged;
    }
    bool failed = false, same = true;
    for (int r = 0; r < comm->size; r++) {
        failed |= all[r].status != GIN_OK;
        same &= all[r].seq == mine.seq && all[r].op == mine.op;
    }
    if (!failed && same)
        st = gi_draft_judge(comm, d);
    if (!failed && st == GIN_OK)
        st = judge_heaps(comm, d, &mine);
    if (!failed && st != GIN_OK)
        return st;
    take_addresses(comm, d, &mine, failed);
    return gi_agree_judge(&mine, comm->size, comm->records);
}

/* Only addresses that all ranks know decide, in an order that all ranks share. */
struct gi_registration *gi_registration_find(const gin_comm_t *comm, const struct gi_draft *d,
                                             uint64_t *off)
{
    const uint64_t *addr = d->reg->addr;
    uint32_t strict = d->flags & GIN_WIN_STRICT_ORDERING;
    bool lsa = d->gpu && !(d->flags & GIN_WIN_NO_LSA);
    for (struct gi_registration *g = comm->windows->regs; g != NULL; g = g->next) {
        uint64_t at = addr[0] - g->addr[0];
        if (g->strict != strict || g->gpu != d->gpu || (g->parts != NULL) != lsa ||
            addr[0] < g->addr[0] || at > g->bytes || d->bytes > g->bytes - at)
            continue;
        int r = 1;
        while (r < comm->size && addr[r] >= g->addr[r] && addr[r] - g->addr[r] == at)
            r++;
        if (r == comm->size) {
            *off = at;
            return g;
        }
    }
    return NULL;
}

/* The draft's memory goes into a registration: the heap's, an older one, or its own. */
static void adopt(gin_comm_t *comm, struct gi_draft *d, struct gi_window *p)
{
    struct gi_windows *ws = comm->windows;
    struct gi_registration *g = NULL;
    if (d->heap_off != GI_NOT_HEAP && !(d->flags & GIN_WIN_NO_LSA)) {
        g = d->heap == GI_CUDA_HEAP ? &ws->cuda_heap : &ws->heap;
        p->off = d->heap_off;
    } else if (d->bytes != 0) {
        g = gi_registration_find(comm, d, &p->off);
    }
    if (g != NULL) {
        free_registration(d->reg);
    } else {
        g = d->reg;
        g->bytes = d->bytes;
        g->strict = d->flags & GIN_WIN_STRICT_ORDERING;
        g->heap = 0;
        g->gpu = d->gpu;
        g->next = ws->regs;
        g->at = &ws->regs;
        if (g->next != NULL)
            g->next->at = &g->next;
        ws->regs = g;
        ws->n_regs++;
        gi_net_reg_open(comm, g);
    }
    d->reg = NULL;
    g->windows++;
    p->reg = g;
}

/* My peers' addresses for mode TABLE: as my GPU knows them, or ranks that are threads of this
 * process. */
static void fill_peers(gin_comm_t *comm, const struct gi_window *p, uint64_t *peers)
{
    const struct gi_cuda_parts *parts = p->reg->parts;
    for (int l = 0; l < comm->shm->lsa_size; l++) {
        int r = comm->shm->world_of[l];
        if (p->reg->gpu)
            peers[l] = parts != NULL && parts->at[l] != 0 ? parts->at[l] + p->off : 0;
        else if (comm->cards[r].process == comm->cards[comm->rank].process)
            peers[l] = p->reg->addr[r] + p->off;
    }
}

static uint64_t commit(gin_comm_t *comm, struct gi_draft *d)
{
    struct gi_windows *ws = comm->windows;
    struct gi_window *p = gi_window_private(&ws->table, d->id);
    struct gin_i_window w = {
        .size = d->bytes,
        .local = (uint64_t)(uintptr_t)d->ptr,
        .mode = GIN_I_WINDOW_SLOW,
        .flags = d->flags,
    };
    adopt(comm, d, p);
    if (d->heap == GI_CUDA_HEAP) {
        w.kind = GIN_KIND_CUDA;
        w.size = 0;
        w.lsa_base = gi_cuda_window(comm)->lsa_base + p->off;
        w.lsa_stride = gi_cuda_window(comm)->lsa_stride;
        p->gpu_bytes = d->bytes;
    } else if (p->reg->heap) {
        w.lsa_base = gi_heap_window(comm)->lsa_base + p->off;
        w.lsa_stride = comm->stride;
        w.mode = GIN_I_WINDOW_STRIDE;
    } else if (d->peers != NULL) {
        bool lsa = !(d->flags & GIN_WIN_NO_LSA);
        fill_peers(comm, p, d->peers);
        w.peers = p->peers = d->peers;
        d->peers = NULL;
        w.mode = lsa && ws->same_process && !d->gpu ? GIN_I_WINDOW_TABLE : GIN_I_WINDOW_SLOW;
        p->direct = lsa && (d->gpu ? p->reg->parts->complete : d->pinned);
    }
    if (d->gpu) { /* host threads' inlined code sees no bytes */
        w.kind = GIN_KIND_CUDA;
        w.size = 0;
        p->gpu_bytes = d->bytes;
    }
    p->pinned = d->place == GI_GPU_PINNED;
    free(d->peers);
    if (d->flags & GIN_WIN_READ_ONLY)
        w.mode = GIN_I_WINDOW_SLOW; /* inlined code does not tell a put from a get */
    uint64_t handle = gi_window_table_publish(&ws->table, d->id, &w);
    if (d->bytes != 0)
        gi_window_index_add(&ws->index, w.local, d->bytes, d->id);
    gi_mirror_window(comm, d->id);
    gi_net_window_set(comm, handle, p, d->bytes);
    return handle;
}

int gin_window_register(gin_comm_t *comm, void *ptr, size_t bytes, unsigned flags,
                        gin_window_t *win)
{
    struct gi_draft d = {.call = "gin_window_register",
                         .ptr = ptr,
                         .bytes = bytes,
                         .flags = flags,
                         .heap_off = GI_NOT_HEAP,
                         .place = GI_GPU_UNKNOWN};
    int st = gi_comm_enter_up(comm, d.call);
    if (st != GIN_OK)
        return st;
    st = check(comm, &d, win);
    if (st == GIN_OK)
        st = prepare(comm, &d);
    st = agree(comm, &d, st);
    if (st == GIN_OK && d.gpu)
        st = gi_draft_open(comm, &d);
    if (st != GIN_OK) {
        undo(comm, &d);
        return st;
    }
    win->w = commit(comm, &d);
    /* a peer's message may name the window as soon as the peer has it */
    return comm->net != NULL ? gi_agree_on(comm, GI_AGREE_WINDOW, 0, 0, 0, GIN_OK) : GIN_OK;
}

/* ---- deregistering ---- */

static void drop_registration(gin_comm_t *comm, struct gi_registration *g)
{
    struct gi_windows *ws = comm->windows;
    if (--g->windows != 0 || g->heap)
        return;
    *g->at = g->next;
    if (g->next != NULL)
        g->next->at = g->at;
    ws->n_regs--;
    gi_net_reg_close(comm, g);
    free_registration(g);
}

int gin_window_deregister(gin_comm_t *comm, gin_window_t win)
{
    static const char call[] = "gin_window_deregister";
    int st = gi_comm_enter_up(comm, call);
    if (st != GIN_OK)
        return st;
    struct gi_windows *ws = comm->windows;
    uint32_t id = gi_window_id(win.w);
    st = gi_window_check_live(comm, call, win);
    if (st == GIN_OK && (id == GI_THE_HEAP || id == GI_CUDA_HEAP_ID))
        st = gi_fail(GIN_EINVAL, "%s: this is the heap's window; it lives as long as the heap",
                     call);
    gi_engine_drain(comm, NULL); /* nothing of mine is under way to it */
    if (st == GIN_OK)
        st = gi_net_still(comm, call);
    st = gi_agree_on(comm, GI_AGREE_WINDOW_FREE, win.w, 0, 0, st);
    if (st != GIN_OK)
        return st;
    struct gi_window *p = gi_window_private(&ws->table, id);
    struct gin_i_window was = *gi_window_at(&ws->table, id);
    uint64_t bytes = gi_window_bytes(comm, &was, id);
    gi_engine_hold(comm);
    gi_window_table_retract(&ws->table, id);
    gi_engine_go_on(comm);
    gi_mirror_window(comm, id);
    gi_engine_drain(comm, NULL); /* what kernels posted meanwhile, against the rules */
    if (bytes != 0)
        gi_window_index_remove(&ws->index, was.local, bytes, id);
    gi_net_window_drop(comm, win.w);
    drop_registration(comm, p->reg);
    free(p->peers);
    p->peers = NULL;
    gi_window_table_give(&ws->table, id);
    return GIN_OK;
}
