/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core of a communicator: opening it over its rails, and polling. Polling takes the contexts
 * that nobody owns, one after the other, so that an application's thread that works on its own
 * context is not disturbed, and one that computes is replaced.
 */
#include "transport/core_stage.h"
#include "transport/core_stripe.h"

#include <stdio.h>
#include <stdlib.h>

#define BUDGET   64u /* events per context and poll */
#define OTHERS   32u /* polls of a context that is waited for, to one of others */
#define MANY     64u /* contexts, of whose quiet ones several have their turn at a time */
#define PATIENCE 64u /* looks at a context where others post, until it is polled */
#define HOT      64  /* idle polls until a context is one of many again */

static int take_domains(struct gi_core *core)
{
    const struct gi_core_config *c = &core->config;
    if (c->n_domains == 0 || c->n_domains > GI_CORE_RAILS)
        return gi_fail(GIN_EINVAL, "%u rails: 1 to %u are possible", c->n_domains, GI_CORE_RAILS);
    for (uint32_t i = 0; i < c->n_domains; i++) {
        core->domain[i] = c->domains[i];
        core->agreed[i] = *core->domain[i]->ops->caps(core->domain[i]);
        core->caps[i] = &core->agreed[i];
        if (core->caps[i]->msg_max < GI_CORE_BYTES_PUT + 16 || core->caps[i]->max_msg == 0)
            return gi_fail(GIN_ENOTSUP, "rail %u (%s): messages of %u bytes are too small", i,
                           core->caps[i]->name != NULL ? core->caps[i]->name : "?",
                           core->caps[i]->msg_max);
    }
    return GIN_OK;
}

int gi_core_open(const struct gi_core_config *config, struct gi_core **core)
{
    struct gi_core *c = calloc(1, sizeof(*c));
    uint8_t *dead = calloc((size_t)config->size, 1);
    char **whys = calloc((size_t)config->size, sizeof(*whys));
    void *all = gi_core_agree_room(config->size);
    int st = GIN_OK;
    if (c == NULL || dead == NULL || whys == NULL || all == NULL)
        st = gi_fail(GIN_ENOMEM, "no memory for the network of %d ranks", config->size);
    if (c != NULL) {
        c->config = *config;
        if (c->config.drivers == 0)
            c->config.drivers = 1;
        c->watch_ns = config->peer_timeout_ns / 32;
        c->dead = (_Atomic uint8_t *)dead;
        c->whys = (char *_Atomic *)whys;
    } else {
        free(dead);
        free(whys);
    }
    if (st == GIN_OK && config->drivers > GI_CORE_DRIVERS)
        st = gi_fail(GIN_EINVAL, "%u drivers: at most %u are possible", config->drivers,
                     GI_CORE_DRIVERS);
    if (st == GIN_OK)
        st = take_domains(c);
    st = gi_core_all_well(config, st, "the network");
    if (st == GIN_OK)
        st = gi_core_agree(c, all);
    free(all);
    if (st != GIN_OK) {
        gi_core_close(c);
        return st;
    }
    for (uint32_t i = 0; i < c->config.n_domains; i++) {
        gi_core_plan(&c->plan[i], c->caps[i]);
        gi_debug("net", "rail %u: %s", i, c->plan[i].text);
    }
    c->config.domains = NULL;
    *core = c;
    return GIN_OK;
}

static void free_windows(struct gi_core *core)
{
    for (uint32_t i = 0; i < GI_CORE_WINDOW_PAGES; i++) {
        struct gi_core_window **page = core->windows[i];
        for (uint32_t k = 0; page != NULL && k < GI_CORE_WINDOW_PAGE; k++)
            if (page[k] != NULL)
                gi_core_window_drop(core, page[k]->name);
        free(page);
    }
}

void gi_core_close(struct gi_core *core)
{
    if (core == NULL)
        return;
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++)
        free(atomic_load_explicit(&core->ctx[i], memory_order_relaxed));
    free_windows(core);
    gi_core_stage_close(core);
    free((void *)core->dead);
    for (int r = 0; core->whys != NULL && r < core->config.size; r++)
        free(atomic_load(&core->whys[r]));
    free((void *)core->whys);
    free(core);
}

const struct gi_net_caps *gi_core_caps(const struct gi_core *core, uint32_t rail)
{
    return core->caps[rail];
}

const char *gi_core_strategy(const struct gi_core *core, uint32_t rail)
{
    return core->plan[rail].text;
}

/* Its address names the thread. */
static _Thread_local char me;

/* ---- ownership ---- */

bool gi_core_try(struct gi_core_ctx *ctx)
{
    return atomic_load_explicit(&ctx->owned, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&ctx->owned, 1, memory_order_acquire) == 0;
}

void gi_core_enter(struct gi_core_ctx *ctx)
{
    for (unsigned i = 0; !gi_core_try(ctx); i++) {
        if (i < 1000)
            GIN_PAUSE();
        else
            gi_os_yield();
    }
}

/*
 * Sleeping sets asleep and then looks into every context; whoever owns one before that is seen by
 * the look, whoever owns it later sees asleep.
 */
void gi_core_leave(struct gi_core_ctx *ctx)
{
    struct gi_core *core = ctx->core;
    uint32_t driver = ctx->driver;
    bool wake = (ctx->active != NULL || ctx->staging != NULL) && core->config.hooks.wake != NULL &&
                atomic_load_explicit(&core->asleep[driver], memory_order_relaxed) != 0;
    atomic_store_explicit(&ctx->owned, 0, memory_order_release);
    if (GIN_UNLIKELY(wake) && atomic_exchange(&core->asleep[driver], 0) != 0)
        core->config.hooks.wake(core->config.hooks.arg, driver);
}

/* ---- polling ---- */

static int feed(struct gi_core_ctx *ctx)
{
    return ctx->intake.take != NULL ? ctx->intake.take(ctx->intake.arg) : 0;
}

static int drive(struct gi_core_ctx *ctx)
{
    if (ctx->polling)
        return 0; /* a notice that polls */
    if (GIN_UNLIKELY(ctx->lane_dead)) {
        feed(ctx); /* refused one by one */
        ctx->polling = true;
        if (ctx->staging != NULL)
            gi_core_stage_run(ctx); /* copies end, and give back what others wait for */
        ctx->polling = false;
        return GIN_ENET;
    }
    ctx->polling = true;
    atomic_store_explicit(&ctx->polls, gi_core_turn(ctx) + 1, memory_order_relaxed);
    int taken = feed(ctx);
    int n = ctx->ops->progress(ctx->lane, BUDGET);
    if (GIN_UNLIKELY(n < 0)) {
        gi_core_lane_dead(ctx, gin_last_error());
    } else {
        if (n > 0)
            ctx->idle = 0;
        if (GIN_UNLIKELY(ctx->staging != NULL))
            n += gi_core_stage_run(ctx);
        if (ctx->active != NULL)
            n += gi_core_push_all(ctx);
        if (GIN_UNLIKELY(ctx->stripe != NULL))
            n += gi_core_stripe_progress(ctx);
        n += taken;
        gi_core_watch(ctx);
    }
    ctx->polling = false;
    return n;
}

int gi_core_progress(struct gi_core_ctx *ctx)
{
    ctx->pauses++;
    return drive(ctx);
}

/* Does the same thread post, too? */
static int poll_one(struct gi_core_ctx *ctx, bool posts)
{
    int n = 0;
    if (!gi_core_try(ctx))
        return 0;
    if (GIN_LIKELY(ctx->open)) {
        int hot = atomic_load_explicit(&ctx->hot, memory_order_relaxed);
        n = drive(ctx);
        n = n > 0 ? n : 0;
        ctx->pauses += posts;
        if (n != 0 && hot != HOT)
            atomic_store_explicit(&ctx->hot, HOT, memory_order_relaxed);
        else if (n == 0 && hot != 0)
            atomic_store_explicit(&ctx->hot, hot - 1, memory_order_relaxed);
    }
    gi_core_leave(ctx);
    return n;
}

static bool is_asleep(const struct gi_core *core, uint32_t driver)
{
    return atomic_load_explicit(&core->asleep[driver], memory_order_relaxed) != 0;
}

/* Whoever slept polls again. False: it had, or somebody woke it. */
static bool wake_up(struct gi_core *core, uint32_t driver)
{
    if (atomic_load_explicit(&core->asleep[driver], memory_order_relaxed) != (uintptr_t)&me)
        return false;
    atomic_store_explicit(&core->asleep[driver], 0, memory_order_relaxed);
    return true;
}

int gi_core_poll(struct gi_core *core)
{
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_acquire);
    int events = 0;
    for (uint32_t i = 0; i < core->config.drivers; i++)
        wake_up(core, i);
    for (uint32_t i = 0; i < n; i++)
        events += poll_one(atomic_load_explicit(&core->ctx[i], memory_order_acquire), true);
    return events;
}

/*
 * What drives one lane drives the sockets of all where they share them, and each lane asks for a
 * system call: so those that had events lately get their turn every time, the others one by one.
 */
struct turn {
    uint32_t from, to; /* of the others */
};

static struct turn next_turn(uint32_t n)
{
    static _Thread_local uint32_t from;
    uint32_t some = n / MANY + 1;
    from = from < n ? from : 0;
    struct turn t = {from, from + some};
    from += some;
    return t;
}

static bool has_turn(const struct gi_core_ctx *ctx, uint32_t i, struct turn t)
{
    return i - t.from < t.to - t.from ||
           (atomic_load_explicit(&ctx->hot, memory_order_relaxed) |
            atomic_load_explicit(&ctx->fed, memory_order_relaxed)) != 0;
}

static int poll_turn(struct gi_core *core, const struct gi_core_ctx *but)
{
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_acquire);
    struct turn t = next_turn(n);
    int events = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct gi_core_ctx *ctx = atomic_load_explicit(&core->ctx[i], memory_order_acquire);
        if (ctx != but && has_turn(ctx, i, t))
            events += poll_one(ctx, true);
    }
    return events;
}

int gi_core_poll_some(struct gi_core *core)
{
    return poll_turn(core, NULL);
}

/* What others do with a context, since the last look. So few polls are none. */
static enum gi_core_others others_do(struct gi_core_ctx *ctx, uint32_t few)
{
    uint32_t turn = gi_core_turn(ctx);
    uint64_t retired = atomic_load_explicit(&ctx->retired, memory_order_relaxed);
    enum gi_core_others what = turn - ctx->polls_seen > few   ? GI_CORE_DRIVES
                               : retired == ctx->retired_seen ? GI_CORE_NOBODY
                               : ctx->left_out++ < PATIENCE   ? GI_CORE_POSTS
                                                              : GI_CORE_NOBODY;
    ctx->polls_seen = turn;
    ctx->retired_seen = retired;
    return what;
}

/* Between a thread and the network that it posts to, polls are in the way: they contend for the
 * provider's lock, and make bundles leave before they are full. */
int gi_core_poll_left(struct gi_core *core, uint32_t driver, bool all, uint32_t few,
                      enum gi_core_others *others)
{
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_acquire);
    struct turn t = next_turn(n);
    int events = 0;
    *others = GI_CORE_NOBODY;
    bool slept = wake_up(core, driver);
    for (uint32_t i = 0; i < n; i++) {
        struct gi_core_ctx *ctx = atomic_load_explicit(&core->ctx[i], memory_order_acquire);
        bool turn = all || has_turn(ctx, i, t);
        if (ctx->driver != driver) {
            if (turn && driver == 0 && is_asleep(core, ctx->driver))
                events += poll_one(ctx, false);
            continue;
        }
        enum gi_core_others what = others_do(ctx, few);
        if (slept && driver != 0)
            what = GI_CORE_NOBODY; /* it was driver 0 */
        *others = what > *others ? what : *others;
        if (what != GI_CORE_NOBODY || !turn)
            continue;
        events += poll_one(ctx, false);
        others_do(ctx, 0);
        ctx->left_out = 0;
    }
    return events;
}

/*
 * What peers read here, or are to be told of here, moves while this context is driven and makes no
 * event that would show it: where lanes share no sockets, it would have one turn of many.
 */
int gi_core_poll_first(struct gi_core *core, struct gi_core_ctx *ctx)
{
    int n = ctx != NULL ? poll_one(ctx, true) : 0;
    return n == 0 ? poll_turn(core, ctx) : n;
}

int gi_core_poll_for(struct gi_core *core, struct gi_core_ctx *ctx)
{
    int n = poll_one(ctx, true);
    return n == 0 && gi_core_turn(ctx) % OTHERS == 0 ? poll_turn(core, ctx) : n;
}

/* On so many descriptors; 0: there is nothing to wait for; or what gi_core_sleep() says. */
static int sleep_on(struct gi_core_ctx *ctx, uint32_t driver, int *fd, int max)
{
    if (!ctx->open)
        return 0;
    if (ctx->lane_dead)
        return ctx->driver == driver && ctx->staging != NULL ? GI_CORE_BUSY : 0;
    if (ctx->driver == driver && (ctx->active != NULL || ctx->staging != NULL ||
                                  (ctx->intake.has != NULL && ctx->intake.has(ctx->intake.arg))))
        return GI_CORE_BUSY;
    if (driver != 0)
        return 0;
    if (!ctx->caps->wait_fd)
        return GI_CORE_BLIND;
    int idle = ctx->ops->progress_fd(ctx->lane, fd);
    if (*fd < 0 || idle != 1)
        return *fd < 0 ? GI_CORE_BLIND : GI_CORE_BUSY;
    ctx->idle = UINT32_MAX - 1; /* look at the clock after the sleep */
    int more = ctx->stripe != NULL ? gi_core_stripe_fds(ctx, fd + 1, max - 1) : 0;
    return more < 0 ? more : 1 + more;
}

static int look_at_all(struct gi_core *core, uint32_t driver, int *fds, int max,
                       uint64_t *timeout_ns)
{
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_acquire);
    int count = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct gi_core_ctx *ctx = atomic_load_explicit(&core->ctx[i], memory_order_acquire);
        if (driver != 0 && ctx->driver != driver)
            continue;
        if (driver == 0 && count == max)
            return GI_CORE_BLIND;
        if (!gi_core_try(ctx))
            return GI_CORE_BUSY;
        int got = sleep_on(ctx, driver, &fds[count], max - count);
        ctx->pauses++;
        if (got >= 0 && ctx->dirty != NULL && core->watch_ns != 0 && core->watch_ns < *timeout_ns)
            *timeout_ns = core->watch_ns;
        atomic_store_explicit(&ctx->owned, 0, memory_order_release);
        if (got < 0)
            return got;
        count += got;
    }
    return count;
}

/* asleep stays set until this thread polls again, whatever it does until then. */
int gi_core_sleep(struct gi_core *core, uint32_t driver, int *fds, int max, uint64_t *timeout_ns)
{
    *timeout_ns = GI_NEVER;
    atomic_store(&core->asleep[driver], (uintptr_t)&me);
    return look_at_all(core, driver, fds, max, timeout_ns);
}

/* Sleeping sets asleep and then looks: whoever's operation the look missed sees asleep here. */
void gi_core_wake(struct gi_core_ctx *ctx)
{
    struct gi_core *core = ctx->core;
    atomic_uintptr_t *asleep = &core->asleep[ctx->driver];
    atomic_thread_fence(memory_order_seq_cst);
    if (GIN_LIKELY(atomic_load_explicit(asleep, memory_order_relaxed) == 0))
        return;
    if (core->config.hooks.wake != NULL && atomic_exchange(asleep, 0) != 0)
        core->config.hooks.wake(core->config.hooks.arg, ctx->driver);
}

uint32_t gi_core_lanes(const struct gi_core *core)
{
    return atomic_load_explicit(&core->n_ctx, memory_order_acquire) * (1 + core->sides);
}

/* ---- who waits for what ---- */

static void dump_ctx(const struct gi_core_ctx *ctx, void (*line)(void *, const char *), void *arg)
{
    char text[240];
    for (const struct gi_core_peer *p = ctx->dirty; p != NULL; p = p->next_dirty) {
        if (p->first == NULL && p->out.sent == p->out.acked && p->status == GIN_OK)
            continue;
        snprintf(text, sizeof(text),
                 "context %u, rank %d: %u operations, %u pieces with the network, %llu of %llu "
                 "messages acknowledged, %u atomics under way, refused %u times, %s",
                 ctx->tag, gi_core_rank_of(ctx, p), p->ops, p->pieces,
                 (unsigned long long)p->out.acked, (unsigned long long)p->out.sent, p->amos,
                 p->signs.again, gin_status_name(p->status));
        line(arg, text);
    }
}

void gi_core_dump(struct gi_core *core, void (*line)(void *arg, const char *text), void *arg)
{
    uint32_t n = atomic_load_explicit(&core->n_ctx, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        struct gi_core_ctx *ctx = atomic_load_explicit(&core->ctx[i], memory_order_acquire);
        if (!gi_core_try(ctx))
            continue;
        if (ctx->open)
            dump_ctx(ctx, line, arg);
        gi_core_leave(ctx);
    }
}
