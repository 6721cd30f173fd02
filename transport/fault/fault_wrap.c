/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wrapper by a text, for tests that run over the whole library (GINSHMEM_TEST_NET): words of
 * KEY=NUMBER, commas between them. What the text says of capabilities can only take some away.
 *
 *   class=A|B|C|D  the order and atomics of a class; A and D take the target's CPU for a NIC
 *   waw= saw= was= raw= sas= dc= imm= inject= max_msg= msg_max= depth= recvs= local=
 *                  the fields of the record, after the class
 *   dmabuf= hmem= calls=   GPU memory can be registered, though the inner network cannot: for
 *                  memory that the CPU reaches as well, as a driver without GPU has it
 *   hold= delay= early= again= silent= seed=   as in struct gi_fault_plan
 *   write= read= amo= msg= progress= reg= lane= connect=   FIRST calls succeed less one, then
 *   key=           ... of writes, which go out with a wrong key
 *   count=         so many of each fail (default 1),
 *   status= error= with this status (default GIN_ENET) and provider error
 *   rank=          on this rank alone; the others' calls do not fail
 *
 * A number outside its range is refused.
 */
#include "transport/fault/fault_int.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

#define MOST_HELD (1 << 20)

struct spec {
    struct gi_net_caps caps;
    struct gi_fault_plan plan;
    long long count, status, rank;
    int size;
};

/* What a network could not be or do is refused: with a depth of 0 nothing would ever be posted. */
static const struct range {
    const char *key;
    long long least, most;
} ranges[] = {{"waw", 0, LLONG_MAX},
              {"saw", 0, 1},
              {"was", 0, 1},
              {"raw", 0, 1},
              {"sas", 0, 1},
              {"dc", GI_NET_DC_NO, GI_NET_DC_SAME},
              {"imm", 0, 64},
              {"inject", 0, LLONG_MAX},
              {"max_msg", 1, LLONG_MAX},
              {"msg_max", 64, GI_NET_MSG_MAX},
              {"depth", 1, UINT32_MAX},
              {"recvs", 1, UINT32_MAX},
              {"local", 0, 1},
              {"dmabuf", 0, 1},
              {"hmem", 0, 1},
              {"calls", 0, 1},
              {"hold", 0, MOST_HELD},
              {"delay", 0, 1000000},
              {"early", 0, 1},
              {"again", 0, 999},
              {"silent", 0, 1000},
              {"seed", 0, LLONG_MAX},
              {"write", 1, UINT32_MAX},
              {"read", 1, UINT32_MAX},
              {"amo", 1, UINT32_MAX},
              {"msg", 1, UINT32_MAX},
              {"progress", 1, UINT32_MAX},
              {"reg", 1, UINT32_MAX},
              {"lane", 1, UINT32_MAX},
              {"connect", 1, UINT32_MAX},
              {"key", 1, UINT32_MAX},
              {"count", 1, UINT32_MAX},
              {"status", -99, -1},
              {"error", INT_MIN, INT_MAX},
              {"rank", 0, INT_MAX}};

static int bad(const char *word, const char *why)
{
    return gi_fail(GIN_EINVAL, "GINSHMEM_TEST_NET: \"%s\" %s", word, why);
}

static int impose_class(struct gi_net_caps *c, const char *word)
{
    char name = word[6];
    bool atomics = c->amo != GI_NET_AMO_NONE, order = c->waw_bytes != 0 && c->saw;
    if (strncmp(word, "class=", 6) != 0 || name < 'A' || name > 'D' || word[7] != 0)
        return bad(word, "is no class");
    if ((name == 'A' || name == 'D') && !atomics)
        return gi_fail(GIN_ENOTSUP, "class %c needs atomics, and %s has none", name, c->name);
    if ((name == 'A' || name == 'B') && !order)
        return gi_fail(GIN_ENOTSUP, "class %c needs order, and %s has none", name, c->name);
    if (name == 'A' && !c->amo_ordered)
        return gi_fail(GIN_ENOTSUP, "class A needs ordered atomics, and %s has none", c->name);
    c->amo = name == 'A' || name == 'D' ? GI_NET_AMO_NATIVE : GI_NET_AMO_NONE;
    if (name == 'C' || name == 'D') {
        c->waw_bytes = 0;
        c->saw = c->was = c->raw = c->sas = c->amo_ordered = false;
    }
    c->amo_fence = name == 'D';
    return GIN_OK;
}

#define LOWER(field, value)                                                                       \
    do {                                                                                          \
        c->field = (unsigned long long)c->field < (value) ? c->field : (typeof(c->field))(value); \
        return true;                                                                              \
    } while (0)

static bool lower(struct gi_net_caps *c, const char *key, unsigned long long v)
{
    if (strcmp(key, "waw") == 0)
        LOWER(waw_bytes, v);
    if (strcmp(key, "saw") == 0)
        LOWER(saw, v);
    if (strcmp(key, "was") == 0)
        LOWER(was, v);
    if (strcmp(key, "raw") == 0)
        LOWER(raw, v);
    if (strcmp(key, "sas") == 0)
        LOWER(sas, v);
    if (strcmp(key, "dc") == 0)
        LOWER(dc, v);
    if (strcmp(key, "imm") == 0)
        LOWER(imm_bits, v);
    if (strcmp(key, "inject") == 0)
        LOWER(inject, v);
    if (strcmp(key, "max_msg") == 0)
        LOWER(max_msg, v);
    if (strcmp(key, "msg_max") == 0)
        LOWER(msg_max, v);
    if (strcmp(key, "depth") == 0)
        LOWER(depth, v);
    if (strcmp(key, "recvs") == 0 && c->recvs == 0)
        c->recvs = (uint32_t)v;
    else if (strcmp(key, "recvs") == 0)
        LOWER(recvs, v);
    else if (strcmp(key, "local") == 0)
        c->mr_local = c->mr_local || v != 0;
    else if (strcmp(key, "dmabuf") == 0)
        c->mr_dmabuf = v != 0;
    else if (strcmp(key, "hmem") == 0)
        c->mr_hmem = v != 0;
    else if (strcmp(key, "calls") == 0)
        c->mr_calls = v != 0;
    else
        return false;
    return true;
}

static bool plan(struct spec *s, const char *key, long long v)
{
    static const char *const calls[GI_FAULT_CALLS] = {"write", "read", "amo",     "msg", "progress",
                                                      "reg",   "lane", "connect", "key"};
    struct {
        const char *key;
        uint32_t *to;
    } numbers[] = {{"hold", &s->plan.hold},
                   {"delay", &s->plan.delay},
                   {"again", &s->plan.again},
                   {"silent", &s->plan.silent}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(key, numbers[i].key) == 0) {
            *numbers[i].to = (uint32_t)v;
            return true;
        }
    for (int i = 0; i < GI_FAULT_CALLS; i++)
        if (strcmp(key, calls[i]) == 0) {
            s->plan.first[i] = (uint32_t)v;
            return true;
        }
    if (strcmp(key, "early") == 0)
        s->plan.early = v != 0;
    else if (strcmp(key, "seed") == 0)
        s->plan.seed = (uint64_t)v;
    else if (strcmp(key, "error") == 0)
        s->plan.provider_error = (int)v;
    else if (strcmp(key, "count") == 0)
        s->count = v;
    else if (strcmp(key, "status") == 0)
        s->status = v;
    else if (strcmp(key, "rank") == 0)
        s->rank = v;
    else
        return false;
    return true;
}

static int check_range(const struct spec *s, const char *key, long long n)
{
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        const struct range *r = &ranges[i];
        if (strcmp(r->key, key) != 0)
            continue;
        long long most = strcmp(key, "rank") == 0 ? s->size - 1 : r->most;
        if (strcmp(key, "imm") == 0 && n != 0 && n != 32 && n != 64)
            return gi_fail(GIN_EINVAL, "GINSHMEM_TEST_NET: imm=%lld is none of 0, 32, 64", n);
        if (n < r->least || n > most)
            return gi_fail(GIN_EINVAL, "GINSHMEM_TEST_NET: %s=%lld is not in %lld .. %lld", key, n,
                           r->least, most);
        return GIN_OK;
    }
    return gi_fail(GIN_EINVAL, "GINSHMEM_TEST_NET: there is no \"%s\"", key);
}

static int word(struct spec *s, char *w)
{
    char *value = strchr(w, '='), *end;
    if (strncmp(w, "class", 5) == 0)
        return impose_class(&s->caps, w);
    if (value == NULL)
        return bad(w, "is not KEY=NUMBER");
    errno = 0;
    long long n = strtoll(value + 1, &end, 10);
    if (end == value + 1 || *end != 0 || errno != 0)
        return bad(w, "is not KEY=NUMBER");
    *value = 0;
    int st = check_range(s, w, n);
    if (st != GIN_OK || plan(s, w, n))
        return st;
    return lower(&s->caps, w, (unsigned long long)n) ? GIN_OK : bad(w, "is unknown");
}

static int parse(struct spec *s, const char *text, int rank)
{
    char *copy = strdup(text), *save = NULL;
    int st = copy != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for GINSHMEM_TEST_NET");
    for (char *w = st == GIN_OK ? strtok_r(copy, ",", &save) : NULL; st == GIN_OK && w != NULL;
         w = strtok_r(NULL, ",", &save))
        st = word(s, w);
    free(copy);
    for (int i = 0; i < GI_FAULT_CALLS; i++) {
        s->plan.count[i] = (uint32_t)s->count;
        s->plan.status[i] = (int)s->status;
        if (s->rank >= 0 && s->rank != rank)
            s->plan.first[i] = 0;
    }
    return st;
}

bool gi_fault_needs_atomics(const char *text)
{
    return strstr(text, "class=A") != NULL || strstr(text, "class=D") != NULL;
}

int gi_fault_wrap(const char *text, int rank, int size, struct gi_net_domain **domain)
{
    struct gi_net_domain *inner = *domain;
    struct spec s = {.caps = *inner->ops->caps(inner),
                     .plan = {.inner = inner, .seed = 1, .provider_error = 5},
                     .count = 1,
                     .status = GIN_ENET,
                     .rank = -1,
                     .size = size};
    struct gi_net_config c = {.rank = rank, .size = size, .more = &s.plan};
    int st = parse(&s, text, rank);
    if (st == GIN_EINVAL) /* where load and store reach all, nobody would miss the network */
        gi_warn("fault", "no network: %s", gin_last_error());
    if (st != GIN_OK)
        return st;
    s.plan.caps = &s.caps;
    st = gi_fault_ops.open(&c, domain);
    if (st == GIN_OK) {
        ((struct fault_domain *)*domain)->owner = true;
        gi_info("fault", "the network is spoilt: %s", text);
    }
    return st;
}
