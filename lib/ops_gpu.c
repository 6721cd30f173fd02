/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host threads' operations on windows in GPU memory. A rank with a GPU copies with its own copy
 * engine what that GPU reaches, and waits for it; else the engine of the memory's owner is asked,
 * piece by piece. Words are updated by their one applier.
 */
#include <inttypes.h>

#include "cuda_up.h"
#include "devcomm.h"
#include "net_up.h"
#include "ops.h"
#include "window_impl.h"
#include <ginshmem/impl/desc.h>

static int no_gpu(int world)
{
    return gi_fail(GIN_ENOTSUP, "rank %d has no GPU, so there is no such memory", world);
}

/* Can the network carry it, and must it, unless it is `near`? */
static bool takes_net(const gin_t *g, const struct gin_i_window *w, int world, bool nic_only,
                      bool near)
{
    gin_comm_t *comm = gi_comm_of(g);
    const struct gi_window *p = gi_window_private(&comm->windows->table, gi_window_id(w->handle));
    if (gi_net_of(comm) == NULL || !gi_net_has(comm, p))
        return false;
    return nic_only || (world != comm->rank && g->lsa_of[world] < 0) || !near;
}

int gi_op_gpu_find(const gin_t *g, const struct gin_i_window *w, int world, uint64_t off,
                   bool nic_only, struct gi_gpu_spot *p)
{
    gin_comm_t *comm = gi_comm_of(g);
    const struct gi_cuda *c = comm->cuda;
    void *addr = NULL;
    pid_t pid;
    *p = (struct gi_gpu_spot){.w = w, .world = world, .off = off};
    if (c->devices[world] < 0)
        return no_gpu(world);
    bool mine =
        c->gpu != NULL &&
        (world == comm->rank || gi_window_reach(comm, w, world, off, &addr, &pid) == GIN_PATH_LSA);
    p->net = takes_net(g, w, world, nic_only, mine || gi_ask_is_open(comm, world));
    if (p->net)
        return GIN_OK;
    if (mine) {
        p->addr = world == comm->rank ? w->local + off : (uint64_t)(uintptr_t)addr;
        return GIN_OK;
    }
    p->ask = true;
    return gi_ask_can(comm, world);
}

static int ask_pieces(gin_comm_t *comm, const struct gi_gpu_spot *p, char *local, uint64_t bytes,
                      bool put)
{
    struct gi_ask a = {.op = put ? GI_ASK_PUT : GI_ASK_GET,
                       .win = gin_i_desc_window((gin_window_t){p->w->handle})};
    int st = GIN_OK;
    for (uint64_t at = 0; st == GIN_OK && at < bytes; at += a.bytes) {
        a.off = p->off + at;
        a.bytes = bytes - at < GI_ASK_BYTES ? (uint32_t)(bytes - at) : GI_ASK_BYTES;
        st = gi_ask_and_wait(comm, p->world, &a, put ? local + at : NULL, put ? NULL : local + at,
                             NULL);
    }
    return st;
}

int gi_op_gpu_move(gin_comm_t *comm, const struct gi_gpu_spot *remote, void *remote_host,
                   const struct gi_gpu_spot *mine, void *local, uint64_t bytes, bool put)
{
    uint64_t far = remote != NULL ? remote->addr : (uint64_t)(uintptr_t)remote_host;
    uint64_t near = mine != NULL ? mine->addr : (uint64_t)(uintptr_t)local;
    struct gi_gpu *gpu = comm->cuda->gpu;
    if (remote == NULL || !remote->ask)
        return put ? gi_gpu_copy(gpu, far, near, bytes) : gi_gpu_copy(gpu, near, far, bytes);
    if (mine != NULL)
        return gi_fail(GIN_ENOTSUP,
                       "rank %d's GPU memory is reached by that rank's engine only, which copies "
                       "to and from host memory",
                       remote->world);
    return ask_pieces(comm, remote, local, bytes, put);
}

int gi_op_gpu_word_find(const gin_t *g, const struct gin_i_window *w, int world, uint64_t off,
                        uint32_t bytes, enum gin_i_amo_op op, bool nic_only, struct gi_gpu_spot *p)
{
    gin_comm_t *comm = gi_comm_of(g);
    bool by_engine = gi_words_by_engine(comm, w);
    *p = (struct gi_gpu_spot){.w = w, .world = world, .off = off};
    if (((w->local + off) & (bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "the word at offset %" PRIu64 " is not %" PRIu32 "-byte aligned",
                       off, bytes);
    if (comm->cuda->devices[world] < 0)
        return no_gpu(world);
    if (!by_engine && op != GIN_I_AMO_SET && op != GIN_I_AMO_FETCH)
        return gi_fail(
            GIN_ENOTSUP,
            "words of GPU memory are updated by the GPUs' own atomics here, beside which "
            "host threads can only set and fetch them; use a slot signal, a word of "
            "the host heap, or a window that is GIN_WIN_NO_LSA");
    if (!by_engine)
        return gi_op_gpu_find(g, w, world, off, nic_only, p);
    p->net = takes_net(g, w, world, nic_only, gi_ask_is_open(comm, world));
    p->ask = !p->net;
    return p->net ? GIN_OK : gi_ask_can(comm, world);
}

int gi_op_gpu_word(gin_comm_t *comm, const struct gi_gpu_spot *p, enum gin_i_amo_op op,
                   uint32_t bytes, uint64_t value, uint64_t expected, uint64_t *was)
{
    struct gi_ask a = {.op = (uint32_t)op, .bytes = bytes, .off = p->off, .value = value};
    *was = 0;
    if (!p->ask)
        return op == GIN_I_AMO_SET ? gi_gpu_write(comm->cuda->gpu, p->addr, &value, bytes)
                                   : gi_gpu_read(comm->cuda->gpu, was, p->addr, bytes);
    a.win = gin_i_desc_window((gin_window_t){p->w->handle});
    a.expected = expected;
    return gi_ask_and_wait(comm, p->world, &a, NULL, NULL, was);
}
