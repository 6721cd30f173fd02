/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU's arithmetic, for emulate.h: rounded one by one, by machines that are told to fuse nothing.
 */
#ifndef GINSHMEM_TESTS_GPU_EMULATE_MATH_H
#define GINSHMEM_TESTS_GPU_EMULATE_MATH_H

#include <string.h>

static inline int __float_as_int(float x)
{
    int v;
    memcpy(&v, &x, sizeof(v));
    return v;
}

static inline float __int_as_float(int v)
{
    float x;
    memcpy(&x, &v, sizeof(x));
    return x;
}

static inline long long __double_as_longlong(double x)
{
    long long v;
    memcpy(&v, &x, sizeof(v));
    return v;
}

#define __fadd_rn(a, b) ((float)((a) + (b)))
#define __fmul_rn(a, b) ((float)((a) * (b)))
#define __dadd_rn(a, b) ((double)((a) + (b)))
#define __dmul_rn(a, b) ((double)((a) * (b)))

#endif
