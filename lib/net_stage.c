/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core needs to stage GPU memory: pinned slabs, and copies to and from them. A copy goes
 * out by one of a few streams and is followed by a stamp, a word of pinned memory that says how
 * many copies of its stream have arrived; so to look after a copy is to read a word. Nothing here
 * waits: who finds a stream in use comes again.
 */
#include <stdlib.h>

#include "cuda/gdr.h"
#include "cuda/rdma.h"
#include "cuda_up.h"
#include "net_up.h"
#include "window_impl.h"

#define STREAMS  4u
#define PATIENCE 100000u /* looks at a stamp between two at the GPU */
#define STAMPS   4096u   /* bytes for them behind the slabs */

/* Most bytes that the CPU copies by GDRCopy, to the GPU and from there: reads take long. */
#define CPU_WRITES 8192u
#define CPU_READS  256u
#define AT_ONCE    UINT64_MAX /* ticket of such a copy */

struct stream {
    _Alignas(64) atomic_flag used;
    void *stream;
    uint64_t issued;
};

struct gi_net_stage {
    struct stream stream[STREAMS];
    gin_comm_t *comm;
    struct gi_gpu *gpu; /* NULL: this rank has none */
    void *memory;       /* slabs, then a line of stamps per stream */
    uint64_t *stamps, stamps_addr;
    _Atomic uint32_t next, looks;
    struct gi_gdr *gdr;   /* NULL: the GPU copies everything */
    uint64_t gdr_covered; /* bytes of the GPU heap that were to be mapped */
};

#define LINE 8u /* words */

/* Host memory is slabs. */
static bool copied_by_cpu(const struct gi_net_stage *g, uint64_t to, uint64_t from, uint64_t bytes)
{
    bool reads = to - (uint64_t)(uintptr_t)g->memory < gi_core_stage_bytes();
    if (g->gdr == NULL || bytes > (reads ? CPU_READS : CPU_WRITES))
        return false;
    return reads ? gi_gdr_read(g->gdr, (void *)(uintptr_t)to, from, bytes)
                 : gi_gdr_write(g->gdr, to, (const void *)(uintptr_t)from, bytes);
}

static int copy(void *arg, uint64_t to, uint64_t from, uint64_t bytes, uint64_t *ticket)
{
    struct gi_net_stage *g = arg;
    if (copied_by_cpu(g, to, from, bytes)) {
        *ticket = AT_ONCE;
        return GIN_OK;
    }
    uint32_t i = atomic_fetch_add_explicit(&g->next, 1, memory_order_relaxed) % STREAMS;
    struct stream *s = &g->stream[i];
    if (atomic_flag_test_and_set_explicit(&s->used, memory_order_acquire))
        return GIN_EAGAIN;
    int st = gi_gpu_copy_begin(g->gpu, s->stream, to, from, bytes,
                               g->stamps_addr + i * LINE * sizeof(uint64_t), s->issued + 1);
    if (st == GIN_OK)
        *ticket = ++s->issued * STREAMS + i;
    atomic_flag_clear_explicit(&s->used, memory_order_release);
    return st;
}

static int done(void *arg, uint64_t ticket)
{
    struct gi_net_stage *g = arg;
    if (ticket == AT_ONCE)
        return 1;
    if (GIN_LOAD_ACQUIRE(&g->stamps[ticket % STREAMS * LINE]) >= ticket / STREAMS)
        return 1;
    uint32_t looks = atomic_fetch_add_explicit(&g->looks, 1, memory_order_relaxed);
    return looks % PATIENCE != 0 ? 0 : gi_gpu_health(g->gpu);
}

static int take(void *arg, uint32_t window, enum gin_i_amo_op op)
{
    struct gi_net_stage *g = arg;
    const struct gin_i_window *w = gi_window_table_named(&g->comm->windows->table, window);
    if (w == NULL)
        return GIN_ESTATE;
    if (!gi_words_by_engine(g->comm, w) && op != GIN_I_AMO_SET && op != GIN_I_AMO_FETCH)
        return GIN_ENOTSUP; /* GPUs' own atomics do */
    return gi_words_try(g->comm->cuda) ? GIN_OK : GIN_EAGAIN;
}

static void give(void *arg)
{
    struct gi_net_stage *g = arg;
    gi_words_give(g->comm->cuda);
}

/* ---- coming and going ---- */

void gi_net_stage_down(struct gi_net *n)
{
    struct gi_net_stage *g = n->stage;
    if (g == NULL)
        return;
    gi_gdr_close(g->gdr);
    for (uint32_t i = 0; g->gpu != NULL && i < STREAMS; i++)
        gi_gpu_stream_close(g->gpu, g->stream[i].stream);
    if (g->gpu != NULL)
        gi_gpu_host_free(g->gpu, g->memory);
    else
        free(g->memory);
    free(g);
    n->stage = NULL;
}

/* What the CPU writes must be there before the signal that tells of it. */
static void open_gdr(struct gi_net_stage *g)
{
    const struct gi_env *env = &g->comm->env;
    char why[120];
    if (env->disable_gdrcopy)
        snprintf(why, sizeof(why), "GINSHMEM_DISABLE_GDRCOPY=1");
    else if (gi_gpu_rdma_order(g->gpu) != GI_GPU_ORDER_KEPT)
        snprintf(why, sizeof(why), "the GPU does not keep the order of what comes over PCIe");
    else
        g->gdr = gi_gdr_open(env->test_libgdr, why, sizeof(why));
    gi_info("net", "GDRCopy: %s", g->gdr != NULL ? "small copies are the CPU's" : why);
}

static int pin(struct gi_net_stage *g, uint64_t slabs)
{
    uint64_t addr;
    int st = gi_gpu_host_alloc(g->gpu, slabs + STAMPS, &g->memory, &addr);
    if (st != GIN_OK)
        return st;
    g->stamps = (uint64_t *)(void *)((char *)g->memory + slabs);
    g->stamps_addr = addr + slabs;
    for (uint32_t i = 0; st == GIN_OK && i < STREAMS; i++)
        st = gi_gpu_stream_open(g->gpu, &g->stream[i].stream);
    if (st == GIN_OK)
        open_gdr(g);
    return st;
}

bool gi_net_stage_by_cpu(const struct gi_net *n)
{
    return n->stage != NULL && n->stage->gdr != NULL;
}

void gi_net_stage_map(const struct gi_net *n, uint64_t addr, uint64_t bytes)
{
    if (gi_net_stage_by_cpu(n))
        (void)gi_gdr_map(n->stage->gdr, addr, bytes);
}

void gi_net_stage_unmap(const struct gi_net *n, uint64_t addr, uint64_t bytes)
{
    if (gi_net_stage_by_cpu(n))
        gi_gdr_unmap(n->stage->gdr, addr, bytes);
}

void gi_net_stage_heap(const struct gi_net *n, uint64_t size)
{
    struct gi_net_stage *g = n->stage;
    if (!gi_net_stage_by_cpu(n) || size <= g->gdr_covered)
        return;
    gi_net_stage_map(n, gi_cuda_heap_base(g->comm->cuda) + g->gdr_covered, size - g->gdr_covered);
    g->gdr_covered = size;
}

static int make(gin_comm_t *comm, struct gi_net_stage **stage)
{
    uint64_t slabs = (gi_core_stage_bytes() + 4095) / 4096 * 4096;
    struct gi_net_stage *g = aligned_alloc(64, (sizeof(*g) + 63) / 64 * 64);
    *stage = g;
    if (g == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for staging");
    memset(g, 0, sizeof(*g));
    g->comm = comm;
    g->gpu = comm->cuda->gpu;
    for (uint32_t i = 0; i < STREAMS; i++)
        atomic_flag_clear(&g->stream[i].used);
    if (g->gpu != NULL)
        return pin(g, slabs);
    g->memory = aligned_alloc(4096, slabs);
    return g->memory != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for slabs");
}

void gi_net_stage_up(gin_comm_t *comm)
{
    struct gi_net *n = comm->net;
    if (n == NULL || comm->cuda == NULL || gi_core_stages(n->core))
        return;
    int st = make(comm, &n->stage);
    if (st == GIN_OK) {
        struct gi_core_stage_config c = {.memory = n->stage->memory};
        if (n->stage->gpu != NULL)
            c.mover = (struct gi_core_mover){
                .arg = n->stage, .copy = copy, .done = done, .take = take, .give = give};
        st = gi_core_stage_open(n->core, &c);
    } else {
        const struct gi_core_stage_config none = {.memory = NULL};
        (void)gi_core_stage_open(n->core, &none); /* so the others hear of it */
    }
    if (st == GIN_OK)
        st = gi_net_gpu_meet(n);
    if (st == GIN_OK)
        gi_net_cuda_heap(comm);
    else
        gi_warn("net", "GPU memory is not reached by the network: %s", gin_last_error());
}
