/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core with threads: an engine per rank that polls always, threads that share a context and own
 * it for a call, contexts that come and go beneath the polling.
 */
#include "core_bed.h"

#include <pthread.h>
#include <string.h>
#include "base/os.h"

#define WORKERS 2
#define PUTS    300u

struct engine {
    pthread_t thread;
    struct gi_core *core;
    atomic_int stop;
};

static void *poll_always(void *arg)
{
    struct engine *e = arg;
    while (atomic_load_explicit(&e->stop, memory_order_relaxed) == 0)
        if (gi_core_poll(e->core) == 0)
            gi_os_yield();
    return NULL;
}

struct worker {
    pthread_t thread;
    struct bed *b;
    int rank, index;
    uint64_t src[PUTS];
};

/* Own the context for one call at a time. */
#define OWNED(w, call)                                          \
    do {                                                        \
        struct gi_core_ctx *ctx_ = (w)->b->rank[(w)->rank].ctx; \
        int st_;                                                \
        do {                                                    \
            gi_core_enter(ctx_);                                \
            st_ = (call);                                       \
            gi_core_leave(ctx_);                                \
            if (st_ == GIN_EAGAIN || st_ == 0)                  \
                gi_os_yield();                                  \
        } while (st_ == GIN_EAGAIN);                            \
        EXPECT(st_ == GIN_OK || st_ == 1);                      \
    } while (0)

static void *work(void *arg)
{
    struct worker *w = arg;
    struct bed_rank *r = &w->b->rank[w->rank];
    int to = (w->rank + 1) % w->b->n;
    for (unsigned i = 0; i < PUTS; i++) {
        w->src[i] = i + 1;
        struct gi_core_put p = {.window = BED_WINDOW,
                                .off = 4096u * (unsigned)(w->index + 1) + 8 * i,
                                .src = &w->src[i],
                                .bytes = 8,
                                .action = bed_slot((uint32_t)w->index, 1, true)};
        OWNED(w, gi_core_put(r->ctx, to, &p));
        struct gi_core_amo a = {
            .window = BED_WINDOW, .off = 0, .op = GIN_I_AMO_ADD, .bytes = 8, .value = 1};
        OWNED(w, gi_core_amo(r->ctx, to, &a));
    }
    uint64_t mark = 0;
    OWNED(w, (mark = gi_core_mark(r->ctx), GIN_OK));
    int st = 0;
    while (st == 0) {
        OWNED(w, (st = gi_core_settled(r->ctx, to, mark), GIN_OK));
        gi_os_yield();
    }
    EXPECT_EQ_INT(st, 1);
    EXPECT_EQ_INT(gi_core_flushed(r->ctx, mark), 1);
    return NULL;
}

/* A thread that waits for a signal and then looks at what it covers. */
static void *watch(void *arg)
{
    struct worker *w = arg;
    const uint64_t *words = (uint64_t *)(void *)(w->b->rank[w->rank].memory);
    uint64_t seen = 0;
    while (seen < PUTS) {
        uint64_t now = bed_signal(w->b, w->rank, (uint32_t)w->index);
        for (; seen < now; seen++)
            EXPECT_EQ_U64(words[512 * (w->index + 1) + (int)seen], seen + 1);
        gi_os_yield();
    }
    return NULL;
}

TEST(engines_and_owners)
{
    static const char *const masks[] = {"B64", "C64", "A"};
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        static struct worker workers[3][WORKERS], watchers[3][WORKERS];
        static struct engine engines[3];
        struct bed b = {.seed = PT_SEED, .plan = {.hold = m == 2 ? 0 : 4, .early = true}};
        pt_step("%s", masks[m]);
        if (!bed_open(&b, bed_mask(masks[m]), 3))
            return;
        for (int r = 0; r < 3; r++) {
            engines[r] = (struct engine){.core = b.rank[r].core};
            pthread_create(&engines[r].thread, NULL, poll_always, &engines[r]);
            for (int i = 0; i < WORKERS; i++) {
                workers[r][i] = watchers[r][i] = (struct worker){.b = &b, .rank = r, .index = i};
                pthread_create(&watchers[r][i].thread, NULL, watch, &watchers[r][i]);
                pthread_create(&workers[r][i].thread, NULL, work, &workers[r][i]);
            }
        }
        for (int r = 0; r < 3; r++)
            for (int i = 0; i < WORKERS; i++) {
                pthread_join(workers[r][i].thread, NULL);
                pthread_join(watchers[r][i].thread, NULL);
            }
        for (int r = 0; r < 3; r++) {
            atomic_store_explicit(&engines[r].stop, 1, memory_order_relaxed);
            pthread_join(engines[r].thread, NULL);
            EXPECT_EQ_U64(*(uint64_t *)(void *)b.rank[r].memory, (uint64_t)WORKERS * PUTS);
        }
        bed_close(&b);
    }
}

/* ---- contexts come and go while another thread polls ---- */

struct opener {
    pthread_t thread;
    struct gi_core *core;
    uint64_t cells[4][4];
};

static void *open_and_close(void *arg)
{
    struct opener *o = arg;
    for (int i = 0; i < 20; i++) {
        struct gi_core_ctx_config config[3];
        struct gi_core_ctx *ctx[3];
        memset(config, 0, sizeof(config));
        for (int k = 0; k < 3; k++)
            config[k].cells = (struct gi_core_cells){o->cells[k], 8, 4, false};
        if (!EXPECT_EQ_INT(gi_core_ctx_open(o->core, 3, config, ctx), GIN_OK))
            break;
        for (int k = 0; k < 3; k++)
            gi_core_ctx_close(ctx[k]);
    }
    return NULL;
}

TEST(contexts_come_and_go)
{
    static struct engine engines[2];
    static struct opener openers[2];
    struct bed b = {.seed = 1};
    if (!bed_open(&b, bed_mask("B64"), 2))
        return;
    for (int r = 0; r < 2; r++) {
        engines[r] = (struct engine){.core = b.rank[r].core};
        openers[r] = (struct opener){.core = b.rank[r].core};
        pthread_create(&engines[r].thread, NULL, poll_always, &engines[r]);
        pthread_create(&openers[r].thread, NULL, open_and_close, &openers[r]);
    }
    for (int r = 0; r < 2; r++)
        pthread_join(openers[r].thread, NULL);
    for (int r = 0; r < 2; r++) {
        atomic_store_explicit(&engines[r].stop, 1, memory_order_relaxed);
        pthread_join(engines[r].thread, NULL);
    }
    bed_close(&b);
}
