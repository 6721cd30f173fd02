/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be done here and why not, per communicator; counts of what there is. A capability that
 * depends on memory and peers is "not known" (-1) before the heap is up: asking brings nothing up.
 */
#include <stdarg.h>
#include <string.h>
#include "colls.h"
#include "cuda_up.h"
#include "net_ops.h"
#include "net_up.h"
#include "devcomm.h"
#include "engine.h"
#include "multimem.h"
#include "cuda/multicast.h"

static const char *const names[GIN_CAPS] = {"lsa",      "cma",        "net",    "cuda",
                                            "multimem", "engine",     "gda",    "hugepages",
                                            "shrink",   "peer-death", "gpu-net"};

const char *gin_cap_name(gin_cap_t cap)
{
    return (unsigned)cap < GIN_CAPS ? names[cap] : "?";
}

static void set(gin_caps_t *c, gin_cap_t cap, int have, const char *fmt, ...) GIN_PRINTF(4, 5);
static void set(gin_caps_t *c, gin_cap_t cap, int have, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    c->cap[cap].have = have;
    vsnprintf(c->cap[cap].reason, sizeof(c->cap[cap].reason), fmt, ap);
    va_end(ap);
}

/* Ranks on my host but me. */
static int neighbours(const gin_comm_t *comm)
{
    return comm->node_size - 1;
}

static void lsa(const gin_comm_t *comm, gin_caps_t *c)
{
    if (!comm->cards[comm->rank].lsa)
        set(c, GIN_CAP_LSA, 0, "GINSHMEM_DISABLE_LSA=1");
    else if (neighbours(comm) == 0)
        set(c, GIN_CAP_LSA, 0, "no other rank is on this host (%s)",
            comm->cards[comm->rank].host_id);
    else if (!comm->up)
        set(c, GIN_CAP_LSA, -1, "proven when the heap comes up; %d other rank(s) on this host",
            neighbours(comm));
    else if (comm->shm->lsa_size == 1)
        set(c, GIN_CAP_LSA, 0, "none of the %d other rank(s) on this host could be mapped",
            neighbours(comm));
    else
        set(c, GIN_CAP_LSA, 1, "%d of %d other rank(s) on this host mapped, token read back",
            comm->shm->lsa_size - 1, neighbours(comm));
}

static void cma(const gin_comm_t *comm, gin_caps_t *c)
{
    int n = 0;
    if (comm->env.disable_cma) {
        set(c, GIN_CAP_CMA, 0, "GINSHMEM_DISABLE_CMA=1");
        return;
    }
    if (neighbours(comm) == 0) {
        set(c, GIN_CAP_CMA, 0, "no other rank is on this host");
        return;
    }
    if (!comm->up) {
        set(c, GIN_CAP_CMA, -1, "probed when the heap comes up");
        return;
    }
    for (int r = 0; r < comm->size; r++)
        n += r != comm->rank && !gi_is_elsewhere(comm, r) && comm->shm->cma[r] != 0;
    if (n > 0)
        set(c, GIN_CAP_CMA, 1, "process_vm_readv/writev work with %d other rank(s)", n);
    else
        set(c, GIN_CAP_CMA, 0, "%s",
            comm->shm->cma_reason[0] != 0 ? comm->shm->cma_reason : "the probe failed");
}

static void hugepages(const gin_comm_t *comm, gin_caps_t *c)
{
    if (comm->up)
        set(c, GIN_CAP_HUGEPAGES, comm->segment->huge, "%s", comm->segment->backing);
    else if (strcmp(comm->env.hugepages, "no") == 0)
        set(c, GIN_CAP_HUGEPAGES, 0, "not asked for: GINSHMEM_HUGEPAGES=no");
    else
        set(c, GIN_CAP_HUGEPAGES, -1, "tried when the heap comes up: GINSHMEM_HUGEPAGES=%s",
            comm->env.hugepages);
}

static void peer_death(const gin_comm_t *comm, gin_caps_t *c)
{
    const char *far = comm->n_hosts == 1 ? ""
                      : comm->net != NULL
                          ? "; other hosts by beats over TCP and the network's answers"
                          : "; other hosts are not watched: there is no network";
    if (comm->size == 1)
        set(c, GIN_CAP_PEER_DEATH, 1, "there is no peer");
    else if (!comm->up)
        set(c, GIN_CAP_PEER_DEATH, -1, "peers are watched from when the heap is up");
    else if (neighbours(comm) == 0)
        set(c, GIN_CAP_PEER_DEATH, comm->net != NULL, "no other rank on this host%s", far);
    else
        set(c, GIN_CAP_PEER_DEATH, 1,
            "pidfds of this host's processes and the ranks' abort words%s", far);
}

static void net(const gin_comm_t *comm, gin_caps_t *c)
{
    if (comm->net != NULL)
        set(c, GIN_CAP_NET, 1, "%s", comm->net->how);
    else if (comm->net_why[0] != 0)
        set(c, GIN_CAP_NET, 0, "%s", comm->net_why);
    else if (comm->up || comm->size == 1)
        set(c, GIN_CAP_NET, 0, "not opened: every rank is load/store accessible");
    else
        set(c, GIN_CAP_NET, -1,
            "opened when the heap comes up, if a rank is not load/store accessible");
}

static void not_built(gin_caps_t *c)
{
    set(c, GIN_CAP_GDA, 0, "not built yet");
    set(c, GIN_CAP_SHRINK, 0, "not built yet: gin_comm_shrink() answers GIN_ENOTSUP");
}

static void cuda(const gin_comm_t *comm, gin_caps_t *c)
{
    const char *slow = gi_windows_why_slow(comm);
    if (comm->cuda != NULL && comm->cuda->gpu != NULL)
        set(c, GIN_CAP_CUDA, 1, "GPU %d (%.40s), %s context; %d of %d ranks have a GPU%s%s%s%s",
            comm->cuda->gpu->device, comm->cuda->gpu->name,
            comm->cuda->gpu->retained ? "its primary" : "the program's", comm->cuda->n_gpus,
            comm->size,
            comm->cuda->fabric               ? "; fabric handles"
            : comm->cuda->fabric_why[0] != 0 ? "; no fabric handles: "
                                             : "",
            comm->cuda->fabric_why, slow[0] != 0 ? "; a window is not direct: " : "", slow);
    else if (comm->cuda_why[0] != 0)
        set(c, GIN_CAP_CUDA, 0, "%s", comm->cuda_why);
    else if (!GI_HAVE_CUDA)
        set(c, GIN_CAP_CUDA, 0, "this library was built without CUDA (configure found no nvcc)");
    else
        set(c, GIN_CAP_CUDA, -1,
            "a GPU is looked for with the first call for GPU memory or kernels");
}

/* Those of kernels and those of host threads that leave the network to others. */
static void engine(const gin_comm_t *comm, gin_caps_t *c)
{
    const struct gi_net *net = gi_net_of(comm);
    char hosts[80], kernels[160];
    int have = net != NULL || (comm->cuda != NULL && comm->cuda->engine != NULL) ? 1 : -1;
    if (net != NULL)
        snprintf(hosts, sizeof(hosts),
                 "host threads: carried to the network by %u thread%s of the library",
                 net->n_drivers, net->n_drivers == 1 ? "" : "s");
    else if (comm->net_why[0] != 0)
        snprintf(hosts, sizeof(hosts), "host threads: no, without a network");
    else
        snprintf(hosts, sizeof(hosts), "host threads: where a network is opened, and none is");
    if (comm->cuda != NULL && comm->cuda->engine != NULL)
        snprintf(kernels, sizeof(kernels), "kernels: by the copy engine");
    else if (c->cap[GIN_CAP_CUDA].have == 0 || (comm->cuda != NULL && comm->cuda->gpu == NULL))
        snprintf(kernels, sizeof(kernels), "kernels: no, %.80s",
                 comm->cuda != NULL ? comm->cuda_why : c->cap[GIN_CAP_CUDA].reason);
    else
        snprintf(kernels, sizeof(kernels), "kernels: with their first device communicator");
    if (have != 1 && comm->net_why[0] != 0 && strncmp(kernels, "kernels: no", 11) == 0)
        have = 0;
    set(c, GIN_CAP_ENGINE, have, "%s; %s", hosts, kernels);
}

static void multimem(const gin_comm_t *comm, gin_caps_t *c)
{
    char why[160];
    const char *off = gi_multimem_off(comm);
    const struct gi_devcomm *d = comm->devcomms;
    while (d != NULL && d->multimem == NULL)
        d = d->next;
    if (off != NULL)
        set(c, GIN_CAP_MULTIMEM, 0, "switched off: %s", off);
    else if (d != NULL)
        set(c, GIN_CAP_MULTIMEM, 1, "multicast over %d GPUs, made for a device communicator",
            comm->shm->lsa_size);
    else if (comm->cuda == NULL && c->cap[GIN_CAP_CUDA].have == 0)
        set(c, GIN_CAP_MULTIMEM, 0, "no GPU: %.140s", c->cap[GIN_CAP_CUDA].reason);
    else if (comm->cuda == NULL)
        set(c, GIN_CAP_MULTIMEM, -1, "looked for once there is a GPU");
    else if (comm->cuda->gpu == NULL)
        set(c, GIN_CAP_MULTIMEM, 0, "no GPU: %.140s", comm->cuda_why);
    else if (comm->shm->lsa_size < 2)
        set(c, GIN_CAP_MULTIMEM, 0, "no other rank is load/store accessible");
    else if (!gi_gpu_multicast_can(comm->cuda->gpu, why, sizeof(why)))
        set(c, GIN_CAP_MULTIMEM, 0, "%s", why);
    else
        set(c, GIN_CAP_MULTIMEM, -1, "made for the device communicator that asks (reqs.multimem)");
}

/* By which way, and why by no better one. */
static void gpu_net(const gin_comm_t *comm, gin_caps_t *c)
{
    const struct gi_net *n = gi_net_of(comm);
    if (c->cap[GIN_CAP_NET].have == 0)
        set(c, GIN_CAP_GPU_NET, 0, "no network");
    else if (c->cap[GIN_CAP_CUDA].have == 0)
        set(c, GIN_CAP_GPU_NET, 0, "no GPU: %.140s", c->cap[GIN_CAP_CUDA].reason);
    else if (n == NULL || comm->cuda == NULL)
        set(c, GIN_CAP_GPU_NET, -1, "tried when the network comes up: GINSHMEM_GPU_NET=%s",
            comm->env.gpu_net);
    else if (comm->cuda->gpu == NULL)
        set(c, GIN_CAP_GPU_NET, 0, "this rank has no GPU: %.120s", comm->cuda_why);
    else if (n->stage == NULL || !gi_core_stages(n->core))
        set(c, GIN_CAP_GPU_NET, 0, "no memory to stage it by");
    else
        set(c, GIN_CAP_GPU_NET, 1, "%s%.134s",
            n->gpu.way != GI_NET_GPU_STAGE ? ""
            : gi_net_stage_by_cpu(n)       ? "staged through the host, GDRCopy for few bytes: "
                                           : "staged through the host: ",
            n->gpu.why);
}

static uint64_t live_devcomms(const gin_comm_t *comm)
{
    uint64_t n = 0;
    for (const struct gi_devcomm *d = comm->devcomms; d != NULL; d = d->next)
        n++;
    return n;
}

int gin_query(gin_comm_t *comm, gin_caps_t *caps)
{
    static const char call[] = "gin_query";
    gin_caps_t c;
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK)
        return st;
    if (caps == NULL || caps->size < offsetof(gin_caps_t, lsa_rank))
        return gi_fail(GIN_EINVAL, "%s: %s", call,
                       caps == NULL ? "caps is NULL" : "set caps->size to sizeof(*caps) first");
    memset(&c, 0, sizeof(c));
    c.size = caps->size < sizeof(c) ? caps->size : sizeof(c);
    c.version = GIN_VERSION;
    c.rank = comm->rank;
    c.n_ranks = comm->size;
    c.lsa_rank = comm->up ? comm->shm->lsa_rank : -1;
    c.lsa_size = comm->up ? comm->shm->lsa_size : 0;
    c.n_lsa_teams = comm->up ? comm->shm->n_teams : 0;
    c.node_rank = comm->node.rank;
    c.node_size = comm->node_size;
    c.n_hosts = comm->n_hosts;
    snprintf(c.host_id, sizeof(c.host_id), "%s", comm->cards[comm->rank].host_id);
    snprintf(c.bootstrap, sizeof(c.bootstrap), "%s", comm->boot->origin);
    not_built(&c);
    net(comm, &c);
    lsa(comm, &c);
    cma(comm, &c);
    hugepages(comm, &c);
    cuda(comm, &c);
    engine(comm, &c);
    multimem(comm, &c);
    gpu_net(comm, &c);
    peer_death(comm, &c);
    memcpy(caps, &c, c.size);
    return GIN_OK;
}

int gin_stats(gin_comm_t *comm, gin_stats_t *stats)
{
    static const char call[] = "gin_stats";
    int st = gi_comm_enter(comm, call);
    if (st != GIN_OK)
        return st;
    if (stats == NULL || stats->size_of < 2 * sizeof(uint64_t))
        return gi_fail(GIN_EINVAL, "%s: stats is NULL, or stats->size_of is not its size", call);
    gin_stats_t s = {
        .size_of = stats->size_of < sizeof(s) ? stats->size_of : sizeof(s),
        .teams = gi_teams_live(comm),
        .devcomms = live_devcomms(comm),
        .mapped = comm->up ? comm->shm->mapped : 0,
        .agreements = atomic_load_explicit(&comm->n_agreements, memory_order_relaxed),
        .waits = atomic_load_explicit(&comm->n_waits, memory_order_relaxed),
        .cma_calls = atomic_load_explicit(&comm->n_cma, memory_order_relaxed),
        .boot_rounds = atomic_load_explicit(&comm->boot->rounds, memory_order_relaxed),
        .boot_bytes = atomic_load_explicit(&comm->boot->bytes, memory_order_relaxed),
    };
    gi_windows_count(comm, &s.windows, &s.registrations);
    gi_net_count(comm, &s);
    for (const struct gi_devcomm *d = comm->devcomms; d != NULL; d = d->next)
        gi_colls_count(d->colls, &s);
    gi_engine_count(comm, &s);
    memcpy(stats, &s, s.size_of);
    return GIN_OK;
}
