/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals and counters: reading, waiting, resetting.
 *
 * A slot signal is a 64-bit value per (device communicator, context, id), raised by peers, read by
 * its owner. A counter is the same, raised by this rank's own operations. An `_at` signal is an
 * ordinary 8-byte word of my own window memory that peers raise with `_at` actions. Waits are
 * acquires. "At least" is a rolling comparison: values wrap, and a value up to half a turn ahead of
 * `least` satisfies it.
 */
#ifndef GINSHMEM_SIGNAL_H
#define GINSHMEM_SIGNAL_H

#include <ginshmem/gin.h>

typedef enum gin_cmp { /* unsigned comparison of the value with the operand */
                       GIN_CMP_EQ = 0,
                       GIN_CMP_NE = 1,
                       GIN_CMP_GT = 2,
                       GIN_CMP_GE = 3,
                       GIN_CMP_LT = 4,
                       GIN_CMP_LE = 5
} gin_cmp_t;

/* ---- slot signals ---- */

/* Value now, an acquire. 0 and an error in gin_status() for a bad id. */
GIN_OP uint64_t gin_read_signal(const gin_t *g, uint32_t id);
/* Wait until the value is at least `least`. GIN_ERANGE, GIN_EPEER, GIN_ETIMEDOUT. */
GIN_OP int gin_wait_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least);
GIN_OP int gin_wait_signal_x(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                             const gin_wait_opt_t *opt);
/* GIN_OK when the value is at least `least` now, else GIN_EAGAIN. */
GIN_OP int gin_test_signal(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least);
/* Wait until (value cmp operand) holds. */
GIN_OP int gin_wait_signal_until(const gin_t *g, gin_group_t grp, uint32_t id, gin_cmp_t cmp,
                                 uint64_t operand, const gin_wait_opt_t *opt);
/* Take n off the value; no increment can be lost. */
GIN_OP int gin_consume_signal(const gin_t *g, uint32_t id, uint64_t n);
/* Make the value 0 by moving its base; *old (may be NULL) gets what it was. No increment can be
 * lost, and the shadow becomes 0. */
GIN_OP int gin_reset_signal(const gin_t *g, uint32_t id, uint64_t *old);

/*
 * Several at once: signals ids[0 .. n-1], each with its own `least`. skip (may be NULL): entries
 * with skip[i] != 0 are left out. With nothing to wait for, all is satisfied at once and any and
 * some report none; no call blocks then. poll in opt turns them into tests (GIN_EAGAIN).
 */
GIN_OP int gin_wait_signal_all(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                               const uint64_t *least, size_t n, const int *skip,
                               const gin_wait_opt_t *opt);
/* *which: the first satisfied entry found, n when none was to be waited for. */
GIN_OP int gin_wait_signal_any(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                               const uint64_t *least, size_t n, const int *skip, size_t *which,
                               const gin_wait_opt_t *opt);
/* which[0 .. *count-1]: all satisfied entries, at least one unless none was to be waited for. */
GIN_OP int gin_wait_signal_some(const gin_t *g, gin_group_t grp, const uint32_t *ids,
                                const uint64_t *least, size_t n, const int *skip, size_t *which,
                                size_t *count, const gin_wait_opt_t *opt);

/* ---- shadows: this rank's own count beside a signal ---- */

/* The shadow word of a signal, the caller's to read and write; NULL for a bad id. */
GIN_OP uint64_t *gin_signal_shadow(const gin_t *g, uint32_t id);
GIN_OP int gin_increase_shadow(const gin_t *g, uint32_t id, uint64_t delta);
/* Wait until the signal is at least its shadow. */
GIN_OP int gin_wait_signal_meet_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                                       const gin_wait_opt_t *opt);
/* Wait until the signal is at least shadow + least; then shadow = signal. *before and *delta (may
 * be NULL): the shadow before, and how much it grew. */
GIN_OP int gin_wait_signal_follow_shadow(const gin_t *g, gin_group_t grp, uint32_t id,
                                         uint64_t least, uint64_t *before, uint64_t *delta,
                                         const gin_wait_opt_t *opt);

/* ---- words of windows ---- */

/* `at` is a place of mine: gin_at() of any window that I own a part of, or gin_at_local(). */
GIN_OP uint64_t gin_read_signal_at(const gin_t *g, gin_at_t at);
GIN_OP int gin_wait_signal_at(const gin_t *g, gin_group_t grp, gin_at_t at, uint64_t least,
                              const gin_wait_opt_t *opt);
GIN_OP int gin_wait_signal_until_at(const gin_t *g, gin_group_t grp, gin_at_t at, gin_cmp_t cmp,
                                    uint64_t operand, const gin_wait_opt_t *opt);
GIN_OP int gin_consume_signal_at(const gin_t *g, gin_at_t at, uint64_t n);
/* Exchange with 0: nothing is lost. */
GIN_OP int gin_reset_signal_at(const gin_t *g, gin_at_t at, uint64_t *old);

/* ---- counters ---- */

GIN_OP uint64_t gin_read_counter(const gin_t *g, uint32_t id);
GIN_OP int gin_wait_counter(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least);
GIN_OP int gin_wait_counter_x(const gin_t *g, gin_group_t grp, uint32_t id, uint64_t least,
                              const gin_wait_opt_t *opt);
GIN_OP int gin_reset_counter(const gin_t *g, uint32_t id, uint64_t *old);

#define GIN_I_DECLARED_SIGNAL
#include <ginshmem/impl/bodies.h>

#endif
