/* Messages between two ranks of a group, in the memory that they share; without Python, like slots.h.
 *
 * Each ordered pair of ranks has a pipe, a ring of bytes that one rank writes and the other reads. `written` and `taken`
 * count bytes; with 64 bits they do not wrap around. A record is never split: if it does not fit before the end of the
 * ring, a filler takes the rest of the ring, and the record is written at the start.
 *
 * Messages to a rank are numbered by their turn, because a message for which there is no room goes through a socket, and
 * the reader takes all messages in order. Turn 0 marks a record that has no place in that order.
 *
 * A rank that is about to sleep sets its word `asleep` and checks for records once more. A writer reads the word after it
 * has written; if it is set, the writer must wake the rank by other means. Both have a fence between their store and their
 * load, so that at least one of them sees the other's store.
 */
#ifndef COLLSHIM_PIPES_H
#define COLLSHIM_PIPES_H

#include "slots.h"

#define UNIT 64 /* records begin at multiples of it */
#define RECORD_HEAD 64
#define FILLER UINT32_MAX

/* The kinds of records that are handled without Python, as in sockets/connection.py: a message with its data; larger data
 * that is offered, with the data, or with the place of the data in its writer's memory; and the answer to an offer. */
enum { MESSAGE = 1, OFFER = 2, READABLE = 3, RELEASE = 5 };

typedef struct {
    alignas(128) _Atomic uint64_t written;
    uint64_t sent; /* the turn of the writer's last message */
    alignas(128) _Atomic uint64_t taken;
    uint64_t passed; /* the turn of the last message that the reader has begun to handle */
} pipe_t;

typedef struct {
    alignas(128) _Atomic uint32_t asleep;
} sleeper_t;

typedef struct {
    uint32_t kind, header_bytes;
    uint64_t turn, number, data_bytes, total; /* `total`: the bytes of the record, a multiple of UNIT */
} record_t;

/* The contents of a READABLE record in place of the data: the addresses of the data, and of a word that holds the offer's
 * number as long as the offer stands. */
typedef struct {
    uint64_t data, mark;
} place_t;

typedef struct {
    char *base;
    uint32_t size, rank;
    uint64_t room;  /* the bytes of a pipe's ring, a multiple of UNIT */
    uint32_t spins; /* how often a wait polls before it gives up */
} pipes_t;

static inline uint64_t rounded(uint64_t nbytes, uint64_t unit) { return (nbytes + unit - 1) / unit * unit; }

static inline uint64_t pipes_bytes(const pipes_t *pipes) {
    uint64_t sleepers = rounded(pipes->size * sizeof(sleeper_t), PAGE);
    return sleepers + (uint64_t)pipes->size * pipes->size * (sizeof(pipe_t) + pipes->room);
}

static inline sleeper_t *sleeper_of(const pipes_t *pipes, uint32_t rank) { return (sleeper_t *)pipes->base + rank; }

static inline pipe_t *pipe_of(const pipes_t *pipes, uint32_t source, uint32_t target) {
    uint64_t index = (uint64_t)source * pipes->size + target;
    char *start = pipes->base + rounded(pipes->size * sizeof(sleeper_t), PAGE);
    return (pipe_t *)(start + index * (sizeof(pipe_t) + pipes->room));
}

static inline record_t *record_at(const pipes_t *pipes, pipe_t *pipe, uint64_t count) {
    return (record_t *)((char *)(pipe + 1) + count % pipes->room);
}

static inline char *header_in(record_t *record) { return (char *)record + RECORD_HEAD; }

static inline char *data_in(record_t *record) { return header_in(record) + rounded(record->header_bytes, UNIT); }

/* Write a record for another rank and set its `total`; return whether there was room. */
static inline bool put(const pipes_t *pipes, pipe_t *pipe, record_t record, const void *header, const void *data) {
    uint64_t written = atomic_load_explicit(&pipe->written, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&pipe->taken, memory_order_acquire);
    record.total = rounded(RECORD_HEAD + rounded(record.header_bytes, UNIT) + record.data_bytes, UNIT);
    uint64_t left = pipes->room - written % pipes->room, skipped = left < record.total ? left : 0;
    if (record.total > pipes->room / 2 || written + skipped + record.total - taken > pipes->room) return false;
    if (skipped) *record_at(pipes, pipe, written) = (record_t){FILLER, 0, 0, 0, 0, skipped};
    record_t *place = record_at(pipes, pipe, written + skipped);
    *place = record;
    memcpy(header_in(place), header, record.header_bytes);
    if (record.data_bytes) memcpy(data_in(place), data, record.data_bytes);
    atomic_store_explicit(&pipe->written, written + skipped + record.total, memory_order_release);
    return true;
}

/* Return whether the rank sleeps, so that the caller must wake it; call this after `put`. */
static inline bool must_wake(const pipes_t *pipes, uint32_t target) {
    sleeper_t *sleeper = sleeper_of(pipes, target);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&sleeper->asleep, memory_order_relaxed) &&
           atomic_exchange_explicit(&sleeper->asleep, 0, memory_order_relaxed);
}

/* Announce whether this rank is about to sleep; after that, it must check for records once more. */
static inline void set_asleep(const pipes_t *pipes, bool asleep) {
    atomic_store_explicit(&sleeper_of(pipes, pipes->rank)->asleep, asleep, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

/* Return the oldest record of another rank, or NULL. */
static inline record_t *first(const pipes_t *pipes, uint32_t source) {
    pipe_t *pipe = pipe_of(pipes, source, pipes->rank);
    uint64_t taken = atomic_load_explicit(&pipe->taken, memory_order_relaxed);
    if (atomic_load_explicit(&pipe->written, memory_order_acquire) == taken) return NULL;
    record_t *record = record_at(pipes, pipe, taken);
    if (record->kind != FILLER) return record;
    taken += record->total; /* read before the store, which lets the writer write here */
    atomic_store_explicit(&pipe->taken, taken, memory_order_release);
    return record_at(pipes, pipe, taken); /* a filler and the record behind it come together */
}

/* Release the memory of the oldest record to its writer. */
static inline void drop(const pipes_t *pipes, uint32_t source, const record_t *record) {
    pipe_t *pipe = pipe_of(pipes, source, pipes->rank);
    uint64_t taken = atomic_load_explicit(&pipe->taken, memory_order_relaxed);
    atomic_store_explicit(&pipe->taken, taken + record->total, memory_order_release);
}

/* Return whether there is a record from the rank `source`, or from any rank if `source` is `size`. */
static inline bool has_record(const pipes_t *pipes, uint32_t source) {
    uint32_t begin = source < pipes->size ? source : 0, end = source < pipes->size ? source + 1 : pipes->size;
    for (uint32_t rank = begin; rank < end; rank++) {
        pipe_t *pipe = pipe_of(pipes, rank, pipes->rank);
        uint64_t taken = atomic_load_explicit(&pipe->taken, memory_order_relaxed);
        if (atomic_load_explicit(&pipe->written, memory_order_acquire) != taken) return true;
    }
    return false;
}

/* Poll `looks` times for a record. If `yields`, yield to other threads from time to time, or on a busy machine take naps:
 * a thread that sleeps for longer would have to be woken by other means. */
static inline bool finds_record(const pipes_t *pipes, uint32_t source, uint32_t looks, bool yields) {
    bool naps = yields && looks > LOOKS_IN_CROWD && is_crowded();
    for (uint32_t look = 0; look < (naps ? LOOKS_IN_CROWD : looks); look++) {
        if (has_record(pipes, source)) return true;
        if (yields && !naps && look % 16 == 15 && !give_way()) break;
        relax();
    }
    for (uint32_t nap = 0; naps && nap < NAPS_IN_CROWD && !has_record(pipes, source); nap++) take_nap();
    return has_record(pipes, source);
}

#endif
