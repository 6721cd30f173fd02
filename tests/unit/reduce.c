/* SPDX-License-Identifier: BSD-3-Clause */
/* What reductions do to two elements: half precision against rounding by hand, NaNs and zeros. */
#include <ginshmem/impl/reduce.h>
#include <math.h>
#include <string.h>
#include "tests/pt.h"

/* What a format with so many bits of exponent and mantissa says. */
static double decode(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    int most = (1 << exponent_bits) - 1, e = (int)(bits >> mantissa_bits) & most;
    double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
    if (e == most)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    int bias = most / 2;
    double m = ldexp((double)mantissa, -mantissa_bits);
    return e == 0 ? sign * ldexp(m, 1 - bias) : sign * ldexp(1 + m, e - bias);
}

TEST(every_half_and_bfloat16)
{
    for (uint32_t u = 0; u < 65536; u++) {
        double half = decode(u, 5, 10), b = decode(u, 8, 7);
        double got = gin_i_half_to_float((uint16_t)u), gotb = gin_i_bfloat16_to_float((uint16_t)u);
        if (!(got == half || (isnan(got) && isnan(half))) || (signbit(got) != 0) != (u >> 15 != 0))
            FAIL("half %#x is %g, not %g", u, got, half);
        if (!(gotb == b || (isnan(gotb) && isnan(b))))
            FAIL("bfloat16 %#x is %g, not %g", u, gotb, b);
        if (!isnan(half) && gin_i_float_to_half((float)half) != u)
            FAIL("half %#x came back as %#x", u, gin_i_float_to_half((float)half));
        if (!isnan(b) && gin_i_float_to_bfloat16((float)b) != u)
            FAIL("bfloat16 %#x came back as %#x", u, gin_i_float_to_bfloat16((float)b));
    }
}

/* The nearer of two neighbours, the even one in the middle. */
static uint32_t nearest(double x, int exponent_bits, int mantissa_bits)
{
    uint32_t lo = 0, hi = ((1u << exponent_bits) - 1) << mantissa_bits; /* infinity */
    double size = fabs(x);
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (decode(mid, exponent_bits, mantissa_bits) <= size)
            lo = mid;
        else
            hi = mid;
    }
    double below = decode(lo, exponent_bits, mantissa_bits);
    double above = 2 * below - decode(lo - (lo != 0), exponent_bits, mantissa_bits);
    if (hi != ((1u << exponent_bits) - 1) << mantissa_bits)
        above = decode(hi, exponent_bits, mantissa_bits);
    bool up = size - below > above - size || (size - below == above - size && (lo & 1));
    return (up ? hi : lo) | (uint32_t)(signbit(x) != 0) << (exponent_bits + mantissa_bits);
}

TEST(floats_are_rounded_to_nearest_even)
{
    uint64_t rng = pt_seed();
    for (int i = 0; i < 200000; i++) {
        uint32_t u = (uint32_t)pt_random(&rng);
        if (i % 2) /* about what half has, and often in the middle of two */
            u = (u & 0x80000000u) | (100u + u % 45) << 23 | (u & 0x7fe000) | (u & 1 ? 0x1000 : 0);
        float x = gin_i_bits_float(u);
        if (isnan(x))
            continue;
        if (isinf(x)) {
            EXPECT_EQ_U64(gin_i_float_to_half(x) & 0x7fff, 0x7c00);
            continue;
        }
        if (gin_i_float_to_half(x) != nearest(x, 5, 10))
            FAIL("%a as half is %#x, not %#x", x, gin_i_float_to_half(x), nearest(x, 5, 10));
        if (gin_i_float_to_bfloat16(x) != nearest(x, 8, 7))
            FAIL("%a as bfloat16 is %#x, not %#x", x, gin_i_float_to_bfloat16(x), nearest(x, 8, 7));
    }
}

TEST(numbers_go_before_nans_and_negative_zeros_are_less)
{
    float nan = gin_i_bits_float(0x7fc00001u), zero = 0.0f, minus = -0.0f;
    EXPECT(gin_i_float_min(nan, 3.0f) == 3.0f && gin_i_float_min(3.0f, nan) == 3.0f);
    EXPECT(gin_i_float_max(nan, 3.0f) == 3.0f && gin_i_float_max(3.0f, nan) == 3.0f);
    EXPECT(isnan(gin_i_float_min(nan, nan)) && isnan(gin_i_float_max(nan, nan)));
    EXPECT(signbit(gin_i_float_min(zero, minus)) && signbit(gin_i_float_min(minus, zero)));
    EXPECT(!signbit(gin_i_float_max(zero, minus)) && !signbit(gin_i_float_max(minus, zero)));
    EXPECT(gin_i_double_min(1.0, -(double)INFINITY) < -1e308);
    EXPECT(isnan(gin_i_float_sum(nan, 1.0f)));
    /* of halves: a NaN stays one, 65504 + 32 is beyond */
    EXPECT((gin_i_half_sum(0x7e00, 0x3c00) & 0x7fff) > 0x7c00);
    EXPECT_EQ_U64(gin_i_half_max(0x7e00, 0x3c00), 0x3c00);
    EXPECT_EQ_U64(gin_i_half_sum(0x7bff, 0x5000), 0x7c00);
    EXPECT_EQ_U64(gin_i_bfloat16_min(0x8000, 0), 0x8000);
}

TEST(integers_wrap)
{
    EXPECT_EQ_INT(gin_i_int8_sum(127, 1), -128);
    EXPECT_EQ_INT(gin_i_int16_prod(-32768, -1), -32768);
    EXPECT(gin_i_int64_sum(INT64_MAX, 1) == INT64_MIN);
    EXPECT(gin_i_uint16_prod(65535, 65535) == 1);
    EXPECT(gin_i_int32_min(-1, 1) == -1 && gin_i_uint32_min(~0u, 1) == 1);
    EXPECT(gin_i_uint8_xor(0xf0, 0xff) == 0x0f && gin_i_int8_and(-1, 5) == 5);
}

TEST(complex_numbers_multiply)
{
    gin_i_complex_double_t a = {1, 2}, b = {3, -4}, c = gin_i_cdouble_prod(a, b);
    EXPECT(c.re == 11 && c.im == 2);
    c = gin_i_cdouble_sum(a, b);
    EXPECT(c.re == 4 && c.im == -2);
}
