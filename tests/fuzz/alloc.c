/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any sequence of allocator calls on two allocators, of which one also makes tentative calls and
 * has failures of its metadata. Both must agree on every answer and stay consistent.
 */
#include <stdlib.h>
#include <string.h>
#include <ginshmem/status.h>
#include "heap/alloc.h"

#define BLOCKS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Something that is taken back. */
static void tentative(struct gi_alloc *a, uint64_t bytes, uint64_t align, uint8_t how)
{
    uint64_t off, other;

    if (how & 1 && gi_alloc_add_chunk(a, 4096) != GIN_OK)
        return;
    if (gi_alloc_take(a, bytes, align, &off) == GIN_OK) {
        if (how & 2 && gi_alloc_take(a, align, bytes & -bytes, &other) == GIN_OK)
            must(gi_alloc_give(a, other, NULL) == GIN_OK);
        must(gi_alloc_give(a, off, NULL) == GIN_OK);
    }
    if (how & 1)
        must(gi_alloc_drop_chunk(a) == GIN_OK);
    a->fail_in = 1;
    must(gi_alloc_take(a, bytes, 64, &off) == GIN_ENOMEM);
    a->fail_in = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct gi_alloc x, y;
    uint64_t live[BLOCKS], off[2] = {0}, start, bytes;
    unsigned n_live = 0;
    int st;

    if (n < 2 || n > 4096)
        return 0;
    uint64_t bias = (uint64_t)(data[0] & 15) << 6, red = (uint64_t)(data[0] >> 6) << 6;

    must(gi_alloc_init(&x, bias, red) == GIN_OK && gi_alloc_init(&y, bias, red) == GIN_OK);
    for (size_t i = 1; i + 4 <= n; i += 4) {
        uint64_t align = (uint64_t)1 << data[i + 2] % 14;

        bytes = 1 + ((uint64_t)(data[i + 1] & 15) << (data[i + 1] >> 4));
        switch (data[i] % 8) {
        case 0 ... 2:
            if (n_live == BLOCKS)
                break;
            st = gi_alloc_take(&x, bytes, align, &off[0]);
            must(st == gi_alloc_take(&y, bytes, align, &off[1]));
            must(st == GIN_OK || st == GIN_EAGAIN);
            if (st == GIN_OK) {
                must(off[0] == off[1] && (off[0] + bias) % align == 0);
                live[n_live++] = off[0];
            }
            break;
        case 3:
            if (n_live == 0)
                break;
            off[0] = live[data[i + 1] % n_live];
            live[data[i + 1] % n_live] = live[n_live - 1];
            n_live--;
            must(gi_alloc_give(&x, off[0], NULL) == GIN_OK);
            must(gi_alloc_give(&y, off[0], NULL) == GIN_OK);
            break;
        case 4: /* any offset: refused unless a block starts there */
            off[0] = (uint64_t)data[i + 1] << 6 | (data[i + 2] & 8);
            st = gi_alloc_size_of(&x, off[0], &bytes, NULL);
            must(st == gi_alloc_size_of(&y, off[0], &bytes, NULL));
            must((st == GIN_OK) == (gi_alloc_find(&x, off[0], &start, &bytes) && start == off[0]));
            if (st != GIN_OK)
                must(gi_alloc_give(&x, off[0], NULL) == GIN_EINVAL);
            break;
        case 5:
            if (n_live == 0)
                break;
            off[0] = live[data[i + 2] % n_live];
            st = gi_alloc_resize_prepare(&x, off[0], bytes);
            must(st == gi_alloc_resize_prepare(&y, off[0], bytes));
            if (st == GIN_OK)
                must(gi_alloc_resize(&x, off[0], bytes) == GIN_OK &&
                     gi_alloc_resize(&y, off[0], bytes) == GIN_OK);
            break;
        case 6:
            if (data[i + 3] & 1) {
                st = gi_alloc_drop_chunk(&x);
                must(st == gi_alloc_drop_chunk(&y));
            } else if (x.n_chunks < 8) {
                must(gi_alloc_add_chunk(&x, 64 + ((uint64_t)data[i + 1] << 6)) == GIN_OK);
                must(gi_alloc_add_chunk(&y, 64 + ((uint64_t)data[i + 1] << 6)) == GIN_OK);
            }
            break;
        default: tentative(&x, bytes, align, data[i + 3]);
        }
        must(x.fingerprint == y.fingerprint);
    }
    must(gi_alloc_check(&x) == GIN_OK && gi_alloc_check(&y) == GIN_OK);
    must(gi_alloc_equal(&x, &y));
    while (n_live > 0)
        must(gi_alloc_give(&x, live[--n_live], NULL) == GIN_OK);
    must(x.used == 0 && gi_alloc_check(&x) == GIN_OK);
    gi_alloc_fini(&x);
    gi_alloc_fini(&y);
    return 0;
}
