/* Messages between two ranks that are sent or received in one step, for a caller that waits at once: part of `_core.c`.
 *
 * A `Messenger` carries the small messages of a plan, to one rank or from it. */
#ifndef COLLSHIM_MESSENGER_H
#define COLLSHIM_MESSENGER_H

#include "objects.h"

/* What a `Messenger` uses in Python: `MESSAGES` has `last_check`, `CARRIER` the headers that are `awaited`; `IS_USABLE`
 * says whether the group works; `POSTED_HERE` and `UNEXPECTED` are the lists of receives and messages that wait at this
 * rank; `UNREACHABLE` and `GONE` are dicts of ranks that get no more messages; `SENT` and `TAKEN` are called for messages
 * that need more than the pipe. */
enum { MESSAGES, CARRIER, IS_USABLE, LAST_CALL, POSTED_HERE, UNEXPECTED, UNREACHABLE, GONE, LOCK, UNLOCK, SENT, TAKEN, OVER, USED };

typedef struct {
    PyObject ob_base;
    const pipes_t *pipes;
    const ring_t *ring;
    PyObject *owners[2]; /* of these two */
    bool sends;
    uint32_t peer, kind; /* `kind`: of a record that is a message */
    double slice;        /* the seconds after which a send asks whether the other rank has ended */
    PyObject *used[USED];
} Messenger;

static PyObject *messenger_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *pipes, *ring, *used[USED];
    unsigned int peer, kind;
    double slice;
    int sends;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "O!O!pIIdOOOOOOOOOOOOO", (PyTypeObject *)pipes_type, &pipes, (PyTypeObject *)ring_type,
                          &ring, &sends, &peer, &kind, &slice, &used[MESSAGES], &used[CARRIER], &used[IS_USABLE], &used[LAST_CALL],
                          &used[POSTED_HERE], &used[UNEXPECTED], &used[UNREACHABLE], &used[GONE], &used[LOCK],
                          &used[UNLOCK], &used[SENT], &used[TAKEN], &used[OVER]))
        return NULL;
    if (!has_rank(pipes_of(pipes), peer) || peer >= ring_of(ring)->ring.size) return NULL;
    Messenger *self = (Messenger *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    self->pipes = pipes_of(pipes), self->ring = &ring_of(ring)->ring, self->sends = sends, self->peer = peer, self->kind = kind;
    self->slice = slice;
    self->owners[0] = kept(pipes), self->owners[1] = kept(ring);
    for (int index = 0; index < USED; index++) self->used[index] = kept(used[index]);
    return (PyObject *)self;
}

static void messenger_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    for (int index = 0; index < 2; index++) Py_XDECREF(((Messenger *)self)->owners[index]);
    for (int index = 0; index < USED; index++) Py_XDECREF(((Messenger *)self)->used[index]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* The outcome of a function that returns a bool; -1 with an exception set. */
static int outcome_of(PyObject *answer) {
    int outcome = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return outcome;
}

/* Whether a send has to ask first whether the other rank has ended; true with an exception set. */
static bool is_check_due(const Messenger *self, double now) {
    return self->sends && (now - number_in(self->used[MESSAGES], last_check_name) > self->slice || PyErr_Occurred());
}

/* Write a message into the pipe; 1 if it is on its way, 0 if it needs a closer look, -1 with an exception set. */
static int send_alone(Messenger *self, PyObject *header_given, const char *data, uint64_t nbytes) {
    PyObject *const *used = self->used;
    char *header;
    Py_ssize_t header_bytes;
    if (PyDict_Size(used[UNREACHABLE]) || PyDict_Size(used[GONE]) || state_of(self->ring, self->peer) != ALIVE) return 0;
    if (PyBytes_AsStringAndSize(header_given, &header, &header_bytes) < 0) return -1;
    pipe_t *pipe = pipe_of(self->pipes, self->pipes->rank, self->peer);
    record_t record = {self->kind, (uint32_t)header_bytes, pipe->sent + 1, 0, nbytes, 0};
    if (nbytes > self->pipes->room || !put(self->pipes, pipe, record, header, data)) return 0;
    pipe->sent++;
    bool is_asleep = must_wake(self->pipes, self->peer);
    if (!is_asleep && state_of(self->ring, self->peer) == ALIVE) return 1;
    int outcome = is_asleep ? ASLEEP : PUSHED;
    return outcome_of(PyObject_CallFunction(used[SENT], "IiOy#", self->peer, outcome, header_given, data, (Py_ssize_t)nbytes));
}

/* Take a message from the pipe if it arrives soon; 1 if it was taken, 0 and -1 as for a send. */
static int receive_alone(Messenger *self, char *target, uint64_t nbytes) {
    PyObject *const *used = self->used;
    if (PyList_Size(used[POSTED_HERE]) || PyList_Size(used[UNEXPECTED])) return 0;
    finds(self->pipes, self->peer);
    PyObject *headers = PyObject_GetAttr(used[CARRIER], awaited_name);
    uint64_t number = 0;
    int taken = headers == NULL || !PyTuple_Check(headers) ? -1 : take(self->pipes, ring_of(self->owners[1]), self->peer, headers, target, nbytes, &number);
    Py_XDECREF(headers);
    if (taken <= 0 || number == 0) return taken;
    PyObject *told = PyObject_CallFunction(used[TAKEN], "IK", self->peer, (unsigned long long)number);
    Py_XDECREF(told);
    return told == NULL ? -1 : 1;
}

/* Send or receive, with the lock held; return the work, or None, with nothing done, or NULL with an exception set. */
static PyObject *pass_alone(Messenger *self, PyObject *header, PyObject *last, char *data, uint64_t nbytes) {
    PyObject *const *used = self->used;
    int passed = outcome_of(PyObject_CallNoArgs(used[IS_USABLE]));
    if (passed > 0) passed = self->sends ? send_alone(self, header, data, nbytes) : receive_alone(self, data, nbytes);
    if (passed > 0) passed = PyObject_SetAttr(used[LAST_CALL], last_name, last) < 0 ? -1 : 1;
    return passed < 0 ? NULL : kept(passed ? used[OVER] : Py_None);
}

#endif
