/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on streams: what a device communicator keeps for them, and the steps of every call.
 * All that can be refused is refused here, from a copy of what kernels see; then one kernel, or a
 * copy and perhaps a kernel, is given to the stream.
 */
#ifndef GI_STREAM_H
#define GI_STREAM_H

#include "cuda/kernels/stream.h"
#include "cuda/launch.h"
#include "devcomm_cuda.h"

struct gi_stream_side {
    char why[200];                  /* there are no kernels; "": there are */
    int32_t *lsa_of;                /* by world rank, as kernels have it */
    struct gin_i_barriers barriers; /* likewise; of the pools only numbers mean something here */
    struct gin_i_pool *teams;
    uint64_t *report; /* pinned: struct gi_stream_job */
    uint64_t report_addr;
};

/* Local, once d->kernel is there: makes d->stream. */
int gi_streams_open(struct gi_devcomm *d);
void gi_streams_close(struct gi_devcomm *d);
/* The device communicator behind the program's 64 bytes, or NULL where it is none of this process
 * that is live and has kernels. */
struct gi_devcomm *gi_streams_find(const gin_devcomm_t *dev);

/* A call under way. */
struct gi_on_stream {
    const char *call;
    struct gi_devcomm *d;
    const struct gi_stream_side *s;
    gin_stream_t stream;
    struct gi_stream_job job;
};

/* A place, as far as the host knows. */
struct gi_stream_spot {
    uint64_t addr; /* for this GPU; 0: kernels find it, or their engine */
    bool gpu;      /* in GPU memory, at that address */
    bool engine;   /* only the engine reaches it */
};

/* First step of every call. `all`: GIN_ALL_CONTEXTS will do. Records and returns what is wrong. */
int gi_stream_enter(struct gi_on_stream *o, const char *call, enum gi_stream_kernel kernel,
                    const gin_devcomm_t *dev, uint32_t context, bool all, gin_stream_t stream);
/* The peer's world rank, noted in the job, too. */
int gi_stream_peer(struct gi_on_stream *o, gin_team_t team, int peer, int *world);
/* A place at a peer; `update`: it is written. */
int gi_stream_far(const struct gi_on_stream *o, int world, gin_at_t at, uint64_t bytes, bool update,
                  struct gi_stream_spot *spot);
/* A place of mine. */
int gi_stream_near(const struct gi_on_stream *o, gin_at_t at, uint64_t bytes,
                   struct gi_stream_spot *spot);
/* A word of 4 or 8 bytes at a spot found so. */
int gi_stream_aligned(const struct gi_on_stream *o, gin_at_t at, const struct gi_stream_spot *spot,
                      uint32_t bytes);
int gi_stream_action(struct gi_on_stream *o, int world, gin_action_t remote);
/* The cell that this GPU raises for a slot signal, or 0: kernels find out how. */
uint64_t gi_stream_slot(const struct gi_on_stream *o, int world, uint32_t id);
/* Memory of the program that this GPU reaches; *gpu: it is a GPU's. bytes != 0. */
int gi_stream_memory(const struct gi_on_stream *o, const void *p, uint64_t bytes, bool *gpu);
/* Whether kernels of this rank and of that one can send each other messages. */
int gi_stream_meets(const struct gi_on_stream *o, int world);
/* Last step: the job's kernel. */
int gi_stream_run(struct gi_on_stream *o, unsigned threads);

#endif
