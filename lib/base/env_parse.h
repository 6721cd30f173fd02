/* SPDX-License-Identifier: BSD-3-Clause */
/* Pure text: numbers of the environment and names that resemble each other. For env.c and tests. */
#ifndef GI_BASE_ENV_PARSE_H
#define GI_BASE_ENV_PARSE_H

#include "base/env.h"

/*
 * Parse text whole. On success returns NULL and sets *value; else returns what is wrong with it, a
 * phrase to print behind the value. min and max are not looked at.
 */
const char *gi_env_scan(enum gi_env_kind kind, const char *text, uint64_t *value);

/* Whether word is one of the alternatives in help, "a|b|c -- what for". */
bool gi_env_is_word(const char *help, const char *word);

/* How many letters must be changed, added, dropped or swapped with their neighbour; case does not
 * count. Longer texts than 63 letters are infinitely far. */
unsigned gi_env_distance(const char *a, const char *b);

/*
 * The known name that `name` was probably meant to be, or NULL if it is known, belongs to somebody
 * else, or resembles none. rows as of gi_env_rows().
 */
const char *gi_env_meant(const char *name, const struct gi_env_row *rows, size_t n);

#endif
