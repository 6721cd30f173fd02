/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parent and the ranks of a run share: anonymous memory, made before the forks. */
#ifndef GINSHMEM_TESTS_MP_SHARED_H
#define GINSHMEM_TESTS_MP_SHARED_H

#include <pthread.h>
#include <stdint.h>
#include "tests/mp.h"

#define MP_DEFAULT_RANKS "1 2 3 5 8"
#define MP_STEP_BYTES    160
#define MP_CHUNK         4096u /* bytes per rank and round of an allgather */

/* Barrier and room of one group; areas 0 .. size-1 are for mp_group(), the last for all ranks. */
struct mp_area {
    uint32_t arrived;
    uint32_t turn;
};

struct mp_shared {
    int size;
    bool threads;
    int failed; /* an expectation failed or a child ended badly */
    int gone;   /* a child ended badly: nobody shall wait for it */
    int skipped;
    char why[200];
    char name[100];
    struct mp_area *areas;
    char *rooms; /* size + 1 rooms of size * MP_CHUNK bytes */
    char (*steps)[MP_STEP_BYTES];
    char *may_die;
    char *share;
    size_t bytes; /* of all this */
};

struct mp_shared *mp_shared_new(int size);
void mp_shared_free(struct mp_shared *s);

#endif
