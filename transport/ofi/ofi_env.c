/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Variables that libfabric and the libraries below it read once, when they are first asked. They
 * are set where the user has not, before the first fi_getinfo(): most cannot be given any other
 * way.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/env.h"
#include "base/log.h"
#include "transport/ofi/ofi_find.h"

static const struct {
    const char *name, *value, *why;
    uint32_t since; /* version of libfabric; 0: any */
} variables[] = {
    /* Pages pinned by a device must not be copied on write by a fork()ing parent. */
    {"RDMAV_FORK_SAFE", "1", "fork() leaves pinned memory alone", 0},
    {"CXI_FORK_SAFE", "1", "fork() leaves pinned memory alone", 0},
    {"FI_EFA_FORK_SAFE", "1", "fork() leaves pinned memory alone", 0},
    /* Memory of the same host is reached without a provider. */
    {"FI_EFA_ENABLE_SHM_TRANSFER", "0", "the same host is reached without it", 0},
    /* Windows are registered once; a cache would hook the allocator and take a global lock. */
    {"FI_MR_CACHE_MONITOR", "disabled", "memory is registered once, by windows", 0},
    /* RxM makes them by the thousand for each endpoint: 68 MB at its own 16 KiB, in libfabric 1.17.
     * Only messages go through them, which have GI_NET_MSG_MAX bytes at most. */
    {"FI_OFI_RXM_BUFFER_SIZE", "2048", "messages are short, and contexts many", 0},
    /* Of the receives that all peers share, of which it would make 4096: 85 MB. */
    {"FI_OFI_RXM_MSG_RX_SIZE", "1024", "messages are few, and contexts many", FI_VERSION(2, 0)},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool done;
static char set_text[400];

static void set(const char *name, const char *value, const char *why)
{
    size_t len = strlen(set_text);
    if (!gi_env_foreign_default(name, value))
        return;
    snprintf(set_text + len, sizeof(set_text) - len, "%s%s=%s", len != 0 ? " " : "", name, value);
    gi_debug("ofi", "%s=%s: %s", name, value, why);
}

void gi_ofi_environment(int ranks)
{
    char number[16];
    pthread_mutex_lock(&lock);
    if (!done) {
        for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
            if (fi_version() >= variables[i].since)
                set(variables[i].name, variables[i].value, variables[i].why);
        if (ranks > 0) {
            snprintf(number, sizeof(number), "%d", ranks < 2 ? 2 : ranks);
            set("FI_UNIVERSE_SIZE", number, "the ranks of the job; sizes completion queues");
        }
        done = true;
    }
    pthread_mutex_unlock(&lock);
}

const char *gi_ofi_environment_text(void)
{
    return set_text;
}
