/* Sends or receives a message between two ranks in one step, for a caller that waits at once: part of `_core.c`.
 *
 * A `Messenger` carries the messages of a plan, to one rank or from it. A send of larger data is an offer: it ends once
 * the other rank has answered that it has the data. */
#ifndef COLLSHIM_MESSENGER_H
#define COLLSHIM_MESSENGER_H

#include "objects.h"

#define BYTES_PER_LOOK 256 /* a send of larger data polls longer for the answer, up to four times as long */

/* What a `Messenger` uses in Python: `MESSAGES` has `last_check`, `CARRIER` the headers that are `awaited`; `IS_USABLE`
 * says whether the group works; `POSTED_HERE` and `UNEXPECTED` are the lists of receives and messages that wait at this
 * rank; `UNREACHABLE` and `GONE` are dicts of ranks that get no more messages; `OFFERS` has the number of the `last`
 * offer. `SENT` and `TAKEN` are called for messages that need more than the pipe, `WAKE_UP` for a rank that sleeps, and
 * `OPEN` for an offer that is not answered soon. */
enum {
    MESSAGES, CARRIER, IS_USABLE, LAST_CALL, POSTED_HERE, UNEXPECTED, UNREACHABLE, GONE, LOCK, UNLOCK, SENT, TAKEN, WAKE_UP,
    OFFERS, OPEN, OVER, USED
};

typedef struct {
    PyObject ob_base;
    const pipes_t *pipes;
    const Ring *ring;
    PyObject *owners[2]; /* of these two */
    bool sends;
    uint32_t peer;
    double slice;    /* the seconds after which a send asks whether the other rank has ended */
    uint64_t *marks; /* the marks of the open offers, each at its number modulo `marked`: see offers.py */
    uint64_t marked;
    uint64_t eager; /* the largest number of bytes that is sent without an offer */
    uint64_t most;  /* the largest number of bytes that is sent with an offer; the receiver reads larger data */
    PyObject *used[USED];
} Messenger;

static PyObject *messenger_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *pipes, *ring, *all;
    unsigned int peer;
    unsigned long long marks, marked, eager, most;
    double slice;
    int sends;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "O!O!pIdKKKKO!", (PyTypeObject *)pipes_type, &pipes, (PyTypeObject *)ring_type, &ring, &sends,
                          &peer, &slice, &marks, &marked, &eager, &most, &PyTuple_Type, &all))
        return NULL;
    if (PyTuple_Size(all) != USED) return PyErr_Format(PyExc_TypeError, "a Messenger uses %d objects", USED);
    if (marked == 0) return PyErr_Format(PyExc_ValueError, "there are no marks");
    if (!has_rank(pipes_of(pipes), peer) || peer >= ring_of(ring)->ring.size) return NULL;
    Messenger *self = (Messenger *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    self->pipes = pipes_of(pipes), self->ring = ring_of(ring), self->sends = sends, self->peer = peer, self->slice = slice;
    self->marks = (uint64_t *)(uintptr_t)marks, self->marked = marked, self->eager = eager, self->most = most;
    self->owners[0] = kept(pipes), self->owners[1] = kept(ring);
    for (int index = 0; index < USED; index++) self->used[index] = kept(PyTuple_GetItem(all, index));
    return (PyObject *)self;
}

static void messenger_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    for (int index = 0; index < 2; index++) Py_XDECREF(((Messenger *)self)->owners[index]);
    for (int index = 0; index < USED; index++) Py_XDECREF(((Messenger *)self)->used[index]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* A message, and how Python goes on with it: `prepare` makes the tensors that the plan takes from `input` and `output`. */
typedef struct {
    PyObject *header, *last, *plan, *prepare, *input, *output;
    char *data;
    uint64_t nbytes;
} message_t;

/* Return the bool that a function returned; -1 with an exception set. */
static int outcome_of(PyObject *answer) {
    int outcome = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return outcome;
}

/* Return whether a send must first check whether the other rank has ended; true with an exception set. */
static bool is_check_due(const Messenger *self, double now) {
    return self->sends && (now - number_in(self->used[MESSAGES], last_check_name) > self->slice || PyErr_Occurred());
}

static bool is_alive(const Messenger *self) { return state_of(&self->ring->ring, self->peer) == ALIVE; }

/* Write a record with the next turn into the pipe; return whether there was room. */
static bool put_next(const Messenger *self, uint32_t kind, uint64_t number, const message_t *message, const void *data, uint64_t nbytes) {
    char *header;
    Py_ssize_t header_bytes;
    if (PyBytes_AsStringAndSize(message->header, &header, &header_bytes) < 0) return false;
    pipe_t *pipe = pipe_of(self->pipes, self->pipes->rank, self->peer);
    record_t record = {kind, (uint32_t)header_bytes, pipe->sent + 1, number, nbytes, 0};
    if (nbytes > self->pipes->room || !put(self->pipes, pipe, record, header, data)) return false;
    pipe->sent++;
    return true;
}

/* Send small data; 1 if it is on its way, 0 if it needs a closer look, -1 with an exception set. */
static int send_small(const Messenger *self, const message_t *message) {
    if (!put_next(self, MESSAGE, 0, message, message->data, message->nbytes)) return PyErr_Occurred() ? -1 : 0;
    bool is_asleep = must_wake(self->pipes, self->peer);
    if (!is_asleep && is_alive(self)) return 1;
    return outcome_of(PyObject_CallFunction(self->used[SENT], "IiON", self->peer, is_asleep ? ASLEEP : PUSHED, message->header,
                                            PyBytes_FromStringAndSize(message->data, (Py_ssize_t)message->nbytes)));
}

/* Poll for the answer to an offer; return whether it is the next record from the other rank, and remove it then. */
static bool is_answered(const Messenger *self, uint64_t number, uint64_t nbytes) {
    const pipes_t *pipes = self->pipes;
    uint64_t looks = pipes->spins + nbytes / BYTES_PER_LOOK;
    if (looks > 4 * (uint64_t)pipes->spins) looks = 4 * (uint64_t)pipes->spins;
    if (!finds_record(pipes, self->peer, OWN_LOOKS, false)) {
        Py_BEGIN_ALLOW_THREADS;
        finds_record(pipes, self->peer, (uint32_t)looks, true);
        Py_END_ALLOW_THREADS;
    }
    record_t *record = first(pipes, self->peer);
    if (record == NULL || record->kind != RELEASE || record->number != number || record->header_bytes) return false;
    drop(pipes, self->peer, record);
    return true;
}

/* Let Python go on with an offer that has not been answered; return its work. */
static PyObject *open_offer(const Messenger *self, const message_t *message, uint64_t number, bool is_asleep) {
    return PyObject_CallFunction(self->used[OPEN], "OOOOKOO", message->plan, message->prepare, message->input, message->output,
                                 (unsigned long long)number, message->last, is_asleep ? Py_True : Py_False);
}

/* Offer larger data, and poll for the answer; return the work, or None if nothing was sent, or NULL with an exception. */
static PyObject *offer(const Messenger *self, const message_t *message) {
    PyObject *const *used = self->used, *type, *value, *traceback, *work;
    PyObject *last = PyObject_GetAttr(used[OFFERS], last_name), *next = last == NULL ? NULL : PyNumber_Add(last, one);
    uint64_t number = next == NULL ? 0 : integer(next), *mark = &self->marks[number % self->marked];
    int is_set = next == NULL ? -1 : PyObject_SetAttr(used[OFFERS], last_name, next);
    Py_XDECREF(last);
    Py_XDECREF(next);
    if (is_set < 0) return NULL;
    place_t place = {(uint64_t)(uintptr_t)message->data, (uint64_t)(uintptr_t)mark};
    bool is_inline = message->nbytes <= self->most;
    *mark = number; /* `put` makes it visible with the record */
    if (!put_next(self, is_inline ? OFFER : READABLE, number, message, is_inline ? (void *)message->data : &place,
                  is_inline ? message->nbytes : sizeof place)) {
        *mark = 0;
        return PyErr_Occurred() ? NULL : kept(Py_None);
    }
    bool is_asleep = must_wake(self->pipes, self->peer);
    if (!is_asleep && is_answered(self, number, message->nbytes)) {
        *mark = 0;
        return kept(used[OVER]);
    }
    work = open_offer(self, message, number, is_asleep);
    if (work != NULL) return work;
    PyErr_Fetch(&type, &value, &traceback); /* of a signal's handler: the offer stands, and needs its request */
    work = open_offer(self, message, number, is_asleep);
    if (work == NULL) PyErr_Clear(), *mark = 0;
    Py_XDECREF(work);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

/* Tell the sender of an offer that this rank has the data; return 1, or -1 with an exception set. */
static int answer(const Messenger *self, uint64_t number) {
    pipe_t *back = pipe_of(self->pipes, self->pipes->rank, self->peer);
    PyObject *told;
    if (!put(self->pipes, back, (record_t){RELEASE, 0, 0, number, 0, 0}, "", NULL) || !is_alive(self))
        told = PyObject_CallFunction(self->used[TAKEN], "IK", self->peer, (unsigned long long)number);
    else if (must_wake(self->pipes, self->peer))
        told = PyObject_CallFunction(self->used[WAKE_UP], "I", self->peer);
    else
        return 1;
    Py_XDECREF(told);
    return told == NULL ? -1 : 1;
}

/* Take a message from the pipe if it arrives soon; 1 if it was taken, 0 and -1 as for a send. */
static int receive_alone(const Messenger *self, const message_t *message) {
    PyObject *const *used = self->used;
    if (PyList_Size(used[POSTED_HERE]) || PyList_Size(used[UNEXPECTED])) return 0;
    finds(self->pipes, self->peer);
    PyObject *headers = PyObject_GetAttr(used[CARRIER], awaited_name);
    uint64_t number = 0;
    int taken = headers == NULL || !PyTuple_Check(headers) ? -1 : take(self->pipes, self->ring, self->peer, headers, message->data, message->nbytes, &number);
    Py_XDECREF(headers);
    return taken > 0 && number ? answer(self, number) : taken;
}

/* Send, if the other rank can be reached; return what `offer` returns. */
static PyObject *send_alone(const Messenger *self, const message_t *message) {
    PyObject *const *used = self->used;
    if (PyDict_Size(used[UNREACHABLE]) || PyDict_Size(used[GONE]) || !is_alive(self)) return kept(Py_None);
    if (message->nbytes > self->eager) return offer(self, message);
    int sent = send_small(self, message);
    return sent < 0 ? NULL : kept(sent ? used[OVER] : Py_None);
}

/* Send or receive, with the lock held; return the work, or None, with nothing done, or NULL with an exception set. */
static PyObject *pass_alone(const Messenger *self, const message_t *message) {
    PyObject *const *used = self->used, *work = NULL;
    int passed = outcome_of(PyObject_CallNoArgs(used[IS_USABLE]));
    if (passed > 0 && self->sends)
        work = send_alone(self, message);
    else {
        if (passed > 0) passed = receive_alone(self, message);
        work = passed < 0 ? NULL : kept(passed ? used[OVER] : Py_None);
    }
    if (work == NULL || work == Py_None || PyObject_SetAttr(used[LAST_CALL], last_name, message->last) == 0) return work;
    Py_DECREF(work);
    return NULL;
}

#endif
