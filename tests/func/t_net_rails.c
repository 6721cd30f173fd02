/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several devices, a rail each: contexts take them in turn, and what holds for one context holds on
 * whichever rail it is at home. Two devices are what any machine has: its loopback, and another one
 * with an address.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devcomm.h"
#include "tests/mp.h"
#include "transport/core_int.h"

#define WORDS 32u

/* "eth0,lo" into the environment, or "eth0". */
static bool devices(bool both)
{
    struct ifaddrs *all = NULL;
    char text[128] = "";
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i != NULL && text[0] == 0; i = i->ifa_next)
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET &&
            (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0 &&
            (i->ifa_flags & IFF_RUNNING) != 0)
            snprintf(text, sizeof(text), "%s%s", i->ifa_name, both ? ",lo" : "");
    freeifaddrs(all);
    if (text[0] == 0)
        return false;
    setenv("GINSHMEM_NICS", text, 1);
    return true;
}

/* A word to each rank through every context, with a signal, and back from there. */
static void through(struct mp *mp, const gin_devcomm_t *d, uint32_t context, uint64_t *words)
{
    gin_t g;
    EXPECT_OK(gin_open(d, context, &g));
    EXPECT_EQ_INT(gi_devcomm_of(&g)->net[context]->rail, context % 2);
    gin_team_t w = gin_world(&g);
    gin_at_t mine = gin_at_ptr(&g, words + context * WORDS + mp->rank);
    for (uint64_t k = 1; k <= 20; k++) {
        mp_step(mp, "context %u, round %llu", context, (unsigned long long)k);
        for (int to = 0; to < mp->size; to++) {
            uint64_t value = k << 32 | context << 16 | (uint64_t)mp->rank;
            EXPECT_OK(gin_put(&g, gin_thread(), w, to, mine, gin_at_local(&value), sizeof(value),
                              k % 2 ? gin_weak_inc(0) : gin_strong_inc(0)));
            EXPECT_OK(gin_flush(&g, gin_thread()));
        }
        EXPECT_OK(gin_wait_signal(&g, gin_thread(), 0, k * (uint64_t)mp->size));
        for (int from = 0; from < mp->size; from++)
            EXPECT_EQ_U64(words[context * WORDS + from], k << 32 | context << 16 | (uint64_t)from);
        EXPECT_OK(gin_barrier(&g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                              GIN_FENCE_ALL));
    }
}

/* The devices in that form are two rails; why not is skipped. */
static bool two_rails(struct mp *mp, gin_devcomm_reqs_t *reqs)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    if (!devices(true)) {
        mp_skip(mp, "no device with an address but the loopback");
        return false;
    }
    if (!mp_up(mp) || !mp_net(mp, reqs))
        return false;
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_HAS(caps.cap[GIN_CAP_NET].reason, ", 2 rails");
    return true;
}

MP_TEST_OPT(contexts_take_rails_in_turn, .ranks = "2 3 5", .hosts = "ABCDE", .bare = true,
            .only = MP_PROCS)
{
    enum { CONTEXTS = 5 };
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = CONTEXTS;
    if (!two_rails(mp, &reqs))
        return;
    uint64_t *words = gin_calloc(mp->comm, CONTEXTS * WORDS, sizeof(*words));
    if (!EXPECT(words != NULL))
        return;
    for (uint32_t c = 0; c < CONTEXTS; c++)
        through(mp, &mp->dev, c, words);
    EXPECT_OK(gin_comm_barrier(mp->comm));
    EXPECT_OK(gin_free(mp->comm, words));
}

/* A put of so many bytes, each round's with other bytes; checked where the signal has come. */
static void send_large(struct mp *mp, const gin_t *g, unsigned char *to, unsigned char *from,
                       uint64_t bytes, uint64_t round)
{
    gin_team_t w = gin_world(g);
    int right = (mp->rank + 1) % mp->size, left = (mp->rank + mp->size - 1) % mp->size;
    memset(from, (int)(round * 16 + (unsigned)mp->rank), bytes);
    gin_action_t own = round % 3 == 0   ? gin_weak_inc(0)
                       : round % 3 == 1 ? gin_strong_inc(0)
                                        : gin_no_action();
    EXPECT_OK(
        gin_put(g, gin_thread(), w, right, gin_at_ptr(g, to), gin_at_ptr(g, from), bytes, own));
    if (round % 3 == 2)
        EXPECT_OK(gin_signal(g, gin_thread(), w, right, gin_strong_inc(0)));
    EXPECT_OK(gin_wait_signal(g, gin_thread(), 0, round + 1));
    EXPECT_FILLED(to, bytes, (unsigned char)(round * 16 + (unsigned)left));
    EXPECT_OK(
        gin_barrier(g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL));
}

MP_TEST_OPT(large_puts_take_all_rails, .ranks = "2 3", .hosts = "ABC", .bare = true,
            .only = MP_PROCS)
{
    enum { BYTES = 3 << 20, CONTEXTS = 2 };
    gin_devcomm_reqs_t reqs;
    gin_devcomm_reqs_init(&reqs);
    reqs.contexts = CONTEXTS;
    if (!two_rails(mp, &reqs))
        return;
    unsigned char *to = gin_calloc(mp->comm, 1, BYTES), *from = gin_calloc(mp->comm, 1, BYTES);
    if (!EXPECT(to != NULL && from != NULL))
        return;
    for (uint32_t c = 0; c < CONTEXTS; c++) {
        gin_t g;
        EXPECT_OK(gin_open(&mp->dev, c, &g));
        for (uint64_t k = 0; k < 6; k++) {
            mp_step(mp, "context %u, round %llu", c, (unsigned long long)k);
            send_large(mp, &g, to, from, k < 3 ? BYTES : (512u << 10) + 8 * (unsigned)k, k);
        }
        EXPECT(gi_core_counts(gi_devcomm_of(&g)->net[c])[GI_CORE_N_SIDE] != 0);
    }
    EXPECT_OK(gin_free(mp->comm, from));
    EXPECT_OK(gin_free(mp->comm, to));
}

/* No network then, and the reason with the name of the variable. */
static void refused(struct mp *mp, const char *value, const char *why)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    setenv("GINSHMEM_NICS", value, 1);
    mp_step(mp, "%s", value);
    if (!mp_up(mp) || !mp_dev(mp, NULL))
        return;
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT_EQ_INT(caps.cap[GIN_CAP_NET].have, 0);
    EXPECT_HAS(caps.cap[GIN_CAP_NET].reason, why);
}

MP_TEST_OPT(a_device_twice, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    refused(mp, "lo,lo", "GINSHMEM_NICS=lo,lo: lo is there twice");
}

MP_TEST_OPT(a_name_is_missing, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    refused(mp, "lo,,eth0", "names of devices, commas between them");
}

MP_TEST_OPT(too_many_devices, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    refused(mp, "a,b,c,d,e,f,g,h,i", "at most 8 devices");
}

MP_TEST_OPT(one_name_or_several, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    setenv("GINSHMEM_NIC", "lo", 1);
    refused(mp, "lo,eth0", "set one of them");
}

/* Contexts are at home on the same rail everywhere, so all ranks have as many. */
MP_TEST_OPT(numbers_differ, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    gin_devcomm_t d;
    if (PT_RACE_DETECTOR || !devices(mp->rank == 0)) {
        mp_skip(mp, "no second device, or no libfabric for the race detector");
        return;
    }
    if (!mp_up(mp))
        return;
    EXPECT_FAILS(gin_devcomm_create(mp->comm, NULL, &d), GIN_EMISMATCH, "rails");
}

/* ---- GINSHMEM_RAILS ---- */

static void fails(struct mp *mp, int status, const char *why)
{
    gin_devcomm_t d;
    if (PT_RACE_DETECTOR) {
        mp_skip(mp, "no libfabric for the race detector");
        return;
    }
    if (mp_up(mp))
        EXPECT_FAILS(gin_devcomm_create(mp->comm, NULL, &d), status, why);
}

MP_TEST_OPT(rails_differ, .ranks = "3", .hosts = "ABC", .bare = true, .only = MP_PROCS)
{
    setenv("GINSHMEM_RAILS", mp->rank == 2 ? "3" : "2", 1);
    fails(mp, GIN_EMISMATCH, "GINSHMEM_RAILS is 2 at rank 0 and 3 at rank 2");
}

MP_TEST_OPT(more_rails_than_devices, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    setenv("GINSHMEM_RAILS", "8", 1);
    fails(mp, GIN_EINVAL, "GINSHMEM_RAILS=8: rank 0 on host host-A has ");
}

MP_TEST_OPT(more_rails_than_names, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    setenv("GINSHMEM_RAILS", "3", 1);
    refused(mp, "lo,eth0", "GINSHMEM_RAILS=3, but GINSHMEM_NICS=lo,eth0 names 2 devices");
}

MP_TEST_OPT(fewer_rails_than_names, .ranks = "2", .hosts = "AB", .bare = true, .only = MP_PROCS)
{
    gin_caps_t caps = {.size = sizeof(caps)};
    setenv("GINSHMEM_RAILS", "1", 1);
    if (!devices(true)) {
        mp_skip(mp, "no device with an address but the loopback");
        return;
    }
    if (!mp_up(mp) || !mp_net(mp, NULL))
        return;
    EXPECT_OK(gin_query(mp->comm, &caps));
    EXPECT(strstr(caps.cap[GIN_CAP_NET].reason, "rails") == NULL);
}
