/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor and the ring's phases: what goes in comes out, whatever the lap, and a slot that
 * is not yet written, or only in part, is told from one that is.
 */
#include <string.h>
#include <ginshmem/impl/desc.h>
#include "tests/pt.h"

static void expect_equal(const struct gin_i_op *a, const struct gin_i_op *b)
{
    EXPECT_EQ_INT(a->op, b->op);
    EXPECT_EQ_INT(a->flags, b->flags);
    EXPECT_EQ_U64(a->peer, b->peer);
    EXPECT_EQ_U64(a->counter, b->counter);
    EXPECT_EQ_U64(a->dst_win, b->dst_win);
    EXPECT_EQ_U64(a->src_win, b->src_win);
    EXPECT_EQ_U64(a->sig_win, b->sig_win);
    EXPECT_EQ_U64(a->dst_off, b->dst_off);
    EXPECT_EQ_U64(a->src_off, b->src_off);
    EXPECT_EQ_U64(a->size, b->size);
    EXPECT_EQ_U64(a->sig_off, b->sig_off);
    EXPECT_EQ_U64(a->value, b->value);
    EXPECT_EQ_U64(a->immediate, b->immediate);
}

static void round_trip(const struct gin_i_op *o)
{
    for (unsigned phase = 0; phase <= 1; phase++) {
        struct gin_i_desc d;
        struct gin_i_op back;
        memset(&d, 0xa5, sizeof(d));
        memset(&back, 0x5a, sizeof(back));
        gin_i_desc_pack(&d, o, phase);
        for (unsigned k = 0; k < GIN_I_DESC_WORDS; k++) {
            EXPECT_EQ_U64(d.w[k] >> 63, phase);
            EXPECT_EQ_U64(d.w[k] & ~GIN_I_DESC_PHASE, gin_i_desc_word(o, k));
        }
        gin_i_desc_unpack(&d, &back);
        expect_equal(o, &back);
    }
}

/* Every field at its largest, and alone, so that none spills into another. */
TEST(largest)
{
    static const uint8_t ops[] = {GIN_I_DESC_NOP, GIN_I_DESC_PUT,   GIN_I_DESC_PUT_VALUE,
                                  GIN_I_DESC_GET, GIN_I_DESC_QUIET, GIN_I_DESC_AMO + 11};
    for (size_t i = 0; i < sizeof(ops); i++)
        for (unsigned field = 0; field <= 12; field++) {
            int imm = gin_i_desc_is_immediate(ops[i]), all = field == 12;
            struct gin_i_op o = {.op = ops[i]};
            o.flags = all || field == 0 ? 0xff : 0;
            o.peer = all || field == 1 ? 0x7fffffffu : 0;
            o.counter = all || field == 2 ? UINT32_MAX : 0;
            o.dst_win = all || field == 3 ? UINT32_MAX : 0;
            o.src_win = all || field == 4 ? UINT32_MAX : 0;
            o.sig_win = all || field == 5 ? UINT32_MAX : 0;
            o.dst_off = all || field == 6 ? GIN_I_DESC_OFF_MAX : 0;
            o.src_off = !imm && (all || field == 7) ? GIN_I_DESC_OFF_MAX : 0;
            o.size = all || field == 8 ? GIN_I_DESC_OFF_MAX : 0;
            o.sig_off = all || field == 9 ? GIN_I_DESC_OFF_MAX : 0;
            o.value = all || field == 10 ? UINT64_MAX : 0;
            o.immediate = imm && (all || field == 11) ? UINT64_MAX : 0;
            round_trip(&o);
        }
}

TEST(random)
{
    uint64_t state = PT_SEED;
    for (int i = 0; i < 20000; i++) {
        struct gin_i_op o = {.op = (uint8_t)pt_below(&state, 28)};
        int imm = gin_i_desc_is_immediate(o.op);
        o.flags = (uint8_t)pt_random(&state);
        o.peer = (uint32_t)pt_random(&state) & 0x7fffffffu;
        o.counter = (uint32_t)pt_random(&state);
        o.dst_win = (uint32_t)pt_random(&state);
        o.src_win = (uint32_t)pt_random(&state);
        o.sig_win = (uint32_t)pt_random(&state);
        o.dst_off = pt_random(&state) & GIN_I_DESC_OFF_MAX;
        o.src_off = imm ? 0 : pt_random(&state) & GIN_I_DESC_OFF_MAX;
        o.size = pt_random(&state) & GIN_I_DESC_OFF_MAX;
        o.sig_off = pt_random(&state) & GIN_I_DESC_OFF_MAX;
        o.value = pt_random(&state);
        o.immediate = imm ? pt_random(&state) : 0;
        round_trip(&o);
    }
}

TEST(windows)
{
    gin_window_t w = {(uint64_t)0x7abcd123 << 32 | 0xfedcb};
    EXPECT_EQ_U64(gin_i_desc_window(w), 0x123fedcbu);
}

/* A consumer at ticket t takes a slot when all eight words have t's phase. */
static bool is_there(const struct gin_i_desc *d, uint64_t t, uint32_t depth)
{
    for (int k = 0; k < GIN_I_DESC_WORDS; k++)
        if (d->w[k] >> 63 != gin_i_desc_phase(t, depth))
            return false;
    return true;
}

/* Several laps of a small ring, words landing in any order: never early, never missed. */
TEST(laps)
{
    enum { DEPTH = 8 };
    struct gin_i_desc ring[DEPTH];
    uint64_t state = PT_SEED;
    memset(ring, 0, sizeof(ring));
    for (uint64_t t = 0; t < 5 * DEPTH; t++) {
        struct gin_i_desc *slot = &ring[t & (DEPTH - 1)], d;
        struct gin_i_op o = {
            .op = GIN_I_DESC_PUT, .peer = 3, .size = t, .value = pt_random(&state)};
        struct gin_i_op back;
        unsigned left = 0xff;
        gin_i_desc_pack(&d, &o, gin_i_desc_phase(t, DEPTH));
        while (left != 0) {
            unsigned k = (unsigned)pt_below(&state, GIN_I_DESC_WORDS);
            EXPECT(!is_there(slot, t, DEPTH));
            slot->w[k] = d.w[k];
            left &= ~(1u << k);
        }
        EXPECT(is_there(slot, t, DEPTH));
        EXPECT(!is_there(slot, t + DEPTH, DEPTH)); /* not taken for the next lap's */
        gin_i_desc_unpack(slot, &back);
        expect_equal(&o, &back);
    }
}

/* The lap's parity goes on over the end of 64 bits, since depths are powers of two. */
TEST(wrap)
{
    for (uint32_t depth = 2; depth <= 1u << 16; depth *= 8) {
        uint64_t last = 0 - (uint64_t)depth; /* the last lap before the wrap */
        EXPECT_EQ_INT(gin_i_desc_phase(last, depth), !gin_i_desc_phase(last - depth, depth));
        EXPECT_EQ_INT(gin_i_desc_phase(0, depth), !gin_i_desc_phase(last, depth));
        EXPECT_EQ_INT(gin_i_desc_phase(UINT64_MAX, depth), gin_i_desc_phase(last, depth));
        EXPECT_EQ_INT(gin_i_desc_phase(0, depth), 1);
    }
}
