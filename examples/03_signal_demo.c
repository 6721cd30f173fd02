/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals: weak, strong, add, on a word of memory, with a time limit, consumed and reset.
 *
 * Every rank sends to its right neighbour and hears from its left one. Each signal is waited for by
 * its whole value so far, not by a value since the last reset, since a reset races with the next
 * sender unless a barrier stands between them.
 */
#include "example.h"

enum { WEAK, STRONG, BYTES, DONE, N_SIGNALS };
#define PARTS 4
#define CHUNK 1000

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1;
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int *inbox = CHECK_PTR(gin_calloc(comm, PARTS * CHUNK, sizeof(int)));
    uint64_t *flag = CHECK_PTR(gin_calloc(comm, 1, sizeof(*flag)));
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.signals = N_SIGNALS;
    CHECK(gin_devcomm_create(comm, &reqs, &dev));
    CHECK(gin_open(&dev, 0, &g));
    gin_group_t me = gin_thread();
    gin_team_t world = gin_world(&g);
    int out[PARTS * CHUNK];
    for (int i = 0; i < PARTS * CHUNK; i++)
        out[i] = rank * PARTS * CHUNK + i;

    /* begin strong */
    /* A strong signal covers all earlier puts of the context to that peer, not only its own. */
    for (int p = 0; p < PARTS; p++)
        CHECK(gin_put(&g, me, world, right, gin_at_ptr(&g, inbox + p * CHUNK),
                      gin_at_local(out + p * CHUNK), CHUNK * sizeof(int), gin_no_action()));
    CHECK(gin_signal(&g, me, world, right, gin_strong_inc(STRONG)));
    CHECK(gin_wait_signal(&g, me, STRONG, 1));
    /* end strong */
    for (int i = 0; i < PARTS * CHUNK; i++)
        ok = ok && inbox[i] == left * PARTS * CHUNK + i;

    CHECK(gin_flush(&g, me)); /* before the source changes */
    for (int i = 0; i < PARTS * CHUNK; i++)
        out[i] = -out[i];
    /* The inbox has been read; only now may its left neighbour write to it again. */
    CHECK(gin_barrier(&g, me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));

    /* begin weak */
    /* A weak one covers its own put. Added up, these tell how many bytes are here. */
    for (int p = 0; p < PARTS; p++)
        CHECK(gin_put(&g, me, world, right, gin_at_ptr(&g, inbox + p * CHUNK),
                      gin_at_local(out + p * CHUNK), CHUNK * sizeof(int),
                      gin_weak_add(BYTES, CHUNK * sizeof(int))));
    CHECK(gin_wait_signal(&g, me, BYTES, PARTS * CHUNK * sizeof(int)));
    /* end weak */
    for (int i = 0; i < PARTS * CHUNK; i++)
        ok = ok && inbox[i] == -(left * PARTS * CHUNK + i);

    /* begin flag */
    /* A signal on an ordinary word of symmetric memory; set is strong unless said otherwise. */
    CHECK(gin_signal(&g, me, world, right, gin_set_at(gin_at_ptr(&g, flag), 100 + rank)));
    CHECK(gin_wait_signal_until_at(&g, me, gin_at_ptr(&g, flag), GIN_CMP_NE, 0, NULL));
    /* end flag */
    ok = ok && gin_read_signal_at(&g, gin_at_ptr(&g, flag)) == 100 + (uint64_t)left;

    /* begin timeout */
    /* Nobody raises WEAK yet, so this wait ends by its time limit, and nothing is lost by it. */
    gin_wait_opt_t opt = {.timeout_ns = 1000000};
    int status = gin_wait_signal_x(&g, me, WEAK, 1, &opt);
    /* end timeout */
    ok = ok && status == GIN_ETIMEDOUT;
    CHECK(gin_barrier(&g, me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));

    /* begin consume */
    /* Units that come and go: the receiver takes off what it has used; no increment is lost. */
    for (int i = 0; i < 10; i++)
        CHECK(gin_signal(&g, me, world, right, gin_weak_inc(WEAK)));
    for (int i = 0; i < 10; i++) {
        CHECK(gin_wait_signal(&g, me, WEAK, 1));
        CHECK(gin_consume_signal(&g, WEAK, 1));
    }
    /* end consume */
    ok = ok && gin_read_signal(&g, WEAK) == 0;

    /* begin reset */
    /* Reset between two barriers: behind the first nobody still sends of the old round, behind the
     * second everybody has reset. *old is what had come in. */
    uint64_t old = 0;
    CHECK(gin_barrier(&g, me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
    CHECK(gin_reset_signal(&g, BYTES, &old));
    CHECK(gin_barrier(&g, me, gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_NONE));
    CHECK(gin_signal(&g, me, world, right, gin_weak_inc(BYTES)));
    CHECK(gin_wait_signal(&g, me, BYTES, 1));
    /* end reset */
    ok = ok && old == PARTS * CHUNK * sizeof(int) && gin_read_signal(&g, BYTES) == 1;

    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, flag));
    CHECK(gin_free(comm, inbox));
    return finish(comm, ok, "signal demo: weak, strong, _at, timeout, consume, reset");
}
