/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bringing the network up and taking it down.
 *
 * Every rank opens its domain alone; then all show what they have got. If one has nothing, the job
 * has no network, which is no failure: what needs it is refused with that rank's reason. If they
 * have got different providers, that is a failure of the call, with both names.
 */
#include <stdlib.h>
#include <string.h>

#include "net_up.h"
#include "devcomm.h"
#include "net_drive.h"
#include "net_ops.h"
#include "window_impl.h"

#define CUT_NS  10000000000u /* for a link that is down to come back while ranks meet */
#define LOOK_NS 200000000u

void gi_net_progress(void *arg)
{
    struct gi_net *n = gi_net_of(arg);
    if (n != NULL)
        gi_core_poll_some(n->core);
}

/* ---- what peers' messages name ---- */

static int resolve(void *arg, uint32_t name, uint64_t off, uint64_t bytes, bool write, void **at)
{
    const struct gi_net *n = arg;
    const struct gin_i_window *w = gi_window_table_named(&n->comm->windows->table, name);
    if (w == NULL)
        return GIN_ESTATE;
    uint64_t size = gi_window_size(n->comm, w);
    if (off > size || bytes > size - off)
        return GIN_ERANGE;
    *at = (void *)(uintptr_t)(w->local + off);
    if (write && (w->flags & GIN_WIN_READ_ONLY) != 0)
        return GIN_EINVAL;
    return w->kind == GIN_KIND_CUDA ? GIN_ENOTSUP : GIN_OK;
}

static void peer_lost(void *arg, int rank, const char *why)
{
    struct gi_net *n = arg;
    char text[sizeof(n->comm->status_text)];
    if (atomic_load_explicit(&n->comm->leaving, memory_order_acquire) != 0)
        return; /* it may have gone before me */
    snprintf(text, sizeof(text), "rank %d on host %.63s is lost: %.100s", rank,
             n->comm->cards[rank].host_id, why != NULL ? why : "no answer");
    gi_comm_rank_died(n->comm, rank, text);
}

/* One broken connection is not a death. Where the watch sees deaths for itself, the operations that
 * failed have said what there is to say. */
static void peer_suspect(void *arg, int rank, const char *why)
{
    const struct gi_net *n = arg;
    if (atomic_load_explicit(&n->comm->watch, memory_order_acquire) == NULL)
        peer_lost(arg, rank, why);
    else
        gi_info("net", "rank %d may be lost: %s", rank, why);
}

/* ---- opening ---- */

/* What a rank has got, shown to all. */
struct ballot {
    int32_t status;
    uint8_t local; /* it leads to its own machine alone */
    uint8_t spent; /* this rank has no more time for another try */
    uint8_t zero[2];
    char provider[64], version[32], why[160];
};

static void open_mine(struct gi_net *n, struct ballot *b)
{
    memset(b, 0, sizeof(*b));
    b->status = gi_net_gpu_rails_open(n);
    if (b->status != GIN_OK) {
        const char *why = gin_last_error();
        bool whole = strlen(why) < sizeof(b->why);
        snprintf(b->why, sizeof(b->why), "%.*s%s", whole ? 159 : 141, why,
                 whole ? "" : "... (see gininfo)");
        return;
    }
    const struct gi_net_caps *caps = n->domains[0]->ops->caps(n->domains[0]);
    snprintf(b->provider, sizeof(b->provider), "%.60s", caps->name);
    snprintf(b->version, sizeof(b->version), "%.31s", caps->version);
    b->local = gi_net_rails_local(n);
}

/* A rank whose network does not lead to the machine of another one, *whose; -1: none. All ranks
 * find the same. */
static int cut_off(const gin_comm_t *comm, const struct ballot *all, int *whose)
{
    int cut = -1;
    for (int r = 0; r < comm->size; r++) {
        if (all[r].status != GIN_OK)
            return -1; /* that one says why there is no network */
        if (all[r].local && cut < 0)
            cut = r;
    }
    for (int r = 0; cut >= 0 && r < comm->size; r++)
        if (comm->cards[r].net_space != comm->cards[cut].net_space) {
            *whose = r;
            return cut;
        }
    return -1;
}

/*
 * Open mine and see what all have got. A host whose link is down finds its loopback, which reaches
 * nobody else: links come back, so it looks again for a while.
 */
static int open_all(struct gi_net *n, struct ballot *mine, struct ballot *all)
{
    gin_comm_t *comm = n->comm;
    uint64_t patience = comm->env.init_timeout / 4 < CUT_NS ? comm->env.init_timeout / 4 : CUT_NS;
    uint64_t until = gi_deadline_in(patience);
    for (;;) {
        if (n->n_domains == 0)
            open_mine(n, mine);
        mine->spent = gi_now_ns() >= until;
        int st = gi_comm_gather(comm, mine, all, sizeof(*mine));
        int whose, cut = st == GIN_OK ? cut_off(comm, all, &whose) : -1;
        if (cut < 0)
            return st;
        for (int r = 0; r < comm->size; r++)
            if (all[r].spent)
                return gi_fail(GIN_ENET,
                               "rank %d has but %.60s, which does not leave its own machine %.63s, "
                               "and rank %d is on another: is its link up, are GINSHMEM_PROVIDER "
                               "and GINSHMEM_NIC right?",
                               cut, all[cut].provider, comm->cards[cut].host_id, whose);
        gi_info("net", "rank %d has but %.60s, which does not leave its machine: another look", cut,
                all[cut].provider);
        gi_os_sleep_ns(LOOK_NS);
        if (mine->local)
            gi_net_rails_close(n);
    }
}

/* GIN_OK: all have the same; GIN_ENOTSUP: somebody has none, which net_why says; or a failure. */
static int open_alike(struct gi_net *n, struct ballot *mine)
{
    gin_comm_t *comm = n->comm;
    struct ballot *all = malloc((size_t)comm->size * sizeof(*all));
    int st = all != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for %d ranks", comm->size);
    st = gi_agree_on(comm, GI_AGREE_NETWORK, 0, 0, 0, st);
    if (st == GIN_OK)
        st = gi_net_nics_choose(n);
    if (st == GIN_OK)
        st = open_all(n, mine, all);
    for (int r = 0; st == GIN_OK && r < comm->size; r++)
        if (all[r].status != GIN_OK) {
            snprintf(comm->net_why, sizeof(comm->net_why), "rank %d: %.159s", r, all[r].why);
            st = GIN_ENOTSUP;
        }
    for (int r = 1; st == GIN_OK && r < comm->size; r++)
        if (strcmp(all[r].provider, all[0].provider) != 0 ||
            strcmp(all[r].version, all[0].version) != 0)
            st = gi_fail(GIN_EMISMATCH,
                         "the network differs: rank 0 has provider %s (%s), rank %d has %s (%s); "
                         "set GINSHMEM_PROVIDER alike",
                         all[0].provider, all[0].version, r, all[r].provider, all[r].version);
    free(all);
    return st;
}

static int gather(void *arg, const void *mine, void *all, size_t bytes)
{
    return gi_comm_gather(arg, mine, all, bytes);
}

static int open_core(struct gi_net *n)
{
    gin_comm_t *comm = n->comm;
    const struct gi_core_config c = {
        .rank = comm->rank,
        .size = comm->size,
        .domains = n->domains,
        .n_domains = n->n_domains,
        .allgather = gather,
        .allgather_arg = comm,
        .hooks = {.arg = n,
                  .resolve = resolve,
                  .peer_lost = peer_lost,
                  .peer_suspect = peer_suspect,
                  .wake = gi_net_driver_wake,
                  .landed = gi_net_gpu_landed},
        .drivers = (uint32_t)comm->env.engine_threads,
        .peer_timeout_ns = comm->env.peer_timeout,
        .stripe_from = (uint64_t)comm->env.stripe,
    };
    int st = gi_core_open(&c, &n->core);
    if (st == GIN_OK)
        n->needs_region = gi_core_needs_region(n->core);
    return st;
}

static void free_heap(struct gi_net *n, struct gi_net_heap *h)
{
    for (uint32_t i = 0; i < h->n_chunks; i++)
        gi_core_region_close(n->core, h->chunks[i].region);
    free(h->chunks);
}

static void free_net(struct gi_net *n)
{
    gi_net_drivers_stop(n);
    free_heap(n, &n->heap);
    free_heap(n, &n->cuda_heap);
    gi_core_region_close(n->core, n->cuda);
    if (n->core != NULL)
        gi_core_close(n->core);
    gi_net_stage_down(n);
    gi_net_rails_close(n);
    free(n);
}

static void describe(struct gi_net *n, const struct ballot *b)
{
    char rails[40] = "";
    if (n->n_domains > 1)
        snprintf(rails, sizeof(rails), ", %u rails%s", n->n_domains,
                 gi_core_stripes(n->core) ? ", large puts by all" : "");
    snprintf(n->how, sizeof(n->how), "%.45s (%.31s)%s: %.110s", b->provider, b->version, rails,
             gi_core_strategy(n->core, 0));
    gi_info("net", "network up: %s", n->how);
}

int gi_net_up(gin_comm_t *comm)
{
    struct ballot mine;
    struct gi_net *n;
    if (comm->net != NULL || comm->net_why[0] != 0)
        return GIN_OK;
    n = calloc(1, sizeof(*n));
    int st = n != NULL ? GIN_OK : gi_fail(GIN_ENOMEM, "no memory for the network");
    st = gi_agree_on(comm, GI_AGREE_NETWORK, 0, 0, 0, st);
    if (st != GIN_OK) {
        free(n);
        return st;
    }
    n->comm = comm;
    n->heap.chunks = calloc(GI_NET_CHUNKS, sizeof(*n->heap.chunks));
    st = open_alike(n, &mine);
    if (st == GIN_OK) {
        st = n->heap.chunks != NULL ? open_core(n)
                                    : gi_fail(GIN_ENOMEM, "no memory for the network's chunks");
        if (st == GIN_OK)
            st = gi_net_drivers_start(n);
        st = gi_agree_on(comm, GI_AGREE_NETWORK, 0, 0, 0, st);
    }
    if (st == GIN_OK) {
        describe(n, &mine);
        GIN_STORE_RELEASE(&comm->net, n); /* other threads may be waiting for signals */
        gi_net_stage_up(comm);
        gi_net_windows_up(comm);
        return GIN_OK;
    }
    bool gpu_forced = n->gpu.forced;
    free_net(n);
    if (st == GIN_ENOTSUP) {
        if (comm->net_why[0] == 0)
            snprintf(comm->net_why, sizeof(comm->net_why), "%s", gin_last_error());
        const struct gi_env *e = &comm->env;
        bool named = e->provider[0] != 0 || e->nic[0] != 0 || e->nics[0] != 0 || gpu_forced;
        if (comm->rank == 0 && named && !e->disable_net)
            gi_warn("net", "no network: %s", comm->net_why); /* the user's word is not followed */
        else
            gi_info("net", "no network: %s", comm->net_why);
        return GIN_OK;
    }
    return st;
}

const char *gi_net_why(const gin_comm_t *comm)
{
    if (comm->net != NULL)
        return "there is one";
    return comm->net_why[0] != 0 ? comm->net_why
                                 : "every rank is load/store accessible, so none was opened";
}

static void count(struct gi_core_ctx *ctx, gin_stats_t *s)
{
    gi_core_enter(ctx);
    const uint64_t *n = gi_core_counts(ctx);
    s->net_writes += n[GI_CORE_N_WRITE] + n[GI_CORE_N_WRITE_IMM];
    s->net_reads += n[GI_CORE_N_READ];
    s->net_atomics += n[GI_CORE_N_NATIVE];
    s->net_messages += n[GI_CORE_N_MSG];
    s->net_bundled += n[GI_CORE_N_BUNDLED];
    s->net_controls +=
        n[GI_CORE_N_REPLY] + n[GI_CORE_N_ECHO] + n[GI_CORE_N_ACK] + n[GI_CORE_N_NACK];
    s->net_again += n[GI_CORE_N_AGAIN];
    gi_core_leave(ctx);
}

void gi_net_count(gin_comm_t *comm, gin_stats_t *s)
{
    for (struct gi_devcomm *d = comm->devcomms; d != NULL; d = d->next)
        for (uint32_t c = 0; d->net != NULL && c <= d->reqs.contexts; c++)
            count(d->net[c], s);
}

void gi_net_down(gin_comm_t *comm)
{
    struct gi_net *n = comm->net;
    if (n == NULL)
        return;
    gi_net_windows_down(comm);
    comm->net = NULL;
    free_net(n);
}
