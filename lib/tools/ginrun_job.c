/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks as processes. Every rank leads a process group of its own, so that what it starts can
 * be reached with it, a shell's children above all; a terminal's ^C therefore comes to ginrun alone
 * and is passed on like any other signal. Ranks die with ginrun.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/ginrun.h"

#define GRACE_NS 2000000000u /* between TERM and KILL */

/* What a rank's process needs to know of its maker. */
struct birth {
    struct run_job *job;
    int rank, pmi, errors;
    int out[2]; /* write ends for labelled output, -1: inherit */
    int input;  /* read end of what ginrun reads for rank 0, -1: inherit */
    pid_t maker;
    struct rlimit files;
};

struct exec_error {
    int rank, err;
};

/* Blocks of ranks, the first N mod H hosts one rank more. */
void run_place(struct run_job *job)
{
    int n = job->opt.ranks, h = job->opt.hosts > 0 ? job->opt.hosts : 1, rank = 0;

    for (int host = 0; host < h; host++) {
        int size = n / h + (host < n % h);
        for (int local = 0; local < size; local++, rank++) {
            job->rank[rank].host = host;
            job->rank[rank].local_rank = local;
            job->rank[rank].local_size = size;
        }
    }
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* Other launchers' words would speak of another job. */
static void set_environment(const struct birth *b)
{
    static const char *const others[] = {"PMI_PORT",     "PMI_ID",        "PMIX_NAMESPACE",
                                         "PMIX_RANK",    "GINSHMEM_RANK", "GINSHMEM_SIZE",
                                         "GINSHMEM_ROOT"};
    const struct run_rank *r = &b->job->rank[b->rank];
    struct utsname self;
    char host[sizeof(self.nodename) + 48];

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        unsetenv(others[i]);
    /* Debian's libfabric brings PSM, which would catch a crash and exit with 1. */
    setenv("IPATH_NO_BACKTRACE", "1", 0);
    set_number("PMI_FD", b->pmi);
    set_number("PMI_RANK", b->rank);
    set_number("PMI_SIZE", b->job->opt.ranks);
    set_number("MPI_LOCALRANKID", r->local_rank);
    set_number("MPI_LOCALNRANKS", r->local_size);
    if (b->job->opt.hosts > 0 && !b->job->opt.netns) { /* a real host has an id of its own */
        if (uname(&self) != 0)
            strcpy(self.nodename, "this");
        snprintf(host, sizeof(host), "%s-%d-host%d", self.nodename, (int)b->maker, r->host);
        setenv("GINSHMEM_HOST_ID", host, 1);
    }
    for (char **set = b->job->opt.set; *set != NULL; set++)
        putenv(*set);
}

static void set_descriptors(const struct birth *b)
{
    if (b->rank != 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null >= 0)
            dup2(null, STDIN_FILENO);
    } else if (b->input >= 0) {
        dup2(b->input, STDIN_FILENO);
    }
    if (b->out[0] >= 0)
        dup2(b->out[0], STDOUT_FILENO);
    if (b->out[1] >= 0)
        dup2(b->out[1], STDERR_FILENO);
    fcntl(b->pmi, F_SETFD, 0);
    setrlimit(RLIMIT_NOFILE, &b->files);
}

/* The new process: becomes the program or dies. */
__attribute__((noreturn)) static void become(const struct birth *b)
{
    struct exec_error e = {.rank = b->rank};
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != b->maker)
        _exit(RUN_FAILED);
    if (!run_net_enter(b->job, b->job->rank[b->rank].host)) {
        run_say("rank %d cannot enter host %d: %s", b->rank, b->job->rank[b->rank].host,
                strerror(errno));
        _exit(RUN_FAILED);
    }
    set_environment(b);
    set_descriptors(b);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTTIN, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(b->job->opt.argv[0], b->job->opt.argv);
    e.err = errno;
    if (write(b->errors, &e, sizeof(e)) != sizeof(e))
        _exit(RUN_FAILED);
    _exit(e.err == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_EXEC);
}

/* A pipe whose read end is ours and does not block. */
static bool make_pipe(int *read_end, int *write_end)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) != 0)
        return false;
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    *read_end = p[0];
    *write_end = p[1];
    return true;
}

static void close_birth(struct birth *b)
{
    if (b->pmi >= 0)
        close(b->pmi);
    for (int i = 0; i < 2; i++)
        if (b->out[i] >= 0)
            close(b->out[i]);
}

/* Descriptors of one rank, ours registered with the loop. */
static bool open_descriptors(struct run_job *job, struct birth *b)
{
    struct run_rank *r = &job->rank[b->rank];
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    r->pmi = pair[0];
    b->pmi = pair[1];
    if (!run_watch(job, r->pmi, EV_PMI, b->rank, EPOLLIN))
        return false;
    for (int i = 0; i < 2 && job->opt.label; i++)
        if (!make_pipe(&r->pipe[i], &b->out[i]) ||
            !run_watch(job, r->pipe[i], i == 0 ? EV_STDOUT : EV_STDERR, b->rank, EPOLLIN))
            return false;
    return true;
}

static bool start_one(struct run_job *job, struct birth *b)
{
    struct run_rank *r = &job->rank[b->rank];
    bool ok = open_descriptors(job, b);
    pid_t pid = ok ? fork() : -1;

    if (pid == 0)
        become(b);
    if (pid > 0) {
        setpgid(pid, pid); /* whoever is first; signals may be sent from now on */
        r->pid = pid;
        r->state = RANK_RUNNING;
        job->running++;
    } else {
        run_say("cannot start rank %d: %s", b->rank, strerror(errno));
    }
    close_birth(b);
    return pid > 0;
}

static bool raise_limit(struct run_job *job, struct rlimit *old)
{
    rlim_t need = (rlim_t)job->opt.ranks * (job->opt.label ? 3 : 1) + 64 +
                  (job->opt.netns ? (rlim_t)(job->opt.hosts + 1) * (RUN_SPACES + 1) : 0);
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, old) != 0)
        return true;
    l = *old;
    if (l.rlim_cur >= need)
        return true;
    l.rlim_cur = l.rlim_max < need ? l.rlim_max : need;
    if (l.rlim_cur < need || setrlimit(RLIMIT_NOFILE, &l) != 0) {
        run_say("%d ranks need %llu open files and the limit is %llu; raise it (ulimit -n)",
                job->opt.ranks, (unsigned long long)need, (unsigned long long)old->rlim_max);
        return false;
    }
    return true;
}

/*
 * A terminal gives its input to its foreground group, which the ranks are not in: ginrun reads it
 * for rank 0. In the background nobody may read it.
 */
static int open_input(struct run_job *job)
{
    int in = -1;

    job->feed = -1;
    if (!isatty(STDIN_FILENO))
        return -1;
    if (tcgetpgrp(STDIN_FILENO) != getpgrp())
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!make_pipe(&in, &job->feed))
        return -1;
    fcntl(in, F_SETFL, 0);
    fcntl(job->feed, F_SETFL, O_NONBLOCK);
    signal(SIGTTIN, SIG_IGN);
    run_watch(job, STDIN_FILENO, EV_STDIN, 0, EPOLLIN);
    run_watch(job, job->feed, EV_FEED, 0, 0);
    return in;
}

int run_start(struct run_job *job)
{
    struct birth b = {.job = job, .maker = getpid()};
    int st = 0;

    if (!raise_limit(job, &b.files) || !make_pipe(&job->exec_errors, &b.errors) ||
        !run_watch(job, job->exec_errors, EV_EXEC, 0, EPOLLIN))
        return RUN_FAILED;
    b.input = open_input(job);
    for (int i = 0; i < job->opt.ranks; i++)
        job->rank[i].pmi = job->rank[i].pipe[0] = job->rank[i].pipe[1] = -1;
    for (b.rank = 0; b.rank < job->opt.ranks && st == 0; b.rank++) {
        b.pmi = b.out[0] = b.out[1] = -1;
        if (!start_one(job, &b))
            st = RUN_FAILED;
    }
    if (b.input >= 0)
        close(b.input);
    close(b.errors);
    if (st != 0)
        run_end(job, st);
    return st;
}

void run_exec_event(struct run_job *job)
{
    struct exec_error e;
    ssize_t n = read(job->exec_errors, &e, sizeof(e));

    if (n == (ssize_t)sizeof(e)) {
        const char *name = job->opt.argv[0];
        bool here = e.err == ENOENT && strchr(name, '/') == NULL && access(name, X_OK) == 0;
        if (!job->ending)
            run_say("cannot run %s: %s%s%s", name, strerror(e.err),
                    here ? "; it is not in PATH, but here: ./" : "", here ? name : "");
        run_end(job, e.err == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT_EXEC);
    } else if (n == 0) {
        close(job->exec_errors);
        job->exec_errors = -1;
    }
}

void run_signal_all(struct run_job *job, int sig)
{
    for (int i = 0; i < job->opt.ranks; i++)
        if (job->rank[i].pid > 0 && job->rank[i].state == RANK_RUNNING)
            kill(-job->rank[i].pid, sig);
}

/* It has a handler for the signal, so that it does not die of it. */
static bool takes(pid_t pid, int sig)
{
    char path[64], line[128];
    unsigned long long caught = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "SigCgt: %llx", &caught) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return (caught >> (sig - 1) & 1) != 0;
}

/* Those that have joined and listen: the library's handler tells what they wait for. */
int run_ask_all(struct run_job *job)
{
    int n = 0;

    for (int i = 0; i < job->opt.ranks; i++) {
        const struct run_rank *r = &job->rank[i];
        if (r->pid > 0 && r->state == RANK_RUNNING && r->initialized && takes(r->pid, SIGUSR1) &&
            kill(r->pid, SIGUSR1) == 0)
            n++;
    }
    return n;
}

void run_end(struct run_job *job, int status)
{
    if (job->result < 0)
        job->result = status;
    if (job->ending)
        return;
    job->ending = true;
    job->kill_at = run_now_ns() + GRACE_NS;
    run_signal_all(job, SIGTERM);
    run_signal_all(job, SIGCONT); /* a stopped rank hears nothing else */
}

void run_kill(struct run_job *job)
{
    run_signal_all(job, SIGKILL);
    job->kill_at = 0;
}

static int rank_of(const struct run_job *job, pid_t pid)
{
    for (int i = 0; i < job->opt.ranks; i++)
        if (job->rank[i].pid == pid && job->rank[i].state == RANK_RUNNING)
            return i;
    return -1;
}

static void tell(struct run_job *job, int rank, int status)
{
    int pid = (int)job->rank[rank].pid;
    const char *then = job->opt.keep_going || job->running <= 1 ? "" : "; ending the others";

    if (WIFSIGNALED(status))
        run_say("rank %d (process %d) was killed by signal %d (%s)%s%s", rank, pid,
                WTERMSIG(status), strsignal(WTERMSIG(status)),
                WCOREDUMP(status) ? ", core dumped" : "", then);
    else
        run_say("rank %d (process %d) ended with status %d%s", rank, pid, WEXITSTATUS(status),
                then);
}

static void ended(struct run_job *job, int rank, int status)
{
    struct run_rank *r = &job->rank[rank];
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    /* Status 126 and 127 may be become()'s: the reason is in the pipe and is told there. */
    bool no_exec = job->exec_errors >= 0 && (code == RUN_NOT_FOUND || code == RUN_CANNOT_EXEC);

    if (no_exec)
        run_exec_event(job);
    run_io_drain(job, rank);
    if (code != 0 && !job->ending)
        tell(job, rank, status);
    r->state = RANK_ENDED;
    r->status = status;
    job->running--;
    if (code != 0 && job->result < 0)
        job->result = code;
    if (code != 0 && !job->opt.keep_going)
        run_end(job, code);
    run_pmi_ended(job, rank);
}

void run_reap(struct run_job *job)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        int status, rank;

        /* Look first: while the zombie is there, its group's number is nobody else's. */
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        rank = rank_of(job, info.si_pid);
        if (rank >= 0 && (job->ending || info.si_code != CLD_EXITED || info.si_status != 0))
            kill(-info.si_pid, SIGKILL); /* what a failed rank leaves behind */
        if (waitpid(info.si_pid, &status, 0) == info.si_pid && rank >= 0)
            ended(job, rank, status);
    }
}
