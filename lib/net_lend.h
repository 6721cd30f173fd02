/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations for one operation (net_lend.c). */
#ifndef GI_NET_LEND_H
#define GI_NET_LEND_H

#include "devcomm.h"
#include "net_up.h"

struct gi_net_loan;

/* My memory's part in an operation. */
struct gi_net_mine {
    void *addr;
    uint64_t bytes;
    uint64_t most_copied;          /* so many bytes the core may copy rather than register */
    bool copy;                     /* it does */
    struct gi_core_region *region; /* to be passed on; NULL: none is needed */
    struct gi_net_loan *loan;      /* made for the operation, or NULL */
};
/* Fill in the lower half. */
int gi_net_lend(struct gi_devcomm *d, struct gi_net_mine *m);
/* The operation's notice, by which the loan ends; NULL for no loan. */
struct gi_core_notice *gi_net_loan_notice(struct gi_net_loan *loan);
void gi_net_loan_undo(struct gi_net_loan *loan); /* nothing was posted; NULL: nothing to do */
void gi_net_lend_close(struct gi_devcomm *d);    /* its contexts are closed */

#endif
