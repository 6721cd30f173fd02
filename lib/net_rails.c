/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's rails: the domain of each device that GINSHMEM_NICS names, or those that were chosen
 * (net_nics.c), or the one of GINSHMEM_NIC or of the provider's choice. All are of one provider,
 * since every context must be worth the same whichever rail is its home; contexts take them in
 * turn.
 */
#include <string.h>

#include "net_up.h"
#include "nics.h"
#include "transport/fault/fault.h"
#include "transport/ofi/ofi.h"

static const struct gi_net_ops *test_ops;
static const void *(*test_more)(int rank);

void gi_net_use(const struct gi_net_ops *ops, const void *(*more)(int rank))
{
    test_ops = ops;
    test_more = more;
}

bool gi_net_is_test(void)
{
    return test_ops != NULL;
}

/* Those that were chosen, or the one that is named; "" for the provider's choice. */
static int names_chosen(const struct gi_net *n, char name[][GI_NIC_NAME])
{
    const struct gi_env *env = &n->comm->env;
    if (env->rails > 1 && n->n_nics == 0 && !n->comm->env.disable_net)
        return gi_fail(GIN_ENOTSUP, "GINSHMEM_RAILS=%u: %s", (unsigned)env->rails,
                       env->nic[0] != 0
                           ? "GINSHMEM_NIC names one device: GINSHMEM_NICS names several"
                           : "no provider's devices could be found");
    if (n->n_nics == 0)
        snprintf(name[0], GI_NIC_NAME, "%.63s", env->nic);
    for (uint32_t i = 0; i < n->n_nics; i++)
        memcpy(name[i], n->nic[i], GI_NIC_NAME);
    return n->n_nics == 0 ? 1 : (int)n->n_nics;
}

static int open_rail(struct gi_net *n, const char *nic)
{
    const gin_comm_t *comm = n->comm;
    const struct gi_net_config c = {
        .provider = comm->env.provider[0] != 0 ? comm->env.provider : NULL,
        .nic = nic[0] != 0 ? nic : NULL,
        .rank = comm->rank,
        .size = comm->size,
        .self_test = true,
        .gpu = n->gpu.asked,
        .any_atomics = gi_fault_needs_atomics(comm->env.test_net),
        .more = test_ops != NULL && test_more != NULL ? test_more(comm->rank) : NULL,
    };
    struct gi_net_domain **d = &n->domains[n->n_domains];
    int st = (test_ops != NULL ? test_ops : &gi_ofi_ops)->open(&c, d);
    if (st != GIN_OK)
        return st;
    n->n_domains++;
    return comm->env.test_net[0] != 0 ? gi_fault_wrap(comm->env.test_net, c.rank, c.size, d)
                                      : GIN_OK;
}

static const struct gi_net_caps *caps_of(const struct gi_net *n, uint32_t rail)
{
    return n->domains[rail]->ops->caps(n->domains[rail]);
}

static int alike(const struct gi_net *n, char name[][GI_NIC_NAME])
{
    const struct gi_net_caps *a = caps_of(n, 0);
    for (uint32_t i = 1; i < n->n_domains; i++) {
        const struct gi_net_caps *b = caps_of(n, i);
        if (strcmp(a->name, b->name) != 0 || strcmp(a->version, b->version) != 0)
            return gi_fail(
                GIN_EINVAL,
                "GINSHMEM_NICS: %s is of provider %s, %s of %s; all must be of one: name "
                "it by GINSHMEM_PROVIDER, or leave one out",
                name[0], a->name, name[i], b->name);
    }
    return GIN_OK;
}

int gi_net_rails_open(struct gi_net *n)
{
    char name[GI_CORE_RAILS][GI_NIC_NAME];
    int count, st = GIN_OK;
    if (n->comm->env.disable_net)
        return gi_fail(GIN_ENOTSUP, "GINSHMEM_DISABLE_NET=1");
    const struct gi_env *env = &n->comm->env;
    count = env->nics[0] != 0 ? gi_nics_named(env, name) : names_chosen(n, name);
    if (count < 0)
        return count;
    if (env->rails != 0)
        count = (int)env->rails;
    for (int i = 0; st == GIN_OK && i < count; i++)
        st = open_rail(n, name[i]);
    if (st != GIN_OK && count > 1)
        st = env->nics[0] != 0
                 ? gi_fail(st, "GINSHMEM_NICS=%s: %s", env->nics, gin_last_error())
                 : gi_fail(st, "rail %u of %d: %s", n->n_domains, count, gin_last_error());
    else if (st == GIN_OK)
        st = alike(n, name);
    if (st != GIN_OK)
        gi_net_rails_close(n);
    return st;
}

void gi_net_rails_close(struct gi_net *n)
{
    while (n->n_domains != 0) {
        n->n_domains--;
        n->domains[n->n_domains]->ops->close(n->domains[n->n_domains]);
    }
}

bool gi_net_rails_local(const struct gi_net *n)
{
    bool local = false;
    for (uint32_t i = 0; i < n->n_domains; i++)
        local |= caps_of(n, i)->local;
    return local;
}
