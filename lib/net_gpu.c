/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way is tried, not asked for: a piece of GPU memory is registered on every rail, first as a
 * DMA-BUF, then by its pointer. Only a program that uses CUDA when the network comes up has this
 * done, for it takes a CUDA context, and providers that are asked for GPU memory may offer less to
 * hosts; where it was of no use they are opened again without.
 *
 * Registered memory is not taken where it could go wrong: where the provider may call CUDA, which
 * waits for kernels that wait for the provider, unless the user asks for it; and where signals may
 * pass the target's CPU by while its GPU has to be told before it sees what has arrived.
 */
#include "net_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/rdma.h"
#include "cuda_up.h"
#include "net_up.h"

#define TRIAL_OFF   4160u /* neither the first page nor the beginning of one */
#define TRIAL_BYTES 65536u

static const char *const names[] = {"stage", "dmabuf", "hmem"};

static bool wants(const char *wish, enum gi_net_gpu_way way)
{
    return strcmp(wish, names[way]) == 0 || (strcmp(wish, "auto") == 0 && way != GI_NET_GPU_STAGE);
}

/* ---- memory to try with ---- */

struct trial {
    uint64_t addr, object;
};

static int trial_open(struct gi_gpu *gpu, struct trial *t)
{
    int st = gi_gpu_reserve(gpu->granule, gpu->granule, &t->addr);
    if (st != GIN_OK)
        return st;
    st = gi_gpu_object_create(gpu, gpu->granule, &t->object);
    if (st != GIN_OK)
        goto unreserve;
    st = gi_gpu_map(t->addr, gpu->granule, t->object);
    if (st != GIN_OK)
        goto release;
    st = gi_gpu_allow(t->addr, gpu->granule, gpu->device);
    if (st == GIN_OK)
        return GIN_OK;
    gi_gpu_unmap(t->addr, gpu->granule);
release:
    gi_gpu_object_release(t->object);
unreserve:
    gi_gpu_unreserve(t->addr, gpu->granule);
    return st;
}

static void trial_close(struct gi_gpu *gpu, const struct trial *t)
{
    gi_gpu_unmap(t->addr, gpu->granule);
    gi_gpu_object_release(t->object);
    gi_gpu_unreserve(t->addr, gpu->granule);
}

/* ---- trying ---- */

static int describe(struct gi_gpu *gpu, enum gi_net_gpu_way way, uint64_t addr, uint64_t bytes,
                    struct gi_net_memory_desc *m)
{
    *m = (struct gi_net_memory_desc){.kind = GI_NET_DEVICE,
                                     .addr = (void *)(uintptr_t)addr,
                                     .bytes = bytes,
                                     .device = gpu->device,
                                     .fd = -1};
    if (way != GI_NET_GPU_DMABUF)
        return GIN_OK;
    m->kind = GI_NET_DMABUF;
    return gi_gpu_dmabuf(gpu, addr, bytes, &m->fd, &m->fd_off);
}

int gi_net_gpu_describe(const struct gi_net *n, struct gi_gpu *gpu, uint64_t addr, uint64_t bytes,
                        struct gi_net_memory_desc *m)
{
    gi_gpu_sync_memops(gpu, addr);
    return describe(gpu, n->gpu.way, addr, bytes, m);
}

void gi_net_gpu_described(struct gi_net_memory_desc *m)
{
    if (m->kind == GI_NET_DMABUF && m->fd >= 0)
        gi_os_close(m->fd);
    m->fd = -1;
}

static int try_rail(struct gi_net_domain *d, enum gi_net_gpu_way way, struct gi_gpu *gpu,
                    const struct trial *t)
{
    struct gi_net_memory_desc m;
    struct gi_net_mr *mr;
    const struct gi_net_caps *caps = d->ops->caps(d);
    if (way == GI_NET_GPU_HMEM && !caps->mr_hmem)
        return gi_fail(GIN_ENOTSUP, "provider %s has no FI_HMEM here", caps->name);
    int st = describe(gpu, way, t->addr + TRIAL_OFF, TRIAL_BYTES, &m);
    if (st != GIN_OK)
        return st;
    m.remote = true;
    st = d->ops->reg(d, &m, &mr);
    gi_net_gpu_described(&m);
    if (st == GIN_OK)
        d->ops->dereg(d, mr);
    return st;
}

/* Would it be right to use it? */
static int judge(struct gi_net *n, const struct gi_gpu *gpu, enum gi_net_gpu_way way)
{
    enum gi_gpu_order order = gi_gpu_rdma_order(gpu);
    for (uint32_t i = 0; i < n->n_domains; i++) {
        const struct gi_net_caps *caps = n->domains[i]->ops->caps(n->domains[i]);
        if (caps->mr_calls && !n->gpu.forced)
            return gi_fail(GIN_ENOTSUP, "%s may call CUDA, which may wait for kernels", caps->name);
        if (order == GI_GPU_ORDER_FLUSH && gi_core_bypasses(caps))
            return gi_fail(GIN_ENOTSUP,
                           "GPU %d has to be told of what arrives, and %s's signals or completions "
                           "do not wait for that",
                           gpu->device, caps->name);
        if (caps->mr_calls)
            gi_warn("net",
                    "GINSHMEM_GPU_NET=%s: %s may call CUDA, which may wait for kernels that wait "
                    "for the network",
                    names[way], caps->name);
    }
    n->gpu.land = order == GI_GPU_ORDER_FLUSH;
    return order != GI_GPU_ORDER_NONE
               ? GIN_OK
               : gi_fail(GIN_ENOTSUP,
                         "GPU %d may see what arrives later than what tells of it, and has no "
                         "cuFlushGPUDirectRDMAWrites",
                         gpu->device);
}

static int try_way(struct gi_net *n, enum gi_net_gpu_way way, struct gi_gpu *gpu,
                   const struct trial *t)
{
    int st = GIN_OK;
    for (uint32_t i = 0; st == GIN_OK && i < n->n_domains; i++)
        st = try_rail(n->domains[i], way, gpu, t);
    return st == GIN_OK ? judge(n, gpu, way) : st;
}

static void add_reason(struct gi_net_gpu *s, enum gi_net_gpu_way way)
{
    size_t len = strlen(s->why);
    snprintf(s->why + len, sizeof(s->why) - len, "%s%s: %s", len != 0 ? "; " : "", names[way],
             gin_last_error());
}

static int try_ways(struct gi_net *n, struct gi_gpu *gpu)
{
    struct trial t;
    int st = trial_open(gpu, &t);
    if (st != GIN_OK) {
        snprintf(n->gpu.why, sizeof(n->gpu.why), "no memory to try with: %s", gin_last_error());
        return st;
    }
    for (enum gi_net_gpu_way way = GI_NET_GPU_DMABUF; way <= GI_NET_GPU_HMEM; way++) {
        if (!wants(n->comm->env.gpu_net, way))
            continue;
        st = try_way(n, way, gpu, &t);
        if (st == GIN_OK) {
            n->gpu.way = way;
            snprintf(n->gpu.why, sizeof(n->gpu.why), "%s%s%s",
                     way == GI_NET_GPU_DMABUF ? "registered as DMA-BUF" : "registered by FI_HMEM",
                     n->gpu.land ? ", flushed before signals" : "",
                     n->gpu.forced ? ", as GINSHMEM_GPU_NET says" : "");
            break;
        }
        add_reason(&n->gpu, way);
    }
    trial_close(gpu, &t);
    return st;
}

/* The best of the ways that are wanted; where none will do, staging and why. */
static int choose(struct gi_net *n, struct gi_gpu *gpu)
{
    int st = try_ways(n, gpu);
    if (st != GIN_OK && n->gpu.forced)
        return gi_fail(GIN_ENOTSUP, "GINSHMEM_GPU_NET=%s: %s", n->comm->env.gpu_net, n->gpu.why);
    return GIN_OK;
}

/* ---- whose ---- */

/* A GPU to try with; *owned: to be closed. NULL and why: there is none, or none yet. */
static int find_gpu(struct gi_net *n, struct gi_gpu **gpu, bool *owned)
{
    const gin_comm_t *comm = n->comm;
    struct gi_net_gpu *s = &n->gpu;
    const char *driver = comm->env.test_libcuda;
    *gpu = NULL;
    *owned = false;
    if (strcmp(comm->env.gpu_net, names[GI_NET_GPU_STAGE]) == 0 || comm->env.disable_net) {
        snprintf(s->why, sizeof(s->why), "GINSHMEM_GPU_NET=%s", comm->env.gpu_net);
        return GIN_OK;
    }
    if (comm->cuda != NULL) {
        *gpu = comm->cuda->gpu;
        if (*gpu == NULL)
            snprintf(s->why, sizeof(s->why), "this rank has no GPU");
        return GIN_OK;
    }
    if (!s->forced && !gi_gpu_has_context(driver)) {
        snprintf(s->why, sizeof(s->why),
                 "no CUDA context when the network came up: call cudaSetDevice() and cudaFree(0) "
                 "before, or set GINSHMEM_GPU_NET");
        return GIN_OK;
    }
    int st = gi_gpu_open(driver, comm->node.rank, gpu, s->why, sizeof(s->why));
    *owned = st == GIN_OK && *gpu != NULL;
    return st;
}

static int open_with(struct gi_net *n, struct gi_gpu *gpu)
{
    struct gi_net_gpu *s = &n->gpu;
    s->asked = gpu != NULL;
    int st = gi_net_rails_open(n);
    if (st != GIN_OK || gpu == NULL)
        return st;
    st = choose(n, gpu);
    if (st != GIN_OK) {
        gi_net_rails_close(n);
        return st;
    }
    if (s->way != GI_NET_GPU_STAGE)
        return GIN_OK;
    bool offered = false;
    for (uint32_t i = 0; i < n->n_domains; i++) {
        const struct gi_net_caps *caps = n->domains[i]->ops->caps(n->domains[i]);
        offered = offered || caps->mr_hmem || caps->mr_dmabuf;
    }
    s->asked = false;
    if (!offered)
        return GIN_OK;
    gi_net_rails_close(n); /* it may have cost the hosts something */
    return gi_net_rails_open(n);
}

int gi_net_gpu_rails_open(struct gi_net *n)
{
    struct gi_gpu *gpu;
    bool owned;
    const char *wish = n->comm->env.gpu_net;
    n->gpu = (struct gi_net_gpu){.forced = wants(wish, GI_NET_GPU_DMABUF) !=
                                           wants(wish, GI_NET_GPU_HMEM)};
    int st = find_gpu(n, &gpu, &owned);
    if (st != GIN_OK && n->gpu.forced)
        return gi_fail(st, "GINSHMEM_GPU_NET=%s: %s", wish, gin_last_error());
    if (st != GIN_OK)
        snprintf(n->gpu.why, sizeof(n->gpu.why), "%s", gin_last_error());
    st = open_with(n, gpu);
    if (owned)
        gi_gpu_close(gpu);
    return st;
}

int gi_net_gpu_meet(struct gi_net *n)
{
    gin_comm_t *comm = n->comm;
    uint32_t mine = comm->cuda->gpu != NULL && n->gpu.way != GI_NET_GPU_STAGE;
    uint32_t *all = calloc((size_t)comm->size, sizeof(*all));
    if (comm->cuda->gpu != NULL)
        gi_info("net", "GPU memory: %s%s", mine ? "" : "staged through the host: ", n->gpu.why);
    if (n->cuda_heap.chunks == NULL)
        n->cuda_heap.chunks = calloc(GI_NET_CHUNKS, sizeof(*n->cuda_heap.chunks));
    int st = all != NULL && n->cuda_heap.chunks != NULL
                 ? GIN_OK
                 : gi_fail(GIN_ENOMEM, "no memory for the GPU heap's chunks");
    st = gi_agree_on(comm, GI_AGREE_REGION, 0, 0, 0, st);
    if (st == GIN_OK)
        st = gi_comm_gather(comm, &mine, all, sizeof(mine));
    n->gpu.direct = false;
    for (int r = 0; st == GIN_OK && r < comm->size; r++)
        n->gpu.direct = n->gpu.direct || all[r] != 0;
    free(all);
    return st;
}

int gi_net_gpu_landed(void *arg)
{
    const struct gi_net *n = arg;
    return gi_gpu_rdma_flush(n->comm->cuda->gpu);
}
