/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ginrun: starts the ranks of a job on this machine and is their PMI-1 server. Five rooms: options
 * and the loop (ginrun.c), processes (ginrun_job.c), the key-value store (ginrun_pmi.c), labelled
 * output (ginrun_io.c), hosts with networks of their own (ginrun_net.c). A program and not a part
 * of the library: it calls the system itself.
 */
#ifndef GI_TOOLS_GINRUN_H
#define GI_TOOLS_GINRUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "boot/pmi_wire.h"

#define RUN_MAX_RANKS 1024
#define RUN_NAME      64
#define RUN_MAX_NETNS 64 /* hosts behind one switch, 10.99.0.1 and on */
#define RUN_SPACES    4  /* namespaces of a host */

/* Exit statuses of ginrun's own. */
enum {
    RUN_USAGE = 2,
    RUN_TIMEOUT = 124,
    RUN_FAILED = 125,
    RUN_CANNOT_EXEC = 126,
    RUN_NOT_FOUND = 127
};

struct run_options {
    int ranks;
    int hosts;  /* 0: the real one */
    bool netns; /* hosts have networks of their own */
    bool label, keep_going;
    double timeout; /* seconds, 0: none */
    char **set;     /* NAME=VALUE, NULL-terminated */
    char **argv;
};

enum rank_state { RANK_RUNNING, RANK_ENDED };

/* A growing queue of bytes. */
struct run_queue {
    char *data;
    size_t begin, end, cap;
};

struct run_rank {
    pid_t pid;
    enum rank_state state;
    int status; /* of wait(), once ended */
    int host, local_rank, local_size;
    /* PMI */
    int pmi;          /* descriptor, -1 closed */
    bool initialized; /* said init and not yet finalize */
    bool in_barrier;
    unsigned barriers; /* that it has entered */
    char in[GI_PMI_LINE_MAX * 4];
    size_t in_n;
    struct run_queue out;
    /* labelled output: 0 standard output, 1 standard error */
    int pipe[2];
    struct run_queue line[2];
};

/* Namespaces of a host, as descriptors; [0] is the network. */
struct run_host {
    int space[RUN_SPACES];
    int root; /* the folder */
};

struct run_kvs {
    char name[RUN_NAME];
    struct run_pair *slots; /* open addressing, a power of two */
    size_t n_slots, n;
    char mapping[160]; /* PMI_process_mapping */
};

/* What an event is about: kind in the upper, rank in the lower half of epoll's data. */
enum run_event { EV_SIGNAL, EV_PMI, EV_STDOUT, EV_STDERR, EV_STDIN, EV_FEED, EV_EXEC };

struct run_job {
    struct run_options opt;
    struct run_rank *rank;
    struct run_host *host; /* with --netns: the hosts, then the switch */
    int running;           /* ranks not yet ended */
    int epoll, signals;
    struct run_kvs kvs;
    int in_barrier;
    bool released;              /* ranks have left a barrier and may have more to ask */
    int barrier_broken;         /* rank that ended and can never come to a barrier, -1: none */
    bool ending;                /* TERM was sent */
    uint64_t kill_at, limit_at; /* 0: not set */
    uint64_t told_at;           /* the limit is over, and ranks have had time to say what they do */
    int result;                 /* exit status, -1: nothing failed so far */
    /* standard input of rank 0, where ginrun reads a terminal for it */
    int feed; /* write end of the pipe, -1: none */
    struct run_queue input;
    bool input_ended;
    int exec_errors; /* read end: ranks whose program could not be run */
};

/* ginrun.c */
__attribute__((format(printf, 1, 2))) void run_say(const char *fmt, ...);
uint64_t run_now_ns(void);
/* Watch fd; false if the system refuses. */
bool run_watch(struct run_job *job, int fd, enum run_event kind, int rank, uint32_t events);
void run_rewatch(struct run_job *job, int fd, enum run_event kind, int rank, uint32_t events);

/* ginrun_job.c */
void run_place(struct run_job *job);               /* hosts and local ranks */
int run_start(struct run_job *job);                /* 0 or an exit status */
void run_signal_all(struct run_job *job, int sig); /* to every rank's process group */
int run_ask_all(struct run_job *job);              /* what ranks do: how many will say so */
void run_reap(struct run_job *job);                /* take note of all that ended */
void run_end(struct run_job *job, int status);     /* TERM now, KILL later; the job's result */
void run_exec_event(struct run_job *job);
void run_kill(struct run_job *job); /* the grace time is over */

/* ginrun_net.c */
bool run_net_open(struct run_job *job);                  /* false: told */
bool run_net_enter(const struct run_job *job, int host); /* in a rank's new process */

/* ginrun_pmi.c */
int run_pmi_init(struct run_job *job);
void run_pmi_event(struct run_job *job, int rank, uint32_t events);
void run_pmi_ended(struct run_job *job, int rank); /* the process is gone */
void run_pmi_free(struct run_job *job);

/* ginrun_io.c */
bool run_queue_add(struct run_queue *q, const void *data, size_t n);
void run_queue_drop(struct run_queue *q, size_t n);
void run_io_event(struct run_job *job, int rank, int which);
void run_io_drain(struct run_job *job, int rank); /* what is left, then close */
void run_feed_read(struct run_job *job);
void run_feed_write(struct run_job *job);

#endif
