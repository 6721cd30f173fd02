/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring on the CPU: many producers and one consumer over thousands of laps of the smallest rings
 * there are; slots that are written in part; tickets given up; what a failure leaves uncounted.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "ring.h"
#include "tests/pt.h"

struct bed {
    struct gi_ring ring;
    char *memory;
    uint64_t ticket;
    uint64_t each; /* descriptors of a producer */
};

static bool up(struct bed *b, uint32_t depth)
{
    uint64_t bytes = gi_ring_plan(depth, 4).bytes;
    memset(b, 0, sizeof(*b));
    b->memory = aligned_alloc(64, bytes);
    if (!EXPECT(b->memory != NULL))
        return false;
    memset(b->memory, 0, bytes);
    gi_ring_init(&b->ring, b->memory, depth, 4);
    return true;
}

static void write_slot(struct bed *b, const struct gin_i_op *op, uint64_t t)
{
    struct gin_i_desc d;
    struct gin_i_desc *slot = &b->ring.slots[t & (b->ring.depth - 1)];
    gin_i_desc_pack(&d, op, gin_i_desc_phase(t, b->ring.depth));
    GIN_FENCE_RELEASE();
    for (unsigned i = 0; i < GIN_I_DESC_WORDS; i++)
        GIN_STORE_RELAXED(&slot->w[(i * 3 + t) % 8], d.w[(i * 3 + t) % 8]);
}

static uint64_t post(struct bed *b, const struct gin_i_op *op)
{
    uint64_t t = __atomic_fetch_add(&b->ticket, 1, __ATOMIC_RELAXED);
    while (t - GIN_LOAD_ACQUIRE(&b->ring.host->consumed) >= b->ring.depth)
        sched_yield();
    write_slot(b, op, t);
    return t;
}

/* ---- many producers ---- */

struct producer {
    struct bed *b;
    uint32_t me;
};

static void *produce(void *arg)
{
    const struct producer *p = arg;
    for (uint64_t i = 1; i <= p->b->each; i++) {
        struct gin_i_op o = {.op = GIN_I_DESC_PUT_VALUE, .peer = p->me, .dst_off = i};
        o.immediate = i << 40 | i;
        o.value = ~i;
        if (i % 7 == 0)
            o = (struct gin_i_op){.op = GIN_I_DESC_NOP, .peer = p->me, .dst_off = i};
        post(p->b, &o);
    }
    return NULL;
}

/* Each producer's descriptors come out in its order, whole, once. */
static void many_producers(uint32_t depth, uint32_t producers, uint64_t each)
{
    struct bed b;
    struct producer p[8];
    pthread_t thread[8];
    uint64_t last[8] = {0}, total = producers * each;
    if (!up(&b, depth))
        return;
    b.each = each;
    for (uint32_t i = 0; i < producers; i++) {
        p[i] = (struct producer){&b, i};
        pthread_create(&thread[i], NULL, produce, &p[i]);
    }
    for (uint64_t n = 0; n < total;) {
        struct gin_i_op o;
        if (!gi_ring_next(&b.ring, &o)) {
            gi_ring_tell(&b.ring);
            sched_yield();
            continue;
        }
        n++;
        if (!EXPECT(o.peer < producers))
            break;
        EXPECT_EQ_U64(o.dst_off, ++last[o.peer]);
        if (o.op == GIN_I_DESC_PUT_VALUE) {
            EXPECT_EQ_U64(o.immediate, o.dst_off << 40 | o.dst_off);
            EXPECT_EQ_U64(o.value, ~o.dst_off);
        }
        b.ring.done = b.ring.taken;
        if (n % 5 == 0)
            gi_ring_tell(&b.ring);
    }
    gi_ring_tell(&b.ring);
    for (uint32_t i = 0; i < producers; i++) {
        pthread_join(thread[i], NULL);
        EXPECT_EQ_U64(last[i], each);
    }
    EXPECT_EQ_U64(b.ring.host->consumed, total);
    EXPECT_EQ_U64(b.ring.host->done, total);
    EXPECT(!gi_ring_has_next(&b.ring));
    free(b.memory);
}

TEST(two_slots_many_laps)
{
    many_producers(2, 1, 20000);
    many_producers(2, 3, 4000);
}

TEST(many_producers_come_out_in_order)
{
    many_producers(8, 8, 2000);
    many_producers(1024, 4, 20000);
}

/* ---- slots ---- */

/* Whatever is missing, nothing is taken; on every lap. */
TEST(parts_are_not_taken)
{
    struct bed b;
    struct gin_i_op o = {.op = GIN_I_DESC_PUT, .peer = 3, .size = 77, .value = ~(uint64_t)0}, got;
    if (!up(&b, 2))
        return;
    for (uint64_t t = 0; t < 12; t++) {
        struct gin_i_desc d;
        gin_i_desc_pack(&d, &o, gin_i_desc_phase(t, 2));
        EXPECT(!gi_ring_has_next(&b.ring));
        for (unsigned k = 0; k < GIN_I_DESC_WORDS; k++) {
            EXPECT(!gi_ring_next(&b.ring, &got));
            b.ring.slots[t & 1].w[(k + t) % 8] = d.w[(k + t) % 8];
            EXPECT(gi_ring_has_next(&b.ring));
        }
        EXPECT(gi_ring_next(&b.ring, &got));
        EXPECT_EQ_U64(got.size, 77);
        EXPECT_EQ_U64(got.value, ~(uint64_t)0);
    }
    free(b.memory);
}

TEST(depths)
{
    EXPECT_EQ_INT(gi_ring_depth(0), GI_RING_DEPTH);
    EXPECT_EQ_INT(gi_ring_depth(1), 2);
    EXPECT_EQ_INT(gi_ring_depth(3), 4);
    EXPECT_EQ_INT(gi_ring_depth(64), 64);
    EXPECT_EQ_INT(gi_ring_depth(1u << 31), GI_RING_DEEPEST);
}

/* ---- ends ---- */

TEST(the_first_error_stays_and_the_earliest_ticket)
{
    struct bed b;
    if (!up(&b, 4))
        return;
    b.ring.taken = 9;
    gi_ring_kill(&b.ring, 7, GIN_ERANGE, 2);
    gi_ring_kill(&b.ring, 5, GIN_ESTATE, 2);
    gi_ring_kill(&b.ring, 8, GIN_EINVAL, 2);
    EXPECT(b.ring.dead);
    EXPECT_EQ_U64(b.ring.failed, 5);
    EXPECT_EQ_U64(b.ring.host->error, gi_error_word(GIN_ERANGE, 2));
    free(b.memory);
}

/* A producer that cannot publish its ticket says so: what is in the ring is not taken any more. */
TEST(a_ticket_left_unpublished_ends_the_ring)
{
    struct bed b;
    if (!up(&b, 4))
        return;
    gi_ring_look(&b.ring);
    EXPECT(!b.ring.dead);
    b.ring.taken = 3;
    b.ring.host->error = gi_error_word(GIN_ETIMEDOUT, -1);
    gi_ring_look(&b.ring);
    EXPECT(b.ring.dead);
    EXPECT_EQ_U64(b.ring.failed, 3);
    free(b.memory);
}
