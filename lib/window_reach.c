/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a rank's part of a window is reached, and why not. The path is per (rank, window): heap
 * memory through the LSA slots; other memory of ranks in this process by their pointers; other
 * memory on this host, and memory that must not be loaded and stored, by process_vm_readv/writev.
 */
#include "cuda_up.h"
#include "net_up.h"
#include "window_impl.h"

static const char *why_no_lsa(const gin_comm_t *comm, const struct gin_i_window *w, int world)
{
    if (gi_is_elsewhere(comm, world))
        return "another host";
    if (w->flags & GIN_WIN_NO_LSA)
        return "the window is GIN_WIN_NO_LSA";
    if (!comm->cards[comm->rank].lsa)
        return "GINSHMEM_DISABLE_LSA=1";
    if (!comm->cards[world].lsa)
        return "GINSHMEM_DISABLE_LSA=1 there";
    if (comm->shm->lsa_of[world] < 0)
        return "mapping its memory was tried and not proven";
    return "memory of another process that is not in the heap";
}

static const char *why_no_cma(const gin_comm_t *comm, const struct gi_window *p, int world)
{
    if (gi_is_elsewhere(comm, world))
        return "another host";
    if (p->reg->addr == NULL)
        return "this serves memory outside the heap";
    if (comm->env.disable_cma)
        return "GINSHMEM_DISABLE_CMA=1";
    return comm->shm->cma_reason[0] != 0 ? comm->shm->cma_reason : "its probe failed";
}

static gin_path_t refuse(const gin_comm_t *comm, const struct gin_i_window *w,
                         const struct gi_window *p, int world)
{
    gi_fail(GIN_ENOTSUP,
            "rank %d on host %s cannot be reached in window %#llx: not by load and store (%s), not "
            "by process_vm_readv/writev (%s), not by the network (%s)",
            world, comm->cards[world].host_id, (unsigned long long)w->handle,
            why_no_lsa(comm, w, world), why_no_cma(comm, p, world),
            comm->net != NULL ? "its registration failed" : gi_net_why(comm));
    return GIN_PATH_NONE;
}

/* Where my GPU has its part of GPU memory, 0: it does not reach it. */
static uint64_t place_on_gpu(const gin_comm_t *comm, const struct gin_i_window *w,
                             const struct gi_window *p, int lsa)
{
    if (lsa < 0 || (w->flags & GIN_WIN_NO_LSA))
        return 0;
    if (p->reg->gpu)
        return p->peers[lsa];
    return comm->cuda->map->reach[lsa] ? w->lsa_base + (uint64_t)lsa * w->lsa_stride : 0;
}

uint64_t gi_window_on_gpu(const gin_comm_t *comm, const struct gin_i_window *w, int lsa)
{
    return place_on_gpu(comm, w, gi_window_private(&comm->windows->table, gi_window_id(w->handle)),
                        lsa);
}

/* GPU memory: what a kernel of mine reaches. */
static gin_path_t reach_cuda(const gin_comm_t *comm, const struct gin_i_window *w,
                             const struct gi_window *p, int world, uint64_t off, void **addr)
{
    const struct gi_cuda *c = comm->cuda;
    int lsa = comm->shm->lsa_of[world];
    uint64_t base = place_on_gpu(comm, w, p, lsa);
    if (base != 0) {
        *addr = (void *)(uintptr_t)(base + off);
        return GIN_PATH_LSA;
    }
    if (gi_net_has(comm, p) && c->devices[world] >= 0)
        return GIN_PATH_NET;
    gi_fail(GIN_ENOTSUP, "rank %d's GPU memory in window %#llx cannot be reached: %s", world,
            (unsigned long long)w->handle,
            w->flags & GIN_WIN_NO_LSA      ? "the window is GIN_WIN_NO_LSA"
            : c->gpu == NULL               ? "this rank has no GPU"
            : c->devices[world] < 0        ? "that rank has no GPU"
            : gi_is_elsewhere(comm, world) ? "another host, and the network does not reach it"
            : lsa < 0                      ? "it is not load/store accessible"
            : p->reg->parts != NULL && p->reg->parts->why[0] != 0 ? p->reg->parts->why
            : c->map->refused[0] != 0                             ? c->map->refused
                                                                  : "its mapping was not proven");
    return GIN_PATH_NONE;
}

gin_path_t gi_window_reach(gin_comm_t *comm, const struct gin_i_window *w, int world, uint64_t off,
                           void **addr, pid_t *pid)
{
    const struct gi_window *p = gi_window_private(&comm->windows->table, gi_window_id(w->handle));
    const struct gi_shm *shm = comm->shm;
    int lsa = shm->lsa_of[world];

    if (world == comm->rank) {
        *addr = (void *)(uintptr_t)(w->local + off);
        return GIN_PATH_SELF;
    }
    if (w->kind == GIN_KIND_CUDA)
        return reach_cuda(comm, w, p, world, off, addr);
    if (lsa >= 0 && p->reg->heap && !(w->flags & GIN_WIN_NO_LSA)) {
        uint64_t slot = (uint64_t)(uintptr_t)comm->slots + (uint64_t)lsa * comm->stride;
        *addr = (void *)(uintptr_t)(slot + GI_CONTROL + p->off + off);
        return GIN_PATH_LSA;
    }
    if (p->reg->addr == NULL)
        return gi_net_has(comm, p) ? GIN_PATH_NET : refuse(comm, w, p, world);
    *addr = (void *)(uintptr_t)(p->reg->addr[world] + p->off + off);
    if (lsa >= 0 && comm->cards[world].process == comm->cards[comm->rank].process &&
        !(w->flags & GIN_WIN_NO_LSA))
        return GIN_PATH_LSA;
    if (shm->cma[world] && !gi_is_elsewhere(comm, world)) {
        *pid = comm->cards[world].pid;
        return GIN_PATH_CMA;
    }
    if (gi_net_has(comm, p))
        return GIN_PATH_NET;
    return refuse(comm, w, p, world);
}

bool gi_window_aligned_at(const gin_comm_t *comm, const struct gin_i_window *w, int world,
                          uint64_t off, uint32_t bytes)
{
    const struct gi_window *p = gi_window_private(&comm->windows->table, gi_window_id(w->handle));
    uint64_t at = p->reg->addr != NULL ? p->reg->addr[world] + p->off : w->local;
    return ((at + off) & (bytes - 1)) == 0;
}

gin_path_t gi_window_reach_net(gin_comm_t *comm, const struct gin_i_window *w, int world)
{
    const struct gi_window *p = gi_window_private(&comm->windows->table, gi_window_id(w->handle));
    if (gi_net_has(comm, p))
        return GIN_PATH_NET;
    gi_fail(GIN_ENOTSUP, "rank %d cannot be reached by the network in window %#llx: %s", world,
            (unsigned long long)w->handle,
            comm->net != NULL ? "its registration failed" : gi_net_why(comm));
    return GIN_PATH_NONE;
}

gin_path_t gin_window_path(gin_comm_t *comm, gin_window_t win, int rank)
{
    static const char call[] = "gin_window_path";
    void *addr;
    pid_t pid;
    if (gi_comm_enter(comm, call) != GIN_OK)
        return GIN_PATH_NONE;
    const struct gin_i_window *w = gi_window_find(comm, win);
    if (w == NULL) {
        gi_fail(GIN_ESTATE, "%s: window %#llx is not live in this communicator", call,
                (unsigned long long)win.w);
        return GIN_PATH_NONE;
    }
    if (rank < 0 || rank >= comm->size) {
        gi_fail(GIN_ERANGE, "%s: rank %d; the ranks are 0 .. %d", call, rank, comm->size - 1);
        return GIN_PATH_NONE;
    }
    return gi_window_reach(comm, w, rank, 0, &addr, &pid);
}
