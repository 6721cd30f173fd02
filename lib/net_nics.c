/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which devices a rank's rails are, where nobody names them: those of the provider that are nearest
 * to its GPU, or to where it runs; the ranks of a host that have the same nearest ones share them.
 * All ranks take as many: GINSHMEM_RAILS, or what the one with the fewest would take. Without that
 * variable, or with 1, only devices with a place on the PCI bus are chosen among: of network
 * interfaces nobody knows whether they lead to the same networks, so the provider's best stays the
 * only one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_up.h"
#include "net_up.h"
#include "nics.h"
#include "transport/ofi/ofi.h"

/* What a rank has found, shown to all. */
struct wish {
    int32_t status;
    uint32_t rails;   /* GINSHMEM_RAILS, 0: not set */
    uint32_t nearest; /* bit k: the k-th device of its host; 0: it does not choose */
    uint32_t of_use;  /* devices that could be taken */
};

struct found {
    struct gi_net_nic nic[GI_NET_NICS];
    enum gi_near near[GI_NET_NICS];
    uint32_t n;
};

static const char *gpu_of(const gin_comm_t *comm)
{
    return comm->cuda != NULL && comm->cuda->gpu != NULL ? comm->cuda->gpu->pci : "";
}

/* Does this rank look for devices at all? */
static bool chooses(const gin_comm_t *comm)
{
    const struct gi_env *env = &comm->env;
    return !env->disable_net && env->nics[0] == 0 && env->nic[0] == 0 && !gi_net_is_test();
}

static void look(const gin_comm_t *comm, struct found *f, struct wish *w)
{
    const struct gi_env *env = &comm->env;
    const struct gi_net_config c = {.provider = env->provider[0] != 0 ? env->provider : NULL,
                                    .rank = comm->rank,
                                    .size = comm->size};
    int n = gi_ofi_nics(&c, f->nic, GI_NET_NICS);
    if (n < 0)
        return; /* opening says why */
    f->n = (uint32_t)n;
    for (uint32_t i = 0; i < f->n; i++)
        w->of_use += !f->nic[i].down && !f->nic[i].local;
    if (!gi_nics_matter(f->nic, f->n, (uint32_t)env->rails))
        return;
    gi_nics_sort(f->nic, f->n);
    gi_nics_look(gpu_of(comm), f->nic, f->n, f->near);
    w->nearest = gi_nics_nearest(f->nic, f->near, f->n);
}

/* Among the ranks of its host with the same nearest devices: how many, and the how manieth. */
static uint32_t sharers_of(const gin_comm_t *comm, const struct wish *all, int rank,
                           uint32_t *index)
{
    uint32_t n = 0;
    for (int r = 0; r < comm->size; r++) {
        if (r == rank)
            *index = n;
        n += comm->host_of[r] == comm->host_of[rank] && all[r].nearest == all[rank].nearest;
    }
    return n;
}

/* The number of rails everywhere, or a status: all ranks come to the same. */
static int number(const gin_comm_t *comm, const struct wish *all)
{
    uint32_t least = GI_CORE_RAILS, index;
    for (int r = 0; r < comm->size; r++)
        if (all[r].rails != all[0].rails)
            return gi_fail(GIN_EMISMATCH,
                           "GINSHMEM_RAILS is %u at rank 0 and %u at rank %d (0: not set); all "
                           "ranks have as many rails",
                           all[0].rails, all[r].rails, r);
    for (int r = 0; r < comm->size; r++) {
        if (all[r].rails != 0 && all[r].nearest != 0 && all[r].of_use < all[r].rails)
            return gi_fail(GIN_EINVAL,
                           "GINSHMEM_RAILS=%u: rank %d on host %.63s has %u devices of the "
                           "provider that lead to other machines: ask for no more, or name "
                           "devices by GINSHMEM_NICS",
                           all[r].rails, r, comm->cards[r].host_id, all[r].of_use);
        uint32_t nearest = (uint32_t)__builtin_popcount(all[r].nearest);
        uint32_t own = nearest == 0 ? 1 : gi_nics_share(nearest, sharers_of(comm, all, r, &index));
        least = own < least ? own : least;
    }
    return (int)(all[0].rails != 0 ? all[0].rails : least);
}

static void take(struct gi_net *n, const struct found *f, const struct wish *all, uint32_t rails)
{
    gin_comm_t *comm = n->comm;
    uint32_t pick[GI_CORE_RAILS], index = 0;
    uint32_t sharers = sharers_of(comm, all, comm->rank, &index);
    n->n_nics = gi_nics_pick(f->nic, f->near, f->n, index, sharers, rails, pick);
    for (uint32_t i = 0; i < n->n_nics; i++) {
        const struct gi_net_nic *nic = &f->nic[pick[i]];
        snprintf(n->nic[i], sizeof(n->nic[i]), "%.63s", nic->name);
        gi_info("net", "rail %u: %s%s%s, %s%s%s", i, nic->name, nic->bus[0] != 0 ? " at " : "",
                nic->bus, gi_near_text(f->near[pick[i]]), gpu_of(comm)[0] != 0 ? " as GPU " : "",
                gpu_of(comm));
    }
}

int gi_net_nics_choose(struct gi_net *n)
{
    gin_comm_t *comm = n->comm;
    struct found *f = calloc(1, sizeof(*f));
    struct wish mine = {.rails = (uint32_t)comm->env.rails};
    struct wish *all = calloc((size_t)comm->size, sizeof(*all));
    if (f == NULL || all == NULL)
        mine.status = gi_fail(GIN_ENOMEM, "no memory for the devices of %d ranks", comm->size);
    int st = gi_agree_on(comm, GI_AGREE_NETWORK, 0, 0, 0, mine.status);
    if (st == GIN_OK) {
        if (chooses(comm))
            look(comm, f, &mine);
        st = gi_comm_gather(comm, &mine, all, sizeof(mine));
    }
    if (st == GIN_OK) {
        int rails = number(comm, all);
        if (rails > 0 && mine.nearest != 0)
            take(n, f, all, (uint32_t)rails);
        st = rails < 0 ? rails : GIN_OK;
    }
    free(all);
    free(f);
    return st;
}
