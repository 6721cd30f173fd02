/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GIN operations on CUDA streams. The host enqueues, the operation begins when all that was given
 * to the stream before is done, and what is given to it later begins when the operation has ended.
 * No call waits for the GPU or for a peer, allocates, or takes a lock; all may be captured into
 * CUDA graphs, which keep the arguments by value and may be launched again and again.
 *
 * `dev` is a device communicator for kernels (device CUDA), `context` one of its contexts: what
 * streams, kernels of this rank and those of others do in it keeps the memory model together.
 * `stream` belongs to the CUDA context in which the communicator came up; NULL is its default
 * stream. Places, teams and actions are those of gin.h; gin_at_local() names any memory that this
 * GPU reaches. What is refused has not been enqueued: the statuses of gin_put() and its kin, and
 * GIN_EINVAL for a stream of another CUDA context, or one whose capture has failed. GIN_ENOTSUP:
 * the device communicator is for host threads, or the library was built without nvcc.
 *
 * What goes wrong later, in a wait above all, is in gin_stream_status(); what follows on the stream
 * goes on. Windows, memory and the device communicator stay until the stream has passed, and as
 * long as graphs may be launched that name them.
 */
#ifndef GINSHMEM_STREAM_H
#define GINSHMEM_STREAM_H

#include <ginshmem/barrier.h>
#include <ginshmem/gin.h>
#include <ginshmem/lsa.h>
#include <ginshmem/signal.h>

/* A CUstream or cudaStream_t. */
typedef struct CUstream_st *gin_stream_t;

/* Operations on words; those from GIN_AMO_FETCH on bring the word before. */
typedef enum gin_amo {
    GIN_AMO_SET = 0,
    GIN_AMO_ADD = 1,
    GIN_AMO_AND = 2,
    GIN_AMO_OR = 3,
    GIN_AMO_XOR = 4,
    GIN_AMO_FETCH = 5,
    GIN_AMO_FETCH_ADD = 6,
    GIN_AMO_FETCH_AND = 7,
    GIN_AMO_FETCH_OR = 8,
    GIN_AMO_FETCH_XOR = 9,
    GIN_AMO_SWAP = 10,
    GIN_AMO_CAS = 11 /* becomes `value` where it equals `expected` */
} gin_amo_t;

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

/* ---- data ---- */

/*
 * gin_put() on a stream. Once the stream has passed, the source may be reused; over load and store
 * the bytes are at the target then.
 */
GIN_API int gin_put_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                              gin_at_t dst, gin_at_t src, size_t bytes, gin_action_t remote,
                              gin_stream_t stream);
/* Store the low `bytes` (1 .. 8) bytes of `value`. */
GIN_API int gin_put_value_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                    int peer, gin_at_t dst, uint64_t value, size_t bytes,
                                    gin_action_t remote, gin_stream_t stream);
/* Copy from `src` at `peer` to `dst` (mine): the bytes are here once the stream has passed. */
GIN_API int gin_get_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                              gin_at_t src, gin_at_t dst, size_t bytes, gin_stream_t stream);

/* ---- signals ---- */

/* Deliver an action without data; it releases what the stream did before. */
GIN_API int gin_signal_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                 int peer, gin_action_t remote, gin_stream_t stream);
/* The stream waits until slot signal `id` is at least `least`; later work sees what it covers. */
GIN_API int gin_wait_signal_on_stream(const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                                      uint64_t least, gin_stream_t stream);
/* opt may be NULL; opt->poll is refused (GIN_EINVAL): a stream waits. */
GIN_API int gin_wait_signal_until_on_stream(const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                                            gin_cmp_t cmp, uint64_t operand,
                                            const gin_wait_opt_t *opt, gin_stream_t stream);
/* The same of an 8-byte word of mine. */
GIN_API int gin_wait_signal_at_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_at_t at,
                                         uint64_t least, const gin_wait_opt_t *opt,
                                         gin_stream_t stream);
GIN_API int gin_wait_signal_until_at_on_stream(const gin_devcomm_t *dev, uint32_t context,
                                               gin_at_t at, gin_cmp_t cmp, uint64_t operand,
                                               const gin_wait_opt_t *opt, gin_stream_t stream);
/* Take n off the value, so that a graph may wait for the same next time; no increment is lost. */
GIN_API int gin_consume_signal_on_stream(const gin_devcomm_t *dev, uint32_t context, uint32_t id,
                                         uint64_t n, gin_stream_t stream);
GIN_API int gin_consume_signal_at_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_at_t at,
                                            uint64_t n, gin_stream_t stream);

/* ---- atomics ---- */

/*
 * A 64-bit word of a window at a peer. Fetching operations write the word before to *old, which is
 * memory that this GPU reaches; the others take NULL. `expected` is for GIN_AMO_CAS alone.
 */
GIN_API int gin_amo_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team, int peer,
                              gin_at_t at, gin_amo_t op, uint64_t value, uint64_t expected,
                              uint64_t *old, gin_stream_t stream);
GIN_API int gin_amo32_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                int peer, gin_at_t at, gin_amo_t op, uint32_t value,
                                uint32_t expected, uint32_t *old, gin_stream_t stream);

/* ---- completion ---- */

/* gin_flush(), gin_fence_all() and gin_quiet() of what was issued in a context before the stream
 * comes here, by kernels and streams alike; GIN_ALL_CONTEXTS: in all of them. */
GIN_API int gin_flush_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_stream_t stream);
GIN_API int gin_fence_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_stream_t stream);
GIN_API int gin_quiet_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_stream_t stream);

/*
 * The stream waits until every rank of the barrier's team has come to it, and what each of them
 * issued before in any context, in kernels or on streams, is complete as `fence` says (enum
 * gin_fence_level). A rank may come from a kernel as well as from a stream. One barrier per index
 * may be under way on a rank.
 */
GIN_API int gin_barrier_on_stream(const gin_devcomm_t *dev, gin_barrier_t which, uint32_t index,
                                  unsigned fence, gin_stream_t stream);

/* ---- collectives ---- */

/*
 * Those of collective.h, among kernels and streams of all members: one rank may come from a kernel,
 * another one from a stream. They take the context's ring where members are reached through the
 * engine; GIN_ALL_CONTEXTS takes any. Places are of GPU memory, or of host memory that this GPU
 * reaches. The arrays of gin_alltoallv_on_stream() are memory that this GPU reaches, too, and are
 * read when the stream comes there.
 */
GIN_API int gin_sync_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                               uint32_t index, gin_stream_t stream);
GIN_API int gin_broadcast_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                    uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                    gin_type_t type, int root, gin_stream_t stream);
GIN_API int gin_allgather_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                    uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                    gin_type_t type, gin_stream_t stream);
GIN_API int gin_gather_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                 uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                 gin_type_t type, int root, gin_stream_t stream);
GIN_API int gin_alltoall_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                   uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                   gin_type_t type, gin_stream_t stream);
GIN_API int gin_alltoallv_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                    uint32_t index, gin_at_t dst, const size_t *dst_counts,
                                    const size_t *dst_firsts, gin_at_t src,
                                    const size_t *src_counts, const size_t *src_firsts,
                                    gin_type_t type, gin_stream_t stream);
GIN_API int gin_allreduce_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                    uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                    gin_type_t type, gin_reduction_t op, gin_stream_t stream);
GIN_API int gin_reduce_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                                 uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                                 gin_type_t type, gin_reduction_t op, int root,
                                 gin_stream_t stream);
GIN_API int gin_reduce_scatter_on_stream(const gin_devcomm_t *dev, uint32_t context,
                                         gin_team_t team, uint32_t index, gin_at_t dst,
                                         gin_at_t src, size_t count, gin_type_t type,
                                         gin_reduction_t op, gin_stream_t stream);
GIN_API int gin_scan_on_stream(const gin_devcomm_t *dev, uint32_t context, gin_team_t team,
                               uint32_t index, gin_at_t dst, gin_at_t src, size_t count,
                               gin_type_t type, gin_reduction_t op, gin_stream_t stream);
GIN_API int gin_scan_exclusive_on_stream(const gin_devcomm_t *dev, uint32_t context,
                                         gin_team_t team, uint32_t index, gin_at_t dst,
                                         gin_at_t src, size_t count, gin_type_t type,
                                         gin_reduction_t op, gin_stream_t stream);

/*
 * How the operations on streams went that have ended: GIN_OK, or the status of the first one that
 * failed since this was last asked, which gin_last_error() names; then the communicator's own.
 */
GIN_API int gin_stream_status(const gin_devcomm_t *dev);

GIN_END_DECLS
#endif
#endif
