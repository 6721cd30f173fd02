// SPDX-License-Identifier: BSD-3-Clause
// The library's kernels on threads of this process, for the fake driver: the device code over
// tests/gpu/device/emulate.h, a pthread for each of a few lanes. What kernels do is the same for any
// number of threads. A library of its own, compiled by tests/cuda/emulated.sh.
#include "tests/gpu/device/emulate.h"

#include <stddef.h>

#define GI_KERNEL static void
#define GI_ARGS   const struct gi_stream_job &
#include "cuda/kernels/stream.cu"

#define LANES 4u

static void (*const kernels[])(const struct gi_stream_job &) = {
#define KERNEL(upper, lower) gi_stream_##lower,
    GI_STREAM_KERNELS(KERNEL)
#undef KERNEL
};

static void run_lane(void *arg)
{
    const struct gi_stream_job *j = (const struct gi_stream_job *)arg;
    kernels[j->kernel](*j);
}

extern "C" __attribute__((visibility("default"))) void
fake_kernel_run(const struct gi_stream_job *job, unsigned threads)
{
    struct emu_launch l =
        emu_launch_block({threads < LANES ? threads : LANES, 1, 1}, run_lane, (void *)job);
    emu_join(&l);
}
