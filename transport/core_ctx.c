/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: a lane, the peers' state, and the pools, whose sizes bound what can be under way. The
 * peers' state is zeroed memory of which only what is used gets pages, and so are the pools' spare
 * entries, as many again, for those that are lost with a peer.
 */
#include "transport/core_epoch.h"
#include "transport/core_stage.h"
#include "transport/core_stripe.h"

#include <stdlib.h>
#include <string.h>

struct gi_net_lane_config gi_core_lane_config(const struct gi_core_ctx *ctx,
                                              const struct gi_core_ctx_config *config)
{
    return (struct gi_net_lane_config){.context = ctx->tag,
                                       .depth = config->depth,
                                       .shared = config->shared,
                                       .traffic = config->traffic};
}

static int open_lane(struct gi_core_ctx *ctx, const struct gi_core_ctx_config *config,
                     uint32_t unread)
{
    struct gi_net_domain *d = ctx->core->domain[ctx->rail];
    struct gi_net_lane_config lc = gi_core_lane_config(ctx, config);
    lc.unread = unread;
    lc.handler = (struct gi_net_handler){.arg = ctx,
                                         .done = gi_core_done,
                                         .failed = gi_core_failed,
                                         .arrived_imm = gi_core_arrived_imm,
                                         .arrived_msg = gi_core_arrived_msg};
    return d->ops->lane_open(d, &lc, &ctx->lane);
}

static uint32_t at_least_1(uint32_t n)
{
    return n != 0 ? n : 1;
}

static int make_pools(struct gi_core_ctx *ctx, uint32_t depth)
{
    const struct gi_net_caps *caps = ctx->caps;
    uint32_t pieces = depth != 0 ? depth : GI_CORE_PIECES;
    ctx->n_chunks = at_least_1(pieces < caps->depth ? pieces : caps->depth);
    ctx->n_ops = depth > GI_CORE_OPS ? depth : GI_CORE_OPS;
    /* One peer that takes nothing must leave room for others. */
    bool alone = ctx->core->config.size <= 2;
    ctx->peer_ops = alone ? ctx->n_ops : ctx->n_ops / 4;
    ctx->peer_pieces = alone ? ctx->n_chunks : at_least_1(ctx->n_chunks / 2);
    ctx->peers = calloc((size_t)ctx->core->config.size, sizeof(*ctx->peers));
    ctx->all_ops = 2 * (ctx->fresh_ops = ctx->n_ops);
    ctx->all_chunks = 2 * (ctx->fresh_chunks = ctx->n_chunks);
    ctx->ops_memory = calloc(ctx->all_ops, sizeof(*ctx->ops_memory));
    ctx->chunks_memory = calloc(ctx->all_chunks, sizeof(*ctx->chunks_memory));
    if (ctx->peers == NULL || ctx->ops_memory == NULL || ctx->chunks_memory == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a context's %u operations", ctx->n_ops);
    for (uint32_t i = ctx->n_ops; i-- > 0;) {
        ctx->ops_memory[i].next_ctx = ctx->free_ops;
        ctx->free_ops = &ctx->ops_memory[i];
    }
    for (uint32_t i = ctx->n_chunks; i-- > 0;) {
        ctx->chunks_memory[i].next = ctx->free_chunks;
        ctx->free_chunks = &ctx->chunks_memory[i];
    }
    if (!caps->mr_local)
        return GIN_OK;
    struct gi_net_domain *d = ctx->core->domain[ctx->rail];
    struct gi_net_memory_desc memory = {.kind = GI_NET_HOST,
                                        .addr = ctx->ops_memory,
                                        .bytes = ctx->all_ops * sizeof(*ctx->ops_memory)};
    return d->ops->reg(d, &memory, &ctx->ops_mr);
}

/* Give everything back but the shell, which somebody who polls may be looking at. Owned. */
static void empty(struct gi_core_ctx *ctx)
{
    struct gi_net_domain *d = ctx->core->domain[ctx->rail];
    if (ctx->lane != NULL)
        ctx->ops->lane_close(ctx->lane);
    gi_core_stage_ctx_close(ctx);
    gi_core_stripe_close(ctx);
    if (ctx->ops_mr != NULL)
        d->ops->dereg(d, ctx->ops_mr);
    for (int r = 0; ctx->peers != NULL && r < ctx->core->config.size; r++) {
        free(ctx->peers[r].in.early);
        free(ctx->peers[r].bundle.slot);
        free(ctx->peers[r].replies.slot);
        free(ctx->peers[r].why);
    }
    free(ctx->peers);
    free(ctx->epochs);
    free(ctx->ops_memory);
    free(ctx->chunks_memory);
    struct gi_core *core = ctx->core;
    size_t keep = offsetof(struct gi_core_ctx, core);
    memset((char *)ctx + keep, 0, sizeof(*ctx) - keep);
    atomic_store_explicit(&ctx->retired, 0, memory_order_relaxed);
    atomic_store_explicit(&ctx->hot, 0, memory_order_relaxed);
    atomic_store_explicit(&ctx->fed, 0, memory_order_relaxed);
    ctx->core = core;
}

/* A shell that is not in use, owned; polls find it once it is left. */
static struct gi_core_ctx *take_shell(struct gi_core *core)
{
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        struct gi_core_ctx *ctx = atomic_load_explicit(&core->ctx[i], memory_order_relaxed);
        if (!ctx->taken) {
            gi_core_enter(ctx);
            ctx->taken = true;
            return ctx;
        }
    }
    if (n == GI_CORE_CTXS) {
        gi_fail(GIN_ERANGE, "a communicator has at most %u contexts on the network", GI_CORE_CTXS);
        return NULL;
    }
    struct gi_core_ctx *ctx = aligned_alloc(64, (sizeof(*ctx) + 63) / 64 * 64);
    if (ctx == NULL) {
        gi_fail(GIN_ENOMEM, "no memory for a context");
        return NULL;
    }
    memset(ctx, 0, sizeof(*ctx));
    ctx->first_failed = -1;
    ctx->core = core;
    ctx->taken = true;
    ctx->driver = n % core->config.drivers;
    atomic_store_explicit(&ctx->owned, 1, memory_order_relaxed);
    atomic_store_explicit(&core->ctx[n], ctx, memory_order_release);
    atomic_store_explicit(&core->n_ctx, n + 1, memory_order_release);
    return ctx;
}

static int open_one(struct gi_core_ctx *ctx, const struct gi_core_ctx_config *config,
                    struct gi_core_name *name)
{
    struct gi_core *core = ctx->core;
    ctx->rail = config->home % core->config.n_domains;
    ctx->ops = core->domain[ctx->rail]->ops;
    ctx->caps = core->caps[ctx->rail];
    ctx->plan = &core->plan[ctx->rail];
    ctx->tag = (uint16_t)name->tag;
    ctx->mutate = config->mutate;
    ctx->pauses = 1;
    ctx->first_failed = -1;
    ctx->stripe_from = UINT64_MAX;
    ctx->cells = config->cells;
    ctx->native_window = config->native_window;
    ctx->native_off = config->native_off;
    ctx->native_stride = config->native_stride;
    ctx->intake = config->intake;
    atomic_store_explicit(&ctx->fed, config->intake.take != NULL, memory_order_relaxed);
    uint32_t unread = 0;
    int st = make_pools(ctx, config->depth);
    if (st == GIN_OK && config->epochs != 0)
        st = gi_core_epochs_open(ctx, config->epochs, &unread);
    if (st == GIN_OK)
        st = open_lane(ctx, config, unread);
    if (st != GIN_OK)
        return st;
    name->len = sizeof(name->bytes);
    name->credits = ctx->plan->credits;
    return ctx->ops->name(ctx->lane, name->bytes, &name->len);
}

static int connect_all(struct gi_core_ctx *ctx, const struct gi_core_ctx_config *config,
                       const struct gi_core_name *names, size_t step)
{
    ctx->credits = GI_CORE_CREDITS;
    for (int r = 0; r < ctx->core->config.size; r++) {
        const struct gi_core_name *from = &names[(size_t)r * step];
        if (from->status != GIN_OK)
            return gi_fail(from->status, "rank %d could not open its end of a context", r);
        if (from->tag != ctx->tag)
            return gi_fail(GIN_EMISMATCH, "this rank opens context %u, rank %d context %u",
                           ctx->tag, r, from->tag);
        ctx->credits = from->credits < ctx->credits ? from->credits : ctx->credits;
        if (config->peers != NULL && config->peers[r] == 0) {
            ctx->peers[r].gone = true;
            ctx->peers[r].status = GIN_ENOTSUP;
            ctx->peers[r].why = strdup("it is no peer of this context");
            continue;
        }
        int st = ctx->ops->connect(ctx->lane, r, from->bytes, from->len);
        if (st != GIN_OK)
            return st;
    }
    return GIN_OK;
}

#define FEW 1024 /* ranks whose statuses need no memory that may be lacking */

int gi_core_all_well(const struct gi_core_config *cfg, int st, const char *what)
{
    int32_t mine = st, few[FEW], *all = few;
    if (cfg->size > FEW)
        all = malloc((size_t)cfg->size * sizeof(*all));
    if (all == NULL)
        return gi_fail(GIN_ENOMEM, "no memory to agree on %s", what);
    int told = cfg->allgather(cfg->allgather_arg, &mine, all, sizeof(mine));
    for (int r = 0; r < cfg->size && st == GIN_OK && told == GIN_OK; r++)
        if (all[r] != GIN_OK)
            st = gi_fail(all[r], "rank %d could not open %s", r, what);
    if (all != few)
        free(all);
    return st != GIN_OK ? st : told;
}

int gi_core_ctx_open(struct gi_core *core, uint32_t n, const struct gi_core_ctx_config *config,
                     struct gi_core_ctx **ctx)
{
    const struct gi_core_config *cfg = &core->config;
    uint32_t sides = core->sides, lanes = n * (1 + sides); /* the homes' names, then the sides' */
    struct gi_core_name *mine = calloc(lanes, sizeof(*mine));
    struct gi_core_name *all = calloc((size_t)cfg->size * lanes, sizeof(*all));
    int st = GIN_OK;
    if (mine == NULL || all == NULL)
        st = gi_fail(GIN_ENOMEM, "no memory for the names of %u contexts", n);
    st = gi_core_all_well(&core->config, st, "contexts");
    if (st != GIN_OK) {
        free(mine);
        free(all);
        return st;
    }
    for (uint32_t i = 0; i < n; i++) {
        mine[i].tag = (core->next_tag + i) & 0xffff;
        mine[i].status = st;
        ctx[i] = st == GIN_OK ? take_shell(core) : NULL;
        if (st == GIN_OK)
            mine[i].status = st =
                ctx[i] != NULL ? open_one(ctx[i], &config[i], &mine[i]) : gin_last_status();
        if (st == GIN_OK && sides != 0)
            mine[i].status = st = gi_core_stripe_open(ctx[i], &config[i], &mine[n + i * sides]);
    }
    core->next_tag += n;
    int told = cfg->allgather(cfg->allgather_arg, mine, all, lanes * sizeof(*mine));
    st = st != GIN_OK ? st : told;
    for (uint32_t i = 0; i < n && st == GIN_OK; i++) {
        st = connect_all(ctx[i], &config[i], all + i, lanes);
        if (st == GIN_OK && sides != 0)
            st = gi_core_stripe_connect(ctx[i], all + n + i * sides, lanes);
        ctx[i]->open = st == GIN_OK;
        if (st != GIN_OK)
            continue;
        gi_core_leave(ctx[i]); /* driven by polls from now on: peers may need that */
        gi_core_wake(ctx[i]);
    }
    free(mine);
    free(all);
    if (told == GIN_OK)
        st = gi_core_all_well(&core->config, st, "its contexts' connections");
    for (uint32_t i = 0; i < n && st != GIN_OK; i++) {
        if (ctx[i] != NULL && !ctx[i]->open)
            gi_core_leave(ctx[i]);
        gi_core_ctx_close(ctx[i]);
        ctx[i] = NULL;
    }
    return st;
}

bool gi_core_ctx_part(struct gi_core_ctx *ctx)
{
    gi_core_enter(ctx);
    bool asked = ctx->caps->part_late;
    if (asked)
        ctx->ops->part(ctx->lane);
    if (ctx->stripe != NULL)
        asked |= gi_core_stripe_part(ctx);
    gi_core_leave(ctx);
    return asked;
}

void gi_core_ctx_close(struct gi_core_ctx *ctx)
{
    if (ctx == NULL)
        return;
    gi_core_enter(ctx);
    empty(ctx);
    gi_core_leave(ctx);
    ctx->taken = false;
}

const uint64_t *gi_core_counts(const struct gi_core_ctx *ctx)
{
    return ctx->counts;
}
