/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library shares with inlined code: windows, contexts, device communicators. Filled by
 * lib/window.c and lib/devcomm.c, read by impl/ops.h and its kin. Not API, but part of the ABI: the
 * layouts change only with GIN_DEVCOMM_ABI.
 *
 * All of it lives in memory that a fork()ed child finds zeroed. Zeroed state refuses everything in
 * the inlined code (no id, size or handle is valid), which then asks the library, which says
 * GIN_ESTATE.
 */
#ifndef GINSHMEM_IMPL_STATE_H
#define GINSHMEM_IMPL_STATE_H

#include <ginshmem/devcomm.h>

/* How inlined code may reach a window at LSA peers. */
enum gin_i_window_mode {
    GIN_I_WINDOW_SLOW = 0,   /* by the library only: not mapped, read-only, no LSA wanted */
    GIN_I_WINDOW_STRIDE = 1, /* lsa_base + lsa_rank * lsa_stride */
    GIN_I_WINDOW_TABLE = 2   /* peers[lsa_rank], 0 where not mapped */
};

/* Which updates of a window's words the instructions of the reading device may apply at LSA peers;
 * the others go to the word's one applier in a descriptor. Read by kernels only. */
enum gin_i_window_apply {
    GIN_I_APPLY_ATOMICS = 1, /* read-modify-write */
    GIN_I_APPLY_STORES = 2   /* SET */
};

/*
 * One window on one rank; a cache line. Kernels read it through caches that nobody keeps coherent,
 * 32 bytes at a time: `twin`, which equals `handle` in a live window, tells a half that is older
 * than the other. What kernels read changes only together with the handle, `size` apart, which
 * grows.
 */
struct gin_i_window {
    uint64_t handle; /* gin_window_t.w of the live window, else 0 */
    uint64_t size;   /* bytes; the heap's grows */
    uint64_t local;  /* my address of offset 0 */
    uint64_t lsa_base;
    uint64_t lsa_stride;
    const uint64_t *peers;
    uint8_t mode;   /* enum gin_i_window_mode */
    uint8_t kind;   /* gin_kind_t of the memory that lsa_base leads to */
    uint8_t apply;  /* enum gin_i_window_apply */
    uint8_t unused; /* 0 */
    uint32_t flags; /* enum gin_window_flags */
    uint64_t twin;
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_window) == 64, "a window is one cache line");

/* Two-level table: handle bits 0-7 index a page, bits 8-19 choose it. Unused pages are one page of
 * zeros, so that lookups need no test. */
#define GIN_I_WINDOW_PAGE  256u
#define GIN_I_WINDOW_PAGES 4096u
#define GIN_I_WINDOW_LOCAL (~(uint64_t)0) /* handle of gin_at_local() */
#define GIN_I_WINDOW_DEAD  1u             /* a handle that no window ever has */

/* In lsa_of, beside the LSA rank: kernels reach this rank's host windows only, not its CUDA heap
 * (it has no GPU, or one that mine cannot address with atomics). Never set for host threads. */
#define GIN_I_LSA_HOST_ONLY 0x40000000
#define GIN_I_LSA_NO_GPU    0x20000000 /* beside it: the rank has none, nobody can reach its heap */
/* Instead of an LSA rank, in kernels' lsa_of: -1, nobody reaches it; or its windows are out of
 * loads' and stores' reach, and the engine's descriptors are for it. */
#define GIN_I_LSA_BY_ENGINE (-3)
#define GIN_I_LSA_RANK      0x1fffffff

/*
 * A slot signal's cells in the owner's block: one word per kind of updater. A rank with a GPU has
 * the block in both heaps: GPU peers raise `gpu` in its CUDA heap; CPU peers, and engines on behalf
 * of kernels, raise `cpu` in its host heap.
 */
struct gin_i_cells {
    uint64_t cpu; /* CPU peers, and the owner's CPU for network peers, by atomic adds */
    uint64_t net; /* NICs for network peers, where they have atomics; never a CPU */
    uint64_t gpu; /* GPU peers, by atomic adds over NVLink or PCIe */
    uint64_t unused[5];
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_cells) == 64, "updaters of two signals never share a line");

/* Owner's side of a signal or counter: value = cells - base. Private memory. */
struct gin_i_base {
    uint64_t base;
    uint64_t shadow;
};

/* A local counter. */
struct gin_i_counter {
    uint64_t cell;
    uint64_t base;
};

struct gin_i_dc;
struct gin_i_ring;

/* A context on one rank; two cache lines, of which host threads read the first. */
struct gin_i_ctx {
    struct gin_i_dc *dc;
    uint64_t signals_off;        /* of the cells, from the start of a rank's heap */
    struct gin_i_cells *signals; /* mine */
    struct gin_i_base *bases;    /* one per signal */
    struct gin_i_counter *counters;
    uint32_t n_signals, n_counters;
    uint32_t index; /* GIN_ALL_CONTEXTS for the pseudo-context */
    int32_t error;  /* sticky status; kernels look at the error words instead */
    /* Host threads: an operation to an LSA rank took the network, so strong signals and fences that
     * take loads and stores ask the library first. */
    uint64_t near_net;

    /* Kernels. All device addresses. */
    struct gin_i_ring *ring; /* to the engine; NULL: none, then what needs it is GIN_ENOTSUP */
    /* Second cell of every signal: the same cells in my host heap. A signal's value is
     * signals[i].gpu
     * + host_signals[i].cpu + host_signals[i].net - bases[i].base. NULL: nobody raises them. */
    const struct gin_i_cells *host_signals;
    /* Second cell of every counter, one word each: operations that the engine completed. A
     * counter's value is counters[i].cell + host_counters[i] - counters[i].base. NULL without a
     * ring. */
    const uint64_t *host_counters;
    uint64_t unused_kernels[5];
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_ctx) == 128, "a context is two cache lines");

enum gin_i_dc_flags {
    GIN_I_DC_STRONG = 1, /* strong signals may be used */
    GIN_I_DC_VA = 2,     /* _at signals may be used */
    GIN_I_DC_CHECK = 4,  /* GINSHMEM_CHECK=1: everything goes through the library */
    GIN_I_DC_NET = 32,   /* host threads: operations may be under way on the network */
    /* of a kernel's binding only */
    GIN_I_DC_ALL = 8,        /* bound to GIN_ALL_CONTEXTS */
    GIN_I_DC_DEAD = 16,      /* bound to nothing */
    GIN_I_DC_KERNELS = 64,   /* every rank's is for kernels: only engines raise host cells */
    GIN_I_DC_FAR = 128,      /* ... of ranks, too, that are reached by the network alone */
    GIN_I_DC_APPLY_SHIFT = 8 /* from here on: enum gin_i_window_apply of the heap */
};

/*
 * What gin_open() takes into registers, so that operations on the heap load nothing: the heap of
 * the devcomm's device (CUDA heap for kernels). Offset o of LSA rank r's heap is at
 * lsa_base + r * lsa_stride + o, my own part included.
 */
struct gin_i_heap {
    uint64_t lsa_base;
    uint64_t lsa_stride;
    uint64_t handle;  /* gin_heap_window() */
    uint64_t size;    /* when the devcomm was made; kernels look at the window for what is beyond */
    int32_t lsa_rank; /* mine */
    /* World ranks lsa_first .. + lsa_count - 1 are LSA ranks 0 .. lsa_count - 1 and all can be
     * reached in this heap, so that lsa_of need not be read. lsa_count 0: it must. */
    int32_t lsa_first, lsa_count;
    uint32_t apply; /* enum gin_i_window_apply of this heap */
};

/*
 * Barriers as kernels see them. Index i of a pool has its state in rounds[i]; each member's inbox
 * for it is a row of 8-byte words, one per team rank: who arrives in round e stores e into word
 * `me` of all members' inboxes, and waits until all other words of its own are at least e. The same
 * flat barrier as lib/barrier.c's, so kernels and host threads meet where the inboxes lie in host
 * memory.
 */
struct gin_i_round {
    uint64_t state; /* round << 2 | 2: arrived, not all seen | 1: somebody is inside. Starts as 0 */
    uint64_t told;  /* over the network: of this round so many steps */
    uint64_t unused[2];
};

struct gin_i_pool {
    uint32_t count; /* indices; 0: none was asked for */
    uint32_t n, me; /* team's size, my rank in it; n 0: I am no member */
    int32_t beyond; /* world rank of a member that loads and stores do not reach, or -1 */
    uint64_t slot;  /* bytes from an index's inbox to the next one's; >= 8 n */
    /* Index 0's inboxes by team rank, as device addresses; peers[me] is my own. */
    const uint64_t *peers;
    struct gin_i_round *rounds; /* GPU memory, zeroed at first */
    uint64_t multimem;          /* multicast address of index 0's inboxes, 0: none */
    const int32_t *world_of;    /* world ranks by team rank */
    /*
     * With `beyond`, over the network: steps << 32 | the window's name in descriptors, 0: not at
     * all. Index 0's slot, in host memory, is then at offset `multimem` of that window at every
     * member, and peers[] holds those that stores reach, or 0. In step k a member adds 1 to, or
     * stores the round into, word k of the rank 2^k further on.
     */
    uint64_t net;
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_pool) == 64, "a pool is one cache line");

struct gin_i_barriers {
    struct gin_i_pool fixed[GIN_BARRIER_TEAM]; /* by enum gin_barrier_kind */
    const struct gin_i_pool *teams;            /* by gin_barrier_t.place */
    uint32_t n_teams;
    uint32_t unused;
};

/*
 * Collectives as kernels see them. Two ranks exchange messages through a workspace per index. The
 * i-th message of a pair, from 0, goes to place i mod GIN_I_COLL_SLOTS at its receiver, who gives
 * places back by telling how many it has taken.
 *
 * A rank's workspace of an index lies in its CUDA heap, the same for all ranks, and holds by world
 * rank of the sender: lines | words, how many of mine he has taken | slots. By load and store a
 * message is a line, with its bytes in the slot or where the line says. Through the engine it is a
 * put into the slot, with an addition to a word of the place's own in the host heap, so that no two
 * messages need any order; what was taken is added to a word beside those.
 */
#define GIN_I_COLL_SLOTS 4u
#define GIN_I_COLL_WORDS (GIN_I_COLL_SLOTS + 1) /* in the host heap, of a pair; the last: taken */

enum gin_i_coll_kind {
    GIN_I_COLL_SYNC,
    GIN_I_COLL_BROADCAST,
    GIN_I_COLL_ALLGATHER,
    GIN_I_COLL_GATHER,
    GIN_I_COLL_ALLTOALL,
    GIN_I_COLL_ALLTOALLV,
    GIN_I_COLL_ALLREDUCE,
    GIN_I_COLL_REDUCE,
    GIN_I_COLL_REDUCE_SCATTER,
    GIN_I_COLL_SCAN,
    GIN_I_COLL_SCAN_EXCLUSIVE,
    GIN_I_COLL_KINDS,
    GIN_I_COLL_SHARES = GIN_I_COLL_KINDS, /* of an all-reduce: everybody folds his share */
    GIN_I_COLL_SHARES_OUT                 /* ... and gets those of others */
};

struct gin_i_coll_line {
    uint64_t ref; /* 0: in the slot; 1 + the offset in the sender's CUDA heap */
    uint64_t seq; /* messages so far, with this one; stored last */
};
GIN_STATIC_ASSERT(sizeof(struct gin_i_coll_line) * GIN_I_COLL_SLOTS == 64, "a pair's are a line");

/* My side of a pair, private. */
struct gin_i_coll_link {
    uint64_t sent, got; /* messages */
    uint64_t taken;     /* of those sent; as far as I know */
    uint64_t told;      /* so many of those got were told */
};

/* An index, private. */
struct gin_i_coll {
    uint64_t busy;   /* a group is inside */
    uint64_t broken; /* (uint32_t)status of the call after which members are out of step */
    struct gin_i_coll_link *links; /* by world rank */
    uint64_t *from; /* by team rank: where a step's bytes lie; then, where a whole message does */
};

/* Constant. */
struct gin_i_colls {
    uint32_t count, n;  /* indices; ranks of the communicator */
    uint32_t words_win; /* the host heap's window in descriptors */
    uint32_t unused;
    uint64_t slot;               /* bytes of a message at most */
    uint64_t off;                /* heap offset of index 0's workspace */
    uint64_t each;               /* bytes of a workspace */
    uint64_t taken_at, slots_at; /* in it */
    const uint64_t *words;       /* mine, of index 0; NULL: the engine reaches nobody */
    uint64_t words_off;          /* in everybody's host heap */
    uint64_t timeout_ns;
    struct gin_i_coll *index;
    const uint32_t *kernels; /* by world rank: 1, its device is CUDA */
};

/* A committed list of ranks: list `first` & (GIN_I_LISTS - 1) of a gin_team_t with stride 0. */
#define GIN_I_LISTS 4096u
struct gin_i_list {
    int32_t name; /* `first` of the live team, 0: none */
    int32_t size;
    const int32_t *ranks; /* world ranks in team order */
};

/* A device communicator on one rank. */
struct gin_i_dc {
    uint32_t magic; /* GIN_DEVCOMM_MAGIC while live */
    uint32_t flags;
    uint32_t n_contexts;
    uint32_t spin; /* polls before a wait leaves the inlined code */
    struct gin_i_ctx *ctx;
    const struct gin_i_window *heap; /* the window of the device's heap */
    gin_at_t scratch;
    uint64_t scratch_bytes;
    gin_team_t world, node, lsa, rail;
    struct gin_i_ctx all; /* what GIN_ALL_CONTEXTS binds to */
    void *comm;           /* gin_comm_t */
    void *priv;           /* lib/devcomm.c's */
    uint64_t unused;
    struct gin_i_heap reach; /* kernels read it 16 bytes at a time */

    /* Kernels. All device addresses; this struct then lies in GPU memory, comm and priv are NULL.
     */
    const uint64_t *error; /* pinned host word: 0, or (uint32_t)status | (uint64_t)rank << 32 */
    uint64_t wait_timeout_ns, barrier_timeout_ns; /* 0: none */
    const struct gin_i_barriers *barriers;
    const struct gin_i_list *lists;  /* GIN_I_LISTS of them */
    const uint32_t *window_ids;      /* window ids 0 .. *window_ids - 1 were ever handed out */
    const struct gin_i_colls *colls; /* NULL: none */
    uint64_t multimem;               /* multicast address of heap offset 0, 0: none */
    /* Puts and gets of at least so many bytes go to the engine's copy engine, where there is a
     * ring: by one thread; by a warp or less. A larger group is as fast. */
    uint64_t engine_thread, engine_warp;
    uint64_t unused_kernels;
    uint64_t serial; /* gin_devcomm_t.serial */
};
#ifndef __CUDACC_RTC__
GIN_STATIC_ASSERT(offsetof(struct gin_i_dc, reach) % 16 == 0, "aligned in an aligned struct");
#endif

/* A context bound to a thread. Fields are the library's. */
typedef struct gin {
    struct gin_i_dc *dc;
    struct gin_i_ctx *ctx;
    const struct gin_i_window *const *windows;
    const int32_t *lsa_of; /* world rank -> LSA rank, -1 where not load/store accessible */
    uint64_t lsa_base;     /* struct gin_i_heap */
    uint64_t lsa_stride;
    uint64_t heap_handle;
    uint64_t heap_size;
    uint64_t signals_off; /* struct gin_i_ctx */
    struct gin_i_base *bases;
    const struct gin_i_cells *host_signals;
    struct gin_i_ring *ring;
    int32_t rank, size; /* in the communicator */
    int32_t lsa_rank, lsa_first, lsa_count;
    uint32_t n_signals;
    uint32_t flags; /* enum gin_i_dc_flags */
    int32_t status; /* kernels: of the last read or pointer call on this binding */
} gin_t;

#endif
