/* What the drivers share: random numbers, memory, and threads as the ranks of a group. */
#ifndef COLLSHIM_RANKS_H
#define COLLSHIM_RANKS_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void linger(void);

#include "slots.h"

#define MOST 8 /* ranks */

enum { WRONG = 2, LATE = 3 };

static uint32_t seed;
static double seconds; /* of one wait */

static uint32_t mix(uint32_t value) {
    value = (value ^ (value >> 16)) * 0x7feb352du;
    value = (value ^ (value >> 15)) * 0x846ca68bu;
    return value ^ (value >> 16);
}

/* Return a random number; `drawn` is the state. */
static uint32_t draw(uint32_t *drawn, uint32_t limit) {
    *drawn = *drawn * 1664525u + 1013904223u;
    return mix(*drawn) % limit;
}

static uint32_t drawn_by(uint32_t rank) { return mix(seed * MOST + rank); }

static char byte_of(uint32_t value, uint32_t at) { return (char)(value >> (at % 4 * 8)) + (char)at; }

/* Called between the steps of the protocol by copies of its headers, so that the other ranks act there more often. */
__attribute__((unused)) static void linger(void) {
    static _Thread_local uint32_t drawn;
    if (drawn == 0) drawn = (uint32_t)(uintptr_t)&drawn;
    struct timespec nap = {0, draw(&drawn, 50000)};
    if (draw(&drawn, 32) == 0) nanosleep(&nap, NULL);
}

static char *make_memory(uint64_t nbytes) {
    nbytes = (nbytes + PAGE - 1) / PAGE * PAGE;
    char *base = aligned_alloc(PAGE, nbytes);
    if (base == NULL) exit(1);
    memset(base, 0, nbytes);
    return base;
}

/* Run the ranks, each with `nbytes` of its own from `ranks` on, until all have ended; return the exit status. */
static int run_all(void *(*run)(void *), void *ranks, size_t nbytes, uint32_t size) {
    pthread_t threads[MOST];
    for (uint32_t rank = 0; rank < size; rank++)
        if (pthread_create(&threads[rank], NULL, run, (char *)ranks + rank * nbytes)) return 1;
    for (uint32_t rank = 0; rank < size; rank++) pthread_join(threads[rank], NULL);
    puts("every value was right");
    return 0;
}

#endif
