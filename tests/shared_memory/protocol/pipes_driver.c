/* Threads as the ranks of a group: each sends a long stream of messages to the others, takes theirs, and checks them all.
 *
 * driver SIZE MESSAGES ROOM SPINS SECONDS SEED: the ranks; the messages of each; the bytes of a pipe; how often a rank
 * looks before it sleeps; the seconds of one wait; what is drawn.
 *
 * A rank sleeps on a bell, which another one rings if it has to wake it, as a frame on a socket does. It exits with 2 at
 * a wrong message, and with 3 if a wait lasts to its deadline: a wake-up was lost, or a rank is stuck.
 */
#include "ranks.h"
#include "pipes.h"

typedef struct {
    pipes_t pipes;
    uint32_t drawn; /* the state of the random numbers */
    uint32_t sent[MOST], taken[MOST];
} rank_t;

static uint32_t messages;
static _Atomic uint32_t bells[MOST];

static uint32_t content(uint32_t source, uint32_t target, uint32_t number) {
    return mix((number * MOST + source) * MOST + target + seed);
}

static void fail(int status, const char *what, uint32_t rank, uint32_t other) {
    fprintf(stderr, "%s: rank %u, of rank %u\n", what, rank, other);
    fflush(stderr);
    _exit(status);
}

static bool send_next(rank_t *self, uint32_t target) {
    const pipes_t *pipes = &self->pipes;
    uint32_t number = self->sent[target], value = content(pipes->rank, target, number);
    char header[64], data[512];
    record_t record = {value % 5, value % 64, number + 1, value, value / 64 % (value % 3 ? 64 : 512), 0};
    for (uint32_t at = 0; at < record.header_bytes; at++) header[at] = byte_of(value, at);
    for (uint32_t at = 0; at < record.data_bytes; at++) data[at] = byte_of(~value, at);
#ifdef LOOKED_BEFORE_WRITTEN
    bool wakes = must_wake(pipes, target);
    linger();
#endif
    bool is_written = put(pipes, pipe_of(pipes, pipes->rank, target), record, header, data);
#ifndef LOOKED_BEFORE_WRITTEN
    bool wakes = is_written && must_wake(pipes, target);
#endif
    self->sent[target] += is_written;
    if (wakes) {
        atomic_fetch_add(&bells[target], 1);
        syscall(SYS_futex, &bells[target], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    return is_written;
}

static bool take_next(rank_t *self, uint32_t source) {
    const pipes_t *pipes = &self->pipes;
    record_t *record = first(pipes, source);
    if (record == NULL) return false;
    uint32_t number = self->taken[source], value = content(source, pipes->rank, number);
    bool is_right = record->kind == value % 5 && record->turn == number + 1 && record->number == value;
    is_right = is_right && record->header_bytes == value % 64;
    is_right = is_right && record->data_bytes == value / 64 % (value % 3 ? 64 : 512);
    for (uint32_t at = 0; is_right && at < record->header_bytes; at++)
        is_right = header_in(record)[at] == byte_of(value, at);
    for (uint32_t at = 0; is_right && at < record->data_bytes; at++)
        is_right = data_in(record)[at] == byte_of(~value, at);
    if (!is_right) fail(WRONG, "a wrong message", pipes->rank, source);
    drop(pipes, source, record);
    self->taken[source]++;
    return true;
}

/* Wait for a message, and return without one if a rank that is to be sent more may have room again. */
static void wait_for_one(rank_t *self, bool has_more) {
    const pipes_t *pipes = &self->pipes;
    if (finds_record(pipes, pipes->size, pipes->spins, true) || has_more) return;
    uint32_t seen = atomic_load(&bells[pipes->rank]);
    struct timespec limit = {(time_t)seconds, 0};
    double end = seconds_now() + seconds;
    set_asleep(pipes, true);
    while (!has_record(pipes, pipes->size) && atomic_load(&bells[pipes->rank]) == seen) {
        syscall(SYS_futex, &bells[pipes->rank], FUTEX_WAIT, seen, &limit, NULL, 0);
        if (seconds_now() >= end) fail(LATE, "a wait lasted to its deadline", pipes->rank, pipes->rank);
    }
    set_asleep(pipes, false);
}

static void *run(void *argument) {
    rank_t *self = argument;
    uint32_t size = self->pipes.size, others = 0;
    double limit = seconds_now() + 100 * seconds;
    while (others < 2 * (size - 1)) {
        bool has_moved = false, has_more = false;
        others = 0;
        for (uint32_t other = 0; other < size; other++) {
            if (other == self->pipes.rank) continue;
            for (uint32_t burst = draw(&self->drawn, 6); burst && self->sent[other] < messages; burst--)
                if (!send_next(self, other)) break;
            for (uint32_t burst = draw(&self->drawn, 6); burst && take_next(self, other); burst--) has_moved = true;
            has_more = has_more || self->sent[other] < messages;
            others += (self->sent[other] == messages) + (self->taken[other] == messages);
        }
        if (others < 2 * (size - 1) && !has_moved) wait_for_one(self, has_more);
        if (seconds_now() >= limit) fail(LATE, "the stream does not end", self->pipes.rank, self->pipes.rank);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 7) return 1;
    uint32_t size = (uint32_t)atoi(words[1]), spins = (uint32_t)atoi(words[4]);
    messages = (uint32_t)atoi(words[2]), seconds = atof(words[5]), seed = (uint32_t)atoi(words[6]);
    pipes_t pipes = {NULL, size, 0, (uint64_t)atoi(words[3]), spins};
    if (size > MOST || pipes.room % UNIT) return 1;
    pipes.base = make_memory(pipes_bytes(&pipes));
    static rank_t ranks[MOST];
    for (uint32_t rank = 0; rank < size; rank++) {
        ranks[rank] = (rank_t){.pipes = pipes, .drawn = drawn_by(rank)};
        ranks[rank].pipes.rank = rank;
    }
    int status = run_all(run, ranks, sizeof(rank_t), size);
    free(pipes.base);
    return status;
}
