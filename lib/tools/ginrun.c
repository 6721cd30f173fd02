/* SPDX-License-Identifier: BSD-3-Clause */
/* ginrun(1): options and the loop. One thread, one epoll; nothing in it waits for one rank. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include "tools/ginrun.h"

#define EVENTS      64
#define STATES_TOLD 16         /* ranks described when time is over */
#define TELLING_NS  500000000u /* for them to say what they wait for */

static const char usage[] =
    "usage: ginrun -n N [options] program [argument ...]\n"
    "  -n, --ranks N        start N ranks, at most 1024\n"
    "  -H, --hosts H        pretend that they are on H hosts, in equal blocks\n"
    "  -N, --netns          give each of those hosts its own network (root only)\n"
    "  -k, --keep-going     a rank that fails does not end the others\n"
    "  -l, --label          put \"[rank] \" in front of every line of output\n"
    "  -t, --timeout TIME   end the job after TIME (90, 1.5s, 500ms), with status 124\n"
    "  -x, --set NAME=VALUE set a variable in the ranks' environment\n"
    "  -h, --help           print this\n"
    "  -V, --version        print the version\n"
    "The status is that of the first rank that failed, 128 + signal if a signal killed it.\n";

void run_say(const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n = snprintf(text, sizeof(text), "ginrun: ");

    va_start(ap, fmt);
    n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
    va_end(ap);
    n = n < (int)sizeof(text) - 1 ? n : (int)sizeof(text) - 2;
    text[n++] = '\n';
    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        return; /* nobody to tell */
}

uint64_t run_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- options ---- */

__attribute__((noreturn, format(printf, 1, 2))) static void misuse(const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    run_say("%s; see ginrun --help", text);
    exit(RUN_USAGE);
}

static int count_of(const char *what, const char *text, int most)
{
    char *end;
    long v;

    errno = 0;
    v = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < 1 || v > most)
        misuse("%s: \"%s\" is not a number from 1 to %d", what, text, most);
    return (int)v;
}

static double seconds_of(const char *text)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text)
        v = 0;
    else if (strcmp(end, "ms") == 0)
        v /= 1e3;
    else if (*end != '\0' && strcmp(end, "s") != 0)
        v = 0;
    if (!(v > 0 && v <= 1e9))
        misuse("--timeout: \"%s\" is not a time above 0, such as 90, 1.5s or 500ms", text);
    return v;
}

static void check_assignment(const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        misuse("--set: \"%s\" is not NAME=VALUE", text);
}

static void parse(int argc, char **argv, struct run_options *o)
{
    static const struct option longs[] = {
        {"ranks", required_argument, NULL, 'n'}, {"hosts", required_argument, NULL, 'H'},
        {"netns", no_argument, NULL, 'N'},       {"keep-going", no_argument, NULL, 'k'},
        {"label", no_argument, NULL, 'l'},       {"timeout", required_argument, NULL, 't'},
        {"set", required_argument, NULL, 'x'},   {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},     {NULL, 0, NULL, 0}};
    int c, n_set = 0;

    if (argc == 1) {
        fputs(usage, stderr);
        exit(RUN_USAGE);
    }
    o->set = calloc((size_t)argc + 1, sizeof(*o->set));
    if (o->set == NULL)
        misuse("no memory");
    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:n:H:Nklt:x:hV", longs, NULL)) != -1) {
        switch (c) {
        case 'n': o->ranks = count_of("--ranks", optarg, RUN_MAX_RANKS); break;
        case 'H': o->hosts = count_of("--hosts", optarg, RUN_MAX_RANKS); break;
        case 'N': o->netns = true; break;
        case 'k': o->keep_going = true; break;
        case 'l': o->label = true; break;
        case 't': o->timeout = seconds_of(optarg); break;
        case 'x':
            check_assignment(optarg);
            o->set[n_set++] = optarg;
            break;
        case 'h': fputs(usage, stdout); exit(0);
        case 'V': puts("ginrun " PACKAGE_VERSION); exit(0);
        case ':': misuse("%s needs a value", argv[optind - 1]);
        default: misuse("unknown option %s", argv[optind - 1]);
        }
    }
    o->argv = argv + optind;
    if (o->ranks == 0)
        misuse("say how many ranks to start: -n N");
    if (o->hosts > o->ranks)
        misuse("%d hosts for %d ranks: a host needs a rank", o->hosts, o->ranks);
    if (o->netns && (o->hosts == 0 || o->hosts > RUN_MAX_NETNS))
        misuse("--netns makes networks for the hosts of --hosts H, H from 1 to %d", RUN_MAX_NETNS);
    if (o->argv[0] == NULL)
        misuse("no program given");
}

/* ---- the loop ---- */

static struct epoll_event event_of(enum run_event kind, int rank, uint32_t events)
{
    struct epoll_event e = {.events = events};
    e.data.u64 = (uint64_t)kind << 32 | (uint32_t)rank;
    return e;
}

bool run_watch(struct run_job *job, int fd, enum run_event kind, int rank, uint32_t events)
{
    struct epoll_event e = event_of(kind, rank, events);
    return epoll_ctl(job->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

void run_rewatch(struct run_job *job, int fd, enum run_event kind, int rank, uint32_t events)
{
    struct epoll_event e = event_of(kind, rank, events);
    epoll_ctl(job->epoll, EPOLL_CTL_MOD, fd, &e);
}

static bool open_loop(struct run_job *job)
{
    static const int signals[] = {SIGCHLD, SIGCONT, SIGHUP,  SIGINT, SIGQUIT,
                                  SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, as some parents leave it, it would hide statuses */
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    job->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    job->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (job->signals >= 0 && job->epoll >= 0 && run_watch(job, job->signals, EV_SIGNAL, 0, EPOLLIN))
        return true;
    run_say("%s", strerror(errno));
    return false;
}

/* A second wish to end is not to be waited for. */
static void on_signal(struct run_job *job, int sig)
{
    static int wishes;

    switch (sig) {
    case SIGCHLD: run_reap(job); return;
    case SIGINT:
    case SIGTERM:
    case SIGQUIT:
    case SIGHUP:
        run_signal_all(job, sig);
        wishes++;
        if (wishes == 2)
            run_end(job, 128 + sig);
        else if (wishes > 2)
            run_kill(job);
        return;
    case SIGTSTP:
        run_signal_all(job, SIGTSTP);
        raise(SIGSTOP);
        return;
    default: run_signal_all(job, sig); return;
    }
}

static void on_signals(struct run_job *job)
{
    struct signalfd_siginfo info;

    while (read(job->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        on_signal(job, (int)info.ssi_signo);
}

static void dispatch(struct run_job *job, const struct epoll_event *e)
{
    int rank = (int)(e->data.u64 & 0xffffffff);

    switch ((enum run_event)(e->data.u64 >> 32)) {
    case EV_SIGNAL: on_signals(job); break;
    case EV_PMI: run_pmi_event(job, rank, e->events); break;
    case EV_STDOUT: run_io_event(job, rank, 0); break;
    case EV_STDERR: run_io_event(job, rank, 1); break;
    case EV_STDIN: run_feed_read(job); break;
    case EV_FEED: run_feed_write(job); break;
    case EV_EXEC: run_exec_event(job); break;
    }
}

static void time_over(struct run_job *job)
{
    int told = 0;

    if (job->ending)
        return;
    run_say("the time limit of %g s is over; ending %d of %d ranks", job->opt.timeout, job->running,
            job->opt.ranks);
    for (int i = 0; i < job->opt.ranks && told < STATES_TOLD; i++) {
        const struct run_rank *r = &job->rank[i];
        if (r->state != RANK_RUNNING)
            continue;
        told++;
        run_say("  rank %d (process %d): %s, %u PMI barriers entered", i, (int)r->pid,
                !r->initialized ? "never spoke PMI"
                : r->in_barrier ? "waits in a PMI barrier"
                                : "runs",
                r->barriers);
    }
    if (run_ask_all(job) > 0)
        job->told_at = run_now_ns() + TELLING_NS;
    else
        run_end(job, RUN_TIMEOUT);
}

static uint64_t sooner(uint64_t at, uint64_t other)
{
    return other != 0 && other < at ? other : at;
}

/* Milliseconds until the next thing that time brings about; -1: nothing. */
static int next_in(const struct run_job *job)
{
    uint64_t now = run_now_ns(), at = UINT64_MAX;

    at = sooner(at, job->limit_at);
    at = sooner(at, job->told_at);
    at = sooner(at, job->kill_at);
    if (at == UINT64_MAX)
        return -1;
    if (at <= now)
        return 0;
    return at - now > 3600000000000u ? 3600000 : (int)((at - now + 999999) / 1000000);
}

static void on_time(struct run_job *job)
{
    uint64_t now = run_now_ns();

    if (job->limit_at != 0 && now >= job->limit_at) {
        job->limit_at = 0;
        time_over(job);
    }
    if (job->told_at != 0 && now >= job->told_at) {
        job->told_at = 0;
        run_end(job, RUN_TIMEOUT);
    }
    if (job->kill_at != 0 && now >= job->kill_at)
        run_kill(job);
}

static void loop(struct run_job *job)
{
    struct epoll_event events[EVENTS];

    while (job->running > 0) {
        int n = epoll_wait(job->epoll, events, EVENTS, next_in(job));
        for (int i = 0; i < n; i++)
            dispatch(job, &events[i]);
        on_time(job);
    }
}

/* A standard descriptor that is closed would become one of ours, and then a rank's. */
static void fill_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    struct run_job job = {.result = -1, .barrier_broken = -1, .feed = -1, .exec_errors = -1};
    int st;

    fill_standard_descriptors();
    parse(argc, argv, &job.opt);
    job.rank = calloc((size_t)job.opt.ranks, sizeof(*job.rank));
    if (job.rank == NULL) {
        run_say("no memory for %d ranks", job.opt.ranks);
        return RUN_FAILED;
    }
    run_place(&job);
    if (!open_loop(&job) || !run_net_open(&job))
        return RUN_FAILED;
    st = run_pmi_init(&job);
    if (st != 0)
        return st;
    if (job.opt.timeout > 0)
        job.limit_at = run_now_ns() + (uint64_t)(job.opt.timeout * 1e9);
    st = run_start(&job);
    loop(&job);
    run_pmi_free(&job);
    free(job.opt.set);
    free(job.rank);
    free(job.host);
    free(job.input.data);
    return job.result < 0 ? st : job.result;
}
