/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernels see of collectives: workspaces in the symmetric GPU block, words for messages that
 * come through engines in the host's, and this rank's private side in GPU memory.
 */
#include "colls.h"
#include "devcomm_cuda.h"
#include "net_ops.h"

static uint64_t round_up(uint64_t n)
{
    return (n + 63) & ~(uint64_t)63;
}

static bool are_there(const struct gi_devcomm *d)
{
    return d->kernels && d->reqs.collectives != 0;
}

/* Sizes, of what is the same for all ranks. */
static struct gin_i_colls plan(const struct gi_devcomm *d)
{
    uint64_t n = (uint64_t)d->comm->size, lines = n * GIN_I_COLL_SLOTS;
    struct gin_i_colls a = {.count = d->reqs.collectives, .n = (uint32_t)n};
    a.slot = gi_colls_slot(d->comm, &d->reqs);
    a.taken_at = lines * sizeof(struct gin_i_coll_line);
    a.slots_at = a.taken_at + round_up(n * sizeof(uint64_t));
    a.each = a.slots_at + lines * a.slot;
    return a;
}

uint64_t gi_kernel_colls_bytes(const struct gi_devcomm *d)
{
    return are_there(d) && d->comm->size > 1 ? d->reqs.collectives * plan(d).each : 0;
}

uint64_t gi_kernel_colls_words(const struct gi_devcomm *d)
{
    if (!d->kernels || d->comm->size == 1)
        return 0;
    uint64_t pairs = (uint64_t)d->reqs.collectives * (uint64_t)d->comm->size;
    return round_up(pairs * GIN_I_COLL_WORDS * sizeof(uint64_t));
}

uint64_t gi_kernel_colls_room(const struct gi_devcomm *d)
{
    uint64_t n = (uint64_t)d->comm->size, count = d->reqs.collectives;
    if (!are_there(d))
        return 0;
    return GI_KERNEL_ROOM(sizeof(struct gin_i_colls)) +
           GI_KERNEL_ROOM(count * sizeof(struct gin_i_coll)) +
           GI_KERNEL_ROOM(count * n * sizeof(struct gin_i_coll_link)) +
           GI_KERNEL_ROOM(count * 2 * n * sizeof(uint64_t)) + GI_KERNEL_ROOM(n * sizeof(uint32_t));
}

/* Mine in host memory, at the GPU's address; NULL where kernels do not see it. */
static const uint64_t *words_of(const struct gi_devcomm *d, const struct gi_kernel_side *k)
{
    uint64_t end = GI_CONTROL + d->words_off + gi_kernel_colls_words(d);
    char *mine = (char *)gi_control(d->comm, d->comm->shm->lsa_rank) + GI_CONTROL;
    if (k->n_rings == 0 || d->host_reach < end)
        return NULL;
    return (const uint64_t *)(const void *)(mine + d->words_off);
}

uint64_t gi_kernel_colls_fill(const struct gi_devcomm *d, struct gi_kernel_side *k)
{
    if (!are_there(d))
        return 0;
    uint64_t self, index, links, from, kernels, n = (uint64_t)d->comm->size;
    uint32_t count = d->reqs.collectives;
    struct gin_i_colls *a = gi_kernel_take(k, sizeof(*a), &self);
    struct gin_i_coll *c = gi_kernel_take(k, count * sizeof(*c), &index);
    gi_kernel_take(k, count * n * sizeof(struct gin_i_coll_link), &links);
    gi_kernel_take(k, count * 2 * n * sizeof(uint64_t), &from);
    uint32_t *is_kernel = gi_kernel_take(k, n * sizeof(uint32_t), &kernels);
    *a = plan(d);
    a->words_win = gin_i_desc_window(gin_heap_window(d->comm, GIN_KIND_HOST));
    a->off = d->cuda_off + d->cuda_colls;
    a->words = words_of(d, k);
    a->words_off = d->words_off;
    a->timeout_ns = d->reqs.collective_timeout_ns != 0 ? d->reqs.collective_timeout_ns
                                                       : d->comm->env.coll_timeout;
    a->index = (struct gin_i_coll *)(uintptr_t)index;
    a->kernels = (const uint32_t *)(uintptr_t)kernels;
    for (uint32_t i = 0; i < count; i++) {
        c[i].links = (struct gin_i_coll_link *)(uintptr_t)links + i * n;
        c[i].from = (uint64_t *)(uintptr_t)from + i * 2 * n;
    }
    for (uint64_t r = 0; r < n; r++)
        is_kernel[r] = d->device_of[r] == GIN_DEVICE_CUDA;
    return self;
}
