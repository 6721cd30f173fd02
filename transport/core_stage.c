/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slabs: pinned host memory of the rank, half of it for what leaves, half for what comes, shared by
 * all contexts. Peers know where it is, and read from it what a message tells them to.
 */
#include "transport/core_stage.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t size_of(enum gi_stage_room room)
{
    return room == GI_STAGE_OUT || room == GI_STAGE_IN ? GI_STAGE_SLAB : GI_STAGE_CELL;
}

static uint32_t count_of(enum gi_stage_room room)
{
    return size_of(room) == GI_STAGE_SLAB ? GI_STAGE_SLABS : GI_STAGE_CELLS;
}

uint64_t gi_core_stage_bytes(void)
{
    uint64_t all = 0;
    for (int room = 0; room < GI_STAGE_ROOMS; room++)
        all += size_of(room) * count_of(room);
    return all;
}

static void fill(struct gi_core_stage *s, char *memory)
{
    for (int room = 0; room < GI_STAGE_ROOMS; room++) {
        struct gi_stage_pool *p = &s->pool[room];
        p->base = memory;
        p->size = (uint32_t)size_of(room);
        p->n_free = count_of(room);
        for (uint32_t i = 0; i < p->n_free; i++)
            p->free[i] = (uint16_t)(p->n_free - 1 - i);
        memory += size_of(room) * count_of(room);
    }
}

int gi_core_stage_open(struct gi_core *core, const struct gi_core_stage_config *config)
{
    const struct gi_core_region_config slabs = {
        .memory = {
            .kind = GI_NET_HOST, .addr = config->memory, .bytes = gi_core_stage_bytes(), .fd = -1}};
    struct gi_core_stage *s = calloc(1, sizeof(*s));
    int st = s != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for staging");
    if (st == GIN_OK && config->memory == NULL)
        st = gi_fail(GIN_ENOMEM, "no slabs to stage GPU memory by");
    st = gi_core_all_well(&core->config, st, "its slabs for GPU memory");
    if (st == GIN_OK)
        st = gi_core_region_open(core, &slabs, &s->region);
    if (st != GIN_OK) {
        free(s);
        return st;
    }
    s->mover = config->mover;
    s->memory = config->memory;
    s->gpu = (struct gi_core_region){.bytes = UINT64_MAX, .device = true, .staged = true};
    atomic_flag_clear(&s->lock);
    fill(s, config->memory);
    __atomic_store_n(&core->stage, s, __ATOMIC_RELEASE); /* contexts may be in use */
    /* No peer is told of what is staged before all can be. */
    return gi_core_all_well(&core->config, GIN_OK, "its slabs for GPU memory");
}

void gi_core_stage_close(struct gi_core *core)
{
    if (core->stage == NULL)
        return;
    gi_core_region_close(core, core->stage->region);
    free(core->stage);
    core->stage = NULL;
}

bool gi_core_stages(const struct gi_core *core)
{
    return __atomic_load_n(&core->stage, __ATOMIC_ACQUIRE) != NULL;
}

struct gi_core_region *gi_core_gpu(struct gi_core *core)
{
    struct gi_core_stage *s = __atomic_load_n(&core->stage, __ATOMIC_ACQUIRE);
    return s != NULL && s->mover.copy != NULL ? &s->gpu : NULL;
}

static void lock(struct gi_core_stage *s)
{
    while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
        GIN_PAUSE();
}

char *gi_stage_take(struct gi_core_stage *s, enum gi_stage_room room)
{
    struct gi_stage_pool *p = &s->pool[room];
    char *at = NULL;
    lock(s);
    if (p->n_free != 0)
        at = p->base + (size_t)p->free[--p->n_free] * p->size;
    atomic_flag_clear_explicit(&s->lock, memory_order_release);
    return at;
}

void gi_stage_give(struct gi_core_stage *s, enum gi_stage_room room, char *at)
{
    struct gi_stage_pool *p = &s->pool[room];
    lock(s);
    p->free[p->n_free++] = (uint16_t)((uint64_t)(at - p->base) / p->size);
    atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

/* ---- copies that fail ---- */

void gi_stage_failed(struct gi_core_stage *s)
{
    lock(s);
    if (s->why[0] == 0)
        snprintf(s->why, sizeof(s->why), "%.139s", gin_last_error());
    atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

void gi_stage_fail_ctx(struct gi_core_ctx *ctx, int status)
{
    char text[GI_CORE_TEXT];
    snprintf(text, sizeof(text), "what came for this rank's GPU is not there: %s",
             ctx->core->stage->why);
    gi_core_ctx_error(ctx, status, -1, text);
}

/* ---- what is under way ---- */

struct gi_stage_peer *gi_stage_peer(struct gi_core_peer *p)
{
    if (p->stage == NULL)
        p->stage = calloc(1, sizeof(*p->stage));
    if (p->stage != NULL)
        p->stage->peer = p;
    return p->stage;
}

void gi_core_stage_kick(struct gi_core_ctx *ctx, struct gi_core_peer *p)
{
    struct gi_stage_peer *s = p->stage;
    if (s == NULL || s->listed)
        return;
    s->listed = true;
    s->next = ctx->staging;
    ctx->staging = s;
}

int gi_core_stage_run(struct gi_core_ctx *ctx)
{
    struct gi_stage_peer *list = ctx->staging, *s;
    int n = 0;
    ctx->staging = NULL;
    while ((s = list) != NULL) {
        list = s->next;
        s->listed = false;
        n += gi_stage_in_run(ctx, s);
        n += gi_stage_out_run(ctx, s);
        if (!gi_stage_is_idle(s))
            gi_core_stage_kick(ctx, s->peer);
    }
    return n;
}

void gi_core_stage_ctx_close(struct gi_core_ctx *ctx)
{
    for (int r = 0; ctx->peers != NULL && r < ctx->core->config.size; r++) {
        struct gi_stage_peer *s = ctx->peers[r].stage;
        if (s == NULL)
            continue;
        gi_stage_out_close(ctx, s);
        gi_stage_in_close(ctx, s);
        free(s);
    }
}
