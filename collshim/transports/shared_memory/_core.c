/* The compiled form of `ring.Ring` and `pipes.Pipes`, which describe the methods. slots.h and pipes.h have the
 * protocols, and movement.h computes the results. */
#include <pyconfig.h> /* defines Py_GIL_DISABLED in a free-threaded build, which has no limited API before 3.15 */
#ifndef Py_GIL_DISABLED
#define Py_LIMITED_API 0x030A0000
#endif
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <Python.h>

#include "movement.h"
#include "pipes.h"

#define OWN_LOOKS 32 /* how often a wait looks before it releases the interpreter's lock: for about a microsecond */
#define POST_LOOKS 256 /* how often a post looks: for about as long as it takes to let Python go on with the call */

enum { DONE, WAITING, ARRIVED, LENT, UNREADABLE };
enum { PUSHED, ASLEEP, FULL };

typedef struct {
    PyObject ob_base;
    ring_t ring;
    PyObject *owner; /* keeps the mapping alive */
    uint32_t next;   /* the number of the next post */
    pid_t *processes; /* the ranks' processes, if this process may read their memory; NULL if it may not */
    char *scratch;    /* a block for each rank; NULL until the first call with larger data */
} Ring;

static PyObject *ring_type, *pipes_type, *poster_type, *messenger_type, *repeat_type;

static Ring *ring_of(PyObject *self) { return (Ring *)self; }

static bool has_arguments(Py_ssize_t given, Py_ssize_t expected) {
    if (given != expected) PyErr_Format(PyExc_TypeError, "got %zd arguments, should be %zd", given, expected);
    return given == expected;
}

static uint64_t integer(PyObject *value) { return PyLong_AsUnsignedLongLong(value); }

static void *address(PyObject *value) { return PyLong_AsVoidPtr(value); }

/* Read an address, or from bytes one address for each rank; set an exception if the number is wrong. */
static void read_places(const ring_t *ring, PyObject *given, char **one, char *const **each) {
    char *listed;
    Py_ssize_t nbytes;
    *one = NULL, *each = NULL;
    if (!PyBytes_Check(given))
        *one = address(given);
    else if (PyBytes_AsStringAndSize(given, &listed, &nbytes) == 0 && nbytes == (Py_ssize_t)(ring->size * sizeof(char *)))
        *each = (char *const *)(void *)listed;
    else
        PyErr_SetString(PyExc_ValueError, "there is not one address for each rank");
}

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

/* The content of a post: a call's header, its description for later error texts, and its data, as in `read_places`. */
typedef struct {
    PyObject *header, *last;
    uint32_t kind;
    char *data, *const *parts;
    uint64_t nbytes;
} given_t;

/* Post a call, with `is_alone` only if this rank's earlier calls are over. Return 1 if the call was posted, 0 if it was
 * not, or -1 with an exception set. */
static int post(Ring *self, const given_t *given, bool is_alone, uint32_t *number) {
    const ring_t *ring = &self->ring;
    char *header;
    Py_ssize_t header_bytes;
    uint64_t part = given->nbytes / ring->size;
    if (PyBytes_AsStringAndSize(given->header, &header, &header_bytes) < 0) return -1;
    if ((uint64_t)header_bytes > ring->header_bytes || given->nbytes > ring->data_bytes) {
        PyErr_SetString(PyExc_ValueError, "the header or the data is larger than its room in a slot");
        return -1;
    }
    *number = self->next;
    if (is_alone && load(counter_of(ring, ring->rank, RELEASED)) != *number) return 0;
    if (!has_room(ring, *number)) return 0;
    self->next = *number + 1;
    for (uint32_t rank = 0; given->parts != NULL && part > 0 && rank < ring->size; rank++)
        memcpy(data_of(ring, slot_of(ring, ring->rank, *number)) + rank * part, given->parts[rank], part);
    fill(ring, *number, header, (uint64_t)header_bytes, given->kind, given->data, given->nbytes);
    return 1;
}

static PyObject *ring_post(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (!has_arguments(count, 5)) return NULL;
    given_t given = {args[0], NULL, (uint32_t)integer(args[3]), NULL, NULL, integer(args[2])};
    uint32_t number;
    read_places(&ring_of(self)->ring, args[1], &given.data, &given.parts);
    if (PyErr_Occurred()) return NULL;
    int found = post(ring_of(self), &given, args[4] == Py_True, &number);
    if (found == 0) Py_RETURN_NONE;
    return found < 0 ? NULL : PyLong_FromUnsignedLong(number);
}

/* Return whether a rank whose counter has not passed posts no more calls. */
static bool is_left(const ring_t *ring, int which, uint32_t number) {
    for (uint32_t rank = 0; rank < ring->size; rank++)
        if (state_of(ring, rank) != ALIVE && !is_before(number, load(counter_of(ring, rank, which)))) return true;
    return false;
}

/* Wait until the counters have passed or a rank has ended, at most some seconds, and with `polls` poll before the thread
 * sleeps; return -1 with an exception set. */
static int passes(const ring_t *ring, int which, uint32_t number, double seconds, bool polls) {
    if (pass_soon(ring, which, number, OWN_LOOKS, false)) return 1;
    if (seconds <= 0) return 0;
    bool passed;
    double limit = seconds_now() + seconds;
    Py_BEGIN_ALLOW_THREADS;
    passed = polls && pass_soon(ring, which, number, ring->spins, true);
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
    if (!has_arguments(count, 4)) return NULL;
    int which = (int)integer(given[0]);
    uint32_t number = (uint32_t)integer(given[1]);
    double seconds = PyFloat_AsDouble(given[2]);
    if (PyErr_Occurred()) return NULL;
    bool polls = given[3] == Py_True, is_known = which >= 0 && which < COUNTERS;
    int passed = is_known ? passes(&ring_of(self)->ring, which, number, seconds, polls) : 0;
    return passed < 0 ? NULL : PyBool_FromLong(passed);
}

/* Return whether the headers of all ranks equal those of a tuple, or -1 with an exception set. */
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

/* Carry out the steps of a call, and release it; return what `finish` returns, or -1 with an exception set. A rank that
 * has done the first of two steps, as its STAGE shows, does not repeat it. */
static int move_far(const far_t *far, char *out, char *const *outs, double limit) {
    const ring_t *ring = far->ring;
    int what = far->move->what, lost = -1;
    bool reduces = what == REDUCED || what == REDUCED_PART, is_read;
    bool in_shares = is_in_shares(far);
    if (in_shares && !is_before(far->number, load(counter_of(ring, ring->rank, STAGE)))) {
        Py_BEGIN_ALLOW_THREADS;
        lost = make_share(far, out);
        if (lost < 0) advance(counter_of(ring, ring->rank, STAGE), far->number + 1);
        Py_END_ALLOW_THREADS;
    }
    if (lost >= 0) return UNREADABLE + lost;
    if (in_shares) {
        int passed = passes(ring, STAGE, far->number, limit - seconds_now(), true);
        if (passed <= 0 || has_ended(ring)) return passed < 0 ? -1 : WAITING;
    }
    Py_BEGIN_ALLOW_THREADS;
    if (in_shares)
        lost = read_shares(far, out);
    else if (what != NOTHING)
        lost = reduces ? fold_far(far, 0, out, far->move->part) : copy_far(far, out, outs);
    if (lost < 0) release(ring, far->number);
    is_read = lost < 0 && pass_soon(ring, RELEASED, far->number, ring->spins, true);
    /* A signal may end one of these sleeps. It must not end the call, which is over for this rank. */
    for (uint32_t rank = 0; lost < 0 && !is_read && rank < ring->size; rank++)
        is_read = pass_asleep(ring, RELEASED, far->number, limit);
    Py_END_ALLOW_THREADS;
    return lost >= 0 ? UNREADABLE + lost : is_read && !has_ended(ring) ? DONE : LENT;
}

static int finish_far(Ring *self, uint32_t number, const move_t *move, char *out, char *const *outs, double limit) {
    if (self->scratch == NULL && self->processes != NULL) self->scratch = PyMem_Malloc(self->ring.size * block_bytes(&self->ring));
    far_t far = {&self->ring, self->processes, self->scratch, number, move};
    if (self->scratch == NULL || !has_addresses(&far, outs != NULL)) return ARRIVED;
    if (move->what != NOTHING && out == NULL && outs == NULL) return ARRIVED;
    return move_far(&far, out, outs, limit);
}

/* Wait for a call at most some seconds, compare the ranks' headers with these, and write the result; return an outcome
 * of `finish`, or -1 with an exception set. */
static int finish(Ring *self, uint32_t number, PyObject *headers, const move_t *given, char *out, char *const *outs, double seconds) {
    const ring_t *ring = &self->ring;
    move_t move = *given;
    double limit = seconds_now() + seconds;
    if (move.root >= ring->size) move.root = 0;
    if (is_before(number, load(counter_of(ring, ring->rank, RELEASED)))) return LENT;
    int passed = passes(ring, POSTED, number, seconds, true);
    if (passed <= 0) return passed < 0 ? -1 : WAITING;
    int alike = has_ended(ring) ? 0 : are_alike(ring, number, headers);
    if (alike <= 0) return alike < 0 ? -1 : ARRIVED;
    if (is_far(ring, number)) return finish_far(self, number, &move, out, outs, limit);
    if (!deliver(ring, number, &move, out, outs)) return ARRIVED;
    release(ring, number);
    return DONE;
}

static PyObject *ring_finish(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (!has_arguments(count, 8)) return NULL;
    uint32_t number = (uint32_t)integer(args[0]);
    move_t move = {(int)integer(args[2]), (uint32_t)integer(args[3]), (uint32_t)integer(args[4]), integer(args[5])};
    char *out, *const *outs;
    read_places(&ring_of(self)->ring, args[6], &out, &outs);
    double seconds = PyFloat_AsDouble(args[7]);
    if (PyErr_Occurred()) return NULL;
    int found = finish(ring_of(self), number, args[1], &move, out, outs, seconds);
    return found < 0 ? NULL : PyLong_FromLong(found);
}

static PyObject *ring_advance(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const ring_t *ring = &ring_of(self)->ring;
    if (!has_arguments(count, 2)) return NULL;
    int which = (int)integer(given[0]);
    uint32_t value = (uint32_t)integer(given[1]);
    if (PyErr_Occurred()) return NULL;
    if (which == RELEASED) release(ring, value - 1);
    if (which == STAGE || which == BLOCK) advance(counter_of(ring, ring->rank, which), value);
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
    return Py_BuildValue("(NIKKd)", PyBytes_FromStringAndSize(header_of(slot), nbytes), slot->kind,
                         (unsigned long long)offset, (unsigned long long)slot->data_bytes, slot->posted);
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

typedef struct {
    PyObject ob_base;
    pipes_t pipes;
    PyObject *owner; /* keeps the mapping alive */
} Pipes;

static const pipes_t *pipes_of(PyObject *self) { return &((Pipes *)self)->pipes; }

static PyObject *pipes_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"address", "nbytes", "size", "rank", "room", "spins", "owner", NULL};
    unsigned long long base, nbytes, room;
    unsigned int size, rank, spins;
    PyObject *owner;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KKIIKIO", names, &base, &nbytes, &size, &rank, &room, &spins,
                                     &owner))
        return NULL;
    pipes_t pipes = {(char *)(uintptr_t)base, size, rank, room, spins};
    if (rank >= size || room == 0 || room % UNIT || pipes_bytes(&pipes) > nbytes) {
        PyErr_SetString(PyExc_ValueError, "the segment is too small for the pipes");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Pipes *self = (Pipes *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->pipes = pipes;
    Py_INCREF(owner);
    self->owner = owner;
    return (PyObject *)self;
}

static void pipes_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_pipes = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(((Pipes *)self)->owner);
    free_pipes(self);
    Py_DECREF(type);
}

/* Return whether there is such a rank; set an exception if there is not. */
static bool has_rank(const pipes_t *pipes, uint64_t rank) {
    if (!PyErr_Occurred() && rank >= pipes->size) PyErr_SetString(PyExc_IndexError, "there is no such rank");
    return !PyErr_Occurred();
}

static PyObject *pipes_push(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const pipes_t *pipes = pipes_of(self);
    char *header;
    Py_ssize_t header_bytes;
    if (!has_arguments(count, 7)) return NULL;
    uint64_t target = integer(given[0]), kind = integer(given[1]), number = integer(given[3]);
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(given[4], &header, &header_bytes) < 0) return NULL;
    void *data = address(given[5]);
    uint64_t data_bytes = integer(given[6]);
    if (!has_rank(pipes, target)) return NULL;
    pipe_t *pipe = pipe_of(pipes, pipes->rank, (uint32_t)target);
    uint64_t turn = given[2] == Py_True ? ++pipe->sent : 0;
    record_t record = {(uint32_t)kind, (uint32_t)header_bytes, turn, number, data_bytes, 0};
    if (data_bytes > pipes->room || !put(pipes, pipe, record, header, data)) return PyLong_FromUnsignedLongLong(turn + FULL);
    return PyLong_FromLong(must_wake(pipes, (uint32_t)target) ? ASLEEP : PUSHED);
}

static PyObject *pipes_head(PyObject *self, PyObject *rank) {
    const pipes_t *pipes = pipes_of(self);
    uint64_t source = integer(rank);
    if (!has_rank(pipes, source)) return NULL;
    record_t *record = first(pipes, (uint32_t)source);
    if (record == NULL) Py_RETURN_NONE;
    return Py_BuildValue("(IKKNKK)", record->kind, (unsigned long long)record->turn, (unsigned long long)record->number,
                         PyBytes_FromStringAndSize(header_in(record), (Py_ssize_t)record->header_bytes),
                         (unsigned long long)(data_in(record) - pipes->base), (unsigned long long)record->data_bytes);
}

static PyObject *pipes_drop(PyObject *self, PyObject *rank) {
    const pipes_t *pipes = pipes_of(self);
    uint64_t source = integer(rank);
    if (!has_rank(pipes, source)) return NULL;
    record_t *record = first(pipes, (uint32_t)source);
    if (record != NULL) drop(pipes, (uint32_t)source, record);
    Py_RETURN_NONE;
}

static bool finds(const pipes_t *pipes, uint32_t source) {
    bool found = finds_record(pipes, source, OWN_LOOKS, false);
    if (found) return true;
    Py_BEGIN_ALLOW_THREADS;
    found = finds_record(pipes, source, pipes->spins, true);
    Py_END_ALLOW_THREADS;
    return found;
}

static PyObject *pipes_look(PyObject *self, PyObject *waits) {
    const pipes_t *pipes = pipes_of(self);
    return PyBool_FromLong(waits == Py_True ? finds(pipes, pipes->size) : has_record(pipes, pipes->size));
}

static PyObject *pipes_rest(PyObject *self, PyObject *asleep) {
    set_asleep(pipes_of(self), asleep == Py_True);
    Py_RETURN_NONE;
}

/* Return whether the record has one of the headers of a tuple, or -1 with an exception set. */
static int has_header(record_t *record, PyObject *headers) {
    for (Py_ssize_t index = 0; index < PyTuple_Size(headers); index++) {
        char *header;
        Py_ssize_t nbytes;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(headers, index), &header, &nbytes) < 0) return -1;
        if (record->header_bytes == (uint64_t)nbytes && !memcmp(header_in(record), header, (size_t)nbytes)) return 1;
    }
    return 0;
}

/* Read data that a rank offers in its memory. Return whether it could be read and the offer was still valid afterwards,
 * so that the data is the offered data. */
static bool read_offer(pid_t process, record_t *record, char *target, uint64_t nbytes) {
    place_t place;
    uint64_t mark;
    memcpy(&place, data_in(record), sizeof place);
    if (!read_from(process, (char *)(uintptr_t)place.data, target, nbytes)) return false;
    return read_from(process, (char *)(uintptr_t)place.mark, (char *)&mark, sizeof mark) && mark == record->number;
}

/* Take the next message of a rank if it has arrived, has one of these headers, and has data of this length. If the rank
 * offers the data in its process's memory, read it there; this is possible only if `ring` may read that memory. Return
 * 1 if the message was taken, 0 if it was not, or -1 with an exception set. */
static int take(const pipes_t *pipes, const Ring *ring, uint32_t source, PyObject *headers, char *target, uint64_t nbytes, uint64_t *number) {
    record_t *record = first(pipes, source);
    pipe_t *pipe = pipe_of(pipes, source, pipes->rank);
    if (record == NULL || record->turn != pipe->passed + 1) return 0;
    bool is_offer = record->kind == READABLE && record->data_bytes == sizeof(place_t) && ring->processes != NULL;
    if (!is_offer && (record->kind == READABLE || record->data_bytes != nbytes)) return 0;
    int is_known = has_header(record, headers);
    if (is_known <= 0) return is_known;
    bool is_read = true;
    if (is_offer) {
        Py_BEGIN_ALLOW_THREADS;
        is_read = read_offer(ring->processes[source], record, target, nbytes);
        Py_END_ALLOW_THREADS;
    } else if (nbytes)
        memcpy(target, data_in(record), nbytes);
    if (!is_read) return 0;
    *number = record->number;
    pipe->passed++;
    drop(pipes, source, record);
    return 1;
}

static PyObject *pipes_take(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const pipes_t *pipes = pipes_of(self);
    if (!has_arguments(count, 6)) return NULL;
    uint64_t source = integer(given[0]), nbytes = integer(given[3]), number;
    char *target = address(given[2]);
    if (!has_rank(pipes, source)) return NULL;
    if (Py_TYPE(given[4]) != (PyTypeObject *)ring_type || source >= ring_of(given[4])->ring.size)
        return PyErr_Format(PyExc_TypeError, "the fifth argument is not the group's Ring");
    if (given[5] == Py_True) finds(pipes, (uint32_t)source);
    int taken = take(pipes, ring_of(given[4]), (uint32_t)source, given[1], target, nbytes, &number);
    if (taken == 0) Py_RETURN_NONE;
    return taken < 0 ? NULL : PyLong_FromUnsignedLongLong(number);
}

/* Return the turn of a rank's next message. If a turn is given, first note that its message is being handled. */
static PyObject *pipes_next(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const pipes_t *pipes = pipes_of(self);
    if (!has_arguments(count, 2)) return NULL;
    uint64_t source = integer(given[0]), turn = integer(given[1]);
    if (!has_rank(pipes, source)) return NULL;
    pipe_t *pipe = pipe_of(pipes, (uint32_t)source, pipes->rank);
    if (turn) pipe->passed = turn;
    return PyLong_FromUnsignedLongLong(pipe->passed + 1);
}

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

#include "repeat.h"
#include "threads.h"

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

static PyMethodDef pipes_methods[] = {
    FAST("push", pipes_push),
    {"head", pipes_head, METH_O, NULL},
    {"drop", pipes_drop, METH_O, NULL},
    {"look", pipes_look, METH_O, NULL},
    {"rest", pipes_rest, METH_O, NULL},
    FAST("take", pipes_take),
    FAST("next", pipes_next),
    {NULL, NULL, 0, NULL},
};
static PyType_Slot pipes_slots[] = {
    {Py_tp_new, pipes_new}, {Py_tp_dealloc, pipes_dealloc}, {Py_tp_methods, pipes_methods}, {0, NULL}};
static PyType_Spec pipes_spec = {"collshim.transports.shared_memory._core.Pipes", sizeof(Pipes), 0, Py_TPFLAGS_DEFAULT, pipes_slots};

static PyMethodDef poster_methods[] = {FAST("start", poster_start), {NULL, NULL, 0, NULL}};
static PyType_Slot poster_slots[] = {
    {Py_tp_new, poster_new}, {Py_tp_dealloc, poster_dealloc}, {Py_tp_methods, poster_methods}, {0, NULL}};
static PyType_Spec poster_spec = {"collshim.transports.shared_memory._core.Poster", sizeof(Poster), 0, Py_TPFLAGS_DEFAULT, poster_slots};

static PyType_Slot messenger_slots[] = {{Py_tp_new, messenger_new}, {Py_tp_dealloc, messenger_dealloc}, {0, NULL}};
static PyType_Spec messenger_spec = {"collshim.transports.shared_memory._core.Messenger", sizeof(Messenger), 0, Py_TPFLAGS_DEFAULT, messenger_slots};

static PyMethodDef repeat_methods[] = {
    FAST("fits", repeat_fits), FAST("call", repeat_call), FAST("post", repeat_post), {NULL, NULL, 0, NULL}};
static PyType_Slot repeat_slots[] = {{Py_tp_new, repeat_new}, {Py_tp_dealloc, repeat_dealloc}, {Py_tp_methods, repeat_methods}, {0, NULL}};
static PyType_Spec repeat_spec = {"collshim.transports.shared_memory._core.Repeat", sizeof(Repeat), 0, Py_TPFLAGS_DEFAULT, repeat_slots};

static PyMethodDef functions[] = {FAST("read_far", read_far), FAST("hold_late_threads", hold_late_threads), {NULL, NULL, 0, NULL}};

/* Make a type, add it to the module, and keep it in `kept_in`. */
static int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyObject **kept_in) {
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL) return -1;
    *kept_in = kept(type);
    return PyModule_AddObject(module, name, type);
}

static int execute(PyObject *module) {
    struct {
        const char *name;
        PyType_Spec *spec;
        PyObject **type;
    } all[] = {{"Ring", &ring_spec, &ring_type},
               {"Pipes", &pipes_spec, &pipes_type},
               {"Poster", &poster_spec, &poster_type},
               {"Messenger", &messenger_spec, &messenger_type},
               {"Repeat", &repeat_spec, &repeat_type}};
    for (size_t index = 0; index < sizeof all / sizeof *all; index++)
        if (add_type(module, all[index].name, all[index].spec, all[index].type) < 0) return -1;
    return set_names() ? 0 : -1;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* the locks of the group, in Python, guard what its threads share */
#endif
    {0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_core", NULL, 0, functions, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
