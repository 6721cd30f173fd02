/* SPDX-License-Identifier: BSD-3-Clause */
/* The harness for several ranks: main(), the children, their deadline. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/mp_shared.h"

#define MAX_RANKS 4096
#define GRACE     10 /* seconds that the others get once one rank has failed */

static struct mp_test *first, **last = &first;
static const char *only_ranks, *only_mode, *all_hosts, *left_out;
static unsigned deadline_s;
static bool long_mode;
static int slow = 1;
static struct mp_shared *current;
static pid_t pid[MAX_RANKS]; /* of the running test's children, 0 once reaped */
static sigset_t mask;        /* of signals, as this program was started with it */

void mp_register(struct mp_test *test)
{
    *last = test;
    last = &test->next;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A failed expectation in a child: its parent shortens the deadline. */
static void tell_parent(void)
{
    __atomic_store_n(&current->failed, 1, __ATOMIC_RELAXED);
}

static void set_environment(const char *list)
{
    char *copy = strdup(list != NULL ? list : ""), *save = NULL;
    for (char *p = strtok_r(copy, " ", &save); p != NULL; p = strtok_r(NULL, " ", &save)) {
        char *value = strchr(p, '=');
        if (value == NULL)
            continue;
        *value++ = 0;
        setenv(p, value, 1);
    }
    free(copy);
}

static void fill(struct mp *mp, struct mp_shared *s, const struct mp_test *t, int rank)
{
    const struct mp_opts *o = &t->opts;
    memset(mp, 0, sizeof(*mp));
    mp->rank = rank;
    mp->size = s->size;
    mp->threads = s->threads;
    mp->long_mode = long_mode;
    mp->slow = slow;
    mp->shared = s;
    mp->share = s->share;
    mp->common = pt_seed();
    mp->rng = pt_seed() ^ (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15u;
    const char *hosts = o->hosts != NULL ? o->hosts : all_hosts;
    if (hosts != NULL)
        snprintf(mp->host, sizeof(mp->host), "host-%c", hosts[(size_t)rank % strlen(hosts)]);
    mp_group(mp, &mp->all, &mp->config, s->size, rank, s->size);
    mp->config.heap_size = o->heap_size;
    mp->config.heap_max = o->heap_max;
}

struct thread_arg {
    struct mp_shared *shared;
    const struct mp_test *test;
    int rank;
    struct mp *mp;
};

static void *run_rank(void *arg)
{
    struct thread_arg *a = arg;
    struct mp *mp = a->mp = malloc(sizeof(*mp));
    char name[24];
    snprintf(name, sizeof(name), "rank %d", a->rank);
    pt_name_thread(name);
    fill(mp, a->shared, a->test, a->rank);
    mp_step(mp, "init");
    if (a->test->opts.bare || mp_up(mp)) {
        mp_step(mp, "body");
        a->test->body(mp);
    }
    mp_step(mp, "finalize after %s", a->shared->steps[a->rank]);
    if (mp->dev.magic != 0 && mp->comm != NULL)
        EXPECT_OK(gin_devcomm_destroy(mp->comm, &mp->dev));
    if (mp->comm != NULL)
        mp_down(mp);
    mp_step(mp, "done");
    free(mp);
    return NULL;
}

/* One process: all ranks in thread mode, else one. */
static int child(struct mp_shared *s, const struct mp_test *t, int rank)
{
    int n = s->threads ? s->size : 1;
    /* static: in a rank's own child, which has no other threads, leak checkers shall find them */
    static pthread_t *thread;
    static struct thread_arg *arg;
    thread = calloc((size_t)n, sizeof(*thread));
    arg = calloc((size_t)n, sizeof(*arg));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    set_environment(t->opts.env);
    for (int i = 0; i < n; i++)
        arg[i] = (struct thread_arg){s, t, s->threads ? i : rank, NULL};
    if (!s->threads)
        run_rank(&arg[0]);
    for (int i = 0; s->threads && i < n; i++)
        if (pthread_create(&thread[i], NULL, run_rank, &arg[i]) != 0) {
            FAIL("no thread for rank %d", i);
            exit(1);
        }
    for (int i = 0; s->threads && i < n; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    free(arg);
    return pt_failures() != 0 ? 1 : s->skipped ? 77 : 0;
}

static void show_steps(struct mp_shared *s)
{
    for (int r = 0; r < s->size; r++)
        fprintf(stderr, "  rank %d: %s\n", r, s->steps[r]);
}

/* How child i ended: true when that is all right. Of those killed at the deadline nothing is said.
 */
static bool judge(struct mp_shared *s, int i, int status, bool expired)
{
    char whom[32];
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77))
        return true;
    snprintf(whom, sizeof(whom), s->threads ? "ranks 0-%d" : "rank %d",
             s->threads ? s->size - 1 : i);
    if (!s->threads && s->may_die[i])
        return true;
    if (expired && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s: %s died of signal %d (%s); last steps:\n", s->name, whom,
                WTERMSIG(status), strsignal(WTERMSIG(status)));
        show_steps(s);
    } else {
        fprintf(stderr, "%s: %s ended with status %d\n", s->name, whom, WEXITSTATUS(status));
    }
    return false;
}

/* Wait for the children until the deadline; kills what is left then. */
static bool reap(struct mp_shared *s, int n, double seconds)
{
    double began = now(), until = began + seconds;
    bool ok = true, expired = false;
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    for (int left = n; left > 0;) {
        struct timespec wait = {0, 50000000};
        for (int i = 0; i < n; i++) {
            int status;
            if (pid[i] == 0 || waitpid(pid[i], &status, WNOHANG) != pid[i])
                continue;
            bool fine = judge(s, i, status, expired);
            pid[i] = 0;
            left--;
            ok = ok && (fine || expired);
            if (!fine && !expired)
                s->failed = 1;
            if (!fine)
                __atomic_store_n(&s->gone, 1, __ATOMIC_RELEASE);
        }
        if (left == 0)
            break;
        if (__atomic_load_n(&s->failed, __ATOMIC_RELAXED) && until > now() + GRACE * MP_FACTOR)
            until = now() + GRACE * MP_FACTOR;
        if (now() > until && !expired) {
            fprintf(stderr, "%s: DEADLINE after %.0f s; last steps:\n", s->name, now() - began);
            show_steps(s);
            ok = false;
            expired = true;
            for (int i = 0; i < n; i++)
                if (pid[i] != 0)
                    kill(pid[i], SIGKILL);
        }
        sigtimedwait(&chld, NULL, &wait);
    }
    return ok;
}

/* 0, 1, or 77. */
static int run(const struct mp_test *t, int size, bool threads)
{
    struct mp_shared *s = mp_shared_new(size);
    int n = threads ? 1 : size;
    double began = now();
    unsigned seconds =
        deadline_s ? deadline_s : (t->opts.deadline ? t->opts.deadline : 120) * MP_FACTOR;
    if (s == NULL) {
        fprintf(stderr, "no memory for a run of %d ranks\n", size);
        return 1;
    }
    snprintf(s->name, sizeof(s->name), "%s[%d %s]", t->name, size, threads ? "threads" : "procs");
    s->threads = threads;
    current = s;
    pt_name_run(s->name, tell_parent);
    fflush(NULL);
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            exit(child(s, t, i));
        if (pid[i] < 0) {
            fprintf(stderr, "%s: fork: %s\n", s->name, strerror(errno));
            s->failed = 1;
            pid[i] = 0;
            n = i;
        }
    }
    bool ok = reap(s, n, long_mode && !deadline_s ? 86400 : seconds) && !s->failed;
    if (!ok)
        printf("FAIL %s %.2f s\n", s->name, now() - began);
    else if (s->skipped)
        printf("SKIP %s: %s\n", s->name, s->why);
    else
        printf("ok %s %.2f s\n", s->name, now() - began);
    int result = !ok ? 1 : s->skipped ? 77 : 0;
    mp_shared_free(s);
    return result;
}

static int next_count(const char **list)
{
    char *end;
    while (**list == ' ' || **list == ',')
        ++*list;
    long n = strtol(*list, &end, 10);
    if (end == *list || n < 1 || n > MAX_RANKS)
        return 0;
    *list = end;
    return (int)n;
}

static bool has_count(const char *list, int n)
{
    int one;
    while ((one = next_count(&list)) != 0)
        if (one == n)
            return true;
    return false;
}

/* Is it one of the names in a list with commas between them, wholly? */
static bool listed(const char *name, const char *list)
{
    size_t n = strlen(name);
    for (const char *p = list; p != NULL && *p != 0; p = strchr(p, ','), p += p != NULL)
        if (strncmp(p, name, n) == 0 && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

static bool chosen(const char *name, int n, char **names)
{
    if (listed(name, left_out))
        return false;
    for (int i = 0; i < n; i++)
        if (strstr(name, names[i]) != NULL)
            return true;
    return n == 0;
}

static int usage(const char *program)
{
    fprintf(
        stderr,
        "usage: %s [-l] [-n LIST] [-m procs|threads] [-s SEED] [-t SECONDS] [-L]\n"
        "          [-H HOSTS] [-X NAME,...] [-f FACTOR] [NAME...]\n"
        "  -l list   -n counts of ranks   -s seed   -t deadline   -L long mode\n"
        "  -H AAB: rank r is on the r-th host, where a test does not say; -n leaves counts out then\n"
        "  -X leave out   -f so many times fewer rounds\n",
        program);
    return 2;
}

static void list_tests(void)
{
    static const char *const mode[] = {"procs threads", "procs", "threads"};
    for (struct mp_test *t = first; t != NULL; t = t->next)
        printf("%s: %s ranks; %s\n", t->name, t->opts.ranks ? t->opts.ranks : MP_DEFAULT_RANKS,
               mode[t->opts.only]);
}

int main(int argc, char **argv)
{
    int c, n_run = 0, n_skipped = 0, n_failed = 0;
    const char *seconds = getenv("PT_TIMEOUT");
    sigset_t chld;
    if (seconds != NULL && atoi(seconds) > 0)
        deadline_s = (unsigned)atoi(seconds);
    while ((c = getopt(argc, argv, "ln:m:s:t:LH:X:f:")) != -1) {
        switch (c) {
        case 'l': list_tests(); return 0;
        case 'n': only_ranks = optarg; break;
        case 'm': only_mode = optarg; break;
        case 's': setenv("PT_SEED", optarg, 1); break;
        case 't': deadline_s = (unsigned)atoi(optarg); break;
        case 'L': long_mode = true; break;
        case 'H': all_hosts = *optarg != 0 ? optarg : NULL; break;
        case 'X': left_out = optarg; break;
        case 'f': slow = atoi(optarg) > 0 ? atoi(optarg) : 1; break;
        default: return usage(argv[0]);
        }
    }
    if (only_mode != NULL && strcmp(only_mode, "procs") != 0 && strcmp(only_mode, "threads") != 0)
        return usage(argv[0]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, &mask); /* for sigtimedwait() */
    pt_seed();
    for (struct mp_test *t = first; t != NULL; t = t->next) {
        const char *counts = only_ranks && !all_hosts ? only_ranks : t->opts.ranks;
        int n;
        if (!chosen(t->name, argc - optind, argv + optind))
            continue;
        if (counts == NULL)
            counts = MP_DEFAULT_RANKS;
        while ((n = next_count(&counts)) != 0)
            for (int threads = 0; threads < 2; threads++) {
                if (all_hosts != NULL && only_ranks != NULL && !has_count(only_ranks, n))
                    continue;
                if (t->opts.only != MP_BOTH && (t->opts.only == MP_THREADS) != threads)
                    continue;
                if (only_mode != NULL && (only_mode[0] == 't') != threads)
                    continue;
                int r = run(t, n, threads);
                n_run++;
                n_skipped += r == 77;
                n_failed += r == 1;
            }
    }
    if (n_run == 0)
        fprintf(stderr, "no test of that name\n");
    if (n_failed != 0)
        printf("%d of %d runs failed\n", n_failed, n_run);
    return n_failed != 0 || n_run == 0 ? 1 : n_skipped == n_run ? 77 : 0;
}
