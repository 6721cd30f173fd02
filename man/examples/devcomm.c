/* SPDX-License-Identifier: BSD-3-Clause */
/* A device communicator with one context per thread. */
#include <pthread.h>
#include "frame.h"

#define THREADS 3

/* begin threads */
struct worker {
    gin_devcomm_t dev; /* by value, as a kernel would get it */
    uint32_t index;
    int status;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    gin_t g;

    w->status = gin_open(&w->dev, w->index, &g);
    if (w->status == GIN_OK)
        w->status =
            gin_barrier(&g, gin_thread(), gin_barrier_world(),
                        w->index, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
    return NULL;
}

static int make(gin_comm_t *comm, uint32_t threads,
                gin_devcomm_t *dev)
{
    gin_devcomm_reqs_t reqs;

    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = threads;
    reqs.world_barriers = threads; /* one index per thread */
    return gin_devcomm_create(comm, &reqs, dev);
}
/* end threads */

int example(gin_comm_t *comm, const gin_t *g)
{
    pthread_t thread[THREADS];
    struct worker w[THREADS];
    gin_devcomm_t dev;
    (void)g;
    int st = make(comm, THREADS, &dev);
    if (st != GIN_OK)
        return st;
    for (uint32_t i = 0; i < THREADS; i++) {
        w[i].dev = dev;
        w[i].index = i;
        if (pthread_create(&thread[i], NULL, work, &w[i]) != 0)
            return GIN_ESYS;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        if (w[i].status != GIN_OK)
            st = w[i].status;
    }
    int undone = gin_devcomm_destroy(comm, &dev);
    return st != GIN_OK ? st : undone;
}
