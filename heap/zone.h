/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the bytes of a heap look like to this process: fill patterns and red zones in checked mode,
 * and AddressSanitizer's view where the library is built with it. A zone without memory (base NULL:
 * the CPU cannot reach it) does nothing.
 */
#ifndef GI_HEAP_ZONE_H
#define GI_HEAP_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#define GI_ZONE_RED   64u  /* bytes on either side of a block */
#define GI_ZONE_GUARD 0xe7 /* what red zones hold */
#define GI_ZONE_FRESH 0xcb /* what a new block holds, unless zeroed */
#define GI_ZONE_FREED 0xdb /* what a freed block holds */

struct gi_zone {
    char *base; /* of offset 0 */
    bool check;
};

/* Memory that belongs to no block yet, or no heap any more. */
void gi_zone_close(const struct gi_zone *z, uint64_t off, uint64_t bytes);
void gi_zone_open(const struct gi_zone *z, uint64_t off, uint64_t bytes);

/* Make a block usable whose first `keep` bytes have contents; the rest becomes zero or fresh. */
void gi_zone_make(const struct gi_zone *z, uint64_t off, uint64_t bytes, uint64_t keep, bool zero);
/* Give a block another size where it is: what it gains is fresh, what it loses is out of use. */
void gi_zone_resize(const struct gi_zone *z, uint64_t off, uint64_t old, uint64_t bytes);
/* Take a block out of use. */
void gi_zone_drop(const struct gi_zone *z, uint64_t off, uint64_t bytes);
/* GIN_OK, or GIN_ESTATE with a text when a byte of the block's red zones has changed. */
int gi_zone_verify(const struct gi_zone *z, uint64_t off, uint64_t bytes);

#endif
