/* Detects whether other programs use the processors; waits then poll less before they sleep.
 *
 * A wait that polls memory ends sooner than a wait that sleeps, if the awaited rank is running meanwhile. On a busy
 * machine, a thread that polls spends its own share of the processors, and a thread that yields waits until the other
 * programs have spent theirs; a thread that sleeps runs soon after it is woken. So if a yield took long, the wait sleeps
 * at once, and later waits poll less for some time. This time doubles each time a yield takes long again. */
#ifndef COLLSHIM_CROWD_H
#define COLLSHIM_CROWD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>

#define LOOKS_IN_CROWD 32
#define NAPS_IN_CROWD 40
#define NAP 10000               /* nanoseconds */
#define LONG_AWAY 1500000u          /* nanoseconds */
#define SHORTEST_CROWD 100000000u   /* nanoseconds */
#define LONGEST_CROWD 5000000000ull /* nanoseconds */

static _Atomic uint64_t crowded_until, crowded_for;

static inline uint64_t nanoseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline bool is_crowded(void) {
    uint64_t until = atomic_load_explicit(&crowded_until, memory_order_relaxed);
    return until != 0 && nanoseconds_now() < until;
}

/* Sleep for about as long as it takes to wake a thread, whatever this thread's timer slack. */
static inline void take_nap(void) {
    const struct timespec nap = {0, NAP};
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1ul);
    nanosleep(&nap, NULL);
    if (slack > 0) prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
}

/* Yield to other threads; return whether this thread ran again soon. */
static inline bool give_way(void) {
    uint64_t began = nanoseconds_now();
    sched_yield();
    uint64_t now = nanoseconds_now();
    if (now - began < LONG_AWAY) return true;
    uint64_t until = atomic_load_explicit(&crowded_until, memory_order_relaxed);
    uint64_t span = atomic_load_explicit(&crowded_for, memory_order_relaxed);
    span = now < until + span && span < LONGEST_CROWD / 2 ? 2 * span : now < until + span ? LONGEST_CROWD : SHORTEST_CROWD;
    atomic_store_explicit(&crowded_for, span, memory_order_relaxed);
    atomic_store_explicit(&crowded_until, now + span, memory_order_relaxed);
    return false;
}

#endif
