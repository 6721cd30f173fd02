/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginperf --net: what operations over the network cost between pairs of ranks, each beside what the
 * bare provider does in the same round, between the same two processes; and how many messages they
 * take. The partner waits for a signal meanwhile, so its waiting thread makes the progress that the
 * provider may need; where the text says so it computes, and the library's thread does.
 */
#include <stdlib.h>
#include <string.h>

#include "ginperf.h"

#define MIB       ((size_t)1 << 20)
#define KIB64     ((size_t)1 << 16)
#define MAX_ROUND 100
#define BURST     64
#define DIRECT    "put 8 B until its counter"
#define MANY      "put 8 B, many"
#define END       3u /* signal by which the lead lets its partner go */

void perf_net_check(int st)
{
    if (st == GIN_OK)
        return;
    fprintf(stderr, "ginperf: --net: %s\n", gin_last_error());
    exit(1);
}

/* ---- the loops ---- */

typedef void (*one_fn)(struct perf *p, long i);

static gin_at_t there(const struct perf *p)
{
    return gin_at(p->win, p->heap_off);
}

/* The lead does it, then `last`; the partner waits, driving the network, or computes. */
static double lead(struct perf *p, long iters, one_fn one, one_fn last, bool computes)
{
    perf_net_check(gin_reset_signal(&p->g, END, NULL));
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; p->lead && i < iters; i++)
        one(p, i);
    if (p->lead && last != NULL)
        last(p, 0);
    t = perf_now_ns() - t;
    if (!computes && p->lead)
        perf_net_check(gin_signal(&p->g, gin_thread(), p->world, p->peer, gin_weak_inc(END)));
    if (!computes && !p->lead)
        perf_net_check(gin_wait_signal(&p->g, gin_thread(), END, 1));
    perf_sync(p);
    return t / (double)iters;
}

static double turns(struct perf *p, const gin_t *g, size_t bytes, long iters, gin_action_t action)
{
    perf_net_check(gin_reset_signal(g, 0, NULL));
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 1; i <= iters; i++) {
        if (!p->lead)
            perf_net_check(gin_wait_signal(g, gin_thread(), 0, (uint64_t)i));
        if (bytes == 0)
            perf_net_check(gin_signal(g, gin_thread(), p->world, p->peer, action));
        else
            perf_net_check(gin_put(g, gin_thread(), p->world, p->peer, there(p),
                                   gin_at_local(p->src), bytes, action));
        if (p->lead)
            perf_net_check(gin_wait_signal(g, gin_thread(), 0, (uint64_t)i));
    }
    t = perf_now_ns() - t;
    perf_net_check(gin_quiet(g, gin_thread()));
    perf_sync(p);
    return t / (double)iters / 2;
}

/* ---- operations ---- */

static void put_bytes(struct perf *p, size_t bytes, gin_action_t action)
{
    perf_net_check(gin_put(&p->g, gin_thread(), p->world, p->peer, there(p), gin_at_local(p->src),
                           bytes, action));
}

static void quiet(struct perf *p, long i)
{
    (void)i;
    perf_net_check(gin_quiet(&p->g, gin_thread()));
}

static void put_8(struct perf *p, long i)
{
    (void)i;
    put_bytes(p, 8, gin_no_action());
}

static void put_quiet_8(struct perf *p, long i)
{
    put_8(p, i);
    quiet(p, i);
}

static void put_mib(struct perf *p, long i)
{
    (void)i;
    put_bytes(p, MIB, gin_no_action());
}

static void put_64k(struct perf *p, long i)
{
    (void)i;
    put_bytes(p, KIB64, gin_no_action());
}

/* Memory that is registered, where the network wants that. */
static void put_from_heap(struct perf *p, size_t bytes)
{
    perf_net_check(gin_put(&p->g, gin_thread(), p->world, p->peer, there(p),
                           gin_at(p->win, p->heap_off + p->max_bytes), bytes, gin_no_action()));
}

static void put_mib_heap(struct perf *p, long i)
{
    (void)i;
    put_from_heap(p, MIB);
}

static void put_64k_heap(struct perf *p, long i)
{
    (void)i;
    put_from_heap(p, KIB64);
}

static void get_8(struct perf *p, long i)
{
    (void)i;
    perf_net_check(
        gin_get(&p->g, gin_thread(), p->world, p->peer, there(p), gin_at_local(p->src), 8));
    perf_net_check(gin_flush(&p->g, gin_thread()));
}

static void fetch_add(struct perf *p, long i)
{
    uint64_t old;
    (void)i;
    perf_net_check(gin_amo_fetch_add(&p->g, gin_thread(), p->world, p->peer, there(p), 1, &old));
}

static void burst(struct perf *p, gin_action_t action)
{
    for (int k = 0; k < BURST; k++)
        put_bytes(p, 8, action);
    quiet(p, 0);
}

static void burst_plain(struct perf *p, long i)
{
    (void)i;
    burst(p, gin_no_action());
}

static void burst_weak(struct perf *p, long i)
{
    (void)i;
    burst(p, gin_weak_inc(2));
}

static void burst_strong(struct perf *p, long i)
{
    (void)i;
    burst(p, gin_strong_inc(2));
}

static double barriers(struct perf *p, long n)
{
    perf_sync(p);
    double t = perf_now_ns();
    for (long i = 0; i < n; i++)
        perf_net_check(gin_barrier(&p->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                                   GIN_FENCE_ALL));
    t = perf_now_ns() - t;
    perf_sync(p);
    return t / (double)n;
}

/* ---- the table ---- */

enum unit { US, MOPS, GBPS };

/* The lead alone, while its partner waits or computes; both in turns; both at once. */
enum how { LEAD, AWAY, TURNS, STRONG_TURNS, ENGINE_TURNS, BARRIERS, ELSEWHERE };

static struct row {
    const char *what, *bare; /* bare: in perf_fabric, or in this table; NULL: none */
    one_fn one, last;        /* LEAD, AWAY */
    enum how how;
    double (*run)(struct perf *p, long iters); /* ELSEWHERE */
    enum unit unit;
    size_t bytes;
    long iters, each; /* each: operations in one, 0: 1 */
    int n;
    double ours[MAX_ROUND], ratio[MAX_ROUND], other[MAX_ROUND];
} rows[] = {
#define LATENCY(name, to, kind, calls)                                                 \
    {                                                                                  \
        .what = name, .bare = to, .how = kind, .one = calls, .bytes = 8, .iters = 4000 \
    }
    LATENCY("put 8 B + quiet", "raw_net_put", LEAD, put_quiet_8),
    LATENCY("put 8 B + quiet, partner computes", "raw_net_put", AWAY, put_quiet_8),
    LATENCY("get 8 B", "raw_net_get", LEAD, get_8),
    LATENCY("fetch-add", "raw_net_turn", LEAD, fetch_add),
    LATENCY("put 8 B + weak signal, one way", "raw_net_write", TURNS, NULL),
    LATENCY("the same, of its own messages", "raw_net_signal", TURNS, NULL),
    LATENCY("put 8 B + strong signal, one way", "raw_net_write", STRONG_TURNS, NULL),
    LATENCY("the same by the engine, one way", "raw_net_write", ENGINE_TURNS, NULL),
    {.what = "signal alone, one way", .bare = "raw_net_write", .how = TURNS, .iters = 4000},
    LATENCY("barrier", "raw_net_meet", BARRIERS, NULL),
#undef LATENCY
#define STREAM(name, to, in, size, times, calls)                                           \
    {                                                                                      \
        .what = name, .bare = to, .unit = in, .bytes = size, .iters = times, .one = calls, \
        .last = quiet                                                                      \
    }
    STREAM(MANY, "raw_net_rate", MOPS, 8, 200000, put_8),
    STREAM("put 1 MiB, many", "raw_net_bw", GBPS, MIB, 100, put_mib),
    STREAM("put 1 MiB of the heap, many", "raw_net_bw", GBPS, MIB, 100, put_mib_heap),
    STREAM("put 64 KiB, many", "raw_net_bw", GBPS, KIB64, 1000, put_64k),
    STREAM("put 64 KiB of the heap, many", "raw_net_bw", GBPS, KIB64, 1000, put_64k_heap),
#undef STREAM
#define SOME(name, to, calls)                                                            \
    {                                                                                    \
        .what = name, .bare = to, .unit = MOPS, .bytes = 8, .iters = 1000, .one = calls, \
        .each = BURST                                                                    \
    }
    SOME("64 puts of 8 B + quiet", NULL, burst_plain),
    SOME("64 with weak signals + quiet", "64 puts of 8 B + quiet", burst_weak),
    SOME("64 with strong signals + quiet", "64 puts of 8 B + quiet", burst_strong),
#undef SOME
#define HANDOFF(name, to, in, times, calls)                                                 \
    {                                                                                       \
        .what = name, .bare = to, .how = ELSEWHERE, .unit = in, .bytes = 8, .iters = times, \
        .run = calls                                                                        \
    }
    HANDOFF(DIRECT, NULL, US, 4000, perf_no_handoff),
    HANDOFF("by the engine, waiter drives", DIRECT, US, 4000, perf_handoff_waiter),
    HANDOFF("by the engine, its thread drives", DIRECT, US, 4000, perf_handoff_engine),
    HANDOFF("by the engine, its thread sleeps", DIRECT, US, 4000, perf_handoff_asleep),
    HANDOFF("engine, 1 thread posts", MANY, MOPS, 200000, perf_handoff_rate_1),
    HANDOFF("engine, 2 threads post", MANY, MOPS, 200000, perf_handoff_rate_2),
    HANDOFF("engine, 4 threads post", MANY, MOPS, 200000, perf_handoff_rate_4),
#undef HANDOFF
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static double run(struct perf *p, const struct row *r, long n)
{
    switch (r->how) {
    case TURNS: return turns(p, &p->g, r->bytes, n, gin_weak_inc(0));
    case STRONG_TURNS: return turns(p, &p->g, r->bytes, n, gin_strong_inc(0));
    case ENGINE_TURNS:
        return perf_engine.ctx != NULL ? turns(p, &perf_engine, r->bytes, n, gin_weak_inc(0)) : 0;
    case BARRIERS: return barriers(p, n);
    case ELSEWHERE: return r->run(p, n);
    default: break;
    }
    return lead(p, n, r->one, r->last, r->how == AWAY) / (double)(r->each != 0 ? r->each : 1);
}

static double run_row(struct perf *p, const void *row, long iters)
{
    return run(p, row, iters);
}

static double run_bare(struct perf *p, const void *row, long iters)
{
    const struct row *r = row;
    for (const struct perf_op *o = perf_fabric; o->name != NULL; o++)
        if (strcmp(o->name, r->bare) == 0)
            return o->run(p, r->bytes, iters);
    return 0;
}

static double bare(struct perf *p, const struct row *r, int round, long iters)
{
    double ns = r->bare != NULL ? perf_timed(p, run_bare, r, iters) : 0;
    if (ns > 0)
        return ns;
    for (size_t i = 0; r->bare != NULL && round >= 0 && i < ROWS; i++)
        if (strcmp(rows[i].what, r->bare) == 0)
            return rows[i].ours[round];
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double in_unit(const struct row *r, double ns)
{
    return r->unit == US ? ns / 1e3 : r->unit == MOPS ? 1e3 / ns : (double)r->bytes / ns;
}

static void print(struct row *r)
{
    static const char *const units[] = {"us", "M/s", "GB/s"};
    qsort(r->ours, (size_t)r->n, sizeof(double), compare);
    qsort(r->other, (size_t)r->n, sizeof(double), compare);
    qsort(r->ratio, (size_t)r->n, sizeof(double), compare);
    int low = r->unit == US ? 0 : r->n - 1;
    printf("%-36s %8.2f %-4s (%.2f - %.2f)", r->what, in_unit(r, r->ours[r->n / 2]), units[r->unit],
           in_unit(r, r->ours[low]), in_unit(r, r->ours[r->n - 1 - low]));
    if (r->bare != NULL && r->other[0] > 0)
        printf("  in %.2f (%.2f - %.2f) of the time of %s (%.2f %s)", r->ratio[r->n / 2],
               r->ratio[0], r->ratio[r->n - 1], r->bare, in_unit(r, r->other[r->n / 2]),
               units[r->unit]);
    printf("\n");
}

static void one_round(struct perf *p, int round, long iters)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct row *r = &rows[i];
        long n = iters != 0 ? iters : r->iters;
        n = round < 0 ? n / 10 + 1 : n;
        double ns = perf_timed(p, run_row, r, n);
        double other = ns > 0 ? bare(p, r, round, n) : 0;
        if (round < 0 || ns <= 0)
            continue;
        r->ours[r->n] = ns;
        r->other[r->n] = other;
        r->ratio[r->n++] = other > 0 ? ns / other : 0;
    }
}

/* ---- messages ---- */

static const struct {
    const char *what;
    one_fn one, last;
    long operations, each;
} counted[] = {
    {"put 8 B + quiet", put_quiet_8, NULL, 100, 1},
    {"get 8 B", get_8, NULL, 100, 1},
    {"fetch-add", fetch_add, NULL, 100, 1},
    {"64 puts + quiet", burst_plain, NULL, 100, BURST},
    {"64 puts, weak signals + quiet", burst_weak, NULL, 100, BURST},
    {"64 puts, strong signals + quiet", burst_strong, NULL, 100, BURST},
    {"put 1 MiB", put_mib, quiet, 100, 1},
};

/* Of both ranks of the first pair: sent between the two calls, and the call's own signal. */
static void count_one(struct perf *p, size_t i)
{
    gin_stats_t before = {.size_of = sizeof(before)}, after = {.size_of = sizeof(after)};
    perf_net_check(gin_stats(p->comm, &before));
    lead(p, counted[i].operations, counted[i].one, counted[i].last, false);
    perf_net_check(gin_stats(p->comm, &after));
    double n = (double)(counted[i].operations * counted[i].each);
    double mine[4] = {(double)(after.net_writes - before.net_writes),
                      (double)(after.net_reads - before.net_reads),
                      (double)(after.net_messages - before.net_messages),
                      (double)(after.net_controls - before.net_controls)};
    double *all = malloc((size_t)p->size * sizeof(mine));
    if (all == NULL)
        exit(1);
    perf_net_check(gin_comm_allgather(p->comm, mine, all, sizeof(mine)));
    all[2] -= 1; /* the signal that ends it */
    if (p->rank == 0)
        printf("%-36s %6.3f %6.3f %6.3f %6.3f   %6.3f\n", counted[i].what, all[0] / n, all[1] / n,
               all[2] / n, all[3] / n, (all[4] + all[5] + all[6] + all[7]) / n);
    free(all);
}

static void count_all(struct perf *p)
{
    if (p->rank == 0)
        printf("\n# sent per operation\n%-36s %6s %6s %6s %6s   %s\n", "", "write", "read", "msg",
               "ctrl", "partner");
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
        count_one(p, i);
}

/* ---- the run ---- */

static bool open_engine(struct perf *p, gin_devcomm_t *dev)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.backend = GIN_BACKEND_ENGINE;
    if (gin_devcomm_create(p->comm, &reqs, dev) != GIN_OK) {
        if (p->rank == 0)
            printf("# no engine: %s\n", gin_last_error());
        return false;
    }
    perf_net_check(gin_open(dev, 0, &perf_engine));
    return true;
}

int perf_net_run(struct perf *p, int rounds, long iters)
{
    gin_devcomm_t dev;
    if (p->size % 2 != 0 || p->all || p->peer_heap != NULL) {
        if (p->rank == 0)
            fprintf(stderr, "ginperf: --net: it needs pairs of ranks that only a network joins, "
                            "such as those of \"ginrun -n 2 -H 2\"\n");
        return 1;
    }
    rounds = rounds < MAX_ROUND ? rounds : MAX_ROUND;
    bool by_engine = open_engine(p, &dev), own_core = perf_core_own(p);
    if (p->rank == 0)
        printf("# %d ranks, %d rounds: medians (lowest - highest); ratios of times in a round\n",
               p->size, rounds);
    if (p->rank == 0 && !own_core)
        printf("# fewer cores than ranks: the figures are of cores shared out\n");
    for (int k = -1; k < rounds; k++) {
        one_round(p, k, iters);
        if (p->rank == 0)
            fprintf(stderr, "ginperf: --net: %d of %d rounds are done\n", k + 1, rounds);
    }
    for (size_t i = 0; p->rank == 0 && i < ROWS; i++)
        if (rows[i].n != 0)
            print(&rows[i]);
    if (p->rank == 0 && perf_fabric_shape() != NULL)
        printf("# put 8 B + weak signal is %s\n", perf_fabric_shape());
    count_all(p);
    perf_core_any();
    if (by_engine)
        perf_net_check(gin_devcomm_destroy(p->comm, &dev));
    return 0;
}
