/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages and the thread's last error. Lines go to standard error (or GINSHMEM_LOG_FILE) as
 * "ginshmem[rank] LEVEL room: text". Levels by GINSHMEM_LOG: error, warn (default), info, debug,
 * trace. The function that first decides that something is an error calls gi_fail(); nobody above
 * repeats it.
 */
#ifndef GI_BASE_LOG_H
#define GI_BASE_LOG_H

#include <ginshmem/status.h>

enum gi_log_level { GI_LOG_ERROR, GI_LOG_WARN, GI_LOG_INFO, GI_LOG_DEBUG, GI_LOG_TRACE };

extern int gi_log_level; /* messages above it are not printed */

/* Rank printed in front of this thread's lines; -1 prints none. Thread-local: ranks may be threads.
 */
void gi_log_set_rank(int rank);
int gi_log_rank(void);

/*
 * Take level ("warn") and file ("" keeps standard error; %r is the rank, %p the process id) from
 * the environment. The file is opened once per process: the first communicator's wins.
 */
int gi_log_setup(const char *level, const char *file, int rank);

void gi_log_print(enum gi_log_level level, const char *room, const char *fmt, ...) GIN_PRINTF(3, 4);

#define gi_log(level, room, ...)                                                            \
    do {                                                                                    \
        if (GIN_UNLIKELY((int)(level) <= __atomic_load_n(&gi_log_level, __ATOMIC_RELAXED))) \
            gi_log_print((level), (room), __VA_ARGS__);                                     \
    } while (0)
#define gi_error(room, ...) gi_log(GI_LOG_ERROR, room, __VA_ARGS__)
#define gi_warn(room, ...)  gi_log(GI_LOG_WARN, room, __VA_ARGS__)
#define gi_info(room, ...)  gi_log(GI_LOG_INFO, room, __VA_ARGS__)
#define gi_debug(room, ...) gi_log(GI_LOG_DEBUG, room, __VA_ARGS__)

/*
 * Record status and text as the thread's last error and return status. Prints the text at level
 * info, since the caller gets it anyway. status GIN_OK clears nothing and is returned.
 */
int gi_fail(int status, const char *fmt, ...) GIN_PRINTF(2, 3);

/* Prepend "what: " to the last error's text; returns the last status. For a layer that adds where.
 */
int gi_fail_context(const char *fmt, ...) GIN_PRINTF(1, 2);

/* The last error's text is said of call `is` where it begins with call `was`; returns the last
 * status. For calls that are inlined upon others. */
int gi_fail_instead(const char *was, const char *is);

/* Set the thread's last status without touching the text (success of pointer-returning calls). */
void gi_set_last_status(int status);

#endif
