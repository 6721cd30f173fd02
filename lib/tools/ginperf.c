/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginperf(1): latency, bandwidth and rate of every operation between ranks, with the bare limits of
 * the machine beside them. Run it under a launcher: "ginrun -n 2 ginperf --raw".
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ginperf.h"

#define MAX_SIZES 64
#define MAX_ROWS  4096

struct options {
    const char *ops; /* comma-separated, or "all" */
    size_t sizes[MAX_SIZES];
    int n_sizes;
    bool all, raw, cuda, net, scaling;
    long iters; /* 0: by size */
    int rounds;
    const char *format; /* NULL: table */
};

double perf_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void perf_sync(struct perf *p)
{
    if (gin_comm_barrier(p->comm) == GIN_OK)
        return;
    fprintf(stderr, "ginperf: rank %d: %s\n", p->rank, gin_last_error());
    exit(1);
}

long perf_iters(long at8, size_t bytes)
{
    double cost = 1.0 + (double)bytes / 2000.0;
    long n = (long)((double)at8 / cost);
    return n < 20 ? 20 : n;
}

/* ---- command line ---- */

static void usage(FILE *f)
{
    fprintf(
        f,
        "usage: ginrun -n RANKS ginperf [options]\n"
        "  --op LIST        operations by name, comma-separated, or all (default)\n"
        "  --sizes LIST     bytes, comma-separated, or MIN:MAX by doubling (default\n"
        "                   8,64,4096,65536,1048576)\n"
        "  --pairs          even ranks act on their odd neighbour (default)\n"
        "  --all            every rank acts on its right neighbour at once\n"
        "  --raw            measure the bare limits of the machine in the same run\n"
        "  --cuda           operations in kernels, between pairs of ranks with a GPU each,\n"
        "                   beside the limits of the hardware; only --rounds counts\n"
        "  --net            what goes over the network between pairs of ranks, each figure\n"
        "                   beside the bare provider's; only --rounds and --iters count\n"
        "  --scaling        time, memory and exchanges of bring-up, windows and first contacts,\n"
        "                   as one line for tests/perf/scaling.sh\n"
        "  --iters N        repetitions per measurement (default: by size)\n"
        "  --rounds R       measurements per figure; the median is reported (default 5)\n"
        "  --format F       table (default), csv or json\n"
        "  --list           list the operations\n"
        "  --help, -h, --version, -V\n");
}

static void list_ops(void)
{
    for (const struct perf_op *o = perf_ops; o->name != NULL; o++)
        printf("%-16s %s\n", o->name, o->what);
    for (const struct perf_op *o = perf_raw; o->name != NULL; o++)
        printf("%-16s %s (with --raw)\n", o->name, o->what);
    for (const struct perf_op *o = perf_fabric; o->name != NULL; o++)
        printf("%-16s %s (with --raw)\n", o->name, o->what);
}

static bool number(const char *text, char **end, unsigned long long *v)
{
    errno = 0;
    *v = strtoull(text, end, 10);
    return *end != text && errno == 0 && text[0] >= '0' && text[0] <= '9';
}

static bool sizes_parse(const char *text, struct options *o)
{
    unsigned long long a, b;
    char *end;
    o->n_sizes = 0;
    if (!number(text, &end, &a))
        return false;
    if (*end == ':') {
        if (!number(end + 1, &end, &b) || *end != '\0' || a == 0 || b < a)
            return false;
        for (; a <= b && o->n_sizes < MAX_SIZES; a *= 2)
            o->sizes[o->n_sizes++] = (size_t)a;
        return true;
    }
    for (;;) {
        if (o->n_sizes == MAX_SIZES || a == 0 || a > (1ull << 40))
            return false;
        o->sizes[o->n_sizes++] = (size_t)a;
        if (*end == '\0')
            return true;
        if (*end != ',' || !number(end + 1, &end, &a))
            return false;
    }
}

/* Is `name` in a comma-separated list? */
static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    if (strcmp(list, "all") == 0)
        return true;
    for (const char *s = list; s != NULL; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        if (strncmp(s, name, n) == 0 && (s[n] == ',' || s[n] == '\0'))
            return true;
    return false;
}

/* Every word of the list must be an operation. */
static bool ops_known(const char *list)
{
    char word[64];
    if (strcmp(list, "all") == 0)
        return true;
    for (const char *s = list; s != NULL; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
        bool known = false;
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(s, ","), s);
        for (const struct perf_op *o = perf_ops; o->name != NULL; o++)
            known |= strcmp(o->name, word) == 0;
        for (const struct perf_op *o = perf_raw; o->name != NULL; o++)
            known |= strcmp(o->name, word) == 0;
        for (const struct perf_op *o = perf_fabric; o->name != NULL; o++)
            known |= strcmp(o->name, word) == 0;
        if (!known) {
            fprintf(stderr, "ginperf: no operation is called '%s'; --list shows them\n", word);
            return false;
        }
    }
    return true;
}

static int bad(const char *option, const char *value)
{
    fprintf(stderr, "ginperf: %s '%s' cannot be understood; see ginperf --help\n", option, value);
    return 2;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
    enum {
        OP = 256,
        SIZES,
        PAIRS,
        ALL,
        RAW,
        CUDA,
        NET,
        SCALING,
        ITERS,
        ROUNDS,
        FORMAT,
        LIST,
        HELP,
        VERSION
    };
    static const struct option longs[] = {
        {"op", 1, NULL, OP},         {"sizes", 1, NULL, SIZES},     {"pairs", 0, NULL, PAIRS},
        {"all", 0, NULL, ALL},       {"raw", 0, NULL, RAW},         {"cuda", 0, NULL, CUDA},
        {"net", 0, NULL, NET},       {"scaling", 0, NULL, SCALING}, {"iters", 1, NULL, ITERS},
        {"rounds", 1, NULL, ROUNDS}, {"format", 1, NULL, FORMAT},   {"list", 0, NULL, LIST},
        {"help", 0, NULL, HELP},     {"version", 0, NULL, VERSION}, {NULL, 0, NULL, 0}};
    static char name[] = "ginperf"; /* in getopt's messages, too, whatever runs this */
    unsigned long long v;
    char *end;
    int c;
    if (argc > 0)
        argv[0] = name;
    while ((c = getopt_long(argc, argv, "hV", longs, NULL)) != -1) {
        switch (c) {
        case OP: o->ops = optarg; break;
        case SIZES:
            if (!sizes_parse(optarg, o))
                return bad("--sizes", optarg);
            break;
        case PAIRS: o->all = false; break;
        case ALL: o->all = true; break;
        case RAW: o->raw = true; break;
        case CUDA: o->cuda = true; break;
        case NET: o->net = true; break;
        case SCALING: o->scaling = true; break;
        case ITERS:
            if (!number(optarg, &end, &v) || *end != '\0' || v < 1 || v > 1000000000)
                return bad("--iters", optarg);
            o->iters = (long)v;
            break;
        case ROUNDS:
            if (!number(optarg, &end, &v) || *end != '\0' || v < 1 || v > 1000)
                return bad("--rounds", optarg);
            o->rounds = (int)v;
            break;
        case FORMAT:
            o->format = optarg;
            if (!listed("table,csv,json", optarg))
                return bad("--format", optarg);
            break;
        case LIST: list_ops(); return 0;
        case 'V':
        case VERSION:
            printf("ginperf (ginshmem) %d.%d.%d\n", gin_version() / 10000,
                   gin_version() / 100 % 100, gin_version() % 100);
            return 0;
        case 'h':
        case HELP: usage(stdout); return 0;
        default: fprintf(stderr, "ginperf: see ginperf --help\n"); return 2;
        }
    }
    if (o->cuda + o->net + o->scaling > 1) {
        fprintf(stderr, "ginperf: --cuda, --net and --scaling are runs of their own; choose one\n");
        return 2;
    }
    if (o->format != NULL && o->cuda + o->net + o->scaling != 0) {
        fprintf(stderr, "ginperf: %s prints in one way only, without --format\n",
                o->cuda  ? "--cuda"
                : o->net ? "--net"
                         : "--scaling");
        return 2;
    }
    if (o->format == NULL)
        o->format = "table";
    if (!GI_HAVE_JANSSON && strcmp(o->format, "json") == 0) {
        fprintf(stderr, "ginperf: this build has no JSON: configure did not find jansson\n");
        return 2;
    }
    if (optind < argc)
        return bad("argument", argv[optind]);
    return ops_known(o->ops) ? -1 : 2;
}

/* ---- the run ---- */

static int fail(const char *what)
{
    fprintf(stderr, "ginperf: %s: %s\n", what, gin_last_error());
    return 1;
}

static int set_up(struct perf *p, const struct options *o)
{
    p->max_bytes = 4096;
    for (int i = 0; i < o->n_sizes; i++)
        if (o->sizes[i] > p->max_bytes)
            p->max_bytes = o->sizes[i];
    p->rank = gin_rank(p->comm);
    p->size = gin_size(p->comm);
    p->all = o->all;
    if (o->all) {
        p->peer = (p->rank + 1) % p->size;
        p->lead = true;
    } else {
        p->peer = p->rank % 2 ? p->rank - 1 : p->rank + 1 < p->size ? p->rank + 1 : -1;
        if (p->size == 1)
            p->peer = 0; /* alone: on myself */
        p->lead = p->peer >= 0 && p->rank % 2 == 0;
    }
    p->heap = gin_aligned_alloc(p->comm, 4096, 2 * p->max_bytes + 4096);
    p->src = aligned_alloc(4096, (p->max_bytes + 4095) / 4096 * 4096);
    if (p->heap == NULL || p->src == NULL)
        return fail("memory");
    memset(p->heap, 0, 2 * p->max_bytes + 4096);
    memset(p->src, 1, p->max_bytes);
    if (gin_devcomm_create(p->comm, NULL, &p->dev) != GIN_OK ||
        gin_open(&p->dev, 0, &p->g) != GIN_OK)
        return fail("device communicator");
    p->world = gin_world(&p->g);
    p->win = gin_heap_window(p->comm, GIN_KIND_HOST);
    p->heap_off = gin_at_ptr(&p->g, p->heap).off;
    p->flag = (uint64_t *)(void *)(p->heap + 2 * p->max_bytes);
    if (p->peer >= 0) {
        p->peer_heap = gin_ptr(p->comm, p->heap, p->peer);
        p->peer_flag = gin_ptr(p->comm, p->flag, p->peer);
    }
    return 0;
}

static double in_unit(double ns, enum perf_unit unit, size_t bytes)
{
    if (unit == PERF_NS || ns <= 0)
        return ns;
    return unit == PERF_MBPS ? (double)bytes / ns * 1e3 : 1e3 / ns;
}

/* The median over the leaders, known on every rank. */
static double over_leaders(struct perf *p, double ns)
{
    struct {
        double ns;
        int lead, pad;
    } mine = {ns, p->lead, 0}, *all = malloc((size_t)p->size * sizeof(*all));
    double v[1024];
    struct perf_row row = {.v = v};
    if (all == NULL || gin_comm_allgather(p->comm, &mine, all, sizeof(mine)) != GIN_OK) {
        fail("results");
        exit(1);
    }
    for (int r = 0; r < p->size && row.n < 1024; r++)
        if (all[r].lead)
            v[row.n++] = all[r].ns;
    free(all);
    perf_row_finish(&row);
    return row.median;
}

static size_t plan(const struct options *o, const struct perf_op *ops, int rounds,
                   struct perf_row *rows, size_t n)
{
    for (; ops->name != NULL; ops++) {
        if (!listed(o->ops, ops->name) && !(ops->raw && o->raw))
            continue;
        for (int s = 0; s < (ops->sized ? o->n_sizes : 1) && n < MAX_ROWS; s++) {
            rows[n].op = ops;
            rows[n].bytes = ops->sized ? o->sizes[s] : 8;
            rows[n].v = calloc((size_t)rounds, sizeof(double));
            n++;
        }
    }
    return n;
}

/* Rows that measured something; a 0 would pass for a figure. */
static size_t finish(const struct perf *p, struct perf_row *rows, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].n != 0) {
            perf_row_finish(&rows[i]);
            rows[kept++] = rows[i];
            continue;
        }
        if (p->rank == 0 && (i + 1 == n || rows[i + 1].op != rows[i].op))
            fprintf(stderr, "ginperf: %s is left out: it needs %s\n", rows[i].op->name,
                    p->all ? "pairs, not --all"
                    : strncmp(rows[i].op->name, "raw_net", 7) == 0
                        ? "a partner and a provider"
                        : "a partner whose memory is mapped");
        free(rows[i].v);
    }
    return kept;
}

/* A line now and then, for people who wait; rank 0's output may pass through a launcher. */
static void tell_progress(int done, int rounds)
{
    static double told;
    double now = perf_now_ns();
    if (told == 0)
        told = now;
    if (now - told < 3e9 || done == rounds)
        return;
    fprintf(stderr, "ginperf: round %d of %d is done\n", done, rounds);
    told = now;
}

static int run(struct perf *p, const struct options *o)
{
    struct perf_row *rows = calloc(MAX_ROWS, sizeof(*rows));
    size_t n = rows != NULL ? plan(o, perf_ops, o->rounds, rows, 0) : 0;
    int err = 0;
    if (rows != NULL && (o->raw || strstr(o->ops, "raw_") != NULL)) {
        n = plan(o, perf_raw, o->rounds, rows, n);
        n = plan(o, perf_fabric, o->rounds, rows, n);
    }
    for (int r = -1; r < o->rounds; r++) { /* round -1 warms up */
        for (size_t i = 0; i < n; i++) {
            const struct perf_op *op = rows[i].op;
            long iters = o->iters != 0 ? o->iters : perf_iters(op->iters, rows[i].bytes);
            double ns = op->run(p, rows[i].bytes, r < 0 ? 1 + iters / 10 : iters);
            if (r < 0)
                continue;
            ns = over_leaders(p, ns);
            if (ns > 0)
                rows[i].v[rows[i].n++] = in_unit(ns, op->unit, rows[i].bytes);
        }
        if (p->rank == 0)
            tell_progress(r + 1, o->rounds);
    }
    n = finish(p, rows, n);
    if (p->rank == 0)
        err = perf_report(stdout, o->format, rows, n, p->size, o->rounds);
    for (size_t i = 0; i < n; i++)
        free(rows[i].v);
    free(rows);
    return err;
}

int main(int argc, char **argv)
{
    struct options o = {
        .ops = "all", .sizes = {8, 64, 4096, 65536, 1048576}, .n_sizes = 5, .rounds = 5};
    struct perf p = {.peer = -1};
    int st = parse(argc, argv, &o);
    if (st >= 0)
        return st;
    if (o.scaling)
        return perf_scaling_run();
    if (gin_init(NULL, &p.comm) != GIN_OK)
        return fail("gin_init");
    if (o.cuda) {
        st = perf_cuda_run(p.comm, o.rounds);
        return gin_finalize(p.comm) == GIN_OK ? st : fail("gin_finalize");
    }
    st = set_up(&p, &o);
    if (st == 0)
        st = o.net ? perf_net_run(&p, o.rounds, o.iters) : run(&p, &o);
    perf_fabric_close();
    free(p.src);
    if (gin_devcomm_destroy(p.comm, &p.dev) != GIN_OK)
        st = fail("gin_devcomm_destroy");
    if (gin_finalize(p.comm) != GIN_OK)
        st = fail("gin_finalize");
    return st;
}
