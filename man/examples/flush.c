/* SPDX-License-Identifier: BSD-3-Clause */
/* Two buffers in turn: a buffer is filled again once its own puts
 * have left. */
#include "frame.h"

/* begin double */
enum { BLOCK = 256, BLOCKS = 9, ARRIVED = 5 };

static int stream(const gin_t *g, int peer, char *dst,
                  char (*buffer)[BLOCK],
                  void (*fill)(char *block, int i))
{
    gin_team_t world = gin_world(g);
    gin_request_t left[2];
    int st = GIN_OK;

    for (int i = 0; st == GIN_OK && i < BLOCKS; i++) {
        int b = i % 2;
        if (i >= 2 &&
            (st = gin_wait(g, gin_thread(), &left[b])) != GIN_OK)
            break;
        fill(buffer[b], i);
        st = gin_put(g, gin_thread(), world, peer,
                     gin_at_ptr(g, dst + i * BLOCK),
                     gin_at_local(buffer[b]), BLOCK,
                     gin_weak_inc(ARRIVED));
        if (st == GIN_OK)
            st = gin_flush_async(g, gin_thread(), world, peer,
                                 &left[b]);
    }
    return st == GIN_OK ? gin_flush(g, gin_thread()) : st;
}
/* end double */

static void fill(char *block, int i)
{
    memset(block, 'a' + i, BLOCK);
}

int example(gin_comm_t *comm, const gin_t *g)
{
    static char buffer[2][BLOCK];
    char *dst = gin_malloc(comm, BLOCKS * BLOCK);
    if (dst == NULL)
        return gin_last_status();
    int st = stream(g, (gin_rank(comm) + 1) % gin_size(comm), dst,
                    buffer, fill);
    if (st == GIN_OK)
        st = gin_wait_signal(g, gin_thread(), ARRIVED, BLOCKS);
    for (int i = 0; st == GIN_OK && i < BLOCKS * BLOCK; i++)
        if (dst[i] != 'a' + i / BLOCK)
            st = GIN_ERANGE;
    if (st == GIN_OK)
        st = gin_reset_signal(g, ARRIVED, NULL);
    int freed = gin_free(comm, dst);
    return st != GIN_OK ? st : freed;
}
