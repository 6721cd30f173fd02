/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One result that somebody else delivers, awaited until a deadline. Launchers' libraries have calls
 * without a deadline; when we give up on one, it may still end later, so the latch belongs to both
 * sides and goes with the last of them.
 */
#ifndef GI_BOOT_BOOT_LATCH_H
#define GI_BOOT_BOOT_LATCH_H

#include <stdbool.h>
#include <stdint.h>

struct gi_boot;
struct gi_latch;

struct gi_latch *gi_latch_new(void);
/* The deliverer's only and last call. thing is NULL or from malloc() and changes hands. */
void gi_latch_deliver(struct gi_latch *latch, int result, void *thing);
/*
 * The waiter's last call: true and what was delivered, or false at the deadline or when boot (NULL:
 * nobody) is asked to stop. Without a place
 * for the thing it is freed.
 */
bool gi_latch_await(struct gi_latch *latch, struct gi_boot *boot, uint64_t deadline, int *result,
                    void **thing);
/* The waiter's last call where nothing was started. */
void gi_latch_cancel(struct gi_latch *latch);

#endif
