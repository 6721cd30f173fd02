/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a job whose rank 1 meets its fate in the middle of something. Every other one writes
 * into a file what it saw and how fast; net_fate.sh runs the jobs and judges.
 *
 *   net_fate DIR PHASE FAULT MICROSECONDS
 *
 * PHASE   bringup put barrier wait collective finalize
 * FAULT   kill stop; with networks of their own (ginrun --netns): cut (the link, for good), flap
 *         (the link, for half a second), half (the link, then killed: nobody gets a farewell);
 *         badkey: a write of its carries a wrong key, by GINSHMEM_TEST_NET; what the network makes
 * of that, it ends when it is told
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <ginshmem.h>

#define VICTIM  1
#define FLAP_MS 500
#define CALM_MS 1000 /* that a flap's ranks go on after it */
#define MEET_MS 60000

static const char *dir, *phase, *fault;
static long delay_us;
static int rank = -1;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static const char *path(char *buf, const char *name, int of)
{
    snprintf(buf, 512, "%.400s/%s.%d", dir, name, of);
    return buf;
}

/* A small file that is there whole or not at all. */
static void leave(const char *name, const char *text)
{
    char to[512], tmp[520];
    snprintf(tmp, sizeof(tmp), "%s.new", path(to, name, rank));
    FILE *f = fopen(tmp, "w");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0 || rename(tmp, to) != 0)
        perror(to);
}

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

/* ---- the fate ---- */

/* My port of the switch, or what FATE_LINK names. */
static void link_set(const char *state)
{
    const char *there = getenv("GINRUN_SWITCH"), *mine = getenv("FATE_LINK");
    char port[16];
    snprintf(port, sizeof(port), "p%d", VICTIM);
    if (mine != NULL) /* it is a machine's only rank, and this its link */
        snprintf(port, sizeof(port), "%s", mine);
    pid_t pid = fork();
    if (pid == 0) {
        int net = there != NULL ? open(there, O_RDONLY) : -1;
        if (mine == NULL && (net < 0 || setns(net, CLONE_NEWNET) != 0))
            _exit(1);
        execlp("ip", "ip", "link", "set", port, state, (char *)NULL);
        execl("/usr/sbin/ip", "ip", "link", "set", port, state, (char *)NULL);
        _exit(1);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        leave("broken", "the link could not be set\n");
}

static void *meet_fate(void *arg)
{
    char text[64];
    (void)arg;
    nap_us(delay_us);
    snprintf(text, sizeof(text), "%llu %d\n", (unsigned long long)now_ns(), (int)getpid());
    leave("fate", text);
    if (is(fault, "kill"))
        kill(getpid(), SIGKILL);
    if (is(fault, "stop"))
        kill(getpid(), SIGSTOP);
    if (is(fault, "cut") || is(fault, "half") || is(fault, "flap"))
        link_set("down");
    leave("met_fate", "\n");
    if (is(fault, "half"))
        kill(getpid(), SIGKILL);
    if (is(fault, "flap")) {
        nap_us(FLAP_MS * 1000);
        link_set("up");
        leave("restored", "\n");
    }
    return NULL;
}

static void expect_fate(void)
{
    pthread_t thread;
    if (rank == VICTIM && pthread_create(&thread, NULL, meet_fate, NULL) != 0)
        abort();
}

/* When it came, 0: not yet. */
static uint64_t fate(int *pid)
{
    unsigned long long when = 0;
    char name[512];
    int p = 0;
    FILE *f = fopen(path(name, "fate", VICTIM), "r");
    if (f != NULL) {
        if (fscanf(f, "%llu %d", &when, &p) != 2)
            when = 0;
        fclose(f);
    }
    if (pid != NULL)
        *pid = p;
    return when;
}

static bool there(const char *name, int of)
{
    char file[512];
    return access(path(file, name, of), F_OK) == 0;
}

/* ---- what is under way ---- */

struct job {
    gin_comm_t *comm;
    gin_devcomm_t dev;
    gin_t g, idle; /* on idle nothing is under way */
    char *heap;
    gin_at_t at;
};

static int bring_up(struct job *j)
{
    int st = gin_init(NULL, &j->comm);
    if (st == GIN_OK)
        st = gin_devcomm_create(j->comm, NULL, &j->dev);
    if (st == GIN_OK)
        st = gin_open(&j->dev, 0, &j->g);
    if (st == GIN_OK)
        st = gin_open(&j->dev, 1, &j->idle);
    if (st != GIN_OK)
        return st;
    j->heap = gin_calloc(j->comm, 1, 1u << 20);
    if (j->heap == NULL)
        return gin_last_status();
    j->at = gin_at_ptr(&j->g, j->heap);
    return gin_comm_barrier(j->comm);
}

static int put_to_all(struct job *j, char *src, long i)
{
    int st = GIN_OK;
    for (int r = 0; r < gin_size(j->comm) && st == GIN_OK; r++)
        if (r != rank)
            st = gin_put(&j->g, gin_thread(), gin_world(&j->g), r, j->at, gin_at_local(src),
                         i % 4 == 0 ? 100000 : 40, gin_weak_inc(0));
    return st == GIN_OK && i % 8 == 7 ? gin_quiet(&j->g, gin_thread()) : st;
}

static int step(struct job *j, long i)
{
    /* Pages of its own: a device may pin them and keep them from the child that cuts the link. */
    static char src[25 * 4096] __attribute__((aligned(4096)));
    gin_wait_opt_t flap = {.timeout_ns = 20000000};
    if (is(phase, "put"))
        return put_to_all(j, src, i);
    if (is(phase, "barrier"))
        return gin_barrier(&j->g, gin_thread(), gin_barrier_world(), 0, GIN_ORDER_ACQ_REL,
                           GIN_FENCE_ALL);
    if (is(phase, "collective"))
        return gin_comm_barrier(j->comm);
    if (!is(fault, "flap"))
        return gin_wait_signal(&j->g, gin_thread(), 5, 1);
    int st = gin_wait_signal_x(&j->g, gin_thread(), 5, 1, &flap);
    return st == GIN_ETIMEDOUT ? GIN_OK : st;
}

/* All have to agree that the calm after a flap is over, or the last calls lack somebody. */
static int calm(struct job *j, bool *over)
{
    static uint64_t since;
    if (since == 0 && there("restored", VICTIM))
        since = now_ns();
    int32_t mine = since != 0 && now_ns() - since > CALM_MS * 1000000ull, all[64] = {0};
    int st = gin_comm_allgather(j->comm, &mine, all, sizeof(mine));
    *over = st == GIN_OK && all[VICTIM] != 0;
    return st;
}

static int until_fate(struct job *j)
{
    int st = GIN_OK;
    bool flap = is(fault, "flap"), over = false;
    for (long i = 0; st == GIN_OK && !over; i++) {
        st = step(j, i);
        if (st == GIN_OK && flap && i % 16 == 15)
            st = calm(j, &over);
    }
    return st;
}

/* ---- afterwards ---- */

static void report(const char *name, int st)
{
    char text[1200];
    uint64_t when = fate(NULL), now = now_ns();
    snprintf(text, sizeof(text), "%s %ld %s\n", gin_status_name(st),
             when != 0 && now > when ? (long)((now - when) / 1000000) : -1L,
             st != GIN_OK ? gin_last_error() : "");
    leave(name, text);
}

static bool survives(int r)
{
    return r != VICTIM;
}

/* Who is left has something to do with each other. */
static int go_on(struct job *j, const gin_t *g)
{
    uint64_t word = 4711 + (uint64_t)rank, back = 0;
    int to = (rank + 1) % gin_size(j->comm);
    to = survives(to) ? to : (to + 1) % gin_size(j->comm);
    gin_at_t at = gin_at(j->at.win, j->at.off + 512 * 1024 + 8 * (uint64_t)rank);
    gin_team_t world = gin_world(g);
    int st = gin_put(g, gin_thread(), world, to, at, gin_at_local(&word), 8, gin_no_action());
    if (st == GIN_OK)
        st = gin_fence(g, gin_thread(), world, to);
    if (st == GIN_OK)
        st = gin_get(g, gin_thread(), world, to, at, gin_at_local(&back), 8);
    if (st == GIN_OK)
        st = gin_flush_peer(g, gin_thread(), world, to);
    if (st == GIN_OK && back != word)
        st = GIN_EMISMATCH;
    return st;
}

static void meet(const char *name)
{
    leave(name, "\n");
    for (int i = 0; i < MEET_MS; i++) {
        int missing = 0;
        for (int r = 0; r < atoi(getenv("PMI_SIZE")); r++)
            missing += survives(r) && !there(name, r);
        if (missing == 0)
            return;
        nap_us(1000);
    }
    leave("broken", "the survivors did not meet\n");
}

/* One that is stopped for good is ended when nobody needs it any more. */
static void bury(void)
{
    int pid = 0;
    if (rank != 0 || !is(fault, "stop"))
        return;
    while (fate(&pid) == 0)
        nap_us(1000);
    kill(pid, SIGKILL);
}

int main(int argc, char **argv)
{
    struct job j = {.comm = NULL};
    if (argc != 5 || getenv("PMI_RANK") == NULL)
        return 2;
    dir = argv[1];
    phase = argv[2];
    fault = argv[3];
    delay_us = atol(argv[4]);
    rank = atoi(getenv("PMI_RANK"));
    if (is(phase, "bringup"))
        expect_fate();
    int st = bring_up(&j);
    bool up = st == GIN_OK;
    if (!is(phase, "bringup"))
        expect_fate();
    if (up && is(phase, "finalize")) {
        while (rank == VICTIM && !there("met_fate", VICTIM)) /* killed, stopped, or cut off */
            nap_us(1000);
        st = gin_finalize(j.comm);
        up = false;
    } else if (up) {
        st = until_fate(&j);
    }
    report("saw", st);
    if (is(fault, "badkey") && !survives(rank))
        _exit(0); /* it gives up, and the others learn of that if they have noticed nothing */
    if (up && st != GIN_OK && survives(rank) && gin_size(j.comm) > 2) {
        st = go_on(&j, &j.g);
        if (st == GIN_ENET) /* what comes behind the dead one's answers is held up there */
            st = go_on(&j, &j.idle);
        report("after", st);
        meet("met");
    }
    if (up)
        report("end", gin_finalize(j.comm));
    if (survives(rank))
        meet("done");
    bury();
    return 0;
}
