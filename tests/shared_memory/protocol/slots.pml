/* The protocol of slots.h, for spin: every order in which the steps of RANKS ranks can follow each other.
 *
 * A rank posts up to SLOTS calls ahead, reads them and releases them; its counters wrap around at MODULUS. The stream may
 * stop after any call: a wake-up that is lost with the last one is not made up for by the next. A sleep has no deadline,
 * so a lost wake-up is a deadlock, which spin reports.
 *
 * A store of a counter is delayed in the rank's store buffer, as on x86-64, until a fence, a step that is atomic, or any
 * time before. The store of a slot goes through the buffer ahead of it, so it need not be delayed: a slot is only read by
 * ranks that have seen the counter. The system compares a counter and puts the rank to sleep in one step.
 *
 * -DSTEPS gives a step to one call of each wrap, as larger data has: each rank writes to its own memory, and once all
 * have, reads the others'. -DENDS lets ranks end the group, or die, at any time; then sleeps end by themselves, since
 * they are sliced.
 *
 * Switches that break a line: POSTED_FIRST, RELEASED_FIRST, EARLY_ROOM, NO_FENCE, NO_WAKE, NO_COUNT, NO_COMPARISON,
 * NO_WRAP, STAGE_BEHIND (with STEPS), NO_SLICES (with ENDS); and -DSLOTS=3, which does not divide MODULUS.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define MODULUS 8
#define NONE MODULUS /* no call; what a slot holds while it is written */

#define POSTED 0
#define RELEASED 1
#define STAGE 2
#ifdef STEPS
#define COUNTERS 3
#else
#define COUNTERS 2
#endif
#define COUNTER(which, peer) ((which) * RANKS + (peer))
#define SLOT(peer, number) ((peer) * SLOTS + (number) % SLOTS)

#define WRAPPED(number) ((number + 2 * MODULUS) % MODULUS)
#ifdef NO_WRAP
#define IS_BEFORE(one, other) ((one) < (other))
#else
#define IS_BEFORE(one, other) (WRAPPED((one) - (other)) >= MODULUS / 2)
#endif
#ifdef EARLY_ROOM
#define REUSED(number) WRAPPED((number) - SLOTS - 1)
#else
#define REUSED(number) WRAPPED((number) - SLOTS)
#endif

#define ALIVE 0
#define ENDED 1
#define DEAD 2

byte counters[RANKS * COUNTERS];
byte sleepers[RANKS * COUNTERS];
byte slots[RANKS * SLOTS] = NONE;
byte asleep[RANKS];    /* 1 + the counter that the rank sleeps on; 0 if it is awake */
bool is_stored[RANKS]; /* whether the rank's store buffer holds a store, */
byte stored[RANKS];    /* of this counter */
byte content[RANKS];   /* and this value */
byte most;             /* the first call that no rank has posted, */
byte last = NONE;      /* and where the stream stops */
#ifdef STEPS
byte outputs[RANKS] = NONE;
#endif
#ifdef ENDS
byte state[RANKS];
byte ends; /* ranks that have ended or died */
#endif

/* A rank reads its own store before the memory. */
#define VALUE(counter) (is_stored[me] && stored[me] == (counter) -> content[me] : counters[counter])
#define FENCE !is_stored[me]

inline store(which, to) {
    atomic { FENCE -> is_stored[me] = true; stored[me] = COUNTER(which, me); content[me] = to }
}

inline wake(counter) {
    peer = 0;
    do
    :: peer < RANKS -> if :: asleep[peer] == (counter) + 1 -> asleep[peer] = 0 :: else fi; peer++
    :: else -> break
    od;
    peer = 0
}

inline advance(which, to) {
    store(which, to);
#ifndef NO_WAKE
    atomic {
#ifndef NO_FENCE
        FENCE ->
#endif
        if :: sleepers[COUNTER(which, me)] > 0 -> wake(COUNTER(which, me)) :: else fi
    }
#endif
}

#ifdef ENDS
/* Find out whether a rank has ended; or died without having come so far, which a rank looks for after each sleep. */
inline look_for_ends(which, number) {
    is_over = false; peer = 0;
    do
    :: peer == RANKS -> break
    :: else ->
        is_over = is_over || state[peer] == ENDED;
        is_over = is_over || (has_slept && state[peer] == DEAD && !IS_BEFORE(number, counters[COUNTER(which, peer)]));
        peer++
    od;
    peer = 0
}
#endif

/* Find the first rank whose counter is not past a number; `seen` is its counter, or NONE if all are past. Counters only
 * go forward, so it does not matter that a rank looks at them one after the other. */
inline look(which, number) {
    peer = 0; seen = NONE;
    do
    :: peer == RANKS || !IS_BEFORE(number, VALUE(COUNTER(which, peer))) -> break
    :: else -> peer++
    od;
    if :: peer < RANKS -> seen = VALUE(COUNTER(which, peer)); counter = COUNTER(which, peer) :: else fi;
    peer = 0
}

inline sleep() {
#ifndef NO_COUNT
    atomic { FENCE -> sleepers[counter]++ };
#endif
    atomic {
#ifndef NO_COMPARISON
        if :: counters[counter] == seen -> asleep[me] = counter + 1 :: else fi
#else
        asleep[me] = counter + 1
#endif
    };
    atomic {
        if
        :: asleep[me] == 0
#if defined(ENDS) && !defined(NO_SLICES)
        :: asleep[me] > 0 && ends > 0 -> asleep[me] = 0
#endif
        fi;
#ifndef NO_COUNT
        sleepers[counter]--
#endif
    }
}

/* Wait until the counter of every rank is past a number; if a rank has ended, go to `over`. */
inline await(which, number) {
    do
    :: atomic { look(which, number);
            if :: seen == NONE -> counter = 0; break :: else fi;
#ifdef ENDS
            look_for_ends(which, number);
            if :: is_over -> goto over :: else fi
#endif
        };
        sleep();
#ifdef ENDS
        has_slept = true
#endif
    od;
#ifdef ENDS
    has_slept = false
#endif
}

/* Whether each rank's memory holds a number. It is read in one step, which may come at any time, so that a change at any
 * time is seen. */
inline check(memory, number) {
    d_step {
        peer = 0;
        do
        :: peer < RANKS -> assert(memory == number); peer++
        :: else -> break
        od;
        peer = 0
    }
}

inline may_die() {
#ifdef ENDS
    if :: true :: atomic { state[me] = DEAD; ends++; goto gone } fi
#else
    skip
#endif
}

inline post() {
    await(RELEASED, REUSED(posted));
#ifdef POSTED_FIRST
    advance(POSTED, WRAPPED(posted + 1));
#endif
    atomic { FENCE -> slots[SLOT(me, posted)] = NONE };
    may_die();
    slots[SLOT(me, posted)] = posted;
#ifndef POSTED_FIRST
    advance(POSTED, WRAPPED(posted + 1));
#endif
    posted = WRAPPED(posted + 1)
}

inline step() {
    await(RELEASED, WRAPPED(reading - 1)); /* the others have read the last output */
    atomic { FENCE -> outputs[me] = NONE };
    outputs[me] = reading;
    advance(STAGE, WRAPPED(reading + 1));
    await(STAGE, reading);
    check(outputs[peer], reading)
}

inline read() {
    await(POSTED, reading);
#ifdef RELEASED_FIRST
    advance(RELEASED, WRAPPED(reading + 1));
#endif
    check(slots[SLOT(peer, reading)], reading);
#ifdef STEPS
    if :: reading == MODULUS - 1 -> step() :: else fi;
#ifndef STAGE_BEHIND
    store(STAGE, WRAPPED(reading + 1));
#endif
#endif
    may_die();
#ifndef RELEASED_FIRST
    advance(RELEASED, WRAPPED(reading + 1));
#endif
    reading = WRAPPED(reading + 1)
}

proctype rank(byte me) {
    byte posted, reading, peer, seen, counter;
#ifdef ENDS
    bool is_over, has_slept;
#endif
    do
    :: atomic { posted != last && WRAPPED(posted - reading) < SLOTS ->
            if :: posted == most -> most = WRAPPED(most + 1) :: else fi }; post()
    :: posted != reading -> read()
    :: posted == last && reading == last -> break
#ifdef ENDS
    :: goto over
#endif
    od;
#ifdef ENDS
    goto gone;
over:
    atomic { FENCE -> state[me] = ENDED; ends++ };
    counter = 0;
    do
    :: atomic { counter < RANKS * COUNTERS -> wake(counter); counter++ }
    :: counter == RANKS * COUNTERS -> break
    od;
gone:
    skip
#endif
}

/* The processor, which empties a rank's store buffer at some time. */
proctype buffer(byte me) {
end:
    do
    :: atomic { is_stored[me] -> counters[stored[me]] = content[me]; is_stored[me] = false; stored[me] = 0; content[me] = 0 }
    od
}

init {
    byte each = 0;
    atomic {
        do
        :: each < RANKS -> run rank(each); run buffer(each); each++
        :: else -> break
        od
    };
    last = most
}
