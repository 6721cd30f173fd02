/* SPDX-License-Identifier: BSD-3-Clause */
/* The test harness' main(), its counters and its deadline. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tests/pt.h"

#define STEPS      64
#define STEP_BYTES 120
#define MAX_SHOWN  20 /* failures printed; the rest is counted */

static struct pt_test *first, **last = &first;
static const char *running = "start-up";
static unsigned failures, deadline = 120;
static bool skipped;
static char steps[STEPS][STEP_BYTES];
static unsigned n_steps;
static _Thread_local char *my_step;
static _Thread_local char my_name[32];
static void (*on_failure)(void);

void pt_register(struct pt_test *test)
{
    *last = test;
    last = &test->next;
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(1);
}

/* Async-signal-safe: the test hangs, so nothing else may be trusted. */
static void on_alarm(int sig)
{
    (void)sig;
    say("DEADLINE in test ");
    say(running);
    say("\n");
    unsigned n = __atomic_load_n(&n_steps, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < n && i < STEPS; i++) {
        say("  last step of a thread: ");
        say(steps[i]);
        say("\n");
    }
    _exit(1);
}

void pt_deadline(unsigned seconds)
{
    alarm(seconds);
}

void pt_step(const char *fmt, ...)
{
    va_list ap;
    if (my_step == NULL) {
        unsigned i = __atomic_fetch_add(&n_steps, 1, __ATOMIC_RELAXED);
        my_step = steps[i % STEPS];
    }
    va_start(ap, fmt);
    vsnprintf(my_step, STEP_BYTES, fmt, ap);
    va_end(ap);
}

void pt_fail(const char *file, int line, const char *fmt, ...)
{
    unsigned n = __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    char text[1024];
    va_list ap;
    if (n > MAX_SHOWN)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s:%d: %s: %s%s%s\n", file, line, running, my_name, text,
            n == MAX_SHOWN ? " (further failures are only counted)" : "");
    if (on_failure != NULL)
        on_failure();
}

void pt_name_run(const char *name, void (*hook)(void))
{
    running = name;
    on_failure = hook;
}

void pt_name_thread(const char *name)
{
    snprintf(my_name, sizeof(my_name), "%s: ", name);
}

unsigned pt_failures(void)
{
    return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

void pt_skip(const char *fmt, ...)
{
    va_list ap;
    printf("SKIP %s: ", running);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    skipped = true;
}

bool pt_expect(const char *file, int line, bool ok, const char *what)
{
    if (!ok)
        pt_fail(file, line, "expected %s", what);
    return ok;
}

bool pt_eq_int(const char *file, int line, int64_t a, int64_t b, const char *at, const char *bt)
{
    if (a != b)
        pt_fail(file, line, "%s == %s: %" PRId64 " != %" PRId64, at, bt, a, b);
    return a == b;
}

bool pt_eq_u64(const char *file, int line, uint64_t a, uint64_t b, const char *at, const char *bt)
{
    if (a != b)
        pt_fail(file, line, "%s == %s: %" PRIu64 " != %" PRIu64 " (0x%" PRIx64 ", 0x%" PRIx64 ")",
                at, bt, a, b, a, b);
    return a == b;
}

bool pt_eq_ptr(const char *file, int line, const void *a, const void *b, const char *at,
               const char *bt)
{
    if (a != b)
        pt_fail(file, line, "%s == %s: %p != %p", at, bt, a, b);
    return a == b;
}

bool pt_eq_str(const char *file, int line, const char *a, const char *b, const char *at,
               const char *bt)
{
    bool ok = a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
    if (!ok)
        pt_fail(file, line, "%s == %s: \"%s\" != \"%s\"", at, bt, a ? a : "(NULL)",
                b ? b : "(NULL)");
    return ok;
}

bool pt_has(const char *file, int line, const char *haystack, const char *needle, const char *ht)
{
    bool ok = haystack != NULL && strstr(haystack, needle) != NULL;
    if (!ok)
        pt_fail(file, line, "%s has no \"%s\": \"%s\"", ht, needle, haystack ? haystack : "(NULL)");
    return ok;
}

bool pt_filled(const char *file, int line, const void *p, size_t n, unsigned char byte,
               const char *pt)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++)
        if (c[i] != byte) {
            pt_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", pt, i, n, c[i], byte);
            return false;
        }
    return true;
}

uint64_t pt_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("PT_SEED");
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        seed = (uint64_t)t.tv_nsec * 1000003u + (uint64_t)t.tv_sec + (uint64_t)getpid();
        if (text != NULL)
            seed = strtoull(text, NULL, 0);
        seed += seed == 0;
        printf("PT_SEED=%" PRIu64 "\n", seed);
    }
    return seed;
}

/* A Weyl sequence through a mixing function: every state gives a full-period stream. */
uint64_t pt_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(name, argv[i]) != NULL)
            return true;
    return argc < 2;
}

/* Weak: a harness on top of this one has its own. */
__attribute__((weak)) int main(int argc, char **argv)
{
    unsigned n_run = 0, n_skipped = 0;
    const char *seconds = getenv("PT_TIMEOUT");

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "-l") == 0) {
        for (struct pt_test *t = first; t != NULL; t = t->next)
            printf("%s\n", t->name);
        return 0;
    }
    if (seconds != NULL && atoi(seconds) > 0)
        deadline = (unsigned)atoi(seconds);
    signal(SIGALRM, on_alarm);
    for (struct pt_test *t = first; t != NULL; t = t->next) {
        if (!chosen(t->name, argc, argv))
            continue;
        unsigned before = pt_failures();
        running = t->name;
        skipped = false;
        alarm(deadline);
        t->run();
        alarm(0);
        n_run++;
        n_skipped += skipped;
        if (!skipped)
            printf("%s %s\n", pt_failures() == before ? "ok" : "FAIL", t->name);
    }
    running = "end";
    if (n_run == 0) {
        fprintf(stderr, "no test of that name\n");
        return 1;
    }
    if (pt_failures() != 0) {
        printf("%u failures\n", pt_failures());
        return 1;
    }
    return n_skipped == n_run ? 77 : 0;
}
