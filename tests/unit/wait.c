/* SPDX-License-Identifier: BSD-3-Clause */
/* The waiting loop: deadlines, checks, the dump, warnings, and many ranks on few cores. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "base/wait.h"
#include "tests/pt.h"

#define MS 1000000u

TEST(ends_at_the_deadline)
{
    static const uint32_t spins[] = {0, 1, 3, 4, 1023, 1024, 5000, 1000000000};
    for (size_t i = 0; i < sizeof(spins) / sizeof(spins[0]); i++) {
        struct gi_wait w;
        int st = GIN_OK;
        uint64_t began = gi_now_ns();
        gi_wait_begin(&w, spins[i], began + 20 * MS, NULL, NULL, "nothing");
        while (st == GIN_OK)
            st = gi_wait_step(&w);
        gi_wait_end(&w);
        uint64_t took = gi_now_ns() - began;
        EXPECT_EQ_INT(st, GIN_ETIMEDOUT);
        EXPECT(took >= 20 * MS);
        EXPECT(took < 30000ull * MS);
    }
}

TEST(a_deadline_that_has_passed_ends_at_once)
{
    struct gi_wait w;
    gi_wait_begin(&w, 0, gi_now_ns(), NULL, NULL, "nothing");
    EXPECT_EQ_INT(gi_wait_step(&w), GIN_ETIMEDOUT);
    gi_wait_end(&w);
    gi_wait_begin(&w, 0, 0, NULL, NULL, "nothing");
    EXPECT_EQ_INT(gi_wait_step(&w), GIN_ETIMEDOUT);
    gi_wait_end(&w);
}

struct counts {
    int checks, steps;
};

static int third_time(void *arg)
{
    struct counts *c = arg;
    return ++c->checks == 3 ? GIN_EPEER : GIN_OK;
}

static void count_step(void *arg)
{
    struct counts *c = arg;
    c->steps++;
}

TEST(check_ends_the_wait_and_is_called_rarely)
{
    struct counts c = {0, 0};
    struct gi_wait w;
    int st = GIN_OK, steps = 0;
    uint64_t began = gi_now_ns();
    gi_wait_begin(&w, 100, GI_NEVER, third_time, &c, "a dead peer");
    w.progress = count_step;
    while (st == GIN_OK) {
        st = gi_wait_step(&w);
        steps++;
    }
    gi_wait_end(&w);
    EXPECT_EQ_INT(st, GIN_EPEER);
    EXPECT_EQ_INT(c.checks, 3);
    EXPECT_EQ_INT(c.steps, steps);
    EXPECT(gi_now_ns() - began >= 3 * 150000u);
}

struct waiter {
    int stop, up;
};

static void *wait_until_stopped(void *arg)
{
    struct waiter *t = arg;
    struct gi_wait outer, inner;
    gi_log_set_rank(5);
    gi_wait_begin(&outer, 0, GI_NEVER, NULL, NULL, "signal of context");
    outer.detail[0] = 3;
    outer.detail[1] = 12;
    gi_wait_step(&outer);
    gi_wait_begin(&inner, 0, GI_NEVER, NULL, NULL, "inner # of #");
    inner.detail[1] = 7;
    while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) {
        gi_wait_step(&inner);
        __atomic_store_n(&t->up, 1, __ATOMIC_RELEASE);
    }
    gi_wait_end(&inner);
    gi_wait_end(&outer);
    return NULL;
}

static void dump(char *text, size_t n)
{
    int fds[2];
    EXPECT_EQ_INT(pipe(fds), 0);
    gi_wait_dump(fds[1]);
    close(fds[1]);
    ssize_t got = 0, r;
    while ((r = read(fds[0], text + got, n - 1 - (size_t)got)) > 0)
        got += r;
    text[got] = 0;
    close(fds[0]);
}

TEST(dump_shows_waits_in_progress)
{
    char text[4096];
    for (int round = 0; round < 3; round++) {
        struct waiter t = {0, 0};
        pthread_t thread;
        EXPECT_EQ_INT(pthread_create(&thread, NULL, wait_until_stopped, &t), 0);
        while (!__atomic_load_n(&t.up, __ATOMIC_ACQUIRE))
            gi_os_yield();
        dump(text, sizeof(text));
        EXPECT_HAS(text, "ginshmem[5] waits 0.");
        EXPECT_HAS(text, " s for signal of context (3, 12)\n");
        EXPECT_HAS(text, " s for inner 0 of 7\n");
        __atomic_store_n(&t.stop, 1, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        dump(text, sizeof(text));
        EXPECT_EQ_STR(text, "ginshmem: no thread waits\n");
    }
}

static int stop_all;
static const char *const names[] = {"a short wait", "another short wait"};

static void *many_short_waits(void *arg)
{
    for (unsigned n = 0; !__atomic_load_n(&stop_all, __ATOMIC_RELAXED); n++) {
        struct gi_wait w;
        gi_wait_begin(&w, 0, GI_NEVER, NULL, NULL, names[n % 2]);
        w.detail[n % 3] = (uintptr_t)arg;
        for (int i = 0; i < 20; i++)
            gi_wait_step(&w);
        gi_wait_end(&w);
    }
    return NULL;
}

TEST(dump_while_waits_come_and_go)
{
    enum { N = 4 };
    pthread_t thread[N];
    static char text[65536];
    for (uintptr_t i = 0; i < N; i++)
        EXPECT_EQ_INT(pthread_create(&thread[i], NULL, many_short_waits, (void *)(i + 1)), 0);
    for (int i = 0; i < 300; i++) {
        dump(text, sizeof(text));
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            if (strcmp(line, "ginshmem: no thread waits") != 0)
                EXPECT_HAS(line, "short wait (");
    }
    __atomic_store_n(&stop_all, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < N; i++)
        pthread_join(thread[i], NULL);
}

/* A child of its own, since the file of the log is opened once per process. */
TEST(long_waits_warn_at_every_doubling)
{
    char path[] = "wait-warn-XXXXXX", text[4096];
    int fd = mkstemp(path);
    pid_t child = fork();
    if (child == 0) {
        struct gi_wait w;
        int st = gi_log_setup("warn", path, 2);
        gi_log_set_rank(2);
        gi_wait_set_warn(20 * MS);
        gi_wait_begin(&w, 0, gi_now_ns() + 700 * MS, NULL, NULL, "a peer");
        while (st == GIN_OK)
            st = gi_wait_step(&w);
        gi_wait_end(&w);
        _exit(st != GIN_ETIMEDOUT);
    }
    int status;
    EXPECT_EQ_INT(waitpid(child, &status, 0), child);
    EXPECT_EQ_INT(status, 0);
    EXPECT(gi_os_read_file(path, text, sizeof(text)) > 0);
    unlink(path);
    close(fd);
    EXPECT_HAS(text, "ginshmem[2] WARN wait: 0.");
    EXPECT_HAS(text, " s for a peer");
    int lines = 0;
    for (char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    EXPECT(lines >= 1 && lines <= 6); /* at 20, 40, 80, 160, 320 and 640 ms */
}

#define RANKS    8
#define BARRIERS 1000

struct shared {
    uint64_t arrived;
    uint64_t released;
};

static int barriers(struct shared *s, uint32_t spin)
{
    for (uint64_t turn = 1; turn <= BARRIERS; turn++) {
        struct gi_wait w;
        int st = GIN_OK;
        if (__atomic_add_fetch(&s->arrived, 1, __ATOMIC_ACQ_REL) == turn * RANKS)
            __atomic_store_n(&s->released, turn, __ATOMIC_RELEASE);
        gi_wait_begin(&w, spin, gi_deadline_in(20000ull * MS), NULL, NULL, "barrier");
        while (st == GIN_OK && __atomic_load_n(&s->released, __ATOMIC_ACQUIRE) < turn)
            st = gi_wait_step(&w);
        gi_wait_end(&w);
        if (st != GIN_OK)
            return st;
    }
    return GIN_OK;
}

/* The bound is generous for loaded and instrumented machines; a plain spin loop takes minutes. */
TEST(more_ranks_than_cores)
{
    struct shared *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint32_t spin = gi_wait_default_spin(RANKS, gi_os_cores());
    uint64_t began = gi_now_ns();
    pid_t child[RANKS];
    for (int r = 0; r < RANKS; r++) {
        child[r] = fork();
        if (child[r] == 0)
            _exit(barriers(s, spin) != GIN_OK);
    }
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        EXPECT_EQ_INT(waitpid(child[r], &status, 0), child[r]);
        EXPECT_EQ_INT(status, 0);
    }
    uint64_t took = gi_now_ns() - began;
    printf("%d barriers of %d ranks: %.1f ms\n", BARRIERS, RANKS, (double)took / 1e6);
    EXPECT(took < 30000ull * MS);
    munmap(s, sizeof(*s));
}
