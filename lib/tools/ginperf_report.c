/* SPDX-License-Identifier: BSD-3-Clause */
/* ginperf's figures as a table for people, as CSV and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "ginperf.h"

#if GI_HAVE_JANSSON
#include <jansson.h>
#endif

static const char *unit_name(enum perf_unit u)
{
    return u == PERF_NS ? "ns" : u == PERF_MBPS ? "MB/s" : "M/s";
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void perf_row_finish(struct perf_row *row)
{
    qsort(row->v, (size_t)row->n, sizeof(*row->v), by_value);
    row->median =
        row->n % 2 ? row->v[row->n / 2] : (row->v[row->n / 2 - 1] + row->v[row->n / 2]) / 2;
    row->low = row->v[0];
    row->high = row->v[row->n - 1];
}

static void table(FILE *f, const struct perf_row *rows, size_t n)
{
    fprintf(f, "%-16s %10s %12s %-5s [%s .. %s]\n", "operation", "bytes", "median", "unit", "low",
            "high");
    for (size_t i = 0; i < n; i++) {
        const struct perf_row *r = &rows[i];
        char bytes[24] = "-";
        if (r->op->sized)
            snprintf(bytes, sizeof(bytes), "%zu", r->bytes);
        fprintf(f, "%-16s %10s %12.2f %-5s [%.2f .. %.2f]\n", r->op->name, bytes, r->median,
                unit_name(r->op->unit), r->low, r->high);
    }
}

static void csv(FILE *f, const struct perf_row *rows, size_t n, int ranks, int rounds)
{
    fprintf(f, "operation,bytes,median,low,high,unit,ranks,rounds\n");
    for (size_t i = 0; i < n; i++) {
        const struct perf_row *r = &rows[i];
        char bytes[24] = "";
        if (r->op->sized)
            snprintf(bytes, sizeof(bytes), "%zu", r->bytes);
        fprintf(f, "%s,%s,%.3f,%.3f,%.3f,%s,%d,%d\n", r->op->name, bytes, r->median, r->low,
                r->high, unit_name(r->op->unit), ranks, rounds);
    }
}

static int json(FILE *f, const struct perf_row *rows, size_t n, int ranks, int rounds)
{
#if GI_HAVE_JANSSON
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct perf_row *r = &rows[i];
        json_t *bytes = r->op->sized ? json_integer((json_int_t)r->bytes) : json_null();
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:f, s:f, s:f, s:s}", "operation", r->op->name,
                                        "bytes", bytes, "median", r->median, "low", r->low, "high",
                                        r->high, "unit", unit_name(r->op->unit)));
    }
    json_t *top = json_pack("{s:i, s:i, s:i, s:o}", "version", gin_version(), "ranks", ranks,
                            "rounds", rounds, "results", list);
    int err = top == NULL || json_dumpf(top, f, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0;
    fputc('\n', f);
    json_decref(top);
    return err;
#else
    (void)f, (void)rows, (void)n, (void)ranks, (void)rounds;
    fprintf(stderr, "ginperf: this build has no JSON (jansson was not found at configure time)\n");
    return 1;
#endif
}

int perf_report(FILE *f, const char *format, const struct perf_row *rows, size_t n, int ranks,
                int rounds)
{
    if (strcmp(format, "json") == 0)
        return json(f, rows, n, ranks, rounds);
    if (strcmp(format, "csv") == 0)
        csv(f, rows, n, ranks, rounds);
    else
        table(f, rows, n);
    return 0;
}
