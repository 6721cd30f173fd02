/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network's threads. They poll, since peers' operations move only while somebody does. While
 * other threads do, they only look in now and then: two that poll take turns at the provider's
 * locks, and each wakes the other. Idle they sleep, each with a bell of its own, so that what is
 * posted on a context wakes the one that has it. The first one sleeps on the network's descriptors,
 * too, where there are any, and sees to the others' contexts while they sleep.
 */
#include <stdlib.h>

#include "net_drive.h"

#define EAGER    2000u /* idle rounds before it gives cores away; few where they are scarce */
#define CROWDED  20u
#define GIVE_NS  100000u /* between two looks while others drive the network, at first */
#define GIVE_MAX 4u      /* it doubles so often, after as many looks each */
#define OFTEN_NS 20000u  /* who drives it polls more often than that */
#define NAP_NS   50000u  /* without descriptors to sleep on: the first nap, then longer ones */
#define LONG_NS  1000000u
#define SLEEP_NS 10000000u
#define BELL_NS  1000000000u /* with nothing but the bell to wait for */

static _Atomic uint64_t test_sleep_ns;

void gi_net_sleep_long(uint64_t ns)
{
    atomic_store(&test_sleep_ns, ns);
}

void gi_net_driver_wake(void *arg, uint32_t driver)
{
    const struct gi_net *n = arg;
    gi_os_bell_ring(n->drivers[driver].bell);
}

/* Room for all lanes' descriptors, which grow in number with the contexts. */
static int room_for_fds(struct gi_net_driver *t)
{
    uint32_t need = (t->index == 0 ? gi_core_lanes(t->net->core) : 0) + 1;
    if (need <= t->n_fds)
        return (int)t->n_fds;
    need = need < 64 ? 64 : 2 * need;
    struct pollfd *fds = realloc(t->fds, need * sizeof(*fds));
    t->fds = fds != NULL ? fds : t->fds;
    int *lanes = fds != NULL ? realloc(t->lanes, need * sizeof(*lanes)) : NULL;
    t->lanes = lanes != NULL ? lanes : t->lanes;
    if (lanes != NULL)
        t->n_fds = need;
    return (int)t->n_fds;
}

/* How long; count: of descriptors that end it. With work at hand, or a network without such, it is
 * a moment. */
static uint64_t may_sleep(struct gi_net_driver *t, uint32_t idle, int *count)
{
    uint64_t ns = GI_NEVER, usual = t->index == 0 ? SLEEP_NS : BELL_NS;
    int most = room_for_fds(t);
    *count =
        most > 0 ? gi_core_sleep(t->net->core, t->index, t->lanes, most - 1, &ns) : GI_CORE_BLIND;
    const uint64_t test = atomic_load(&test_sleep_ns); /* whoever changes it rings afterwards */
    if (*count >= 0 && test != 0) {
        *count = 0;
        return test;
    }
    if (*count < 0) {
        uint32_t longer = *count == GI_CORE_BUSY ? 0 : idle / 64; /* work does not get rarer */
        *count = 0;
        usual = (uint64_t)NAP_NS << (longer < 5 ? longer : 5);
        usual = usual < LONG_NS ? usual : LONG_NS;
    }
    return ns < usual ? ns : usual;
}

/* Idle rounds before it sleeps. */
static uint32_t patience(bool crowded)
{
    bool test = atomic_load_explicit(&test_sleep_ns, memory_order_relaxed) != 0;
    return crowded || test ? CROWDED : EAGER;
}

/*
 * True: something came while it slept. A write that asks for nothing of the target's makes no event
 * of its own, but others will follow.
 */
static bool rest(struct gi_net_driver *t, uint32_t idle, bool crowded)
{
    if (idle < patience(crowded)) {
        if (crowded || idle % 16 == 0)
            gi_os_yield();
        else
            GIN_PAUSE();
        return false;
    }
    int k;
    uint64_t ns = may_sleep(t, idle, &k);
    struct pollfd bell = {.fd = t->bell, .events = POLLIN}, *fds = t->n_fds > 0 ? t->fds : &bell;
    fds[0] = bell;
    for (int i = 0; i < k; i++)
        fds[i + 1] = (struct pollfd){.fd = t->lanes[i], .events = POLLIN};
    bool came = gi_os_poll(fds, (unsigned)k + 1, gi_deadline_in(ns)) > 0;
    if (fds[0].revents != 0)
        gi_os_bell_answer(t->bell);
    return came;
}

/*
 * Others have driven the network at so many looks on end. Each look takes a core from somebody, who
 * may be the one that drives: the longer they have gone on, the likelier they will. Returns how
 * many polls there are at least meanwhile, where they did. With engines' rings it is not to be long
 * before descriptors are seen, once they stop.
 */
static uint32_t leave_it(uint32_t looks, bool rings)
{
    uint32_t longer = looks / GIVE_MAX, most = rings ? 1 : GIVE_MAX;
    uint64_t ns = (uint64_t)GIVE_NS << (longer < most ? longer : most);
    gi_os_sleep_ns(ns);
    return (uint32_t)(ns / OFTEN_NS);
}

/* A microsecond; with a thread that wants the core, its turn. */
static void stand_back(bool crowded, bool spare)
{
    for (int i = 0; i < 64 && !crowded; i++)
        GIN_PAUSE();
    if (crowded || !spare)
        gi_os_yield();
}

static void *run(void *arg)
{
    struct gi_net_driver *t = arg;
    struct gi_net *n = t->net;
    int cores = gi_os_cores(), threads = 1 + (int)n->n_drivers;
    bool crowded = gi_is_crowded(n->comm, cores, threads);
    /* Whoever drives feeds from engines' rings, too; but once he stops they wait for this thread.
     * So it comes back sooner for them, and where cores are few, but not too few, it never sleeps:
     * a wake-up would cost the driver more than its looks do. */
    bool no_core = cores < threads, spare = cores >= threads * n->comm->sharing;
    uint32_t idle = 0, driven = 0, few = 0;
    enum gi_core_others others;
    gi_log_set_rank(n->comm->rank);
    while (atomic_load_explicit(&n->stop, memory_order_acquire) == 0) {
        bool sleeps = idle + 1 >= patience(crowded);
        int events = gi_core_poll_left(n->core, t->index, sleeps, few, &others);
        few = 0;
        idle = events > 0 || others != GI_CORE_NOBODY ? 0 : idle + 1;
        bool rings = atomic_load_explicit(&n->rings, memory_order_relaxed) != 0;
        driven = others == GI_CORE_DRIVES ? driven + 1 : 0;
        if (driven != 0 && (!rings || no_core || spare))
            few = leave_it(driven, rings && !no_core);
        else if (others != GI_CORE_NOBODY)
            stand_back(crowded, spare);
        else if (idle != 0 && rest(t, idle, crowded))
            idle = 0;
    }
    return NULL;
}

static int start(struct gi_net_driver *t)
{
    char name[16];
    t->bell = gi_os_bell();
    if (t->bell < 0)
        return gi_fail(GIN_ESYS, "cannot make an event descriptor: %s", gi_os_strerror(-t->bell));
    snprintf(name, sizeof(name), t->index == 0 ? "gin-net" : "gin-net%u", t->index);
    int err = gi_os_thread(&t->thread, run, t, name);
    if (err != 0)
        return gi_fail(GIN_ESYS, "cannot start the network's thread: %s", gi_os_strerror(err));
    t->started = true;
    return GIN_OK;
}

int gi_net_drivers_start(struct gi_net *n)
{
    uint32_t threads = (uint32_t)n->comm->env.engine_threads;
    int st = GIN_OK;
    n->drivers = calloc(threads, sizeof(*n->drivers));
    if (n->drivers == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the network's %u threads", threads);
    n->n_drivers = threads;
    for (uint32_t i = 0; i < threads; i++)
        n->drivers[i] = (struct gi_net_driver){.net = n, .index = i, .bell = -1};
    for (uint32_t i = 0; i < threads && st == GIN_OK; i++)
        st = start(&n->drivers[i]);
    return st;
}

void gi_net_drivers_stop(struct gi_net *n)
{
    atomic_store_explicit(&n->stop, 1, memory_order_release);
    for (uint32_t i = 0; i < n->n_drivers; i++) {
        struct gi_net_driver *t = &n->drivers[i];
        if (t->started) {
            gi_os_bell_ring(t->bell);
            pthread_join(t->thread, NULL);
        }
    }
    for (uint32_t i = 0; i < n->n_drivers; i++) {
        if (n->drivers[i].bell >= 0)
            gi_os_close(n->drivers[i].bell);
        free(n->drivers[i].fds);
        free(n->drivers[i].lanes);
    }
    free(n->drivers);
    n->drivers = NULL;
    n->n_drivers = 0;
}
