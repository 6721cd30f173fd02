/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's memory object: a memfd of [control area | heap], its pages reserved when they are
 * promised, so that no access ever ends in SIGBUS, and gone with the last descriptor and mapping.
 * Growing makes the object longer in place; who has mapped it beyond its end sees the new pages.
 */
#ifndef GI_HEAP_SEGMENT_H
#define GI_HEAP_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

enum gi_hugepages { GI_HUGEPAGES_NO, GI_HUGEPAGES_TRY, GI_HUGEPAGES_YES };

/*
 * Memory that the caller makes, a GPU's: control + heap as in a memfd, but the CPU may not reach it
 * and peers have to map what is added.
 */
struct gi_segment_ops {
    /* Local: what gi_segment_grow() and _shrink() do; from and to count from the segment's start.
     */
    int (*grow)(void *arg, uint64_t from, uint64_t to);
    void (*shrink)(void *arg, uint64_t to);
    /* Collective, after growth was agreed on: all ranks reach the new memory, or none does. */
    int (*share)(void *arg);
    /* Local; offsets from the heap's start. */
    int (*zero)(void *arg, uint64_t off, uint64_t bytes);
    int (*copy)(void *arg, uint64_t to, uint64_t from, uint64_t bytes);
};

struct gi_segment {
    const struct gi_segment_ops *ops; /* NULL: a memfd */
    void *arg;
    int fd;
    bool huge;
    uint64_t control; /* bytes in front of the heap */
    uint64_t bytes;   /* of the heap, reserved; control + bytes is a multiple of granule */
    uint64_t granule;
    char backing[96]; /* "4 KiB pages", "2 MiB huge pages", ... with the reason */
};

/* GINSHMEM_HUGEPAGES: "no", "try", "yes" (the parser has refused everything else). */
enum gi_hugepages gi_hugepages_of(const char *word);

/*
 * Make one for at least `bytes` of heap. The granule depends on the wish and the machine, not on
 * what was had, so that ranks with and without free huge pages get the same size. Local. GIN_ENOMEM
 * with the sizes, limits and the variable to change; GIN_ESYS.
 */
int gi_segment_create(uint64_t control, uint64_t bytes, enum gi_hugepages wish,
                      struct gi_segment **seg);

/* Control and heap together for at least `bytes` of heap. */
uint64_t gi_segment_total(uint64_t control, uint64_t bytes, uint64_t granule);

/* Reserve up to `bytes` of heap, rounded up to the granule; nothing to do where there already. */
int gi_segment_grow(struct gi_segment *seg, uint64_t bytes);
/* Undo a growth: keep only `bytes` of heap. */
void gi_segment_shrink(struct gi_segment *seg, uint64_t bytes);
void gi_segment_close(struct gi_segment *seg); /* NULL is allowed */

#endif
