/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how a message looks and where it goes, and keeps each thread's last error. A line leaves
 * the process in one write(), so that lines of several ranks do not mix.
 */
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/log.h"
#include "base/os.h"

#define LINE_MAX_BYTES 1024
#define TEXT_MAX_BYTES 1024

int gi_log_level = GI_LOG_WARN;
static int log_fd = STDERR_FILENO;
static const char *const names[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

static _Thread_local int log_rank = -1;
static _Thread_local int last_status;
static _Thread_local char last_text[TEXT_MAX_BYTES];

void gi_log_set_rank(int rank)
{
    log_rank = rank;
}

int gi_log_rank(void)
{
    return log_rank;
}

static int level_of(const char *word)
{
    for (int i = 0; i <= GI_LOG_TRACE; i++)
        if (strcasecmp(word, names[i]) == 0)
            return i;
    return -1;
}

/* %r and %p replaced, %% is %; -1 where the path is too long or has another %. */
static int expand(const char *pattern, int rank, char *path, size_t n)
{
    size_t len = 0;
    for (; *pattern != 0 && len < n - 1; pattern++) {
        if (*pattern != '%') {
            path[len++] = *pattern;
            continue;
        }
        pattern++;
        if (*pattern == 'r')
            len += (size_t)snprintf(path + len, n - len, "%d", rank);
        else if (*pattern == 'p')
            len += (size_t)snprintf(path + len, n - len, "%d", (int)getpid());
        else if (*pattern == '%')
            path[len++] = '%';
        else
            return -1;
    }
    if (len >= n || *pattern != 0)
        return -1;
    path[len] = 0;
    return 0;
}

int gi_log_setup(const char *level, const char *file, int rank)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char path[PATH_MAX];
    int status = GIN_OK, l = level_of(level);
    if (l < 0)
        return gi_fail(GIN_EINVAL, "log level %s: give error, warn, info, debug or trace", level);
    __atomic_store_n(&gi_log_level, l, __ATOMIC_RELAXED);
    if (*file == 0)
        return GIN_OK;
    if (expand(file, rank, path, sizeof(path)) != 0)
        return gi_fail(GIN_EINVAL, "GINSHMEM_LOG_FILE=%s: only %%r, %%p and %%%% may follow %%",
                       file);
    pthread_mutex_lock(&lock);
    if (log_fd == STDERR_FILENO) {
        int fd = gi_os_append(path);
        if (fd < 0)
            status = gi_fail(GIN_EINVAL, "GINSHMEM_LOG_FILE: cannot open %s: %s", path,
                             gi_os_strerror(fd));
        else
            __atomic_store_n(&log_fd, fd, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void gi_log_print(enum gi_log_level level, const char *room, const char *fmt, ...)
{
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
    gi_os_write(__atomic_load_n(&log_fd, __ATOMIC_RELAXED), line, (size_t)n);
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

int gi_fail_instead(const char *was, const char *is)
{
    char text[TEXT_MAX_BYTES];
    size_t len = strlen(was);
    if (strncmp(last_text, was, len) == 0 && last_text[len] == ':') {
        snprintf(text, sizeof(text), "%.32s%.*s", is, TEXT_MAX_BYTES - 33, last_text + len);
        memcpy(last_text, text, sizeof(text));
    }
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
