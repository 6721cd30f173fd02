/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: memory that peers may reach. The heap is a window; user memory becomes one collectively.
 * Remote memory is named by (window, offset), offsets counting from the window's own start.
 */
#ifndef GINSHMEM_WINDOW_H
#define GINSHMEM_WINDOW_H

#include <ginshmem/memory.h>

/* Names a window: id in the low half, generation in the high half; 0 is no window. */
typedef struct gin_window {
    uint64_t w;
} gin_window_t;

/* A place: window and offset, or an address of this rank's own memory (gin_at_local). */
typedef struct gin_at {
    gin_window_t win;
    uint64_t off;
} gin_at_t;

enum gin_window_flags {
    GIN_WIN_DEFAULT = 0,
    GIN_WIN_STRICT_ORDERING = 1, /* no relaxed ordering of the NIC's writes */
    GIN_WIN_NO_LSA = 2,          /* never by load and store, always by copy calls or network */
    GIN_WIN_READ_ONLY = 4        /* peers may get, not put, signal or update */
};

/* How this rank reaches a rank's part of a window. */
typedef enum gin_path {
    GIN_PATH_NONE = 0, /* not at all */
    GIN_PATH_SELF = 1, /* my own */
    GIN_PATH_LSA = 2,  /* loads and stores */
    GIN_PATH_CMA = 4,  /* process_vm_readv/writev: copies and slot signals */
    GIN_PATH_NET = 8   /* network */
} gin_path_t;

typedef struct gin_window_info {
    size_t size_of;  /* sizeof this struct, set by the caller */
    void *base;      /* my address of offset 0 */
    uint64_t size;   /* bytes */
    unsigned flags;  /* enum gin_window_flags */
    gin_kind_t kind; /* memory of my part */
    int is_heap;     /* 1: the heap itself; 0 for a sub-window of it */
    int shared;      /* windows that share the registration, this one included */
} gin_window_info_t;

GIN_VALUE gin_window_t gin_window_none(void)
{
    gin_window_t w = {0};
    return w;
}

GIN_VALUE int gin_window_equal(gin_window_t a, gin_window_t b)
{
    return a.w == b.w;
}

/* Offset `off` of a window. */
GIN_VALUE gin_at_t gin_at(gin_window_t win, uint64_t off)
{
    gin_at_t at;
    at.win = win;
    at.off = off;
    return at;
}

/* My own memory, registered or not: source of a put, destination of a get. */
GIN_VALUE gin_at_t gin_at_local(const void *ptr)
{
    gin_at_t at;
    at.win.w = ~(uint64_t)0;
    at.off = (uint64_t)(uintptr_t)ptr;
    return at;
}

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/*
 * Make my `bytes` bytes at `ptr`, together with those of all ranks, a window. Collective; sizes and
 * flags equal everywhere (GIN_EMISMATCH says which differ), addresses need not be. Memory that lies
 * in the heap or in an existing registration becomes a sub-window of it and shares the
 * registration. bytes 0 is a valid window of size 0.
 *
 * Peers in other processes of this host are reached by process_vm_readv/writev when the memory is
 * not the heap's: copies and slot signals work, atomics and `_at` signals are GIN_ENOTSUP.
 *
 * GPU memory outside the heap: parts of cudaMalloc()ed memory, or of mapped memory (cuMemMap) in
 * one or several pieces, on the rank's own GPU; a rank without GPU passes NULL. Kernels load and
 * store there where every GPU reaches all parts of its LSA team. Managed memory and memory of pools
 * are GIN_ENOTSUP. Pinned host memory is host memory that kernels of its rank reach, too, and those
 * of its peers if all LSA peers are threads of one process.
 */
GIN_API int gin_window_register(gin_comm_t *comm, void *ptr, size_t bytes, unsigned flags,
                                gin_window_t *win);
/* Undo. Collective. The heap's window is refused (GIN_EINVAL), a stale one is GIN_ESTATE. */
GIN_API int gin_window_deregister(gin_comm_t *comm, gin_window_t win);
/* The heap's window of a kind of memory; none before the heap is up and where there is none. */
GIN_API gin_window_t gin_heap_window(gin_comm_t *comm, gin_kind_t kind);
/*
 * The innermost window that holds `ptr`, and the offset in it: the smallest registered one, else
 * the heap's. GIN_ERANGE when no window holds it. Local.
 */
GIN_API int gin_window_of(gin_comm_t *comm, const void *ptr, gin_window_t *win, uint64_t *off);
/* Describe a window. Local. */
GIN_API int gin_window_query(gin_comm_t *comm, gin_window_t win, gin_window_info_t *info);
/* How I reach rank's part of a window; for GIN_PATH_NONE gin_last_error() says why. Local. */
GIN_API gin_path_t gin_window_path(gin_comm_t *comm, gin_window_t win, int rank);
/* "self", "lsa", "cma", "net" or "none"; "?" for what is no path. Any time. */
GIN_API const char *gin_path_name(gin_path_t path);

/*
 * Tell that local memory will be a source or destination often. Not collective; overlapping and
 * repeated ranges are counted. Unregistered memory works too.
 */
GIN_API int gin_local_register(gin_comm_t *comm, void *ptr, size_t bytes);
/* Undo one gin_local_register() of exactly this start; GIN_EINVAL for an unknown one. */
GIN_API int gin_local_deregister(gin_comm_t *comm, void *ptr);

GIN_END_DECLS
#endif
#endif
