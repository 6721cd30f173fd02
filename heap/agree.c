/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares the records of all ranks: by words while all is well, field by field to say what is not.
 * Everything is judged against rank 0, so that all ranks come to the same sentence.
 */
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "heap/agree.h"

typedef unsigned long long ull;
typedef uint64_t __attribute__((may_alias)) word;

static const struct {
    const char *call, *size, *align, *offset, *extra;
} names[GI_AGREE_N_OPS] = {
    [GI_AGREE_NONE] = {"a collective call", "size", "alignment", "offset", "flags"},
#define GI_AGREE_NAMES(id, ...) [GI_AGREE_##id] = {__VA_ARGS__},
    GI_AGREE_OPS(GI_AGREE_NAMES)
#undef GI_AGREE_NAMES
};

static uint32_t op_of(const struct gi_agree_record *r)
{
    return r->op < GI_AGREE_N_OPS ? r->op : GI_AGREE_NONE;
}

static const char *call_of(const struct gi_agree_record *r)
{
    return names[op_of(r)].call;
}

static int differs(const struct gi_agree_record *all, int r, const char *what, uint64_t x,
                   uint64_t y)
{
    return gi_fail(GIN_EMISMATCH,
                   "%s (collective call %llu): ranks disagree on the %s: %llu on rank 0, %llu on "
                   "rank %d",
                   call_of(all), (ull)all->seq, what, (ull)x, (ull)y, r);
}

/* First rank whose call or arguments are not rank 0's. */
static int judge_arguments(const struct gi_agree_record *all, int size)
{
    for (int r = 1; r < size; r++)
        if (all[r].seq != all->seq || all[r].op != all->op)
            return gi_fail(GIN_EMISMATCH,
                           "ranks are in different collective calls: rank 0 in %s (its call %llu), "
                           "rank %d in %s (its call %llu)",
                           call_of(all), (ull)all->seq, r, call_of(&all[r]), (ull)all[r].seq);
    for (int r = 1; r < size; r++) {
        if (all[r].size != all->size)
            return differs(all, r, names[op_of(all)].size, all->size, all[r].size);
        if (all[r].align != all->align)
            return differs(all, r, names[op_of(all)].align, all->align, all[r].align);
        if (all[r].extra != all->extra)
            return differs(all, r, names[op_of(all)].extra, all->extra, all[r].extra);
        if (all[r].kind != all->kind)
            return differs(all, r, "kind of memory", all->kind, all[r].kind);
    }
    return GIN_OK;
}

static int judge(const struct gi_agree_record *mine, const struct gi_agree_record *all, int size)
{
    int st = judge_arguments(all, size);

    if (st != GIN_OK)
        return st;
    for (int r = 0; r < size; r++) {
        if (all[r].status == GIN_OK)
            continue;
        if (memcmp(&all[r], mine, sizeof(*mine)) == 0) /* mine: its reason is recorded already */
            return all[r].status;
        return gi_fail(all[r].status, "%s (collective call %llu) failed on rank %d: %s: %s",
                       call_of(all), (ull)all->seq, r, gin_status_name(all[r].status),
                       gin_strerror(all[r].status));
    }
    for (int r = 1; r < size; r++) {
        if (all[r].offset != all->offset)
            return differs(all, r, names[op_of(all)].offset, all->offset, all[r].offset);
        if (all[r].fingerprint != all->fingerprint)
            return differs(all, r, "fingerprint of earlier allocations", all->fingerprint,
                           all[r].fingerprint);
    }
    return GIN_OK;
}

int gi_agree_judge(const struct gi_agree_record *mine, int size, const struct gi_agree_record *all)
{
    const word *m = (const word *)mine;
    uint64_t diff = 0;

    for (int r = 0; r < size; r++) {
        const word *w = (const word *)&all[r];

        diff |= (m[0] ^ w[0]) | (m[1] ^ w[1]) | (m[2] ^ w[2]) | (m[3] ^ w[3]);
        diff |= (m[4] ^ w[4]) | (m[5] ^ w[5]) | (m[6] ^ w[6]) | (m[7] ^ w[7]);
    }
    if (GIN_LIKELY(diff == 0)) /* a failure that all share has its text on all */
        return mine->status;
    return judge(mine, all, size);
}

int gi_agree(const struct gi_agree_record *mine, int size, gi_agree_exchange_fn exchange, void *arg)
{
    const struct gi_agree_record *all = NULL;
    int st;

    if (size == 1)
        return mine->status;
    st = exchange(arg, mine, &all);
    if (st == GIN_OK)
        return gi_agree_judge(mine, size, all);
    gi_fail_context("%s", call_of(mine));
    return st;
}
