/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What collectives of host threads take, and what of them crosses between hosts, under ginrun:
 *
 *     ginrun -n 8 -H 2 tests/perf/coll [-k broadcast,sync] [-b 8] [-e 1M] [-f 4] [-t 100ms] [-h]
 *
 * -k which of them, -b -e sizes from and to, in bytes of what a rank passes (of all-to-all: for
 * each rank), -f the factor between them, -t the time for each, -h memory of the heap (else any).
 * Prints per call the time of all ranks' calls one behind another, and messages of all ranks.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ginshmem.h>
#include "base/clock.h"
#include "base/env_parse.h"

enum kind {
    SYNC,
    BROADCAST,
    ALLGATHER,
    GATHER,
    ALLTOALL,
    ALLTOALLV,
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    KINDS
};
static const char *const names[KINDS] = {"sync",           "broadcast", "allgather", "gather",
                                         "alltoall",       "alltoallv", "allreduce", "reduce",
                                         "reduce_scatter", "scan"};

struct run {
    gin_comm_t *comm;
    gin_t g;
    gin_team_t world;
    char *dst, *src;
    gin_at_t to, from;
    size_t *counts;
    uint64_t begin, end, factor, time;
    const char *which;
    bool heap;
};

static int call(struct run *r, enum kind k, size_t n)
{
    gin_group_t me = gin_thread();
    for (int i = 0; i < r->world.size; i++)
        r->counts[i] = n;
    switch (k) {
    case SYNC: return gin_sync(&r->g, me, r->world, 0);
    case BROADCAST: return gin_broadcast(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT, 0);
    case ALLGATHER: return gin_allgather(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT);
    case GATHER: return gin_gather(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT, 0);
    case ALLTOALL: return gin_alltoall(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT);
    case ALLTOALLV:
        return gin_alltoallv(&r->g, me, r->world, 0, r->to, r->counts, NULL, r->from, r->counts,
                             NULL, GIN_FLOAT);
    case ALLREDUCE:
        return gin_allreduce(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT, GIN_SUM);
    case REDUCE:
        return gin_reduce(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT, GIN_SUM, 0);
    case REDUCE_SCATTER:
        return gin_reduce_scatter(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT, GIN_SUM);
    default: return gin_scan(&r->g, me, r->world, 0, r->to, r->from, n, GIN_FLOAT, GIN_SUM);
    }
}

static int fail(const char *what)
{
    fprintf(stderr, "coll: %s: %s\n", what, gin_last_error());
    return 1;
}

static uint64_t sent(const struct run *r)
{
    gin_stats_t s = {.size_of = sizeof(s)};
    return gin_stats(r->comm, &s) == GIN_OK ? s.net_writes + s.net_messages : 0;
}

/* So many calls as fit into the time, the same number on all ranks. */
static int timed(struct run *r, enum kind k, size_t n, int calls, uint64_t *ns, uint64_t *messages)
{
    uint64_t before = sent(r), began;
    int st = gin_comm_barrier(r->comm);
    began = gi_now_ns();
    for (int i = 0; i < calls && st == GIN_OK; i++)
        st = call(r, k, n);
    *ns = gi_now_ns() - began;
    *messages = sent(r) - before;
    return st;
}

/* Over all ranks: the longest time, the sum of messages. */
static int combine(struct run *r, uint64_t *ns, uint64_t *messages)
{
    int st = gin_allreduce(&r->g, gin_thread(), r->world, 1, gin_at_local(ns), gin_at_local(ns), 1,
                           GIN_UINT64, GIN_MAX);
    return st != GIN_OK ? st
                        : gin_allreduce(&r->g, gin_thread(), r->world, 1, gin_at_local(messages),
                                        gin_at_local(messages), 1, GIN_UINT64, GIN_SUM);
}

static int measure(struct run *r, enum kind k, size_t bytes)
{
    uint64_t ns, messages;
    int calls = 4;
    for (;;) {
        if (timed(r, k, bytes / 4, calls, &ns, &messages) != GIN_OK ||
            combine(r, &ns, &messages) != GIN_OK)
            return fail(names[k]);
        if (ns >= r->time || calls > 100000000)
            break;
        uint64_t more = ns < r->time / 20 ? 10 : 1 + r->time / (ns + 1);
        calls *= (int)more;
    }
    if (r->world.rank == 0)
        printf("%-14s %9zu %12.2f us %9.2f messages\n", names[k], bytes, (double)ns / 1e3 / calls,
               (double)messages / calls);
    fflush(stdout);
    return 0;
}

static bool is_asked(const struct run *r, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = r->which; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && (at[n] == 0 || at[n] == ','))
            return true;
    }
    return r->which == NULL;
}

static bool options(struct run *r, int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "k:b:e:f:t:h")) != -1) {
        int st = GIN_OK;
        switch (c) {
        case 'k': r->which = optarg; break;
        case 'b': st = gi_env_parse_number(GI_ENV_SIZE, optarg, 4, 1 << 30, &r->begin); break;
        case 'e': st = gi_env_parse_number(GI_ENV_SIZE, optarg, 4, 1 << 30, &r->end); break;
        case 'f': st = gi_env_parse_number(GI_ENV_COUNT, optarg, 2, 1 << 30, &r->factor); break;
        case 't': st = gi_env_parse_number(GI_ENV_TIME, optarg, 1, INT64_MAX, &r->time); break;
        case 'h': r->heap = true; break;
        default: return false;
        }
        if (st != GIN_OK)
            return fail("options") == 0;
    }
    return true;
}

static int up(struct run *r, gin_devcomm_t *dev)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.collectives = 2;
    if (gin_init(NULL, &r->comm) != GIN_OK || gin_devcomm_create(r->comm, &reqs, dev) != GIN_OK ||
        gin_open(dev, 0, &r->g) != GIN_OK)
        return fail("up");
    r->world = gin_world(&r->g);
    size_t most = r->end * (size_t)r->world.size;
    r->counts = calloc((size_t)r->world.size, sizeof(*r->counts));
    r->dst = r->heap ? gin_calloc(r->comm, 1, most) : calloc(1, most);
    r->src = r->heap ? gin_calloc(r->comm, 1, most) : calloc(1, most);
    if (r->counts == NULL || r->dst == NULL || r->src == NULL)
        return fail("memory");
    r->to = r->heap ? gin_at_ptr(&r->g, r->dst) : gin_at_local(r->dst);
    r->from = r->heap ? gin_at_ptr(&r->g, r->src) : gin_at_local(r->src);
    return 0;
}

int main(int argc, char **argv)
{
    struct run r = {.begin = 8, .end = 1 << 20, .factor = 16, .time = 100000000};
    gin_devcomm_t dev;
    if (!options(&r, argc, argv))
        return 2;
    int st = up(&r, &dev);
    for (int k = 0; k < KINDS && st == 0; k++) {
        if (!is_asked(&r, names[k]))
            continue;
        for (uint64_t n = r.begin; n <= r.end && st == 0; n *= r.factor) {
            st = measure(&r, (enum kind)k, n);
            if (k == SYNC)
                break;
        }
    }
    if (st == 0 && gin_finalize(r.comm) != GIN_OK)
        st = fail("finalize");
    return st;
}
