/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gininfo --probe: which path the ranks of a job have to each other, and what the operations cost
 * on it, measured. Of few ranks all pairs, one after another, so that none disturbs another; of
 * more, the first rank of each host with those of the others and with one neighbour, or (-v) all
 * pairs, in rounds in which every rank has one partner. The partner waits for a signal meanwhile.
 * Each operation gets its share of a second; the figure is the median of what fits into it.
 */
#include <stdlib.h>
#include <string.h>
#include <ginshmem.h>
#include "base/clock.h"
#include "comm.h"
#include "lib/tools/gininfo.h"
#include "net_up.h"

#define SECTION    "probe"
#define FEW_PAIRS  28 /* of eight ranks: one after another */
#define ALL_NS     1.2e9
#define MOST_NS    4e7
#define FEWEST     3 /* samples, however long one takes */
#define SAMPLES    10000
#define BATCH_NS   2000.0 /* what a look at the clock is small against */
#define BIG        ((size_t)1 << 20)
#define BIGS       4
#define SIG_ACTION 0u
#define SIG_END    1u

enum what { PUT, WEAK, STRONG, FETCH_ADD, GET, BANDWIDTH, WHATS };
static const char *const names[WHATS] = {"put", "weak", "strong", "fetch-add", "get", "GB/s"};

/* Of one pair, in memory of the heap or of the program. */
struct result {
    int32_t lead, peer; /* lead -1: nothing */
    uint32_t path;
    double value[WHATS]; /* us, GB/s; negative: not to be had */
};

/* A rank as the others need to know it. */
struct whereabouts {
    char class[4], provider[40], devices[80];
};

struct probe {
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    gin_team_t world;
    int rank, size;
    long rounds;
    bool few;
    double slice_ns;
    int *host;   /* by rank */
    int *player; /* ranks that meet each other in rounds */
    int n_players, n_steps;
    char *block; /* BIG bytes to write to, BIG to write from */
    uint64_t block_off;
    char *own; /* BIG bytes outside the heap */
    gin_window_t heap, user;
    uint64_t ended; /* times that somebody led and I followed */
    double *sample; /* SAMPLES */
};

/* ---- who meets whom ---- */

static void find_hosts(struct probe *p)
{
    for (int r = 0; r < p->size; r++) {
        p->host[r] = -1;
        for (int o = 0; o < r && p->host[r] < 0; o++)
            if (strcmp(p->comm->cards[o].host_id, p->comm->cards[r].host_id) == 0)
                p->host[r] = p->host[o];
        if (p->host[r] < 0) {
            p->player[p->n_players] = r; /* the first of its host, in the order of hosts */
            p->host[r] = p->n_players++;
        }
    }
}

static void plan(struct probe *p, bool all)
{
    long pairs = (long)p->size * (p->size - 1) / 2;
    find_hosts(p);
    p->few = pairs <= FEW_PAIRS;
    if (p->few) {
        p->n_steps = (int)pairs;
    } else if (all) {
        p->n_players = p->size;
        for (int r = 0; r < p->size; r++)
            p->player[r] = r;
        p->n_steps = p->size - 1 + p->size % 2;
    } else { /* and a step for neighbours */
        p->n_steps = p->n_players - 1 + p->n_players % 2 + 1;
    }
    p->slice_ns = ALL_NS / p->n_steps / (2 * WHATS);
    p->slice_ns = p->slice_ns < MOST_NS ? p->slice_ns : MOST_NS;
}

/* The second rank of the host of a first one, or the other way round; -1: neither. */
static int neighbour(const struct probe *p)
{
    int first = p->player[p->host[p->rank]], r = first + 1;
    while (r < p->size && p->host[r] != p->host[first])
        r++;
    return r == p->size ? -1 : p->rank == first ? r : p->rank == r ? first : -1;
}

/* My partner in a step, -1: none. */
static int partner(const struct probe *p, int step)
{
    if (p->few) {
        for (int a = 0; a < p->size; a++)
            for (int b = a + 1; b < p->size; b++)
                if (step-- == 0)
                    return p->rank == a ? b : p->rank == b ? a : -1;
        return -1;
    }
    int n = p->n_players + p->n_players % 2, me = 0, other;
    if (n == 0 || step >= n - 1)
        return neighbour(p);
    while (me < p->n_players && p->player[me] != p->rank)
        me++;
    if (me == p->n_players)
        return -1;
    /* the last one stays, the others go round */
    if (me == n - 1)
        other = step;
    else if (me == step)
        other = n - 1;
    else
        other = (2 * step - me + 2 * (n - 1)) % (n - 1);
    return other < p->n_players ? p->player[other] : -1;
}

/* ---- measuring ---- */

static int quiet(const struct probe *p)
{
    return gin_quiet(&p->g, gin_thread());
}

static int put(const struct probe *p, int peer, gin_at_t at, gin_at_t from, size_t bytes,
               gin_action_t action)
{
    return gin_put(&p->g, gin_thread(), p->world, peer, at, from, bytes, action);
}

static int once(struct probe *p, int peer, gin_at_t at, enum what what)
{
    gin_at_t from = gin_at(p->heap, p->block_off + BIG);
    uint64_t old;
    int st = GIN_OK;
    switch (what) {
    case PUT: st = put(p, peer, at, from, 8, gin_no_action()); break;
    case WEAK: st = put(p, peer, at, from, 8, gin_weak_inc(SIG_ACTION)); break;
    case STRONG: st = put(p, peer, at, from, 8, gin_strong_inc(SIG_ACTION)); break;
    case FETCH_ADD: return gin_amo_fetch_add(&p->g, gin_thread(), p->world, peer, at, 1, &old);
    case GET:
        st = gin_get(&p->g, gin_thread(), p->world, peer, at, from, 8);
        return st == GIN_OK ? gin_flush(&p->g, gin_thread()) : st;
    default:
        for (int i = 0; i < BIGS && st == GIN_OK; i++)
            st = put(p, peer, at, from, BIG, gin_no_action());
        break;
    }
    return st == GIN_OK ? quiet(p) : st;
}

static int several(struct probe *p, int peer, gin_at_t at, enum what what, long n, double *ns)
{
    uint64_t began = gi_now_ns();
    int st = GIN_OK;
    for (long i = 0; i < n && st == GIN_OK; i++)
        st = once(p, peer, at, what);
    *ns = (double)(gi_now_ns() - began) / (double)n;
    return st;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first one only brings connections up, and tells how many a look at the clock is worth. */
static int measure(struct probe *p, int peer, gin_at_t at, enum what what, double *value)
{
    long n = 0, batch, most = p->rounds != 0 && p->rounds < SAMPLES ? p->rounds : SAMPLES;
    double ns;
    int st = several(p, peer, at, what, 1, &ns);
    *value = -1;
    if (st == GIN_OK)
        st = several(p, peer, at, what, 2, &ns);
    if (st == GIN_ENOTSUP)
        return GIN_OK;
    batch = ns < BATCH_NS ? (long)(BATCH_NS / (ns + 1)) + 1 : 1;
    uint64_t until = gi_now_ns() + (uint64_t)p->slice_ns;
    while (st == GIN_OK && n < most && (n < FEWEST || p->rounds != 0 || gi_now_ns() < until))
        st = several(p, peer, at, what, batch, &p->sample[n++]);
    if (st != GIN_OK)
        return st;
    qsort(p->sample, (size_t)n, sizeof(*p->sample), by_value);
    ns = p->sample[n / 2];
    *value = what == BANDWIDTH ? (double)(BIG * BIGS) / ns : ns / 1e3;
    return GIN_OK;
}

static int measure_all(struct probe *p, int peer, gin_at_t at, struct result *r)
{
    int st = GIN_OK;
    for (int w = 0; w < WHATS && st == GIN_OK; w++)
        st = measure(p, peer, at, (enum what)w, &r->value[w]);
    return st;
}

/* What I lead; results[1] is of the program's own memory, where its path is another. */
static int pair(struct probe *p, int peer, struct result results[2])
{
    gin_path_t path = gin_window_path(p->comm, p->heap, peer);
    if (path != GIN_PATH_NONE && p->rank > peer)
        return gin_wait_signal(&p->g, gin_thread(), SIG_END, ++p->ended);
    if (p->rank > peer)
        return GIN_OK;
    for (int i = 0; i < 2; i++) {
        results[i].lead = p->rank;
        results[i].peer = peer;
        results[i].path = (uint32_t)(i == 0 ? path : gin_window_path(p->comm, p->user, peer));
        for (int w = 0; w < WHATS; w++)
            results[i].value[w] = -1;
    }
    if (path == GIN_PATH_NONE)
        return GIN_OK;
    int st = measure_all(p, peer, gin_at(p->heap, p->block_off), &results[0]);
    if (st == GIN_OK && results[1].path == GIN_PATH_CMA)
        st = measure_all(p, peer, gin_at(p->user, 0), &results[1]);
    return st == GIN_OK ? gin_signal(&p->g, gin_thread(), p->world, peer, gin_strong_inc(SIG_END))
                        : st;
}

/* ---- telling ---- */

static void my_whereabouts(const struct probe *p, struct whereabouts *w)
{
    const struct gi_net *net = gi_net_of(p->comm);
    const char *means;
    memset(w, 0, sizeof(*w));
    for (uint32_t i = 0; net != NULL && i < net->n_domains; i++) {
        const struct gi_net_caps *c = net->domains[i]->ops->caps(net->domains[i]);
        const char *device = strstr(c->notes, "device: ");
        size_t len = strlen(w->devices);
        device = device != NULL ? device + strlen("device: ") : "?";
        snprintf(w->provider, sizeof(w->provider), "%.39s", c->name);
        snprintf(w->class, sizeof(w->class), "%s", info_class(c, &means));
        snprintf(w->devices + len, sizeof(w->devices) - len, "%s%.*s", i != 0 ? "," : "",
                 (int)strcspn(device, " ,;\n"), device);
    }
}

static const char *path_text(uint32_t path)
{
    return path == GIN_PATH_LSA   ? "LSA"
           : path == GIN_PATH_CMA ? "process_vm"
           : path == GIN_PATH_NET ? "NET"
                                  : "none";
}

static void tell(const struct probe *p, const struct result *r, const struct whereabouts *all)
{
    const struct whereabouts *a = &all[r->lead], *b = &all[r->peer];
    bool net = r->path == GIN_PATH_NET;
    char text[200];
    snprintf(text, sizeof(text), "%d - %d%s", r->lead, r->peer,
             r->path == GIN_PATH_CMA ? " own memory" : "");
    struct info_fact *f = info_add(SECTION, text, INFO_PLAIN, NULL, "%s",
                                   r->path == GIN_PATH_NONE ? gi_net_why(p->comm) : "");
    snprintf(text, sizeof(text), "%d-%d", p->host[r->lead], p->host[r->peer]);
    info_cell(f, "hosts", text);
    info_cell(f, "path", path_text(r->path));
    info_cell(f, "class", net ? a->class : "");
    info_cell(f, "provider", net ? a->provider : "");
    snprintf(text, sizeof(text), "%s%s%s", a->devices,
             strcmp(a->devices, b->devices) != 0 ? " > " : "",
             strcmp(a->devices, b->devices) != 0 ? b->devices : "");
    info_cell(f, "device", net ? text : "");
    for (int w = 0; w < WHATS; w++)
        info_cell_number(f, names[w], r->value[w]);
}

static void tell_rest(const struct probe *p)
{
    info_add(SECTION, "figures", INFO_PLAIN, NULL,
             "us, medians: put of 8 bytes, alone and with a weak or a strong signal, until it is "
             "at the peer (gin_quiet); fetch-add; get of 8 bytes; GB/s of puts of 1 MiB");
    if (!p->few)
        info_add(SECTION, "pairs", INFO_PLAIN, NULL, "%s",
                 p->n_players == p->size
                     ? "many at a time, which share cores and devices"
                     : "the first rank of each host stands for the others; -v measures all");
    info_add(SECTION, "kernels", INFO_UNKNOWN, NULL,
             "not measured: host threads only; ginperf --cuda measures kernels");
}

/* ---- the run ---- */

static int set_up(struct probe *p, bool all)
{
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = 1;
    p->rank = gin_rank(p->comm);
    p->size = gin_size(p->comm);
    p->block = gin_calloc(p->comm, 2, BIG);
    p->own = aligned_alloc(4096, BIG);
    p->sample = malloc(SAMPLES * sizeof(*p->sample));
    p->host = calloc((size_t)p->size, sizeof(int));
    p->player = calloc((size_t)p->size + 1, sizeof(int));
    if (p->block == NULL)
        return gin_last_status();
    if (p->own == NULL || p->sample == NULL || p->host == NULL || p->player == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for %d ranks", p->size);
    memset(p->own, 0, BIG);
    plan(p, all);
    int st = gin_devcomm_create(p->comm, &reqs, &p->dev);
    if (st == GIN_OK)
        st = gin_open(&p->dev, 0, &p->g);
    if (st == GIN_OK)
        st = gin_window_of(p->comm, p->block, &p->heap, &p->block_off);
    if (st == GIN_OK)
        st = gin_window_register(p->comm, p->own, BIG, 0, &p->user);
    p->world = gin_team_world(p->comm);
    return st;
}

static int run(struct probe *p)
{
    struct whereabouts mine, *all = malloc((size_t)p->size * sizeof(*all));
    struct result *results = malloc((size_t)p->size * 2 * sizeof(*results));
    my_whereabouts(p, &mine);
    int st = all != NULL && results != NULL ? gin_comm_allgather(p->comm, &mine, all, sizeof(mine))
                                            : gi_fail(GIN_ENOMEM, "no memory");
    for (int s = 0; s < p->n_steps && st == GIN_OK; s++) {
        struct result two[2] = {{.lead = -1}, {.lead = -1}};
        int peer = partner(p, s);
        if (peer >= 0)
            st = pair(p, peer, two);
        if (st == GIN_OK)
            st = gin_comm_allgather(p->comm, two, results, sizeof(two));
        for (int i = 0; st == GIN_OK && p->rank == 0 && i < 2 * p->size; i++)
            if (results[i].lead >= 0 && (i % 2 == 0 || results[i].path == GIN_PATH_CMA))
                tell(p, &results[i], all);
    }
    if (st == GIN_OK && p->rank == 0)
        tell_rest(p);
    free(results);
    free(all);
    return st;
}

static int tear_down(struct probe *p)
{
    int st = gin_devcomm_destroy(p->comm, &p->dev);
    if (st == GIN_OK)
        st = gin_window_deregister(p->comm, p->user);
    if (st == GIN_OK)
        st = gin_free(p->comm, p->block);
    return st == GIN_OK ? gin_finalize(p->comm) : st;
}

int info_probe(int *rank, long rounds, bool all)
{
    struct probe p = {.rounds = rounds};
    int st = gin_init(NULL, &p.comm);
    if (st != GIN_OK)
        return st;
    *rank = gin_rank(p.comm);
    if (gin_size(p.comm) == 1) {
        info_add(SECTION, "peers", INFO_NO, NULL,
                 "this is a job of one rank: run it as one of several, as by \"ginrun -n 2 gininfo "
                 "--probe\", over the network by \"ginrun -n 2 -H 2 gininfo --probe\"");
        gin_finalize(p.comm);
        return GIN_OK;
    }
    st = set_up(&p, all);
    if (st == GIN_OK)
        st = run(&p);
    if (st == GIN_OK)
        st = tear_down(&p);
    free(p.own);
    free(p.sample);
    free(p.host);
    free(p.player);
    return st;
}
