/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations that inlined code could not do at once: in checked mode, on windows that are
 * not at one stride, and to be refused. A word of a host window has one applier, the processors of
 * its host, so any rank that maps it may apply.
 */
#include <inttypes.h>
#include <string.h>

#include "base/amo.h"
#include "net_ops.h"
#include "ops.h"

/* As the program called them, by width. */
#define NAMES(width)                                                                      \
    {                                                                                     \
        [GIN_I_AMO_SET] = "gin_amo_set" width, [GIN_I_AMO_ADD] = "gin_amo_add" width,     \
        [GIN_I_AMO_AND] = "gin_amo_and" width, [GIN_I_AMO_OR] = "gin_amo_or" width,       \
        [GIN_I_AMO_XOR] = "gin_amo_xor" width, [GIN_I_AMO_FETCH] = "gin_amo_fetch" width, \
        [GIN_I_AMO_FETCH_ADD] = "gin_amo_fetch_add" width,                                \
        [GIN_I_AMO_FETCH_AND] = "gin_amo_fetch_and" width,                                \
        [GIN_I_AMO_FETCH_OR] = "gin_amo_fetch_or" width,                                  \
        [GIN_I_AMO_FETCH_XOR] = "gin_amo_fetch_xor" width,                                \
        [GIN_I_AMO_SWAP] = "gin_amo_swap" width, [GIN_I_AMO_CAS] = "gin_amo_cas" width,   \
    }
static const char *const names[2][GIN_I_AMO_CAS + 1] = {NAMES("32"), NAMES("")};

static const char *name_of(enum gin_i_amo_op op, uint32_t bytes)
{
    return names[bytes == 8][op];
}

/* This process's address of the word, or its place in GPU memory; neither: the rank's engine
 * applies it, by the network; or why nothing does. */
static int find_word(const gin_t *g, gin_team_t team, int peer, gin_at_t at, enum gin_i_amo_op op,
                     uint32_t bytes, void **word, struct gi_gpu_spot *gpu, int *rank)
{
    gin_comm_t *comm = gi_comm_of(g);
    const struct gin_i_window *w;
    pid_t pid;
    int world = *rank = gi_team_world(comm, team, peer);
    if (world < 0)
        return gi_fail_context("%s", name_of(op, bytes));
    int st = gi_op_window_any(comm, name_of(op, bytes), "the word", at, bytes,
                              op != GIN_I_AMO_FETCH && world != comm->rank, &w);
    if (st != GIN_OK)
        return st;
    st = gi_op_live(g, name_of(op, bytes), w, at.off, bytes);
    if (st != GIN_OK)
        return st;
    if (w->kind == GIN_KIND_CUDA) {
        st = gi_op_gpu_word_find(g, w, world, at.off, bytes, op, false, gpu);
        if (gpu->net)
            gpu->w = NULL;
        return st == GIN_OK ? st : gi_fail_context("%s", name_of(op, bytes));
    }
    gin_path_t path = gi_window_reach(comm, w, world, at.off, word, &pid);
    if ((path == GIN_PATH_LSA && g->lsa_of[world] < 0) ||
        (path == GIN_PATH_CMA && comm->net != NULL))
        path = gi_window_reach_net(comm, w, world);
    if (path == GIN_PATH_NONE)
        return gi_fail_context("%s", name_of(op, bytes));
    if (path == GIN_PATH_NET) /* my part tells the mistakes that are everybody's */
        *word = (void *)(uintptr_t)(w->local + at.off);
    if (((uintptr_t)*word & (bytes - 1)) != 0 ||
        (path == GIN_PATH_NET && !gi_window_aligned_at(comm, w, world, at.off, bytes)))
        return gi_fail(GIN_EINVAL,
                       "%s: the word at offset %" PRIu64 " of window %#" PRIx64 " is not %" PRIu32
                       "-byte aligned at rank %d",
                       name_of(op, bytes), at.off, at.win.w, bytes, world);
    if (path == GIN_PATH_CMA)
        return gi_fail(GIN_ENOTSUP,
                       "%s: rank %d's part of window %#" PRIx64
                       " is user memory of another process, which is copied by process_vm calls "
                       "only; atomics on it need a network, and there is none. Put the word into "
                       "the heap",
                       name_of(op, bytes), world, at.win.w);
    if (path == GIN_PATH_NET)
        *word = NULL;
    return GIN_OK;
}

int gin_i_amo(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
              enum gin_i_amo_op op, uint32_t bytes, uint64_t value, uint64_t expected,
              uint64_t *old)
{
    void *word = NULL;
    struct gi_gpu_spot gpu = {.w = NULL};
    int world;
    if ((unsigned)op > GIN_I_AMO_CAS || (bytes != 4 && bytes != 8))
        return gi_fail(GIN_EINVAL, "atomic operation %u on %" PRIu32 " bytes is none", (unsigned)op,
                       bytes);
    int st = gi_op_enter(g, grp, 0, name_of(op, bytes));
    if (st == GIN_OK && op >= GIN_I_AMO_FETCH && old == NULL)
        st = gi_fail(GIN_EINVAL, "%s: old is NULL", name_of(op, bytes));
    if (st == GIN_OK)
        st = find_word(g, team, peer, at, op, bytes, &word, &gpu, &world);
    if (st != GIN_OK)
        return st;
    if (word == NULL && gpu.w == NULL) {
        struct gi_core_amo a = {
            .window = gin_i_desc_window(at.win),
            .off = at.off,
            .op = op,
            .bytes = bytes,
            .value = value,
            .expected = expected,
            .old = op >= GIN_I_AMO_FETCH ? old : NULL,
        };
        return gi_net_amo(g, world, &a, name_of(op, bytes));
    }
    uint64_t was;
    if (gpu.w == NULL)
        was = gi_amo_apply(word, op, bytes, value, expected);
    else if (gi_op_gpu_word(gi_comm_of(g), &gpu, op, bytes, value, expected, &was) != GIN_OK)
        return gi_fail_context("%s", name_of(op, bytes));
    if (op >= GIN_I_AMO_FETCH)
        *old = was;
    return GIN_OK;
}
