/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How collective host calls meet: every rank shows a record, everyone reads all of them. Where all
 * ranks are LSA peers this takes one store and size - 1 loads through the control blocks; otherwise
 * it goes through the bootstrap.
 *
 * Two places per rank, by parity of the call, suffice: a rank that writes record n + 2 has seen all
 * records n + 1, and a rank shows n + 1 only after it has read all records n.
 */
#include <string.h>

#include "comm.h"

#define PAUSE_NS 5000000u /* between two looks at who died */
#define PATIENCE 2000

struct meeting {
    gin_comm_t *comm;
    uint64_t seq;
};

/* LSA rank of someone whose record of this call is missing, or -1. */
static int missing(const struct meeting *m)
{
    const gin_comm_t *comm = m->comm;
    for (int r = 0; r < comm->size; r++)
        if (GIN_LOAD_ACQUIRE(&gi_control(comm, r)->agree[m->seq & 1].seq) != m->seq)
            return r;
    return -1;
}

/* Name everyone who is missing. */
static int late(const struct meeting *m)
{
    const gin_comm_t *comm = m->comm;
    char who[160] = "";
    size_t n = 0;
    for (int r = 0; r < comm->size && n + 16 < sizeof(who); r++)
        if (GIN_LOAD_ACQUIRE(&gi_control(comm, r)->agree[m->seq & 1].seq) != m->seq)
            n += (size_t)snprintf(who + n, sizeof(who) - n, " %d", comm->shm->world_of[r]);
    return gi_fail(GIN_ETIMEDOUT,
                   "collective call %llu: no sign of rank(s)%s after %.3g s "
                   "(GINSHMEM_COLL_TIMEOUT); do all ranks make the call?",
                   (unsigned long long)m->seq, who, (double)comm->env.coll_timeout * 1e-9);
}

static int wait_all(struct meeting *m)
{
    gin_comm_t *comm = m->comm;
    for (uint32_t i = 0; i < comm->spin; i++)
        if (missing(m) < 0)
            return GIN_OK;
    struct gi_wait w;
    int st = GIN_OK;
    gi_wait_begin(&w, 0, gi_deadline_in(comm->env.coll_timeout), gi_comm_health, comm,
                  "collective host call");
    w.detail[0] = m->seq;
    w.rank = comm->rank;
    while (missing(m) >= 0 && (st = gi_wait_step(&w)) == GIN_OK)
        ;
    gi_wait_end(&w);
    if (st != GIN_OK && missing(m) < 0)
        return GIN_OK; /* what was waited for happened; the next call reports the failure */
    return st == GIN_ETIMEDOUT ? late(m) : st;
}

/*
 * A call that I gave up on may have succeeded for others, and nobody can tell: what the ranks did
 * alike so far ends here. The status of this call stays what it is.
 */
static void adrift(gin_comm_t *comm)
{
    gi_comm_set_failed(comm, GIN_EPEER, comm->rank, gin_last_error());
}

static int exchange_lsa(gin_comm_t *comm, const struct gi_agree_record *mine)
{
    struct meeting m = {comm, mine->seq};
    struct gi_agree_record *place = &gi_control(comm, comm->shm->lsa_rank)->agree[m.seq & 1];
    /* everything but the number, then the number: whoever sees it sees all */
    memcpy((char *)place + sizeof(place->seq), (const char *)mine + sizeof(mine->seq),
           sizeof(*mine) - sizeof(mine->seq));
    GIN_STORE_RELEASE(&place->seq, m.seq);
    int st = wait_all(&m);
    if (GIN_UNLIKELY(st != GIN_OK)) {
        adrift(comm);
        GIN_STORE_RELEASE(&place->seq, 0); /* who comes later finds nobody, then why */
    }
    for (int r = 0; st == GIN_OK && r < comm->size; r++)
        comm->records[comm->shm->world_of[r]] = gi_control(comm, r)->agree[m.seq & 1];
    return st;
}

int gi_exchange(void *arg, const struct gi_agree_record *mine, const struct gi_agree_record **all)
{
    gin_comm_t *comm = arg;
    int st = gi_comm_status_quiet(comm);
    if (GIN_UNLIKELY(st != GIN_OK))
        return gi_comm_fail_status(comm);
    atomic_fetch_add_explicit(&comm->n_agreements, 1, memory_order_relaxed);
    if (GIN_LIKELY(comm->up && comm->shm->lsa_size == comm->size))
        st = exchange_lsa(comm, mine);
    else
        st = gi_comm_gather(comm, mine, comm->records, sizeof(*mine));
    if (st == GIN_OK)
        *all = comm->records;
    return st;
}

int gi_agree_on(gin_comm_t *comm, unsigned op, uint64_t a, uint64_t b, uint64_t c, int status)
{
    struct gi_agree_record mine = {
        .seq = ++comm->calls, .op = op, .size = a, .align = b, .extra = c, .status = status};
    return gi_agree(&mine, comm->size, gi_exchange, comm);
}

/* Launchers often do not say who it was, or before the one who knows has told. */
static int who_died(gin_comm_t *comm, int status)
{
    if (status == GIN_EPEER && comm->boot->lost >= 0)
        gi_comm_rank_died(comm, comm->boot->lost, gin_last_error());
    int st = gi_comm_health(comm);
    for (int i = 0; status == GIN_EPEER && st == GIN_OK && comm->watch != NULL && i < PATIENCE;
         i++) {
        gi_os_sleep_ns(PAUSE_NS);
        st = gi_comm_health(comm);
    }
    return st;
}

int gi_comm_gather(gin_comm_t *comm, const void *in, void *out, size_t bytes)
{
    int st = gi_boot_allgather(comm->boot, in, out, bytes, gi_deadline_in(comm->env.coll_timeout));
    if (GIN_LIKELY(st == GIN_OK))
        return GIN_OK;
    int why = who_died(comm, st);
    if (why != GIN_OK)
        return why;
    adrift(comm);
    return st;
}
