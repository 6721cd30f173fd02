/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CUDA driver without GPU, for tests of what the host does: memory of a "GPU" is a memory object
 * of the kernel, mapped here, so that the CPU can look at it; streams are done late. Whatever is
 * asked for is checked (bounds, granularity, access), so that a sloppy call fails. The library is
 * opened by the path that GINSHMEM_TEST_LIBCUDA names; FAKE_CUDA_DEVICES is the number of devices,
 * 2 by default.
 */
#ifndef GINSHMEM_TESTS_CUDA_FAKE_CUDA_H
#define GINSHMEM_TESTS_CUDA_FAKE_CUDA_H

#include <stddef.h>

/* Make the nth call from now of an entry ("cuMemCreate") fail with a CUresult. 0: none. */
void fake_cuda_fail(const char *entry, unsigned nth, int error);
/* What exists: objects, reservations, maps, allocations, registrations, contexts, streams... */
long fake_cuda_live(void);
/* Calls of all entries so far, but for those that only look at the state of a context or stream. */
long fake_cuda_calls(void);
/* Questions so far about what is at an address. */
long fake_cuda_asked(void);
/* Memory of device 0 as cuMemAlloc() gives it, behind which as much host memory lies. */
unsigned long long fake_cuda_mixed(size_t bytes);
/* Memory as cuMemAlloc() gives it, but of a pool, or managed. 0: none. */
unsigned long long fake_cuda_other(int managed, size_t bytes);
/* 1: what streams were given is done by nobody who does not wait for it; 0: as usual. */
void fake_cuda_hold(int hold);
/* Break a device: its context answers every call with an illegal address. */
void fake_cuda_fault(int device);

/* It is memory of a GPU. */
int fake_cuda_is_gpu(unsigned long long at, size_t bytes);
/* cuFlushGPUDirectRDMAWrites() so far. */
long fake_cuda_flushes(void);

/* Launches so far; the last one's argument (struct gi_stream_job) and threads. */
long fake_cuda_launched(void *job, unsigned *threads);
/* The capture of a stream has failed. */
void fake_cuda_spoil_capture(void *stream);

#endif
