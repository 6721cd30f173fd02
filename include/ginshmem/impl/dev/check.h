/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checked build of kernels, GIN_KERNEL_CHECK 1: a call that its caller got wrong ends the
 * kernel in a trap, after one line that says which call, where, and with which values. Every call
 * becomes a macro that runs it, looks at the status, and explains a refusal from the arguments; so
 * the bodies know nothing of this, and without it not an instruction is different. The line comes
 * from the group's leader. Included behind the bodies, by kernels' side only. Not API.
 */
#ifndef GINSHMEM_IMPL_DEV_CHECK_H
#define GINSHMEM_IMPL_DEV_CHECK_H

#ifndef __CUDACC_RTC__
#include <stdio.h>
#endif
#include <ginshmem/impl/dev/barrier.h>
#include <ginshmem/impl/dev/lsa.h>

/* What a call's uint32_t argument is, and how wide its word is. */
enum gin_i_says {
    GIN_I_SAYS_SIGNAL = 1,
    GIN_I_SAYS_COUNTER = 2,
    GIN_I_SAYS_BARRIER = 4,
    GIN_I_SAYS_BYTES = 8, /* its last size_t is the length of what its places hold */
    GIN_I_SAYS_WORD32 = 16,
    GIN_I_SAYS_WORD64 = 32,
    GIN_I_SAYS_ANY_CONTEXT = 64, /* GIN_ALL_CONTEXTS will do */
    GIN_I_SAYS_POINTER = 128     /* "no path" is an answer, not a fault */
};

/* A call and what it was given. */
struct gin_i_said {
    const char *file, *call;
    int line;
    uint32_t what;
    int have_grp, have_team, n_at, have_action;
    gin_group_t grp;
    gin_team_t team;
    int peer;
    gin_at_t at[2]; /* the peer's comes first */
    gin_action_t action;
    uint64_t number;
    uint32_t id;
    int n_ids;
    gin_barrier_t which;
    gin_local_t local;
};

GIN_DEV void gin_i_say(struct gin_i_said *s, gin_group_t v)
{
    s->have_grp = 1;
    s->grp = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, gin_team_t v)
{
    s->have_team = 1;
    s->team = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, int v)
{
    s->peer = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, gin_at_t v)
{
    s->at[s->n_at++ & 1] = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, gin_action_t v)
{
    s->have_action = 1;
    s->action = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, unsigned long v)
{
    s->number = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, unsigned long long v)
{
    s->number = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, unsigned v)
{
    if (s->n_ids++ == 0) /* a barrier's fence comes behind its index */
        s->id = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, gin_barrier_t v)
{
    s->which = v;
}
GIN_DEV void gin_i_say(struct gin_i_said *s, const gin_op_opt_t *v)
{
    if (v != NULL)
        s->local = v->local;
}
template <class T> GIN_DEV void gin_i_say(struct gin_i_said *, T)
{
}

/* ---- the line ---- */

GIN_DEV const char *gin_i_name_of(int status)
{
    switch (status) {
    case GIN_EINVAL: return "GIN_EINVAL";
    case GIN_ERANGE: return "GIN_ERANGE";
    case GIN_ENOTSUP: return "GIN_ENOTSUP";
    case GIN_ESTATE: return "GIN_ESTATE";
    default: return "GIN_E?";
    }
}

#define GIN_I_TELL(text, a, b)                                                               \
    printf("ginshmem: %s:%d: %s: " text " (%s); rank %d, block (%u, %u, %u), thread (%u, "   \
           "%u, %u)\n",                                                                      \
           s->file, s->line, s->call, (long long)(a), (long long)(b), gin_i_name_of(status), \
           (int)rank, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z)

/* 1: it is this place that is wrong, and was told. */
GIN_DEV int gin_i_tell_place(const gin_t *g, const struct gin_i_said *s, gin_at_t at,
                             uint64_t bytes, int status)
{
    struct gin_i_window w;
    int32_t rank = g->rank;
    if (at.win.w == GIN_I_WINDOW_LOCAL) {
        if (at.off == 0 && bytes != 0)
            return GIN_I_TELL("local memory at NULL, %lld bytes%.0lld", bytes, 0), 1;
        return 0;
    }
    if (!gin_i_window_read(g->windows, at.win.w, 0, &w))
        return GIN_I_TELL("window %#llx is not live, offset %lld", at.win.w, at.off), 1;
    if (!gin_i_dev_inside(w.size, at.off, bytes))
        return printf("ginshmem: %s:%d: %s: bytes %llu .. + %llu lie outside their window of %llu "
                      "bytes (%s); rank %d, block (%u, %u, %u), thread (%u, %u, %u)\n",
                      s->file, s->line, s->call, (unsigned long long)at.off,
                      (unsigned long long)bytes, (unsigned long long)w.size, gin_i_name_of(status),
                      (int)rank, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
                      threadIdx.z),
               1;
    return 0;
}

GIN_DEV int gin_i_tell_word(const gin_t *g, const struct gin_i_said *s, gin_at_t at, uint32_t width,
                            int status)
{
    int32_t rank = g->rank;
    if (gin_i_tell_place(g, s, at, width, status))
        return 1;
    if ((at.off & (width - 1)) == 0)
        return 0;
    return GIN_I_TELL("the word at offset %lld is not aligned to %lld bytes", at.off, width), 1;
}

GIN_DEV int gin_i_tell_caller(const gin_t *g, const struct gin_i_said *s, int status)
{
    struct gin_i_group q;
    int32_t rank = g->rank;
    if (g->flags & GIN_I_DC_DEAD)
        return GIN_I_TELL("the context is bound to nothing: status %lld of gin_open()%.0lld",
                          g->status, 0),
               1;
    if (s->have_grp && !gin_i_group_make(s->grp, &q))
        return GIN_I_TELL("no such group here, or the thread is not in it: kind %lld, argument "
                          "%#llx",
                          s->grp.kind, s->grp.arg),
               1;
    if ((g->flags & GIN_I_DC_ALL) && !(s->what & GIN_I_SAYS_ANY_CONTEXT))
        return GIN_I_TELL("needs one context, not GIN_ALL_CONTEXTS%.0lld%.0lld", 0, 0), 1;
    if (s->have_team && gin_i_dev_world(g, s->team, s->peer) < 0)
        return GIN_I_TELL("peer %lld is not in its team of %lld ranks", s->peer, s->team.size), 1;
    return 0;
}

GIN_DEV int gin_i_tell_action(const gin_t *g, const struct gin_i_said *s, int status)
{
    const gin_action_t *a = &s->action;
    int32_t rank = g->rank;
    if (!s->have_action)
        return 0;
    if (a->kind > GIN_ACTION_SET_AT)
        return GIN_I_TELL("action of kind %lld has no meaning%.0lld", a->kind, 0), 1;
    if (a->strong && a->kind != GIN_ACTION_NONE && !(g->flags & GIN_I_DC_STRONG))
        return GIN_I_TELL("strong signals were not asked for (reqs.strong)%.0lld%.0lld", 0, 0), 1;
    if (a->kind == GIN_ACTION_ADD)
        return a->id < g->n_signals ? 0
                                    : (GIN_I_TELL("signal %lld of %lld", a->id, g->n_signals), 1);
    if (a->kind == GIN_ACTION_NONE)
        return 0;
    if (!(g->flags & GIN_I_DC_VA))
        return GIN_I_TELL("signals on words were not asked for (reqs.va)%.0lld%.0lld", 0, 0), 1;
    return gin_i_tell_word(g, s, a->at, 8, status);
}

GIN_DEV int gin_i_tell_ids(const gin_t *g, const struct gin_i_said *s, int status)
{
    int32_t rank = g->rank;
    uint32_t counters = gin_i_nc_u32(&g->ctx->n_counters);
    if ((s->what & GIN_I_SAYS_SIGNAL) && s->id >= g->n_signals)
        return GIN_I_TELL("signal %lld of %lld", s->id, g->n_signals), 1;
    if ((s->what & GIN_I_SAYS_COUNTER) && s->id >= counters)
        return GIN_I_TELL("counter %lld of %lld", s->id, counters), 1;
    if (s->local.kind == 1 && s->local.id >= counters)
        return GIN_I_TELL("counter %lld of %lld", s->local.id, counters), 1;
    if (s->what & GIN_I_SAYS_BARRIER)
        return GIN_I_TELL("barrier of kind %lld, index %lld: not asked for, no member, in use, or "
                          "arguments without meaning",
                          s->which.kind, s->id),
               1;
    return 0;
}

GIN_DEV_CALL void gin_i_explain(const gin_t *g, const struct gin_i_said *s, int status)
{
    uint32_t width = s->what & GIN_I_SAYS_WORD64 ? 8 : s->what & GIN_I_SAYS_WORD32 ? 4 : 0;
    uint64_t bytes = s->what & GIN_I_SAYS_BYTES ? s->number : 0;
    int32_t rank = g->rank;
    int told = gin_i_tell_caller(g, s, status) || gin_i_tell_action(g, s, status) ||
               gin_i_tell_ids(g, s, status);
    for (int i = 0; i < s->n_at && !told; i++)
        told = width != 0 ? gin_i_tell_word(g, s, s->at[i], width, status)
                          : gin_i_tell_place(g, s, s->at[i], bytes, status);
    if (!told)
        GIN_I_TELL("an argument without meaning, no path to the peer, a window that is read-only "
                   "there, or no engine (peer %lld, number %lld)",
                   s->peer, s->number);
    gin_i_trap();
}

/* ---- around a call ---- */

GIN_DEV int gin_i_is_fault(int status, uint32_t what)
{
    return status == GIN_EINVAL || status == GIN_ERANGE || status == GIN_ESTATE ||
           (status == GIN_ENOTSUP && !(what & GIN_I_SAYS_POINTER));
}

/* One line from a group: its leader's. One from each warp where the caller is in no group. */
GIN_DEV void gin_i_judge(const gin_t *g, const struct gin_i_said *s, int status)
{
    struct gin_i_group q;
    if (GIN_LIKELY(!gin_i_is_fault(status, s->what)))
        return;
    int in = s->have_grp && gin_i_group_make(s->grp, &q);
    if (in ? q.lane == 0 : gin_i_is_first_active())
        gin_i_explain(g, s, status);
}

GIN_DEV struct gin_i_said gin_i_saying(const char *file, int line, const char *call, uint32_t what)
{
    struct gin_i_said s = {};
    s.file = file;
    s.line = line;
    s.call = call;
    s.what = what;
    return s;
}

template <class T> struct gin_i_same { /* keeps an argument's type from being deduced */
    typedef T type;
};

/* Calls that return a status... */
template <class... P>
GIN_DEV int gin_i_checked(struct gin_i_said s, int (*call)(const gin_t *, P...), const gin_t *g,
                          typename gin_i_same<P>::type... args)
{
    int each[] = {0, (gin_i_say(&s, args), 0)...};
    (void)each;
    int status = call(g, args...);
    gin_i_judge(g, &s, status);
    return status;
}

/* ... and those that return a value, and leave it in the binding. */
template <class R, class... P>
GIN_DEV R gin_i_checked_value(struct gin_i_said s, R (*call)(const gin_t *, P...), const gin_t *g,
                              typename gin_i_same<P>::type... args)
{
    int each[] = {0, (gin_i_say(&s, args), 0)...};
    (void)each;
    R value = call(g, args...);
    gin_i_judge(g, &s, g->flags & GIN_I_DC_DEAD ? (int)GIN_ESTATE : g->status);
    return value;
}

GIN_DEV int gin_i_checked_open(struct gin_i_said s, const gin_devcomm_t *dev, uint32_t index,
                               gin_t *g)
{
    int status = gin_open(dev, index, g), rank = dev->rank;
    if (GIN_LIKELY(!gin_i_is_fault(status, 0)))
        return status;
    const struct gin_i_said *said = &s;
    printf("ginshmem: %s:%d: %s: context %u of %u, device communicator with magic %#x for device "
           "%u (%s); rank %d, block (%u, %u, %u), thread (%u, %u, %u)\n",
           said->file, said->line, said->call, index, dev->n_contexts, dev->magic, dev->device,
           gin_i_name_of(status), rank, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
           threadIdx.y, threadIdx.z);
    gin_i_trap();
    return status;
}

/* clang-format off */
#define GIN_I_SAYING(call, what)      gin_i_saying(__FILE__, __LINE__, #call, what)
#define GIN_I_CHECK(call, what, ...)  gin_i_checked(GIN_I_SAYING(call, what), (call), __VA_ARGS__)
#define GIN_I_VALUE(call, what, ...)  gin_i_checked_value(GIN_I_SAYING(call, what), (call), __VA_ARGS__)

#define gin_open(...)          gin_i_checked_open(GIN_I_SAYING(gin_open, 0), __VA_ARGS__)

#define gin_put(...)           GIN_I_CHECK(gin_put, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_put_x(...)         GIN_I_CHECK(gin_put_x, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_put_value(...)     GIN_I_CHECK(gin_put_value, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_put_value_x(...)   GIN_I_CHECK(gin_put_value_x, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_get(...)           GIN_I_CHECK(gin_get, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_get_x(...)         GIN_I_CHECK(gin_get_x, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_signal(...)        GIN_I_CHECK(gin_signal, 0, __VA_ARGS__)
#define gin_signal_x(...)      GIN_I_CHECK(gin_signal_x, 0, __VA_ARGS__)

#define gin_flush(...)         GIN_I_CHECK(gin_flush, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)
#define gin_flush_x(...)       GIN_I_CHECK(gin_flush_x, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)
#define gin_flush_peer(...)    GIN_I_CHECK(gin_flush_peer, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)
#define gin_flush_async(...)   GIN_I_CHECK(gin_flush_async, 0, __VA_ARGS__)
#define gin_test(...)          GIN_I_CHECK(gin_test, 0, __VA_ARGS__)
#define gin_wait(...)          GIN_I_CHECK(gin_wait, 0, __VA_ARGS__)
#define gin_wait_x(...)        GIN_I_CHECK(gin_wait_x, 0, __VA_ARGS__)
#define gin_fence(...)         GIN_I_CHECK(gin_fence, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)
#define gin_fence_all(...)     GIN_I_CHECK(gin_fence_all, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)
#define gin_quiet(...)         GIN_I_CHECK(gin_quiet, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)
#define gin_quiet_x(...)       GIN_I_CHECK(gin_quiet_x, GIN_I_SAYS_ANY_CONTEXT, __VA_ARGS__)

#define gin_local_ptr(...)     GIN_I_VALUE(gin_local_ptr, GIN_I_SAYS_POINTER, __VA_ARGS__)
#define gin_peer_ptr(...)      GIN_I_VALUE(gin_peer_ptr, GIN_I_SAYS_POINTER, __VA_ARGS__)
#define gin_lsa_ptr(...)       GIN_I_VALUE(gin_lsa_ptr, GIN_I_SAYS_POINTER, __VA_ARGS__)

#define gin_read_signal(...)            GIN_I_VALUE(gin_read_signal, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_signal_shadow(...)          GIN_I_VALUE(gin_signal_shadow, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_read_signal_at(...)         GIN_I_VALUE(gin_read_signal_at, GIN_I_SAYS_WORD64, __VA_ARGS__)
#define gin_read_counter(...)           GIN_I_VALUE(gin_read_counter, GIN_I_SAYS_COUNTER, __VA_ARGS__)
#define gin_wait_signal(...)            GIN_I_CHECK(gin_wait_signal, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_wait_signal_x(...)          GIN_I_CHECK(gin_wait_signal_x, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_test_signal(...)            GIN_I_CHECK(gin_test_signal, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_wait_signal_until(...)      GIN_I_CHECK(gin_wait_signal_until, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_consume_signal(...)         GIN_I_CHECK(gin_consume_signal, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_reset_signal(...)           GIN_I_CHECK(gin_reset_signal, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_wait_signal_all(...)        GIN_I_CHECK(gin_wait_signal_all, 0, __VA_ARGS__)
#define gin_wait_signal_any(...)        GIN_I_CHECK(gin_wait_signal_any, 0, __VA_ARGS__)
#define gin_wait_signal_some(...)       GIN_I_CHECK(gin_wait_signal_some, 0, __VA_ARGS__)
#define gin_increase_shadow(...)        GIN_I_CHECK(gin_increase_shadow, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_wait_signal_meet_shadow(...) \
    GIN_I_CHECK(gin_wait_signal_meet_shadow, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_wait_signal_follow_shadow(...) \
    GIN_I_CHECK(gin_wait_signal_follow_shadow, GIN_I_SAYS_SIGNAL, __VA_ARGS__)
#define gin_wait_signal_at(...)         GIN_I_CHECK(gin_wait_signal_at, GIN_I_SAYS_WORD64, __VA_ARGS__)
#define gin_wait_signal_until_at(...) \
    GIN_I_CHECK(gin_wait_signal_until_at, GIN_I_SAYS_WORD64, __VA_ARGS__)
#define gin_consume_signal_at(...)      GIN_I_CHECK(gin_consume_signal_at, GIN_I_SAYS_WORD64, __VA_ARGS__)
#define gin_reset_signal_at(...)        GIN_I_CHECK(gin_reset_signal_at, GIN_I_SAYS_WORD64, __VA_ARGS__)
#define gin_wait_counter(...)           GIN_I_CHECK(gin_wait_counter, GIN_I_SAYS_COUNTER, __VA_ARGS__)
#define gin_wait_counter_x(...)         GIN_I_CHECK(gin_wait_counter_x, GIN_I_SAYS_COUNTER, __VA_ARGS__)
#define gin_reset_counter(...)          GIN_I_CHECK(gin_reset_counter, GIN_I_SAYS_COUNTER, __VA_ARGS__)

#define GIN_I_AMO64(call, ...)  GIN_I_CHECK(call, GIN_I_SAYS_WORD64, __VA_ARGS__)
#define GIN_I_AMO32(call, ...)  GIN_I_CHECK(call, GIN_I_SAYS_WORD32, __VA_ARGS__)
#define gin_amo_set(...)         GIN_I_AMO64(gin_amo_set, __VA_ARGS__)
#define gin_amo_add(...)         GIN_I_AMO64(gin_amo_add, __VA_ARGS__)
#define gin_amo_and(...)         GIN_I_AMO64(gin_amo_and, __VA_ARGS__)
#define gin_amo_or(...)          GIN_I_AMO64(gin_amo_or, __VA_ARGS__)
#define gin_amo_xor(...)         GIN_I_AMO64(gin_amo_xor, __VA_ARGS__)
#define gin_amo_fetch(...)       GIN_I_AMO64(gin_amo_fetch, __VA_ARGS__)
#define gin_amo_fetch_add(...)   GIN_I_AMO64(gin_amo_fetch_add, __VA_ARGS__)
#define gin_amo_fetch_and(...)   GIN_I_AMO64(gin_amo_fetch_and, __VA_ARGS__)
#define gin_amo_fetch_or(...)    GIN_I_AMO64(gin_amo_fetch_or, __VA_ARGS__)
#define gin_amo_fetch_xor(...)   GIN_I_AMO64(gin_amo_fetch_xor, __VA_ARGS__)
#define gin_amo_swap(...)        GIN_I_AMO64(gin_amo_swap, __VA_ARGS__)
#define gin_amo_cas(...)         GIN_I_AMO64(gin_amo_cas, __VA_ARGS__)
#define gin_amo_set32(...)       GIN_I_AMO32(gin_amo_set32, __VA_ARGS__)
#define gin_amo_add32(...)       GIN_I_AMO32(gin_amo_add32, __VA_ARGS__)
#define gin_amo_and32(...)       GIN_I_AMO32(gin_amo_and32, __VA_ARGS__)
#define gin_amo_or32(...)        GIN_I_AMO32(gin_amo_or32, __VA_ARGS__)
#define gin_amo_xor32(...)       GIN_I_AMO32(gin_amo_xor32, __VA_ARGS__)
#define gin_amo_fetch32(...)     GIN_I_AMO32(gin_amo_fetch32, __VA_ARGS__)
#define gin_amo_fetch_add32(...) GIN_I_AMO32(gin_amo_fetch_add32, __VA_ARGS__)
#define gin_amo_fetch_and32(...) GIN_I_AMO32(gin_amo_fetch_and32, __VA_ARGS__)
#define gin_amo_fetch_or32(...)  GIN_I_AMO32(gin_amo_fetch_or32, __VA_ARGS__)
#define gin_amo_fetch_xor32(...) GIN_I_AMO32(gin_amo_fetch_xor32, __VA_ARGS__)
#define gin_amo_swap32(...)      GIN_I_AMO32(gin_amo_swap32, __VA_ARGS__)
#define gin_amo_cas32(...)       GIN_I_AMO32(gin_amo_cas32, __VA_ARGS__)

#define GIN_I_MEET(call, ...)  GIN_I_CHECK(call, GIN_I_SAYS_ANY_CONTEXT | GIN_I_SAYS_BARRIER, __VA_ARGS__)
#define gin_barrier(...)       GIN_I_MEET(gin_barrier, __VA_ARGS__)
#define gin_barrier_x(...)     GIN_I_MEET(gin_barrier_x, __VA_ARGS__)
#define gin_lsa_arrive(...)    GIN_I_MEET(gin_lsa_arrive, __VA_ARGS__)
#define gin_lsa_wait(...)      GIN_I_MEET(gin_lsa_wait, __VA_ARGS__)

#define gin_lsa_broadcast(...) GIN_I_CHECK(gin_lsa_broadcast, GIN_I_SAYS_BYTES, __VA_ARGS__)
#define gin_lsa_reduce(...)    GIN_I_CHECK(gin_lsa_reduce, 0, __VA_ARGS__)
#define gin_lsa_add(...)       GIN_I_AMO64(gin_lsa_add, __VA_ARGS__)
/* clang-format on */

#endif
