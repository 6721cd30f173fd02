/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as its rank 0 sees it: gin_query() and gin_stats() with the heap up. */
#include <ginshmem.h>
#include "colls.h"
#include "lib/tools/gininfo.h"

static void number(const char *name, uint64_t value, const char *why)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    info_add("job", name, INFO_PLAIN, text, "%s", why);
}

static void tell(gin_comm_t *comm, const gin_caps_t *c)
{
    gin_heap_usage_t heap = {.size_of = sizeof(heap)};
    gin_stats_t stats = {.size_of = sizeof(stats)};
    char text[32];
    info_add("job", "bootstrap", INFO_PLAIN, c->bootstrap, "%s", "");
    number("ranks", (uint64_t)c->n_ranks, "");
    number("hosts", (uint64_t)c->n_hosts, "");
    info_add("job", "my host", INFO_PLAIN, c->host_id, "rank %d of %d there", c->node_rank,
             c->node_size);
    number("LSA teams", (uint64_t)c->n_lsa_teams, "");
    number("my LSA team", (uint64_t)c->lsa_size, "ranks that load and store each other's heap");
    if (gin_heap_usage(comm, GIN_KIND_HOST, &heap) == GIN_OK)
        info_add("job", "heap", INFO_PLAIN, info_bytes(heap.size, text, sizeof(text)), "%s",
                 heap.backing);
    if (gin_stats(comm, &stats) == GIN_OK)
        info_add("job", "mapped", INFO_PLAIN, info_bytes(stats.mapped, text, sizeof(text)),
                 "address space of this process");
    for (int i = 0; i < GIN_CAPS; i++)
        info_add("capabilities", gin_cap_name((gin_cap_t)i),
                 c->cap[i].have > 0    ? INFO_YES
                 : c->cap[i].have == 0 ? INFO_NO
                                       : INFO_UNKNOWN,
                 NULL, "%s", c->cap[i].reason);
}

/* By which way a collective goes, and from which size on by another one. */
static bool tell_ways(const gin_t *g, unsigned kind)
{
    char text[32], rest[160] = "";
    const char *call, *last = NULL, *way;
    size_t at = 0;
    for (uint64_t bytes = 8; bytes <= 64u << 20; bytes *= 2) {
        way = gi_colls_way(g, gin_world(g), kind, bytes, &call);
        if (way == NULL)
            return false;
        if (last == NULL)
            info_add("collectives", call, INFO_PLAIN, way, "%s", "");
        else if (way != last && at < sizeof(rest))
            at += (size_t)snprintf(rest + at, sizeof(rest) - at, "%s%s: %s", at != 0 ? ", " : "",
                                   info_bytes(bytes, text, sizeof(text)), way);
        last = way;
    }
    if (at != 0)
        info_add("collectives", call, INFO_PLAIN, "from", "%s", rest);
    return true;
}

/* Of the world, on a device communicator as it is by default. All ranks. */
static void ways(gin_comm_t *comm, int rank)
{
    gin_devcomm_t dev;
    gin_t g;
    if (gin_devcomm_create(comm, NULL, &dev) != GIN_OK) {
        if (rank == 0)
            info_add("collectives", "none", INFO_PLAIN, NULL, "%s", gin_last_error());
        return;
    }
    if (rank == 0 && gin_open(&dev, 0, &g) == GIN_OK)
        for (unsigned kind = 0; tell_ways(&g, kind); kind++)
            ;
    gin_devcomm_destroy(comm, &dev);
}

int info_job(int *rank)
{
    gin_comm_t *comm;
    gin_caps_t caps = {.size = sizeof(caps)};
    int st = gin_init(NULL, &comm);
    if (st != GIN_OK)
        return st;
    *rank = gin_rank(comm);
    /* whether or not the heap comes up, the reasons are what is asked for */
    if (gin_team_lsa(comm).size == 0)
        fprintf(stderr, "gininfo: rank %d: the heap does not come up: %s\n", *rank,
                gin_last_error());
    st = gin_query(comm, &caps);
    if (st == GIN_OK && *rank == 0)
        tell(comm, &caps);
    ways(comm, *rank);
    int left = gin_finalize(comm);
    return st != GIN_OK ? st : left;
}
