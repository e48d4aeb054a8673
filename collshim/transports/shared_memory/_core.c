/* The compiled form of `ring.Ring`, with the same methods; see there for what they do, and slots.h for the protocol. */
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030A0000
#endif
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>
#include <sys/uio.h>

#include "slots.h"

#define OWN_LOOKS 32 /* looks of a wait before it gives up the interpreter's lock, about a microsecond */

#define PIECES (1 << 19)      /* bytes of all ranks' larger data that are summed at a time */
#define LEAST_BLOCK (1 << 14) /* of which each rank has at least so many */
#define MOST_BLOCK (1 << 17)  /* and at most so many */

enum { DONE, WAITING, ARRIVED, LENT, UNREADABLE };
enum { NOTHING, REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_ROOT, PART_OF_EACH };
enum { INLINE, ABSENT, FAR };

typedef struct {
    PyObject ob_base;
    ring_t ring;
    PyObject *owner; /* keeps the mapping alive */
    uint32_t next;   /* the number of the next post */
    pid_t *processes; /* the ranks' processes, whose memory this one may read; NULL if it may not */
    char *scratch;    /* a block for each rank, from the first call of larger data on */
} Ring;

static Ring *ring_of(PyObject *self) { return (Ring *)self; }

static bool has_arguments(Py_ssize_t given, Py_ssize_t expected) {
    if (given != expected) PyErr_Format(PyExc_TypeError, "got %zd arguments, should be %zd", given, expected);
    return given == expected;
}

static uint64_t integer(PyObject *value) { return PyLong_AsUnsignedLongLong(value); }

static void *address(PyObject *value) { return PyLong_AsVoidPtr(value); }

static PyObject *ring_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"address", "nbytes", "size", "rank", "slots", "header_bytes", "data_bytes", "spins", "owner", NULL};
    unsigned long long base, nbytes, header_bytes, data_bytes;
    unsigned int size, rank, slots, spins;
    PyObject *owner;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KKIIIKKIO", names, &base, &nbytes, &size, &rank, &slots,
                                     &header_bytes, &data_bytes, &spins, &owner))
        return NULL;
    ring_t ring = {(char *)(uintptr_t)base, size, rank, slots, header_bytes, data_bytes, spins};
    if (size == 0 || rank >= size || slots == 0 || segment_bytes(&ring) > nbytes) {
        PyErr_SetString(PyExc_ValueError, "the segment is too small for the ring");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Ring *self = (Ring *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->ring = ring;
    self->next = load(counter_of(&ring, rank, POSTED));
    Py_INCREF(owner);
    self->owner = owner;
    return (PyObject *)self;
}

static void ring_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_ring = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(ring_of(self)->owner);
    PyMem_Free(ring_of(self)->processes);
    PyMem_Free(ring_of(self)->scratch);
    free_ring(self);
    Py_DECREF(type);
}

static PyObject *ring_post(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const ring_t *ring = &ring_of(self)->ring;
    char *header;
    Py_ssize_t header_bytes;
    if (!has_arguments(count, 5)) return NULL;
    if (PyBytes_AsStringAndSize(given[0], &header, &header_bytes) < 0) return NULL;
    void *data = address(given[1]);
    uint64_t data_bytes = integer(given[2]);
    uint32_t kind = (uint32_t)integer(given[3]), number = ring_of(self)->next;
    bool is_alone = given[4] == Py_True;
    if (PyErr_Occurred()) return NULL;
    if ((uint64_t)header_bytes > ring->header_bytes || data_bytes > ring->data_bytes) {
        PyErr_SetString(PyExc_ValueError, "the header or the data is larger than its room in a slot");
        return NULL;
    }
    if (is_alone && load(counter_of(ring, ring->rank, RELEASED)) != number) Py_RETURN_NONE;
    if (!has_room(ring, number)) Py_RETURN_NONE;
    ring_of(self)->next = number + 1;
    fill(ring, number, header, (uint64_t)header_bytes, kind, data, data_bytes);
    return PyLong_FromUnsignedLong(number);
}

/* Whether a rank whose counter has not passed posts no more. */
static bool is_left(const ring_t *ring, int which, uint32_t number) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (state_of(ring, rank) != ALIVE && !is_before(number, load(counter_of(ring, rank, which)))) return true;
    return false;
}

/* Wait until the counters have passed or a rank has ended, at most some seconds; -1 with an exception set. */
static int passes(const ring_t *ring, int which, uint32_t number, double seconds) {
    if (pass_soon(ring, which, number, OWN_LOOKS, false)) return 1;
    if (seconds <= 0) return 0;
    bool passed;
    double limit = seconds_now() + seconds;
    Py_BEGIN_ALLOW_THREADS;
    passed = pass_soon(ring, which, number, ring->spins, true);
    Py_END_ALLOW_THREADS;
    while (!passed && seconds_now() < limit && !has_ended(ring) && !is_left(ring, which, number)) {
        Py_BEGIN_ALLOW_THREADS;
        passed = pass_asleep(ring, which, number, limit);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals() < 0) return -1;
    }
    return passed || have_passed(ring, which, number);
}

static PyObject *ring_wait(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    if (!has_arguments(count, 3)) return NULL;
    int which = (int)integer(given[0]);
    uint32_t number = (uint32_t)integer(given[1]);
    double seconds = PyFloat_AsDouble(given[2]);
    if (PyErr_Occurred()) return NULL;
    int passed = which < 0 || which >= COUNTERS ? 0 : passes(&ring_of(self)->ring, which, number, seconds);
    return passed < 0 ? NULL : PyBool_FromLong(passed);
}

/* Whether the headers of all ranks equal those of a tuple; -1 with an exception set. */
static int are_alike(const ring_t *ring, uint32_t number, PyObject *headers) {
    if (!PyTuple_Check(headers) || PyTuple_Size(headers) != (Py_ssize_t)ring->size) return 0;
    for (uint32_t rank = 0; rank < ring->size; rank++) {
        slot_t *slot = slot_of(ring, rank, number);
        char *header;
        Py_ssize_t nbytes;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(headers, rank), &header, &nbytes) < 0) return -1;
        if (slot->header_bytes != (uint64_t)nbytes || memcmp(header_of(slot), header, (size_t)nbytes)) return 0;
    }
    return 1;
}

#define FOLD(type, wide)                                                                      \
    {                                                                                         \
        type *total = out;                                                                    \
        const type *first = pieces[0], *second = pieces[1];                                   \
        for (uint64_t at = 0; at < nbytes / sizeof(type); at++)                               \
            total[at] = (type)((wide)first[at] + (wide)second[at]);                           \
        for (uint32_t rank = 2; rank < size; rank++) {                                        \
            const type *piece = pieces[rank];                                                 \
            for (uint64_t at = 0; at < nbytes / sizeof(type); at++)                           \
                total[at] = (type)((wide)total[at] + (wide)piece[at]);                        \
        }                                                                                     \
    }

/* Sum the ranks' pieces in rank order. Integers wrap around, which C defines for unsigned ones. */
static bool sum(void *out, const void *const *pieces, uint32_t size, uint64_t nbytes, char dtype) {
    switch (dtype) {
    case 'f': FOLD(float, float) return true;
    case 'd': FOLD(double, double) return true;
    case 'i': FOLD(uint32_t, uint32_t) return true;
    case 'l': FOLD(uint64_t, uint64_t) return true;
    default: return false;
    }
}

#define MOST 64 /* ranks whose pieces are summed here */

typedef struct {
    int what;
    char dtype;
    uint32_t root;
    uint64_t part; /* bytes of a rank's tensor, or of each of its parts */
} move_t;

/* Whether every slot that the movement reads holds as much data as it needs. */
static bool has_data(const ring_t *ring, uint32_t number, const move_t *move) {
    bool of_root = move->what == FROM_ROOT || move->what == PART_OF_ROOT;
    bool parted = move->what == REDUCED_PART || move->what == PART_OF_ROOT || move->what == PART_OF_EACH;
    for (uint32_t rank = 0; rank < ring->size; rank++) {
        const slot_t *slot = slot_of(ring, rank, number);
        if (of_root && rank != move->root) continue;
        if (slot->kind != INLINE || slot->data_bytes != move->part * (parted ? ring->size : 1)) return false;
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
    if (move->what == FROM_ROOT || move->what == PART_OF_ROOT) {
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
    return !reduces || sum(out, pieces, ring->size, move->part, move->dtype);
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
 * parts, and last that of their output if all get the sum. See far.py, which does the same in Python. */
typedef struct {
    const ring_t *ring;
    const pid_t *processes;
    char *scratch;
    uint32_t number;
    const move_t *move;
} far_t;

static bool is_parted(int what) { return what == REDUCED_PART || what == PART_OF_ROOT || what == PART_OF_EACH; }

static bool is_of_root(int what) { return what == FROM_ROOT || what == PART_OF_ROOT; }

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

/* Where a rank's tensor begins, or its part for this rank. */
static char *start_of(const far_t *far, uint32_t rank) {
    uint64_t count, own = far->ring->rank;
    char *const *addresses = addresses_of(far, rank, &count);
    if (!is_parted(far->move->what)) return addresses[0];
    return count == 1 ? addresses[0] + own * far->move->part : addresses[own];
}

/* Whether every rank that gives data has posted addresses of it, and no rank has given up the call. */
static bool has_addresses(const far_t *far, bool listed) {
    const move_t *move = far->move;
    if (far->processes == NULL || (listed && move->what != ALL_PARTS && move->what != PART_OF_EACH)) return false;
    for (uint32_t rank = 0; rank < far->ring->size; rank++) {
        const slot_t *slot = slot_of(far->ring, rank, far->number);
        if (is_of_root(move->what) && rank != move->root) continue;
        if (slot->kind != FAR && move->what != NOTHING) return false;
    }
    if (move->what != REDUCED && move->what != REDUCED_PART) return true;
    return move->dtype != 0 && far->ring->size >= 2 && far->ring->size <= MOST;
}

/* Copy from a rank's memory; return whether that was possible. */
static bool fetch(const far_t *far, uint32_t rank, char *source, char *target, uint64_t nbytes) {
    if (rank != far->ring->rank) return read_from(far->processes[rank], source, target, nbytes);
    if (source != target) memmove(target, source, nbytes);
    return true;
}

/* The ranks in the order in which this one reads them: those after it first, itself last. If all ranks read one process
 * at a time, they wait for each other in the kernel, at its page tables. */
static uint32_t next_rank(const ring_t *ring, uint32_t step) { return (ring->rank + 1 + step) % ring->size; }

/* The bytes of each rank's data that are summed at a time, so that all pieces together stay in a core's cache. */
static uint64_t block_bytes(const ring_t *ring) {
    uint64_t share = PIECES / ring->size / PAGE * PAGE;
    return share < LEAST_BLOCK ? LEAST_BLOCK : share > MOST_BLOCK ? MOST_BLOCK : share;
}

/* Sum the ranks' data that begins at an offset in rank order; `out` may be this rank's. Return the rank whose memory
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
            /* the own piece stays in its place, unless the sum of earlier ones is written over it */
            bool stays = rank == ring->rank && (rank < 2 || source != out + at);
            if (!stays && !fetch(far, rank, source, room, length)) return (int)rank;
            pieces[rank] = stays ? source : room;
        }
        sum(out + at, pieces, ring->size, length, far->move->dtype);
    }
    return -1;
}

/* Copy what this rank gets; the rest as `fold_far`. */
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

/* The offset in bytes of a rank's share of a sum that all get. */
static uint64_t share_start(const far_t *far, uint32_t rank) {
    uint64_t width = far->move->dtype == 'f' || far->move->dtype == 'i' ? 4 : 8;
    return far->move->part / width * rank / far->ring->size * width;
}

static int read_shares(const far_t *far, char *out) {
    for (uint32_t step = 0; step + 1 < far->ring->size; step++) {
        uint32_t rank = next_rank(far->ring, step);
        uint64_t start = share_start(far, rank), end = share_start(far, rank + 1);
        if (start == end) continue;
        if (!fetch(far, rank, output_of(far, rank) + start, out + start, end - start)) return (int)rank;
    }
    return -1;
}

/* Take the steps of a call, and release it; return what `finish` returns, or -1 with an exception set. A rank that has
 * taken the first of two steps, as its STAGE shows, does not take it again. */
static int move_far(const far_t *far, char *out, char *const *outs, double limit) {
    const ring_t *ring = far->ring;
    int what = far->move->what, lost = -1;
    bool reduces = what == REDUCED || what == REDUCED_PART, is_read;
    bool in_shares = what == REDUCED && output_of(far, ring->rank) != NULL;
    if (in_shares && !is_before(far->number, load(counter_of(ring, ring->rank, STAGE)))) {
        uint64_t start = share_start(far, ring->rank), end = share_start(far, ring->rank + 1);
        Py_BEGIN_ALLOW_THREADS;
        lost = fold_far(far, start, out + start, end - start);
        if (lost < 0) advance(counter_of(ring, ring->rank, STAGE), far->number + 1);
        Py_END_ALLOW_THREADS;
    }
    if (lost >= 0) return UNREADABLE + lost;
    if (in_shares) {
        int passed = passes(ring, STAGE, far->number, limit - seconds_now());
        if (passed <= 0 || has_ended(ring)) return passed < 0 ? -1 : WAITING;
    }
    Py_BEGIN_ALLOW_THREADS;
    if (in_shares)
        lost = read_shares(far, out);
    else if (what != NOTHING)
        lost = reduces ? fold_far(far, 0, out, far->move->part) : copy_far(far, out, outs);
    if (lost < 0) release(ring, far->number);
    is_read = lost < 0 && pass_soon(ring, RELEASED, far->number, ring->spins, true);
    /* A signal ends one of these sleeps. It must not end the call, which is over for this rank. */
    for (uint32_t rank = 0; lost < 0 && !is_read && rank < ring->size; rank++)
        is_read = pass_asleep(ring, RELEASED, far->number, limit);
    Py_END_ALLOW_THREADS;
    return lost >= 0 ? UNREADABLE + lost : is_read && !has_ended(ring) ? DONE : LENT;
}

static PyObject *finish_far(PyObject *self, uint32_t number, const move_t *move, char *out, char *const *outs, double limit) {
    Ring *own = ring_of(self);
    if (own->scratch == NULL && own->processes != NULL) own->scratch = PyMem_Malloc(own->ring.size * block_bytes(&own->ring));
    far_t far = {&own->ring, own->processes, own->scratch, number, move};
    if (own->scratch == NULL || !has_addresses(&far, outs != NULL)) return PyLong_FromLong(ARRIVED);
    if (move->what != NOTHING && out == NULL && outs == NULL) return PyLong_FromLong(ARRIVED);
    int found = move_far(&far, out, outs, limit);
    return found < 0 ? NULL : PyLong_FromLong(found);
}

/* Whether some rank has posted addresses. */
static bool is_far(const ring_t *ring, uint32_t number) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (slot_of(ring, rank, number)->kind == FAR) return true;
    return false;
}

static PyObject *ring_finish(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const ring_t *ring = &ring_of(self)->ring;
    if (!has_arguments(count, 8)) return NULL;
    uint32_t number = (uint32_t)integer(given[0]);
    PyObject *headers = given[1];
    move_t move = {(int)integer(given[2]), (char)integer(given[3]), (uint32_t)integer(given[4]), integer(given[5])};
    char *out = NULL, *outs = NULL;
    Py_ssize_t listed = 0;
    if (!PyBytes_Check(given[6]))
        out = address(given[6]);
    else if (PyBytes_AsStringAndSize(given[6], &outs, &listed) == 0 && listed != (Py_ssize_t)(ring->size * sizeof(char *)))
        PyErr_SetString(PyExc_ValueError, "there is not one address for each rank");
    double seconds = PyFloat_AsDouble(given[7]), limit = seconds_now() + seconds;
    if (PyErr_Occurred()) return NULL;
    if (move.root >= ring->size) move.root = 0;
    if (is_before(number, load(counter_of(ring, ring->rank, RELEASED)))) return PyLong_FromLong(LENT);
    int passed = passes(ring, POSTED, number, seconds);
    if (passed <= 0) return passed < 0 ? NULL : PyLong_FromLong(WAITING);
    int alike = has_ended(ring) ? 0 : are_alike(ring, number, headers);
    if (alike < 0) return NULL;
    if (!alike) return PyLong_FromLong(ARRIVED);
    if (is_far(ring, number)) return finish_far(self, number, &move, out, (char *const *)(void *)outs, limit);
    if (!deliver(ring, number, &move, out, (char *const *)(void *)outs)) return PyLong_FromLong(ARRIVED);
    release(ring, number);
    return PyLong_FromLong(DONE);
}

static PyObject *ring_advance(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const ring_t *ring = &ring_of(self)->ring;
    if (!has_arguments(count, 2)) return NULL;
    int which = (int)integer(given[0]);
    uint32_t value = (uint32_t)integer(given[1]);
    if (PyErr_Occurred()) return NULL;
    if (which == RELEASED) release(ring, value - 1);
    if (which == STAGE) advance(counter_of(ring, ring->rank, STAGE), value);
    Py_RETURN_NONE;
}

/* Let `finish` read the memory of the ranks' processes, given as numbers of 64 bits. */
static PyObject *ring_read_far(PyObject *self, PyObject *given) {
    Ring *own = ring_of(self);
    char *numbers;
    Py_ssize_t nbytes;
    if (PyBytes_AsStringAndSize(given, &numbers, &nbytes) < 0) return NULL;
    if (nbytes != (Py_ssize_t)(own->ring.size * sizeof(int64_t)))
        return PyErr_Format(PyExc_ValueError, "there is not one process for each rank");
    if (own->processes == NULL) own->processes = PyMem_Malloc(own->ring.size * sizeof(pid_t));
    if (own->processes == NULL) return PyErr_NoMemory();
    for (uint32_t rank = 0; rank < own->ring.size; rank++) own->processes[rank] = (pid_t)((int64_t *)(void *)numbers)[rank];
    Py_RETURN_NONE;
}

static PyObject *ring_counter(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const ring_t *ring = &ring_of(self)->ring;
    if (!has_arguments(count, 2)) return NULL;
    uint64_t which = integer(given[0]), rank = integer(given[1]);
    if (PyErr_Occurred()) return NULL;
    if (which >= COUNTERS || rank >= ring->size) return PyErr_Format(PyExc_IndexError, "there is no such counter");
    return PyLong_FromUnsignedLong(load(counter_of(ring, (uint32_t)rank, (int)which)));
}

static PyObject *ring_slot(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const ring_t *ring = &ring_of(self)->ring;
    if (!has_arguments(count, 2)) return NULL;
    uint32_t number = (uint32_t)integer(given[0]);
    uint64_t rank = integer(given[1]);
    if (PyErr_Occurred()) return NULL;
    if (rank >= ring->size) return PyErr_Format(PyExc_IndexError, "there is no such rank");
    slot_t *slot = slot_of(ring, (uint32_t)rank, number);
    Py_ssize_t nbytes = slot->header_bytes <= ring->header_bytes ? (Py_ssize_t)slot->header_bytes : 0;
    uint64_t offset = (uint64_t)(data_of(ring, slot) - ring->base);
    return Py_BuildValue("(y#IKKd)", header_of(slot), nbytes, slot->kind, (unsigned long long)offset,
                         (unsigned long long)slot->data_bytes, slot->posted);
}

static PyObject *leave(const ring_t *ring, uint32_t state) {
    atomic_store_explicit(&control_of(ring, ring->rank)->state, state, memory_order_seq_cst);
    for (uint32_t rank = 0; rank < ring->size; rank++)
        for (int which = 0; which < COUNTERS; which++)
            syscall(SYS_futex, &counter_of(ring, rank, which)->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    Py_RETURN_NONE;
}

static PyObject *ring_end(PyObject *self, PyObject *none) { return leave(&ring_of(self)->ring, ENDED); }

static PyObject *ring_close(PyObject *self, PyObject *none) { return leave(&ring_of(self)->ring, CLOSED); }

static PyObject *ring_state(PyObject *self, PyObject *rank) {
    uint64_t index = integer(rank);
    if (PyErr_Occurred()) return NULL;
    if (index >= ring_of(self)->ring.size) return PyErr_Format(PyExc_IndexError, "there is no such rank");
    return PyLong_FromUnsignedLong(state_of(&ring_of(self)->ring, (uint32_t)index));
}

static PyObject *ring_has_ended(PyObject *self, PyObject *none) { return PyBool_FromLong(has_ended(&ring_of(self)->ring)); }

/* Copy from the memory of another process; return whether all bytes could be read. */
static PyObject *read_far(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    if (!has_arguments(count, 4)) return NULL;
    pid_t process = (pid_t)PyLong_AsLong(given[0]);
    char *source = address(given[1]), *target = address(given[2]);
    uint64_t nbytes = integer(given[3]);
    bool is_read;
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    is_read = read_from(process, source, target, nbytes);
    Py_END_ALLOW_THREADS;
    return PyBool_FromLong(is_read);
}

#define FAST(name, function) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}

static PyMethodDef ring_methods[] = {
    FAST("post", ring_post),
    FAST("wait", ring_wait),
    FAST("finish", ring_finish),
    FAST("advance", ring_advance),
    {"read_far", ring_read_far, METH_O, NULL},
    FAST("counter", ring_counter),
    FAST("slot", ring_slot),
    {"end", ring_end, METH_NOARGS, NULL},
    {"close", ring_close, METH_NOARGS, NULL},
    {"state", ring_state, METH_O, NULL},
    {"has_ended", ring_has_ended, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot ring_slots[] = {
    {Py_tp_new, ring_new}, {Py_tp_dealloc, ring_dealloc}, {Py_tp_methods, ring_methods}, {0, NULL}};
static PyType_Spec ring_spec = {"collshim.transports.shared_memory._core.Ring", sizeof(Ring), 0, Py_TPFLAGS_DEFAULT, ring_slots};

static PyMethodDef functions[] = {FAST("read_far", read_far), {NULL, NULL, 0, NULL}};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&ring_spec);
    return type == NULL ? -1 : PyModule_AddObject(module, "Ring", type);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_core", NULL, 0, functions, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
