/* SPDX-License-Identifier: BSD-3-Clause */
/* The bed for the network's core: see core_bed.h. */
#include "core_bed.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "transport/core_stage.h"
#include "transport/ofi/ofi.h"

#define DEADLINE_NS 50000000000ull /* the harness has its own, earlier one where it matters */

/* clang-format off */
#define PASSIVE .target_passive = true
#define ORDER .saw = true, .was = true, .raw = true, .sas = true
#define SIZES .max_msg = 4096, .msg_max = GI_NET_MSG_MAX, .depth = 64, \
    .imm_source = true, .inject = 64, .name = "masked", .version = "0", .notes = ""

const struct bed_mask bed_masks[] = {
    {"A", {PASSIVE, ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED, .amo = GI_NET_AMO_NATIVE, .amo_ordered = true,
           .dc = GI_NET_DC_SAME, .imm_bits = 64}, true, 0},
    {"A-early", {PASSIVE, ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED, .amo = GI_NET_AMO_NATIVE,
                 .amo_ordered = true, .imm_bits = 64}, true, 0},
    {"A-no-cells", {PASSIVE, ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED, .amo = GI_NET_AMO_NATIVE,
                    .amo_ordered = true, .dc = GI_NET_DC_SAME, .imm_bits = 32}, false, 0},
    {"B64", {ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED, .imm_bits = 64}, false, 0},
    {"B32", {ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED, .imm_bits = 32}, false, 0},
    {"B0", {ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED}, false, 0},
    {"B-told", {ORDER, SIZES, .waw_bytes = GI_NET_UNLIMITED, .dc = GI_NET_DC_YES, .imm_bits = 64},
     false, 0},
    {"B-weak-order", {.saw = true, .max_msg = 1000, .msg_max = 128, .depth = 16,
                      .waw_bytes = 100000, .imm_bits = 64, .inject = 0}, false, 0},
    {"B-tiny", {ORDER, .waw_bytes = 96, .max_msg = 96, .msg_max = 64, .depth = 4,
                .imm_bits = 64, .inject = 8, .recvs = 4}, false, 0},
    {"C64", {PASSIVE, SIZES, .dc = GI_NET_DC_YES, .imm_bits = 64, .sas = true}, false, 0},
    {"C32", {PASSIVE, SIZES, .dc = GI_NET_DC_YES, .imm_bits = 32}, false, 0},
    {"C0", {PASSIVE, SIZES, .dc = GI_NET_DC_YES}, false, 0},
    {"C-eats", {PASSIVE, SIZES, .dc = GI_NET_DC_SAME, .imm_bits = 32, .imm_eats_recv = true, .recvs = 16,
                .mr_local = true}, false, 0},
    {"C-local", {PASSIVE, .max_msg = 512, .msg_max = 128, .depth = 8, .dc = GI_NET_DC_YES,
                 .imm_bits = 64, .mr_local = true, .inject = 32}, false, 0},
    {"C-psm3", {PASSIVE, .waw_bytes = 2048, .raw = true, .was = true, .sas = true, .max_msg = 1 << 20,
                .msg_max = 128, .depth = 32, .dc = GI_NET_DC_YES, .imm_bits = 64,
                .inject = 64}, false, 0},
    {"C-no-dc", {PASSIVE, SIZES, .imm_bits = 64}, false, 0},
    {"E64", {PASSIVE, SIZES, .dc = GI_NET_DC_YES, .imm_bits = 64, .sas = true}, false, 1000000},
    {"E32", {PASSIVE, SIZES, .dc = GI_NET_DC_YES, .imm_bits = 32}, false, 1000000},
    {"E-few", {PASSIVE, SIZES, .dc = GI_NET_DC_SAME, .imm_bits = 32, .cq_overrun = true}, false, 3},
    {"E-local", {.imm_source = true, .max_msg = 96, .msg_max = 64, .depth = 8, .dc = GI_NET_DC_YES,
                 .imm_bits = 64, .mr_local = true, .inject = 32, .recvs = 4}, false, 5},
    {"D", {PASSIVE, SIZES, .dc = GI_NET_DC_YES, .amo = GI_NET_AMO_NATIVE, .amo_fence = true}, true, 0},
};
/* clang-format on */
const size_t bed_n_masks = sizeof(bed_masks) / sizeof(bed_masks[0]);

const struct bed_mask *bed_mask(const char *name)
{
    for (size_t i = 0; i < bed_n_masks; i++)
        if (strcmp(bed_masks[i].name, name) == 0)
            return &bed_masks[i];
    return NULL;
}

/* ---- collective opening ---- */

struct bed_gather {
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    char *all;
    int waiting;
};

struct bed_member {
    struct bed *b;
    int rank;
};

_Thread_local uint32_t bed_allocations;

static int gather(void *arg, const void *mine, void *all, size_t bytes)
{
    struct bed_member *m = arg;
    struct bed_gather *g = m->b->gather;
    int n = m->b->n;
    pthread_mutex_lock(&g->lock);
    if (g->waiting++ == 0)
        g->all = calloc((size_t)n, bytes);
    memcpy(g->all + (size_t)m->rank * bytes, mine, bytes);
    pthread_mutex_unlock(&g->lock);
    pthread_barrier_wait(&g->barrier);
    memcpy(all, g->all, (size_t)n * bytes);
    if (pthread_barrier_wait(&g->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        free(g->all);
        g->waiting = 0;
    }
    pthread_barrier_wait(&g->barrier);
    return GIN_OK;
}

static int allgather(void *arg, const void *mine, void *all, size_t bytes)
{
    uint32_t keep = bed_allocations;
    bed_allocations = 0;
    int st = gather(arg, mine, all, bytes);
    bed_allocations = keep;
    return st;
}

/* The bed's own word with the others, after what is not collective. */
static int all_well(struct bed_member *m, int st)
{
    int all[BED_RANKS];
    allgather(m, &st, all, sizeof(st));
    for (int r = 0; r < m->b->n && st == GIN_OK; r++)
        st = all[r];
    return st;
}

static int resolve(void *arg, uint32_t window, uint64_t off, uint64_t bytes, bool write, void **at)
{
    struct bed_member *m = arg;
    struct bed_rank *r = &m->b->rank[m->rank];
    if (window != BED_WINDOW && window != BED_FIXED)
        return GIN_ESTATE;
    if (off > BED_BYTES || bytes > BED_BYTES - off)
        return GIN_ERANGE;
    if (write && window == BED_FIXED)
        return GIN_EINVAL;
    if (m->b->aside != NULL && off == BED_BYTES - 8)
        return GIN_ENOTSUP;
    *at = r->memory + off;
    return m->b->staged >> m->rank & 1 ? GIN_ENOTSUP : GIN_OK;
}

static int apply(void *arg, const struct gi_core_update *u, uint64_t *old)
{
    struct bed_member *m = arg;
    *old = *m->b->aside;
    *m->b->aside = u->op == GIN_I_AMO_SET ? u->value : *old + u->value;
    return GIN_OK;
}

/* ---- a mover ---- */

static bool is_in(uint64_t at, uint64_t bytes, const void *base, uint64_t size)
{
    uint64_t off = at - (uint64_t)(uintptr_t)base;
    return off <= size && bytes <= size - off;
}

static int mover_copy(void *arg, uint64_t to, uint64_t from, uint64_t bytes, uint64_t *ticket)
{
    struct bed_rank *r = arg;
    struct bed_mover *m = &r->mover;
    uint64_t slabs = gi_core_stage_bytes();
    bool in = is_in(to, bytes, r->memory, BED_BYTES) && is_in(from, bytes, m->slabs, slabs);
    bool out = is_in(from, bytes, r->memory, BED_BYTES) && is_in(to, bytes, m->slabs, slabs);
    EXPECT(in || out);
    if (m->fail == 1 && m->n >= m->from)
        return gi_fail(GIN_ESYS, "a copy that was made to fail");
    if (pt_below(&m->random, 4) == 0)
        return GIN_EAGAIN;
    *ticket = m->n++;
    m->copy[*ticket % BED_COPIES] = (struct bed_copy){to, from, bytes, false};
    return GIN_OK;
}

static int mover_done(void *arg, uint64_t ticket)
{
    struct bed_rank *r = arg;
    struct bed_mover *m = &r->mover;
    struct bed_copy *c = &m->copy[ticket % BED_COPIES];
    if (m->fail == 2 && ticket >= m->from)
        return gi_fail(GIN_ESYS, "a copy that was made to fail");
    if (!c->made && (m->stuck != 0 || pt_below(&m->random, 3) != 0))
        return 0;
    if (!c->made)
        memcpy((void *)(uintptr_t)c->to, (void *)(uintptr_t)c->from, c->bytes);
    c->made = true;
    return 1;
}

static int mover_take(void *arg, uint32_t window, enum gin_i_amo_op op)
{
    struct bed_rank *r = arg;
    (void)window;
    (void)op;
    if (r->mover.taken)
        return GIN_EAGAIN;
    r->mover.taken = true;
    return GIN_OK;
}

static void mover_give(void *arg)
{
    struct bed_rank *r = arg;
    EXPECT(r->mover.taken);
    r->mover.taken = false;
}

static int open_stage(struct bed *b, struct bed_rank *r, int rank)
{
    struct gi_core_stage_config c = {.memory = NULL};
    r->mover.slabs = calloc(1, gi_core_stage_bytes());
    r->mover.random = b->seed + (uint64_t)rank;
    c.memory = r->mover.slabs;
    if (b->staged >> rank & 1)
        c.mover = (struct gi_core_mover){.arg = r,
                                         .copy = mover_copy,
                                         .done = mover_done,
                                         .take = mover_take,
                                         .give = mover_give};
    return gi_core_stage_open(r->core, &c);
}

static void peer_lost(void *arg, int rank, const char *why)
{
    struct bed_member *m = arg;
    (void)why;
    m->b->rank[m->rank].lost = rank;
}

static void peer_suspect(void *arg, int rank, const char *why)
{
    struct bed_member *m = arg;
    (void)why;
    m->b->rank[m->rank].suspect = rank;
}

static void wake(void *arg, uint32_t driver)
{
    (void)driver;
    struct bed_member *m = arg;
    m->b->wakes++;
}

static struct bed_member members[BED_RANKS];

static int open_rail(struct bed *b, struct bed_rank *r, int rank, uint32_t rail)
{
    struct gi_net_config inner = {.rank = rank, .size = b->n, .more = b->hub[rail]};
    struct gi_net_domain **in = &r->inners[rail], **domain = &r->domains[rail];
    if (b->provider != NULL) {
        struct gi_net_config net = {
            .provider = b->provider, .rank = rank, .size = b->n, .any_atomics = b->spoilt != NULL};
        int st = gi_ofi_ops.open(&net, domain);
        return st == GIN_OK && b->spoilt != NULL ? gi_fault_wrap(b->spoilt, rank, b->n, domain)
                                                 : st;
    }
    int st = gi_self_ops.open(&inner, in);
    if (st == GIN_OK && b->inner != NULL)
        (*in)->ops = b->inner;
    struct gi_fault_plan plan = {.hold = 0};
    if (!b->expect_failure || rank == b->fault_rank)
        plan = b->plan;
    plan.inner = *in;
    plan.seed = b->seed + rail;
    plan.caps = b->last_mask != NULL && rank == b->n - 1 ? &b->last_mask->caps : &b->mask->caps;
    struct gi_net_config outer = {.rank = rank, .size = b->n, .more = &plan};
    return st == GIN_OK ? gi_fault_ops.open(&outer, domain) : st;
}

static int open_net(struct bed *b, struct bed_rank *r, int rank)
{
    int st = GIN_OK;
    for (uint32_t i = 0; i < b->rails && st == GIN_OK; i++)
        st = open_rail(b, r, rank, i);
    r->inner = r->inners[0];
    r->domain = r->domains[0];
    return st;
}

static int open_memory(struct bed_rank *r, bool staged)
{
    struct gi_core_region_config rc = {.memory = {.kind = staged ? GI_NET_DEVICE : GI_NET_HOST,
                                                  .addr = r->memory,
                                                  .bytes = BED_BYTES}};
    int st = gi_core_region_open(r->core, &rc, &r->region);
    rc.memory.kind = GI_NET_HOST;
    rc.memory.addr = r->cells;
    rc.memory.bytes = sizeof(r->cells);
    if (st == GIN_OK)
        st = gi_core_region_open(r->core, &rc, &r->cells_region);
    if (st != GIN_OK)
        return st;
    /* The window in two pieces, as a heap that grew. */
    struct gi_core_piece pieces[] = {{0, BED_BYTES / 2, r->region, 0},
                                     {BED_BYTES / 2, BED_BYTES / 2, r->region, BED_BYTES / 2}};
    struct gi_core_piece cells = {0, sizeof(r->cells), r->cells_region, 0};
    st = gi_core_window_set(r->core, BED_WINDOW, pieces, 1);
    if (st == GIN_OK)
        st = gi_core_window_set(r->core, BED_WINDOW, pieces, 2);
    if (st == GIN_OK)
        st = gi_core_window_set(r->core, BED_FIXED, pieces, 2);
    return st == GIN_OK ? gi_core_window_set(r->core, BED_CELLS, &cells, 1) : st;
}

static void *open_rank(void *arg)
{
    struct bed_member *m = arg;
    struct bed *b = m->b;
    struct bed_rank *r = &b->rank[m->rank];
    r->lost = r->suspect = -1;
    r->memory = calloc(1, BED_BYTES);
    r->status = open_net(b, r, m->rank);
    if (m->rank == b->fault_rank)
        bed_allocations = b->no_memory;
    struct gi_core_config config = {.rank = m->rank,
                                    .size = b->n,
                                    .domains = r->domains,
                                    .n_domains = b->rails,
                                    .stripe_from = b->stripe,
                                    .allgather = allgather,
                                    .allgather_arg = m,
                                    .hooks = {.arg = m,
                                              .resolve = resolve,
                                              .apply = b->aside != NULL ? apply : NULL,
                                              .peer_lost = peer_lost,
                                              .peer_suspect = b->suspect ? peer_suspect : NULL,
                                              .wake = b->wake ? wake : NULL},
                                    .peer_timeout_ns = b->peer_timeout_ns};
    if (r->status == GIN_OK)
        r->status = gi_core_open(&config, &r->core);
    if (r->status == GIN_OK)
        r->status = all_well(m, open_memory(r, b->staged >> m->rank & 1));
    if (r->status == GIN_OK && b->staged != 0)
        r->status = open_stage(b, r, m->rank);
    struct gi_core_ctx_config cc = {.cells = {r->cells, sizeof(r->cells[0]), BED_SLOTS, false},
                                    .native_window = BED_CELLS,
                                    .native_off = 8,
                                    .native_stride = b->mask->native ? sizeof(r->cells[0]) : 0,
                                    .epochs = b->mask->epochs,
                                    .mutate = b->mutate};
    if (r->status == GIN_OK)
        r->status = gi_core_ctx_open(r->core, 1, &cc, &r->ctx);
    bed_allocations = 0;
    return NULL;
}

bool bed_open(struct bed *b, const struct bed_mask *mask, int n)
{
    pthread_t thread[BED_RANKS];
    b->mask = mask;
    b->n = n;
    if (b->seed == 0)
        b->seed = PT_SEED;
    b->random = b->seed;
    b->gather = calloc(1, sizeof(*b->gather));
    pthread_barrier_init(&b->gather->barrier, NULL, (unsigned)n);
    pthread_mutex_init(&b->gather->lock, NULL);
    b->rails = b->rails != 0 ? b->rails : 1;
    for (uint32_t i = 0; i < b->rails; i++)
        if (!EXPECT_EQ_INT(gi_self_hub_open(&b->hub[i]), GIN_OK))
            return false;
    for (int r = 0; r < n; r++) {
        members[r] = (struct bed_member){b, r};
        pthread_create(&thread[r], NULL, open_rank, &members[r]);
    }
    for (int r = 0; r < n; r++)
        pthread_join(thread[r], NULL);
    for (int r = 0; r < n; r++)
        if (!b->expect_failure && !EXPECT_EQ_INT(b->rank[r].status, GIN_OK))
            return false;
    return !b->expect_failure;
}

/* Nothing of it is held any more. */
static void check_stage(const struct bed_rank *k)
{
    const struct gi_core_stage *s = k->core != NULL ? k->core->stage : NULL;
    for (int room = 0; s != NULL && room < GI_STAGE_ROOMS; room++) {
        bool slab = room == GI_STAGE_OUT || room == GI_STAGE_IN;
        EXPECT_EQ_U64(s->pool[room].n_free, slab ? GI_STAGE_SLABS : GI_STAGE_CELLS);
    }
    EXPECT(!k->mover.taken);
}

void bed_close(struct bed *b)
{
    for (int r = 0; r < b->n; r++) {
        struct bed_rank *k = &b->rank[r];
        gi_core_ctx_close(k->ctx);
        check_stage(k);
        gi_core_region_close(k->core, k->region);
        gi_core_region_close(k->core, k->cells_region);
        gi_core_close(k->core);
        for (uint32_t i = 0; i < b->rails; i++) {
            if (k->domains[i] != NULL)
                k->domains[i]->ops->close(k->domains[i]);
            if (k->inners[i] != NULL)
                gi_self_ops.close(k->inners[i]);
        }
        free(k->memory);
        free(k->mover.slabs);
    }
    for (uint32_t i = 0; i < b->rails; i++)
        gi_self_hub_close(b->hub[i]);
    pthread_barrier_destroy(&b->gather->barrier);
    pthread_mutex_destroy(&b->gather->lock);
    free(b->gather);
    memset(b, 0, sizeof(*b));
}

/* ---- driving ---- */

void bed_step(struct bed *b)
{
    gi_core_poll(b->rank[pt_below(&b->random, (uint64_t)b->n)].core);
}

void bed_round(struct bed *b)
{
    for (int r = 0; r < b->n; r++)
        gi_core_poll(b->rank[r].core);
}

bool bed_idle(struct bed *b)
{
    uint64_t end = gi_deadline_in(DEADLINE_NS);
    for (int r = 0; r < b->n; r++)
        for (int p = 0; p < b->n; p++) {
            struct gi_core_ctx *ctx = b->rank[r].ctx;
            while (gi_core_settled(ctx, p, gi_core_mark(ctx)) == 0) {
                bed_step(b);
                if (gi_now_ns() > end) {
                    b->stuck = true;
                    if (b->mutate == 0) /* a broken core may well be */
                        FAIL("rank %d is never settled at rank %d", r, p);
                    return false;
                }
            }
        }
    return true;
}

#define AGAIN(call)                                 \
    do {                                            \
        uint64_t end = gi_deadline_in(DEADLINE_NS); \
        int st;                                     \
        while ((st = (call)) == GIN_EAGAIN) {       \
            bed_step(b);                            \
            if (gi_now_ns() > end) {                \
                FAIL("never taken: " #call);        \
                break;                              \
            }                                       \
        }                                           \
        return st;                                  \
    } while (0)

int bed_put(struct bed *b, int from, int to, const struct gi_core_put *p)
{
    AGAIN(gi_core_put(b->rank[from].ctx, to, p));
}

int bed_get(struct bed *b, int from, int to, const struct gi_core_get *g)
{
    AGAIN(gi_core_get(b->rank[from].ctx, to, g));
}

int bed_amo(struct bed *b, int from, int to, const struct gi_core_amo *a)
{
    AGAIN(gi_core_amo(b->rank[from].ctx, to, a));
}

int bed_fence(struct bed *b, int from, int to)
{
    AGAIN(gi_core_fence(b->rank[from].ctx, to));
}

static int reached(int st)
{
    return st == 0 ? GIN_EAGAIN : st == 1 ? GIN_OK : st;
}

int bed_flush(struct bed *b, int from)
{
    uint64_t mark = gi_core_mark(b->rank[from].ctx);
    AGAIN(reached(gi_core_flushed(b->rank[from].ctx, mark)));
}

int bed_quiet(struct bed *b, int from, int to)
{
    uint64_t mark = gi_core_mark(b->rank[from].ctx);
    AGAIN(reached(gi_core_settled(b->rank[from].ctx, to, mark)));
}

struct gi_core_put bed_make_put(struct bed *b, int from, uint64_t dst, uint64_t src, uint64_t bytes)
{
    return (struct gi_core_put){.window = BED_WINDOW,
                                .off = dst,
                                .src = b->rank[from].memory + src,
                                .bytes = bytes,
                                .region = b->rank[from].region};
}

struct gi_core_amo bed_fetch_inc(uint64_t off, uint64_t *old)
{
    return (struct gi_core_amo){.window = BED_WINDOW,
                                .off = off,
                                .op = GIN_I_AMO_FETCH_ADD,
                                .bytes = 8,
                                .value = 1,
                                .old = old};
}

struct gi_core_action bed_slot(uint32_t slot, uint64_t value, bool strong)
{
    return (struct gi_core_action){
        .kind = GI_CORE_SLOT_ADD, .strong = strong, .id = slot, .value = value};
}
