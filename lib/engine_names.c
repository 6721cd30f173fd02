/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What descriptors name: windows by id and generation, with their bounds, and this process's way to
 * the memory behind them. Nothing that a kernel wrote is believed.
 */
#include "engine_int.h"

#include <inttypes.h>
#include "net_ops.h"
#include "window_impl.h"

#define ACTIONS (GIN_I_DESC_SLOT | GIN_I_DESC_ADD_AT | GIN_I_DESC_SET_AT)

const struct gin_i_window *gi_engine_window(const gin_comm_t *comm, uint32_t name)
{
    const struct gin_i_window *w = gi_window_table_named(&comm->windows->table, name);
    if (w == NULL)
        gi_fail(GIN_ESTATE, "window %" PRIu32 " is not live in this communicator",
                name & (GI_WINDOW_IDS - 1));
    return w;
}

int gi_engine_inside(gin_comm_t *comm, const struct gin_i_window *w, uint64_t off, uint64_t bytes,
                     bool update)
{
    uint64_t size = gi_window_size(comm, w);
    if (off > size || bytes > size - off)
        return gi_fail(GIN_ERANGE,
                       "[%" PRIu64 ", +%" PRIu64 ") is outside a window of %" PRIu64 " bytes", off,
                       bytes, size);
    return update && (w->flags & GIN_WIN_READ_ONLY)
               ? gi_fail(GIN_ENOTSUP, "the window is read-only for peers")
               : GIN_OK;
}

struct gi_core_action gi_engine_action(const struct gin_i_op *o)
{
    struct gi_core_action a = {.strong = (o->flags & GIN_I_DESC_STRONG) != 0, .value = o->value};
    if (o->flags & GIN_I_DESC_SLOT) {
        a.kind = GI_CORE_SLOT_ADD;
        a.id = (uint32_t)o->sig_off;
    } else if (o->flags & ACTIONS) {
        a.kind = o->flags & GIN_I_DESC_SET_AT ? GI_CORE_WORD_SET : GI_CORE_WORD_ADD;
        a.id = o->sig_win;
        a.off = o->sig_off;
    }
    return a;
}

/* [off, off + bytes) of a window at a rank, with the window. */
int gi_find_window(const struct gi_job *j, uint32_t name, int world, uint64_t off, uint64_t bytes,
                   bool update, const struct gin_i_window **w)
{
    gin_comm_t *comm = j->e->comm;
    *w = gi_engine_window(comm, name);
    return *w == NULL ? GIN_ESTATE
                      : gi_engine_inside(comm, *w, off, bytes, update && world != comm->rank);
}

/* By the network: whether it may be. */
static int find_far(const struct gi_job *j, const struct gin_i_window *w, int world,
                    struct gi_spot *s)
{
    static const char call[] = "a kernel's operation";
    if (j->r->far == NULL) {
        int st = gi_net_allowed(j->d, world, call);
        return st != GIN_OK ? st : gi_fail(GIN_ENOTSUP, "%s: no network", call);
    }
    s->far = true;
    int st = gi_net_allowed(j->d, world, call);
    return st == GIN_OK && w != NULL && gi_window_reach_net(j->e->comm, w, world) != GIN_PATH_NET
               ? gin_last_status()
               : st;
}

/* This process's way to it. */
int gi_find_spot(const struct gi_job *j, const struct gin_i_window *w, int world, uint64_t off,
                 struct gi_spot *s)
{
    void *addr;
    *s = (struct gi_spot){.gpu = w->kind == GIN_KIND_CUDA};
    if (world != j->e->comm->rank && j->d->lsa_of != NULL) /* it leaves load and store out */
        return find_far(j, w, world, s);
    switch (gi_window_reach(j->e->comm, w, world, off, &addr, &s->pid)) {
    case GIN_PATH_SELF:
    case GIN_PATH_LSA: s->pid = 0; break;
    case GIN_PATH_CMA: break;
    case GIN_PATH_NET: return find_far(j, w, world, s);
    default: return gin_last_status();
    }
    s->addr = (uint64_t)(uintptr_t)addr;
    return GIN_OK;
}

int gi_find_bytes(const struct gi_job *j, uint32_t name, int world, uint64_t off, bool update,
                  struct gi_spot *s)
{
    const struct gin_i_window *w;
    int st = gi_find_window(j, name, world, off, j->op->size, update, &w);
    return st == GIN_OK ? gi_find_spot(j, w, world, off, s) : st;
}

int gi_find_mine(const struct gi_job *j, uint32_t name, uint64_t off, struct gi_spot *s)
{
    if (!(j->op->flags & GIN_I_DESC_LOCAL))
        return gi_find_bytes(j, name, j->e->comm->rank, off, false, s);
    *s = (struct gi_spot){.addr = off, .gpu = true};
    return GIN_OK;
}

static int find_slot(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    gin_comm_t *comm = j->e->comm;
    int lsa = gi_lsa_on(j->d, (int)o->peer);
    if (o->sig_off >= j->r->n_signals)
        return gi_fail(GIN_ERANGE, "signal %" PRIu64 " of rank %" PRIu32 " is out of range",
                       o->sig_off, o->peer);
    if (lsa < 0) {
        struct gi_spot s;
        q->far = GI_FAR_ACTION;
        return find_far(j, NULL, (int)o->peer, &s);
    }
    struct gin_i_cells *cells = (void *)((char *)gi_control(comm, lsa) + GI_CONTROL + j->d->off);
    q->word = &cells[(uint64_t)j->r->context * j->r->n_signals + o->sig_off].cpu;
    return GIN_OK;
}

bool gi_is_applied_near(const struct gi_job *j, const struct gin_i_window *w, int world)
{
    return w->kind == GIN_KIND_CUDA && gi_lsa_on(j->d, world) >= 0;
}

/* The word of an action. */
int gi_find_word(const struct gi_job *j, struct gi_request *q)
{
    const struct gin_i_op *o = j->op;
    const struct gin_i_window *w;
    struct gi_spot s;
    if (o->flags & GIN_I_DESC_SLOT)
        return find_slot(j, q);
    if (!(o->flags & ACTIONS))
        return GIN_OK;
    int st = gi_find_window(j, o->sig_win, (int)o->peer, o->sig_off, 8, true, &w);
    if (st == GIN_OK && gi_is_applied_near(j, w, (int)o->peer))
        return gi_word_find(j, q, w, o->sig_off, 8,
                            o->flags & GIN_I_DESC_SET_AT ? GIN_I_AMO_SET : GIN_I_AMO_ADD);
    if (st == GIN_OK)
        st = gi_find_spot(j, w, (int)o->peer, o->sig_off, &s);
    if (st != GIN_OK)
        return st;
    if (s.far) {
        q->far = GI_FAR_ACTION;
        return gi_window_aligned_at(j->e->comm, w, (int)o->peer, o->sig_off, 8)
                   ? GIN_OK
                   : gi_fail(GIN_EINVAL, "the signal word is not 8-byte aligned");
    }
    if ((s.addr & 7) != 0)
        return gi_fail(GIN_EINVAL, "the signal word is not 8-byte aligned");
    if (s.pid != 0)
        return gi_fail(GIN_ENOTSUP, "the engine cannot add to a word of another process' user "
                                    "memory");
    q->word = (uint64_t *)(uintptr_t)s.addr;
    return GIN_OK;
}
