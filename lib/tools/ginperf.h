/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginperf(1): what the parts share. A measurement is a function that every rank calls at once; it
 * returns nanoseconds per operation on the leading rank of a pair and anything elsewhere. The
 * driver runs all measurements once per round, so that slow spells of the machine hit all alike,
 * and reports medians over the rounds.
 */
#ifndef GI_TOOLS_GINPERF_H
#define GI_TOOLS_GINPERF_H

#include <ginshmem.h>
#include <stdbool.h>
#include <stdio.h>

enum perf_unit {
    PERF_NS,   /* nanoseconds per operation */
    PERF_MBPS, /* 10^6 bytes per second */
    PERF_MOPS  /* 10^6 operations per second */
};

/* A rank's side of the run. */
struct perf {
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    gin_team_t world;
    int rank, size;
    int peer;  /* partner, -1: none (odd rank out) */
    bool lead; /* the one of the pair that measures */
    bool all;  /* every rank is a leader and acts on its right neighbour */
    size_t max_bytes;
    gin_window_t win;
    char *heap;        /* 2 * max_bytes and a page of flags, symmetric */
    uint64_t heap_off; /* of it in win */
    char *src;         /* max_bytes of private memory */
    uint64_t *flag;    /* mine, in the page of flags */
    uint64_t *peer_flag;
    char *peer_heap; /* the partner's memory, NULL where it is not mapped */
};

struct perf_op {
    const char *name;
    const char *what; /* for --list */
    enum perf_unit unit;
    bool sized; /* runs once per size */
    bool raw;   /* a bare limit, run with --raw */
    double (*run)(struct perf *p, size_t bytes, long iters);
    long iters; /* at 8 bytes */
};

/* NULL-terminated by name. ginperf_ops.c, ginperf_raw.c, ginperf_fabric.c (and _bare.c, _conn.c) */
extern const struct perf_op perf_ops[];
extern const struct perf_op perf_raw[];
extern const struct perf_op perf_fabric[];

/* ginperf_image.c: the kernels; NULL: none in this build */
extern const void *const perf_cuda_image;
/* All figures of --cuda, by all ranks; the exit status. ginperf_cuda.c */
int perf_cuda_run(gin_comm_t *comm, int rounds);

/* What a put of 8 bytes and its weak signal are made of here, which raw_net_signal sends bare;
 * NULL: no figure of perf_fabric has been taken. */
const char *perf_fabric_shape(void);
/* After the last figure of perf_fabric, if there was one. */
void perf_fabric_close(void);
/* All figures of --net, by all ranks; the exit status. ginperf_net.c */
int perf_net_run(struct perf *p, int rounds, long iters);
/* ... of which no call may fail: the end, with its text. */
void perf_net_check(int st);
/* Rows of it: a context whose operations go through the engine, ctx NULL: none; ns of one put until
 * its counter, or of one of many. ginperf_handoff.c */
extern gin_t perf_engine;
double perf_no_handoff(struct perf *p, long iters);
double perf_handoff_waiter(struct perf *p, long iters);
double perf_handoff_engine(struct perf *p, long iters);
double perf_handoff_asleep(struct perf *p, long iters);
double perf_handoff_rate_1(struct perf *p, long iters);
double perf_handoff_rate_2(struct perf *p, long iters);
double perf_handoff_rate_4(struct perf *p, long iters);
/* One line of --scaling, by all ranks; the exit status. ginperf_scaling.c */
int perf_scaling_run(void);

/*
 * At most `most` repetitions by `run`, which all ranks call with the same number, in some 0.2 s:
 * the nanoseconds of rank 0, on every rank. 0 where that is not to be had. ginperf_timed.c
 */
typedef double (*perf_timed_fn)(struct perf *p, const void *what, long iters);
double perf_timed(struct perf *p, perf_timed_fn run, const void *what, long most);

/* The calling thread on a core that no other rank's has; false, and nothing is changed, where this
 * machine has fewer cores than ranks. Collective. And back, for a thread that inherited it.
 * ginperf_core.c */
bool perf_core_own(const struct perf *p);
void perf_core_any(void);

double perf_now_ns(void);
/* All ranks together, so that a measurement starts at once. */
void perf_sync(struct perf *p);
/* Number of repetitions for a size, so that a measurement takes some 10 ms. */
long perf_iters(long at8, size_t bytes);

/* One line of the result. */
struct perf_row {
    const struct perf_op *op;
    size_t bytes;
    int n;
    double *v; /* n values, in the op's unit */
    double median, low, high;
};
void perf_row_finish(struct perf_row *row);
/* format: "table", "csv", "json"; ginperf_report.c. Returns 0, or 1 when the format cannot be had.
 */
int perf_report(FILE *f, const char *format, const struct perf_row *rows, size_t n, int ranks,
                int rounds);

#endif
