/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how a thread waits: how long it spins, when it gives its core away, how often it looks at
 * the clock and at its peers; and keeps the list of waits for the dump.
 *
 * A step is one poll. Up to `spin` steps pause; later ones yield. The slow part, with the clock,
 * runs every SPIN_BATCH pauses and every YIELD_BATCH yields. Yielding alone would leave a core's
 * share to threads that only poll while a rank computes, so a wait that has lasted LONG_NS on a
 * contended core naps between batches.
 *
 * The dump runs in a signal handler and reads other threads' waits while they come and go. It reads
 * copies in slots that are never unmapped, each guarded by a sequence number.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/line.h"
#include "base/log.h"
#include "base/os.h"
#include "base/wait.h"

#define SPIN_BATCH   1024
#define YIELD_BATCH  4
#define CHECK_NS     200000
#define LONG_NS      1000000
#define NAP_NS       20000
#define BUSY_YIELD   1500 /* ns; a yield that took longer let somebody else run */
#define SLOTS        4    /* nested waits of one thread that the dump can show */
#define DEFAULT_WARN 30000000000u

/* Fields are relaxed atomics; seq is odd while they change. what NULL: free. */
struct gi_wait_slot {
    uint64_t seq;
    const char *what;
    uint64_t began, detail[GI_WAIT_DETAILS];
    int64_t rank;
};

/* One per thread that ever waited long; recycled when the thread ends, never freed. */
struct record {
    struct record *next;
    int taken;
    struct gi_wait_slot slots[SLOTS];
};

static struct record *records;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;
static _Thread_local struct record *mine;
static uint64_t warn_ns = DEFAULT_WARN;

static void put_slot(struct gi_wait_slot *s, const struct gi_wait *w)
{
    uint64_t seq = s->seq;
    __atomic_store_n(&s->seq, seq + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&s->what, w != NULL ? w->what : NULL, __ATOMIC_RELAXED);
    if (w != NULL) {
        __atomic_store_n(&s->began, w->began, __ATOMIC_RELAXED);
        for (int i = 0; i < GI_WAIT_DETAILS; i++)
            __atomic_store_n(&s->detail[i], w->detail[i], __ATOMIC_RELAXED);
        __atomic_store_n(&s->rank, w->rank, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&s->seq, seq + 2, __ATOMIC_RELEASE);
}

/* A copy of the slot, or false if it is free or does not keep still. */
static bool get_slot(struct gi_wait_slot *s, struct gi_wait_slot *copy)
{
    for (int i = 0; i < 100; i++) {
        uint64_t seq = __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE);
        copy->what = __atomic_load_n(&s->what, __ATOMIC_RELAXED);
        copy->began = __atomic_load_n(&s->began, __ATOMIC_RELAXED);
        for (int k = 0; k < GI_WAIT_DETAILS; k++)
            copy->detail[k] = __atomic_load_n(&s->detail[k], __ATOMIC_RELAXED);
        copy->rank = __atomic_load_n(&s->rank, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if ((seq & 1) == 0 && __atomic_load_n(&s->seq, __ATOMIC_RELAXED) == seq)
            return copy->what != NULL;
    }
    return false;
}

/* The thread ends, perhaps cancelled inside a wait. */
static void leave_record(void *arg)
{
    struct record *r = arg;
    for (int i = 0; i < SLOTS; i++)
        if (r->slots[i].what != NULL)
            put_slot(&r->slots[i], NULL);
    mine = NULL;
    __atomic_store_n(&r->taken, 0, __ATOMIC_RELEASE);
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, leave_record) == 0;
}

static struct record *take_record(void)
{
    pthread_once(&once, make_key);
    if (!have_key)
        return NULL;
    struct record *r = __atomic_load_n(&records, __ATOMIC_ACQUIRE);
    for (; r != NULL; r = r->next) {
        int free_one = 0;
        if (__atomic_compare_exchange_n(&r->taken, &free_one, 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            break;
    }
    if (r == NULL) {
        r = calloc(1, sizeof(*r));
        if (r == NULL)
            return NULL; /* the dump will not show this thread */
        r->taken = 1;
        r->next = __atomic_load_n(&records, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&records, &r->next, r, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
            continue;
    }
    pthread_setspecific(key, r);
    return r;
}

static struct gi_wait_slot *take_slot(void)
{
    if (mine == NULL && (mine = take_record()) == NULL)
        return NULL;
    for (int i = 0; i < SLOTS; i++)
        if (mine->slots[i].what == NULL)
            return &mine->slots[i];
    return NULL;
}

void gi_wait_set_warn(uint64_t ns)
{
    __atomic_store_n(&warn_ns, ns, __ATOMIC_RELAXED);
}

/* With a core for each rank a wait is short and a yield only delays; else every poll is stolen. */
uint32_t gi_wait_default_spin(int ranks_on_host, int cores)
{
    return ranks_on_host <= cores ? 2000 : 1;
}

void gi_wait_begin(struct gi_wait *w, uint32_t spin, uint64_t deadline, gi_wait_check_fn check,
                   void *arg, const char *what)
{
    w->deadline = deadline;
    w->began = 0;
    w->steps = 0;
    w->spin = spin;
    w->rank = -1;
    w->check = check;
    w->progress = NULL;
    w->arg = arg;
    w->what = what;
    memset(w->detail, 0, sizeof(w->detail));
    w->slot = NULL;
}

/* What is waited for, with its numbers. */
static void add_what(struct gi_line *l, const char *what, const uint64_t *detail)
{
    int used = 0, last = GI_WAIT_DETAILS;
    for (; *what != 0; what++) {
        char c[2] = {*what, 0};
        if (*what == '#' && used < GI_WAIT_DETAILS)
            gi_line_number(l, detail[used++]);
        else
            gi_line_text(l, c);
    }
    while (last > 0 && detail[last - 1] == 0)
        last--;
    if (used != 0 || last == 0)
        return;
    for (int i = 0; i < last; i++) {
        gi_line_text(l, i == 0 ? " (" : ", ");
        gi_line_number(l, detail[i]);
    }
    gi_line_text(l, ")");
}

static void warn_long(struct gi_wait *w, uint64_t now)
{
    struct gi_line l = {.n = 0};
    add_what(&l, w->what, w->detail);
    gi_warn("wait", "%.1f s for %.*s and still waiting", (double)(now - w->began) / 1e9, (int)l.n,
            l.text);
    w->next_warn = now + (now - w->began); /* at every doubling */
}

static void first_look(struct gi_wait *w, uint64_t now)
{
    uint64_t warn = __atomic_load_n(&warn_ns, __ATOMIC_RELAXED);
    w->began = now;
    w->next_warn = warn > GI_NEVER - now ? GI_NEVER : now + warn;
    if (w->rank < 0)
        w->rank = gi_log_rank();
    w->slot = take_slot();
    if (w->slot != NULL)
        put_slot(w->slot, w);
}

/* The clock, the deadline, the peers. */
static int look(struct gi_wait *w, uint64_t now)
{
    if (w->began == 0) {
        first_look(w, now); /* too early to suspect the peers */
    } else {
        if (w->slot != NULL)
            put_slot(w->slot, w); /* the caller may have changed detail */
        int st = w->check != NULL ? w->check(w->arg) : GIN_OK;
        if (st != GIN_OK)
            return st;
    }
    if (now >= w->deadline)
        return GIN_ETIMEDOUT;
    if (now >= w->next_warn)
        warn_long(w, now);
    w->next_check = now + CHECK_NS < w->deadline ? now + CHECK_NS : w->deadline;
    return GIN_OK;
}

static int slow_step(struct gi_wait *w)
{
    uint64_t now = gi_now_ns();
    int st = GIN_OK;
    if (w->began == 0 || now >= w->next_check)
        st = look(w, now);
    if (st == GIN_OK && w->steps > w->spin && now - w->began > LONG_NS) {
        gi_os_yield();
        if (gi_now_ns() - now > BUSY_YIELD)
            gi_os_sleep_ns(NAP_NS);
    }
    return st;
}

int gi_wait_step(struct gi_wait *w)
{
    uint64_t n = ++w->steps;
    if (w->progress != NULL)
        w->progress(w->arg);
    if (n <= w->spin) {
        if (GIN_LIKELY(n % SPIN_BATCH != 0)) {
            GIN_PAUSE();
            return GIN_OK;
        }
    } else {
        gi_os_yield();
        /* The first yield looks at once: a deadline that has passed need not wait for a batch. */
        if ((n - w->spin) % YIELD_BATCH != 1)
            return GIN_OK;
    }
    return slow_step(w);
}

void gi_wait_end(struct gi_wait *w)
{
    if (w->slot != NULL)
        put_slot(w->slot, NULL);
    w->slot = NULL;
}

static void dump_slot(int fd, const struct gi_wait_slot *s, uint64_t now)
{
    struct gi_line l = {.n = 0};
    gi_line_text(&l, "ginshmem");
    if (s->rank >= 0) {
        gi_line_text(&l, "[");
        gi_line_number(&l, (uint64_t)s->rank);
        gi_line_text(&l, "]");
    }
    gi_line_text(&l, " waits ");
    gi_line_number(&l, (now - s->began) / 1000000000u);
    gi_line_text(&l, ".");
    gi_line_number(&l, (now - s->began) / 100000000u % 10);
    gi_line_text(&l, " s for ");
    add_what(&l, s->what, s->detail);
    gi_line_write(&l, fd);
}

void gi_wait_dump(int fd)
{
    uint64_t now = gi_now_ns();
    struct gi_wait_slot copy;
    unsigned shown = 0;
    for (struct record *r = __atomic_load_n(&records, __ATOMIC_ACQUIRE); r != NULL; r = r->next)
        for (int i = 0; i < SLOTS; i++)
            if (get_slot(&r->slots[i], &copy)) {
                dump_slot(fd, &copy, now);
                shown++;
            }
    if (shown == 0) {
        static const char none[] = "ginshmem: no thread waits\n";
        if (gi_os_write(fd, none, sizeof(none) - 1) < 0)
            return;
    }
}
