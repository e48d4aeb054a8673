/* The steps of blocks.py, for spin: every order in which the steps of RANKS ranks can follow each other. Waiting and
 * waking are those of slots.h, which slots.pml searches; here a rank goes on as soon as it may.
 *
 * Each of TRANSFERS transfers has between one and MOST blocks. In step i of a transfer a rank fills one of its BUFFERS
 * with its block i, one unit at a time, and takes block i - 1 of every rank. COUNTS stands for the 32 bits of a counter.
 *
 * Switches that break a line: NO_WAIT, a rank does not wait before a step; NO_FIRST_WAIT, not before the first step of
 * a transfer; COUNTED_FIRST, it counts a step before it has taken the blocks; FILLED_LATE, it fills its buffer after
 * that; AHEAD, it waits for one step too few; NO_WRAP, it compares counters without their wrap-around; and -DBUFFERS=1.
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#define TRANSFERS 3
#define MOST 3
#define COUNTS 8
#define UNITS 2 /* of a block */

#define CONTENT(transfer, index) ((transfer) * (MOST + 1) + (index) + 1)
#define BUFFER(rank, index) buffers[((rank) * BUFFERS + (index) % BUFFERS) * UNITS]

#ifdef NO_WRAP
#define IS_PAST(rank) (counter[rank] >= wanted)
#else
#define IS_PAST(rank) ((counter[rank] - wanted + COUNTS) % COUNTS < COUNTS / 2)
#endif
#if RANKS == 2
#define ARE_PAST (IS_PAST(0) && IS_PAST(1))
#else
#define ARE_PAST (IS_PAST(0) && IS_PAST(1) && IS_PAST(2))
#endif

byte counter[RANKS];
byte buffers[RANKS * BUFFERS * UNITS];
byte length[TRANSFERS]; /* the blocks of each transfer */

inline wait_for_others() {
    atomic {
#ifdef AHEAD
        wanted = (finished + COUNTS - 1) % COUNTS;
#else
        wanted = finished;
#endif
#ifdef NO_WAIT
        skip
#else
#ifdef NO_FIRST_WAIT
        if :: index > 0 -> ARE_PAST :: else fi
#else
        ARE_PAST
#endif
#endif
    }
}

inline count() { atomic { finished = (finished + 1) % COUNTS; counter[me] = finished } }

inline fill() {
    if
    :: index < length[transfer] ->
        BUFFER(me, index) = CONTENT(transfer, index);
        buffers[(me * BUFFERS + index % BUFFERS) * UNITS + 1] = CONTENT(transfer, index)
    :: else
    fi
}

inline take() {
    if
    :: index > 0 ->
        from = 0;
        do
        :: from < RANKS ->
            assert(BUFFER(from, index - 1) == CONTENT(transfer, index - 1));
            assert(buffers[(from * BUFFERS + (index - 1) % BUFFERS) * UNITS + 1] == CONTENT(transfer, index - 1));
            from++
        :: else -> break
        od
    :: else
    fi
}

proctype rank(byte me) {
    byte transfer, index, finished, wanted, from;
    do
    :: transfer < TRANSFERS ->
        index = 0;
        do
        :: index <= length[transfer] ->
            wait_for_others();
#ifdef COUNTED_FIRST
            fill();
            count();
            take();
#else
#ifdef FILLED_LATE
            take();
            count();
            fill();
#else
            fill();
            take();
            count();
#endif
#endif
            index++
        :: else -> break
        od;
        transfer++
    :: else -> break
    od
}

init {
    byte each;
    atomic {
        do
        :: each < TRANSFERS ->
            if :: length[each] = 1 :: length[each] = 2 :: length[each] = MOST fi;
            each++
        :: else -> break
        od;
        each = 0;
        do
        :: each < RANKS -> run rank(each); each++
        :: else -> break
        od
    }
}
