/* SPDX-License-Identifier: BSD-3-Clause */
/* Progressions of ranks. Sums and products are 64 bits wide: strides may be as large as ranks. */
#include "team_math.h"

static int64_t last(struct gi_ap ap)
{
    return ap.first + (int64_t)(ap.size - 1) * ap.stride;
}

bool gi_ap_valid(struct gi_ap ap, int32_t ranks)
{
    if (ap.size <= 0 || ap.size > ranks || (ap.stride == 0 && ap.size > 1))
        return false;
    int64_t end = last(ap);
    return ap.first >= 0 && ap.first < ranks && end >= 0 && end < ranks;
}

int32_t gi_ap_index(struct gi_ap ap, int64_t rank)
{
    int64_t d = rank - ap.first;
    if (d == 0 && ap.size > 0)
        return 0;
    if (ap.stride == 0 || d % ap.stride != 0)
        return -1;
    int64_t index = d / ap.stride;
    return index >= 0 && index < ap.size ? (int32_t)index : -1;
}

struct gi_ap gi_ap_of(struct gi_ap parent, struct gi_ap sub)
{
    struct gi_ap ap = {.first = gi_ap_at(parent, sub.first), .stride = 1, .size = sub.size};
    if (sub.size > 1)
        ap.stride = (int32_t)((int64_t)parent.stride * sub.stride);
    return ap;
}

bool gi_ap_from_list(const int32_t *list, int32_t size, struct gi_ap *ap)
{
    int64_t stride = size > 1 ? (int64_t)list[1] - list[0] : 1;
    for (int32_t i = 2; i < size; i++)
        if ((int64_t)list[i] - list[i - 1] != stride)
            return false;
    if (size <= 0 || stride == 0 || stride > INT32_MAX || stride < INT32_MIN)
        return false;
    *ap = (struct gi_ap){.first = list[0], .stride = (int32_t)stride, .size = size};
    return true;
}

struct gi_ap gi_ap_inner(int32_t size, int32_t inner, int32_t index)
{
    int32_t first = index - index % inner;
    int32_t left = size - first;
    return (struct gi_ap){.first = first, .stride = 1, .size = left < inner ? left : inner};
}

struct gi_ap gi_ap_outer(int32_t size, int32_t inner, int32_t index)
{
    int32_t first = index % inner;
    int32_t n = (size - first - 1) / inner + 1;
    return (struct gi_ap){.first = first, .stride = n > 1 ? inner : 1, .size = n};
}

/* Greatest common divisor g of a and m (both > 0), and x with a * x = g modulo m, 0 <= x < m. */
static int64_t gcd_inverse(int64_t a, int64_t m, int64_t *x)
{
    int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
    while (r1 != 0) {
        int64_t q = r0 / r1, t = r0 - q * r1;
        r0 = r1;
        r1 = t;
        t = x0 - q * x1;
        x0 = x1;
        x1 = t;
    }
    *x = (x0 % m + m) % m;
    return r0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/*
 * Which indices of `a` hold members of `b`: they are a progression again. Only its first index,
 * its step and their number (0: none) count.
 */
static int32_t common(struct gi_ap a, struct gi_ap b, int32_t *first, int64_t *step)
{
    /* b upwards from lo to hi by s, a by p */
    int64_t p = a.size > 1 ? a.stride : 1, s = b.size > 1 ? b.stride : 1;
    int64_t lo = s > 0 ? b.first : last(b), hi = s > 0 ? last(b) : b.first;
    s = s > 0 ? s : -s;
    /* indices of a whose ranks lie in [lo, hi] */
    int64_t i_lo, i_hi, start = a.first;
    if (p > 0) {
        i_lo = -floor_div(start - lo, p);
        i_hi = floor_div(hi - start, p);
    } else {
        i_lo = -floor_div(hi - start, -p);
        i_hi = floor_div(start - lo, -p);
    }
    i_lo = i_lo > 0 ? i_lo : 0;
    i_hi = i_hi < a.size - 1 ? i_hi : a.size - 1;
    /* of these the ones with start + i * p = lo modulo s */
    int64_t x, g = gcd_inverse((p % s + s) % s == 0 ? s : (p % s + s) % s, s, &x);
    if ((lo - start) % g != 0)
        return 0;
    int64_t m = s / g;
    int64_t r = (((lo - start) / g % m + m) % m) * (x % m) % m;
    int64_t i = i_lo + ((r - i_lo) % m + m) % m;
    if (i > i_hi)
        return 0;
    *first = (int32_t)i;
    *step = m;
    return (int32_t)((i_hi - i) / m + 1);
}

int32_t gi_ap_difference(struct gi_ap parent, struct gi_ap other, int32_t nth)
{
    int32_t first = 0, n = 0;
    int64_t step = 1, i = nth;
    if (nth < 0)
        return -1;
    if (other.size > 0)
        n = common(parent, other, &first, &step);
    if (n > 0 && nth >= first) {
        /* behind each common index stand step - 1 others, behind the last one all the rest */
        int64_t gaps = step > 1 ? (nth - first) / (step - 1) + 1 : n;
        i += gaps < n ? gaps : n;
    }
    return i < parent.size ? (int32_t)i : -1;
}
