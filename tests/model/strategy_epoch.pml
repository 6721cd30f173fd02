/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strong signals over a network that keeps no order at all, counted by the target (T-epoch): a
 * source issues operations to one peer, each a put without signal, with a weak or with a strong
 * one, or a strong signal alone. A put's immediate carries the number of the epoch that is open,
 * and a weak signal; a strong signal's message leaves at once, closes the epoch and says how many
 * puts it had. The target counts immediates by epoch number; messages are handled in the order of
 * their numbers, one that closes an epoch not before that is whole. The source has CREDITS messages
 * that are not handled; numbers of epochs go round.
 *
 * Checked: whoever sees a weak signal sees its own put's bytes; whoever sees a strong signal sees
 * all earlier puts and all earlier signals; each signal is applied once; all are, in the end, and
 * every put is counted for the epoch that it belongs to.
 * MUTATION takes one rule away; the check must then fail:
 *   1 a message counts one put less than there were
 *   2 messages are handled on arrival
 *   3 as many epochs may be open as there are numbers, and one more
 *   4 a put's immediate does not say which epoch it is of
 *   5 an immediate may arrive before the bytes
 */
#ifndef MUTATION
#define MUTATION 0
#endif
#define N 5

#define NONE   0
#define WEAK   1
#define STRONG 2
#define ALONE  3 /* a strong signal without a put */

#define CREDITS 2
#if MUTATION == 3
#define NUMBERS CREDITS /* the open one and CREDITS unhandled ones share them */
#else
#define NUMBERS (CREDITS + 1)
#endif

#define BIT(x)    (1 << (x))
#define BELOW(x)  (BIT(x) - 1) /* all operations before x */
#define HAS(s, x) (((s) & BIT(x)) != 0)

byte kind[N];
byte issued;      /* operations issued so far, 0 .. issued - 1 */
byte puts;        /* operations that have bytes */
byte signals;     /* operations that have a signal */
byte flying;      /* puts on the way, by operation */
byte memory;      /* puts whose bytes are at the target */
byte imms;        /* immediates that the target has not read yet */
byte mail;        /* messages on the way */
byte arrived;     /* messages at the target */
byte applied;     /* signals that can be seen */
byte number[N];   /* of the epoch in a put's immediate */
byte says[N];     /* puts in a message; NOT: it closes nothing */
byte open;        /* the source's epoch ... */
byte posted;      /* ... and puts in it */
byte first;       /* the target's first epoch that is not closed */
byte count[NUMBERS];
byte unhandled;   /* messages */
byte weaks;       /* operations whose signal is weak */

#define NOT 255

#define IS_STRONG(x) (kind[x] >= STRONG)
#define STRONGS(x)   (signals & ~weaks & BELOW(x))

#define EVERY(guard, act) \
    :: d_step { (0 < issued) && guard(0) -> act(0) } \
    :: d_step { (1 < issued) && guard(1) -> act(1) } \
    :: d_step { (2 < issued) && guard(2) -> act(2) } \
    :: d_step { (3 < issued) && guard(3) -> act(3) } \
    :: d_step { (4 < issued) && guard(4) -> act(4) }

/* bytes, then their immediate */
#define G_ARRIVE(x) HAS(flying, x)
#define A_ARRIVE(x) flying = flying & ~BIT(x); memory = memory | BIT(x); IMM_WITH_BYTES(x)
#if MUTATION == 5
#define IMM_WITH_BYTES(x) skip
#else
#define IMM_WITH_BYTES(x) imms = imms | BIT(x)
#endif
#define G_READ(x) HAS(imms, x)
#define A_READ(x) \
    imms = imms & ~BIT(x); \
    count[number[x]]++; \
    if \
    :: kind[x] == WEAK -> \
       assert(HAS(memory, x) && !HAS(applied, x)); \
       applied = applied | BIT(x) \
    :: else \
    fi
#define G_MAIL(x) HAS(mail, x)
#define A_MAIL(x) mail = mail & ~BIT(x); arrived = arrived | BIT(x)

#if MUTATION == 2
#define IN_TURN(x) true
#else
#define IN_TURN(x) ((STRONGS(x) & ~applied) == 0)
#endif
#define WHOLE(x) (says[x] == NOT || count[first] >= says[x])
#define G_HANDLE(x) (HAS(arrived, x) && IN_TURN(x) && WHOLE(x))
#define A_HANDLE(x) \
    assert(!HAS(applied, x)); \
    assert((memory & puts & (BELOW(x) | BIT(x))) == (puts & (BELOW(x) | BIT(x)))); \
    assert((signals & BELOW(x) & ~applied) == 0); \
    if \
    :: says[x] != NOT -> \
       count[first] = count[first] - says[x]; \
       first = (first + 1) % NUMBERS \
    :: else \
    fi; \
    arrived = arrived & ~BIT(x); \
    applied = applied | BIT(x); \
    unhandled--

active proctype world()
{
    do
    :: issued < N ->
       if
       :: kind[issued] = NONE
       :: kind[issued] = WEAK
       :: unhandled < CREDITS -> kind[issued] = STRONG
       :: unhandled < CREDITS -> kind[issued] = ALONE
       fi;
       d_step {
           says[issued] = NOT;
           if
           :: kind[issued] != NONE -> signals = signals | BIT(issued)
           :: else
           fi;
           if
           :: kind[issued] == WEAK -> weaks = weaks | BIT(issued)
           :: else
           fi;
           if
           :: kind[issued] != ALONE ->
              puts = puts | BIT(issued);
              flying = flying | BIT(issued);
#if MUTATION == 4
              number[issued] = 0;
#else
              number[issued] = open;
#endif
#if MUTATION == 5
              imms = imms | BIT(issued);
#endif
              posted++
           :: else
           fi;
           if
           :: IS_STRONG(issued) ->
              mail = mail | BIT(issued);
              unhandled++;
              if
              :: posted != 0 ->
#if MUTATION == 1
                 says[issued] = posted - 1;
#else
                 says[issued] = posted;
#endif
                 posted = 0;
                 open = (open + 1) % NUMBERS
              :: else
              fi
           :: else
           fi;
           issued++
       }
    EVERY(G_ARRIVE, A_ARRIVE)
    EVERY(G_READ, A_READ)
    EVERY(G_MAIL, A_MAIL)
    EVERY(G_HANDLE, A_HANDLE)
    :: issued == N && applied == signals && memory == puts && imms == 0 && arrived == 0 ->
       assert(first == open && count[first] == posted);
       break
    od
}
