/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs between compilers and devices: integer types, qualifiers, atomics and fences. The
 * rest of the headers is written in terms of these and compiles as C11, pedantic C++17, under nvcc
 * and under NVRTC. Not API.
 */
#ifndef GINSHMEM_IMPL_ARCH_H
#define GINSHMEM_IMPL_ARCH_H

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t;
#else
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

#ifdef __cplusplus
#define GIN_BEGIN_DECLS               extern "C" {
#define GIN_END_DECLS                 }
#define GIN_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define GIN_BEGIN_DECLS
#define GIN_END_DECLS
#define GIN_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#if defined(__GNUC__) && !defined(__CUDACC_RTC__)
#define GIN_API          __attribute__((visibility("default")))
#define GIN_LIKELY(x)    __builtin_expect(!!(x), 1)
#define GIN_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define GIN_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define GIN_API
#define GIN_LIKELY(x)   (x)
#define GIN_UNLIKELY(x) (x)
#define GIN_PRINTF(a, b)
#endif

/* GIN_VALUE: makes or takes apart a value; runs on both devices. GIN_OP: an operation's body. */
#ifdef __CUDACC__
#define GIN_VALUE static __host__ __device__ __forceinline__
#ifdef __CUDACC_RTC__
#define GIN_OP static __device__ __forceinline__ /* NVRTC takes no host function */
#else
#define GIN_OP static __host__ __device__ __forceinline__
#endif
#elif defined(__GNUC__)
#define GIN_VALUE static inline __attribute__((always_inline, unused))
#define GIN_OP    static inline __attribute__((always_inline, unused))
#else
#define GIN_VALUE static inline
#define GIN_OP    static inline
#endif

#ifndef __CUDACC_RTC__
/*
 * Host atomics on naturally aligned words, by compiler builtins: C11 _Atomic does not exist in C++
 * and libstdc++'s std::atomic not in C.
 */
#define GIN_LOAD_RELAXED(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define GIN_LOAD_ACQUIRE(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define GIN_STORE_RELAXED(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define GIN_STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define GIN_ADD_RELAXED(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define GIN_ADD_RELEASE(p, v)   __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define GIN_ADD(p, v)           __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define GIN_FENCE_SEQ_CST()     __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define GIN_FENCE_ACQUIRE()     __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define GIN_FENCE_RELEASE()     __atomic_thread_fence(__ATOMIC_RELEASE)
#if defined(__x86_64__) || defined(__i386__)
#define GIN_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define GIN_PAUSE() __asm__ volatile("yield")
#else
#define GIN_PAUSE() __asm__ volatile("" ::: "memory")
#endif
#endif

#endif
