/* Threads as the ranks of a group: each posts and reads a long stream of calls, pauses at random and checks all values.
 *
 * driver SIZE CALLS SLOTS SPINS START SECONDS SEED: the ranks; the calls of each; the slots of each; how often a wait
 * looks before it sleeps; the number of the first call; the seconds of one wait; what is drawn.
 *
 * Every fourth call of the second half has a step between posts and releases, as larger data has: a rank writes to its
 * own memory, and once all have, reads the others'.
 *
 * It exits with 2 at a wrong value, and with 3 if a wait lasts to its deadline: a wake-up was lost, or a rank is stuck.
 */
#include "ranks.h"
#include "slots.h"

#define HEADER_ROOM 64
#define DATA_ROOM 256
#define OUTPUT 32 /* words that a rank writes in a step */

typedef struct {
    ring_t ring;
    uint32_t drawn; /* the state of the random numbers */
} rank_t;

static uint32_t calls, start;
static uint32_t outputs[MOST][OUTPUT]; /* plain memory, as a rank's own is */

/* What a rank sends in a call: other bytes, of another length, than before and after. */
static uint32_t sent(uint32_t rank, uint32_t number) { return mix(number * MOST + rank + seed); }

static uint32_t length_of(uint32_t value, uint32_t room) { return value % 7 == 0 ? 0 : value % (room + 1); }

static void fail(int status, const char *what, uint32_t rank, uint32_t other, uint32_t number) {
    fprintf(stderr, "%s: rank %u, of rank %u, in call %u\n", what, rank, other, number - start);
    fflush(stderr);
    _exit(status);
}

static void rest(rank_t *self) {
    struct timespec nap = {0, draw(&self->drawn, 200000)};
    uint32_t kind = draw(&self->drawn, 256);
    if (kind == 0) nanosleep(&nap, NULL);
    if (kind < 8) sched_yield();
    if (kind < 64)
        for (uint32_t turn = draw(&self->drawn, 300); turn; turn--) relax();
}

static void await(rank_t *self, int which, uint32_t number) {
    const ring_t *ring = &self->ring;
    double limit = seconds_now() + seconds;
    if (pass_soon(ring, which, number, ring->spins, true)) return;
    while (!pass_asleep(ring, which, number, limit))
        if (seconds_now() >= limit) break;
    if (seconds_now() >= limit) fail(LATE, "a wait lasted to its deadline", ring->rank, (uint32_t)which, number);
}

static void post(rank_t *self, uint32_t number) {
    const ring_t *ring = &self->ring;
    char header[HEADER_ROOM], data[DATA_ROOM];
    uint32_t value = sent(ring->rank, number);
    uint32_t header_bytes = length_of(value, HEADER_ROOM), data_bytes = length_of(value >> 8, DATA_ROOM);
    for (uint32_t at = 0; at < header_bytes; at++) header[at] = byte_of(value, at);
    for (uint32_t at = 0; at < data_bytes; at++) data[at] = byte_of(~value, at);
    double limit = seconds_now() + seconds;
    while (!has_room(ring, number)) {
        await(self, RELEASED, number - ring->slots);
        if (seconds_now() >= limit) fail(LATE, "there is no room", ring->rank, ring->rank, number);
    }
    fill(ring, number, header, header_bytes, value % 3, data, data_bytes);
}

static bool is_right(const ring_t *ring, uint32_t rank, uint32_t number) {
    slot_t *slot = slot_of(ring, rank, number);
    uint32_t value = sent(rank, number);
    if (slot->header_bytes != length_of(value, HEADER_ROOM) || slot->kind != value % 3) return false;
    if (slot->data_bytes != length_of(value >> 8, DATA_ROOM)) return false;
    for (uint32_t at = 0; at < slot->header_bytes; at++)
        if (header_of(slot)[at] != byte_of(value, at)) return false;
    for (uint32_t at = 0; at < slot->data_bytes; at++)
        if (data_of(ring, slot)[at] != byte_of(~value, at)) return false;
    return true;
}

/* The step: as in a sum of larger data, whose shares the ranks read from each other. */
static void exchange(rank_t *self, uint32_t number) {
    const ring_t *ring = &self->ring;
    await(self, RELEASED, number - 1); /* the others have read the last call's output */
    for (uint32_t at = 0; at < OUTPUT; at++) outputs[ring->rank][at] = sent(ring->rank, number) + at;
    advance(counter_of(ring, ring->rank, STAGE), number + 1);
    await(self, STAGE, number);
    for (uint32_t rank = 0; rank < ring->size; rank++)
        for (uint32_t at = 0; at < OUTPUT; at++)
            if (outputs[rank][at] != sent(rank, number) + at) fail(WRONG, "a wrong output", ring->rank, rank, number);
}

static void read_all(rank_t *self, uint32_t number) {
    const ring_t *ring = &self->ring;
    await(self, POSTED, number);
#ifdef RELEASED_BEFORE_READ
    release(ring, number);
#endif
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (!is_right(ring, rank, number)) fail(WRONG, "a wrong slot", ring->rank, rank, number);
    if (number - start > calls / 2 && number % 4 == 3) exchange(self, number);
    release(ring, number);
}

static void *run(void *argument) {
    rank_t *self = argument;
    uint32_t posted = 0, read = 0;
    while (read < calls) {
        rest(self);
        bool posts = posted < calls && (posted == read || (posted - read < self->ring.slots && draw(&self->drawn, 2)));
        if (posts) post(self, start + posted++);
        if (!posts || draw(&self->drawn, 2)) read_all(self, start + read++);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 8) return 1;
    uint32_t size = (uint32_t)atoi(words[1]), slots = (uint32_t)atoi(words[3]), spins = (uint32_t)atoi(words[4]);
    calls = (uint32_t)atoi(words[2]), start = (uint32_t)strtoul(words[5], NULL, 10);
    seconds = atof(words[6]), seed = (uint32_t)atoi(words[7]);
    if (size > MOST || slots == 0) return 1;
    ring_t ring = {NULL, size, 0, slots, HEADER_ROOM, DATA_ROOM, spins};
    ring.base = make_memory(segment_bytes(&ring));
    rank_t ranks[MOST];
    for (uint32_t rank = 0; rank < size; rank++) {
        atomic_store(&counter_of(&ring, rank, POSTED)->value, start);
        atomic_store(&counter_of(&ring, rank, RELEASED)->value, start);
        ranks[rank] = (rank_t){ring, drawn_by(rank)};
        ranks[rank].ring.rank = rank;
    }
    int status = run_all(run, ranks, sizeof(rank_t), size);
    free(ring.base);
    return status;
}
