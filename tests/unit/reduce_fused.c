/* SPDX-License-Identifier: BSD-3-Clause */
/* Products and sums are rounded one by one, on machines that do both at once, too. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("fma")
#endif
#include <ginshmem/impl/reduce.h>
#include "tests/pt.h"

/* x * x has one bit more than fits: the difference of two such products is 0 if both are rounded,
 * and that bit if one of them is not. */
__attribute__((noinline)) static double of_doubles(volatile double *x)
{
    gin_i_complex_double_t a = {*x, *x}, b = {*x, *x};
    return gin_i_cdouble_prod(a, b).re;
}

__attribute__((noinline)) static float of_floats(volatile float *x)
{
    gin_i_complex_float_t a = {*x, *x}, b = {*x, *x};
    return gin_i_cfloat_prod(a, b).re;
}

TEST(products_are_rounded)
{
#if defined(__x86_64__) && !defined(__clang__)
    if (!__builtin_cpu_supports("fma"))
        SKIP("this machine does not fuse");
#endif
    volatile double d = 1 + 0x1p-30;
    volatile float f = 1 + 0x1p-13f;
    EXPECT(of_doubles(&d) == 0.0);
    EXPECT(of_floats(&f) == 0.0f);
}
