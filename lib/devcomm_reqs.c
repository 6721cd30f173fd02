/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device communicator may be asked for, and what this version cannot do. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "devcomm.h"

#define MAX_CONTEXTS 1024u
#define MAX_IDS      (1u << 20)
#define MAX_BARRIERS 65536u
#define MAX_TEAMS    4096u
#define MAX_COLLS    4096u
#define ALL_PATHS    (GIN_PATH_SELF | GIN_PATH_LSA | GIN_PATH_CMA | GIN_PATH_NET)

void gin_devcomm_reqs_init(gin_devcomm_reqs_t *reqs)
{
    if (reqs == NULL)
        return;
    memset(reqs, 0, sizeof(*reqs));
    reqs->size = sizeof(*reqs);
    reqs->version = GIN_VERSION;
    reqs->contexts = 4;
    reqs->signals = reqs->counters = 64;
    reqs->world_barriers = reqs->lsa_barriers = reqs->rail_barriers = reqs->hybrid_barriers = 1;
    reqs->strong = reqs->va = 1;
    reqs->collectives = 1;
    reqs->traffic_class = -1;
}

/* ---- what was asked for ---- */

static int too_many(const char *what, uint64_t value, uint64_t min, uint64_t max)
{
    return gi_fail(GIN_ERANGE,
                   "gin_devcomm_create: %s is %" PRIu64 ", it must lie in %" PRIu64 " .. %" PRIu64,
                   what, value, min, max);
}

static int check_numbers(const gin_devcomm_reqs_t *r)
{
    if (r->contexts < 1 || r->contexts > MAX_CONTEXTS)
        return too_many("contexts", r->contexts, 1, MAX_CONTEXTS);
    if (r->signals > MAX_IDS)
        return too_many("signals", r->signals, 0, MAX_IDS);
    if (r->counters > MAX_IDS)
        return too_many("counters", r->counters, 0, MAX_IDS);
    if (r->world_barriers > MAX_BARRIERS)
        return too_many("world_barriers", r->world_barriers, 0, MAX_BARRIERS);
    if (r->lsa_barriers > MAX_BARRIERS)
        return too_many("lsa_barriers", r->lsa_barriers, 0, MAX_BARRIERS);
    if (r->rail_barriers > MAX_BARRIERS)
        return too_many("rail_barriers", r->rail_barriers, 0, MAX_BARRIERS);
    if (r->hybrid_barriers > MAX_BARRIERS)
        return too_many("hybrid_barriers", r->hybrid_barriers, 0, MAX_BARRIERS);
    if (r->n_team_barriers > MAX_TEAMS)
        return too_many("n_team_barriers", r->n_team_barriers, 0, MAX_TEAMS);
    for (uint32_t i = 0; i < r->n_team_barriers; i++)
        if (r->team_barriers[i].count > MAX_BARRIERS)
            return too_many("team_barriers[].count", r->team_barriers[i].count, 0, MAX_BARRIERS);
    if (r->scratch > (uint64_t)1 << 56)
        return too_many("scratch", r->scratch, 0, (uint64_t)1 << 56);
    if (r->connection > GIN_CONNECT_NONE)
        return too_many("connection", r->connection, 0, GIN_CONNECT_NONE);
    if (r->paths > ALL_PATHS)
        return too_many("paths", r->paths, 0, ALL_PATHS);
    if (r->device > GIN_DEVICE_CUDA)
        return too_many("device", r->device, 0, GIN_DEVICE_CUDA);
    if (r->backend > GIN_BACKEND_GDA)
        return too_many("backend", r->backend, 0, GIN_BACKEND_GDA);
    int32_t tc = r->traffic_class;
    if (tc < GIN_TC_DEFAULT || tc > GIN_TC_DSCP + 63 ||
        (tc > GIN_TC_NETWORK_CTRL && tc < GIN_TC_DSCP))
        return gi_fail(GIN_ERANGE,
                       "gin_devcomm_create: traffic_class is %" PRId32
                       ", it must be a GIN_TC_ constant or gin_tc_dscp() of 0 .. 63",
                       tc);
    if (r->multimem > GIN_MULTIMEM_WISHED)
        return too_many("multimem", r->multimem, 0, GIN_MULTIMEM_WISHED);
    if (r->strategy > GIN_STRATEGY_EPOCH)
        return too_many("strategy", r->strategy, 0, GIN_STRATEGY_EPOCH);
    if (r->collectives > MAX_COLLS)
        return too_many("collectives", r->collectives, 0, MAX_COLLS);
    if (r->collective_scratch > (uint64_t)1 << 40)
        return too_many("collective_scratch", r->collective_scratch, 0, (uint64_t)1 << 40);
    return GIN_OK;
}

/* What this version cannot do, by name and with the reason. */
static int check_features(const gin_devcomm_reqs_t *r)
{
    if (r->backend == GIN_BACKEND_GDA)
        return gi_fail(GIN_ENOTSUP, "gin_devcomm_create: backend GDA is not built; use AUTO");
    if (r->multimem == GIN_MULTIMEM_NEEDED && r->device == GIN_DEVICE_HOST)
        return gi_fail(GIN_ENOTSUP,
                       "gin_devcomm_create: multimem: host memory has no multicast addresses");
    if (r->paths != 0 && (r->paths & GIN_PATH_LSA) == 0 && r->device == GIN_DEVICE_CUDA &&
        r->backend == GIN_BACKEND_DIRECT)
        return gi_fail(GIN_ENOTSUP,
                       "gin_devcomm_create: paths 0x%x leave out load/store access, and kernels "
                       "reach the network through the engine only, which GIN_BACKEND_DIRECT leaves "
                       "out; use AUTO",
                       r->paths);
    return GIN_OK;
}

int gi_devcomm_reqs_adopt(const gin_devcomm_reqs_t *given, gin_devcomm_reqs_t *r)
{
    gin_devcomm_reqs_init(r);
    if (given == NULL)
        return GIN_OK;
    if (given->size < offsetof(gin_devcomm_reqs_t, connection) || given->size > 4096)
        return gi_fail(GIN_EINVAL,
                       "gin_devcomm_create: reqs->size is %zu, this library knows %zu; initialise "
                       "the requirements with gin_devcomm_reqs_init()",
                       given->size, sizeof(*r));
    memcpy(r, given, given->size < sizeof(*r) ? given->size : sizeof(*r));
    if (r->n_team_barriers != 0 && r->team_barriers == NULL)
        return gi_fail(GIN_EINVAL, "gin_devcomm_create: team_barriers is NULL with %u teams",
                       r->n_team_barriers);
    int st = check_numbers(r);
    return st == GIN_OK ? check_features(r) : st;
}
