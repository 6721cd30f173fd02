/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows count from 1. A row is a whole number of cache lines. */
#include "peer_tables.h"

#include <stdlib.h>
#include "base/log.h"

#define LINE  128u
#define CHUNK 256u  /* rows that are made at once */
#define SPARE 1024u /* rows that rest before the oldest is used again */

static uint64_t row_bytes(const struct gi_tables *t)
{
    return ((uint64_t)t->n * sizeof(uint64_t) + LINE - 1) & ~(uint64_t)(LINE - 1);
}

void gi_tables_close(struct gi_tables *t)
{
    while (t->n_chunks > 0)
        gi_gpu_free(t->gpu, t->chunk[--t->n_chunks]);
    free(t->chunk);
    free(t->next);
    t->chunk = NULL;
    t->next = NULL;
    t->fresh = t->spare = 0;
}

int gi_tables_reserve(struct gi_tables *t)
{
    if (t->spare > SPARE || t->fresh < t->n_chunks * CHUNK)
        return GIN_OK;
    uint64_t *chunk = realloc(t->chunk, (t->n_chunks + 1) * sizeof(*chunk));
    t->chunk = chunk != NULL ? chunk : t->chunk;
    uint32_t *next = realloc(t->next, ((t->n_chunks + 1) * CHUNK + 1) * sizeof(*next));
    t->next = next != NULL ? next : t->next;
    if (chunk == NULL || next == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the addresses of %u peers", t->n);
    int st = gi_gpu_alloc(t->gpu, CHUNK * row_bytes(t), &t->chunk[t->n_chunks]);
    t->n_chunks += st == GIN_OK;
    return st;
}

uint32_t gi_tables_take(struct gi_tables *t)
{
    if (t->spare <= SPARE)
        return ++t->fresh;
    uint32_t row = t->oldest;
    t->oldest = t->next[row];
    t->spare--;
    return row;
}

void gi_tables_give(struct gi_tables *t, uint32_t row)
{
    if (t->spare++ == 0)
        t->oldest = row;
    else
        t->next[t->youngest] = row;
    t->youngest = row;
}

uint64_t gi_tables_at(const struct gi_tables *t, uint32_t row)
{
    return t->chunk[(row - 1) / CHUNK] + (row - 1) % CHUNK * row_bytes(t);
}

int gi_tables_write(struct gi_tables *t, uint32_t row, const uint64_t *peers)
{
    return gi_gpu_write(t->gpu, gi_tables_at(t, row), peers, (uint64_t)t->n * sizeof(*peers));
}
