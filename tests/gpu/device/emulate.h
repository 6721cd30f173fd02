/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU made of threads of this process, so that the device code can be tried without one: blocks
 * are pthreads, barriers and warp operations are meetings, PTX is the compiler's atomics. It takes
 * the place of impl/dev/ptx.h, the only file with instructions; everything else is what kernels
 * run. Include it before any header of ours. C++.
 */
#ifndef GINSHMEM_TESTS_GPU_EMULATE_H
#define GINSHMEM_TESTS_GPU_EMULATE_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/device/emulate_math.h"

#define __CUDA_ARCH__ 900
#define __device__
#define __host__

struct emu_dim {
    uint32_t x, y, z;
};

/* `n` threads meet, each with a value in its place; nobody leaves before all have come. */
struct emu_meeting {
    pthread_mutex_t lock;
    pthread_cond_t come;
    uint32_t arrived, round, mask;
    uint64_t values[2][1024];
};

#define EMU_MASKS 64
struct emu_block {
    struct emu_dim dim;
    struct emu_meeting named[16]; /* 0: the block */
    struct emu_meeting warps[32][EMU_MASKS];
    pthread_mutex_t lock;
    uint64_t box[16];
};

struct emu_thread {
    struct emu_block *block;
    struct emu_dim idx;
    uint32_t linear;
};
static thread_local struct emu_thread emu_me;

static const struct emu_dim blockIdx = {0, 0, 0};
#define threadIdx (emu_me.idx)
#define blockDim  (emu_me.block->dim)

static inline uint32_t emu_threads(void)
{
    return blockDim.x * blockDim.y * blockDim.z;
}

static inline const uint64_t *emu_meet(struct emu_meeting *m, uint32_t n, uint32_t place,
                                       uint64_t v)
{
    pthread_mutex_lock(&m->lock);
    uint32_t round = m->round;
    m->values[round & 1][place] = v;
    if (++m->arrived == n) {
        m->arrived = 0;
        m->round++;
        pthread_cond_broadcast(&m->come);
    }
    while (m->round == round)
        pthread_cond_wait(&m->come, &m->lock);
    pthread_mutex_unlock(&m->lock);
    return m->values[round & 1];
}

/* The meeting of some lanes of my warp. */
static inline struct emu_meeting *emu_lanes(uint32_t mask)
{
    struct emu_block *b = emu_me.block;
    struct emu_meeting *m = b->warps[emu_me.linear / 32];
    pthread_mutex_lock(&b->lock);
    uint32_t i = 0;
    while (m[i].mask != mask && m[i].mask != 0)
        if (++i == EMU_MASKS)
            abort();
    m[i].mask = mask;
    pthread_mutex_unlock(&b->lock);
    return &m[i];
}

static inline const uint64_t *emu_warp(uint32_t mask, uint64_t v)
{
    uint32_t left = emu_threads() - emu_me.linear / 32 * 32;
    uint32_t there = left >= 32 ? mask : mask & ((1u << left) - 1);
    if (!(mask >> emu_me.linear % 32 & 1))
        abort(); /* a lane that is not in its own mask */
    return emu_meet(emu_lanes(mask), (uint32_t)__builtin_popcount(there), emu_me.linear % 32, v);
}

static inline void __syncwarp(uint32_t mask)
{
    emu_warp(mask, 0);
}

template <typename T> static inline T __shfl_sync(uint32_t mask, T v, int lane)
{
    return (T)emu_warp(mask, (uint64_t)v)[lane];
}

static inline uint32_t __ballot_sync(uint32_t mask, int v)
{
    uint32_t left = emu_threads() - emu_me.linear / 32 * 32, all = 0;
    const uint64_t *values = emu_warp(mask, v != 0);
    for (uint32_t i = 0; i < 32 && i < left; i++)
        if (mask >> i & 1)
            all |= (uint32_t)values[i] << i;
    return all;
}

static inline int __any_sync(uint32_t mask, int v)
{
    return __ballot_sync(mask, v) != 0;
}

/* `n` threads at a named barrier, always the same ones. */
static inline int emu_named_or(uint32_t id, uint32_t n, int v)
{
    const uint64_t *values = emu_meet(&emu_me.block->named[id], n, emu_me.linear, v != 0);
    int any = 0;
    for (uint32_t i = 0; i < emu_threads(); i++)
        any |= values[i] != 0;
    return any;
}

static inline int __syncthreads_or(int v)
{
    return emu_named_or(0, emu_threads(), v);
}

static inline void __syncthreads(void)
{
    __syncthreads_or(0);
}

static inline int __popc(uint32_t v)
{
    return __builtin_popcount(v);
}

static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}

/* ---- impl/dev/ptx.h ---- */

#define GINSHMEM_IMPL_DEV_PTX_H
#include <ginshmem/impl/arch.h>

#define GIN_DEV      static inline __attribute__((always_inline, unused))
#define GIN_DEV_CALL static __attribute__((noinline, unused))

/* Two cores serve hundreds of threads: whoever polls lets others go on. */
static inline void emu_polite(void)
{
    static thread_local unsigned n;
    if (++n % 16 == 0)
        sched_yield();
}

/*
 * A fence makes the thread's later relaxed stores releases: a little more than it should, but what
 * a race detector, which knows no fences, can follow.
 */
static thread_local int emu_fenced;
#define EMU_RELAXED (emu_fenced ? __ATOMIC_RELEASE : __ATOMIC_RELAXED)

#define EMU_LD(name, type, order)         \
    GIN_DEV type name(const type *p)      \
    {                                     \
        emu_polite();                     \
        return __atomic_load_n(p, order); \
    }
#define EMU_ST(name, type, order)      \
    GIN_DEV void name(type *p, type v) \
    {                                  \
        __atomic_store_n(p, v, order); \
    }
#define EMU_ATOM(name, type, call, order) \
    GIN_DEV type name(type *p, type v)    \
    {                                     \
        return call(p, v, order);         \
    }
#define EMU_RED(name, type, call, order) \
    GIN_DEV void name(type *p, type v)   \
    {                                    \
        call(p, v, order);               \
    }

EMU_LD(gin_i_ld_relaxed_sys, uint64_t, __ATOMIC_RELAXED)
EMU_LD(gin_i_ld_acquire_sys, uint64_t, __ATOMIC_ACQUIRE)
EMU_LD(gin_i_ld_relaxed_gpu, uint64_t, __ATOMIC_RELAXED)
EMU_LD(gin_i_ld_acquire_gpu, uint64_t, __ATOMIC_ACQUIRE)
EMU_LD(gin_i_ld32_relaxed_sys, uint32_t, __ATOMIC_RELAXED)
EMU_LD(gin_i_ld16_relaxed_sys, uint16_t, __ATOMIC_RELAXED)
EMU_LD(gin_i_ld8_relaxed_sys, uint8_t, __ATOMIC_RELAXED)
EMU_LD(gin_i_ld_generic, uint64_t, __ATOMIC_RELAXED)
EMU_LD(gin_i_ld32_generic, uint32_t, __ATOMIC_RELAXED)
EMU_ST(gin_i_st_relaxed_sys, uint64_t, EMU_RELAXED)
EMU_ST(gin_i_st_release_sys, uint64_t, __ATOMIC_RELEASE)
EMU_ST(gin_i_st_relaxed_gpu, uint64_t, EMU_RELAXED)
EMU_ST(gin_i_st32_relaxed_sys, uint32_t, EMU_RELAXED)
EMU_ST(gin_i_st16_relaxed_sys, uint16_t, EMU_RELAXED)
EMU_ST(gin_i_st8_relaxed_sys, uint8_t, EMU_RELAXED)

struct gin_i_16 {
    uint64_t a, b;
};

GIN_DEV void emu_aligned(const void *p)
{
    if ((uintptr_t)p % 16 != 0)
        abort();
}

GIN_DEV struct gin_i_16 gin_i_ld128_relaxed_sys(const void *p)
{
    const uint64_t *w = (const uint64_t *)p;
    emu_aligned(p);
    struct gin_i_16 v = {gin_i_ld_relaxed_sys(w), gin_i_ld_relaxed_sys(w + 1)};
    return v;
}

/* Another moment's half would need a writer of both; those that there are store b before a. */
GIN_DEV struct gin_i_16 gin_i_ld128_whole_sys(const void *p)
{
    const uint64_t *w = (const uint64_t *)p;
    emu_aligned(p);
    struct gin_i_16 v;
    v.a = gin_i_ld_acquire_sys(w);
    v.b = gin_i_ld_acquire_sys(w + 1);
    return v;
}

GIN_DEV struct gin_i_16 gin_i_ld128_acquire_sys(const void *p)
{
    return gin_i_ld128_whole_sys(p);
}

GIN_DEV struct gin_i_16 gin_i_ld128_relaxed_gpu(const void *p)
{
    return gin_i_ld128_relaxed_sys(p);
}

GIN_DEV struct gin_i_16 gin_i_ld128_generic(const void *p)
{
    return gin_i_ld128_relaxed_sys(p);
}

GIN_DEV struct gin_i_16 gin_i_nc_128(const void *p)
{
    return gin_i_ld128_relaxed_sys(p);
}

struct gin_i_48 {
    struct gin_i_16 a, b, c;
};

GIN_DEV struct gin_i_48 gin_i_nc_384(const void *p)
{
    const char *at = (const char *)p;
    struct gin_i_48 v = {gin_i_nc_128(at), gin_i_nc_128(at + 16), gin_i_nc_128(at + 32)};
    return v;
}

/* The second half first: nobody may rely on their order. */
GIN_DEV void gin_i_st128_relaxed_sys(void *p, uint64_t a, uint64_t b)
{
    emu_aligned(p);
    gin_i_st_relaxed_sys((uint64_t *)p + 1, b);
    gin_i_st_relaxed_sys((uint64_t *)p, a);
}

GIN_DEV void gin_i_st128_generic(void *p, struct gin_i_16 v)
{
    gin_i_st128_relaxed_sys(p, v.a, v.b);
}

GIN_DEV void gin_i_st128(void *p, struct gin_i_16 v)
{
    gin_i_st128_relaxed_sys(p, v.a, v.b);
}

GIN_DEV uint64_t gin_i_nc_u64(const void *p)
{
    return *(const volatile uint64_t *)p;
}

GIN_DEV uint32_t gin_i_nc_u32(const void *p)
{
    return *(const volatile uint32_t *)p;
}

GIN_DEV uint64_t gin_i_opaque(uint64_t v)
{
    return v;
}

GIN_DEV uint64_t gin_i_lane_own(uint64_t v)
{
    return v;
}

GIN_DEV uint64_t gin_i_zero_from_here(void)
{
    return 0;
}

GIN_DEV void gin_i_fence_sc_sys(void)
{
    emu_fenced = 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

GIN_DEV void gin_i_fence_sys(void)
{
    emu_fenced = 1;
}

GIN_DEV void gin_i_fence_gpu(void)
{
    emu_fenced = 1;
}

EMU_RED(gin_i_red_add_relaxed_sys, uint64_t, __atomic_fetch_add, EMU_RELAXED)
EMU_RED(gin_i_red_add_release_sys, uint64_t, __atomic_fetch_add, __ATOMIC_RELEASE)
EMU_RED(gin_i_red_add_relaxed_gpu, uint64_t, __atomic_fetch_add, EMU_RELAXED)
EMU_RED(gin_i_red_add_release_gpu, uint64_t, __atomic_fetch_add, __ATOMIC_RELEASE)
EMU_RED(gin_i_red_and_sys, uint64_t, __atomic_fetch_and, __ATOMIC_RELAXED)
EMU_RED(gin_i_red_or_sys, uint64_t, __atomic_fetch_or, __ATOMIC_RELAXED)
EMU_RED(gin_i_red_xor_sys, uint64_t, __atomic_fetch_xor, __ATOMIC_RELAXED)
EMU_RED(gin_i_red32_add_sys, uint32_t, __atomic_fetch_add, __ATOMIC_RELAXED)
EMU_RED(gin_i_red32_and_sys, uint32_t, __atomic_fetch_and, __ATOMIC_RELAXED)
EMU_RED(gin_i_red32_or_sys, uint32_t, __atomic_fetch_or, __ATOMIC_RELAXED)
EMU_RED(gin_i_red32_xor_sys, uint32_t, __atomic_fetch_xor, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_add_sys, uint64_t, __atomic_fetch_add, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_and_sys, uint64_t, __atomic_fetch_and, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_or_sys, uint64_t, __atomic_fetch_or, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_xor_sys, uint64_t, __atomic_fetch_xor, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_exch_sys, uint64_t, __atomic_exchange_n, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom32_add_sys, uint32_t, __atomic_fetch_add, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom32_and_sys, uint32_t, __atomic_fetch_and, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom32_or_sys, uint32_t, __atomic_fetch_or, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom32_xor_sys, uint32_t, __atomic_fetch_xor, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom32_exch_sys, uint32_t, __atomic_exchange_n, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_add_gpu, uint64_t, __atomic_fetch_add, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_or_gpu, uint64_t, __atomic_fetch_or, __ATOMIC_RELAXED)
EMU_ATOM(gin_i_atom_exch_gpu, uint64_t, __atomic_exchange_n, __ATOMIC_ACQ_REL)
EMU_ATOM(gin_i_atom32_exch_acquire_gpu, uint32_t, __atomic_exchange_n, __ATOMIC_ACQUIRE)
EMU_ATOM(gin_i_atom32_exch_release_gpu, uint32_t, __atomic_exchange_n, __ATOMIC_RELEASE)

GIN_DEV void gin_i_red_max_relaxed_gpu(uint64_t *p, uint64_t v)
{
    uint64_t was = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (was < v &&
           !__atomic_compare_exchange_n(p, &was, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

GIN_DEV uint64_t gin_i_atom_cas_sys(uint64_t *p, uint64_t expected, uint64_t v)
{
    __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

GIN_DEV uint64_t gin_i_atom_cas_gpu(uint64_t *p, uint64_t expected, uint64_t v)
{
    __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}

GIN_DEV uint32_t gin_i_atom32_cas_sys(uint32_t *p, uint32_t expected, uint32_t v)
{
    __atomic_compare_exchange_n(p, &expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

/* ---- multicast: an address space of its own, behind which all ranks' heaps lie ---- */

#define GIN_I_MULTIMEM 1
struct emu_multicast {
    uint64_t base, bytes; /* of the addresses */
    uint64_t heaps, stride;
    int n;
};
static struct emu_multicast emu_multicast;

/* The word behind a multicast address at one rank. */
static inline void *emu_part(const void *p, int rank, size_t align)
{
    uint64_t off = (uint64_t)p - emu_multicast.base;
    if (off >= emu_multicast.bytes || off % align != 0)
        abort();
    return (void *)(emu_multicast.heaps + (uint64_t)rank * emu_multicast.stride + off);
}

#define EMU_MM_EACH(name, type, call, order)                      \
    GIN_DEV void name(type *p, type v)                            \
    {                                                             \
        for (int r = 0; r < emu_multicast.n; r++)                 \
            call((type *)emu_part(p, r, sizeof(type)), v, order); \
    }
EMU_MM_EACH(gin_i_mm_st32, uint32_t, __atomic_store_n, EMU_RELAXED)
EMU_MM_EACH(gin_i_mm_st64, uint64_t, __atomic_store_n, EMU_RELAXED)
EMU_MM_EACH(gin_i_mm_red_add, uint64_t, __atomic_fetch_add, __ATOMIC_RELAXED)

GIN_DEV void gin_i_mm_st128(void *p, struct gin_i_16 v)
{
    emu_aligned(p);
    gin_i_mm_st64((uint64_t *)p, v.a);
    gin_i_mm_st64((uint64_t *)p + 1, v.b);
}

#define EMU_MM_REDUCE(name, type, expression)                              \
    GIN_DEV type gin_i_mm_##name(const type *p)                            \
    {                                                                      \
        type a = *(const volatile type *)emu_part(p, 0, sizeof(type));     \
        for (int r = 1; r < emu_multicast.n; r++) {                        \
            type b = *(const volatile type *)emu_part(p, r, sizeof(type)); \
            a = (expression);                                              \
        }                                                                  \
        return a;                                                          \
    }
EMU_MM_REDUCE(add_uint32, uint32_t, a + b)
EMU_MM_REDUCE(add_uint64, uint64_t, a + b)
EMU_MM_REDUCE(add_f32, float, a + b)
EMU_MM_REDUCE(add_f64, double, a + b)
EMU_MM_REDUCE(min_u32, uint32_t, a < b ? a : b)
EMU_MM_REDUCE(min_s32, int32_t, a < b ? a : b)
EMU_MM_REDUCE(min_u64, uint64_t, a < b ? a : b)
EMU_MM_REDUCE(min_s64, int64_t, a < b ? a : b)
EMU_MM_REDUCE(max_u32, uint32_t, a > b ? a : b)
EMU_MM_REDUCE(max_s32, int32_t, a > b ? a : b)
EMU_MM_REDUCE(max_u64, uint64_t, a > b ? a : b)
EMU_MM_REDUCE(max_s64, int64_t, a > b ? a : b)
EMU_MM_REDUCE(and_uint32, uint32_t, a &b)
EMU_MM_REDUCE(and_uint64, uint64_t, a &b)
EMU_MM_REDUCE(or_uint32, uint32_t, a | b)
EMU_MM_REDUCE(or_uint64, uint64_t, a | b)
EMU_MM_REDUCE(xor_uint32, uint32_t, a ^ b)
EMU_MM_REDUCE(xor_uint64, uint64_t, a ^ b)

/* Of the threads that a named barrier counts: the missing lanes of a short last warp do not come.
 * (Tests have at most one span that holds it.) */
GIN_DEV uint32_t emu_existing(uint32_t threads)
{
    return threads - (0 - emu_threads()) % 32;
}

GIN_DEV int gin_i_named_or(uint32_t id, uint32_t threads, int value)
{
    return emu_named_or(id, emu_existing(threads), value);
}

GIN_DEV void gin_i_named_sync(uint32_t id, uint32_t threads)
{
    gin_i_named_or(id, threads, 0);
}

#define GIN_I_SPAN_IDS 16u
GIN_DEV uint64_t *gin_i_box(uint32_t id)
{
    return &emu_me.block->box[id];
}

GIN_DEV uint64_t gin_i_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

GIN_DEV void gin_i_sleep_ns(uint32_t ns)
{
    struct timespec t = {0, (long)ns};
    nanosleep(&t, NULL);
}

GIN_DEV int gin_i_is_first_active(void)
{
    return 1;
}

/* What a trap ends is the process. */
#define EMU_TRAPPED 44
GIN_DEV void gin_i_trap(void)
{
    fflush(NULL);
    _exit(EMU_TRAPPED);
}

/* The thread's stack is what others cannot reach. */
GIN_DEV int gin_i_is_global(uint64_t p)
{
    static thread_local uint64_t stack, bytes;
    if (stack == 0) {
        pthread_attr_t attr;
        void *low;
        size_t n;
        if (pthread_getattr_np(pthread_self(), &attr) != 0 ||
            pthread_attr_getstack(&attr, &low, &n) != 0)
            abort();
        stack = (uint64_t)low;
        bytes = n;
        pthread_attr_destroy(&attr);
    }
    return p - stack >= bytes;
}

/* ---- running ---- */

struct emu_start {
    struct emu_block *block;
    uint32_t linear;
    void (*kernel)(void *);
    void *arg;
};

static inline void *emu_run_thread(void *start)
{
    struct emu_start *s = (struct emu_start *)start;
    const struct emu_dim d = s->block->dim;
    emu_me.block = s->block;
    emu_me.linear = s->linear;
    emu_me.idx.x = s->linear % d.x;
    emu_me.idx.y = s->linear / d.x % d.y;
    emu_me.idx.z = s->linear / d.x / d.y;
    s->kernel(s->arg);
    return NULL;
}

struct emu_launch {
    struct emu_block *block;
    struct emu_start *starts;
    pthread_t *threads;
};

static inline struct emu_launch emu_launch_block(struct emu_dim dim, void (*kernel)(void *),
                                                 void *arg)
{
    uint32_t n = dim.x * dim.y * dim.z;
    struct emu_launch l;
    pthread_attr_t attr;
    l.block = (struct emu_block *)calloc(1, sizeof(*l.block));
    l.starts = (struct emu_start *)calloc(n, sizeof(*l.starts));
    l.threads = (pthread_t *)calloc(n, sizeof(*l.threads));
    l.block->dim = dim;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    for (uint32_t i = 0; i < n; i++) {
        l.starts[i].block = l.block;
        l.starts[i].linear = i;
        l.starts[i].kernel = kernel;
        l.starts[i].arg = arg;
        if (pthread_create(&l.threads[i], &attr, emu_run_thread, &l.starts[i]) != 0)
            abort();
    }
    pthread_attr_destroy(&attr);
    return l;
}

static inline void emu_join(struct emu_launch *l)
{
    uint32_t n = l->block->dim.x * l->block->dim.y * l->block->dim.z;
    for (uint32_t i = 0; i < n; i++)
        pthread_join(l->threads[i], NULL);
    free(l->threads);
    free(l->starts);
    free(l->block);
}

#endif
