/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment, parsed once per gin_init from env_table.h. Nothing else reads getenv(). */
#ifndef GI_BASE_ENV_H
#define GI_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GI_ENV_PREFIX "GINSHMEM_"

enum gi_env_kind { GI_ENV_SIZE, GI_ENV_COUNT, GI_ENV_TIME, GI_ENV_BOOL, GI_ENV_WORD, GI_ENV_TEXT };

/* SIZE, COUNT, TIME (ns) and BOOL parse to a number, WORD and TEXT to a string. */
typedef uint64_t gi_env_SIZE_t;
typedef uint64_t gi_env_COUNT_t;
typedef uint64_t gi_env_TIME_t;
typedef uint64_t gi_env_BOOL_t;
typedef const char *gi_env_WORD_t;
typedef const char *gi_env_TEXT_t;

struct gi_env {
#define GI_ENV(field, name, kind, def, min, max, help) gi_env_##kind##_t field;
#include "base/env_table.h"
#undef GI_ENV
    /* true where the variable was set (and not empty) */
    struct {
#define GI_ENV(field, name, kind, def, min, max, help) bool field;
#include "base/env_table.h"
#undef GI_ENV
    } set;
};

/*
 * Parse the process environment into *env, which then owns its strings, and set the log's level
 * from it (its file needs the rank: gi_log_setup()). On a bad value returns GIN_EINVAL naming
 * variable, value and what is accepted. Unknown GINSHMEM_ variables that are a near miss of a known
 * one draw a warning with the suggestion, once per process.
 */
int gi_env_load(struct gi_env *env);
void gi_env_release(struct gi_env *env);

/* Parse one value as the table would; exposed for tests and the fuzzer. */
int gi_env_parse_number(enum gi_env_kind kind, const char *text, uint64_t min, uint64_t max,
                        uint64_t *value);

/* One row of the table, for gininfo and the manual page. */
struct gi_env_row {
    const char *name; /* with prefix */
    enum gi_env_kind kind;
    const char *def;
    uint64_t min, max;
    const char *help;
};
size_t gi_env_rows(const struct gi_env_row **rows);

/* What a row accepts, as a phrase: "one of no|try|yes", "a size such as ..., at least 64K". */
void gi_env_accepts(const struct gi_env_row *row, char *buf, size_t n);

/* A variable of somebody else (a launcher's), or NULL where it is not set or empty. */
const char *gi_env_foreign(const char *name);

/* Set a variable of somebody else, for libraries that can be told no other way; false where it is
 * set already, empty or not. Not while other threads may read the environment. */
bool gi_env_foreign_default(const char *name, const char *value);

#endif
