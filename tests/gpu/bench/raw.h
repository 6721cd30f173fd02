/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bare network beside figures of kernels: libfabric's own writes between two ends of one
 * process, each of which belongs to a thread, with nothing of the library.
 */
#ifndef GINSHMEM_TESTS_GPU_BENCH_RAW_H
#define GINSHMEM_TESTS_GPU_BENCH_RAW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct raw;

/* Two ends with `bytes` each, over the provider of that name or that beneath ofi_rxm. NULL: there
 * is none, or it does not come up. */
struct raw *raw_open(const char *provider, size_t bytes);
const char *raw_name(const struct raw *r);
void raw_close(struct raw *r);
/*
 * Both threads call, end 0 and 1; nanoseconds of one write, 0: it failed. One way there and back
 * by turns; and end 0's writes without a pause, of which at most `window` are under way.
 */
double raw_pingpong(struct raw *r, int end, size_t bytes, long iters);
double raw_stream(struct raw *r, int end, size_t bytes, long iters, unsigned window);

#ifdef __cplusplus
}
#endif
#endif
