/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core over each libfabric provider that is here, ranks in one process: what was put is there
 * when its signal or the end of quiet says so. The rules themselves are tried over fault(self).
 */
#include <string.h>
#include "tests/unit/core_bed.h"
#include "transport/ofi/ofi.h"

static bool is_here(const char *provider)
{
    struct gi_net_config config = {.provider = provider, .size = 1, .self_test = true};
    struct gi_net_domain *d;
    int st = gi_ofi_ops.open(&config, &d);
    if (st == GIN_OK)
        gi_ofi_ops.close(d);
    return st == GIN_OK;
}

/* Puts of all to all, the last with a strong signal; whoever has all signals has all bytes. */
static void signalled(struct bed *b, unsigned round)
{
    enum { EACH = 5000, PUTS = 4 };
    for (int from = 0; from < b->n; from++) {
        memset(b->rank[from].memory, (int)(16 * round) + from + 1, EACH);
        for (int to = 0; to < b->n; to++)
            for (int k = 0; k < PUTS; k++) {
                uint64_t dst = 65536 + (uint64_t)(from * PUTS + k) * EACH;
                struct gi_core_put p = bed_make_put(b, from, dst, 0, EACH - (uint64_t)k);
                if (k == PUTS - 1)
                    p.action = bed_slot(1, 1, true);
                EXPECT_EQ_INT(bed_put(b, from, to, &p), GIN_OK);
            }
    }
    for (int to = 0; to < b->n; to++) {
        while (bed_signal(b, to, 1) < (uint64_t)b->n * (round + 1))
            bed_step(b);
        for (int from = 0; from < b->n; from++)
            for (int k = 0; k < PUTS; k++)
                EXPECT_FILLED(b->rank[to].memory + 65536 + (from * PUTS + k) * EACH, EACH - k,
                              (unsigned char)(16 * round + (unsigned)from + 1));
    }
}

static void settled(struct bed *b, unsigned round)
{
    for (int from = 0; from < b->n; from++) {
        int to = (from + 1) % b->n;
        unsigned char byte = (unsigned char)(128 + 8 * round + (unsigned)from);
        memset(b->rank[from].memory, byte, 60000);
        struct gi_core_put p = bed_make_put(b, from, 65536, 0, 60000);
        EXPECT_EQ_INT(bed_put(b, from, to, &p), GIN_OK);
        EXPECT_EQ_INT(bed_quiet(b, from, GI_CORE_ALL), GIN_OK);
        EXPECT_FILLED(b->rank[to].memory + 65536, 60000, byte);
    }
}

/* spoilt: as of GINSHMEM_TEST_NET, or NULL. mask: the record's. */
static void over_as(const char *provider, const char *spoilt, const char *mask)
{
    static struct bed b;
    if (PT_RACE_DETECTOR)
        SKIP("libfabric is not built for the thread sanitizer");
    if (!is_here(provider))
        SKIP("%s is not here", provider);
    memset(&b, 0, sizeof(b));
    b.provider = provider;
    b.spoilt = spoilt;
    if (bed_open(&b, bed_mask(mask), 3))
        for (unsigned round = 0; round < 6; round++) {
            pt_step("%s, round %u", provider, round);
            signalled(&b, round);
            settled(&b, round);
        }
    /* signals by the provider's own atomics, where it has an order for them */
    for (int r = 0; spoilt != NULL && r < b.n; r++)
        EXPECT(gi_core_counts(b.rank[r].ctx)[GI_CORE_N_NATIVE] != 0);
    bed_close(&b);
}

static void over(const char *provider)
{
    over_as(provider, NULL, "B64");
}

static void over_natives(const char *provider)
{
    over_as(provider, "class=A", "A");
}

TEST(net)
{
    over("net");
}

TEST(tcp)
{
    over("tcp");
}

TEST(rxm)
{
    over("tcp;ofi_rxm");
}

TEST(shm)
{
    over("shm");
}

TEST(shm_natives)
{
    over_natives("shm");
}
