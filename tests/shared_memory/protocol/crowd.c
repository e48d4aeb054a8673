/* Print how often waits give way, and how long a crowd is taken to last, if giving way takes some microseconds. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long microseconds, given;

static int yield_slowly(void) {
    struct timespec nap = {0, microseconds * 1000};
    given++;
    return microseconds == 0 ? 0 : nanosleep(&nap, NULL);
}

#define sched_yield yield_slowly
#include "slots.h"

static long gives_way_in_a_wait(const ring_t *ring) {
    given = 0;
    pass_soon(ring, POSTED, 0, 160, true);
    return given;
}

int main(int count, char **words) {
    if (count != 2) return 1;
    microseconds = atol(words[1]);
    ring_t ring = {NULL, 1, 0, 1, 64, 64, 160};
    ring.base = aligned_alloc(PAGE, (segment_bytes(&ring) + PAGE - 1) / PAGE * PAGE);
    memset(ring.base, 0, segment_bytes(&ring));
    long first = gives_way_in_a_wait(&ring), second = gives_way_in_a_wait(&ring);
    printf("%ld %ld %d", first, second, is_crowded());
    for (int again = 0; again < 8; again++) {
        atomic_store(&crowded_until, nanoseconds_now()); /* the time is over */
        give_way();
        printf(" %llu", (unsigned long long)atomic_load(&crowded_for) / 1000000);
    }
    atomic_store(&crowded_until, nanoseconds_now() - 2 * LONGEST_CROWD);
    give_way();
    printf(" %llu\n", (unsigned long long)atomic_load(&crowded_for) / 1000000);
    free(ring.base);
    return 0;
}
