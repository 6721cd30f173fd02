/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * THE waiting loop. Every wait of the library, from a signal to the bring-up, is a loop around
 * gi_wait_step(): it spins a little, then yields, and every few hundred microseconds looks at the
 * deadline, at the communicator's abort word and at the health of the peers.
 *
 *     struct gi_wait w;
 *     gi_wait_begin(&w, env_spin, deadline, check, arg, "signal 3 of context 0");
 *     while (!condition)
 *         if ((st = gi_wait_step(&w)) != GIN_OK)
 *             break;
 *     gi_wait_end(&w);
 *
 * A wait is visible to the SIGUSR1 dump from the end of its spinning until gi_wait_end(). Nothing
 * but gi_wait_step()'s slow part reads the clock or calls check, so begin and end cost a few
 * stores.
 */
#ifndef GI_BASE_WAIT_H
#define GI_BASE_WAIT_H

#include <stdint.h>

/* Returns GIN_OK to go on waiting or the status that ends the wait; called with low frequency. */
typedef int (*gi_wait_check_fn)(void *arg);
/* Drives progress of a transport; called in every step. May be NULL. */
typedef void (*gi_wait_progress_fn)(void *arg);

#define GI_WAIT_DETAILS 4

/* Yields between spinning and a wait in earnest, with clock and health; most waits end there. */
#define GI_WAIT_QUICK_YIELDS 32

struct gi_wait {
    uint64_t deadline; /* ns, GI_NEVER: none */
    uint64_t began;    /* 0 until the clock is read for the first time */
    uint64_t next_check;
    uint64_t next_warn;
    uint64_t steps;
    uint32_t spin; /* polls before the first yield */
    int rank;      /* printed; begin takes that of the thread's log */
    gi_wait_check_fn check;
    gi_wait_progress_fn progress; /* set after begin, called with arg in every step */
    void *arg;
    /* Static, or living as long as the wait. Each '#' is printed as the next number of detail;
     * without any, the numbers up to the last not 0 stand behind it. */
    const char *what;
    uint64_t detail[GI_WAIT_DETAILS]; /* set after begin, may change between steps */
    struct gi_wait_slot *slot;        /* where the dump finds it, once it waits in earnest */
};

void gi_wait_begin(struct gi_wait *w, uint32_t spin, uint64_t deadline, gi_wait_check_fn check,
                   void *arg, const char *what);
int gi_wait_step(struct gi_wait *w); /* GIN_OK, GIN_ETIMEDOUT, or what check returned */
void gi_wait_end(struct gi_wait *w);

/* Print all waits in progress of this process, one line each, async-signal-safe, to fd. */
void gi_wait_dump(int fd);

/* Default for `spin`: many polls when every rank of the host has a core, few otherwise. */
uint32_t gi_wait_default_spin(int ranks_on_host, int cores);

/* A wait lasting longer than this prints a warning (then every doubling). */
void gi_wait_set_warn(uint64_t ns);

#endif
