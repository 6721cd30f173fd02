/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's GPU, as the rooms above see it: a CUDA context with a stream of its own, memory objects,
 * address ranges, copies. Addresses are uint64_t: they mean something to the GPU, and to the CPU
 * only where said so. Every call may come from any thread, with any context current and while
 * streams are being captured, and leaves both as they were. Failures are recorded with the driver's
 * words. In a build without CUDA gi_gpu_open() finds no GPU, and nothing else may be called.
 */
#ifndef GI_CUDA_GPU_H
#define GI_CUDA_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gi_gpu_fabric {
    unsigned char bytes[64];
};

struct gi_gpu {
    int device;    /* the driver's ordinal, in this process */
    bool retained; /* the device's primary context, held until gi_gpu_close() */
    void *context;
    void *stream;               /* non-blocking; for gi_gpu_zero() and copies */
    struct gi_gpu_store *store; /* private memory that came from the driver */
    struct gi_kernels *kernels; /* launch.c's, from their first use to the end */
    uint64_t granule;           /* of memory objects */
    bool host_atomics;          /* the GPU's atomics work on host memory, with the CPU's */
    bool fabric;                /* its objects have fabric handles, too */
    bool same_address;          /* registered host memory has one address for CPU and GPU */
    unsigned char uuid[16];
    char name[64];
    char pci[16]; /* "0000:1b:00.0" */
};

/*
 * The GPU of the calling thread: that of its current context, else device `local_rank` modulo the
 * number of devices, whose primary context is retained. GIN_OK with *gpu NULL and `why` filled
 * where the machine has no driver or device; anything else that is wrong is an error. driver: path
 * of the library, "" for the default.
 */
int gi_gpu_open(const char *driver, int local_rank, struct gi_gpu **gpu, char *why, size_t n);
void gi_gpu_close(struct gi_gpu *gpu); /* NULL is fine */
/* Whether the driver could be had, without touching a device. Slow the first time. */
bool gi_gpu_driver(const char *driver, char *why, size_t n);

/* GIN_OK, or the error that has made the context useless (a kernel that faulted). Cheap. */
int gi_gpu_health(struct gi_gpu *gpu);

/* ---- memory objects and addresses; need no context ---- */

/* Make an object of `bytes`, a multiple of the granule, that can be exported. */
int gi_gpu_object_create(const struct gi_gpu *gpu, uint64_t bytes, uint64_t *object);
int gi_gpu_object_export(uint64_t object, int *fd); /* the fd is the caller's */
int gi_gpu_object_import(int fd, uint64_t *object); /* the fd stays the caller's */
/* The same by a handle that any process of the NVLink domain understands, once gpu->fabric is set;
 * whether it may be, the first call tries, and says why not. */
bool gi_gpu_fabric_can(struct gi_gpu *gpu, char *why, size_t n);
int gi_gpu_fabric_export(uint64_t object, struct gi_gpu_fabric *handle);
int gi_gpu_fabric_import(const struct gi_gpu_fabric *handle, uint64_t *object);
void gi_gpu_object_release(uint64_t object); /* what is mapped stays mapped */

int gi_gpu_reserve(uint64_t bytes, uint64_t align, uint64_t *addr);
void gi_gpu_unreserve(uint64_t addr, uint64_t bytes);
int gi_gpu_map(uint64_t addr, uint64_t bytes, uint64_t object);
int gi_gpu_allow(uint64_t addr, uint64_t bytes, int device); /* let a device read and write */
void gi_gpu_unmap(uint64_t addr, uint64_t bytes);            /* exactly what one call mapped */

/*
 * ---- private memory ----
 *
 * Giving memory back to the driver waits for all kernels of the GPU, which may wait for this rank;
 * so what is freed is kept for the next who asks, until gi_gpu_close().
 */

int gi_gpu_alloc(struct gi_gpu *gpu, uint64_t bytes, uint64_t *addr); /* zeroed */
void gi_gpu_free(struct gi_gpu *gpu, uint64_t addr);                  /* 0 is fine */
/* Zeroed pinned host memory that the GPU reaches at *addr. */
int gi_gpu_host_alloc(struct gi_gpu *gpu, uint64_t bytes, void **host, uint64_t *addr);
void gi_gpu_host_free(struct gi_gpu *gpu, void *host); /* NULL is fine */
/* Pin memory that exists, for all GPUs of the process; at the same address where same_address.
 * *taken: it is pinned already, by somebody else. */
int gi_gpu_host_register(struct gi_gpu *gpu, void *host, uint64_t bytes, bool *taken);
void gi_gpu_host_unregister(struct gi_gpu *gpu, void *host);

/* ---- copies: done when the call returns ---- */

int gi_gpu_zero(struct gi_gpu *gpu, uint64_t addr, uint64_t bytes);
int gi_gpu_write(struct gi_gpu *gpu, uint64_t addr, const void *from, uint64_t bytes);
int gi_gpu_read(struct gi_gpu *gpu, void *to, uint64_t addr, uint64_t bytes);
int gi_gpu_copy(struct gi_gpu *gpu, uint64_t to, uint64_t from, uint64_t bytes);

/* ---- copies that go on while the caller does something else: for a thread that serves one GPU
 * ----
 */

int gi_gpu_stream_open(struct gi_gpu *gpu, void **stream);  /* non-blocking */
void gi_gpu_stream_close(struct gi_gpu *gpu, void *stream); /* waits for it; NULL is fine */

/* From here on this thread works for gpu alone, which the calls below rely on. */
int gi_gpu_adopt(struct gi_gpu *gpu);

/* Between any memory of GPUs and host; from pageable host memory it is read before this returns. */
int gi_gpu_copy_start(void *stream, uint64_t to, uint64_t from, uint64_t bytes);
/* Behind what the stream has been given, and after it is visible: a 64-bit word of pinned memory,
 * by its GPU address, becomes `value`. */
int gi_gpu_stamp(void *stream, uint64_t addr, uint64_t value);
/* Both, by a thread that has adopted nothing. */
int gi_gpu_copy_begin(struct gi_gpu *gpu, void *stream, uint64_t to, uint64_t from, uint64_t bytes,
                      uint64_t stamp_addr, uint64_t stamp);

#endif
