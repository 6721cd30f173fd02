/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of one operation each, whose machine code tests/gpu/sass counts. Never run. */
#include <ginshmem.h>

struct args {
    gin_devcomm_t dev;
    gin_at_t dst, src;
    size_t bytes;
    uint64_t value;
    int peer, *status;
};

#define KERNEL(name, call)                     \
    extern "C" __global__ void name(args a)    \
    {                                          \
        gin_t g;                               \
        if (gin_open(&a.dev, 0, &g) == GIN_OK) \
            *a.status = (call);                \
    }
#define PUT(grp, bytes, action) gin_put(&g, grp, gin_world(&g), a.peer, a.dst, a.src, bytes, action)

KERNEL(open_alone, a.peer)
KERNEL(put_thread, PUT(gin_thread(), a.bytes, gin_no_action()))
KERNEL(put_weak_thread, PUT(gin_thread(), a.bytes, gin_weak_inc(1)))
KERNEL(put_weak_warp, PUT(gin_warp(), a.bytes, gin_weak_inc(1)))
KERNEL(put_weak_block, PUT(gin_block(), a.bytes, gin_weak_inc(1)))
KERNEL(put_strong_block, PUT(gin_block(), a.bytes, gin_strong_inc(1)))
KERNEL(put_set_block, PUT(gin_block(), a.bytes, gin_set_at(a.dst, 1)))
KERNEL(put_8_weak_thread, PUT(gin_thread(), 8, gin_weak_inc(1)))
KERNEL(value_thread,
       gin_put_value(&g, gin_thread(), gin_world(&g), a.peer, a.dst, a.value, 8, gin_no_action()))
KERNEL(value_weak_thread,
       gin_put_value(&g, gin_thread(), gin_world(&g), a.peer, a.dst, a.value, 8, gin_weak_inc(1)))
KERNEL(signal_thread, gin_signal(&g, gin_thread(), gin_world(&g), a.peer, gin_weak_inc(1)))
KERNEL(wait_thread, gin_wait_signal(&g, gin_thread(), 1, a.value))
