/* How a rank computes the result of a call that all ranks have posted: from their slots, or from their processes' memory.
 *
 * This file does not use Python. `group.Movement` documents the kinds of movement.
 */
#ifndef COLLSHIM_MOVEMENT_H
#define COLLSHIM_MOVEMENT_H

#include <sys/uio.h>

#include "reduction.h"
#include "slots.h"

#define PIECES (1 << 19)      /* bytes of all ranks' data together that are reduced at a time */
#define LEAST_BLOCK (1 << 14) /* the least number of these bytes per rank */
#define MOST_BLOCK (1 << 17)  /* the largest number of these bytes per rank */

enum { NOTHING, REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_ROOT, PART_OF_EACH };
enum { INLINE, ABSENT, FAR, BLOCKS };

#define MOST 64 /* the largest number of ranks whose pieces are reduced here */

typedef struct {
    int what;
    uint32_t reduction; /* 0 if there is none; see reduction.h */
    uint32_t root;
    uint64_t part; /* bytes of a rank's tensor, or of each of its parts */
} move_t;

static bool is_parted(int what) { return what == REDUCED_PART || what == PART_OF_ROOT || what == PART_OF_EACH; }

static bool is_of_root(int what) { return what == FROM_ROOT || what == PART_OF_ROOT; }

/* Return whether every slot that the movement reads holds the expected number of bytes. */
static bool has_data(const ring_t *ring, uint32_t number, const move_t *move) {
    for (uint32_t rank = 0; rank < ring->size; rank++) {
        const slot_t *slot = slot_of(ring, rank, number);
        if (is_of_root(move->what) && rank != move->root) continue;
        if (slot->kind != INLINE || slot->data_bytes != move->part * (is_parted(move->what) ? ring->size : 1)) return false;
    }
    return true;
}

/* Write this rank's result, to `out` or to the addresses `outs` of its parts; return whether that is possible here. */
static bool deliver(const ring_t *ring, uint32_t number, const move_t *move, char *out, char *const *outs) {
    const void *pieces[MOST];
    uint64_t own = ring->rank * move->part;
    if (move->what == NOTHING || (out == NULL && outs == NULL)) return true;
    if (!has_data(ring, number, move)) return false;
    if (outs != NULL && move->what != ALL_PARTS && move->what != PART_OF_EACH) return false;
    if (is_of_root(move->what)) {
        char *source = data_of(ring, slot_of(ring, move->root, number));
        memcpy(out, source + (move->what == PART_OF_ROOT ? own : 0), move->part);
        return true;
    }
    bool reduces = move->what == REDUCED || move->what == REDUCED_PART;
    if (reduces && (ring->size > MOST || ring->size < 2)) return false;
    bool at_own = move->what == REDUCED_PART || move->what == PART_OF_EACH;
    for (uint32_t rank = 0; rank < ring->size; rank++) {
        char *source = data_of(ring, slot_of(ring, rank, number)) + (at_own ? own : 0);
        if (reduces)
            pieces[rank] = source;
        else
            memcpy(outs != NULL ? outs[rank] : out + rank * move->part, source, move->part);
    }
    return !reduces || reduce(move->reduction, out, pieces, ring->size, move->part);
}

static bool read_from(pid_t process, char *source, char *target, uint64_t left) {
    while (left) {
        struct iovec local = {target, left}, remote = {source, left};
        ssize_t copied = process_vm_readv(process, &local, 1, &remote, 1, 0);
        if (copied <= 0) return false;
        left -= (uint64_t)copied, source += copied, target += copied;
    }
    return true;
}

/* A call whose data does not fit in a slot: the ranks have posted the addresses of their tensors, or of each of their
 * parts, and then, if they read shares from each other, the address of their output. far.py does the same in Python. */
typedef struct {
    const ring_t *ring;
    const pid_t *processes;
    char *scratch;
    uint32_t number;
    const move_t *move;
} far_t;

static char *const *addresses_of(const far_t *far, uint32_t rank, uint64_t *count) {
    slot_t *slot = slot_of(far->ring, rank, far->number);
    *count = slot->data_bytes / sizeof(char *) - 1;
    return (char *const *)(void *)data_of(far->ring, slot);
}

static char *output_of(const far_t *far, uint32_t rank) {
    uint64_t count;
    char *const *addresses = addresses_of(far, rank, &count);
    return addresses[count];
}

/* Whether the ranks first make a share of the result each, and then read the others' shares: if all have posted the
 * addresses of their outputs, as in an all_reduce, or in a broadcast to many ranks. */
static bool is_in_shares(const far_t *far) {
    if (far->move->what != REDUCED && far->move->what != FROM_ROOT) return false;
    for (uint32_t rank = 0; rank < far->ring->size; rank++)
        if (slot_of(far->ring, rank, far->number)->kind != FAR || output_of(far, rank) == NULL) return false;
    return true;
}

/* Where a rank's tensor begins, or its part for this rank. */
static char *start_of(const far_t *far, uint32_t rank) {
    uint64_t count, own = far->ring->rank;
    char *const *addresses = addresses_of(far, rank, &count);
    if (!is_parted(far->move->what)) return addresses[0];
    return count == 1 ? addresses[0] + own * far->move->part : addresses[own];
}

/* Return whether every rank that sends data has posted addresses of it, and no rank has given up the call. */
static bool has_addresses(const far_t *far, bool listed) {
    const move_t *move = far->move;
    if (far->processes == NULL || (listed && move->what != ALL_PARTS && move->what != PART_OF_EACH)) return false;
    for (uint32_t rank = 0; rank < far->ring->size; rank++) {
        const slot_t *slot = slot_of(far->ring, rank, far->number);
        if (is_of_root(move->what) && rank != move->root) continue;
        if (slot->kind != FAR && move->what != NOTHING) return false;
    }
    if (move->what != REDUCED && move->what != REDUCED_PART) return true;
    return numbers_of(move->reduction) != NULL && far->ring->size >= 2 && far->ring->size <= MOST;
}

/* Copy from a rank's memory; return whether that was possible. */
static bool fetch(const far_t *far, uint32_t rank, char *source, char *target, uint64_t nbytes) {
    if (rank != far->ring->rank) return read_from(far->processes[rank], source, target, nbytes);
    if (source != target) memmove(target, source, nbytes);
    return true;
}

/* Return the rank that this rank reads in a step: first the ranks after it, last itself. If all ranks read the same
 * process at the same time, they contend in the kernel for the process's page tables. */
static uint32_t next_rank(const ring_t *ring, uint32_t step) { return (ring->rank + 1 + step) % ring->size; }

/* Return how many bytes of each rank's data are reduced at a time, so that all pieces together stay in a core's cache. */
static uint64_t block_bytes(const ring_t *ring) {
    uint64_t share = PIECES / ring->size / PAGE * PAGE;
    return share < LEAST_BLOCK ? LEAST_BLOCK : share > MOST_BLOCK ? MOST_BLOCK : share;
}

/* Reduce the ranks' data that begins at an offset in rank order; `out` may be this rank's. Return the rank whose memory
 * cannot be read, or -1. */
static int fold_far(const far_t *far, uint64_t offset, char *out, uint64_t nbytes) {
    const ring_t *ring = far->ring;
    const void *pieces[MOST];
    uint64_t block = block_bytes(ring);
    for (uint64_t at = 0; at < nbytes; at += block) {
        uint64_t length = nbytes - at < block ? nbytes - at : block;
        for (uint32_t step = 0; step < ring->size; step++) {
            uint32_t rank = next_rank(ring, step);
            char *source = start_of(far, rank) + offset + at, *room = far->scratch + rank * block;
            /* this rank's piece stays in its place, unless the result of earlier pieces is written over it */
            bool stays = rank == ring->rank && (rank < 2 || source != out + at);
            if (!stays && !fetch(far, rank, source, room, length)) return (int)rank;
            pieces[rank] = stays ? source : room;
        }
        reduce(far->move->reduction, out + at, pieces, ring->size, length);
    }
    return -1;
}

/* Copy the data that this rank receives; return the rank whose memory cannot be read, or -1. */
static int copy_far(const far_t *far, char *out, char *const *outs) {
    const move_t *move = far->move;
    for (uint32_t step = 0; step < far->ring->size; step++) {
        uint32_t rank = next_rank(far->ring, step);
        if (is_of_root(move->what) && rank != move->root) continue;
        char *target = outs != NULL ? outs[rank] : out + (is_of_root(move->what) ? 0 : rank * move->part);
        if (!fetch(far, rank, start_of(far, rank), target, move->part)) return (int)rank;
    }
    return -1;
}

/* Return the offset in bytes of the share that a rank computes of a result that all ranks hold. */
static uint64_t share_start(const far_t *far, uint32_t rank) {
    uint64_t width = far->move->what == REDUCED ? numbers_of(far->move->reduction)->nbytes : 1;
    return far->move->part / width * rank / far->ring->size * width;
}

/* Make this rank's share of the result; the root of a broadcast has it. Return what `fold_far` returns. */
static int make_share(const far_t *far, char *out) {
    uint32_t own = far->ring->rank, root = far->move->root;
    uint64_t start = share_start(far, own), nbytes = share_start(far, own + 1) - start;
    if (far->move->what == REDUCED) return fold_far(far, start, out + start, nbytes);
    return own == root || fetch(far, root, start_of(far, root) + start, out + start, nbytes) ? -1 : (int)root;
}

/* Read the other ranks' shares; the root of a broadcast has them. */
static int read_shares(const far_t *far, char *out) {
    if (far->move->what == FROM_ROOT && far->ring->rank == far->move->root) return copy_far(far, out, NULL);
    for (uint32_t step = 0; step + 1 < far->ring->size; step++) {
        uint32_t rank = next_rank(far->ring, step);
        uint64_t start = share_start(far, rank), end = share_start(far, rank + 1);
        if (start == end) continue;
        if (!fetch(far, rank, output_of(far, rank) + start, out + start, end - start)) return (int)rank;
    }
    return -1;
}

/* Return whether some rank has posted addresses, or a length, instead of data. */
static bool is_far(const ring_t *ring, uint32_t number) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (slot_of(ring, rank, number)->kind >= FAR) return true;
    return false;
}

#endif
