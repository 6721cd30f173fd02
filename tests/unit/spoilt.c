/* SPDX-License-Identifier: BSD-3-Clause */
/* What GINSHMEM_TEST_NET may say: a network that could be, in numbers within their ranges. */
#include <ginshmem/status.h>
#include <stdio.h>
#include <string.h>
#include "tests/pt.h"
#include "transport/fault/fault.h"
#include "transport/self/self.h"

static struct gi_self_hub *hub;

/* The status of spoiling a network of two ranks so; the record, where it is GIN_OK. */
static int spoil(const char *text, struct gi_net_caps *caps)
{
    struct gi_net_config config = {.size = 2, .more = hub};
    struct gi_net_domain *d = NULL;
    if (!EXPECT_EQ_INT(gi_self_ops.open(&config, &d), GIN_OK))
        return GIN_OK;
    int st = gi_fault_wrap(text, 0, 2, &d);
    if (st == GIN_OK)
        *caps = *d->ops->caps(d);
    d->ops->close(d);
    return st;
}

static void refused(const char *text, const char *why)
{
    struct gi_net_caps caps;
    pt_step("%s", text);
    if (!EXPECT_EQ_INT(spoil(text, &caps), GIN_EINVAL))
        return;
    EXPECT_HAS(gin_last_error(), "GINSHMEM_TEST_NET");
    EXPECT_HAS(gin_last_error(), why);
}

TEST(nonsense_is_refused)
{
    static const char *const at_least_1[] = {"max_msg", "depth", "recvs",   "write",
                                             "read",    "amo",   "msg",     "progress",
                                             "reg",     "lane",  "connect", "count"};
    static const char *const flags[] = {"saw", "was", "raw", "sas", "local", "early"};
    char text[64], why[96];
    EXPECT_EQ_INT(gi_self_hub_open(&hub), GIN_OK);
    for (size_t i = 0; i < sizeof(at_least_1) / sizeof(at_least_1[0]); i++)
        for (int n = -1; n <= 0; n++) {
            snprintf(text, sizeof(text), "seed=3,%s=%d,hold=1", at_least_1[i], n);
            snprintf(why, sizeof(why), "%s=%d is not in 1 .. ", at_least_1[i], n);
            refused(text, why);
        }
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        snprintf(text, sizeof(text), "%s=2", flags[i]);
        snprintf(why, sizeof(why), "%s=2 is not in 0 .. 1", flags[i]);
        refused(text, why);
    }
    refused("waw=-1", "waw=-1 is not in 0 .. ");
    refused("inject=-1", "inject=-1 is not in 0 .. ");
    refused("dc=3", "dc=3 is not in 0 .. 2");
    refused("imm=16", "imm=16 is none of 0, 32, 64");
    refused("imm=-32", "imm=-32 is none of 0, 32, 64");
    refused("msg_max=63", "msg_max=63 is not in 64 .. 1024");
    refused("depth=4294967296", "depth=4294967296 is not in 1 .. 4294967295");
    refused("hold=-1", "hold=-1 is not in 0 .. ");
    refused("hold=4294967295", "hold=4294967295 is not in 0 .. ");
    refused("again=1000", "again=1000 is not in 0 .. 999");
    refused("silent=1001", "silent=1001 is not in 0 .. 1000");
    refused("seed=-1", "seed=-1 is not in 0 .. ");
    refused("status=0", "status=0 is not in -99 .. -1");
    refused("rank=2", "rank=2 is not in 0 .. 1");
    refused("rank=-1", "rank=-1 is not in 0 .. 1");
    refused("depth=99999999999999999999", "KEY=NUMBER");
    refused("depth=", "KEY=NUMBER");
    refused("depth=4x", "KEY=NUMBER");
    refused("depth", "KEY=NUMBER");
    refused("deep=4", "there is no \"deep\"");
    refused("class=E", "is no class");
    refused("class=BB", "is no class");
    gi_self_hub_close(hub);
}

TEST(numbers_in_range_count)
{
    struct gi_net_caps caps;
    EXPECT_EQ_INT(gi_self_hub_open(&hub), GIN_OK);
    EXPECT_EQ_INT(spoil("depth=1,max_msg=1,msg_max=64,inject=0,imm=32,dc=0,waw=0,saw=0,recvs=3,"
                        "local=1,hold=0,again=999,silent=0,seed=0,write=1,count=4294967295,"
                        "status=-41,error=-5,rank=1",
                        &caps),
                  GIN_OK);
    EXPECT(caps.depth == 1 && caps.max_msg == 1 && caps.msg_max == 64 && caps.inject == 0);
    EXPECT(caps.imm_bits == 32 && caps.dc == GI_NET_DC_NO && caps.waw_bytes == 0 && !caps.saw);
    EXPECT(caps.recvs == 3 && caps.mr_local);
    gi_self_hub_close(hub);
}
