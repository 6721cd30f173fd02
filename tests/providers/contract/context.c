/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FI_CONTEXT2: the struct behind an operation's context is the provider's, whole, until it has
 * completed. It is written full, and looked at again at the end.
 */
#include <string.h>
#include "tests/providers/contract/contract.h"

#define WORDS (sizeof(struct fi_context2) / sizeof(uint64_t))
#define MAGIC 0x9e3779b97f4a7c15u

static uint64_t word(const void *context, size_t i)
{
    return ((uint64_t)(uintptr_t)context + i) * MAGIC;
}

static bool in_use(const struct gc_ep *ep, const void *context)
{
    for (const struct gc_op *op = ep->ops; op != NULL; op = op->next)
        if (op->context == context && !op->completed)
            return true;
    for (const struct gc_recv *r = ep->recvs; r != NULL; r = r->next)
        if (r->context == context)
            return true;
    return false;
}

int gc_context_take(struct gc_ep *ep, void *context)
{
    uint64_t *w = context;
    if ((ep->p->mode & FI_CONTEXT2) == 0)
        return 0;
    if (context == NULL)
        return gc_broken(-FI_EINVAL, "FI_CONTEXT2, but an operation has no context");
    if (w[0] == word(w, 0) && in_use(ep, context))
        return gc_broken(-FI_EINVAL, "FI_CONTEXT2: a context is used for two operations at once");
    for (size_t i = 0; i < WORDS; i++)
        w[i] = word(w, i);
    return 0;
}

void gc_context_give(struct gc_ep *ep, void *context)
{
    uint64_t *w = context;
    if ((ep->p->mode & FI_CONTEXT2) == 0)
        return;
    for (size_t i = 0; i < WORDS; i++)
        if (w[i] != word(w, i)) {
            gc_broken(0, "FI_CONTEXT2: word %zu of a context was written while it was in use", i);
            return;
        }
    memset(w, 0xcb, sizeof(struct fi_context2));
}
