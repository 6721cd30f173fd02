/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heap comes up: memory object, LSA map, allocator, heap window, LSA and rail teams. This is
 * where heap/ and transport/shm meet; neither knows the other.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda_up.h"
#include "net_up.h"

#define DEFAULT_ALIGN 64 /* a cache line: blocks never share one */

/* ---- bring-up ---- */

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    return gi_comm_gather(arg, in, out, bytes);
}

/* What mapping needs of the cards. */
static struct gi_shm_rank *shm_ranks(const gin_comm_t *comm)
{
    struct gi_shm_rank *ranks = calloc((size_t)comm->size, sizeof(*ranks));
    for (int r = 0; ranks != NULL && r < comm->size; r++) {
        const struct gi_card *c = &comm->cards[r];
        ranks[r].host = c->host;
        ranks[r].process = c->process;
        ranks[r].pid_space = c->pid_space;
        ranks[r].probe = c->probe;
        ranks[r].pid = c->pid;
        ranks[r].uid = (uid_t)c->uid;
    }
    return ranks;
}

static int map_slots(gin_comm_t *comm)
{
    uint64_t wish = GI_CONTROL + comm->env.heap_max;
    comm->shm_ranks = shm_ranks(comm);
    int st = gi_agree_on(
        comm, GI_AGREE_HEAP, comm->env.heap_size, comm->env.heap_max, comm->env.heap_chunk,
        comm->shm_ranks != NULL ? GIN_OK
                                : gi_fail(GIN_ENOMEM, "no memory for %d ranks", comm->size));
    if (st != GIN_OK)
        return st;
    struct gi_shm_config c = {.rank = comm->rank,
                              .size = comm->size,
                              .ranks = comm->shm_ranks,
                              .job = {comm->cards[0].job[0], comm->cards[0].job[1]},
                              .fd = comm->segment->fd,
                              .stride = wish,
                              .min_stride = GI_CONTROL + comm->segment->bytes,
                              .lsa = !comm->env.disable_lsa,
                              .cma = !comm->env.disable_cma,
                              .allgather = gather,
                              .arg = comm,
                              .deadline = gi_deadline_in(comm->env.init_timeout)};
    return gi_shm_join(&c, &comm->shm);
}

static int heap_open(gin_comm_t *comm)
{
    uint64_t most = comm->stride - GI_CONTROL;
    if (comm->env.heap_max > most)
        gi_info("heap", "the address space allows a heap of %llu bytes, GINSHMEM_HEAP_MAX is %llu",
                (unsigned long long)most, (unsigned long long)comm->env.heap_max);
    struct gi_heap_config c = {.segment = comm->segment,
                               .slot = (char *)gi_control(comm, comm->shm->lsa_rank),
                               .max = comm->env.heap_max < most ? comm->env.heap_max : most,
                               .chunk = comm->env.heap_chunk,
                               .kind = GIN_KIND_HOST,
                               .check = comm->env.check != 0,
                               .size = comm->size,
                               .calls = &comm->calls,
                               .exchange = gi_exchange,
                               .arg = comm};
    return gi_heap_create(&c, &comm->heap);
}

/* The ranks with my LSA index, one per LSA team that has one, in the teams' order. */
static int rail_members(const gin_comm_t *comm, int *members)
{
    const struct gi_shm *s = comm->shm;
    int n = 0;
    for (int team = 0; team < s->n_teams; team++)
        for (int r = 0; r < comm->size; r++)
            if (s->team_of[r] == team && s->index_of[r] == s->lsa_rank)
                members[n++] = r;
    return n;
}

static int lsa_teams(gin_comm_t *comm)
{
    int *members = malloc((size_t)comm->size * sizeof(*members));
    if (members == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for %d ranks", comm->size);
    int st = gi_team_make(comm, comm->shm->world_of, comm->shm->lsa_size, 1, &comm->lsa);
    if (st == GIN_OK)
        st = gi_team_make(comm, members, rail_members(comm, members), 1, &comm->rail);
    free(members);
    return st;
}

/* What comes after mapping is local and undone by gi_memory_down(). */
static int local_parts(gin_comm_t *comm)
{
    comm->slots = comm->shm->base;
    comm->stride = comm->shm->stride;
    comm->lsa_of = malloc((size_t)comm->size * sizeof(*comm->lsa_of));
    if (comm->lsa_of == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for %d ranks", comm->size);
    memcpy(comm->lsa_of, comm->shm->lsa_of, (size_t)comm->size * sizeof(*comm->lsa_of));
    int st = heap_open(comm);
    if (st == GIN_OK)
        st = gi_window_heap(comm, gi_heap_size(comm->heap));
    return st == GIN_OK ? lsa_teams(comm) : st;
}

int gi_memory_up(gin_comm_t *comm)
{
    int st = gi_comm_status_quiet(comm);
    if (st != GIN_OK)
        return gi_comm_fail_status(comm);
    st = gi_segment_create(GI_CONTROL, comm->env.heap_size, gi_hugepages_of(comm->env.hugepages),
                           &comm->segment);
    st = gi_agree_on(comm, GI_AGREE_HEAP, comm->env.heap_size, comm->env.heap_max,
                     comm->env.heap_chunk, st);
    if (st == GIN_OK)
        st = map_slots(comm);
    if (st == GIN_OK) {
        st = local_parts(comm);
        st = gi_agree_on(comm, GI_AGREE_HEAP, comm->stride, comm->segment->bytes,
                         comm->segment->granule, st);
    }
    if (st != GIN_OK) {
        gi_fail_context("bringing the heap up");
        gi_memory_down(comm);
        free(comm->lsa_of);
        comm->lsa_of = NULL;
        return st;
    }
    comm->up = true;
    if (comm->shm->n_teams > 1) {
        st = gi_net_up(comm);
        if (st != GIN_OK)
            gi_fail_context("bringing the network up");
        else if ((st = gi_comm_watch_up(comm)) != GIN_OK)
            gi_fail_context("bringing the watch over other hosts up");
    }
    if (st != GIN_OK) {
        gi_memory_down(comm);
        return st;
    }
    gi_info("memory", "heap up: %llu bytes on %s, LSA rank %d of %d",
            (unsigned long long)gi_heap_size(comm->heap), comm->segment->backing,
            comm->shm->lsa_rank, comm->shm->lsa_size);
    return GIN_OK;
}

void gi_memory_down(gin_comm_t *comm)
{
    gi_comm_watch_down(comm, GIN_OK);
    gi_net_down(comm);
    comm->up = false;
    gi_cuda_down(comm);
    gi_window_heap(comm, 0);
    gi_heap_destroy(comm->heap);
    comm->heap = NULL;
    if (comm->shm != NULL)
        gi_shm_leave(comm->shm);
    comm->shm = NULL;
    gi_segment_close(comm->segment);
    comm->segment = NULL;
    free(comm->shm_ranks);
    comm->shm_ranks = NULL;
    comm->slots = NULL;
}

/* ---- blocks ---- */

/* One of the two heaps, as an allocation sees it. */
struct side {
    struct gi_heap *heap;
    char *base; /* of offset 0; what a GPU heap's address means to the CPU is nothing */
    uint64_t *internal;
};

static struct side side_of(gin_comm_t *comm, gin_kind_t kind)
{
    if (kind == GIN_KIND_CUDA)
        return (struct side){comm->cuda->heap, (char *)(uintptr_t)gi_cuda_heap_base(comm->cuda),
                             &comm->cuda->internal};
    return (struct side){comm->heap, (char *)gi_control(comm, comm->shm->lsa_rank) + GI_CONTROL,
                         &comm->internal};
}

/* The heap that a pointer of the program belongs to; the host's for a pointer into none. */
static gin_kind_t kind_of(const gin_comm_t *comm, const void *ptr)
{
    return gi_cuda_owns(comm, (uint64_t)(uintptr_t)ptr) ? GIN_KIND_CUDA : GIN_KIND_HOST;
}

/* The window follows the heap's growth. */
static int grown(gin_comm_t *comm, gin_kind_t kind)
{
    return kind == GIN_KIND_CUDA ? gi_window_cuda_heap(comm, gi_heap_size(comm->cuda->heap))
                                 : gi_window_heap(comm, gi_heap_size(comm->heap));
}

int gi_memory_take(gin_comm_t *comm, gin_kind_t kind, uint64_t bytes, uint64_t *off)
{
    struct side s = side_of(comm, kind);
    int st = gi_heap_malloc(s.heap, bytes, 64, GI_HEAP_ZERO, off);
    if (st != GIN_OK)
        return st;
    *s.internal += bytes;
    return grown(comm, kind);
}

int gi_memory_give(gin_comm_t *comm, gin_kind_t kind, uint64_t off)
{
    struct side s = side_of(comm, kind);
    uint64_t start, bytes = 0;
    gi_heap_find(s.heap, off, &start, &bytes);
    int st = gi_heap_free(s.heap, off);
    if (st == GIN_OK)
        *s.internal -= bytes < *s.internal ? bytes : *s.internal;
    return st;
}

int gi_memory_live(gin_comm_t *comm, uint64_t off, uint64_t bytes)
{
    uint64_t start, size;
    return gi_heap_find(comm->heap, off, &start, &size) && bytes <= size - (off - start);
}

/* Offset of a pointer that the program calls a block of the heap. */
static uint64_t offset_of(const struct side *s, const void *ptr)
{
    uint64_t off = (uint64_t)((uintptr_t)ptr - (uintptr_t)s->base);
    if (ptr == NULL)
        return GI_HEAP_NONE;
    return off < gi_heap_size(s->heap) ? off : GI_HEAP_FOREIGN;
}

/* The heap's own texts do not know which call it was; agreements do. */
static int named(const char *call, int status)
{
    if (status != GIN_OK && strncmp(gin_last_error(), call, strlen(call)) != 0)
        gi_fail_context("%s", call);
    return status;
}

static void *failed(int status)
{
    gi_set_last_status(status);
    return NULL;
}

static int kind_ok(gin_kind_t kind, const char *call)
{
    if (kind == GIN_KIND_HOST || kind == GIN_KIND_CUDA)
        return GIN_OK;
    return gi_fail(GIN_EINVAL, "%s: kind %d is neither HOST nor CUDA", call, (int)kind);
}

/* Refused here, perhaps not elsewhere: nobody may wait for this rank in the agreement. */
static void *refused(gin_comm_t *comm, uint64_t align, uint64_t bytes, unsigned flags,
                     const char *call, int why)
{
    return failed(named(call, gi_agree_on(comm, GI_AGREE_MALLOC, bytes, align, flags, why)));
}

static void *allocate(gin_comm_t *comm, gin_kind_t kind, uint64_t align, uint64_t bytes,
                      unsigned flags, const char *call)
{
    struct side s;
    uint64_t off;
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK)
        return NULL;
    if (bytes == 0)
        return failed(kind_ok(kind, call));
    st = gi_comm_enter_up(comm, call);
    if (st == GIN_OK && kind_ok(kind, call) != GIN_OK)
        return refused(comm, align, bytes, flags, call, GIN_EINVAL);
    if (st == GIN_OK && kind == GIN_KIND_CUDA)
        st = gi_cuda_up(comm);
    if (st == GIN_OK) {
        s = side_of(comm, kind);
        st = gi_heap_malloc(s.heap, bytes, align, flags, &off);
    }
    if (st == GIN_OK)
        st = grown(comm, kind);
    if (st != GIN_OK)
        return failed(named(call, st));
    gi_set_last_status(GIN_OK);
    return s.base + off;
}

void *gin_malloc_kind(gin_comm_t *comm, gin_kind_t kind, size_t bytes)
{
    return allocate(comm, kind, DEFAULT_ALIGN, bytes, 0, "gin_malloc");
}

void *gin_malloc(gin_comm_t *comm, size_t bytes)
{
    return allocate(comm, GIN_KIND_HOST, DEFAULT_ALIGN, bytes, 0, "gin_malloc");
}

void *gin_calloc_kind(gin_comm_t *comm, gin_kind_t kind, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        if (gi_comm_enter(comm, "gin_calloc") != GIN_OK ||
            gi_comm_enter_up(comm, "gin_calloc") != GIN_OK)
            return NULL;
        int st = gi_fail(GIN_ERANGE, "gin_calloc: %zu * %zu bytes overflow", count, size);
        return refused(comm, DEFAULT_ALIGN, SIZE_MAX, GI_HEAP_ZERO, "gin_calloc", st);
    }
    return allocate(comm, kind, DEFAULT_ALIGN, bytes, GI_HEAP_ZERO, "gin_calloc");
}

void *gin_calloc(gin_comm_t *comm, size_t count, size_t size)
{
    return gin_calloc_kind(comm, GIN_KIND_HOST, count, size);
}

void *gin_aligned_alloc_kind(gin_comm_t *comm, gin_kind_t kind, size_t alignment, size_t bytes)
{
    return allocate(comm, kind, alignment, bytes, 0, "gin_aligned_alloc");
}

void *gin_aligned_alloc(gin_comm_t *comm, size_t alignment, size_t bytes)
{
    return gin_aligned_alloc_kind(comm, GIN_KIND_HOST, alignment, bytes);
}

void *gin_realloc(gin_comm_t *comm, void *ptr, size_t bytes)
{
    uint64_t off;
    int st = gi_comm_enter(comm, "gin_realloc");
    if (st != GIN_OK)
        return NULL;
    if (ptr == NULL)
        return allocate(comm, GIN_KIND_HOST, DEFAULT_ALIGN, bytes, 0, "gin_realloc");
    if (!comm->up)
        return failed(gi_fail(GIN_EINVAL, "gin_realloc: %p is no block: the heap is empty", ptr));
    gin_kind_t kind = kind_of(comm, ptr);
    struct side s = side_of(comm, kind);
    st = gi_heap_realloc(s.heap, offset_of(&s, ptr), bytes, &off);
    if (st == GIN_OK)
        st = grown(comm, kind);
    if (st != GIN_OK)
        return failed(named("gin_realloc", st));
    gi_set_last_status(GIN_OK);
    return off == GI_HEAP_NONE ? NULL : s.base + off;
}

int gin_free(gin_comm_t *comm, void *ptr)
{
    int st = gi_comm_enter(comm, "gin_free");
    if (st != GIN_OK || ptr == NULL)
        return st;
    if (!comm->up)
        return gi_fail(GIN_EINVAL, "gin_free: %p is no block: the heap is empty", ptr);
    struct side s = side_of(comm, kind_of(comm, ptr));
    return named("gin_free", gi_heap_free(s.heap, offset_of(&s, ptr)));
}

/* ---- asking ---- */

int gin_heap_usage(gin_comm_t *comm, gin_kind_t kind, gin_heap_usage_t *usage)
{
    int st = gi_comm_enter(comm, "gin_heap_usage");
    if (st == GIN_OK)
        st = kind_ok(kind, "gin_heap_usage");
    if (st == GIN_OK && kind == GIN_KIND_CUDA && comm->cuda == NULL)
        st = gi_fail(GIN_ENOTSUP, "gin_heap_usage: kind CUDA: there is no GPU heap%s%s",
                     comm->cuda_why[0] != 0 ? ": " : " yet", comm->cuda_why);
    if (st != GIN_OK)
        return st;
    if (usage == NULL || usage->size_of < sizeof(usage->size_of) || usage->size_of > 4096)
        return gi_fail(GIN_EINVAL, "gin_heap_usage: set usage->size_of to sizeof(*usage) first");
    gin_heap_usage_t u = {.size_of = usage->size_of};
    u.max = comm->env.heap_max;
    snprintf(u.backing, sizeof(u.backing), "not up yet");
    if (comm->up) {
        struct side s = side_of(comm, kind);
        struct gi_heap_state h;
        gi_heap_get_state(s.heap, &h);
        u.size = h.size;
        u.max = h.max;
        u.used = h.used;
        u.peak = h.peak;
        u.largest_free = h.largest_free;
        u.blocks = h.blocks;
        u.internal = *s.internal;
        snprintf(u.backing, sizeof(u.backing), "%s", h.backing);
    }
    memcpy(usage, &u, usage->size_of < sizeof(u) ? usage->size_of : sizeof(u));
    return GIN_OK;
}

int gin_heap_check(gin_comm_t *comm)
{
    int st = gi_comm_enter(comm, "gin_heap_check");
    if (st == GIN_OK && comm->up)
        st = gi_heap_check(comm->heap);
    return st == GIN_OK && comm->cuda != NULL ? gi_heap_check(comm->cuda->heap) : st;
}

void *gin_ptr(gin_comm_t *comm, const void *mine, int rank)
{
    gin_window_t win;
    uint64_t off;
    void *addr;
    pid_t pid;
    if (gi_comm_enter(comm, "gin_ptr") != GIN_OK)
        return NULL;
    if (rank < 0 || rank >= comm->size) {
        gi_fail(GIN_ERANGE, "gin_ptr: rank %d of %d", rank, comm->size);
        return NULL;
    }
    if (gin_window_of(comm, mine, &win, &off) != GIN_OK) {
        gi_fail_context("gin_ptr");
        return NULL;
    }
    switch (gi_window_reach(comm, gi_window_find(comm, win), rank, off, &addr, &pid)) {
    case GIN_PATH_SELF:
    case GIN_PATH_LSA: return addr;
    case GIN_PATH_CMA:
        gi_fail(GIN_ENOTSUP, "gin_ptr: rank %d's memory is reached by process_vm calls, not mapped",
                rank);
        return NULL;
    case GIN_PATH_NET:
        gi_fail(GIN_ENOTSUP, "gin_ptr: rank %d's memory is reached by the network, not mapped",
                rank);
        return NULL;
    default: gi_fail_context("gin_ptr"); return NULL;
    }
}
