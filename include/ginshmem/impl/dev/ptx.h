/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every instruction that orders memory, is atomic, or has no name in the language: the only file
 * with PTX. Suffixes say order and scope as PTX does. Addresses are of global memory (windows,
 * cells, rings) unless the name says generic. Not API.
 *
 * Everything but gin_i_nc_* is volatile and a barrier to the compiler: kernels poll, and the order
 * of what is written here is the order that runs.
 */
#ifndef GINSHMEM_IMPL_DEV_PTX_H
#define GINSHMEM_IMPL_DEV_PTX_H

#include <ginshmem/impl/arch.h>

/* GIN_DEV: a helper of device code. GIN_DEV_CALL: one that is called, to keep rare or long code out
 * of every caller. */
#ifdef __CUDACC_RTC__
#define GIN_DEV      static __device__ __forceinline__
#define GIN_DEV_CALL static __device__ __noinline__
#else
#define GIN_DEV      static __host__ __device__ __forceinline__
#define GIN_DEV_CALL static __attribute__((unused)) __host__ __device__ __noinline__
#endif

#define GIN_I_PTX_LD(name, instruction, type, reg)                               \
    GIN_DEV type name(const type *p)                                             \
    {                                                                            \
        type v;                                                                  \
        asm volatile(instruction " %0, [%1];" : "=" reg(v) : "l"(p) : "memory"); \
        return v;                                                                \
    }
#define GIN_I_PTX_ST(name, instruction, type, reg)                            \
    GIN_DEV void name(type *p, type v)                                        \
    {                                                                         \
        asm volatile(instruction " [%0], %1;" : : "l"(p), reg(v) : "memory"); \
    }
#define GIN_I_PTX_ATOM(name, instruction, type, reg)                                           \
    GIN_DEV type name(type *p, type v)                                                         \
    {                                                                                          \
        type was;                                                                              \
        asm volatile(instruction " %0, [%1], %2;" : "=" reg(was) : "l"(p), reg(v) : "memory"); \
        return was;                                                                            \
    }

/* ---- loads and stores ---- */

GIN_I_PTX_LD(gin_i_ld_relaxed_sys, "ld.relaxed.sys.global.u64", uint64_t, "l")
GIN_I_PTX_LD(gin_i_ld_acquire_sys, "ld.acquire.sys.global.u64", uint64_t, "l")
GIN_I_PTX_LD(gin_i_ld_relaxed_gpu, "ld.relaxed.gpu.global.u64", uint64_t, "l")
GIN_I_PTX_LD(gin_i_ld_acquire_gpu, "ld.acquire.gpu.global.u64", uint64_t, "l")
GIN_I_PTX_LD(gin_i_ld32_relaxed_sys, "ld.relaxed.sys.global.u32", uint32_t, "r")
GIN_I_PTX_LD(gin_i_ld16_relaxed_sys, "ld.relaxed.sys.global.u16", uint16_t, "h")

GIN_I_PTX_ST(gin_i_st_relaxed_sys, "st.relaxed.sys.global.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_st_release_sys, "st.release.sys.global.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_st_relaxed_gpu, "st.relaxed.gpu.global.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_st32_relaxed_sys, "st.relaxed.sys.global.u32", uint32_t, "r")
GIN_I_PTX_ST(gin_i_st16_relaxed_sys, "st.relaxed.sys.global.u16", uint16_t, "h")

GIN_DEV uint8_t gin_i_ld8_relaxed_sys(const uint8_t *p)
{
    uint32_t v;
    asm volatile("ld.relaxed.sys.global.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return (uint8_t)v;
}

GIN_DEV void gin_i_st8_relaxed_sys(uint8_t *p, uint8_t v)
{
    asm volatile("st.relaxed.sys.global.u8 [%0], %1;" : : "l"(p), "r"((uint32_t)v) : "memory");
}

/* 16 bytes, 16-byte aligned. Each half is whole; they belong to one moment only where that is said.
 */
struct gin_i_16 {
    uint64_t a, b;
};

GIN_DEV struct gin_i_16 gin_i_ld128_relaxed_sys(const void *p)
{
    struct gin_i_16 v;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.a), "=l"(v.b)
                 : "l"(p)
                 : "memory");
    return v;
}

/* Both halves of one moment; a writer that stores b before a is followed. */
#if (defined(__NVCC__) || defined(__CUDACC_RTC__)) && \
    (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 3))
GIN_DEV struct gin_i_16 gin_i_ld128_whole_sys(const void *p)
{
    struct gin_i_16 v;
    asm volatile("{\n\t"
                 ".reg .b128 t;\n\t"
                 "ld.relaxed.sys.global.b128 t, [%2];\n\t"
                 "mov.b128 {%0, %1}, t;\n\t"
                 "}"
                 : "=l"(v.a), "=l"(v.b)
                 : "l"(p)
                 : "memory");
    return v;
}
#else
GIN_DEV struct gin_i_16 gin_i_ld128_whole_sys(const void *p)
{
    const uint64_t *w = (const uint64_t *)p;
    struct gin_i_16 v;
    do {
        v.a = gin_i_ld_acquire_sys(w);
        v.b = gin_i_ld_acquire_sys(w + 1);
    } while (gin_i_ld_relaxed_sys(w) != v.a);
    return v;
}
#endif

GIN_DEV struct gin_i_16 gin_i_ld128_acquire_sys(const void *p)
{
    struct gin_i_16 v;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.a), "=l"(v.b)
                 : "l"(p)
                 : "memory");
    return v;
}

GIN_DEV struct gin_i_16 gin_i_ld128_relaxed_gpu(const void *p)
{
    struct gin_i_16 v;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.a), "=l"(v.b)
                 : "l"(p)
                 : "memory");
    return v;
}

GIN_DEV void gin_i_st128_relaxed_sys(void *p, uint64_t a, uint64_t b)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(p), "l"(a), "l"(b)
                 : "memory");
}

/* Issued where they are written, so that what follows hides their time. */
GIN_I_PTX_LD(gin_i_ld_generic, "ld.u64", uint64_t, "l")
GIN_I_PTX_LD(gin_i_ld32_generic, "ld.u32", uint32_t, "r")

/* Data of bulk copies: plain accesses, which the signal's release or the caller's acquire orders.
 */
GIN_DEV struct gin_i_16 gin_i_ld128_generic(const void *p)
{
    struct gin_i_16 v;
    asm volatile("ld.v2.u64 {%0, %1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p) : "memory");
    return v;
}

GIN_DEV void gin_i_st128_generic(void *p, struct gin_i_16 v)
{
    asm volatile("st.v2.u64 [%0], {%1, %2};" : : "l"(p), "l"(v.a), "l"(v.b) : "memory");
}

GIN_DEV void gin_i_st128(void *p, struct gin_i_16 v)
{
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" : : "l"(p), "l"(v.a), "l"(v.b) : "memory");
}

/*
 * Through the read-only cache, which nobody keeps coherent: constants, and what carries its own
 * proof (struct gin_i_window). The compiler may move and drop them.
 */
GIN_DEV uint64_t gin_i_nc_u64(const void *p)
{
    uint64_t v;
    asm("ld.global.nc.u64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
}

GIN_DEV uint32_t gin_i_nc_u32(const void *p)
{
    uint32_t v;
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

GIN_DEV struct gin_i_16 gin_i_nc_128(const void *p)
{
    struct gin_i_16 v;
    asm("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p));
    return v;
}

/* 48 bytes, 16-byte aligned, in one piece. */
struct gin_i_48 {
    struct gin_i_16 a, b, c;
};

GIN_DEV struct gin_i_48 gin_i_nc_384(const void *p)
{
    struct gin_i_48 v;
    asm("ld.global.nc.v2.u64 {%0, %1}, [%6];\n\t"
        "ld.global.nc.v2.u64 {%2, %3}, [%6 + 16];\n\t"
        "ld.global.nc.v2.u64 {%4, %5}, [%6 + 32];"
        : "=&l"(v.a.a), "=&l"(v.a.b), "=&l"(v.b.a), "=&l"(v.b.b), "=&l"(v.c.a), "=&l"(v.c.b)
        : "l"(p));
    return v;
}

/*
 * ---- multicast: addresses of gin_multimem_ptr() ----
 *
 * A store goes to every GPU of the object, a load brings what all of them hold, reduced.
 */

#if __CUDA_ARCH__ >= 900 && (!defined(__NVCC__) || __CUDACC_VER_MAJOR__ > 12 || \
                             (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 1))
#define GIN_I_MULTIMEM 1

GIN_I_PTX_ST(gin_i_mm_st32, "multimem.st.relaxed.sys.global.u32", uint32_t, "r")
GIN_I_PTX_ST(gin_i_mm_st64, "multimem.st.relaxed.sys.global.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_mm_red_add, "multimem.red.relaxed.sys.global.add.u64", uint64_t, "l")

#define GIN_I_PTX_MM(name, op, type, reg) \
    GIN_I_PTX_LD(gin_i_mm_##name, "multimem.ld_reduce.relaxed.sys.global." op, type, reg)
GIN_I_PTX_MM(add_uint32, "add.u32", uint32_t, "r")
GIN_I_PTX_MM(add_uint64, "add.u64", uint64_t, "l")
GIN_I_PTX_MM(add_f32, "add.f32", float, "f")
GIN_I_PTX_MM(add_f64, "add.f64", double, "d")
GIN_I_PTX_MM(min_u32, "min.u32", uint32_t, "r")
GIN_I_PTX_MM(min_s32, "min.s32", int32_t, "r")
GIN_I_PTX_MM(min_u64, "min.u64", uint64_t, "l")
GIN_I_PTX_MM(min_s64, "min.s64", int64_t, "l")
GIN_I_PTX_MM(max_u32, "max.u32", uint32_t, "r")
GIN_I_PTX_MM(max_s32, "max.s32", int32_t, "r")
GIN_I_PTX_MM(max_u64, "max.u64", uint64_t, "l")
GIN_I_PTX_MM(max_s64, "max.s64", int64_t, "l")
GIN_I_PTX_MM(and_uint32, "and.b32", uint32_t, "r")
GIN_I_PTX_MM(and_uint64, "and.b64", uint64_t, "l")
GIN_I_PTX_MM(or_uint32, "or.b32", uint32_t, "r")
GIN_I_PTX_MM(or_uint64, "or.b64", uint64_t, "l")
GIN_I_PTX_MM(xor_uint32, "xor.b32", uint32_t, "r")
GIN_I_PTX_MM(xor_uint64, "xor.b64", uint64_t, "l")

/* 16 bytes have only a floating-point type; a store changes no bit. */
GIN_DEV void gin_i_mm_st128(void *p, struct gin_i_16 v)
{
    asm volatile("{\n\t"
                 ".reg .b32 a, b, c, d;\n\t"
                 "mov.b64 {a, b}, %1;\n\t"
                 "mov.b64 {c, d}, %2;\n\t"
                 "multimem.st.relaxed.sys.global.v4.f32 [%0], {a, b, c, d};\n\t"
                 "}"
                 :
                 : "l"(p), "l"(v.a), "l"(v.b)
                 : "memory");
}
#else
#define GIN_I_MULTIMEM 0
#endif

/* ---- fences ---- */

GIN_DEV void gin_i_fence_sys(void)
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

GIN_DEV void gin_i_fence_sc_sys(void)
{
    asm volatile("fence.sc.sys;" ::: "memory");
}

GIN_DEV void gin_i_fence_gpu(void)
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/*
 * 0, known from here on only: assemblers move the first use of a load ahead of a fence, where it
 * waits for the load before the fence has begun; not when the use needs this. (The clock's top
 * bit.)
 */
GIN_DEV uint64_t gin_i_zero_from_here(void)
{
    uint64_t zero;
    asm volatile("{\n\t"
                 ".reg .u64 t;\n\t"
                 "mov.u64 t, %%clock64;\n\t"
                 "shr.u64 %0, t, 63;\n\t"
                 "}"
                 : "=l"(zero)
                 :
                 : "memory");
    return zero;
}

/* v as it is, of which the compiler knows nothing: it keeps no copies at other distances. */
GIN_DEV uint64_t gin_i_opaque(uint64_t v)
{
    asm("" : "+l"(v));
    return v;
}

/*
 * v as it is, at a distance that the assembler thinks is each lane's own (no lane mask of higher
 * lanes has lane 0): where one lane adds, it does not gather additions of the warp first.
 */
GIN_DEV uint64_t gin_i_lane_own(uint64_t v)
{
    uint32_t zero;
    asm("{\n\t"
        ".reg .u32 t;\n\t"
        "mov.u32 t, %%lanemask_gt;\n\t"
        "and.b32 %0, t, 1;\n\t"
        "}"
        : "=r"(zero));
    return v + zero;
}

/* ---- atomics ---- */

GIN_I_PTX_ST(gin_i_red_add_relaxed_sys, "red.relaxed.sys.global.add.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red_add_release_sys, "red.release.sys.global.add.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red_add_relaxed_gpu, "red.relaxed.gpu.global.add.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red_add_release_gpu, "red.release.gpu.global.add.u64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red_max_relaxed_gpu, "red.relaxed.gpu.global.max.u64", uint64_t, "l")

GIN_I_PTX_ST(gin_i_red_and_sys, "red.relaxed.sys.global.and.b64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red_or_sys, "red.relaxed.sys.global.or.b64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red_xor_sys, "red.relaxed.sys.global.xor.b64", uint64_t, "l")
GIN_I_PTX_ST(gin_i_red32_add_sys, "red.relaxed.sys.global.add.u32", uint32_t, "r")
GIN_I_PTX_ST(gin_i_red32_and_sys, "red.relaxed.sys.global.and.b32", uint32_t, "r")
GIN_I_PTX_ST(gin_i_red32_or_sys, "red.relaxed.sys.global.or.b32", uint32_t, "r")
GIN_I_PTX_ST(gin_i_red32_xor_sys, "red.relaxed.sys.global.xor.b32", uint32_t, "r")

GIN_I_PTX_ATOM(gin_i_atom_add_sys, "atom.relaxed.sys.global.add.u64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom_and_sys, "atom.relaxed.sys.global.and.b64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom_or_sys, "atom.relaxed.sys.global.or.b64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom_xor_sys, "atom.relaxed.sys.global.xor.b64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom_exch_sys, "atom.relaxed.sys.global.exch.b64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom32_add_sys, "atom.relaxed.sys.global.add.u32", uint32_t, "r")
GIN_I_PTX_ATOM(gin_i_atom32_and_sys, "atom.relaxed.sys.global.and.b32", uint32_t, "r")
GIN_I_PTX_ATOM(gin_i_atom32_or_sys, "atom.relaxed.sys.global.or.b32", uint32_t, "r")
GIN_I_PTX_ATOM(gin_i_atom32_xor_sys, "atom.relaxed.sys.global.xor.b32", uint32_t, "r")
GIN_I_PTX_ATOM(gin_i_atom32_exch_sys, "atom.relaxed.sys.global.exch.b32", uint32_t, "r")

GIN_I_PTX_ATOM(gin_i_atom_add_gpu, "atom.relaxed.gpu.global.add.u64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom_or_gpu, "atom.relaxed.gpu.global.or.b64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom_exch_gpu, "atom.acq_rel.gpu.global.exch.b64", uint64_t, "l")
GIN_I_PTX_ATOM(gin_i_atom32_exch_acquire_gpu, "atom.acquire.gpu.global.exch.b32", uint32_t, "r")
GIN_I_PTX_ATOM(gin_i_atom32_exch_release_gpu, "atom.release.gpu.global.exch.b32", uint32_t, "r")

GIN_DEV uint64_t gin_i_atom_cas_sys(uint64_t *p, uint64_t expected, uint64_t v)
{
    uint64_t was;
    asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(was)
                 : "l"(p), "l"(expected), "l"(v)
                 : "memory");
    return was;
}

GIN_DEV uint64_t gin_i_atom_cas_gpu(uint64_t *p, uint64_t expected, uint64_t v)
{
    uint64_t was;
    asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(was)
                 : "l"(p), "l"(expected), "l"(v)
                 : "memory");
    return was;
}

GIN_DEV uint32_t gin_i_atom32_cas_sys(uint32_t *p, uint32_t expected, uint32_t v)
{
    uint32_t was;
    asm volatile("atom.relaxed.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(was)
                 : "l"(p), "r"(expected), "r"(v)
                 : "memory");
    return was;
}

/* ---- groups of warps: named barrier `id` of `threads` threads ---- */

GIN_DEV void gin_i_named_sync(uint32_t id, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

GIN_DEV int gin_i_named_or(uint32_t id, uint32_t threads, int value)
{
    int any;
    asm volatile("{\n\t"
                 ".reg .pred p, q;\n\t"
                 "setp.ne.s32 p, %3, 0;\n\t"
                 "bar.red.or.pred q, %1, %2, p;\n\t"
                 "selp.s32 %0, 1, 0, q;\n\t"
                 "}"
                 : "=r"(any)
                 : "r"(id), "r"(threads), "r"(value)
                 : "memory");
    return any;
}

/* A word of shared memory per named barrier of the block; 0 is the block's own. */
#define GIN_I_SPAN_IDS 16u

GIN_DEV uint64_t *gin_i_box(uint32_t id)
{
    __shared__ uint64_t box[GIN_I_SPAN_IDS];
    return &box[id];
}

/* ---- time and place ---- */

GIN_DEV uint64_t gin_i_clock_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

GIN_DEV void gin_i_sleep_ns(uint32_t ns)
{
    asm volatile("nanosleep.u32 %0;" : : "r"(ns));
}

/* 1 in one of the lanes of a warp that come here together. */
GIN_DEV int gin_i_is_first_active(void)
{
    uint32_t active, me;
    asm volatile("activemask.b32 %0;" : "=r"(active));
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(me));
    return (active & me) == 0;
}

/* Ends the kernel, and the use of its context. */
GIN_DEV void gin_i_trap(void)
{
    asm volatile("trap;");
}

/* 1 when a generic address is one of global memory, which others can reach. */
GIN_DEV int gin_i_is_global(uint64_t p)
{
    int yes;
    asm("{\n\t"
        ".reg .pred p;\n\t"
        "isspacep.global p, %1;\n\t"
        "selp.s32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(yes)
        : "l"(p));
    return yes;
}

#endif
