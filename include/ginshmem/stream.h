/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to come, shown so that their shape can be reviewed beside what exists: on-stream operations.
 * Nothing here is in the library, and ginshmem.h does not include this header; it
 * declares its calls only where GIN_PREVIEW is defined, for the checks of the headers.
 */
#ifndef GINSHMEM_STREAM_H
#define GINSHMEM_STREAM_H

#include <ginshmem/barrier.h>

#ifdef GIN_PREVIEW
#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

typedef struct CUstream_st *gin_stream_t;

/* Stream-ordered: return at once, never block the host, may be captured into graphs. */
int gin_put_on_stream(const gin_t *g, gin_team_t team, int peer, gin_at_t dst, gin_at_t src,
                      size_t bytes, gin_action_t remote, gin_stream_t stream);
int gin_get_on_stream(const gin_t *g, gin_team_t team, int peer, gin_at_t src, gin_at_t dst,
                      size_t bytes, gin_stream_t stream);
int gin_signal_on_stream(const gin_t *g, gin_team_t team, int peer, gin_action_t remote,
                         gin_stream_t stream);
int gin_wait_signal_on_stream(const gin_t *g, uint32_t id, uint64_t least, gin_stream_t stream);
int gin_quiet_on_stream(const gin_t *g, gin_stream_t stream);
int gin_barrier_on_stream(const gin_t *g, gin_barrier_t which, uint32_t index, unsigned fence,
                          gin_stream_t stream);

GIN_END_DECLS
#endif
#endif
#endif
