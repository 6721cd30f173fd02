/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symmetric heap: one flat range of addresses per kind of memory, the same offsets on every
 * rank. All allocation calls are collective over the communicator and serial; they end with an
 * agreement, so that a mismatch or one rank's failure is reported on all ranks and leaves all heaps
 * equal. Zero sizes and NULL are local no-ops.
 */
#ifndef GINSHMEM_MEMORY_H
#define GINSHMEM_MEMORY_H

#include <ginshmem/init.h>

typedef enum gin_kind {
    GIN_KIND_HOST = 0, /* host memory, huge pages where asked */
    GIN_KIND_CUDA = 1  /* memory of this rank's GPU */
} gin_kind_t;

/* What a heap holds, in bytes unless said otherwise. */
typedef struct gin_heap_usage {
    size_t size_of;        /* sizeof this struct, set by the caller */
    uint64_t size;         /* reserved memory */
    uint64_t max;          /* limit of growth */
    uint64_t used;         /* in live blocks, padding included */
    uint64_t peak;         /* highest `used` so far */
    uint64_t largest_free; /* largest block that fits without growth */
    uint64_t blocks;       /* number of live blocks */
    uint64_t internal;     /* part of `used` held by device communicators */
    char backing[96];      /* "4 KiB pages", "2 MiB huge pages", ... with the reason */
} gin_heap_usage_t;

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/*
 * Allocate `bytes` of symmetric host memory, aligned to 64 bytes; contents undefined. Collective,
 * same size on every rank. Returns NULL on failure and for 0 bytes; gin_last_status() tells which:
 * GIN_OK for 0 bytes, GIN_ENOMEM, GIN_EMISMATCH, GIN_EPEER, GIN_ETIMEDOUT.
 */
GIN_API void *gin_malloc(gin_comm_t *comm, size_t bytes);
/* The same for count * size zeroed bytes; an overflowing product is GIN_ERANGE. */
GIN_API void *gin_calloc(gin_comm_t *comm, size_t count, size_t size);
/* The same at a power-of-two alignment up to 1 GiB. */
GIN_API void *gin_aligned_alloc(gin_comm_t *comm, size_t alignment, size_t bytes);
/*
 * Change a block's size; keeps the alignment it was made with and min(old, new) bytes of contents.
 * ptr NULL allocates, bytes 0 frees (local NULL checks aside, collective). NULL with ptr still
 * valid on failure.
 */
GIN_API void *gin_realloc(gin_comm_t *comm, void *ptr, size_t bytes);
/*
 * Free a block. Collective. NULL is a local no-op. A pointer that is not the start of a live block
 * is refused (GIN_EINVAL) and nothing changes.
 */
GIN_API int gin_free(gin_comm_t *comm, void *ptr);

/* The same for a kind of memory; GIN_KIND_CUDA is GIN_ENOTSUP where there is no GPU heap. */
GIN_API void *gin_malloc_kind(gin_comm_t *comm, gin_kind_t kind, size_t bytes);
GIN_API void *gin_calloc_kind(gin_comm_t *comm, gin_kind_t kind, size_t count, size_t size);
GIN_API void *gin_aligned_alloc_kind(gin_comm_t *comm, gin_kind_t kind, size_t alignment,
                                     size_t bytes);

/* Fill *usage for a heap. Local. */
GIN_API int gin_heap_usage(gin_comm_t *comm, gin_kind_t kind, gin_heap_usage_t *usage);

/*
 * Walk the heap's invariants and, with GINSHMEM_CHECK=1, the red zones of every block. GIN_OK, or
 * GIN_ESTATE naming the first damaged block. Local.
 */
GIN_API int gin_heap_check(gin_comm_t *comm);

/*
 * Address at which this process reaches rank's copy of a heap or window address of mine, or NULL
 * when it cannot (gin_last_error() says why). Local.
 */
GIN_API void *gin_ptr(gin_comm_t *comm, const void *mine, int rank);

GIN_END_DECLS
#endif
#endif
