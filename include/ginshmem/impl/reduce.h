/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What reductions do to two elements, by type: the one definition for host threads and kernels, so
 * that both get the same bits. Not API; gin_allreduce(3) states the rules.
 *
 * GIN_I_REDUCE_TYPES(X) lists X(constant, name, type of an element, kind). A name has a function
 * gin_i_<name>_<op>(a, b) for each operation of its kind: INT all, REAL sum, prod, min and max,
 * COMPLEX sum and prod.
 *
 * Products and sums are rounded one by one, never fused. Integers wrap. Half precision is computed
 * as float and rounded to nearest, even, after each operation.
 */
#ifndef GINSHMEM_IMPL_REDUCE_H
#define GINSHMEM_IMPL_REDUCE_H

#include <ginshmem/impl/arch.h>

typedef struct gin_i_complex_float {
    float re, im;
} gin_i_complex_float_t;
typedef struct gin_i_complex_double {
    double re, im;
} gin_i_complex_double_t;

#define GIN_I_REDUCE_TYPES(X)                                    \
    X(GIN_INT8, int8, int8_t, INT)                               \
    X(GIN_UINT8, uint8, uint8_t, INT)                            \
    X(GIN_INT16, int16, int16_t, INT)                            \
    X(GIN_UINT16, uint16, uint16_t, INT)                         \
    X(GIN_INT32, int32, int32_t, INT)                            \
    X(GIN_UINT32, uint32, uint32_t, INT)                         \
    X(GIN_INT64, int64, int64_t, INT)                            \
    X(GIN_UINT64, uint64, uint64_t, INT)                         \
    X(GIN_HALF, half, uint16_t, REAL)                            \
    X(GIN_BFLOAT16, bfloat16, uint16_t, REAL)                    \
    X(GIN_FLOAT, float, float, REAL)                             \
    X(GIN_DOUBLE, double, double, REAL)                          \
    X(GIN_COMPLEX_FLOAT, cfloat, gin_i_complex_float_t, COMPLEX) \
    X(GIN_COMPLEX_DOUBLE, cdouble, gin_i_complex_double_t, COMPLEX)

/* ---- integers ---- */

#define GIN_I_INT_OPS(name, type)                      \
    GIN_VALUE type gin_i_##name##_sum(type a, type b)  \
    {                                                  \
        return (type)((uint64_t)a + (uint64_t)b);      \
    }                                                  \
    GIN_VALUE type gin_i_##name##_prod(type a, type b) \
    {                                                  \
        return (type)((uint64_t)a * (uint64_t)b);      \
    }                                                  \
    GIN_VALUE type gin_i_##name##_min(type a, type b)  \
    {                                                  \
        return b < a ? b : a;                          \
    }                                                  \
    GIN_VALUE type gin_i_##name##_max(type a, type b)  \
    {                                                  \
        return a < b ? b : a;                          \
    }                                                  \
    GIN_VALUE type gin_i_##name##_and(type a, type b)  \
    {                                                  \
        return (type)(a & b);                          \
    }                                                  \
    GIN_VALUE type gin_i_##name##_or(type a, type b)   \
    {                                                  \
        return (type)(a | b);                          \
    }                                                  \
    GIN_VALUE type gin_i_##name##_xor(type a, type b)  \
    {                                                  \
        return (type)(a ^ b);                          \
    }
GIN_I_INT_OPS(int8, int8_t)
GIN_I_INT_OPS(uint8, uint8_t)
GIN_I_INT_OPS(int16, int16_t)
GIN_I_INT_OPS(uint16, uint16_t)
GIN_I_INT_OPS(int32, int32_t)
GIN_I_INT_OPS(uint32, uint32_t)
GIN_I_INT_OPS(int64, int64_t)
GIN_I_INT_OPS(uint64, uint64_t)

/* ---- real numbers ---- */

/* Bits of a number, and a number of bits. */
GIN_VALUE uint32_t gin_i_float_bits(float x)
{
#ifdef __CUDA_ARCH__
    return (uint32_t)__float_as_int(x);
#else
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
#endif
}

GIN_VALUE float gin_i_bits_float(uint32_t u)
{
#ifdef __CUDA_ARCH__
    return __int_as_float((int)u);
#else
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
#endif
}

GIN_VALUE uint64_t gin_i_double_bits(double x)
{
#ifdef __CUDA_ARCH__
    return (uint64_t)__double_as_longlong(x);
#else
    uint64_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
#endif
}

/* What compilers would else fuse with a neighbour. */
#ifdef __CUDA_ARCH__
#define GIN_I_FLOAT_SUM(a, b)   __fadd_rn((a), (b))
#define GIN_I_FLOAT_PROD(a, b)  __fmul_rn((a), (b))
#define GIN_I_DOUBLE_SUM(a, b)  __dadd_rn((a), (b))
#define GIN_I_DOUBLE_PROD(a, b) __dmul_rn((a), (b))
#else
#define GIN_I_FLOAT_SUM(a, b)   ((a) + (b))
#define GIN_I_FLOAT_PROD(a, b)  ((a) * (b))
#define GIN_I_DOUBLE_SUM(a, b)  ((a) + (b))
#define GIN_I_DOUBLE_PROD(a, b) ((a) * (b))
#endif

/* A number goes before a NaN, -0 is less than +0: so neither depends on the order. */
#define GIN_I_REAL_OPS(name, type, NAME, negative)                                 \
    GIN_VALUE type gin_i_##name##_sum(type a, type b)                              \
    {                                                                              \
        return GIN_I_##NAME##_SUM(a, b);                                           \
    }                                                                              \
    GIN_VALUE type gin_i_##name##_prod(type a, type b)                             \
    {                                                                              \
        return GIN_I_##NAME##_PROD(a, b);                                          \
    }                                                                              \
    GIN_VALUE type gin_i_##name##_min(type a, type b)                              \
    {                                                                              \
        return ((a < b) | ((a == b) & (int)negative(a)) | (b != b)) != 0 ? a : b;  \
    }                                                                              \
    GIN_VALUE type gin_i_##name##_max(type a, type b)                              \
    {                                                                              \
        return ((b < a) | ((a == b) & (int)!negative(a)) | (b != b)) != 0 ? a : b; \
    }
#define GIN_I_FLOAT_NEGATIVE(x)  (gin_i_float_bits(x) >> 31)
#define GIN_I_DOUBLE_NEGATIVE(x) (gin_i_double_bits(x) >> 63)
GIN_I_REAL_OPS(float, float, FLOAT, GIN_I_FLOAT_NEGATIVE)
GIN_I_REAL_OPS(double, double, DOUBLE, GIN_I_DOUBLE_NEGATIVE)

/* ---- half precision, by their bits ---- */

GIN_VALUE float gin_i_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, mantissa = h & 0x3ff;
    uint32_t exponent = (uint32_t)(h >> 10) & 31;
    if (exponent == 31) /* infinity, NaN */
        return gin_i_bits_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
        return gin_i_bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
    /* mantissa * 2^-24, exactly */
    float x = GIN_I_FLOAT_PROD((float)mantissa, gin_i_bits_float(0x33800000u));
    return gin_i_bits_float(sign | gin_i_float_bits(x));
}

GIN_VALUE uint16_t gin_i_float_to_half(float x)
{
    uint32_t u = gin_i_float_bits(x), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00); /* NaN */
    if (rest >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00); /* rounds to beyond the largest */
    if (rest < 0x38800000u) {
        /* below 2^-14: adding 1/2 shifts the result's mantissa to the end, rounded */
        uint32_t low = gin_i_float_bits(GIN_I_FLOAT_SUM(gin_i_bits_float(rest), 0.5f));
        return (uint16_t)(sign | (low - 0x3f000000u));
    }
    rest += 0xfff + (rest >> 13 & 1); /* to nearest, even */
    return (uint16_t)(sign | (rest - 0x38000000u) >> 13);
}

GIN_VALUE float gin_i_bfloat16_to_float(uint16_t b)
{
    return gin_i_bits_float((uint32_t)b << 16);
}

GIN_VALUE uint16_t gin_i_float_to_bfloat16(float x)
{
    uint32_t u = gin_i_float_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40); /* NaN */
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define GIN_I_SHORT_OP(name, op)                                                       \
    GIN_VALUE uint16_t gin_i_##name##_##op(uint16_t a, uint16_t b)                     \
    {                                                                                  \
        return gin_i_float_to_##name(                                                  \
            gin_i_float_##op(gin_i_##name##_to_float(a), gin_i_##name##_to_float(b))); \
    }
#define GIN_I_SHORT_OPS(name)  \
    GIN_I_SHORT_OP(name, sum)  \
    GIN_I_SHORT_OP(name, prod) \
    GIN_I_SHORT_OP(name, min)  \
    GIN_I_SHORT_OP(name, max)
GIN_I_SHORT_OPS(half)
GIN_I_SHORT_OPS(bfloat16)

/* ---- complex numbers ---- */

/*
 * A host's product in front of a sum: compilers lose sight of it, for gcc fuses the two wherever
 * the machine can, unless told otherwise, and pragmas that say so it does not heed.
 */
#if defined(__CUDA_ARCH__) || !(defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__aarch64__))
#define GIN_I_ROUNDED(x) ((void)(x))
#elif defined(__x86_64__)
#define GIN_I_ROUNDED(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define GIN_I_ROUNDED(x) __asm__("" : "+w"(x))
#else
#define GIN_I_ROUNDED(x) __asm__("" : "+m"(x))
#endif

#define GIN_I_COMPLEX_OPS(name, type, part)                                                \
    GIN_VALUE type gin_i_##name##_sum(type a, type b)                                      \
    {                                                                                      \
        type c;                                                                            \
        c.re = gin_i_##part##_sum(a.re, b.re);                                             \
        c.im = gin_i_##part##_sum(a.im, b.im);                                             \
        return c;                                                                          \
    }                                                                                      \
    GIN_VALUE type gin_i_##name##_prod(type a, type b)                                     \
    {                                                                                      \
        type c;                                                                            \
        part one = gin_i_##part##_prod(a.re, b.re), two = gin_i_##part##_prod(a.im, b.im); \
        GIN_I_ROUNDED(one);                                                                \
        GIN_I_ROUNDED(two);                                                                \
        c.re = gin_i_##part##_sum(one, -two);                                              \
        one = gin_i_##part##_prod(a.re, b.im);                                             \
        two = gin_i_##part##_prod(a.im, b.re);                                             \
        GIN_I_ROUNDED(one);                                                                \
        GIN_I_ROUNDED(two);                                                                \
        c.im = gin_i_##part##_sum(one, two);                                               \
        return c;                                                                          \
    }
GIN_I_COMPLEX_OPS(cfloat, gin_i_complex_float_t, float)
GIN_I_COMPLEX_OPS(cdouble, gin_i_complex_double_t, double)

#endif
