/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane that closes with messages unread: libfabric's RxM, where connections have receives of
 * their own (over verbs; over tcp if it is told so), posts them again to the endpoint that it has
 * just freed. They are read before. What is freed is poisoned here.
 */
#include <malloc.h>
#include <stdlib.h>
#include "tests/providers/bed.h"
#include "transport/ofi/ofi_int.h"

#define POISON   0xa5
#define MESSAGES 60 /* more than RxM takes in one look */
#define SETTLE   20000000u

/* Without progress: what was sent lies in the sockets afterwards. */
static void all_here(struct bed *b, unsigned phase)
{
    unsigned *arrived = (unsigned *)(void *)b->mp->share + 2000 + phase;
    uint64_t end = gi_deadline_in(BED_NS);
    __atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < (unsigned)b->mp->size && gi_now_ns() < end)
        gi_os_yield();
}

/* By messages, so that there is a connection. */
static bool meet(struct bed *b)
{
    char bytes[64] = {0};
    if (b->mp->rank == 1)
        EXPECT_EQ_INT(bed_msg(b, 0, bytes, sizeof(bytes)), GIN_OK);
    bool met = b->mp->rank == 1 || BED_UNTIL(b, b->msgs == 1);
    return bed_sync(b) && met;
}

static void send_all(struct bed *b)
{
    char bytes[64] = {0};
    int sent = 0;
    uint64_t end = gi_deadline_in(BED_NS);
    while (sent < MESSAGES && gi_now_ns() < end) {
        if (b->ops->msg(b->lane, 0, bytes, sizeof(bytes)) == GIN_OK)
            sent++;
        else
            bed_progress(b);
    }
    EXPECT_EQ_INT(sent, MESSAGES);
    for (uint64_t soon = gi_deadline_in(SETTLE); gi_now_ns() < soon;)
        bed_progress(b);
}

MP_TEST_OPT(closed_with_messages_unread, .ranks = "2", .bare = true, .only = MP_PROCS)
{
    struct bed b;
    mallopt(M_PERTURB, POISON);
    setenv("FI_OFI_RXM_USE_SRX", "0", 1);
    if (bed_open(&b, mp, &gi_ofi_ops, "tcp;ofi_rxm") && meet(&b)) {
        if (mp->rank == 1)
            send_all(&b);
        all_here(&b, 0);
        if (mp->rank == 0) {
            EXPECT(b.ops->progress(b.lane, 1) >= 0);
            b.ops->lane_close(b.lane);
            b.lane = NULL;
        }
        all_here(&b, 1);
    }
    bed_close(&b);
}
