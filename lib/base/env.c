/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the table to the struct. This is the one file that reads the environment; an empty variable
 * counts as not set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env_parse.h"
#include "base/log.h"

static const struct gi_env_row rows[] = {
#define GI_ENV(field, name, kind, def, min, max, help) \
    {GI_ENV_PREFIX #name, GI_ENV_##kind, def, min, max, help},
#include "base/env_table.h"
#undef GI_ENV
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Where a row's value and its set flag lie in struct gi_env. */
static const struct {
    size_t value, set;
} places[] = {
#define GI_ENV(field, name, kind, def, min, max, help) \
    {offsetof(struct gi_env, field), offsetof(struct gi_env, set.field)},
#include "base/env_table.h"
#undef GI_ENV
};

static bool is_text(enum gi_env_kind kind)
{
    return kind == GI_ENV_WORD || kind == GI_ENV_TEXT;
}

size_t gi_env_rows(const struct gi_env_row **out)
{
    *out = rows;
    return ROWS;
}

const char *gi_env_foreign(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != 0 ? text : NULL;
}

bool gi_env_foreign_default(const char *name, const char *value)
{
    return getenv(name) == NULL && setenv(name, value, 0) == 0;
}

/* A limit as a person would write it; sizes in the largest unit that divides them. */
static void print_limit(enum gi_env_kind kind, uint64_t v, char *buf, size_t n)
{
    static const char *const size_units[] = {"", "K", "M", "G", "T"};
    static const char *const time_units[] = {"ns", "us", "ms", "s"};
    int u = 0;
    if (kind == GI_ENV_SIZE)
        for (; u < 4 && v != 0 && v % 1024 == 0; u++)
            v /= 1024;
    else if (kind == GI_ENV_TIME)
        for (; u < 3 && v != 0 && v % 1000 == 0; u++)
            v /= 1000;
    snprintf(buf, n, "%llu%s", (unsigned long long)v,
             kind == GI_ENV_SIZE   ? size_units[u]
             : kind == GI_ENV_TIME ? time_units[u]
                                   : "");
}

void gi_env_accepts(const struct gi_env_row *row, char *buf, size_t n)
{
    static const char *const kinds[] = {
        [GI_ENV_SIZE] = "a size such as 4096, 64M, 1.5G or 100kB",
        [GI_ENV_COUNT] = "a whole number",
        [GI_ENV_TIME] = "a time such as 30s, 1.5s, 200ms or 50us",
        [GI_ENV_BOOL] = "1, yes, on, true, 0, no, off or false",
        [GI_ENV_TEXT] = "any text",
    };
    char from[32], to[32];
    if (row->kind == GI_ENV_WORD) {
        snprintf(buf, n, "one of %.*s", (int)(strstr(row->help, " -- ") - row->help), row->help);
        return;
    }
    if (row->kind == GI_ENV_TEXT || row->kind == GI_ENV_BOOL) {
        snprintf(buf, n, "%s", kinds[row->kind]);
        return;
    }
    print_limit(row->kind, row->min, from, sizeof(from));
    print_limit(row->kind, row->max, to, sizeof(to));
    if (row->max == INT64_MAX)
        snprintf(buf, n, "%s, at least %s", kinds[row->kind], from);
    else
        snprintf(buf, n, "%s, from %s to %s", kinds[row->kind], from, to);
}

/* NULL, or what is wrong with the text as a value of the row. */
static const char *parse(const struct gi_env_row *row, const char *text, uint64_t *value)
{
    if (row->kind == GI_ENV_WORD)
        return gi_env_is_word(row->help, text) ? NULL : "is not known";
    const char *wrong = gi_env_scan(row->kind, text, value);
    if (wrong == NULL && *value < row->min)
        wrong = "is too small";
    if (wrong == NULL && *value > row->max)
        wrong = "is too large";
    return wrong;
}

int gi_env_parse_number(enum gi_env_kind kind, const char *text, uint64_t min, uint64_t max,
                        uint64_t *value)
{
    const struct gi_env_row row = {.name = "value", .kind = kind, .min = min, .max = max};
    uint64_t v;
    char accepts[160];
    if (is_text(kind))
        return gi_fail(GIN_EINVAL, "gi_env_parse_number: kind %d is no number", (int)kind);
    const char *wrong = parse(&row, text, &v);
    if (wrong != NULL) {
        gi_env_accepts(&row, accepts, sizeof(accepts));
        return gi_fail(GIN_EINVAL, "\"%s\" %s; accepted: %s", text, wrong, accepts);
    }
    *value = v;
    return GIN_OK;
}

static int load_row(struct gi_env *env, size_t i)
{
    const struct gi_env_row *row = &rows[i];
    char *place = (char *)env + places[i].value;
    const char *text = gi_env_foreign(row->name);
    bool *set = (bool *)((char *)env + places[i].set);
    uint64_t value = 0;

    *set = text != NULL;
    if (text == NULL)
        text = row->def;
    /* An empty default of a number means that there is none; the code looks at set. */
    const char *wrong =
        row->kind == GI_ENV_TEXT || (!*set && *text == 0) ? NULL : parse(row, text, &value);
    if (wrong != NULL) {
        char accepts[200];
        gi_env_accepts(row, accepts, sizeof(accepts));
        return gi_fail(GIN_EINVAL, "%s=\"%s\" %s; accepted: %s", row->name, text, wrong, accepts);
    }
    if (is_text(row->kind)) {
        char *copy = strdup(text);
        if (copy == NULL)
            return gi_fail(GIN_ENOMEM, "%s: no memory for its text", row->name);
        memcpy(place, &copy, sizeof(copy));
    } else {
        memcpy(place, &value, sizeof(value));
    }
    return GIN_OK;
}

static void warn_near_misses(void)
{
    static int done;
    extern char **environ;
    if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED) != 0)
        return;
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        char name[80];
        size_t n = strcspn(*e, "=");
        if (n >= sizeof(name))
            continue;
        memcpy(name, *e, n);
        name[n] = 0;
        const char *meant = gi_env_meant(name, rows, ROWS);
        if (meant != NULL)
            gi_warn("env", "%s is not a variable of ginshmem; did you mean %s?", name, meant);
    }
}

int gi_env_load(struct gi_env *env)
{
    struct gi_env fresh;
    memset(&fresh, 0, sizeof(fresh));
    for (size_t i = 0; i < ROWS; i++) {
        int st = load_row(&fresh, i);
        if (st != GIN_OK) {
            gi_env_release(&fresh);
            return st;
        }
    }
    /* First of all, so that the variable rules over the warnings, too. */
    gi_log_setup(fresh.log, "", -1);
    warn_near_misses();
    *env = fresh;
    return GIN_OK;
}

void gi_env_release(struct gi_env *env)
{
    for (size_t i = 0; i < ROWS; i++) {
        char *place = (char *)env + places[i].value, *text;
        if (!is_text(rows[i].kind))
            continue;
        memcpy(&text, place, sizeof(text));
        free(text);
    }
    memset(env, 0, sizeof(*env));
}
