/* Collectives that are posted and finished in one step, for a caller that waits at once: part of `_core.c`.
 *
 * A `Poster` posts a call of its group and waits for a slice. */
#ifndef COLLSHIM_POSTER_H
#define COLLSHIM_POSTER_H

#include "objects.h"

/* The ranks' encoded calls, which agreed, and how this rank's result is made of the data. */
typedef struct {
    PyObject *headers;
    move_t move;
} agreed_t;

/* Where its result goes; `counted` is what autograd counts the write of, or None. */
typedef struct {
    char *out, *const *outs;
    PyObject *counted;
} gets_t;

/* What Python needs to go on with a call: `prepare` makes the inputs and outputs that the plan takes, if not None; and
 * `slice`, the seconds of the wait before that; 0 if the caller does not wait, or NO_LOOK. */
typedef struct {
    PyObject *plan, *inputs, *outputs, *prepare;
    double now, slice;
} rest_t;

#define NO_LOOK -1.0 /* leave the call to Python at once */

enum { GROUP, QUEUE, PENDING, AGREE, AGREE_END, POST, POST_END, COMPLETE, REST, INCREMENT, HELD };

typedef struct {
    PyObject ob_base;
    Ring *ring;
    double slice; /* the seconds of a wait before a call goes on in Python, and without a post before it may be late */
    PyObject *held[HELD];
} Poster;

/* Post a call if it is this rank's only one; return its place in the group's order, or None, or NULL with an exception. */
static PyObject *post_alone(Poster *self, const given_t *given, uint32_t *number) {
    PyObject *const *held = self->held, *sequence = NULL, *next;
    if (!did(held[POST])) return NULL;
    int queued = PyObject_IsTrue(held[QUEUE]), found = queued == 0 ? post(self->ring, given, true, number) : -queued;
    if (queued > 0 || found == 0)
        sequence = kept(Py_None);
    else if (found > 0 && (sequence = PyObject_GetAttr(held[GROUP], sequence_name)) != NULL) {
        next = PyNumber_Add(sequence, one);
        if (next == NULL || PyObject_SetAttr(held[GROUP], sequence_name, next) < 0) Py_CLEAR(sequence);
        Py_XDECREF(next);
    }
    undo(held[POST_END]);
    return sequence;
}

/* Let Python go on with a call that was posted; return its work. */
static PyObject *go_on(PyObject *const *held, const given_t *given, const rest_t *rest, PyObject *sequence, uint32_t number) {
    return PyObject_CallFunction(held[REST], "OOOOOOOId", rest->plan, rest->inputs, rest->outputs, rest->prepare, sequence,
                                 given->header, given->last, (unsigned int)number, rest->now);
}

/* Start a call while other threads of this rank cannot start one. */
static PyObject *start_alone(Poster *self, const agreed_t *agreed, const given_t *given, const gets_t *gets, const rest_t *rest) {
    PyObject *const *held = self->held, *type, *value, *traceback, *work;
    uint32_t number = 0;
    PyObject *sequence = post_alone(self, given, &number);
    if (sequence == NULL || sequence == Py_None) return sequence;
    if (rest->slice == 0 && !is_crowded()) pass_soon(&self->ring->ring, POSTED, number, POST_LOOKS, false);
    int found = PyObject_SetAttr(held[PENDING], last_name, given->last);
    if (found == 0 && rest->slice < 0) found = WAITING;
    if (found == 0) found = finish(self->ring, number, agreed->headers, &agreed->move, gets->out, gets->outs, rest->slice);
    if (found == DONE) {
        Py_DECREF(sequence);
        if (gets->counted == Py_None) return kept(held[COMPLETE]);
        work = PyObject_CallFunctionObjArgs(held[INCREMENT], gets->counted, NULL);
        Py_XDECREF(work);
        return work == NULL ? NULL : kept(held[COMPLETE]);
    }
    PyErr_Fetch(&type, &value, &traceback); /* of a signal's handler: the others need this rank's part of the call */
    work = go_on(held, given, rest, sequence, number);
    if (work == NULL && type == NULL) { /* a handler, or another thread, raised before the call was queued */
        PyErr_Fetch(&type, &value, &traceback);
        if (PyObject_IsTrue(held[QUEUE]) == 0) work = go_on(held, given, rest, sequence, number);
    }
    Py_DECREF(sequence);
    if (type == NULL) return work;
    Py_XDECREF(work);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

/* Read the headers, and how the result is made, from an attribute each of an `Agreed`. */
static bool read_agreed(PyObject *given, agreed_t *agreed) {
    PyObject *movement = PyObject_GetAttr(given, movement_name);
    agreed->headers = movement == NULL ? NULL : PyObject_GetAttr(given, headers_name);
    uint64_t numbers[4] = {0};
    bool is_read = agreed->headers != NULL && PyTuple_Check(movement) && PyTuple_Size(movement) == 4;
    for (Py_ssize_t index = 0; is_read && index < 4; index++) numbers[index] = integer(PyTuple_GetItem(movement, index));
    agreed->move = (move_t){(int)numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2], numbers[3]};
    Py_XDECREF(movement);
    if (is_read && !PyErr_Occurred()) return true;
    Py_CLEAR(agreed->headers);
    return false;
}

static PyObject *poster_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *ring, *held[HELD];
    double slice;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "O!dOOOOOOOOOO", (PyTypeObject *)ring_type, &ring, &slice, &held[GROUP], &held[QUEUE],
                          &held[PENDING], &held[AGREE], &held[AGREE_END], &held[POST], &held[POST_END], &held[COMPLETE],
                          &held[REST], &held[INCREMENT]))
        return NULL;
    Poster *self = (Poster *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    self->ring = (Ring *)kept(ring), self->slice = slice;
    for (int index = 0; index < HELD; index++) self->held[index] = kept(held[index]);
    return (PyObject *)self;
}

static void poster_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((Poster *)self)->ring);
    for (int index = 0; index < HELD; index++) Py_XDECREF(((Poster *)self)->held[index]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Post a call and wait for a slice; return its work, or None if there was no room, with nothing posted. */
static PyObject *poster_start(PyObject *own, PyObject *const *args, Py_ssize_t count) {
    Poster *self = (Poster *)own;
    agreed_t agreed;
    if (!has_arguments(count, 12)) return NULL;
    given_t given = {args[1], args[2], (uint32_t)integer(args[3]), NULL, NULL, integer(args[5])};
    gets_t gets = {NULL, NULL, args[7]};
    rest_t rest = {args[8], args[9], args[10], Py_None, PyFloat_AsDouble(args[11]), self->slice};
    read_places(&self->ring->ring, args[4], &given.data, &given.parts);
    if (!PyErr_Occurred()) read_places(&self->ring->ring, args[6], &gets.out, &gets.outs);
    if (PyErr_Occurred() || !did(self->held[AGREE])) return NULL;
    PyObject *work = NULL;
    if (read_agreed(args[0], &agreed)) {
        work = start_alone(self, &agreed, &given, &gets, &rest);
        Py_DECREF(agreed.headers);
    } else if (!PyErr_Occurred())
        work = kept(Py_None);
    undo(self->held[AGREE_END]);
    return work;
}

#endif
