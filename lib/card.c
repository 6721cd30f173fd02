/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first exchange. Every rank shows a card with what must be equal everywhere and who it is; a
 * difference fails on all ranks, with both values.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"

/* Random number of this process; a fork()ed child draws its own. Peers read it through
 * process_vm_readv as the probe of that path. */
static struct {
    pthread_mutex_t lock;
    uint64_t number;
    pid_t pid;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int process_number(uint64_t *number)
{
    int err = 0;
    pthread_mutex_lock(&process.lock);
    if (process.pid != getpid()) {
        err = gi_os_random(&process.number, sizeof(process.number));
        process.number |= 1; /* never 0: that is what unmapped memory would show */
        if (err == 0)
            process.pid = getpid();
    }
    *number = process.number;
    pthread_mutex_unlock(&process.lock);
    return err;
}

/* FNV-1a */
static uint64_t hash_text(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (; *s != '\0'; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
    return h;
}

/* The machine, of the name above, and its namespace of networks. */
static uint64_t net_space(const char *real)
{
    char text[96];
    snprintf(text, sizeof(text), "%.*s/%llx", (int)strcspn(real, "/"), real,
             (unsigned long long)gi_os_namespace("net"));
    return hash_text(text);
}

int gi_card_make(const gin_comm_t *comm, const gin_config_t *config, struct gi_card *card)
{
    char real[256];
    memset(card, 0, sizeof(*card));
    int err = gi_os_host_id(real, sizeof(real));
    if (err == 0)
        err = process_number(&card->process);
    if (err == 0)
        err = gi_os_random(card->job, sizeof(card->job));
    if (err != 0)
        return gi_fail(GIN_ESYS, "gin_init: cannot identify host and process: %s",
                       gi_os_strerror(err));
    const char *host = config->host_id != NULL && config->host_id[0] != '\0' ? config->host_id
                       : comm->env.host_id[0] != '\0'                        ? comm->env.host_id
                                                                             : real;
    card->magic = GI_COMM_MAGIC;
    card->version = GIN_VERSION;
    card->abi = comm->env.set.test_abi ? (uint32_t)comm->env.test_abi : GI_ABI;
    card->page_size = gi_os_page_size();
    card->heap_size = comm->env.heap_size;
    card->heap_max = comm->env.heap_max;
    card->heap_chunk = comm->env.heap_chunk;
    card->peer_timeout = comm->env.peer_timeout;
    card->check = (uint32_t)comm->env.check;
    snprintf(card->hugepages, sizeof(card->hugepages), "%s", comm->env.hugepages);
    card->pid_space = hash_text(real);
    card->net_space = net_space(real);
    card->host = hash_text(host);
    card->lsa = !comm->env.disable_lsa;
    card->probe = (uint64_t)(uintptr_t)&process.number;
    card->pid = (int32_t)getpid();
    card->uid = (int32_t)geteuid();
    snprintf(card->host_id, sizeof(card->host_id), "%.63s", host);
    return GIN_OK;
}

static int differ(const char *what, const char *cure, uint64_t mine, int r, uint64_t theirs)
{
    return gi_fail(GIN_EMISMATCH,
                   "gin_init: %s differs: rank 0 has %" PRIu64 ", rank %d has %" PRIu64 "; %s",
                   what, mine, r, theirs, cure);
}

int gi_cards_check(const struct gi_card *cards, int size)
{
    const struct gi_card *a = &cards[0];
    for (int r = 0; r < size; r++)
        if (cards[r].magic == GI_COMM_MAGIC && cards[r].status != GIN_OK)
            return gi_fail(cards[r].status, "gin_init: rank %d has failed: %s", r,
                           gin_status_name(cards[r].status));
    for (int r = 0; r < size; r++) {
        const struct gi_card *b = &cards[r];
        if (b->magic != GI_COMM_MAGIC)
            return gi_fail(GIN_EMISMATCH, "gin_init: rank %d does not speak this protocol", r);
        if (a->abi != b->abi)
            return differ("the ABI", "run the same library everywhere", a->abi, r, b->abi);
        if (a->version / 100 != b->version / 100)
            return differ("the library's version", "run the same library everywhere", a->version, r,
                          b->version);
        if (a->page_size != b->page_size)
            return differ("the page size", "heaps need equal pages", a->page_size, r, b->page_size);
        if (a->heap_size != b->heap_size)
            return differ("the heap size", "set GINSHMEM_HEAP_SIZE alike", a->heap_size, r,
                          b->heap_size);
        if (a->heap_max != b->heap_max)
            return differ("the heap's limit", "set GINSHMEM_HEAP_MAX alike", a->heap_max, r,
                          b->heap_max);
        if (a->heap_chunk != b->heap_chunk)
            return differ("the heap's chunk", "set GINSHMEM_HEAP_CHUNK alike", a->heap_chunk, r,
                          b->heap_chunk);
        if (a->peer_timeout != b->peer_timeout) /* each would wait for the other's beats in vain */
            return differ("the patience with peers, in ns,", "set GINSHMEM_PEER_TIMEOUT alike",
                          a->peer_timeout, r, b->peer_timeout);
        if (a->check != b->check)
            return differ("checked mode", "set GINSHMEM_CHECK alike", a->check, r, b->check);
        if (strncmp(a->hugepages, b->hugepages, sizeof(a->hugepages)) != 0)
            return gi_fail(GIN_EMISMATCH,
                           "gin_init: the choice of huge pages differs: rank 0 has %.8s, rank %d "
                           "has %.8s; set GINSHMEM_HUGEPAGES alike",
                           a->hugepages, r, b->hugepages);
    }
    return GIN_OK;
}
