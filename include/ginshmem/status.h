/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Status codes. Every call that can fail returns one of these as an int: 0 is success, errors are
 * negative and never renumbered. Codes are grouped by what is broken: nothing (retry), the
 * caller's arguments, local resources, time, the peer or the network.
 */
#ifndef GINSHMEM_STATUS_H
#define GINSHMEM_STATUS_H

#include <ginshmem/impl/arch.h>

enum gin_status {
    GIN_OK = 0,
    GIN_EAGAIN = -1,   /* not now; the same call may succeed later */
    GIN_EINVAL = -10,  /* an argument has no meaning */
    GIN_ERANGE = -11,  /* an offset, id, rank or length is outside its object */
    GIN_ENOTSUP = -12, /* not possible here; gin_last_error() and gin_query() say why */
    GIN_ESTATE = -13,  /* wrong time: before init, after finalize, in a fork()ed child, stale id */
    GIN_EMISMATCH = -14, /* ranks passed different arguments to a collective call */
    GIN_ENOMEM = -20,    /* memory, heap space or a table is exhausted */
    GIN_ESYS = -21,      /* a system call or a library below failed */
    GIN_ETIMEDOUT = -30, /* the deadline passed */
    GIN_EPEER = -40,     /* a peer died or was aborted; sticky */
    GIN_ENET = -41       /* the network failed; sticky for the context */
};

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/* Name of a status ("GIN_EPEER"), or "GIN_E?" for a number that is none. Never NULL. */
GIN_API const char *gin_status_name(int status);

/* One sentence on a status, for a person. Never NULL. */
GIN_API const char *gin_strerror(int status);

/*
 * Status of the last failing call of this thread on any communicator, GIN_OK if none failed since
 * the last gin_clear_error(). Calls that return pointers (gin_malloc ...) set it on success too.
 */
GIN_API int gin_last_status(void);

/*
 * Text of the last failing call of this thread: what failed, where, with which values, and what to
 * do about it. Valid until the next failing call of this thread; "" if there was none.
 */
GIN_API const char *gin_last_error(void);

/* Forget the thread's last status and text. */
GIN_API void gin_clear_error(void);

GIN_END_DECLS
#endif
#endif
