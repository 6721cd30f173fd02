/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From an address to the smallest range that holds it. Ranges may overlap, nest and repeat. One
 * writer at a time, any number of readers, no lock: a reader that met a writer looks again. Arrays
 * double; outgrown ones, which a reader may still look at, live until the index is closed.
 */
#ifndef GI_WINDOW_INDEX_H
#define GI_WINDOW_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gi_window_range {
    uint64_t start, size;
    uint64_t reach; /* largest end of this range and all before it */
    uint64_t id;
};

struct gi_window_index {
    uint64_t seq; /* odd: being written */
    uint64_t n;
    uint64_t capacity;
    struct gi_window_range *ranges;    /* by start, larger first, older first */
    struct gi_window_range *array[64]; /* all that were made, the last one is `ranges` */
    unsigned arrays;
};

/* All zero is an empty index. */
void gi_window_index_close(struct gi_window_index *x);

/* Make room for one more range; after it the next add cannot fail. GIN_ENOMEM. */
int gi_window_index_reserve(struct gi_window_index *x);
void gi_window_index_add(struct gi_window_index *x, uint64_t start, uint64_t size, uint64_t id);
void gi_window_index_remove(struct gi_window_index *x, uint64_t start, uint64_t size, uint64_t id);

/* The smallest range that holds `addr`, the youngest of equal ones. Any thread. */
bool gi_window_index_find(const struct gi_window_index *x, uint64_t addr, uint64_t *id);

#endif
