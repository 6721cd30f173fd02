/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any text as a value of every kind and as a variable's name. What is accepted must print and parse
 * back to the same number; what is refused must leave the output alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void number(enum gi_env_kind kind, const char *text)
{
    const uint64_t poison = 0x5a5a5a5a5a5a5a5a;
    uint64_t v = poison, again;
    char plain[32];
    if (gi_env_scan(kind, text, &v) != NULL) {
        if (v != poison)
            abort();
        return;
    }
    snprintf(plain, sizeof(plain), "%" PRIu64 "%s", v, kind == GI_ENV_TIME ? "ns" : "");
    if (gi_env_scan(kind, plain, &again) != NULL || again != v)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct gi_env_row *rows;
    size_t n_rows = gi_env_rows(&rows);
    char *text = malloc(n + 1); /* exact, so that a read beyond the end is seen */
    if (text == NULL)
        return 0;
    memcpy(text, data, n);
    text[n] = 0;
    number(GI_ENV_SIZE, text);
    number(GI_ENV_COUNT, text);
    number(GI_ENV_TIME, text);
    number(GI_ENV_BOOL, text);
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].kind == GI_ENV_WORD)
            gi_env_is_word(rows[i].help, text);
    gi_env_meant(text, rows, n_rows);
    if (gi_env_distance(text, "HEAP_SIZE") != gi_env_distance("HEAP_SIZE", text))
        abort();
    free(text);
    return 0;
}
