/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queue: ranks draw tasks from one counter by fetch-add, as fast as each can.
 *
 * The counter lies on rank 0. Results go to the rank that keeps the task's place, with an atomic
 * count beside them that shows that no task was done twice or left out.
 */
#include "example.h"

#define TASKS 2000

struct place {
    uint64_t result;
    uint64_t times; /* done so often */
};

/* Length of the Collatz sequence: tasks of very different cost. */
static uint64_t work(uint64_t task)
{
    uint64_t steps = 0;
    for (uint64_t n = task + 1; n != 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

int main(void)
{
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g;
    int ok = 1;
    CHECK(gin_init(NULL, &comm));
    int rank = gin_rank(comm), size = gin_size(comm);
    uint64_t *next = CHECK_PTR(gin_calloc(comm, 1, sizeof(*next)));
    struct place *places = CHECK_PTR(gin_calloc(comm, TASKS / (size_t)size + 1, sizeof(*places)));
    CHECK(gin_devcomm_create(comm, NULL, &dev));
    CHECK(gin_open(&dev, 0, &g));
    gin_team_t world = gin_world(&g);

    /* begin queue */
    uint64_t task, mine = 0;
    for (;;) {
        CHECK(gin_amo_fetch_add(&g, gin_thread(), world, 0, gin_at_ptr(&g, next), 1, &task));
        if (task >= TASKS)
            break;
        int keeper = (int)(task % (uint64_t)size);
        struct place *p = &places[task / (uint64_t)size]; /* my address of the keeper's place */
        CHECK(gin_put_value(&g, gin_thread(), world, keeper, gin_at_ptr(&g, &p->result), work(task),
                            8, gin_no_action()));
        CHECK(gin_amo_add(&g, gin_thread(), world, keeper, gin_at_ptr(&g, &p->times), 1));
        mine++;
    }
    /* end queue */
    CHECK(gin_barrier(&g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));

    for (uint64_t t = (uint64_t)rank; t < TASKS; t += (uint64_t)size) {
        struct place *p = &places[t / (uint64_t)size];
        ok = ok && p->times == 1 && p->result == work(t);
    }
    /* Each rank drew one number that was too high. */
    uint64_t drawn, all[size];
    CHECK(gin_amo_fetch(&g, gin_thread(), world, 0, gin_at_ptr(&g, next), &drawn));
    ok = ok && drawn == TASKS + (uint64_t)size;
    CHECK(gin_comm_allgather(comm, &mine, all, sizeof(mine)));
    for (int r = 1; r < size; r++)
        all[0] += all[r];
    ok = ok && all[0] == TASKS;
    CHECK(gin_devcomm_destroy(comm, &dev));
    CHECK(gin_free(comm, places));
    CHECK(gin_free(comm, next));
    return finish(comm, ok, "work queue: 2000 tasks");
}
