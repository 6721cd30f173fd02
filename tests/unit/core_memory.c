/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bring-up of the core while memory runs out: whichever allocation of whichever rank fails, all
 * ranks hear of it, and none is left waiting for the others. The program is linked so that what the
 * library allocates comes here.
 */
#include "core_bed.h"

#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

static atomic_uint failures;

static bool fails(void)
{
    if (bed_allocations == 0 || --bed_allocations != 0)
        return false;
    atomic_fetch_add(&failures, 1);
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(align, bytes);
}

/* True: there was such an allocation. */
static bool open_without(uint32_t nth, int rank)
{
    struct bed b = {.seed = 1, .fault_rank = rank, .no_memory = nth, .expect_failure = true};
    atomic_store(&failures, 0);
    bed_open(&b, bed_mask("C-local"), 3);
    bool failed = atomic_load(&failures) != 0;
    for (int r = 0; r < 3; r++)
        EXPECT_EQ_INT(b.rank[r].status, failed ? GIN_ENOMEM : GIN_OK);
    bed_close(&b);
    return failed;
}

TEST(no_memory_for_bring_up)
{
    for (int rank = 0; rank < 3; rank += 2) {
        uint32_t nth = 1;
        do
            pt_step("allocation %u of rank %d", nth, rank);
        while (open_without(nth++, rank));
        EXPECT(nth > 20);
    }
}
