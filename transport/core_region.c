/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations on every rail, and what the peers need to write into them: 16 bytes per rank and
 * rail, exchanged once. A rank that could not register says so in the exchange, and everybody
 * undoes.
 */
#include "transport/core_land.h"

#include <stdlib.h>

/* What a rank tells of its part; `rails` keys follow it. */
struct blob {
    uint64_t bytes;
    int32_t status;
    uint16_t host, staged;
    struct gi_core_key key[];
};

bool gi_core_land(struct gi_core_ctx *ctx)
{
    const struct gi_core_hooks *h = &ctx->core->config.hooks;
    int st = h->landed != NULL ? h->landed(h->arg) : GIN_OK;
    if (st != GIN_OK)
        gi_core_ctx_fail(ctx, st, gin_last_error());
    return st == GIN_OK;
}

static void deregister(struct gi_core *core, struct gi_core_region *r)
{
    for (uint32_t i = 0; i < core->config.n_domains; i++)
        if (r->mr[i] != NULL) {
            core->domain[i]->ops->dereg(core->domain[i], r->mr[i]);
            r->mr[i] = NULL;
        }
}

/* Every rail must be able to: an operation does not choose. */
static bool can_register(const struct gi_core *core, enum gi_net_memory kind)
{
    bool can = true;
    for (uint32_t i = 0; i < core->config.n_domains; i++)
        can &= kind == GI_NET_HOST ||
               (kind == GI_NET_DEVICE ? core->caps[i]->mr_hmem : core->caps[i]->mr_dmabuf);
    return can;
}

static int register_on_rails(struct gi_core *core, struct gi_core_region *r,
                             const struct gi_net_memory_desc *memory)
{
    for (uint32_t i = 0; i < core->config.n_domains && memory->bytes != 0; i++) {
        int st = core->domain[i]->ops->reg(core->domain[i], memory, &r->mr[i]);
        if (st != GIN_OK) {
            r->mr[i] = NULL;
            return st;
        }
    }
    return GIN_OK;
}

static int register_all(struct gi_core *core, struct gi_core_region *r,
                        const struct gi_net_memory_desc *memory,
                        const struct gi_core_region_config *config)
{
    bool can = can_register(core, memory->kind);
    r->addr = (uint64_t)(uintptr_t)memory->addr;
    r->bytes = memory->bytes;
    r->device = memory->kind != GI_NET_HOST;
    r->staged = r->device && (config->stage || !can);
    int st = r->staged ? GIN_OK : register_on_rails(core, r, memory);
    if (st != GIN_OK && r->device && config->may_stage) {
        gi_info("core", "%llu bytes of GPU memory are staged: %s", (unsigned long long)r->bytes,
                gin_last_error());
        deregister(core, r);
        r->staged = true;
        st = GIN_OK;
    }
    r->lands = st == GIN_OK && r->device && !r->staged && config->land && memory->bytes != 0;
    if (r->lands)
        atomic_fetch_add(&core->lands, 1);
    return st;
}

bool gi_core_region_is_staged(const struct gi_core_region *region)
{
    return region->staged;
}

int gi_core_local_open(struct gi_core *core, const struct gi_core_region_config *config,
                       struct gi_core_region **region)
{
    struct gi_net_memory_desc memory = config->memory;
    struct gi_core_region *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for a registration");
    memory.remote = false;
    int st = register_all(core, r, &memory, config);
    if (st != GIN_OK) {
        deregister(core, r);
        free(r);
        return st;
    }
    *region = r;
    return GIN_OK;
}

static void tell(const struct gi_core *core, const struct gi_core_region *r, struct blob *b,
                 int status, bool host)
{
    b->bytes = r->bytes;
    b->status = status;
    b->host = host;
    b->staged = r->staged;
    for (uint32_t i = 0; i < core->config.n_domains; i++) {
        b->key[i].key = r->mr[i] != NULL ? r->mr[i]->key : 0;
        b->key[i].base = r->mr[i] != NULL ? r->mr[i]->base : 0;
    }
}

static int learn(const struct gi_core *core, struct gi_core_region *r, const char *all, size_t one)
{
    uint32_t rails = core->config.n_domains;
    for (int rank = 0; rank < core->config.size; rank++) {
        const struct blob *b = (const void *)(all + (size_t)rank * one);
        if (b->status != GIN_OK)
            return rank == core->config.rank
                       ? b->status
                       : gi_fail(b->status, "rank %d could not register its memory for the network",
                                 rank);
        r->part[rank] =
            (struct gi_core_part){.bytes = b->bytes, .host = b->host, .staged = b->staged};
        memcpy(&r->key[(size_t)rank * rails], b->key, rails * sizeof(*b->key));
    }
    return GIN_OK;
}

int gi_core_region_open(struct gi_core *core, const struct gi_core_region_config *config,
                        struct gi_core_region **region)
{
    const struct gi_core_config *cfg = &core->config;
    size_t n = (size_t)cfg->size;
    size_t one = sizeof(struct blob) + cfg->n_domains * sizeof(struct gi_core_key);
    struct gi_net_memory_desc memory = config->memory;
    struct gi_core_region *r = calloc(1, sizeof(*r));
    struct blob *mine = calloc(1, one);
    char *all = calloc(n, one);
    int st = GIN_OK;
    if (r != NULL) {
        r->part = calloc(n, sizeof(*r->part));
        r->key = calloc(n * cfg->n_domains, sizeof(*r->key));
    }
    if (r == NULL || r->part == NULL || r->key == NULL || mine == NULL || all == NULL)
        st = gi_fail(GIN_ENOMEM, "no memory for the keys of %zu ranks", n);
    st = st == GIN_OK ? config->status : st;
    st = gi_core_all_well(cfg, st, "its memory to the network");
    if (st == GIN_OK) {
        memory.remote = true;
        st = register_all(core, r, &memory, config);
        tell(core, r, mine, st, memory.kind == GI_NET_HOST);
        int told = cfg->allgather(cfg->allgather_arg, mine, all, one);
        if (st == GIN_OK)
            st = told == GIN_OK ? learn(core, r, all, one) : told;
    }
    free(mine);
    free(all);
    if (st != GIN_OK) {
        gi_core_region_close(core, r);
        return st;
    }
    *region = r;
    return GIN_OK;
}

void gi_core_region_close(struct gi_core *core, struct gi_core_region *region)
{
    if (region == NULL)
        return;
    deregister(core, region);
    if (region->lands)
        atomic_fetch_sub(&core->lands, 1);
    free(region->part);
    free(region->key);
    free(region);
}
