/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host threads' operations on windows in GPU memory. A rank with a GPU copies with its own copy
 * engine what that GPU reaches, and waits for it; else the engine of the memory's owner is asked,
 * piece by piece. Words are updated by their one applier.
 */
#include <inttypes.h>

#include "cuda_up.h"
#include "ops.h"
#include "window_impl.h"
#include <ginshmem/impl/desc.h>

static int no_gpu(int world)
{
    return gi_fail(GIN_ENOTSUP, "rank %d has no GPU, so there is no such memory", world);
}

int gi_op_gpu_find(gin_comm_t *comm, const struct gin_i_window *w, int world, uint64_t off,
                   struct gi_gpu_spot *p)
{
    const struct gi_cuda *c = comm->cuda;
    void *addr = NULL;
    pid_t pid;
    *p = (struct gi_gpu_spot){.w = w, .world = world, .off = off};
    if (c->devices[world] < 0)
        return no_gpu(world);
    if (c->gpu != NULL && (world == comm->rank ||
                           gi_window_reach(comm, w, world, off, &addr, &pid) == GIN_PATH_LSA)) {
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

int gi_op_gpu_word_find(gin_comm_t *comm, const struct gin_i_window *w, int world, uint64_t off,
                        uint32_t bytes, enum gin_i_amo_op op, struct gi_gpu_spot *p)
{
    *p = (struct gi_gpu_spot){.w = w, .world = world, .off = off};
    if (((w->local + off) & (bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "the word at offset %" PRIu64 " is not %" PRIu32 "-byte aligned",
                       off, bytes);
    if (comm->cuda->devices[world] < 0)
        return no_gpu(world);
    if (gi_words_by_engine(comm, w)) {
        p->ask = true;
        return gi_ask_can(comm, world);
    }
    if (op != GIN_I_AMO_SET && op != GIN_I_AMO_FETCH)
        return gi_fail(
            GIN_ENOTSUP,
            "words of GPU memory are updated by the GPUs' own atomics here, beside which "
            "host threads can only set and fetch them; use a slot signal, or a word of "
            "the host heap");
    return gi_op_gpu_find(comm, w, world, off, p);
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
