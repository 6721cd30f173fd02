/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations for one operation (net_lend.c). */
#ifndef GI_NET_LEND_H
#define GI_NET_LEND_H

#include "devcomm.h"
#include "net_up.h"

struct gi_net_loan;

/* For an operation on [addr, addr + bytes) of my memory: *region is to be passed on, NULL where
 * none is needed. *loan: made for it, or NULL. */
int gi_net_lend(struct gi_devcomm *d, void *addr, uint64_t bytes, struct gi_core_region **region,
                struct gi_net_loan **loan);
/* The operation's notice, by which the loan ends; NULL for no loan. */
struct gi_core_notice *gi_net_loan_notice(struct gi_net_loan *loan);
void gi_net_loan_undo(struct gi_net_loan *loan); /* nothing was posted; NULL: nothing to do */
void gi_net_lend_close(struct gi_devcomm *d);    /* its contexts are closed */

#endif
