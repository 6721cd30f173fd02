/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The grammar of values. Strict: the whole text counts, there is no sign, no space, no leading zero
 * (it might mean octal), no exponent, and what does not fit into 64 bits is refused.
 */
#include <string.h>
#include <strings.h>
#include "base/env_parse.h"

#define KI           (uint64_t)1024
#define FRACTION_MAX 1000000000000000000u /* 18 digits */
#define NAME_MAX_LEN 63

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit sizes[] = {
    {"", 1},
    {"B", 1},
    {"K", KI},
    {"KiB", KI},
    {"kB", 1000},
    {"M", KI *KI},
    {"MiB", KI *KI},
    {"MB", 1000000},
    {"G", KI *KI *KI},
    {"GiB", KI *KI *KI},
    {"GB", 1000000000},
    {"T", KI *KI *KI *KI},
    {"TiB", KI *KI *KI *KI},
    {"TB", 1000000000000},
    {NULL, 0},
};
static const struct unit times[] = {
    {"", 1000000000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0},
};
static const struct unit counts[] = {{"", 1}, {NULL, 0}};
static const struct unit booleans[] = {
    {"0", 0},   {"no", 0}, {"off", 0},  {"false", 0}, {"1", 1},
    {"yes", 1}, {"on", 1}, {"true", 1}, {NULL, 0},
};

static const struct unit *find(const struct unit *units, const char *name)
{
    for (; units->name != NULL; units++)
        if (strcasecmp(units->name, name) == 0)
            return units;
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits of the whole part; NULL or what is wrong. */
static const char *scan_whole(const char **p, uint64_t *whole)
{
    const char *s = *p;
    if (*s == '+' || *s == '-')
        return "has a sign";
    if (!is_digit(*s))
        return "does not begin with a digit";
    if (s[0] == '0' && is_digit(s[1]))
        return "has a leading zero";
    for (*whole = 0; is_digit(*s); s++)
        if (__builtin_mul_overflow(*whole, 10u, whole) ||
            __builtin_add_overflow(*whole, (uint64_t)(*s - '0'), whole))
            return "is too large";
    *p = s;
    return NULL;
}

/* Digits behind the point as *part / *scale; without a point 0 / 1. */
static const char *scan_fraction(const char **p, uint64_t *part, uint64_t *scale)
{
    const char *s = *p;
    *part = 0;
    *scale = 1;
    if (*s != '.')
        return NULL;
    s++;
    if (!is_digit(*s))
        return "has no digit behind the point";
    for (; is_digit(*s); s++) {
        if (*scale == FRACTION_MAX)
            return "has too many digits behind the point";
        *part = *part * 10 + (uint64_t)(*s - '0');
        *scale *= 10;
    }
    *p = s;
    return NULL;
}

static const char *scan_number(const struct unit *units, const char *text, uint64_t *value)
{
    uint64_t whole, part, scale, v;
    const char *p = text, *wrong = scan_whole(&p, &whole);
    if (wrong == NULL)
        wrong = scan_fraction(&p, &part, &scale);
    if (wrong != NULL)
        return wrong;
    const struct unit *u = find(units, p);
    if (u == NULL)
        return *p == ' ' || *p == '\t' ? "has space behind the number"
               : units == counts       ? "has something behind the number"
                                       : "has something behind the number that is no unit";
    if (scale != 1 && u->factor == 1)
        return "is not a whole number";
    unsigned __int128 fraction = (unsigned __int128)part * u->factor / scale;
    if (__builtin_mul_overflow(whole, u->factor, &v) ||
        __builtin_add_overflow(v, (uint64_t)fraction, &v))
        return "is too large";
    *value = v;
    return NULL;
}

const char *gi_env_scan(enum gi_env_kind kind, const char *text, uint64_t *value)
{
    switch (kind) {
    case GI_ENV_SIZE: return scan_number(sizes, text, value);
    case GI_ENV_TIME: return scan_number(times, text, value);
    case GI_ENV_COUNT: return scan_number(counts, text, value);
    case GI_ENV_BOOL: {
        const struct unit *u = find(booleans, text);
        if (u == NULL)
            return "is neither yes nor no";
        *value = u->factor;
        return NULL;
    }
    default: return "is not a number's kind";
    }
}

bool gi_env_is_word(const char *help, const char *word)
{
    size_t n = strlen(word);
    const char *end = strstr(help, " -- ");
    if (n == 0 || end == NULL || strchr(word, '|') != NULL)
        return false;
    for (const char *p = help; p < end; p += strcspn(p, "| ") + 1)
        if ((size_t)strcspn(p, "| ") == n && memcmp(p, word, n) == 0)
            return true;
    return false;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Three rows of the usual table: two rows back tells about swapped neighbours. */
unsigned gi_env_distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_MAX_LEN + 1], *before = rows[0], *last = rows[1], *now = rows[2];
    size_t n = strnlen(a, NAME_MAX_LEN + 1), m = strnlen(b, NAME_MAX_LEN + 1);
    if (n > NAME_MAX_LEN || m > NAME_MAX_LEN)
        return UINT32_MAX;
    for (unsigned j = 0; j <= m; j++)
        last[j] = before[j] = j;
    for (unsigned i = 1; i <= n; i++) {
        now[0] = i;
        for (unsigned j = 1; j <= m; j++) {
            char x = upper(a[i - 1]), y = upper(b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == upper(b[j - 2]) && upper(a[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
        unsigned *old = before;
        before = last;
        last = now;
        now = old;
    }
    return last[m];
}

/* How far two names of this length may be apart to be taken for each other. */
static unsigned reach(size_t len)
{
    return len <= 4 ? 1 : len <= 12 ? 2 : 3;
}

static const struct gi_env_row *nearest(const char *rest, unsigned far,
                                        const struct gi_env_row *rows, size_t n)
{
    const struct gi_env_row *best = NULL;
    for (size_t i = 0; i < n; i++) {
        unsigned d = gi_env_distance(rest, rows[i].name + strlen(GI_ENV_PREFIX));
        if (d <= far) {
            best = &rows[i];
            far = d - (d > 0);
            if (d == 0)
                break;
        }
    }
    return best;
}

const char *gi_env_meant(const char *name, const struct gi_env_row *rows, size_t n)
{
    const size_t len = strlen(GI_ENV_PREFIX);
    const struct gi_env_row *row = NULL;
    if (strncmp(name, GI_ENV_PREFIX, len) == 0) {
        const char *rest = name + len;
        row = nearest(rest, reach(strlen(rest)), rows, n);
        return row != NULL && strcmp(row->name, name) == 0 ? NULL : row ? row->name : NULL;
    }
    if (strncasecmp(name, "GIN", 3) != 0)
        return NULL;
    /* The prefix itself is misspelt: then what follows must be close. Any _ may end the prefix. */
    for (const char *p = strchr(name, '_'); p != NULL && row == NULL; p = strchr(p + 1, '_')) {
        char prefix[16];
        size_t k = (size_t)(p + 1 - name);
        if (k >= sizeof(prefix))
            break;
        memcpy(prefix, name, k);
        prefix[k] = 0;
        if (gi_env_distance(prefix, GI_ENV_PREFIX) <= 2)
            row = nearest(p + 1, strlen(p + 1) > 4 ? 1 : 0, rows, n);
    }
    return row != NULL ? row->name : NULL;
}
