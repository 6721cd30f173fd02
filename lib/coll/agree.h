/* SPDX-License-Identifier: BSD-3-Clause */
/* Checked mode: members compare what they were asked for before they begin. */
#ifndef GI_COLL_AGREE_H
#define GI_COLL_AGREE_H

#include "coll/coll.h"

/* *status: of what this rank was asked for; becomes GIN_OK when all members ask for the same and
 * none is refused, else the same verdict on all of them. Returns a failure on the way to it. */
int gi_coll_agree(struct gi_coll_call *o, int *status);
/* Name of a kind, for people. */
const char *gi_coll_name(unsigned kind);

#endif
