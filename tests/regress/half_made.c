/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane that closes while a peer connects to it: the request is read before, so that nothing of
 * the lane is left in the domain, and what comes by the connection later finds other lanes well.
 * libfabric's net and tcp once read what the lane's endpoint had freed; it is poisoned here.
 */
#include <malloc.h>
#include <stdlib.h>
#include "tests/providers/bed.h"
#include "transport/ofi/ofi_int.h"

#define POISON  0xa5
#define CACHED  16
#define LOOKS   1000
#define PART_NS 20000000u

static void part(struct bed *b)
{
    uint64_t deadline = gi_deadline_in(PART_NS);
    do {
        if (b->caps->part_late)
            b->ops->part(b->lane);
        gi_os_yield();
    } while (gi_now_ns() < deadline);
}

/* By the harness's memory, and without progress, which bed_sync() makes. */
static void all_here(struct bed *b, unsigned phase)
{
    unsigned *arrived = (unsigned *)(void *)b->mp->share + 2000 + phase;
    uint64_t end = gi_deadline_in(BED_NS);
    __atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < (unsigned)b->mp->size && gi_now_ns() < end)
        gi_os_yield();
}

/* All ranks but 1 connect to it, and make no progress, so that it sees sockets without a word. */
static void half_made(struct bed *b)
{
    struct bed_request req;
    struct gi_net_io io = bed_io(b, 1, 0, 64, 64, &req);
    if (b->mp->rank != 1)
        EXPECT_EQ_INT(b->ops->write(b->lane, &io), GIN_EAGAIN);
    all_here(b, 0);
    for (int i = 0; b->mp->rank == 1 && i < LOOKS; i++)
        bed_progress(b);
    all_here(b, 1);
}

/* glibc poisons no chunk that goes into a thread's cache: afterwards those are full. */
static void fill_caches(void)
{
    void *chunk[CACHED];
    for (size_t bytes = 24; bytes <= 1032; bytes += 16) {
        for (int i = 0; i < CACHED; i++)
            chunk[i] = malloc(bytes);
        for (int i = 0; i < CACHED; i++)
            free(chunk[i]);
    }
}

static void close_lane(struct bed *b)
{
    fill_caches();
    b->ops->lane_close(b->lane);
    b->lane = NULL;
}

/* As whoever gives up a first contact closes lanes: all, after two whiles of parting. */
static void give_up(struct bed *b)
{
    part(b);
    all_here(b, 2);
    part(b);
    close_lane(b);
    all_here(b, 3);
}

/* Those who connect end that: the lane's own last look is enough. */
static void take_back(struct bed *b)
{
    if (b->mp->rank != 1)
        close_lane(b);
    all_here(b, 2);
    if (b->mp->rank == 1)
        close_lane(b);
}

/* The domain's other lane is driven later. */
static void ends_well(struct mp *mp, const char *provider, void (*end)(struct bed *b))
{
    struct bed b;
    struct gi_net_lane *other = NULL;
    mallopt(M_PERTURB, POISON);
    if (!bed_open(&b, mp, &gi_ofi_ops, provider))
        goto out;
    struct gi_net_lane_config config = {.context = 1, .handler = gi_ofi_lane(b.lane)->handler};
    if (!EXPECT_OK(b.ops->lane_open(b.domain, &config, &other)))
        goto out;
    half_made(&b);
    end(&b);
    for (int i = 0; i < LOOKS; i++) {
        EXPECT(b.ops->progress(other, 32) >= 0);
        gi_os_yield();
    }
    b.ops->lane_close(other);
out:
    bed_close(&b);
}

MP_TEST_OPT(given_up, .ranks = "2 3", .bare = true, .only = MP_PROCS)
{
    ends_well(mp, "net", give_up);
}

MP_TEST_OPT(given_up_over_tcp, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    ends_well(mp, "tcp", give_up);
}

MP_TEST_OPT(taken_back, .ranks = "2 3", .bare = true, .only = MP_PROCS)
{
    ends_well(mp, "net", take_back);
}
