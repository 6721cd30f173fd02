/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communicator as the library sees it, and the control block through which ranks of one host
 * agree, watch and abort each other. Every room of lib/ keeps its part of the state in a struct of
 * its own; init.c brings them up in the order of a table and takes them down backwards.
 */
#ifndef GI_COMM_H
#define GI_COMM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#include <ginshmem.h>
#include <ginshmem/impl/path.h>
#include "ask.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "heap/agree.h"
#include "heap/heap.h"
#include "transport/shm/shm.h"

#define GI_COMM_MAGIC 0x47494e434f4d4d31ull /* "GINCOMM1" */
#define GI_ABI        4                     /* of the control block and the first exchange */

/* What every rank tells the others when it joins (lib/init.c). */
struct gi_card {
    uint64_t magic;
    uint32_t version, abi;
    uint64_t page_size, heap_size, heap_max, heap_chunk;
    uint64_t job[2];    /* rank 0's random numbers name the communicator */
    uint64_t process;   /* random number of the process; equal: ranks are threads of one */
    uint64_t pid_space; /* hash of boot id and pid namespace; equal: pids mean the same */
    uint64_t net_space; /* the same of the network's; equal: one loopback */
    uint64_t host;      /* hash of host id */
    uint64_t probe;     /* address of a word that holds `process`, for process_vm_readv */
    int32_t pid, uid;
    uint64_t peer_timeout; /* GINSHMEM_PEER_TIMEOUT */
    uint32_t check;        /* GINSHMEM_CHECK */
    uint32_t lsa;          /* 0: GINSHMEM_DISABLE_LSA */
    char hugepages[8];     /* GINSHMEM_HUGEPAGES */
    char host_id[64];
    int32_t
        status; /* of what this rank did so far; not GIN_OK: only the magic is valid beside it */
    uint32_t zero;
};

/* What a rank shows of a failure to its LSA peers (lib/error.c). */
struct gi_word {
    _Alignas(64) _Atomic uint32_t set; /* 1: the rest is valid, and stays */
    int32_t rank;                      /* whom it is about */
    int32_t status;
    char why[116];
};

/* First bytes of every rank's slot: shared with the LSA team, one line per writer and purpose. */
struct gi_control {
    _Alignas(64) uint64_t token[8];               /* transport/shm's proof of mapping */
    _Alignas(64) struct gi_agree_record agree[2]; /* lib/exchange.c, by parity of the call */
    struct gi_word death;                         /* the first rank that I take for dead */
    struct gi_word over;                          /* all is over, for everybody */
    /* 1: this rank left by gin_finalize(), past its last barrier; its end is no death */
    _Alignas(64) _Atomic uint32_t departed;
    struct gi_ask_box asks; /* of this rank's engine */
};
#define GI_CONTROL 65536u /* bytes before the heap in every slot */
_Static_assert(sizeof(struct gi_control) <= GI_CONTROL, "the control block has its place");

/* Windows of a communicator (lib/window.c). */
struct gi_windows;
/* Lists of ranks that teams name by id (lib/team.c). */
struct gi_teams;
/* Live device communicators (lib/devcomm.c). */
struct gi_devcomm;
/* GPUs and their heap (lib/cuda_up.h). */
struct gi_cuda;
/* Who looks after ranks of other hosts (lib/boot/boot_watch.h). */
struct gi_watch;
/* The network (lib/net_up.h). */
struct gi_net;

struct gin_comm {
    uint64_t magic; /* GI_COMM_MAGIC while alive */
    int rank, size;
    unsigned forks; /* init.c's count when it was made; another one: a fork()ed child */
    struct gi_env env;
    struct gi_boot *boot;
    int early; /* status of what can fail between bootstrap and first exchange */

    /* topology.c: hosts; all arrays by world rank */
    struct gi_card *cards;
    int *host_of; /* dense host number, by first appearance */
    int n_hosts;
    int node_size; /* ranks with my host id */
    int sharing;   /* ranks that share my machine's cores, whatever their host ids say */
    gin_team_t world, node, lsa, rail;

    /* memory.c: up with the first call that needs it */
    bool up;
    struct gi_shm_rank *shm_ranks;
    struct gi_shm *shm;
    struct gi_segment *segment;
    struct gi_heap *heap; /* host heap */
    uint64_t internal;    /* bytes of it that device communicators hold */
    char *slots;          /* shm->base */
    uint64_t stride;
    int32_t *lsa_of;     /* copy of shm's, which stale contexts may still read */
    void *stale_windows; /* level 1 of the window table after its end, likewise */

    /* cuda_up.c: up with the first call that asks for GPU memory or kernels */
    struct gi_cuda *cuda;
    char cuda_why[160]; /* why this rank has no GPU; "": it has, or was not asked */

    /* net_up.c: up with the heap, where not all ranks are load/store accessible */
    struct gi_net *net;
    char net_why[200]; /* why there is none; "": there is, or nothing asked for it */

    /* exchange.c */
    uint64_t calls; /* collective host calls so far: the sequence number of agreements */
    struct gi_agree_record *records; /* one per rank, scratch of the exchange */

    struct gi_windows *windows;
    struct gi_teams *teams;
    struct gi_devcomm *devcomms; /* list */
    uint32_t spin;               /* polls before a wait yields */

    /* error.c */
    _Atomic int status;  /* sticky: GIN_OK, GIN_EPEER */
    _Atomic int failing; /* somebody writes the two below, then status */
    int status_rank;
    char status_text[200];
    _Atomic int over;   /* status with which everything ends; 0: ranks that live go on */
    _Atomic int ending; /* somebody writes the text, then over */
    char over_text[200];
    _Atomic uint8_t *dead;     /* by rank: enum in error.c */
    char *_Atomic *deaths;     /* by rank: why it is dead, in full; NULL: it lives, or no memory */
    _Atomic uint64_t parting;  /* when the first one went while all leave; 0: nobody */
    _Atomic int parting_looks; /* since then */
    struct gi_watch
        *_Atomic watch;         /* where not all ranks are load/store accessible; under a lock */
    _Atomic uint64_t next_look; /* when peers' processes are looked at again */
    _Atomic int leaving;        /* set by gin_finalize() before its last barrier */
    _Atomic uint64_t n_waits, n_cma, n_agreements;
};

/* ---- init.c ---- */

/* GIN_OK when comm is alive and this process made it, else GIN_ESTATE with a text naming `call`. */
int gi_comm_enter(const gin_comm_t *comm, const char *call);
/* The same, and bring the heap up (collective the first time). */
int gi_comm_enter_up(gin_comm_t *comm, const char *call);

static inline struct gi_control *gi_control(const gin_comm_t *comm, int lsa_rank)
{
    return (struct gi_control *)(comm->slots + (uint64_t)lsa_rank * comm->stride);
}

/* ---- topology.c ---- */
int gi_topology_open(gin_comm_t *comm); /* from cards: hosts, node team */
void gi_topology_close(gin_comm_t *comm);

/* So many cores (gi_os_cores()) are fewer than my host's ranks have threads that poll, or than the
 * machine has ranks. */
static inline bool gi_is_crowded(const gin_comm_t *comm, int cores, int threads)
{
    return cores < threads * comm->node_size || cores < comm->sharing;
}

static inline bool gi_is_elsewhere(const gin_comm_t *comm, int world)
{
    return comm->host_of[world] != comm->host_of[comm->rank];
}

/* ---- memory.c ---- */
int gi_memory_up(gin_comm_t *comm); /* collective: segment, LSA, heap, heap window, LSA teams */
void gi_memory_down(gin_comm_t *comm);
/* Symmetric block for the library itself, zeroed; counted as internal. Collective. */
int gi_memory_take(gin_comm_t *comm, gin_kind_t kind, uint64_t bytes, uint64_t *off);
int gi_memory_give(gin_comm_t *comm, gin_kind_t kind, uint64_t off);
/* 1 when [off, off + bytes) of the heap lies in one live block (GINSHMEM_CHECK). */
int gi_memory_live(gin_comm_t *comm, uint64_t off, uint64_t bytes);

/* ---- exchange.c ---- */
/*
 * All ranks' records, in rank order, in comm->records; through the control blocks where all ranks
 * are LSA peers, else through the bootstrap. Collective. Signature of heap/agree.h's exchange.
 */
int gi_exchange(void *comm, const struct gi_agree_record *mine, const struct gi_agree_record **all);
/*
 * Agree on a collective call that carries numbers: op (enum gi_agree_op), a, b, c and this rank's
 * status so far. GIN_OK when all ranks passed the same and succeeded; else the verdict, on all.
 */
int gi_agree_on(gin_comm_t *comm, unsigned op, uint64_t a, uint64_t b, uint64_t c, int status);
/* bytes of every rank, by the bootstrap. Collective. */
int gi_comm_gather(gin_comm_t *comm, const void *in, void *out, size_t bytes);

/* ---- window.c ---- */
int gi_windows_open(gin_comm_t *comm);
void gi_windows_close(gin_comm_t *comm);
/* Make or grow the heap's window (id 0): called by memory.c after mapping and after growth; 0 takes
 * it away. */
int gi_window_heap(gin_comm_t *comm, uint64_t size);
/* The same for the GPU heap's window (id 1), called by cuda_up.c. */
int gi_window_cuda_heap(gin_comm_t *comm, uint64_t size);
const struct gin_i_window *const *gi_windows_table(const gin_comm_t *comm);
const struct gin_i_window *const *gi_windows_empty(void); /* every look-up fails */
void gi_windows_count(const gin_comm_t *comm, uint64_t *windows, uint64_t *registrations);
/* Why kernels do not load and store in a window over GPU memory of the program, or "". */
const char *gi_windows_why_slow(const gin_comm_t *comm);
/* The live window of a handle, or NULL (nothing recorded). */
const struct gin_i_window *gi_window_find(const gin_comm_t *comm, gin_window_t win);
uint64_t gi_window_size(const gin_comm_t *comm, const struct gin_i_window *w);
/*
 * How rank `world` is reached for [off, off + bytes) of a live window. LSA and SELF: *addr is this
 * process's address. CMA: *addr is the address in process *pid. NET: by the network, no address.
 * NONE: recorded with the reason.
 */
gin_path_t gi_window_reach(gin_comm_t *comm, const struct gin_i_window *w, int world, uint64_t off,
                           void **addr, pid_t *pid);

/* GIN_PATH_NET where the network reaches that part, else GIN_PATH_NONE and recorded. */
gin_path_t gi_window_reach_net(gin_comm_t *comm, const struct gin_i_window *w, int world);

/* Is a word of a rank's part of a host window aligned there? */
bool gi_window_aligned_at(const gin_comm_t *comm, const struct gin_i_window *w, int world,
                          uint64_t off, uint32_t bytes);

/* ---- team.c ---- */
int gi_teams_open(gin_comm_t *comm);
void gi_teams_close(gin_comm_t *comm);
uint64_t gi_teams_live(const gin_comm_t *comm); /* lists */
/* Call fn for every live list, under the lock that makers take; ends with what is not GIN_OK. */
int gi_teams_each(const gin_comm_t *comm,
                  int (*fn)(void *arg, uint32_t id, int32_t name, const int32_t *ranks, int32_t n),
                  void *arg);
/* World rank of a team's rank, or the negative status with a text. */
int gi_team_world(const gin_comm_t *comm, gin_team_t team, int rank);
/* A team of `count` world ranks in that order: a progression where it is one, else a list. For
 * predefined teams; gin_team_free() leaves it alone where `fixed`. */
int gi_team_make(gin_comm_t *comm, const int *world_ranks, int count, int fixed, gin_team_t *team);

/* ---- devcomm.c ---- */
void gi_devcomms_close(gin_comm_t *comm); /* free what the program forgot */

/* ---- error.c ---- */
/*
 * A rank that is dead ends what needs it; the communicator's status is sticky from the first one
 * on. What is over (somebody aborted; ranks cannot agree any more) is over for everybody and all.
 */
/* Look at abort words and peers' processes; returns and records the sticky status. Rate-limited by
 * its callers (the waiting loop). arg is gin_comm_t *. Of waits that any rank might end. */
int gi_comm_health(void *comm);
/* The same look, but not GIN_OK only when all is over. Of waits that know whom they wait for. */
int gi_comm_whole(void *comm);
/* ... and this is why a rank, one of those, will not come: GIN_OK or recorded. */
int gi_comm_rank_health(const gin_comm_t *comm, int rank);
void gi_comm_deaths_free(gin_comm_t *comm);
/* It is known that a rank is dead. Any thread. */
void gi_comm_rank_died(gin_comm_t *comm, int rank, const char *why);
/* All is over: first one wins. Any thread. */
void gi_comm_set_failed(gin_comm_t *comm, int status, int rank, const char *why);
/* Record and return the sticky status with its text. */
int gi_comm_fail_status(const gin_comm_t *comm);
/* The sticky status alone. */
static inline int gi_comm_status_quiet(const gin_comm_t *comm)
{
    return atomic_load_explicit(&comm->status, memory_order_acquire);
}
/* Who aborted, and why, to whatever is asked of the network from then on; else GIN_OK. */
static inline int gi_comm_over(const gin_comm_t *comm, const char *call)
{
    int st = atomic_load_explicit(&comm->over, memory_order_acquire);
    return GIN_LIKELY(st == GIN_OK) ? GIN_OK : gi_fail(st, "%s: %s", call, comm->over_text);
}
/* Watch over ranks of other hosts, and be watched. Collective. */
int gi_comm_watch_up(gin_comm_t *comm);
/* status: with which this rank leaves. */
void gi_comm_watch_down(gin_comm_t *comm, int status);

#endif
