/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor ring: producers take tickets, wait for credit and publish two words in any order,
 * each with the lap's phase; one consumer takes descriptors out in the order of tickets, tells how
 * far it is in batches, and sleeps when it finds nothing.
 *
 * Checked: every descriptor is taken once, whole, in order; nobody waits for ever (no state without
 * a next step but the end). Slots start zeroed, as in memory. MUTATION takes one rule away; the
 * check must then fail:
 *   1 the consumer does not look again between raising its flag and sleeping
 *   2 a producer does not look at the flag
 *   3 the second word has no phase
 *   4 a slot is free one ticket too early
 *   5 the phase is the same in every lap
 */
#ifndef MUTATION
#define MUTATION 0
#endif
#define PRODUCERS 2
#define EACH      3
#define TOTAL     (PRODUCERS * EACH)
#define DEPTH     2

#if MUTATION == 5
#define PHASE(t) 1
#else
#define PHASE(t) (1 - ((t) / DEPTH) % 2)
#endif
#if MUTATION == 4
#define ROOM (DEPTH + 1)
#else
#define ROOM DEPTH
#endif

/* a word: phase, and the ticket that it belongs to */
bit phase0[DEPTH], phase1[DEPTH];
byte text0[DEPTH], text1[DEPTH];

byte ticket;   /* next one */
byte credit;   /* the producers' copy of consumed */
byte consumed; /* told by the consumer */
bit reading;   /* a producer reads consumed */
bit asleep, wake;
byte taken;

#if MUTATION == 3
#define WHOLE(t) (phase0[(t) % DEPTH] == PHASE(t))
#else
#define WHOLE(t) (phase0[(t) % DEPTH] == PHASE(t) && phase1[(t) % DEPTH] == PHASE(t))
#endif

active [PRODUCERS] proctype producer()
{
    byte n, t, seen;
    for (n : 1 .. EACH) {
        d_step { t = ticket; ticket++ }
        do
        :: t - credit < ROOM -> break
        :: atomic { t - credit >= ROOM && !reading && consumed != credit -> reading = 1 }
           seen = consumed;
           if
           :: seen > credit -> credit = seen
           :: else
           fi;
           reading = 0
        od;
        if
        :: d_step { text0[t % DEPTH] = t; phase0[t % DEPTH] = PHASE(t) }
           d_step { text1[t % DEPTH] = t; phase1[t % DEPTH] = PHASE(t) }
        :: d_step { text1[t % DEPTH] = t; phase1[t % DEPTH] = PHASE(t) }
           d_step { text0[t % DEPTH] = t; phase0[t % DEPTH] = PHASE(t) }
        fi;
        /* sequentially consistent fence */
#if MUTATION != 2
        if
        :: asleep -> wake = 1
        :: else
        fi
#endif
    }
}

active proctype consumer()
{
    bit first;
    do
    :: taken == TOTAL -> break
    :: taken < TOTAL ->
       first = phase0[taken % DEPTH] == PHASE(taken);
       if
       :: first && WHOLE(taken) ->
          assert(text0[taken % DEPTH] == taken);
          assert(text1[taken % DEPTH] == taken);
          taken++;
          if
          :: consumed = taken
          :: taken % 2 == 1 -> skip /* a batch goes on */
          fi
       :: else ->
          consumed = taken; /* nothing untold before a sleep */
          asleep = 1;
          /* sequentially consistent fence */
          if
#if MUTATION != 1
          :: WHOLE(taken) -> skip
          :: else -> wake == 1
#else
          :: wake == 1
#endif
          fi;
          d_step { asleep = 0; wake = 0 }
       fi
    od;
    assert(ticket == TOTAL)
}
