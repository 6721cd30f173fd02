/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checked build of kernels: what a caller gets wrong ends in a trap behind one line that says
 * what it was. Each case runs in a process of its own, since a trap is the end of a context; on one
 * GPU, or with GIN_EMULATE by threads. Arguments choose cases by a part of their names.
 */
#define GIN_KERNEL_CHECK 1
#include "tests/gpu/device/fake.h"

#include <sys/wait.h>

#define THREADS 64u
#define TRAPPED 44
#define HERE    "t_check.cu:"

/* name, what the line says ("": there must be none) */
#define CASES(X)                                                                        \
    X(good, "")                                                                         \
    X(no_path, "")                                                                      \
    X(not_yet, "")                                                                      \
    X(peer, "gin_put: peer 9 is not in its team of 4 ranks (GIN_ERANGE); rank 0, ")     \
    X(team, "gin_signal: peer 0 is not in its team of 0 ranks (GIN_EINVAL)")            \
    X(signal, "gin_put: signal 16 of 16 (GIN_ERANGE)")                                  \
    X(bounds, "gin_put: bytes 131064 .. + 16 lie outside their window of 131072 bytes") \
    X(source, "gin_put_value: bytes 131072 .. + 8 lie outside their window")            \
    X(get, "gin_get: local memory at NULL, 8 bytes (GIN_EINVAL)")                       \
    X(window, "gin_get: window 0x1000000009 is not live, offset 24 (GIN_ESTATE)")       \
    X(aligned, "gin_amo_add: the word at offset 12 is not aligned to 8 bytes")          \
    X(aligned32, "gin_amo_fetch32: the word at offset 6 is not aligned to 4 bytes")     \
    X(word, "gin_wait_signal_at: the word at offset 4 is not aligned to 8 bytes")       \
    X(action, "gin_signal: the word at offset 20 is not aligned to 8 bytes")            \
    X(group, "gin_quiet: no such group here")                                           \
    X(counter, "gin_wait_counter: counter 8 of 8 (GIN_ERANGE)")                         \
    X(local, "gin_put_x: counter 77 of 8 (GIN_ERANGE)")                                 \
    X(read_only, "a window that is read-only there")                                    \
    X(barrier, "gin_barrier: barrier of kind 0, index 4: ")                             \
    X(wait, "gin_wait_signal: signal 16 of 16 (GIN_ERANGE)")                            \
    X(read, "gin_read_signal: signal 99 of 16 (GIN_ERANGE)")                            \
    X(open, "gin_open: context 2 of 2, ")                                               \
    X(all, "gin_put: needs one context, not GIN_ALL_CONTEXTS (GIN_EINVAL)")             \
    X(pointer, "gin_local_ptr: bytes 131073 .. + 0 lie outside their window")

#define CASE_NUMBER(name, text) CASE_##name,
enum { CASES(CASE_NUMBER) N_CASES };
static const struct {
    const char *name, *text;
} cases[] = {
#define CASE_ENTRY(name, text) {#name, text},
    CASES(CASE_ENTRY)};

struct args {
    gin_devcomm_t dev;
    int which;
};

#ifdef __CUDA_ARCH__

GIN_DEV gin_at_t heap(uint64_t off)
{
    return gin_at(fake_window(FAKE_HEAP), off);
}

GIN_DEV void data(const gin_t *g, int which)
{
    const gin_group_t grp = gin_block();
    const gin_team_t w = gin_world(g);
    const gin_action_t no = gin_no_action();
    const gin_op_opt_t opt = {{1, 77}, 0, 0, 0, 0};
    switch (which) {
    case CASE_peer: gin_put(g, grp, w, 9, heap(0), heap(8), 8, no); break;
    case CASE_team: gin_signal(g, gin_warp(), gin_team_invalid(), 0, gin_weak_inc(0)); break;
    case CASE_signal: gin_put(g, grp, w, 1, heap(0), heap(8), 8, gin_weak_inc(16)); break;
    case CASE_bounds: gin_put(g, grp, w, 1, heap(FAKE_USER - 8), heap(0), 16, no); break;
    case CASE_source: gin_put_value(g, grp, w, 1, heap(FAKE_USER), 1, 8, no); break;
    case CASE_get: gin_get(g, grp, w, 1, heap(0), gin_at_local(NULL), 8); break;
    case CASE_window: gin_get(g, grp, w, 1, gin_at(fake_window(9), 24), heap(0), 8); break;
    case CASE_action: gin_signal(g, grp, w, 1, gin_set_at(heap(20), 1)); break;
    case CASE_local: gin_put_x(g, grp, w, 1, heap(0), heap(8), 8, no, &opt); break;
    case CASE_read_only:
        gin_put(g, grp, w, 1, gin_at(fake_window(FAKE_READ_ONLY), 0), heap(8), 8, no);
        break;
    default: break;
    }
}

GIN_DEV void rest(const gin_t *g, int which, const gin_devcomm_t *dev)
{
    const gin_group_t grp = gin_block();
    const gin_team_t w = gin_world(g);
    uint32_t old;
    gin_t other;
    switch (which) {
    case CASE_good:
        gin_put(g, grp, w, 1, heap(0), heap(8), 8, gin_weak_inc(3));
        gin_quiet(g, grp);
        break;
    case CASE_no_path: gin_peer_ptr(g, w, w.size - 1, heap(0)); break;
    case CASE_not_yet: gin_test_signal(g, grp, 0, 5); break;
    case CASE_aligned: gin_amo_add(g, grp, w, 1, heap(12), 1); break;
    case CASE_aligned32: gin_amo_fetch32(g, grp, w, 1, heap(6), &old); break;
    case CASE_word: gin_wait_signal_at(g, grp, heap(4), 1, NULL); break;
    case CASE_group: gin_quiet(g, gin_tile(3)); break;
    case CASE_counter: gin_wait_counter(g, grp, FAKE_COUNTERS, 1); break;
    case CASE_barrier:
        gin_barrier(g, grp, gin_barrier_world(), FAKE_BARRIERS, GIN_ORDER_ACQ_REL, GIN_FENCE_ALL);
        break;
    case CASE_wait: gin_wait_signal(g, grp, FAKE_SIGNALS, 1); break;
    case CASE_read: gin_read_signal(g, 99); break;
    case CASE_open: gin_open(dev, FAKE_CONTEXTS, &other); break;
    case CASE_all:
        gin_open(dev, GIN_ALL_CONTEXTS, &other);
        gin_put(&other, grp, w, 1, heap(0), heap(8), 8, gin_no_action());
        break;
    case CASE_pointer: gin_local_ptr(g, heap(FAKE_USER + 1)); break;
    default: break;
    }
}

GIN_DEV void run_case(const struct args *a)
{
    gin_t g;
    if (gin_i_thread_in_block() != 0 && a->which >= CASE_read)
        return; /* calls without a group */
    gin_open(&a->dev, 0, &g);
    data(&g, a->which);
    rest(&g, a->which, &a->dev);
}

#endif

#ifdef GIN_EMULATE
static void entry(void *a)
{
    run_case((const struct args *)a);
}
#else
__global__ void entry(struct args a)
{
#ifdef __CUDA_ARCH__
    run_case(&a);
#endif
}
#endif

/* In a process of its own: the exit status says how it ended. */
static int child(int which)
{
    alarm(60);
#ifndef GIN_EMULATE
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
        return 77;
#endif
    struct fake *f = fake_up(2, 0, 1, 0);
    struct args a;
    a.dev = f->rank[0].dev;
    a.which = which;
#ifdef GIN_EMULATE
    struct emu_dim dim = {THREADS, 1, 1};
    struct emu_launch l = emu_launch_block(dim, entry, &a);
    emu_join(&l);
    return 0;
#else
    entry<<<1, THREADS>>>(a);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : TRAPPED;
#endif
}

static int run_one(int which)
{
    char text[8192];
    size_t n = 0;
    ssize_t got;
    int fds[2], status, lines = 0;
    fflush(NULL);
    if (pipe(fds) != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        int st = child(which);
        fflush(NULL);
        _exit(st);
    }
    close(fds[1]);
    while (n < sizeof(text) - 1 && (got = read(fds[0], text + n, sizeof(text) - 1 - n)) > 0)
        n += (size_t)got;
    close(fds[0]);
    text[n] = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return printf("FAIL %s: the process died\n", cases[which].name), 1;
    if (WEXITSTATUS(status) == 77)
        return 77;
    for (const char *s = text; (s = strstr(s, "ginshmem: ")) != NULL; s++)
        lines++;
    int trap = cases[which].text[0] != 0;
    if (WEXITSTATUS(status) != (trap ? TRAPPED : 0) || (trap ? lines < 1 : lines != 0) ||
        strstr(text, cases[which].text) == NULL || (trap && strstr(text, HERE) == NULL) ||
        (lines > 1 && which != CASE_group && which != CASE_team)) /* every warp for itself */
        return printf("FAIL %s: status %d, %d lines, want \"%s\":\n%s", cases[which].name,
                      WEXITSTATUS(status), lines, cases[which].text, text),
               1;
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0, ran = 0;
    for (int i = 0; i < N_CASES; i++) {
        int wanted = argc < 2;
        for (int k = 1; k < argc; k++)
            wanted |= strstr(cases[i].name, argv[k]) != NULL;
        if (!wanted)
            continue;
        int st = run_one(i);
        if (st == 77) {
            printf("SKIP: no GPU here\n");
            return 77;
        }
        failed += st;
        ran++;
    }
    printf("%d cases, %d failed\n", ran, failed);
    return failed != 0 || ran == 0;
}
