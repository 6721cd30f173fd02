/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From "somebody wants GPU memory" to a GPU heap. Looking for a GPU is local and late, so that the
 * program can ask for its node team, choose a device, and only then allocate.
 */
#include "cuda_up.h"

#include <stdlib.h>
#include <string.h>
#include "mirror.h"
#include "net_up.h"

typedef unsigned long long ull;

/* What a rank found. */
struct finding {
    int32_t status;
    int32_t device; /* -1: no GPU */
    uint64_t granule;
    uint64_t fabric; /* fabric handles are wanted, and can be had if there is a GPU */
    char text[184];  /* the failure, or why there is none */
};

static void look(gin_comm_t *comm, struct gi_cuda *c, struct finding *f)
{
    memset(f, 0, sizeof(*f));
    f->device = -1;
    comm->cuda_why[0] = 0;
    f->status = gi_gpu_open(comm->env.test_libcuda, comm->node.rank, &c->gpu, comm->cuda_why,
                            sizeof(comm->cuda_why));
    if (f->status != GIN_OK) {
        snprintf(f->text, sizeof(f->text), "%s", gin_last_error());
    } else if (c->gpu == NULL) {
        snprintf(f->text, sizeof(f->text), "%s", comm->cuda_why);
    } else {
        f->device = c->gpu->device;
        f->granule = c->gpu->granule;
    }
    f->fabric = comm->env.cuda_fabric &&
                (c->gpu == NULL || gi_gpu_fabric_can(c->gpu, c->fabric_why, sizeof(c->fabric_why)));
}

/* Everybody's findings: a failure is one for all; no GPU anywhere is one too. */
static int judge(const gin_comm_t *comm, struct gi_cuda *c, const struct finding *all,
                 uint64_t *granule)
{
    int none = -1;
    *granule = 1;
    c->fabric = true;
    for (int r = 0; r < comm->size; r++) {
        const struct finding *f = &all[r];
        if (f->status != GIN_OK)
            return r == comm->rank ? gi_fail(f->status, "%s", f->text)
                                   : gi_fail(f->status, "rank %d: %s", r, f->text);
        c->devices[r] = f->device;
        c->n_gpus += f->device >= 0;
        if (!f->fabric && comm->env.cuda_fabric && c->fabric_why[0] == 0)
            snprintf(c->fabric_why, sizeof(c->fabric_why), "rank %d has or wants none", r);
        c->fabric &= f->fabric != 0;
        none = f->device < 0 && none < 0 ? r : none;
        *granule = f->granule > *granule ? f->granule : *granule;
    }
    if (c->n_gpus == 0)
        return gi_fail(GIN_ENOTSUP, "kind CUDA: no rank has a GPU; rank %d: %s", none,
                       all[none].text);
    for (int r = 0; r < comm->size; r++)
        if (all[r].device >= 0 && *granule % all[r].granule != 0)
            return gi_fail(GIN_ENOTSUP,
                           "the GPU of rank %d has memory in pieces of %llu bytes, another one of "
                           "%llu",
                           r, (ull)all[r].granule, (ull)*granule);
    return GIN_OK;
}

static int find_gpus(gin_comm_t *comm, struct gi_cuda *c, uint64_t *granule)
{
    struct finding mine, *all = malloc((size_t)comm->size * sizeof(*all));
    int st = gi_agree_on(comm, GI_AGREE_CUDA, comm->env.cuda_heap_size, comm->env.cuda_heap_max,
                         comm->env.heap_chunk,
                         all != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory to find GPUs"));
    if (st == GIN_OK) {
        look(comm, c, &mine);
        st = gi_comm_gather(comm, &mine, all, sizeof(mine));
    }
    if (st == GIN_OK)
        st = judge(comm, c, all, granule);
    if (c->gpu != NULL)
        c->gpu->fabric = c->fabric;
    free(all);
    return st;
}

/* ---- the heap ---- */

static int grow(void *arg, uint64_t from, uint64_t to)
{
    struct gi_cuda *c = arg;
    (void)from;
    gi_cuda_map_grow(c->map, to); /* made when it is shared: one failure, one text for all */
    return GIN_OK;
}

static void shrink(void *arg, uint64_t to)
{
    struct gi_cuda *c = arg;
    gi_cuda_map_shrink(c->map, to);
}

static int share(void *arg)
{
    struct gi_cuda *c = arg;
    return gi_cuda_map_share(c->map, gi_deadline_in(c->comm->env.coll_timeout));
}

static int zero(void *arg, uint64_t off, uint64_t bytes)
{
    struct gi_cuda *c = arg;
    return c->gpu == NULL ? GIN_OK : gi_gpu_zero(c->gpu, gi_cuda_heap_base(c) + off, bytes);
}

static int copy(void *arg, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct gi_cuda *c = arg;
    uint64_t base = gi_cuda_heap_base(c);
    return c->gpu == NULL ? GIN_OK : gi_gpu_copy(c->gpu, base + to, base + from, bytes);
}

static const struct gi_segment_ops segment_ops = {grow, shrink, share, zero, copy};

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    return gi_comm_gather(arg, in, out, bytes);
}

static void describe(struct gi_cuda *c, const char *why)
{
    if (c->gpu != NULL)
        snprintf(c->segment.backing, sizeof(c->segment.backing),
                 "%llu KiB pieces of GPU %d (%.40s)", (ull)(c->segment.granule >> 10),
                 c->gpu->device, c->gpu->name);
    else
        snprintf(c->segment.backing, sizeof(c->segment.backing), "no memory here: %.70s", why);
}

/* The whole room of addresses, and the first chunk in it. */
static int map_open(gin_comm_t *comm, struct gi_cuda *c, uint64_t granule)
{
    uint64_t total = gi_segment_total(GI_CONTROL_CUDA, comm->env.cuda_heap_size, granule);
    uint64_t most = comm->env.cuda_heap_max < comm->env.cuda_heap_size ? comm->env.cuda_heap_size
                                                                       : comm->env.cuda_heap_max;
    struct gi_cuda_map_config m = {.shm = {.rank = comm->rank,
                                           .size = comm->size,
                                           .ranks = comm->shm_ranks,
                                           .allgather = gather,
                                           .arg = comm},
                                   .team = comm->shm,
                                   .gpu = c->gpu,
                                   .devices = c->devices,
                                   .fabric = c->fabric,
                                   .stride = GI_CONTROL_CUDA + most,
                                   .min_stride = total,
                                   .granule = granule};
    int st = gi_cuda_map_open(&m, &c->map);
    if (st != GIN_OK)
        return st;
    c->segment = (struct gi_segment){.ops = &segment_ops,
                                     .arg = c,
                                     .fd = -1,
                                     .control = GI_CONTROL_CUDA,
                                     .bytes = total - GI_CONTROL_CUDA,
                                     .granule = granule};
    describe(c, comm->cuda_why);
    gi_cuda_map_grow(c->map, total);
    return gi_cuda_map_share(c->map, gi_deadline_in(comm->env.init_timeout));
}

static int heap_open(gin_comm_t *comm, struct gi_cuda *c)
{
    uint64_t most = c->map->stride - GI_CONTROL_CUDA;
    struct gi_heap_config h = {.segment = &c->segment,
                               .align = c->map->align,
                               .max =
                                   comm->env.cuda_heap_max < most ? comm->env.cuda_heap_max : most,
                               .chunk = comm->env.heap_chunk,
                               .kind = GIN_KIND_CUDA,
                               .size = comm->size,
                               .calls = &comm->calls,
                               .exchange = gi_exchange,
                               .arg = comm};
    return gi_heap_create(&h, &c->heap);
}

static void free_cuda(struct gi_cuda *c)
{
    gi_heap_destroy(c->heap);
    gi_cuda_map_close(c->map);
    gi_gpu_close(c->gpu);
    free(c->devices);
    free(c);
}

int gi_cuda_up(gin_comm_t *comm)
{
    uint64_t granule = 0;
    if (comm->cuda != NULL)
        return GIN_OK;
    struct gi_cuda *c = calloc(1, sizeof(*c));
    if (c != NULL)
        c->devices = malloc((size_t)comm->size * sizeof(*c->devices));
    if (c == NULL || c->devices == NULL) {
        free(c);
        return gi_agree_on(comm, GI_AGREE_CUDA, comm->env.cuda_heap_size, comm->env.cuda_heap_max,
                           comm->env.heap_chunk, gi_fail(GIN_ENOMEM, "no memory to find GPUs"));
    }
    c->comm = comm;
    int st = find_gpus(comm, c, &granule);
    if (st == GIN_OK)
        st = map_open(comm, c, granule);
    if (st == GIN_OK) {
        st = heap_open(comm, c);
        st = gi_agree_on(comm, GI_AGREE_CUDA, c->segment.bytes, c->map->stride, granule, st);
    }
    if (st != GIN_OK) {
        free_cuda(c);
        return st;
    }
    /* other threads may look up pointers at any time: from here on in this heap, too */
    __atomic_store_n(&comm->cuda, c, __ATOMIC_RELEASE);
    gi_window_cuda_heap(comm, c->segment.bytes);
    gi_net_stage_up(comm);
    gi_info("cuda", "GPU heap up: %llu bytes, %s; %d of %d ranks have a GPU",
            (ull)gi_heap_size(c->heap), c->segment.backing, c->n_gpus, comm->size);
    return GIN_OK;
}

void gi_cuda_down(gin_comm_t *comm)
{
    struct gi_cuda *c = comm->cuda;
    if (c == NULL)
        return;
    gi_mirror_down(comm);
    gi_window_cuda_heap(comm, 0);
    comm->cuda = NULL;
    free_cuda(c);
}
