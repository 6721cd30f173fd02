/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gininfo(1) collects facts first and prints them afterwards, as text or as JSON: every fact is
 * said in both and in one place.
 */
#ifndef GI_TOOLS_GININFO_H
#define GI_TOOLS_GININFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/log.h"

enum info_state {
    INFO_PLAIN, /* just a value */
    INFO_YES,
    INFO_NO,
    INFO_UNKNOWN,
    INFO_PASS, /* of requirements */
    INFO_FAIL,
    INFO_MISSING /* not required */
};

/* A column of a table; a number or text. */
struct info_cell {
    const char *key; /* static */
    char text[40];   /* "": none here */
    bool number;
};

#define INFO_CELLS 12

struct info_fact {
    const char *section; /* static */
    char *name;
    enum info_state state;
    char *value;        /* NULL: none */
    char *why;          /* how, or why not; NULL: none */
    const char *origin; /* of variables: static */
    char *def;          /* of variables */
    struct info_cell *cells;
    int n_cells; /* a section's facts that have some have the same */
    struct info_fact *next;
};

/* A fact in the order of calls; value may be NULL, why is a format and may be "". */
struct info_fact *info_add(const char *section, const char *name, enum info_state state,
                           const char *value, const char *why, ...) GIN_PRINTF(5, 6);
/* One more column of it. */
void info_cell(struct info_fact *f, const char *key, const char *text);
void info_cell_number(struct info_fact *f, const char *key, double value); /* negative: none */
void info_print_text(FILE *f);
/* 0, or 1 where gininfo was built without JSON. */
int info_print_json(FILE *f);
void info_free(void);

void info_library(void); /* version, build, libfabric and its providers, CUDA driver */
void info_network(void); /* the provider chosen, opened and tested */
struct gi_env;
/* The provider's devices; opened: the one that it would take by itself, NULL: it cannot be had, and
 * that was told. */
void info_nics(const struct gi_env *env, const char *opened);
void info_rdma(void);      /* ports of RDMA devices, and what forbids their use */
void info_machine(void);   /* hwloc's view, huge pages, limits, system calls */
void info_launchers(void); /* who started this process, by its environment */
void info_variables(void);
/*
 * Whether it can be: what was opened, or why nothing, in text; *asked: the environment names the
 * provider or the device. GIN_OK or a status.
 */
int info_try_network(char *text, size_t n, bool *asked);
/* Requirements; number of the failed ones. */
int info_check(void);
/* PASS with `yes` in why, or MISSING with `no`. */
enum info_state info_said(bool ok, char *why, size_t n, const char *yes, const char *no);
/* The kernel is that one or a later one. */
bool info_kernel(int major, int minor);
/* Rows of the requirements: PASS, MISSING or FAIL, and why. gininfo_features.c */
enum info_state info_check_providers(char *why, size_t n);
enum info_state info_check_network(char *why, size_t n);
enum info_state info_check_rdma(char *why, size_t n);
enum info_state info_check_driver(char *why, size_t n);
enum info_state info_check_kernels(char *why, size_t n);
enum info_state info_check_gpu_memory(char *why, size_t n);
enum info_state info_check_multimem(char *why, size_t n);
enum info_state info_check_dmabuf(char *why, size_t n);
enum info_state info_check_peermem(char *why, size_t n);
enum info_state info_check_gdrcopy(char *why, size_t n);
enum info_state info_check_pmix(char *why, size_t n);
enum info_state info_check_pmi2(char *why, size_t n);
enum info_state info_check_namespaces(char *why, size_t n);
enum info_state info_check_json(char *why, size_t n);
/* Join the job and ask it; only rank 0 adds facts. GIN_OK or a status. */
int info_job(int *rank);

/* What the operations cost between pairs of ranks, by all ranks; rounds 0: as many as time allows.
 * Only rank 0 adds facts. GIN_OK or a status; the communicator is left behind then. */
int info_probe(int *rank, long rounds, bool all);

/* Class of a network, "A" to "D", and what it means. */
struct gi_net_caps;
const char *info_class(const struct gi_net_caps *c, const char **means);

/* process_vm_readv as far as it can be told without a peer: state and text. */
enum info_state info_cma(char *text, size_t n);
/* Soft limit by its name in /proc/self/limits; false: not found. UINT64_MAX: none. */
bool info_limit(const char *name, uint64_t *value);
/* "64.0 MiB" */
const char *info_bytes(uint64_t bytes, char *buf, size_t n);

#endif
