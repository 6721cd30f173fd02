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

// Blocks are large, most of them untouched, and serve one launch after the other.
static struct emu_block *spare[16];
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static struct emu_block *take_block(void)
{
    struct emu_block *b = NULL;
    pthread_mutex_lock(&spare_lock);
    for (struct emu_block *&s : spare)
        if (b == NULL && s != NULL) {
            b = s;
            s = NULL;
        }
    pthread_mutex_unlock(&spare_lock);
    if (b == NULL)
        b = (struct emu_block *)calloc(1, sizeof(*b));
    if (b == NULL)
        abort();
    return b;
}

static void give_block(struct emu_block *b)
{
    pthread_mutex_lock(&spare_lock);
    for (struct emu_block *&s : spare)
        if (b != NULL && s == NULL) {
            s = b;
            b = NULL;
        }
    pthread_mutex_unlock(&spare_lock);
    free(b);
}

extern "C" __attribute__((visibility("default"))) void
fake_kernel_run(const struct gi_stream_job *job, unsigned threads)
{
    const uint32_t n = threads < LANES ? threads : LANES;
    struct emu_block *block = take_block();
    struct emu_start starts[LANES];
    pthread_t thread[LANES];
    block->dim = {n, 1, 1};
    for (uint32_t i = 0; i < n; i++)
        starts[i] = {block, i, run_lane, (void *)job};
    for (uint32_t i = 1; i < n; i++)
        if (pthread_create(&thread[i], NULL, emu_run_thread, &starts[i]) != 0)
            abort();
    emu_run_thread(&starts[0]);
    for (uint32_t i = 1; i < n; i++)
        pthread_join(thread[i], NULL);
    give_block(block);
}
