/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptor ring: producers take tickets, wait for credit and publish two words in any order,
 * each with the lap's phase; one consumer takes descriptors out in the order of tickets, tells how
 * far it is in batches, and sleeps when it finds nothing. The network may refuse what goes to one of
 * two peers, any number of times: such descriptors are parked, and the others go on.
 *
 * Checked: every descriptor is taken once, whole, in order; what goes to one peer reaches the network
 * in order; what counts as passed has reached it; nobody waits for ever (no state without a next
 * step but the end). Slots start zeroed, as in memory. MUTATION takes one rule away; the check must
 * then fail:
 *   1 the consumer does not look again between raising its flag and sleeping
 *   2 a producer does not look at the flag
 *   3 the second word has no phase
 *   4 a slot is free one ticket too early
 *   5 the phase is the same in every lap
 *   6 a descriptor goes past what is parked for its peer
 *   7 what is parked counts as passed
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
byte peer[TOTAL];            /* of a ticket: who produced it */
byte parked[TOTAL], n_parked; /* tickets for peer 0 */
byte passed;
bit out[TOTAL]; /* the network has it */
byte newest[PRODUCERS];

#if MUTATION == 3
#define WHOLE(t) (phase0[(t) % DEPTH] == PHASE(t))
#else
#define WHOLE(t) (phase0[(t) % DEPTH] == PHASE(t) && phase1[(t) % DEPTH] == PHASE(t))
#endif

active [PRODUCERS] proctype producer()
{
    byte n, t, seen;
    for (n : 1 .. EACH) {
        d_step { t = ticket; ticket++; peer[t] = _pid }
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

inline give(t)
{
    assert(!out[t] && newest[peer[t]] <= t);
    out[t] = 1;
    newest[peer[t]] = t
}

/* The first parked one has gone. */
inline leave()
{
    for (i : 1 .. n_parked - 1) { parked[i - 1] = parked[i] }
    n_parked--;
    parked[n_parked] = 0
}

inline advance()
{
#if MUTATION == 7
    passed = taken;
#else
    passed = (n_parked != 0 -> parked[0] : taken);
#endif
    for (i : 0 .. TOTAL - 1) { assert(i >= passed || out[i]) }
    i = 0
}

#if MUTATION == 6
#define BEHIND(t) 0
#else
#define BEHIND(t) (n_parked != 0 && peer[t] == 0)
#endif

active proctype consumer()
{
    bit first;
    byte i;
    do
    :: taken == TOTAL && n_parked == 0 -> break
    :: n_parked != 0 -> d_step { give(parked[0]); leave(); advance() }
    :: taken < TOTAL ->
       first = phase0[taken % DEPTH] == PHASE(taken);
       if
       :: first && WHOLE(taken) ->
          assert(text0[taken % DEPTH] == taken);
          assert(text1[taken % DEPTH] == taken);
          if
          :: !BEHIND(taken) -> d_step { give(taken); taken++; advance() }
          :: peer[taken] == 0 ->
             d_step { parked[n_parked] = taken; n_parked++; taken++; advance() }
          fi;
          if
          :: consumed = taken
          :: taken % 2 == 1 -> skip /* a batch goes on */
          fi
       :: !(first && WHOLE(taken)) && n_parked == 0 ->
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
       :: !(first && WHOLE(taken)) && n_parked != 0 -> consumed = taken
       fi
    od;
    assert(ticket == TOTAL && passed == TOTAL)
}
