/* The protocol of collectives between a group's ranks in shared memory; without Python, so that it can be checked alone.
 *
 * Each rank owns a control block and a ring of slots, which only it writes. To post call n, it fills slot n modulo the
 * number of slots and then sets its counter POSTED to n + 1. When the other ranks see that, they read the slot, and then
 * set their own counters RELEASED to n + 1. The owner fills the slot again once all ranks have released call n.
 *
 * Counters are 32 bits and wrap around; they are compared by the sign of their difference. A store of a counter is a
 * release and a load is an acquire, which orders accesses to the memory that the counter guards.
 */
#ifndef COLLSHIM_SLOTS_H
#define COLLSHIM_SLOTS_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"

#define PAGE 4096
#define SLOT_HEAD 64 /* bytes before the header */

enum { POSTED, RELEASED, STAGE, BLOCK, COUNTERS }; /* blocks.py describes BLOCK */
enum { ALIVE, ENDED, CLOSED };

typedef struct {
    alignas(128) _Atomic uint32_t value; /* two cache lines: processors fetch them in pairs */
    _Atomic uint32_t sleepers;
} counter_t;

typedef struct {
    counter_t counters[COUNTERS];
    alignas(128) _Atomic uint32_t state; /* ENDED: the rank has given up a call; CLOSED: it posts no more calls */
} control_t;

typedef struct {
    uint32_t header_bytes;
    uint32_t kind; /* what the data is; the protocol does not read it */
    uint64_t data_bytes;
    double posted; /* the time of the post, in seconds of CLOCK_MONOTONIC */
} slot_t;

typedef struct {
    char *base;
    uint32_t size, rank, slots;
    uint64_t header_bytes, data_bytes; /* the room for headers and for data in a slot */
    uint32_t spins;                    /* how often a wait polls before it sleeps */
} ring_t;

static inline bool is_before(uint32_t one, uint32_t other) { return (int32_t)(one - other) < 0; }

static inline uint64_t slot_bytes(const ring_t *ring) { return SLOT_HEAD + ring->header_bytes + ring->data_bytes; }

static inline uint64_t slots_start(const ring_t *ring) {
    return PAGE + (ring->size * sizeof(control_t) + PAGE - 1) / PAGE * PAGE;
}

static inline uint64_t segment_bytes(const ring_t *ring) {
    return slots_start(ring) + (uint64_t)ring->size * ring->slots * slot_bytes(ring);
}

static inline control_t *control_of(const ring_t *ring, uint32_t rank) {
    return (control_t *)(ring->base + PAGE) + rank;
}

static inline counter_t *counter_of(const ring_t *ring, uint32_t rank, int which) {
    return &control_of(ring, rank)->counters[which];
}

static inline slot_t *slot_of(const ring_t *ring, uint32_t rank, uint32_t number) {
    uint64_t index = (uint64_t)rank * ring->slots + number % ring->slots;
    return (slot_t *)(ring->base + slots_start(ring) + index * slot_bytes(ring));
}

static inline char *header_of(slot_t *slot) { return (char *)slot + SLOT_HEAD; }

static inline char *data_of(const ring_t *ring, slot_t *slot) { return header_of(slot) + ring->header_bytes; }

static inline uint32_t load(counter_t *counter) { return atomic_load_explicit(&counter->value, memory_order_acquire); }

static inline double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Set one of this rank's counters, and wake the ranks that sleep until it changes. */
static inline void advance(counter_t *counter, uint32_t value) {
    atomic_store_explicit(&counter->value, value, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* between this store and the load of `sleepers`; see `sleep_on` */
    if (atomic_load_explicit(&counter->sleepers, memory_order_relaxed) > 0)
        syscall(SYS_futex, &counter->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Report that this rank has read the slots of call `number`, and that all steps of the call are over. STAGE is set too,
 * because after 2**31 calls that do not set it, it would seem to be ahead of them. No rank sleeps on STAGE at this point,
 * because the steps have already set it. */
static inline void release(const ring_t *ring, uint32_t number) {
    atomic_store_explicit(&counter_of(ring, ring->rank, STAGE)->value, number + 1, memory_order_relaxed);
    advance(counter_of(ring, ring->rank, RELEASED), number + 1);
}

/* Sleep until the counter is no longer `seen`, for at most `seconds`. */
static inline void sleep_on(counter_t *counter, uint32_t seen, double seconds) {
    struct timespec limit = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    atomic_fetch_add_explicit(&counter->sleepers, 1, memory_order_seq_cst);
    if (load(counter) == seen) syscall(SYS_futex, &counter->value, FUTEX_WAIT, seen, &limit, NULL, 0);
    atomic_fetch_sub_explicit(&counter->sleepers, 1, memory_order_seq_cst);
}

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

/* Return whether this rank may fill the slot of call `number`: all ranks have released the call that used it before. */
static inline bool has_room(const ring_t *ring, uint32_t number) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (!is_before(number, load(counter_of(ring, rank, RELEASED)) + ring->slots)) return false;
    return true;
}

/* Post a call; if `data` is NULL, the data is in the slot already. */
static inline void fill(const ring_t *ring, uint32_t number, const void *header, uint64_t header_bytes, uint32_t kind,
                        const void *data, uint64_t data_bytes) {
    slot_t *slot = slot_of(ring, ring->rank, number);
    /* A header that is there already stays: what is not written need not be fetched again by the other ranks. */
    if (slot->header_bytes != header_bytes || memcmp(header_of(slot), header, header_bytes)) {
        slot->header_bytes = (uint32_t)header_bytes;
        memcpy(header_of(slot), header, header_bytes);
    }
    slot->kind = kind;
    slot->data_bytes = data_bytes;
    slot->posted = seconds_now();
    if (data) memcpy(data_of(ring, slot), data, data_bytes);
    advance(counter_of(ring, ring->rank, POSTED), number + 1);
}

/* Return whether the counter of every rank is past `number`. */
static inline bool have_passed(const ring_t *ring, int which, uint32_t number) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (!is_before(number, load(counter_of(ring, rank, which)))) return false;
    return true;
}

static inline uint32_t state_of(const ring_t *ring, uint32_t rank) {
    return atomic_load_explicit(&control_of(ring, rank)->state, memory_order_acquire);
}

static inline bool has_ended(const ring_t *ring) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (state_of(ring, rank) == ENDED) return true;
    return false;
}

/* Poll the counters `looks` times; return whether they have passed. If `yields`, yield to others from time to time. */
static inline bool pass_soon(const ring_t *ring, int which, uint32_t number, uint32_t looks, bool yields) {
    if (yields && looks > LOOKS_IN_CROWD && is_crowded()) looks = LOOKS_IN_CROWD, yields = false;
    for (uint32_t look = 0; look < looks; look++) {
        if (have_passed(ring, which, number)) return true;
        if (yields && look % 16 == 15 && !give_way()) break;
        relax();
    }
    return have_passed(ring, which, number);
}

/* Sleep until the counters have passed, a missing rank has left or a rank has ended, but at most until `limit`, a time of
 * `seconds_now`. Return after a signal too, so that the caller can handle it. Return whether the counters have passed. */
static inline bool pass_asleep(const ring_t *ring, int which, uint32_t number, double limit) {
    for (uint32_t rank = 0; rank < ring->size; rank++) {
        counter_t *counter = counter_of(ring, rank, which);
        uint32_t seen = load(counter);
        if (is_before(number, seen)) continue;
        double left = limit - seconds_now();
        if (left <= 0 || state_of(ring, rank) != ALIVE || has_ended(ring)) return have_passed(ring, which, number);
        sleep_on(counter, seen, left);
        return have_passed(ring, which, number);
    }
    return true;
}

#endif
