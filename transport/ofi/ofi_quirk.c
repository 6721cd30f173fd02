/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What providers claim and do not keep, or keep and do not claim: one row for each, by the name and
 * the versions of libfabric it holds for, with the reason that gininfo prints. The only place that
 * knows providers by name, but for the list of preference in ofi_find.c. An unknown provider is
 * served by its record alone.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <ginshmem/devcomm.h>
#include "transport/ofi/ofi_int.h"

enum field {
    MEET,
    PART,
    LOCAL,
    PASSIVE,
    IMM,
    IMM_SOURCE,
    SOURCE,
    DC,
    WAIT,
    OVERRUN,
    FENCE,
    RECVS,
    AMO,
    INLINE,
    QUEUE,
    USE,
    FILES,
    CLASSES
};

/*
 * Of traffic: nothing that libfabric answers tells which a provider heeds. None has code points;
 * tcp has one class (bulk data), which changes the half of its connections that this side opens.
 */
#define PROMPT (1u << GIN_TC_LOW_LATENCY)
#define LABELS \
    (1u << GIN_TC_BEST_EFFORT | PROMPT | 1u << GIN_TC_DEDICATED_ACCESS | 1u << GIN_TC_BULK_DATA)

#define ANY     0
#define V(a, b) FI_VERSION(a, b)
#define FOREVER UINT32_MAX

/* Then signals ride in immediates, which come with the put and need no more of that processor. */
#define EMULATED "the target's processor applies them when it makes progress"

/*
 * An accepted socket whose request has not been read keeps pointing to the endpoint that listened:
 * xnet_pep_close() frees it and leaves the socket to the domain's progress, which crashes by
 * xnet_run_conn() once something comes, if only the peer's end.
 */
#define ACCEPTED "one closed before it has read a request to connect crashes others"

/*
 * Closing a connection rxm_close_conn() frees its endpoint, then hands on what that left in the
 * queue, and only then forgets the endpoint (rxm_conn.c, 1.17 to 2.6): each message read so late
 * has its buffer posted to freed memory, where connections have receives of their own (not over
 * tcp).
 */
#define UNREAD "one closed with messages unread uses freed memory"

/* Versions of libfabric: from `since` on, before `until`. */
static const struct {
    const char *provider; /* '*' at an end: anything */
    uint32_t since, until;
    enum field field;
    unsigned value;
    const char *reason; /* NULL: the usual case, not worth a word */
} rows[] = {
    {"*;ofi_rxm", ANY, FOREVER, IMM_SOURCE, 0, "some source's, not the right one"},
    {"*;ofi_rxd", ANY, FOREVER, SOURCE, 0, "some source's, not the right one"},
    {"*;ofi_rxm", ANY, FOREVER, AMO, GI_NET_AMO_EMULATED, EMULATED},
    {"tcp;ofi_rxm", ANY, FOREVER, INLINE, 1,
     "those that fail with their peer end the process, unless a completion was asked for"},
    {"*;ofi_rxd", ANY, FOREVER, AMO, GI_NET_AMO_EMULATED, EMULATED},
    {"shm", ANY, FOREVER, LOCAL, 1, "it does not leave its own machine"},
    {"shm", ANY, FOREVER, AMO, GI_NET_AMO_EMULATED, EMULATED},
    {"efa", ANY, FOREVER, AMO, GI_NET_AMO_EMULATED, EMULATED},
    {"opx", ANY, FOREVER, AMO, GI_NET_AMO_EMULATED, EMULATED},
    {"psm3", ANY, FOREVER, AMO, GI_NET_AMO_EMULATED, EMULATED},
    {"sockets*", ANY, FOREVER, PASSIVE, 1, NULL},
    {"sockets*", ANY, FOREVER, AMO, GI_NET_AMO_NATIVE, "atomics are applied by its own thread"},
    {"sockets", ANY, FOREVER, RECVS, 32, "messages without a posted receive crash it"},
    {"verbs*", ANY, FOREVER, PASSIVE, 1, NULL},
    {"verbs*", ANY, FOREVER, FILES, 0, NULL},
    {"verbs*", ANY, FOREVER, DC, GI_NET_DC_SAME, "a completion is the remote device's answer"},
    {"cxi", ANY, FOREVER, CLASSES, LABELS, NULL},
    {"efa", V(2, 0), FOREVER, CLASSES, PROMPT, NULL},
    {"efa-direct", V(2, 0), FOREVER, CLASSES, PROMPT, NULL},
    {"cxi", ANY, FOREVER, PASSIVE, 1, NULL},
    {"cxi", ANY, FOREVER, FENCE, 1, NULL},
    {"cxi", ANY, V(2, 4), IMM, 0, "claimed, but writes with data are refused before 2.4"},
    {"efa-direct", ANY, FOREVER, PASSIVE, 1, NULL},
    {"efa-direct", ANY, FOREVER, DC, GI_NET_DC_SAME, "a completion says placed"},
    {"efa-direct", ANY, FOREVER, OVERRUN, 1, "immediates may overrun the queue"},
    {"efa-direct", ANY, FOREVER, RECVS, 16, "nothing queues messages without a posted receive"},
    {"net", ANY, V(1, 18), MEET, 1, "first writes may get lost while a dead rank is let go"},
    {"net", ANY, FOREVER, PART, 1, ACCEPTED},
    {"*;ofi_rxm", ANY, FOREVER, PART, 1, UNREAD},
    {"tcp", V(1, 18), FOREVER, PART, 1, ACCEPTED},
    {"psm3", ANY, FOREVER, IMM, 64, "works, though it is claimed not to"},
    {"shm", ANY, V(1, 23), DC, GI_NET_DC_NO,
     "with two short writes in flight it never completes before 1.23"},
    {"shm", ANY, FOREVER, QUEUE, 1, "none passes what a dead rank owes"},
    {"shm", ANY, FOREVER, WAIT, 0, "has no descriptor to sleep on"},
    {"udp;ofi_rxd", ANY, FOREVER, WAIT, 0, "its descriptor cannot be had"},
    {"udp;ofi_rxd", ANY, FOREVER, USE, 0, "slow, and little tried: for tests only"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool applies(size_t i, const char *name)
{
    uint32_t v = fi_version();
    size_t len = strlen(rows[i].provider);
    size_t n = strlen(name);
    if (v < rows[i].since || v >= rows[i].until)
        return false;
    if (rows[i].provider[0] == '*')
        return n >= len - 1 && strcasecmp(rows[i].provider + 1, name + n - (len - 1)) == 0;
    if (rows[i].provider[len - 1] == '*')
        return strncasecmp(rows[i].provider, name, len - 1) == 0;
    return strcasecmp(rows[i].provider, name) == 0;
}

static const char *correct(struct gi_ofi_domain *d, enum field field, unsigned value)
{
    struct gi_net_caps *c = &d->caps;
    switch (field) {
    case MEET: c->meet_early = value != 0; return "first contact";
    case PART: c->part_late = value != 0; return "closing endpoints";
    case LOCAL: c->local = value != 0; return "reach";
    case PASSIVE: c->target_passive = value != 0; return "passive targets";
    case IMM: c->imm_bits = value; return "immediates";
    case IMM_SOURCE: d->imm_source = value != 0; return "sources of immediates";
    case SOURCE:
        d->pick.rung.source = d->imm_source = c->msg_source = value != 0;
        return "sources of arrivals";
    case DC: c->dc = (enum gi_net_dc)value; return "delivery";
    case WAIT: c->wait_fd = value != 0; return "sleeping";
    case OVERRUN: c->cq_overrun = value != 0; return "queue overrun";
    case FENCE: c->amo_fence = value != 0 && c->amo == GI_NET_AMO_NATIVE; return "fence";
    case INLINE: d->inline_heard = value != 0; return "inline writes";
    case FILES: c->fd_each = value != 0; return "descriptors";
    case QUEUE: c->one_queue = value != 0; return "answers";
    case CLASSES: c->classes = value; return "classes of traffic";
    case RECVS: c->recvs = value; return "receives";
    case AMO:
        c->amo = c->amo != GI_NET_AMO_NONE ? (enum gi_net_amo)value : c->amo;
        return "atomics";
    case USE: return "use"; /* nothing to correct, but people should know */
    }
    return "";
}

void gi_ofi_apply_quirks(struct gi_ofi_domain *d)
{
    const char *name = d->caps.name;
    const char *fabric = d->pick.info->fabric_attr->name;
    if (strcasecmp(name, "efa") == 0 && fabric != NULL && strcasecmp(fabric, "efa-direct") == 0)
        name = fabric;
    for (size_t i = 0; i < ROWS; i++) {
        if (!applies(i, name))
            continue;
        const char *what = correct(d, rows[i].field, rows[i].value);
        if (rows[i].reason != NULL)
            gi_ofi_note(d, "%s: %s (known of %s)", what, rows[i].reason, name);
    }
}
