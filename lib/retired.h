/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that values in the program's hands may still point to after its object is gone: copies of
 * device communicators and of contexts. It stays mapped and zeroed, which refuses everything, until
 * a new object of the same size takes it.
 */
#ifndef GI_RETIRED_H
#define GI_RETIRED_H

#include <stddef.h>

/* Zeroed pages that a fork()ed child finds zeroed, too; NULL: none to be had. */
void *gi_retired_take(size_t bytes);
/* Back, with the size that they were taken with. NULL is allowed. */
void gi_retired_give(void *p, size_t bytes);
/* In a fork()ed child: a thread of the parent may have been in here. */
void gi_retired_forked(void);

#endif
