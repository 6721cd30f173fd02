/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals over a network that keeps no order at all (strategy S): a source issues operations to one
 * peer, each a put without signal, with a weak or with a strong one. A weak signal's message leaves
 * when its own put is known to be delivered; a strong one's when all earlier puts are, too.
 * Messages carry sequence numbers in the order of issue and arrive in any order; the target applies
 * a weak one at once and a strong one after all that were issued before it.
 *
 * Checked: whoever sees a weak signal sees its own put's bytes; whoever sees a strong signal sees
 * all earlier puts and all earlier signals; each signal is applied once; all are, in the end.
 * MUTATION takes one rule away; the check must then fail:
 *   1 a strong signal waits for its own put only
 *   2 a strong signal is applied on arrival
 *   3 a weak signal leaves with its put
 *   4 a put counts as delivered when it has left
 */
#ifndef MUTATION
#define MUTATION 0
#endif
#define N 4

#define NONE   0
#define WEAK   1
#define STRONG 2

#define BIT(x)    (1 << (x))
#define BELOW(x)  (BIT(x) - 1) /* all operations before x */
#define HAS(s, x) (((s) & BIT(x)) != 0)

byte kind[N];
byte issued;    /* operations issued so far, 0 .. issued - 1 */
byte flying;    /* puts on the way, by operation */
byte memory;    /* puts whose bytes are at the target */
byte acked;     /* acknowledgements on the way back */
byte delivered; /* puts that the source knows to be there */
byte sent;      /* signals' messages that have left */
byte mail;      /* messages on the way */
byte arrived;   /* messages at the target */
byte applied;   /* signals that can be seen */
byte signals;   /* operations that have one */

#if MUTATION == 1
#define COVERED(i) HAS(delivered, i)
#else
#define COVERED(i) ((delivered & (BELOW(i) | BIT(i))) == (BELOW(i) | BIT(i)))
#endif
#if MUTATION == 3
#define MAY_SEND(i) (kind[i] == WEAK || COVERED(i))
#else
#define MAY_SEND(i) (kind[i] == WEAK && HAS(delivered, i) || kind[i] == STRONG && COVERED(i))
#endif
/* all messages that were issued before are applied */
#if MUTATION == 2
#define IN_TURN(i) 1
#else
#define IN_TURN(i) (kind[i] == WEAK || (signals & BELOW(i) & ~applied) == 0)
#endif

#define EVERY(guard, act) \
    :: d_step { (0 < issued) && guard(0) -> act(0) } \
    :: d_step { (1 < issued) && guard(1) -> act(1) } \
    :: d_step { (2 < issued) && guard(2) -> act(2) } \
    :: d_step { (3 < issued) && guard(3) -> act(3) }

#define G_ARRIVE(x) HAS(flying, x)
#define A_ARRIVE(x) flying = flying & ~BIT(x); memory = memory | BIT(x); acked = acked | BIT(x)
#define G_ACK(x) HAS(acked, x)
#define A_ACK(x) acked = acked & ~BIT(x); delivered = delivered | BIT(x)
#define G_SEND(x) (HAS(signals, x) && !HAS(sent, x) && MAY_SEND(x))
#define A_SEND(x) sent = sent | BIT(x); mail = mail | BIT(x)
#define G_MAIL(x) HAS(mail, x)
#define A_MAIL(x) mail = mail & ~BIT(x); arrived = arrived | BIT(x)
#define G_APPLY(x) (HAS(arrived, x) && IN_TURN(x))
#define A_APPLY(x) \
    assert(!HAS(applied, x)); \
    assert(HAS(memory, x)); \
    assert(kind[x] != STRONG || (memory & BELOW(x)) == BELOW(x)); \
    assert(kind[x] != STRONG || (signals & BELOW(x) & ~applied) == 0); \
    arrived = arrived & ~BIT(x); \
    applied = applied | BIT(x)

active proctype world()
{
    do
    :: issued < N ->
       if
       :: kind[issued] = NONE
       :: kind[issued] = WEAK; signals = signals | BIT(issued)
       :: kind[issued] = STRONG; signals = signals | BIT(issued)
       fi;
       d_step {
           flying = flying | BIT(issued);
#if MUTATION == 4
           delivered = delivered | BIT(issued);
#endif
           issued++
       }
    EVERY(G_ARRIVE, A_ARRIVE)
    EVERY(G_ACK, A_ACK)
    EVERY(G_SEND, A_SEND)
    EVERY(G_MAIL, A_MAIL)
    EVERY(G_APPLY, A_APPLY)
    :: issued == N && applied == signals && memory == BIT(N) - 1 && acked == 0 -> break
    od
}
