/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device code against a communicator made by hand (fake.h): on one GPU, or with GIN_EMULATE by
 * threads of this process. Every test runs for every kind of group, with and without an engine.
 * Arguments choose tests by a part of their names.
 */
#include <signal.h>

#include "tests/gpu/device/data.h"
#include "tests/gpu/device/engine.h"
#include "tests/gpu/device/everybody.h"
#include "tests/gpu/device/rest.h"
#include "tests/gpu/device/fake_engine.h"

#define THREADS 80u /* two and a half warps */

enum { NEEDS_ENGINE = 1, WITHOUT_ENGINE = 2 };

#define TESTS(X)              \
    X(put_get, 0)             \
    X(values, 0)              \
    X(words, 0)               \
    X(signals, 0)             \
    X(crowd, 0)               \
    X(sets, 0)                \
    X(shadows, 0)             \
    X(counters, 0)            \
    X(amos, 0)                \
    X(barriers, 0)            \
    X(everybody, 0)           \
    X(refusals, 0)            \
    X(bindings, 0)            \
    X(places, 0)              \
    X(far, NEEDS_ENGINE)      \
    X(behind, NEEDS_ENGINE)   \
    X(narrow, NEEDS_ENGINE)   \
    X(large, NEEDS_ENGINE)    \
    X(cpu_rank, NEEDS_ENGINE) \
    X(flood, NEEDS_ENGINE)    \
    X(failure, NEEDS_ENGINE)  \
    X(stuck, NEEDS_ENGINE)    \
    X(nobody, 0)              \
    X(stalled, NEEDS_ENGINE)  \
    X(moving, NEEDS_ENGINE)   \
    X(error, 0)

#define TEST_NUMBER(name, needs) NUMBER_##name,
enum { TESTS(TEST_NUMBER) NUMBER_OF_TESTS };

static const struct {
    const char *name;
    int needs;
} tests[] = {
#define TEST_ENTRY(name, needs) {#name, needs},
    TESTS(TEST_ENTRY)};

static const struct {
    const char *name;
    gin_group_t grp;
} groups[] = {{"thread", {GIN_GROUP_THREAD, 0}},    {"warp", {GIN_GROUP_WARP, 0}},
              {"block", {GIN_GROUP_BLOCK, 0}},      {"tile", {GIN_GROUP_TILE, 8}},
              {"lanes", {GIN_GROUP_LANES, 0x50f1}}, {"span", {GIN_GROUP_WARP_SPAN, 0x50201}}};

#ifdef __CUDA_ARCH__

/* One group of the block takes part: of the thread, tile and lanes kinds the last that exists. */
DEVICE int is_mine(gin_group_t grp)
{
    uint32_t t = gin_i_thread_in_block();
    switch (grp.kind) {
    case GIN_GROUP_THREAD: return t == THREADS - 1;
    case GIN_GROUP_WARP: return t / 32 == 2;
    case GIN_GROUP_TILE: return t / 8 == 9;
    case GIN_GROUP_LANES: return t / 32 == 2 && (grp.arg >> t % 32 & 1);
    case GIN_GROUP_WARP_SPAN: return t / 32 >= 1;
    default: return 1;
    }
}

DEVICE void run_test(const struct launch *l)
{
    struct env env, *e = &env;
    if (!is_mine(l->grp))
        return;
    e->l = l;
    e->grp = l->grp;
    e->n = l->n;
    e->rings = l->rings;
    CHECK_OK(gin_open(&l->dev, 0, &e->g));
    CHECK(gin_i_group_make(l->grp, &e->q), 1);
    e->rank = e->g.rank;
    e->right = (e->rank + 1) % e->n;
    e->left = (e->rank + e->n - 1) % e->n;
    e->world = gin_world(&e->g);
    switch (l->test) {
#define TEST_CASE(name, needs) \
    case NUMBER_##name: test_##name(e); break;
        TESTS(TEST_CASE)
    default: break;
    }
}

#endif

#ifdef GIN_EMULATE
static void entry(void *l)
{
    run_test((const struct launch *)l);
}
#else
__global__ void entry(const struct launch *l)
{
#ifdef __CUDA_ARCH__
    run_test(l);
#endif
}
#endif

/* The host's part of test_error. */
static void raise_error(struct fake *f, uint64_t *seen)
{
    while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != (uint64_t)f->n)
        usleep(1000);
    usleep(5000);
    for (int r = 0; r < f->n; r++)
        __atomic_store_n(f->rank[r].error, (uint32_t)GIN_EPEER | (uint64_t)1 << 32,
                         __ATOMIC_RELEASE);
}

static void clear_error(struct fake *f)
{
    for (int r = 0; r < f->n; r++)
        *f->rank[r].error = 0;
}

/* All ranks at once; the verdicts add up. */
static void launch_all(struct fake *f, struct launch *l)
{
    uint64_t *seen = (uint64_t *)bed_host_alloc(64);
    struct launch *each = (struct launch *)bed_host_alloc(FAKE_MAX * sizeof(*each));
#ifdef GIN_EMULATE
    struct emu_launch launched[FAKE_MAX];
    struct emu_dim dim = {20, 2, 2};
#else
    static cudaStream_t streams[FAKE_MAX];
    dim3 dim(20, 2, 2);
#endif
    for (int r = 0; r < f->n; r++) {
        each[r] = *l;
        each[r].dev = f->rank[r].dev;
        each[r].error_seen = seen;
        each[r].hold = f->hold;
#ifdef GIN_EMULATE
        launched[r] = emu_launch_block(dim, entry, &each[r]);
#else
        if (streams[r] == NULL)
            BED_DO(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
        entry<<<1, dim, 0, streams[r]>>>(&each[r]);
        BED_DO(cudaGetLastError());
#endif
    }
    if (l->test == NUMBER_error)
        raise_error(f, seen);
    for (int r = 0; r < f->n; r++)
#ifdef GIN_EMULATE
        emu_join(&launched[r]);
#else
        BED_DO(cudaStreamSynchronize(streams[r]));
#endif
    clear_error(f);
}

static char running[120];

static void on_alarm(int sig)
{
    (void)sig;
    ssize_t n = write(2, running, strlen(running));
    _exit(n > 0 ? 1 : 2);
}

static int run_one(struct fake *f, int test, unsigned group, int rings)
{
    struct launch l;
    memset(&l, 0, sizeof(l));
    l.grp = groups[group].grp;
    l.test = test;
    l.n = f->n;
    l.list = (int32_t)GIN_I_LISTS * 3 + FAKE_LIST;
    l.rings = rings;
    l.multicast = f->multicast;
    l.lsa = f->rank[0].dc.lsa.size;
    l.verdict = (struct verdict *)bed_host_alloc(sizeof(*l.verdict));
    snprintf(running, sizeof(running), "%s, %s group, %d ranks, %s: hangs\n", tests[test].name,
             groups[group].name, f->n, rings ? "engine" : "no engine");
    signal(SIGALRM, on_alarm);
    alarm(getenv("PT_TIMEOUT") != NULL ? (unsigned)atoi(getenv("PT_TIMEOUT")) : 120);
    launch_all(f, &l);
    if (l.verdict->fails == 0)
        return 0;
    printf("FAIL %s, %s group, %d ranks, %s: %u checks, first in line %u of its file, thread %u: "
           "%#llx, wanted %#llx\n",
           tests[test].name, groups[group].name, f->n, rings ? "engine" : "no engine",
           l.verdict->fails, l.verdict->line, l.verdict->thread, (unsigned long long)l.verdict->got,
           (unsigned long long)l.verdict->want);
    return 1;
}

/* One communicator; tests that end it with an error come last. */
static int run_all(int n, int rings, int shortcut, int multicast, int argc, char **argv)
{
    struct fake *f = fake_up(n, rings, shortcut, multicast);
    pthread_t engine;
    int failed = 0;
    if (pthread_create(&engine, NULL, engine_run, f) != 0)
        return 1;
    for (int t = 0; t < NUMBER_OF_TESTS; t++)
        for (unsigned group = 0; group < sizeof(groups) / sizeof(groups[0]); group++) {
            int wanted = argc < 2;
            for (int i = 1; i < argc; i++)
                wanted |= strstr(tests[t].name, argv[i]) != NULL;
            if (wanted && (rings || !(tests[t].needs & NEEDS_ENGINE)) &&
                (t != NUMBER_error || group == 0 || group == 2))
                failed += run_one(f, t, group, rings);
        }
    __atomic_store_n(&f->stop, 1, __ATOMIC_RELEASE);
    pthread_join(engine, NULL);
    return failed;
}

int main(int argc, char **argv)
{
#ifndef GIN_EMULATE
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU here: not tried\n");
        return 77;
    }
#endif
    int failed = run_all(1, 0, 1, 0, argc, argv);
    failed += run_all(2, 1, 1, 1, argc, argv);
    failed += run_all(3, 1, 0, 0, argc, argv);
    printf("%s\n", failed ? "FAILED" : "all passed");
    return failed != 0;
}
