/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, waits and atomics on streams: one kernel of one thread each. */
#include "stream.h"

#include <inttypes.h>

int gin_signal_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                         gin_action_t remote, gin_stream_t stream)
{
    struct gi_on_stream o;
    int world;
    int st =
        gi_stream_enter(&o, "gin_signal_on_stream", GI_STREAM_SIGNAL, dev, context, false, stream);
    if (st == GIN_OK && remote.kind == GIN_ACTION_NONE)
        st = gi_fail(GIN_EINVAL, "%s: gin_no_action() signals nothing", o.call);
    if (st == GIN_OK)
        st = gi_stream_peer(&o, team, peer, &world);
    if (st == GIN_OK)
        st = gi_stream_action(&o, world, remote);
    return st == GIN_OK ? gi_stream_run(&o, 1) : st;
}

/* ---- waits ---- */

static int note_wait(struct gi_on_stream *o, uint32_t how, uint64_t value,
                     const gin_wait_opt_t *opt)
{
    if (how != GI_STREAM_AT_LEAST && how > GIN_CMP_LE)
        return gi_fail(GIN_EINVAL, "%s: comparison %" PRIu32, o->call, how);
    if (opt != NULL && opt->bits > 64)
        return gi_fail(GIN_EINVAL, "%s: a comparison of %" PRIu32 " bits", o->call, opt->bits);
    if (opt != NULL && opt->poll)
        return gi_fail(GIN_EINVAL, "%s: a stream waits, it cannot look once (poll)", o->call);
    if (opt != NULL)
        o->job.opt = *opt;
    o->job.how = how;
    o->job.value = value;
    return GIN_OK;
}

static int check_id(struct gi_on_stream *o, uint32_t id)
{
    o->job.id = id;
    if (id < o->d->reqs.signals)
        return GIN_OK;
    return gi_fail(GIN_ERANGE,
                   "%s: signal %" PRIu32 " is out of range, there are %" PRIu32
                   "; ask gin_devcomm_create() for more",
                   o->call, id, o->d->reqs.signals);
}

static int check_word(struct gi_on_stream *o, gin_at_t at)
{
    struct gi_stream_spot p;
    int st = gi_stream_near(o, at, 8, &p);
    if (st == GIN_OK)
        st = gi_stream_aligned(o, at, &p, 8);
    o->job.dst = at;
    return st;
}

/* Enter for a slot signal, or, where there is one, a word. */
static int enter(struct gi_on_stream *o, const char *call, enum gi_stream_kernel kernel,
                 const gin_devcomm_t *dev, uint32_t context, uint32_t id, const gin_at_t *word,
                 gin_stream_t stream)
{
    int st = gi_stream_enter(o, call, kernel, dev, context, false, stream);
    if (st != GIN_OK)
        return st;
    return word != NULL ? check_word(o, *word) : check_id(o, id);
}

static int wait_for(const char *call, const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                    const gin_at_t *word, uint32_t how, uint64_t value, const gin_wait_opt_t *opt,
                    gin_stream_t stream)
{
    struct gi_on_stream o;
    int st = enter(&o, call, word != NULL ? GI_STREAM_WAIT_AT : GI_STREAM_WAIT, dev, context, id,
                   word, stream);
    if (st == GIN_OK)
        st = note_wait(&o, how, value, opt);
    return st == GIN_OK ? gi_stream_run(&o, 1) : st;
}

static int consume(const char *call, const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                   const gin_at_t *word, uint64_t n, gin_stream_t stream)
{
    struct gi_on_stream o;
    int st = enter(&o, call, GI_STREAM_CONSUME, dev, context, id, word, stream);
    o.job.how = word != NULL;
    o.job.value = n;
    return st == GIN_OK ? gi_stream_run(&o, 1) : st;
}

int gin_wait_signal_on_stream(const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                              uint64_t least, gin_stream_t stream)
{
    return wait_for("gin_wait_signal_on_stream", dev, context, id, NULL, GI_STREAM_AT_LEAST, least,
                    NULL, stream);
}

int gin_wait_signal_until_on_stream(const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                                    gin_cmp_t cmp, uint64_t operand, const gin_wait_opt_t *opt,
                                    gin_stream_t stream)
{
    return wait_for("gin_wait_signal_until_on_stream", dev, context, id, NULL,
                    (uint32_t)cmp & 0x7fffffffu, operand, opt, stream);
}

int gin_wait_signal_at_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_at_t at,
                                 uint64_t least, const gin_wait_opt_t *opt, gin_stream_t stream)
{
    return wait_for("gin_wait_signal_at_on_stream", dev, context, 0, &at, GI_STREAM_AT_LEAST, least,
                    opt, stream);
}

int gin_wait_signal_until_at_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_at_t at,
                                       gin_cmp_t cmp, uint64_t operand, const gin_wait_opt_t *opt,
                                       gin_stream_t stream)
{
    return wait_for("gin_wait_signal_until_at_on_stream", dev, context, 0, &at,
                    (uint32_t)cmp & 0x7fffffffu, operand, opt, stream);
}

int gin_consume_signal_on_stream(const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                                 uint64_t n, gin_stream_t stream)
{
    return consume("gin_consume_signal_on_stream", dev, context, id, NULL, n, stream);
}

int gin_consume_signal_at_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_at_t at,
                                    uint64_t n, gin_stream_t stream)
{
    return consume("gin_consume_signal_at_on_stream", dev, context, 0, &at, n, stream);
}

/* ---- atomics ---- */

_Static_assert((int)GIN_AMO_FETCH == (int)GIN_I_AMO_FETCH &&
                   (int)GIN_AMO_XOR == (int)GIN_I_AMO_XOR && (int)GIN_AMO_CAS == (int)GIN_I_AMO_CAS,
               "one numbering of operations on words");

static int check_old(const struct gi_on_stream *o, gin_amo_t op, const void *old, uint32_t bytes)
{
    bool gpu;
    if ((unsigned)op > GIN_AMO_CAS)
        return gi_fail(GIN_EINVAL, "%s: operation %u", o->call, (unsigned)op);
    if ((op >= GIN_AMO_FETCH) != (old != NULL))
        return gi_fail(GIN_EINVAL, "%s: %s", o->call,
                       old == NULL ? "a fetching operation needs a place for the word (old is NULL)"
                                   : "this operation fetches nothing; pass NULL as old");
    if (old == NULL)
        return GIN_OK;
    if (((uintptr_t)old & (bytes - 1)) != 0)
        return gi_fail(GIN_EINVAL, "%s: old, %p, is not %" PRIu32 "-byte aligned", o->call, old,
                       bytes);
    return gi_stream_memory(o, old, bytes, &gpu);
}

static int amo(const char *call, const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
               int peer, gin_at_t at, gin_amo_t op, uint32_t bytes, uint64_t value,
               uint64_t expected, void *old, gin_stream_t stream)
{
    struct gi_on_stream o;
    struct gi_stream_spot p;
    int world;
    int st = gi_stream_enter(&o, call, GI_STREAM_AMO, dev, context, false, stream);
    if (st == GIN_OK)
        st = check_old(&o, op, old, bytes);
    if (st == GIN_OK)
        st = gi_stream_peer(&o, team, peer, &world);
    if (st == GIN_OK)
        st = gi_stream_far(&o, world, at, bytes, op != GIN_AMO_FETCH, &p);
    if (st == GIN_OK)
        st = gi_stream_aligned(&o, at, &p, bytes);
    if (st != GIN_OK)
        return st;
    o.job.dst = at;
    o.job.how = (uint32_t)op;
    o.job.bytes = bytes;
    o.job.value = value;
    o.job.expected = expected;
    o.job.old = old;
    return gi_stream_run(&o, 1);
}

int gin_amo_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                      gin_at_t at, gin_amo_t op, uint64_t value, uint64_t expected, uint64_t *old,
                      gin_stream_t stream)
{
    return amo("gin_amo_on_stream", dev, context, team, peer, at, op, 8, value, expected, old,
               stream);
}

int gin_amo32_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                        gin_at_t at, gin_amo_t op, uint32_t value, uint32_t expected, uint32_t *old,
                        gin_stream_t stream)
{
    return amo("gin_amo32_on_stream", dev, context, team, peer, at, op, 4, value, expected, old,
               stream);
}
