/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producers' side of the ring to the engine (impl/desc.h): tickets, credits, publishing,
 * waiting for completion.
 *
 * When the ring is full, one elected thread reads the engine's word over the bus and the others
 * wait on its copy in GPU memory, sleeping longer the further back they stand: thousands of threads
 * polling one word of host memory would leave the engine no bandwidth. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_RING_H
#define GINSHMEM_IMPL_DEV_RING_H

#include <ginshmem/impl/desc.h>
#include <ginshmem/impl/dev/wait_step.h>

/* The context's failure, or the communicator's. */
GIN_DEV int gin_i_ring_status(const struct gin_i_ring *r, const uint64_t *error)
{
    int st = gin_i_error_of(gin_i_ld_relaxed_sys(&r->host->error));
    return st == GIN_OK && error != NULL ? gin_i_error_of(gin_i_ld_relaxed_sys(error)) : st;
}

/* A ticket is taken and will not be published: the engine takes nothing any more, and whoever waits
 * learns it, as this context is dead. An error that is there already stays. */
GIN_DEV int gin_i_ring_abandon(const struct gin_i_ring *r, int status)
{
    if (gin_i_error_of(gin_i_ld_relaxed_sys(&r->host->error)) != GIN_OK)
        return status;
    gin_i_st_relaxed_sys((uint64_t *)&r->host->error,
                         (uint64_t)(uint32_t)status | (uint64_t)0xffffffffu << 32);
    return status;
}

/* Wait until slot `ticket` is free. The engine's or the communicator's failure ends it, and the
 * ring's timeout, which kills the context. */
GIN_DEV int gin_i_ring_credit(struct gin_i_ring *r, uint64_t ticket, const uint64_t *error)
{
    uint32_t ns = 64;
    uint64_t start = r->timeout_ns != 0 ? gin_i_clock_ns() : 0;
    for (;;) {
        uint64_t credit = gin_i_ld_relaxed_gpu(&r->credit);
        if (GIN_LIKELY(ticket - credit < r->depth))
            return GIN_OK;
        if (gin_i_atom32_exch_acquire_gpu(&r->lock, 1) == 0) {
            uint64_t consumed = gin_i_ld_relaxed_sys(&r->host->consumed);
            if (consumed > gin_i_ld_relaxed_gpu(&r->credit))
                gin_i_st_relaxed_gpu(&r->credit, consumed);
            gin_i_atom32_exch_release_gpu(&r->lock, 0);
            if (ticket - consumed < r->depth)
                return GIN_OK;
            credit = consumed;
            int st = gin_i_ring_status(r, error);
            if (GIN_UNLIKELY(st != GIN_OK))
                return st;
        }
        if (r->timeout_ns != 0 && gin_i_clock_ns() - start >= r->timeout_ns)
            return gin_i_ring_abandon(r, GIN_ETIMEDOUT);
        gin_i_sleep_ns(ticket - credit > 8 * (uint64_t)r->depth ? 4000 : ns);
        ns = ns < 1000 ? ns * 2 : ns;
    }
}

/*
 * Store a descriptor into the slot of a ticket whose credit is there. Words go in any order, each
 * with its phase, so no fence stands between them.
 */
GIN_DEV void gin_i_ring_store(struct gin_i_ring *r, const struct gin_i_op *o, uint64_t ticket)
{
    uint64_t phase = (uint64_t)gin_i_desc_phase(ticket, r->depth) << 63;
    struct gin_i_desc *slot = &r->slots[ticket & (r->depth - 1)];
#pragma unroll
    for (unsigned k = 0; k < GIN_I_DESC_WORDS; k += 2)
        gin_i_st128_relaxed_sys(&slot->w[k], gin_i_desc_word(o, k) | phase,
                                gin_i_desc_word(o, k + 1) | phase);
}

/*
 * Publish a descriptor; *ticket, if wanted, says which. `release`: the engine, or whom it signals,
 * must see what the caller's group wrote before; that goes on while ticket and credit are on their
 * way. A failure leaves the ticket unpublished, and the context is dead.
 */
GIN_DEV_CALL int gin_i_ring_post(struct gin_i_ring *r, const uint64_t *error,
                                 const struct gin_i_op *o, int release, uint64_t *ticket)
{
    if (GIN_UNLIKELY(r == NULL))
        return GIN_ENOTSUP;
    uint64_t credit = gin_i_ld_relaxed_gpu(&r->credit), t = gin_i_atom_add_gpu(&r->ticket, 1);
    if (release)
        gin_i_fence_sys();
    int st = GIN_LIKELY(t - credit < r->depth) ? GIN_OK : gin_i_ring_credit(r, t, error);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    gin_i_ring_store(r, o, t);
    if (ticket != NULL)
        *ticket = t;
    return GIN_OK;
}

/* Tickets taken so far: what is to be waited for. */
GIN_DEV uint64_t gin_i_ring_tickets(const struct gin_i_ring *r)
{
    return gin_i_ld_relaxed_gpu(&r->ticket);
}

/* What was seen to be settled, or done, is so for all threads, which acquire it with their own
 * fence. */
GIN_DEV void gin_i_ring_note(uint64_t *seen, uint64_t tickets)
{
    gin_i_fence_gpu();
    gin_i_red_max_relaxed_gpu(seen, tickets);
}

/* Nothing is on its way to a target. Cheap when that was seen before: one load of GPU memory. */
GIN_DEV int gin_i_ring_is_settled(struct gin_i_ring *r)
{
    struct gin_i_16 v = gin_i_ld128_relaxed_gpu(&r->ticket);
    if (GIN_LIKELY(v.a == v.b))
        return 1;
    uint64_t settled = gin_i_ld_acquire_sys(&r->host->settled);
    if (settled > v.b)
        gin_i_ring_note(&r->settled, settled);
    return settled >= v.a;
}

/*
 * Wait until the engine's count `word` (done or settled) has reached `tickets`, which it never does
 * for one that has failed or stands behind one.
 */
GIN_DEV_CALL int gin_i_ring_wait(const struct gin_i_ring *r, const uint64_t *word, uint64_t tickets,
                                 const uint64_t *error, uint64_t timeout_ns, int poll)
{
    struct gin_i_pause p = gin_i_pause_begin(error, &r->host->error, timeout_ns);
    int st = GIN_OK;
    while (gin_i_ld_acquire_sys(word) < tickets) {
        if (poll) {
            st = gin_i_ring_status(r, error);
            return st != GIN_OK ? st : (int)GIN_EAGAIN;
        }
        if (GIN_UNLIKELY(st != GIN_OK))
            return st;
        st = gin_i_pause_step(&p, 1);
    }
    return GIN_OK;
}

/* Sources of the first `tickets` are reusable, and what was got is here. Over the bus it is seen
 * once. */
GIN_DEV_CALL int gin_i_ring_done(struct gin_i_ring *r, uint64_t tickets, const uint64_t *error,
                                 uint64_t timeout_ns, int poll)
{
    uint64_t settled = gin_i_ld_relaxed_gpu(&r->settled), done = gin_i_ld_relaxed_gpu(&r->done);
    if (tickets <= settled || tickets <= done) {
        if (tickets != 0)
            gin_i_fence_gpu(); /* another thread may have seen it */
        return GIN_OK;
    }
    int st = gin_i_ring_wait(r, &r->host->done, tickets, error, timeout_ns, poll);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_ring_note(&r->done, tickets);
    return st;
}

/* The same of what was posted so far. */
GIN_DEV int gin_i_ring_flush(struct gin_i_ring *r, const uint64_t *error, uint64_t timeout_ns,
                             int poll)
{
    return gin_i_ring_done(r, gin_i_ring_tickets(r), error, timeout_ns, poll);
}

/*
 * Everything posted so far is complete at its target. Where local completion alone does not make
 * the engine look, it is asked to see to it. timeout_ns 0: the ring's.
 */
GIN_DEV_CALL int gin_i_ring_quiet(struct gin_i_ring *r, const uint64_t *error, uint64_t timeout_ns)
{
    struct gin_i_16 v = gin_i_ld128_relaxed_gpu(&r->ticket);
    if (v.a == v.b)
        return GIN_OK;
    if (r->asks) {
        struct gin_i_op o = {};
        if (gin_i_ring_is_settled(r))
            return GIN_OK;
        o.op = GIN_I_DESC_QUIET;
        int st = gin_i_ring_post(r, error, &o, 0, &v.a);
        if (st != GIN_OK)
            return st;
        v.a++;
    }
    int st = gin_i_ring_wait(r, &r->host->settled, v.a, error,
                             timeout_ns != 0 ? timeout_ns : r->timeout_ns, 0);
    if (GIN_LIKELY(st == GIN_OK))
        gin_i_ring_note(&r->settled, v.a);
    return st;
}

/* The same, once: GIN_EAGAIN, unless it is so or never will be. */
GIN_DEV_CALL int gin_i_ring_poll_quiet(struct gin_i_ring *r, const uint64_t *error)
{
    if (gin_i_ring_is_settled(r))
        return GIN_OK;
    int st = gin_i_ring_status(r, error);
    return st != GIN_OK ? st : (int)GIN_EAGAIN;
}

/* In reply_busy, of a reply whose taker went: for which ticket it may yet be written. */
#define GIN_I_REPLY_LEFT 0x80000000u

GIN_DEV uint32_t gin_i_reply_left(uint64_t seq)
{
    return GIN_I_REPLY_LEFT | (uint32_t)seq;
}

/* `was`: what reply_busy held when I put 1 there. One that was left is free once it was written. */
GIN_DEV_CALL int gin_i_ring_is_mine(struct gin_i_ring *r, uint32_t i, uint32_t was)
{
    if (was == 0)
        return 1;
    if ((was & GIN_I_REPLY_LEFT) == 0)
        return 0;
    if (gin_i_reply_left(gin_i_ld128_whole_sys(&r->replies[i]).a) == was)
        return 1;
    gin_i_st32_relaxed_sys(&r->reply_busy[i], was);
    return 0;
}

/* Take a reply, any that is free, from i on. */
GIN_DEV int gin_i_ring_reply(struct gin_i_ring *r, struct gin_i_pause *p, uint32_t *i)
{
    int st = GIN_OK;
    while (!gin_i_ring_is_mine(r, *i, gin_i_atom32_exch_sys(&r->reply_busy[*i], 1))) {
        if (st != GIN_OK)
            return st;
        st = gin_i_pause_step(p, 1);
        *i = (*i + 1) & (r->n_replies - 1);
    }
    return GIN_OK;
}

/* A ticket that its taker has no use for: a NOP. */
GIN_DEV int gin_i_ring_give_up(struct gin_i_ring *r, const uint64_t *error, uint64_t ticket)
{
    struct gin_i_op o = {};
    int st = gin_i_ring_credit(r, ticket, error);
    if (st == GIN_OK)
        gin_i_ring_store(r, &o, ticket);
    return st;
}

/*
 * A fetching operation: takes a reply and a ticket at once, posts the descriptor, waits for the old
 * value. A reply whose wait failed is left, as the engine may still write it. The owner before
 * had the value in hand when it gave the reply back, and the engine's count comes with it in one
 * load, so that nothing here need be ordered.
 */
GIN_DEV_CALL int gin_i_ring_fetch(struct gin_i_ring *r, const uint64_t *error, struct gin_i_op *o,
                                  uint64_t timeout_ns, uint64_t *old)
{
    uint32_t i = (threadIdx.x + blockIdx.x * 7u) & (r->n_replies - 1);
    uint64_t credit = gin_i_ld_relaxed_gpu(&r->credit);
    uint32_t taken = gin_i_atom32_exch_sys(&r->reply_busy[i], 1);
    uint64_t t = gin_i_atom_add_gpu(&r->ticket, 1);
    struct gin_i_pause p = gin_i_pause_begin(error, &r->host->error, timeout_ns);
    int st = GIN_OK;
    if (GIN_UNLIKELY(taken != 0) && !gin_i_ring_is_mine(r, i, taken)) {
        st = gin_i_ring_give_up(r, error, t);
        if (st == GIN_OK)
            st = gin_i_ring_reply(r, &p, &i);
        if (st != GIN_OK)
            return st;
        credit = gin_i_ld_relaxed_gpu(&r->credit);
        t = gin_i_atom_add_gpu(&r->ticket, 1);
    }
    if (GIN_UNLIKELY(t - credit >= r->depth))
        st = gin_i_ring_credit(r, t, error);
    if (GIN_UNLIKELY(st != GIN_OK))
        return st;
    o->sig_off = i;
    gin_i_ring_store(r, o, t);
    struct gin_i_16 reply = gin_i_ld128_whole_sys(&r->replies[i]);
    while (reply.a != t + 1) {
        if (st != GIN_OK) {
            gin_i_st32_relaxed_sys(&r->reply_busy[i], gin_i_reply_left(t + 1));
            return st;
        }
        st = gin_i_pause_step(&p, 1);
        reply = gin_i_ld128_whole_sys(&r->replies[i]);
    }
    *old = reply.b;
    gin_i_st32_relaxed_sys(&r->reply_busy[i], 0);
    return GIN_OK;
}

#endif
