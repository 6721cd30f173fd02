/* SPDX-License-Identifier: BSD-3-Clause */
/* The stock of retired memory: a ring, the oldest piece of which is unmapped when it is full. */
#include <pthread.h>
#include <string.h>

#include "base/os.h"
#include "retired.h"

#define PIECES 64u

static struct {
    pthread_mutex_t lock;
    struct piece {
        void *p;
        size_t bytes;
    } pieces[PIECES];
    unsigned next; /* to be written */
} stock = {.lock = PTHREAD_MUTEX_INITIALIZER};

void *gi_retired_take(size_t bytes)
{
    void *p = NULL;
    pthread_mutex_lock(&stock.lock);
    for (unsigned i = 0; i < PIECES && p == NULL; i++)
        if (stock.pieces[i].p != NULL && stock.pieces[i].bytes == bytes) {
            p = stock.pieces[i].p;
            stock.pieces[i].p = NULL;
        }
    pthread_mutex_unlock(&stock.lock);
    return p != NULL ? p : gi_os_map_private(bytes);
}

void gi_retired_give(void *p, size_t bytes)
{
    if (p == NULL)
        return;
    memset(p, 0, bytes);
    pthread_mutex_lock(&stock.lock);
    struct piece *piece = &stock.pieces[stock.next++ % PIECES], old = *piece;
    *piece = (struct piece){p, bytes};
    pthread_mutex_unlock(&stock.lock);
    if (old.p != NULL)
        gi_os_unmap(old.p, old.bytes);
}

void gi_retired_forked(void)
{
    pthread_mutex_init(&stock.lock, NULL);
    memset(stock.pieces, 0, sizeof(stock.pieces));
}
