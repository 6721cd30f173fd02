/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test harness. A program is a file of TEST(name) { ... }; main() comes from pt.c and runs all
 * tests, or those whose name contains an argument (-l lists them). Exit status: 0 all passed, 77
 * all skipped, 1 otherwise. Each test has a deadline (PT_TIMEOUT seconds, 120 by default); when it
 * passes, the last pt_step() of every thread is printed and the program ends.
 *
 * EXPECT_*() print both sides when they differ, count the failure and are an expression that tells
 * whether all is well, so that a test can stop: if (!EXPECT_EQ_INT(n, 3)) return; Any thread.
 */
#ifndef GINSHMEM_TESTS_PT_H
#define GINSHMEM_TESTS_PT_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* 1: built for the race detector, which libfabric is not built for. */
#if defined(__SANITIZE_THREAD__)
#define PT_RACE_DETECTOR 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PT_RACE_DETECTOR 1
#endif
#endif
#ifndef PT_RACE_DETECTOR
#define PT_RACE_DETECTOR 0
#endif

/* 1: built for the address sanitizer, which looks for leaks, too. */
#if defined(__SANITIZE_ADDRESS__)
#define PT_LEAK_DETECTOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PT_LEAK_DETECTOR 1
#endif
#endif
#ifndef PT_LEAK_DETECTOR
#define PT_LEAK_DETECTOR 0
#endif

struct pt_test {
    const char *name;
    void (*run)(void);
    struct pt_test *next;
};
void pt_register(struct pt_test *test);

#define TEST(name)                                                 \
    static void test_##name(void);                                 \
    __attribute__((constructor)) static void register_##name(void) \
    {                                                              \
        static struct pt_test t = {#name, test_##name, NULL};      \
        pt_register(&t);                                           \
    }                                                              \
    static void test_##name(void)

#define EXPECT(cond)        pt_expect(__FILE__, __LINE__, (cond), #cond)
#define EXPECT_EQ_INT(a, b) pt_eq_int(__FILE__, __LINE__, (int64_t)(a), (int64_t)(b), #a, #b)
#define EXPECT_EQ_U64(a, b) pt_eq_u64(__FILE__, __LINE__, (uint64_t)(a), (uint64_t)(b), #a, #b)
#define EXPECT_EQ_PTR(a, b) pt_eq_ptr(__FILE__, __LINE__, (a), (b), #a, #b)
#define EXPECT_EQ_STR(a, b) pt_eq_str(__FILE__, __LINE__, (a), (b), #a, #b)
/* haystack contains needle; for texts of errors */
#define EXPECT_HAS(haystack, needle) pt_has(__FILE__, __LINE__, (haystack), (needle), #haystack)
/* the n bytes at p all have the value byte */
#define EXPECT_FILLED(p, n, byte) pt_filled(__FILE__, __LINE__, (p), (n), (byte), #p)

/* Leave the running test, which then counts as skipped; the reason is printed. Main thread only. */
#define SKIP(...)             \
    do {                      \
        pt_skip(__VA_ARGS__); \
        return;               \
    } while (0)
/* Fail with a text. */
#define FAIL(...) pt_fail(__FILE__, __LINE__, __VA_ARGS__)

/* Say what this thread does next; printed when the deadline passes. */
void pt_step(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Give the running test another deadline. */
void pt_deadline(unsigned seconds);

/* Seed for random tests: PT_SEED or a fresh one, printed once. */
uint64_t pt_seed(void);
#define PT_SEED pt_seed()
/* Next random number of a stream whose state is any 64-bit word. */
uint64_t pt_random(uint64_t *state);
/* Random number in [0, below). */
static inline uint64_t pt_below(uint64_t *state, uint64_t below)
{
    return pt_random(state) % below;
}

unsigned pt_failures(void); /* of the running program so far */

/* For harnesses on top: name what runs and hear of failures; name this thread in its failures. */
void pt_name_run(const char *name, void (*on_failure)(void));
void pt_name_thread(const char *name);

bool pt_expect(const char *file, int line, bool ok, const char *what);
bool pt_eq_int(const char *file, int line, int64_t a, int64_t b, const char *at, const char *bt);
bool pt_eq_u64(const char *file, int line, uint64_t a, uint64_t b, const char *at, const char *bt);
bool pt_eq_ptr(const char *file, int line, const void *a, const void *b, const char *at,
               const char *bt);
bool pt_eq_str(const char *file, int line, const char *a, const char *b, const char *at,
               const char *bt);
bool pt_has(const char *file, int line, const char *haystack, const char *needle, const char *ht);
bool pt_filled(const char *file, int line, const void *p, size_t n, unsigned char byte,
               const char *pt);
void pt_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void pt_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
