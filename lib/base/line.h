/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of text built without the C library's printf, which a signal handler may not call. What
 * does not fit is cut. */
#ifndef GI_BASE_LINE_H
#define GI_BASE_LINE_H

#include <stddef.h>
#include <stdint.h>
#include "base/os.h"

struct gi_line {
    char text[384];
    size_t n;
};

static inline void gi_line_text(struct gi_line *l, const char *text)
{
    while (*text != 0 && l->n < sizeof(l->text) - 1)
        l->text[l->n++] = *text++;
}

static inline void gi_line_number(struct gi_line *l, uint64_t v)
{
    char digits[21];
    size_t i = sizeof(digits) - 1;
    digits[i] = 0;
    do {
        digits[--i] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    gi_line_text(l, digits + i);
}

/* Send the line, its end added, in one piece. */
static inline void gi_line_write(struct gi_line *l, int fd)
{
    l->text[l->n++] = '\n';
    if (gi_os_write(fd, l->text, l->n) < 0)
        return; /* nobody reads it */
}

#endif
