/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose contract is kept: one row for each, and how a broken rule is told. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/providers/fi_prov.h>
#include "tests/providers/contract/contract.h"

#define BASIC_CAPS                                                                                 \
    (FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | \
     FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define KEYED (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define BEHIND                                                                                 \
    (FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAW | \
     FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW)
#define RELAXED (FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_ATOMIC_RAR)

#define EFA_DIRECT                                                                         \
    .provider = "efa", .fabric = "efa-direct", .domain = "rdmap0-rdm", .caps = BASIC_CAPS, \
    .mode = FI_CONTEXT2, .mr_mode = KEYED | FI_MR_LOCAL, .key_size = 4, .cq_data_size = 4, \
    .inject = 32, .max_msg = 8192, .max_rma = 65536, .tx = 256, .rx = 1024,                \
    .full = GC_FULL_BREAKS, .dead = GC_DEAD_ERROR, .always = true, .overrun = true,        \
    .known_only = true
#define CXI                                                                                     \
    .provider = "cxi", .fabric = "cxi", .domain = "cxi0",                                       \
    .caps = BASIC_CAPS | FI_ATOMIC | FI_FENCE | FI_RMA_EVENT, .cq_data_size = 8, .inject = 192, \
    .adds = GC_ADD_BOTH, .wakes = true, .max_msg = 1u << 20, .max_rma = 0xffffffffu, .tx = 256, \
    .rx = 1024, .most_mrs = 100, .imm = GC_IMM_UNTRUE, .dead = GC_DEAD_SILENT, .early = true,   \
    .inject_writes = true, .wait_fd = true

#define VERBS_MSG                                                                             \
    .provider = "verbs", .fabric = "IB-0xfe80000000000000", .domain = "dev0",                 \
    .caps = (BASIC_CAPS & ~FI_SOURCE) | FI_ATOMIC, .mode = FI_RX_CQ_DATA,                     \
    .mr_mode = KEYED | FI_MR_LOCAL, .order = BEHIND, .key_size = 4, .cq_data_size = 4,        \
    .inject = 256, .max_msg = 1u << 20, .max_rma = 1u << 16, .tx = 384, .rx = 384,            \
    .imm = GC_IMM_RECV, .full = GC_FULL_STALLS, .dead = GC_DEAD_ERROR, .inject_writes = true, \
    .wait_fd = true, .flushes = true, .connected = true, .wakes = true, .vague = true

static const struct gc_profile profiles[] = {
    {.name = "efa",
     .provider = "efa",
     .fabric = "efa",
     .domain = "rdmap0-rdm",
     .caps = BASIC_CAPS | FI_ATOMIC,
     .mr_mode = KEYED,
     .order = FI_ORDER_SAS,
     .key_size = 4,
     .cq_data_size = 4,
     .inject = 120,
     .max_msg = 8192,
     .max_rma = 1u << 17,
     .tx = 256,
     .rx = 1024,
     .imm = GC_IMM_FREE,
     .dead = GC_DEAD_AGAIN,
     .manual = true,
     .handshake = true,
     .early = true,
     .inject_writes = true,
     .negative = true},
    {.name = "efa-direct", EFA_DIRECT, .imm = GC_IMM_FREE},
    {.name = "efa-direct-rx", EFA_DIRECT, .imm = GC_IMM_RECV},
    {.name = "cxi",
     CXI,
     .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED,
     .key_size = 4,
     .order = RELAXED | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW},
    {.name = "cxi-relaxed",
     CXI,
     .mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
     .key_size = 8,
     .order = RELAXED},
    /* The rules of verbs under a name that nobody knows anything about. */
    {.name = "verbs",
     .provider = "gincontract",
     .fabric = "gincontract",
     .domain = "dev0",
     .caps = BASIC_CAPS,
     .mode = FI_RX_CQ_DATA,
     .mr_mode = KEYED | FI_MR_LOCAL,
     .order = BEHIND,
     .key_size = 4,
     .cq_data_size = 4,
     .inject = 256,
     .max_msg = 1u << 20,
     .max_rma = 1u << 16,
     .tx = 384,
     .rx = 512,
     .imm = GC_IMM_RECV,
     .full = GC_FULL_STALLS,
     .dead = GC_DEAD_ERROR,
     .inject_writes = true,
     .wait_fd = true,
     .flushes = true},
    {.name = "verbs-msg", VERBS_MSG, .adds = GC_ADD_FETCHING},
    /* As libfabric before 2.2 has it. */
    {.name = "verbs-msg-old", VERBS_MSG, .adds = GC_ADD_WRONG},
    /* The rules of tcp, under a name that nobody knows. */
    {.name = "stream",
     .provider = "gincontract",
     .fabric = "gincontract",
     .domain = "dev0",
     .caps = BASIC_CAPS,
     .order = BEHIND,
     .key_size = 8,
     .cq_data_size = 8,
     .inject = 128,
     .max_msg = 1u << 20,
     .max_rma = 1u << 16,
     .tx = 256,
     .rx = 1024,
     .imm = GC_IMM_FREE,
     .dead = GC_DEAD_ONCE,
     .manual = true,
     .early = true,
     .inject_writes = true,
     .negative = true,
     .breaks = true},
};

/* Of any row: GINCONTRACT_WITH, words with commas between. */
static const struct {
    const char *word;
    int dead; /* -1: not this */
    size_t flag;
} words[] = {
    {"dead-error", GC_DEAD_ERROR, 0},
    {"dead-once", GC_DEAD_ONCE, 0},
    {"dead-again", GC_DEAD_AGAIN, 0},
    {"dead-silent", GC_DEAD_SILENT, 0},
    {"negative", -1, offsetof(struct gc_profile, negative)},
    {"breaks", -1, offsetof(struct gc_profile, breaks)},
    {"wakes", -1, offsetof(struct gc_profile, wakes)},
    {"hmem", -1, offsetof(struct gc_profile, hmem)},
    {"dmabuf", -1, offsetof(struct gc_profile, dmabuf)},
    {"calls", -1, offsetof(struct gc_profile, calls)},
};

static void change(struct gc_profile *p, const char *with)
{
    for (size_t len; *with != 0; with += len + (with[len] == ',')) {
        len = strcspn(with, ",");
        size_t i = 0;
        while (i < sizeof(words) / sizeof(words[0]) &&
               (strlen(words[i].word) != len || strncmp(words[i].word, with, len) != 0))
            i++;
        if (i == sizeof(words) / sizeof(words[0])) {
            fprintf(stderr, "GINCONTRACT_WITH: no %.*s\n", (int)len, with);
            abort();
        }
        if (words[i].dead >= 0)
            p->dead = (enum gc_dead)words[i].dead;
        else
            *((bool *)p + words[i].flag) = true;
    }
}

static struct gc_profile chosen;

static void choose(void)
{
    const char *name = getenv("GINCONTRACT"), *with = getenv("GINCONTRACT_WITH");
    for (size_t i = 0; name != NULL && i < sizeof(profiles) / sizeof(profiles[0]); i++)
        if (strcmp(profiles[i].name, name) == 0)
            chosen = profiles[i];
    if (chosen.name != NULL && with != NULL)
        change(&chosen, with);
    if (chosen.hmem || chosen.dmabuf)
        chosen.caps |= FI_HMEM;
}

const struct gc_profile *gc_profile(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen.name != NULL ? &chosen : NULL;
}

int gc_broken(int error, const char *fmt, ...)
{
    const struct gc_profile *p = gc_profile();
    const char *strict = getenv("GINCONTRACT_STRICT");
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "contract of %s broken: %s\n", p != NULL ? p->name : "?", text);
    if (strict != NULL && strict[0] == '1')
        abort();
    return error;
}

uint64_t gc_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* By GINCONTRACT_SEED, another one for each thread in the order in which they first throw. */
static uint64_t first_state(void)
{
    static atomic_uint threads;
    const char *seed = getenv("GINCONTRACT_SEED");
    uint64_t from = seed != NULL ? strtoull(seed, NULL, 0) : gc_now();
    return (from + 1) * 0x9e3779b97f4a7c15u + 2 * atomic_fetch_add(&threads, 1) + 1;
}

/* Not random enough for keys; enough for order. */
uint32_t gc_dice(uint32_t below)
{
    static _Thread_local uint64_t state;
    if (state == 0)
        state = first_state() | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * below >> 32);
}

/* ---- the entry ---- */

static void nothing(void)
{
}

static struct fi_provider provider = {
    /* Newer than a provider of that name inside libfabric, and so instead of it. */
    .version = FI_VERSION(999, 0), .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name = "gincontract",         .getinfo = gc_getinfo,
    .fabric = gc_fabric_open,      .cleanup = nothing,
};

struct fi_provider *fi_prov_ini(void);

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
    const struct gc_profile *p = gc_profile();
    if (p != NULL)
        provider.name = p->provider;
    return &provider;
}
