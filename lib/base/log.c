/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how a message looks and where it goes, and keeps each thread's last error. A line leaves
 * the process in one write(), so that lines of several ranks do not mix.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"

#define LINE_MAX_BYTES 1024
#define TEXT_MAX_BYTES 1024

int gi_log_level = GI_LOG_WARN;
int gi_log_fd = STDERR_FILENO;

static _Thread_local int log_rank = -1;
static _Thread_local int last_status;
static _Thread_local char last_text[TEXT_MAX_BYTES];

void gi_log_set_rank(int rank)
{
    log_rank = rank;
}

void gi_log_print(enum gi_log_level level, const char *room, const char *fmt, ...)
{
    static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};
    char line[LINE_MAX_BYTES];
    int n;
    va_list ap;

    if (log_rank >= 0)
        n = snprintf(line, sizeof(line), "ginshmem[%d] %s %s: ", log_rank, names[level], room);
    else
        n = snprintf(line, sizeof(line), "ginshmem %s %s: ", names[level], room);
    if (n >= 0 && n < LINE_MAX_BYTES - 1) {
        va_start(ap, fmt);
        int m = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
        va_end(ap);
        n += m > 0 ? m : 0;
    }
    if (n > LINE_MAX_BYTES - 1)
        n = LINE_MAX_BYTES - 1; /* cut; the newline takes the terminator's place */
    line[n++] = '\n';
    if (write(gi_log_fd, line, (size_t)n) < 0)
        return; /* nobody is left to tell */
}

int gi_fail(int status, const char *fmt, ...)
{
    va_list ap;
    if (status == GIN_OK)
        return GIN_OK;
    last_status = status;
    /* fmt may quote the old text, so it is printed beside it first */
    char text[TEXT_MAX_BYTES];
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    memcpy(last_text, text, sizeof(text));
    gi_info("fail", "%s: %s", gin_status_name(status), last_text);
    return status;
}

int gi_fail_context(const char *fmt, ...)
{
    char text[TEXT_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n >= 0 && n < TEXT_MAX_BYTES - 2)
        snprintf(text + n, sizeof(text) - (size_t)n, ": %.*s", TEXT_MAX_BYTES - n - 3, last_text);
    memcpy(last_text, text, sizeof(text));
    return last_status;
}

void gi_set_last_status(int status)
{
    last_status = status;
}

int gin_last_status(void)
{
    return last_status;
}

const char *gin_last_error(void)
{
    return last_text;
}

void gin_clear_error(void)
{
    last_status = GIN_OK;
    last_text[0] = 0;
}
