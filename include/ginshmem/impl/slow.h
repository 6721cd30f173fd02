/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where inlined code goes when its short cut does not hold: bad input, no mapping, a wait that
 * takes longer. Each does the whole operation with all checks, or refuses it with a text. Exported,
 * not API.
 */
#include <ginshmem/impl/bodies.h>

#ifndef GINSHMEM_IMPL_SLOW_H
#define GINSHMEM_IMPL_SLOW_H

enum gin_i_amo_op {
    GIN_I_AMO_SET,
    GIN_I_AMO_ADD,
    GIN_I_AMO_AND,
    GIN_I_AMO_OR,
    GIN_I_AMO_XOR,
    GIN_I_AMO_FETCH, /* from here on the word's old value is wanted */
    GIN_I_AMO_FETCH_ADD,
    GIN_I_AMO_FETCH_AND,
    GIN_I_AMO_FETCH_OR,
    GIN_I_AMO_FETCH_XOR,
    GIN_I_AMO_SWAP,
    GIN_I_AMO_CAS
};

enum gin_i_flush_what { GIN_I_FLUSH, GIN_I_FENCE, GIN_I_QUIET };

#ifndef __CUDACC_RTC__
GIN_BEGIN_DECLS

GIN_API int gin_i_open(const gin_devcomm_t *dev, uint32_t index, gin_t *g);
GIN_API int gin_i_status(const gin_t *g);
GIN_API int gin_i_put(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t dst,
                      gin_at_t src, size_t bytes, const gin_action_t *remote,
                      const gin_op_opt_t *opt);
/* The text of the gin_put() or gin_put_x() that it was speaks of gin_put_value() or of its _x form;
 * returns st. */
GIN_API int gin_i_put_value_failed(int st, int x);
GIN_API int gin_i_get(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t src,
                      gin_at_t dst, size_t bytes, const gin_op_opt_t *opt);
GIN_API int gin_i_lsa_broadcast(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src,
                                size_t bytes);
GIN_API int gin_i_lsa_reduce(const gin_t *g, gin_group_t grp, gin_at_t dst, gin_at_t src,
                             size_t count, gin_type_t type, gin_reduction_t op);
GIN_API int gin_i_lsa_add(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t value);
GIN_API int gin_i_signal(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                         const gin_action_t *remote, const gin_op_opt_t *opt);
GIN_API int gin_i_amo(const gin_t *g, gin_group_t grp, gin_team_t team, int peer, gin_at_t at,
                      enum gin_i_amo_op op, uint32_t bytes, uint64_t value, uint64_t expected,
                      uint64_t *old);
/* Flush, fence or quiet of everything (peer -1) or one peer. */
GIN_API int gin_i_complete(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                           enum gin_i_flush_what what, const gin_wait_opt_t *opt);
GIN_API int gin_i_request(const gin_t *g, gin_group_t grp, gin_team_t team, int peer,
                          gin_request_t *req);
GIN_API int gin_i_wait_request(const gin_t *g, gin_group_t grp, const gin_request_t *req,
                               const gin_wait_opt_t *opt);
GIN_API gin_at_t gin_i_at_ptr(const gin_t *g, const void *ptr);
GIN_API void *gin_i_ptr(const gin_t *g, int world, gin_at_t at, uint64_t bytes);
GIN_API int gin_i_world_rank(const gin_t *g, gin_team_t team, int rank);

/* Signals: at.win == none means slot `id`, else the word. */
GIN_API int gin_i_wait_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                              const gin_wait_opt_t *opt);
GIN_API int gin_i_wait_until(const gin_t *g, gin_group_t grp, uint32_t id, gin_at_t at,
                             gin_cmp_t cmp, uint64_t operand, const gin_wait_opt_t *opt);
GIN_API int gin_i_wait_at(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t least,
                          const gin_wait_opt_t *opt);
GIN_API int gin_i_wait_counter(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                               const gin_wait_opt_t *opt);
/* mode 0 all, 1 any, 2 some */
GIN_API int gin_i_wait_set(const gin_t *g, gin_group_t grp, int mode, const uint32_t *ids,
                           const uint64_t *least, size_t n, const int *skip, size_t *which,
                           size_t *count, const gin_wait_opt_t *opt);
GIN_API int gin_i_meet_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                              const gin_wait_opt_t *opt);
GIN_API int gin_i_follow_shadow(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                                uint64_t *before, uint64_t *delta, const gin_wait_opt_t *opt);
/* Bad slot or counter id: GIN_ERANGE or GIN_ESTATE with a text. limit UINT64_MAX: `what` says it.
 */
GIN_API int gin_i_bad_id(const gin_t *g, const char *what, uint64_t id, uint64_t limit);
/* My 8-byte word at a place, or NULL with the error recorded. */
GIN_API uint64_t *gin_i_word(const gin_t *g, gin_at_t at);

GIN_API int gin_i_barrier(const gin_t *g, gin_group_t grp, gin_barrier_t which, uint32_t index,
                          gin_order_t order, unsigned fence, const gin_wait_opt_t *opt);
GIN_API int gin_i_lsa_arrive(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order);
GIN_API int gin_i_lsa_wait(const gin_t *g, gin_group_t grp, uint32_t index, gin_order_t order,
                           const gin_wait_opt_t *opt);

GIN_END_DECLS
#endif
#endif
