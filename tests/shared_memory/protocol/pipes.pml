/* The protocol of pipes.h, for spin: every order in which the steps of WRITERS ranks that send, and of one that takes
 * their messages, can follow each other. A rank that does both takes the same steps; neither waits for the other.
 *
 * A pipe has ROOM units. A message has any number of units up to half of them, and travels by a socket if the pipe has
 * no room. Counts wrap around at COUNTS, and turns at TURNS, which stand for the 64 bits: only differences of counts
 * and places in the ring matter. A writer may stop after any message, or does after MESSAGES: a wake-up that is lost
 * with the last one is not made up for by the next. A sleep has no deadline, so a lost wake-up is a deadlock, which
 * spin reports.
 *
 * Stores of `written`, `taken` and `asleep` are delayed until a fence, or any time before; those of different words in
 * any order, which is more than x86-64 does. The store of a record is not delayed: it goes ahead of that of `written`,
 * which is a release, and only a rank that has seen that one reads it.
 *
 * The reader is as the poller: it looks, sleeps, takes what frames of the socket bring, and may go on to sleep after it
 * was woken. -DRELEASES adds records that have no turn; it needs one writer.
 *
 * Switches that break a line: WRITTEN_FIRST, FILLER_ALONE, NO_FILLER, NO_UNIT, NO_SKIPPED, NO_WRAP, and -DCOUNTS=ROOM
 * or 7, of the ring; TAKEN_FIRST, FILLER_TAKEN_FIRST, RECORD_FIRST, of its reader; NO_TURN, NO_HOLD, RELEASE_TURN (with
 * RELEASES), of the turns; NO_WRITER_FENCE, NO_READER_FENCE, NO_WAKE, NO_LOOK, NO_WORD, NO_WORD_AGAIN, NO_DRAIN, of
 * sleeps.
 */
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef ROOM
#define ROOM 4 /* at most 7 */
#endif
#ifndef COUNTS
#define COUNTS (2 * ROOM)
#endif
#ifndef TURNS
#define TURNS 6 /* at most 16 */
#endif
#ifndef FRAMES
#define FRAMES 1 /* that a socket holds */
#endif
#define MOST (ROOM / 2) /* units of a record */
#define AHEAD (TURNS / 2 - 1) /* messages that the reader may not have handled yet */

/* A unit of the ring: at its start a record has its total and number; the units of its data have the number alone. */
#define FILLER 128
#define NO_ORDER 64
#define RECORD(total, number) ((total) << 4 | (number))
#define TOTAL(unit) ((unit) >> 4 & 3)
#define NUMBER(unit) ((unit) & 15)
#define UNIT(pipe, count) ring[(pipe) * ROOM + (count) % ROOM]

/* Frames on a socket: the turn of a message, or these. */
#define WAKE TURNS
#define RELEASE (TURNS + 1)

#define WRITTEN(pipe) (pipe)
#define TAKEN(pipe) (WRITERS + (pipe))
#define ASLEEP (2 * WRITERS)
#define WORDS (2 * WRITERS + 1)

#define COUNTED(count) (((count) + COUNTS) % COUNTS)
#define TURN(turn) (((turn) + TURNS) % TURNS)
#ifdef NO_WRAP
#define HAS_ROOM(written, needed, taken) ((written) + (needed) <= (taken) + ROOM)
#else
#define HAS_ROOM(written, needed, taken) (COUNTED((written) - (taken)) + (needed) <= ROOM)
#endif

byte ring[WRITERS * ROOM];
byte words[WORDS];
bool is_stored[WORDS]; /* whether the store of a word is delayed, */
byte content[WORDS];   /* and its value */
chan socket[WRITERS] = [FRAMES] of { byte };
byte sent[WRITERS];    /* the turn that the writer's next message gets */
byte turn[WRITERS];    /* the turn of the message that the reader handles next */
byte ended;            /* writers that have stopped */
#ifdef RELEASES
byte releases[WRITERS]; /* records without a turn that are on their way */
#endif

#if WRITERS == 1
#define READER_FENCE (!is_stored[ASLEEP] && !is_stored[TAKEN(0)])
#define ARE_HANDLED (sent[0] == turn[0])
#else
#define READER_FENCE (!is_stored[ASLEEP] && !is_stored[TAKEN(0)] && !is_stored[TAKEN(1)])
#define ARE_HANDLED (sent[0] == turn[0] && sent[1] == turn[1])
#endif
#ifdef RELEASES
#define IS_OVER (ended == WRITERS && ARE_HANDLED && releases[0] == 0)
#else
#define IS_OVER (ended == WRITERS && ARE_HANDLED)
#endif

inline store(word, to) {
    atomic { !is_stored[word] -> is_stored[word] = true; content[word] = to }
}

/* Choose what is sent, and see whether there is room for it. */
inline prepare() {
    atomic {
        number = sent[me];
#ifdef RELEASES
        if
        :: TURN(sent[me] - turn[me]) < AHEAD -> sent[me] = TURN(sent[me] + 1); order = 0
        :: releases[me] < 2 -> releases[me]++; order = NO_ORDER
        fi;
#else
        TURN(sent[me] - turn[me]) < AHEAD; sent[me] = TURN(sent[me] + 1);
#endif
        if :: total = 1 :: MOST > 1 -> total = 2 :: MOST > 2 -> total = 3 fi;
        skipped = (ROOM - written % ROOM < total -> ROOM - written % ROOM : 0);
        needed = skipped + total;
#ifdef NO_UNIT
        needed--;
#endif
#ifdef NO_SKIPPED
        needed = total;
#endif
        if :: !HAS_ROOM(written, needed, words[TAKEN(me)]) -> total = 0 :: else fi;
        needed = 0
    }
}

/* What it writes is not seen before `written` is, so that it may be one step; but for faults. */
inline put() {
    atomic {
#if MOST > 1
        if
        :: skipped > 0 ->
#ifndef NO_FILLER
            UNIT(me, written) = FILLER | RECORD(skipped, 0);
#endif
            written = COUNTED(written + skipped);
            skipped = 0;
#ifdef FILLER_ALONE
            store(WRITTEN(me), written)
#endif
        :: else
        fi;
#endif
        UNIT(me, written) = order | RECORD(total, number);
#ifdef WRITTEN_FIRST
        store(WRITTEN(me), COUNTED(written + total))
    };
    atomic {
#endif
        if :: total > 1 -> UNIT(me, written + 1) = number :: else fi;
        if :: total > 2 -> UNIT(me, written + 2) = number :: else fi;
        written = COUNTED(written + total);
        total = 0;
#ifndef WRITTEN_FIRST
        store(WRITTEN(me), written)
#endif
    }
}

/* The word is read before it is cleared, and another writer may be the first to clear it. */
inline wake() {
    atomic {
#ifndef NO_WRITER_FENCE
        !is_stored[WRITTEN(me)] ->
#endif
        wakes = words[ASLEEP]
    };
    if
    :: wakes ->
        atomic { wakes = words[ASLEEP]; words[ASLEEP] = 0 };
#ifndef NO_WAKE
        if :: atomic { wakes -> socket[me]!WAKE; wakes = false } :: else fi
#else
        wakes = false
#endif
    :: else
    fi
}

proctype writer(byte me) {
    byte written, number, order, total, skipped, needed;
    bool wakes;
    do
    :: prepare();
        if
        :: total > 0 -> put(); wake()
        :: else -> atomic { skipped = 0; socket[me]!(order -> RELEASE : number) }
        fi;
        atomic {
            number = 0; order = 0;
#ifdef MESSAGES
            if :: sent[me] == MESSAGES -> break :: else fi
#endif
        }
    :: break
    od;
    ended++
}

inline set_asleep(to) {
    store(ASLEEP, to);
#ifndef NO_READER_FENCE
    READER_FENCE
#endif
}

/* Give a number of units back. */
inline give_back(units) {
    atomic {
        !is_stored[TAKEN(source)] ->
        taken[source] = COUNTED(taken[source] + units);
        store(TAKEN(source), taken[source])
    }
}

/* Handle a record, which must be what its writer wrote. It is read in one step, which may come at any time, so that a
 * change at any time is seen. */
inline handle() {
#ifdef TAKEN_FIRST
    store(TAKEN(source), COUNTED(taken[source] + TOTAL(head)));
#endif
    d_step {
        assert(TOTAL(head) > 0 && UNIT(source, taken[source]) == head);
        assert(TOTAL(head) < 2 || UNIT(source, taken[source] + 1) == NUMBER(head));
        assert(TOTAL(head) < 3 || UNIT(source, taken[source] + 2) == NUMBER(head));
        if
#ifdef RELEASES
        :: head & NO_ORDER ->
            assert(releases[source] > 0);
            releases[source]--;
#ifdef RELEASE_TURN
            turn[source] = TURN(turn[source] + 1)
#endif
        :: !(head & NO_ORDER) ->
#else
        :: true ->
#endif
            assert(NUMBER(head) == turn[source]);
            turn[source] = TURN(turn[source] + 1)
        fi
    };
#ifdef TAKEN_FIRST
    taken[source] = COUNTED(taken[source] + TOTAL(head))
#else
    give_back(TOTAL(head))
#endif
}

inline read_head() {
    head = UNIT(source, taken[source]);
#if MOST > 1
    if
    :: head & FILLER ->
#ifdef FILLER_TAKEN_FIRST
        store(TAKEN(source), COUNTED(taken[source] + TOTAL(head)));
        taken[source] = COUNTED(taken[source] + TOTAL(UNIT(source, taken[source])));
#else
        give_back(TOTAL(head));
#endif
        head = UNIT(source, taken[source])
    :: else
    fi
#endif
}

#define IS_HELD (held[source] >> turn[source] & 1)
#ifdef NO_TURN
#define IS_EARLY false
#elif defined(RELEASES)
#define IS_EARLY (!(head & NO_ORDER) && TURN(NUMBER(head) - turn[source] - 1) < AHEAD)
#else
#define IS_EARLY (TURN(NUMBER(head) - turn[source] - 1) < AHEAD)
#endif

/* Take what is next in order: what a socket brought, or the oldest record. */
inline drain() {
    do
    :: atomic { source == WRITERS -> source = 0; break }
    :: atomic { source < WRITERS && IS_HELD ->
            held[source] = held[source] ^ (1 << turn[source]); turn[source] = TURN(turn[source] + 1) }
#ifdef RECORD_FIRST
    :: atomic { source < WRITERS && !IS_HELD -> head = UNIT(source, taken[source]) };
        if
        :: atomic { words[WRITTEN(source)] == taken[source] -> source++; head = 0 }
        :: words[WRITTEN(source)] != taken[source] -> if :: head & FILLER -> read_head() :: else fi;
#else
    :: atomic { source < WRITERS && !IS_HELD && words[WRITTEN(source)] == taken[source] -> source++ }
    :: source < WRITERS && !IS_HELD && words[WRITTEN(source)] != taken[source] -> read_head();
#endif
        if
        :: atomic { IS_EARLY -> source++; head = 0 } /* the one before it is on its way through a socket */
        :: else -> handle(); head = 0
        fi
#ifdef RECORD_FIRST
        fi
#endif
    od
}

/* Take a frame, which wakes the rank if it sleeps. A message is kept until its turn comes. */
inline receive(from) {
    atomic { socket[from]?frame -> source = from };
    if
    :: frame == WAKE ->
#ifndef NO_WORD_AGAIN
        if :: sleeps -> set_asleep(1) :: else fi
#endif
#ifdef RELEASES
    :: atomic { frame == RELEASE -> releases[source]-- }
#endif
    :: atomic { frame < TURNS ->
#ifdef NO_HOLD
            assert(frame == turn[source]); turn[source] = TURN(turn[source] + 1)
#else
            held[source] = held[source] | 1 << frame
#endif
        }
    fi;
    atomic { frame = 0; source = 0 }
#ifdef NO_DRAIN
    ; goto has_looked
#endif
}

proctype reader() {
    byte taken[WRITERS], source, head, frame;
    int held[WRITERS];
    bool sleeps;
    do
    ::  if
        :: sleeps && IS_OVER -> break
        :: !sleeps
        :: !sleeps ->
            sleeps = true;
#ifndef NO_WORD
            set_asleep(1);
#endif
#ifdef NO_LOOK
            goto has_looked
#endif
        :: receive(0)
#if WRITERS > 1
        :: receive(1)
#endif
        fi;
        drain();
has_looked:
        if :: atomic { sleeps -> sleeps = false }; set_asleep(0) :: skip fi /* it may have what it waits for */
    od
}

/* The processor, which makes the delayed store of a word at some time. */
proctype buffer(byte word) {
end:
    do
    :: atomic { is_stored[word] -> words[word] = content[word]; is_stored[word] = false; content[word] = 0 }
    od
}

init {
    byte each = 0;
    atomic {
        do
        :: each < WRITERS -> run writer(each); each++
        :: else -> break
        od;
        run reader();
        each = 0;
        do
        :: each < WORDS -> run buffer(each); each++
        :: else -> break
        od
    }
}
