/* SPDX-License-Identifier: BSD-3-Clause */
/* The network as ranks of other hosts would use it: opened, tested and closed again. */
#include <string.h>
#include <ginshmem.h>
#include "base/env.h"
#include "base/log.h"
#include "lib/tools/gininfo.h"
#include "nics.h"
#include "transport/core.h"
#include "transport/ofi/ofi.h"
#include "transport/ofi/ofi_find.h"

#define SECTION "network"

static void fact(const char *name, bool have, const char *why_not)
{
    info_add(SECTION, name, have ? INFO_YES : INFO_NO, NULL, "%s", have ? "" : why_not);
}

static void number(const char *name, uint64_t value, const char *unlimited, const char *why)
{
    char text[32];
    if (value >= INT64_MAX || value == 0)
        snprintf(text, sizeof(text), "%s", unlimited);
    else
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    info_add(SECTION, name, INFO_PLAIN, text, "%s", why);
}

/* How signals are made to follow puts. */
const char *info_class(const struct gi_net_caps *c, const char **means)
{
    bool native = c->amo == GI_NET_AMO_NATIVE;
    if (native && c->amo_ordered)
        return *means = "atomics of its own, which stay behind writes", "A";
    if (c->waw_bytes != 0 && c->saw)
        return *means = "ordered; signals ride in immediates or in messages", "B";
    if (native && c->amo_fence)
        return *means = "unordered, atomics with a fence", "D";
    return *means = "unordered: a strong signal waits for the puts before it", "C";
}

static void class(const struct gi_net_caps *c)
{
    const char *means, *name = info_class(c, &means);
    info_add(SECTION, "class", INFO_PLAIN, name, "%s", means);
    if (name[0] == 'C')
        fact("counted puts", gi_core_uncounted(c) == NULL, gi_core_uncounted(c));
}

/* What gin_devcomm_reqs_t.traffic_class may be. */
static void classes(uint32_t classes)
{
    static const char *const names[] = {"best effort", "low latency", "dedicated access",
                                        "bulk data",   "scavenger",   "network control"};
    char text[128] = "";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((classes & 1u << i) != 0)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
                     text[0] != 0 ? ", " : "", names[i]);
    if ((classes & GI_NET_TC_DSCP) != 0)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sDSCP",
                 text[0] != 0 ? ", " : "");
    info_add(SECTION, "traffic classes", classes != 0 ? INFO_YES : INFO_NO,
             classes != 0 ? text : NULL, "%s", classes != 0 ? "" : "this provider heeds none");
}

static void capabilities(const struct gi_net_caps *c)
{
    char text[32];
    number("ordered writes", c->waw_bytes, c->waw_bytes != 0 ? "of any size" : "none",
           c->waw_bytes != 0 ? "a write stays behind earlier ones" : "the provider promises none");
    fact("message after write", c->saw, "not ordered");
    fact("read after write", c->raw, "not ordered");
    fact("atomics", c->amo == GI_NET_AMO_NATIVE,
         "not by the device: the target's processor applies them, sent as messages");
    snprintf(text, sizeof(text), "%u bits", c->imm_bits);
    info_add(SECTION, "immediates", c->imm_bits != 0 ? INFO_YES : INFO_NO,
             c->imm_bits != 0 ? text : NULL, "%s",
             c->imm_bits == 0   ? "signals are messages of their own"
             : c->imm_eats_recv ? "each takes a posted receive"
                                : "");
    info_add(SECTION, "delivery", c->dc != GI_NET_DC_NO ? INFO_YES : INFO_NO, NULL, "%s",
             c->dc == GI_NET_DC_SAME  ? "every completion says delivered"
             : c->dc == GI_NET_DC_YES ? "completions say so where asked"
                                      : "completions say nothing of the target: echoes do");
    fact("passive target", c->target_passive, "ranks must make progress to be written to");
    fact("sleep", c->wait_fd, "a waiting engine polls");
    number("inline bytes", c->inject, "none", "");
    number("bytes per operation", c->max_msg, "none", "longer ones are split");
    number("operations in flight", c->depth, "none", "per context");
    fact("unregistered sources", !c->mr_local, "local memory must be registered");
    classes(c->classes);
}

/* As it is opened for ranks with GPUs, which may cost it something. */
static void gpu_memory(const struct gi_env *env)
{
    struct gi_net_config config = {
        .provider = env->provider, .nic = env->nic, .rank = 0, .size = 1, .gpu = true};
    struct gi_net_domain *domain;
    if (gi_ofi_ops.open(&config, &domain) != GIN_OK) {
        info_add(SECTION, "GPU memory", INFO_NO, NULL, "%s", gin_last_error());
        return;
    }
    const struct gi_net_caps *c = gi_ofi_ops.caps(domain);
    if (c->mr_hmem)
        info_add(SECTION, "GPU memory", INFO_UNKNOWN, NULL,
                 "FI_HMEM is offered, %s DMA-BUF%s; a job's gpu-net tells what works",
                 c->mr_dmabuf ? "and" : "without", c->mr_calls ? ", with calls of CUDA" : "");
    else
        info_add(SECTION, "GPU memory", INFO_NO, NULL,
                 "the provider has no FI_HMEM: it is copied through host memory");
    gi_ofi_ops.close(domain);
}

/* One fact for each line: quirks known and what the test found. */
static void notes(const char *text)
{
    while (*text != 0) {
        size_t len = strcspn(text, "\n");
        info_add(SECTION, "note", INFO_PLAIN, NULL, "%.*s", (int)len, text);
        text += len + (text[len] != 0);
    }
}

/* As many as GINSHMEM_RAILS asks for are there: a rank would be refused otherwise. */
static int enough(const struct gi_env *env)
{
    const struct gi_net_config config = {.provider = env->provider, .size = 1};
    struct gi_net_nic nic[GI_NET_NICS];
    unsigned of_use = 0, rails = (unsigned)env->rails;
    if (rails <= 1)
        return GIN_OK;
    if (env->nic[0] != 0)
        return gi_fail(GIN_ENOTSUP,
                       "GINSHMEM_RAILS=%u: GINSHMEM_NIC names one device: "
                       "GINSHMEM_NICS names several",
                       rails);
    int n = gi_ofi_nics(&config, nic, GI_NET_NICS);
    for (int i = 0; i < n; i++)
        of_use += !nic[i].down && !nic[i].local;
    if (n < 0 || of_use >= rails)
        return GIN_OK; /* or opening says why */
    return gi_fail(GIN_EINVAL,
                   "GINSHMEM_RAILS=%u: there are %u devices of the provider that lead to other "
                   "machines: ask for no more, or name devices by GINSHMEM_NICS",
                   rails, of_use);
}

/* Each of the devices that are named, the first of them last: that one stays open. */
static int open_domain(const struct gi_env *env, struct gi_net_domain **domain)
{
    char name[GI_CORE_RAILS][GI_NIC_NAME];
    int n = 1, st = GIN_OK;
    snprintf(name[0], sizeof(name[0]), "%.63s", env->nic);
    if (env->nics[0] != 0)
        n = gi_nics_named(env, name);
    else
        st = enough(env);
    if (n < 0 || st != GIN_OK)
        return n < 0 ? n : st;
    while (n-- > 0) {
        struct gi_net_config config = {
            .provider = env->provider, .nic = name[n], .rank = 0, .size = 1, .self_test = true};
        st = gi_ofi_ops.open(&config, domain);
        if (st != GIN_OK)
            return env->nics[0] == 0
                       ? st
                       : gi_fail(st, "GINSHMEM_NICS=%s: %s", env->nics, gin_last_error());
        if (n > 0)
            gi_ofi_ops.close(*domain);
    }
    return GIN_OK;
}

int info_try_network(char *text, size_t n, bool *asked)
{
    struct gi_net_domain *domain;
    struct gi_env env;
    int st = gi_env_load(&env);
    *asked = false;
    if (st != GIN_OK)
        return snprintf(text, n, "%s", gin_last_error()), st;
    *asked = env.provider[0] != 0 || env.nic[0] != 0 || env.nics[0] != 0 || env.rails > 1;
    st = open_domain(&env, &domain);
    if (st == GIN_OK) {
        const struct gi_net_caps *c = gi_ofi_ops.caps(domain);
        const char *device = strstr(c->notes, "device: ");
        device = device != NULL ? device : "";
        snprintf(text, n, "%s: %s, %.*s", c->name, c->version, (int)strcspn(device, "\n"), device);
        gi_ofi_ops.close(domain);
    } else {
        snprintf(text, n, "%s", gin_last_error());
    }
    gi_env_release(&env);
    return st;
}

void info_network(void)
{
    struct gi_net_domain *domain;
    struct gi_env env;
    if (gi_env_load(&env) != GIN_OK) {
        info_add(SECTION, "provider", INFO_NO, NULL, "%s", gin_last_error());
        return;
    }
    if (open_domain(&env, &domain) != GIN_OK) {
        info_add(SECTION, "provider", INFO_NO, NULL, "%s", gin_last_error());
        info_nics(&env, NULL);
    } else {
        const struct gi_net_caps *c = gi_ofi_ops.caps(domain);
        info_add(SECTION, "provider", INFO_PLAIN, c->name, "%s%s", c->version,
                 env.set.provider ? ", by GINSHMEM_PROVIDER"
                                  : ", the first of the list that works");
        class(c);
        capabilities(c);
        gpu_memory(&env);
        notes(c->notes);
        if (gi_ofi_environment_text()[0] != 0)
            info_add(SECTION, "variables set", INFO_PLAIN, NULL, "%s: so libfabric is told",
                     gi_ofi_environment_text());
        info_nics(&env, c->device);
        gi_ofi_ops.close(domain);
    }
    gi_env_release(&env);
}
