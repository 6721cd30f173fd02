/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a communicator fails: somebody aborted it, or a peer's process ended without leaving. The
 * first cause stays. Who learns of one shows it in its own abort word, which its LSA peers look at
 * in every long wait, so that those learn too who cannot see the dead process themselves.
 */
#include <string.h>

#include "comm.h"

#define LOOK_NS 1000000 /* between two looks at processes, whoever waits */

void gi_comm_set_failed(gin_comm_t *comm, int status, int rank, const char *why)
{
    if (atomic_exchange_explicit(&comm->failing, 1, memory_order_acq_rel) != 0)
        return;
    comm->status_rank = rank;
    snprintf(comm->status_text, sizeof(comm->status_text), "%s", why);
    atomic_store_explicit(&comm->status, status, memory_order_release);
    gi_info("comm", "failed: %s", comm->status_text);
    if (!comm->up)
        return;
    struct gi_control *mine = gi_control(comm, comm->shm->lsa_rank);
    mine->abort.rank = rank;
    mine->abort.status = status;
    snprintf(mine->abort.why, sizeof(mine->abort.why), "%s", why);
    atomic_store_explicit(&mine->abort.set, 1, memory_order_release);
}

int gi_comm_fail_status(const gin_comm_t *comm)
{
    int status;
    while ((status = gi_comm_status_quiet(comm)) == GIN_OK &&
           atomic_load_explicit(&comm->failing, memory_order_acquire) != 0)
        gi_os_yield(); /* its text is being written */
    return gi_fail(status, "%s", comm->status_text);
}

/* A peer that shows a failure. */
static void look_at_words(gin_comm_t *comm)
{
    for (int r = 0; r < comm->shm->lsa_size; r++) {
        struct gi_control *c = gi_control(comm, r);
        if (r == comm->shm->lsa_rank ||
            atomic_load_explicit(&c->abort.set, memory_order_acquire) == 0)
            continue;
        char why[sizeof(c->abort.why)];
        memcpy(why, c->abort.why, sizeof(why));
        why[sizeof(why) - 1] = 0;
        gi_comm_set_failed(comm, c->abort.status == GIN_ENET ? GIN_ENET : GIN_EPEER, c->abort.rank,
                           why);
        return;
    }
}

/* Left by gin_finalize(). A rank that I cannot see into may only end once all of us leave. */
static int has_left(const gin_comm_t *comm, int world)
{
    int lsa = comm->shm->lsa_of[world];
    if (lsa < 0)
        return atomic_load_explicit(&comm->leaving, memory_order_acquire);
    return (int)atomic_load_explicit(&gi_control(comm, lsa)->departed, memory_order_acquire);
}

/* A process ended: the first of its ranks that had not left is dead. True when there is one. */
static bool process_ended(gin_comm_t *comm, int first)
{
    char why[sizeof(comm->status_text)];
    for (int r = first; r < comm->size; r++) {
        const struct gi_card *card = &comm->cards[r];
        if (card->process != comm->cards[first].process || has_left(comm, r))
            continue;
        snprintf(why, sizeof(why), "rank %d is dead: its process %d on host %.40s has ended", r,
                 (int)card->pid, card->host_id);
        gi_comm_set_failed(comm, GIN_EPEER, r, why);
        return true;
    }
    return false;
}

static void look_at_processes(gin_comm_t *comm)
{
    uint64_t now = gi_now_ns();
    uint64_t next = atomic_load_explicit(&comm->next_look, memory_order_relaxed);
    if (now < next ||
        !atomic_compare_exchange_strong_explicit(&comm->next_look, &next, now + LOOK_NS,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    int ended = -1;
    while ((ended = gi_shm_dead_after(comm->shm, ended)) >= 0)
        if (process_ended(comm, ended))
            break;
}

int gi_comm_health(void *arg)
{
    gin_comm_t *comm = arg;
    if (comm->up && gi_comm_status_quiet(comm) == GIN_OK) {
        look_at_words(comm);
        look_at_processes(comm);
    }
    return gi_comm_status_quiet(comm) == GIN_OK ? GIN_OK : gi_comm_fail_status(comm);
}

int gin_comm_status(gin_comm_t *comm)
{
    int st = gi_comm_enter(comm, "gin_comm_status");
    return st == GIN_OK ? gi_comm_health(comm) : st;
}

int gin_comm_abort(gin_comm_t *comm, const char *why)
{
    char text[sizeof(comm->status_text)];
    int st = gi_comm_enter(comm, "gin_comm_abort");
    if (st != GIN_OK)
        return st;
    snprintf(text, sizeof(text), "rank %d aborted: %s", comm->rank, why != NULL ? why : "");
    gi_comm_set_failed(comm, GIN_EPEER, comm->rank, text);
    if (!comm->up || comm->shm->lsa_size < comm->size)
        gi_warn("comm", "%s; ranks that are not load/store accessible learn it when this one ends",
                text);
    return GIN_OK;
}

int gin_comm_shrink(gin_comm_t *comm, gin_comm_t **survivors)
{
    int st = gi_comm_enter(comm, "gin_comm_shrink");
    if (st != GIN_OK)
        return st;
    if (survivors == NULL)
        return gi_fail(GIN_EINVAL, "gin_comm_shrink: survivors is NULL");
    return gi_fail(GIN_ENOTSUP, "gin_comm_shrink is not built yet: survivors have no way to agree "
                                "on who is left; gin_finalize() and gin_init() with a new unique "
                                "id among the survivors");
}
