/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a stream of PMI-1 lines and as letters: nothing is read or written out of bounds. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "boot/pmi_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void look_at(const struct gi_pmi_msg *m, const char *line, size_t n)
{
    char text[GI_PMI_KEY_MAX];
    int v;

    if (m->n == 0 || m->n > GI_PMI_WORDS)
        abort();
    for (unsigned i = 0; i < m->n; i++) {
        const struct gi_pmi_word *w = &m->word[i];
        if (w->key < line || w->value + w->value_len > line + n || w->key_len == 0)
            abort();
        if (memchr(w->value, ' ', w->value_len) != NULL)
            abort();
    }
    if (gi_pmi_copy(m, "key", text, sizeof(text)) && strlen(text) >= sizeof(text))
        abort();
    if (gi_pmi_int(m, "rc", -5, 5, &v) && (v < -5 || v > 5))
        abort();
}

/* In a buffer of their own size, so that a sanitizer sees a step beyond the end. */
static void lines(const uint8_t *data, size_t n)
{
    char *buf = malloc(n + (n == 0));
    size_t at = 0;
    int len;

    if (buf == NULL)
        return;
    if (n > 0)
        memcpy(buf, data, n);
    while ((len = gi_pmi_line(buf + at, n - at)) > 0) {
        struct gi_pmi_msg m;
        if (gi_pmi_parse(buf + at, (size_t)len, &m))
            look_at(&m, buf + at, (size_t)len);
        at += (size_t)len;
    }
    free(buf);
}

static void letters(const uint8_t *data, size_t n)
{
    size_t room = GI_PMI_DECODED(n);
    char *out = malloc(room + 1), *back = malloc(n + 1);
    int got;

    if (out != NULL && back != NULL) {
        got = gi_pmi_decode((const char *)data, n, out, room);
        if (got >= 0) {
            gi_pmi_encode(out, (size_t)got, back);
            if ((size_t)got > room || GI_PMI_ENCODED((size_t)got) != n ||
                memcmp(back, data, n) != 0)
                abort();
        }
    }
    free(back);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    lines(data, n);
    letters(data, n);
    return 0;
}
