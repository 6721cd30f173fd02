/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads that drive a communicator's network for the peers' sake, and carry what contexts of
 * the backend ENGINE are given. Each has its share of the core's contexts, and sleeps alone.
 */
#ifndef GI_NET_DRIVE_H
#define GI_NET_DRIVE_H

#include <poll.h>
#include "net_up.h"

struct gi_net_driver {
    struct gi_net *net;
    uint32_t index;
    pthread_t thread;
    bool started;
    int bell;           /* ends the thread's sleep */
    struct pollfd *fds; /* of the sleep: the bell, then the lanes' */
    int *lanes;
    uint32_t n_fds;
};

/* The core is open. What a failed start has begun, stop ends, too. */
int gi_net_drivers_start(struct gi_net *n);
void gi_net_drivers_stop(struct gi_net *n);
/* The core's hook; arg: struct gi_net *. */
void gi_net_driver_wake(void *arg, uint32_t driver);

/* Tests only, any time: sleep soon, on the bell alone, and so long where nobody rings. 0: as usual,
 * from the next ring on. */
void gi_net_sleep_long(uint64_t ns);

#endif
