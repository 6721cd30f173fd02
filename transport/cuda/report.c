/* SPDX-License-Identifier: BSD-3-Clause */
/* One allgather: who failed by himself speaks for all, the lowest rank first. */
#include "transport/cuda/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"

void gi_cuda_say(struct gi_cuda_report *r, int status, bool own)
{
    memset(r, 0, sizeof(*r));
    r->status = status;
    r->own = own;
    if (status != GIN_OK)
        snprintf(r->text, sizeof(r->text), "%s", gin_last_error());
}

static const struct gi_cuda_report *report_of(const void *all, size_t bytes, int rank)
{
    return (const void *)((const char *)all + (size_t)rank * bytes);
}

int gi_cuda_hear(const struct gi_shm_config *c, const void *mine, size_t bytes, void **all)
{
    const struct gi_cuda_report *worst = NULL;
    int who = 0;
    *all = malloc((size_t)c->size * bytes);
    if (*all == NULL)
        return gi_fail(GIN_ENOMEM, "no memory for the reports of %d ranks", c->size);
    int st = c->allgather(c->arg, mine, *all, bytes);
    if (st != GIN_OK)
        return st;
    for (int r = 0; r < c->size; r++) {
        const struct gi_cuda_report *o = report_of(*all, bytes, r);
        if (o->status == GIN_OK || (worst != NULL && (!o->own || worst->own)))
            continue;
        worst = o;
        who = r;
    }
    if (worst == NULL)
        return GIN_OK;
    if (who == c->rank)
        return gi_fail(worst->status, "%s", report_of(mine, bytes, 0)->text);
    return gi_fail(worst->status, "rank %d: %.*s", who, (int)sizeof(worst->text), worst->text);
}
