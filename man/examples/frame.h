/* SPDX-License-Identifier: BSD-3-Clause */
/* What the examples of the manual stand in: frame.c brings a job up
 * around example(). */
#ifndef MAN_EXAMPLES_FRAME_H
#define MAN_EXAMPLES_FRAME_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ginshmem.h>

/* The page's code on one rank, and whether its outcome is right:
 * GIN_OK or the status that stopped it. Collective. */
int example(gin_comm_t *comm, const gin_t *g);

#endif
