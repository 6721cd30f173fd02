/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Red zones and patterns. A block of n bytes has GI_ZONE_RED bytes in front of it and, behind it,
 * at least as many: up to the end of its last granule and GI_ZONE_RED more. Without checked mode
 * there are none, and only AddressSanitizer is told what is a block and what is not.
 */
#include <string.h>

#include "base/log.h"
#include "heap/alloc.h"
#include "heap/zone.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define GI_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(GI_ASAN)
#define GI_ASAN 1
#endif
#ifndef GI_ASAN
#define GI_ASAN 0
#endif

#if GI_ASAN
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n)   ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

/* From the end of a block to the end of what the allocator keeps for it. */
static uint64_t tail(const struct gi_zone *z, uint64_t bytes)
{
    return (GI_ALLOC_GRANULE - bytes % GI_ALLOC_GRANULE) % GI_ALLOC_GRANULE +
           (z->check ? GI_ZONE_RED : 0);
}

static uint64_t head(const struct gi_zone *z)
{
    return z->check ? GI_ZONE_RED : 0;
}

void gi_zone_close(const struct gi_zone *z, uint64_t off, uint64_t bytes)
{
    if (z->base)
        __asan_poison_memory_region(z->base + off, bytes);
}

void gi_zone_open(const struct gi_zone *z, uint64_t off, uint64_t bytes)
{
    if (z->base)
        __asan_unpoison_memory_region(z->base + off, bytes);
}

void gi_zone_make(const struct gi_zone *z, uint64_t off, uint64_t bytes, uint64_t keep, bool zero)
{
    char *p = z->base + off;

    if (!z->base)
        return;
    gi_zone_open(z, off - head(z), head(z) + bytes + tail(z, bytes));
    if (z->check) {
        memset(p - head(z), GI_ZONE_GUARD, head(z));
        memset(p + bytes, GI_ZONE_GUARD, tail(z, bytes));
    }
    if (keep < bytes && (zero || z->check))
        memset(p + keep, zero ? 0 : GI_ZONE_FRESH, bytes - keep);
    gi_zone_close(z, off - head(z), head(z));
    gi_zone_close(z, off + bytes, tail(z, bytes));
}

void gi_zone_resize(const struct gi_zone *z, uint64_t off, uint64_t old, uint64_t bytes)
{
    uint64_t lost = old + tail(z, old) - bytes;

    if (!z->base)
        return;
    if (bytes < old) {
        gi_zone_open(z, off + bytes, lost);
        if (z->check)
            memset(z->base + off + bytes, GI_ZONE_FREED, lost);
        gi_zone_close(z, off + bytes, lost);
    }
    gi_zone_make(z, off, bytes, old < bytes ? old : bytes, false);
}

void gi_zone_drop(const struct gi_zone *z, uint64_t off, uint64_t bytes)
{
    if (!z->base)
        return;
    if (z->check)
        memset(z->base + off, GI_ZONE_FREED, bytes);
    gi_zone_close(z, off - head(z), head(z) + bytes + tail(z, bytes));
}

/* Offset of the first byte of [p, p + n) that is not the guard; n: all are. */
static uint64_t first_changed(const char *p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if ((unsigned char)p[i] != GI_ZONE_GUARD)
            return i;
    return n;
}

int gi_zone_verify(const struct gi_zone *z, uint64_t off, uint64_t bytes)
{
    const char *p = z->base + off;
    uint64_t before, behind;

    if (!z->base || !z->check)
        return GIN_OK;
    gi_zone_open(z, off - head(z), head(z) + bytes + tail(z, bytes));
    before = first_changed(p - head(z), head(z));
    behind = first_changed(p + bytes, tail(z, bytes));
    gi_zone_close(z, off - head(z), head(z));
    gi_zone_close(z, off + bytes, tail(z, bytes));
    if (before != head(z))
        return gi_fail(GIN_ESTATE,
                       "heap block of %llu bytes at offset %llu: the byte %llu in front of it was "
                       "overwritten",
                       (unsigned long long)bytes, (unsigned long long)off,
                       (unsigned long long)(head(z) - before));
    if (behind != tail(z, bytes))
        return gi_fail(GIN_ESTATE,
                       "heap block of %llu bytes at offset %llu: the byte %llu behind its end was "
                       "overwritten",
                       (unsigned long long)bytes, (unsigned long long)off,
                       (unsigned long long)behind + 1);
    return GIN_OK;
}
