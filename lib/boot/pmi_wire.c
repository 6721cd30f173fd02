/* SPDX-License-Identifier: BSD-3-Clause */
/* How PMI-1 lines and the letters of their values are read and written. */
#include "boot/pmi_wire.h"
#include <limits.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int gi_pmi_line(const char *buf, size_t n)
{
    size_t most = n < GI_PMI_LINE_MAX ? n : GI_PMI_LINE_MAX;
    const char *end = most == 0 ? NULL : memchr(buf, '\n', most);

    if (end != NULL)
        return (int)(end - buf) + 1;
    return n >= GI_PMI_LINE_MAX ? -1 : 0;
}

/* One word at p, which is not blank; adds it to msg and returns what follows, or NULL. */
static const char *parse_word(const char *p, const char *end, struct gi_pmi_msg *msg)
{
    struct gi_pmi_word *w = &msg->word[msg->n];
    const char *begin = p, *equals = NULL;

    for (; p < end && *p != ' '; p++) {
        if ((unsigned char)*p < 33 || (unsigned char)*p > 126)
            return NULL;
        if (*p == '=' && equals == NULL)
            equals = p;
    }
    if (equals == NULL) {
        msg->stray++;
        return p;
    }
    if (equals == begin || msg->n == GI_PMI_WORDS)
        return NULL;
    w->key = begin;
    w->key_len = (unsigned)(equals - begin);
    w->value = equals + 1;
    w->value_len = (unsigned)(p - equals - 1);
    for (unsigned i = 0; i < msg->n; i++)
        if (msg->word[i].key_len == w->key_len && memcmp(msg->word[i].key, begin, w->key_len) == 0)
            return NULL;
    msg->n++;
    return p;
}

bool gi_pmi_parse(const char *line, size_t n, struct gi_pmi_msg *msg)
{
    const char *p = line, *end = line + n;

    msg->n = msg->stray = 0;
    if (n > GI_PMI_LINE_MAX)
        return false;
    if (n > 0 && end[-1] == '\n')
        end--;
    while (p < end) {
        if (*p == ' ')
            p++;
        else if ((p = parse_word(p, end, msg)) == NULL)
            return false;
        else if (msg->stray != 0 && msg->n == 0)
            return false;
    }
    return msg->n > 0 && msg->word[0].key_len == 3 && memcmp(msg->word[0].key, "cmd", 3) == 0;
}

const struct gi_pmi_word *gi_pmi_find(const struct gi_pmi_msg *msg, const char *key)
{
    size_t n = strlen(key);

    for (unsigned i = 0; i < msg->n; i++)
        if (msg->word[i].key_len == n && memcmp(msg->word[i].key, key, n) == 0)
            return &msg->word[i];
    return NULL;
}

bool gi_pmi_is(const struct gi_pmi_msg *msg, const char *cmd)
{
    size_t n = strlen(cmd);
    return msg->n > 0 && msg->word[0].value_len == n && memcmp(msg->word[0].value, cmd, n) == 0;
}

bool gi_pmi_int(const struct gi_pmi_msg *msg, const char *key, int min, int max, int *value)
{
    const struct gi_pmi_word *w = gi_pmi_find(msg, key);
    bool minus = w != NULL && w->value_len > 0 && w->value[0] == '-';
    int64_t v = 0;

    if (w == NULL || w->value_len == minus || w->value_len > 11)
        return false;
    for (unsigned i = minus; i < w->value_len; i++) {
        if (w->value[i] < '0' || w->value[i] > '9')
            return false;
        v = v * 10 + (w->value[i] - '0');
    }
    if (minus)
        v = -v;
    if (v < min || v > max)
        return false;
    *value = (int)v;
    return true;
}

bool gi_pmi_copy(const struct gi_pmi_msg *msg, const char *key, char *buf, size_t size)
{
    const struct gi_pmi_word *w = gi_pmi_find(msg, key);

    if (w == NULL || w->value_len == 0 || w->value_len >= size)
        return false;
    memcpy(buf, w->value, w->value_len);
    buf[w->value_len] = '\0';
    return true;
}

void gi_pmi_encode(const void *in, size_t n, char *out)
{
    const unsigned char *b = in;
    uint32_t acc = 0;
    unsigned bits = 0;

    for (size_t i = 0; i < n; i++) {
        acc = acc << 8 | b[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *out++ = letters[acc >> (bits - 6) & 63];
    }
    if (bits > 0)
        *out = letters[acc << (6 - bits) & 63];
}

static int letter_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

int gi_pmi_decode(const char *in, size_t n, void *out, size_t cap)
{
    unsigned char *b = out;
    uint32_t acc = 0;
    unsigned bits = 0;
    size_t done = 0;

    if (n % 4 == 1 || GI_PMI_DECODED(n) > cap || n > INT_MAX)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int v = letter_value(in[i]);
        if (v < 0)
            return -1;
        acc = (acc << 6 | (uint32_t)v) & 0xfff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            b[done++] = (unsigned char)(acc >> bits & 0xff);
        }
    }
    /* leftover bits must be zero: every value has one spelling */
    return (acc & ((1u << bits) - 1)) == 0 ? (int)done : -1;
}
