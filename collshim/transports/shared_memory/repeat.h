/* Calls of tensors like earlier ones: part of `_core.c`.
 *
 * A `Repeat` checks the tensors, finds the line of the program that made the call, and lets a `Poster` or a `Messenger`
 * carry the call. */
#ifndef COLLSHIM_REPEAT_H
#define COLLSHIM_REPEAT_H

#include "messenger.h"
#include "poster.h"

#define PARTS 16 /* the tensors of a list */
#define SITES 64 /* the lines of the program that a `Repeat` knows */
#define OWN 16   /* the functions of collshim and torch that it knows */

/* A line of the program that made the call, as a place in its code, with the call's header and what agreed with it. */
typedef struct {
    PyObject *code, *header, *last, *known; /* `known`: the `Agreed` that `agreed` was read from */
    agreed_t agreed;
    long place;
} site_t;

enum { ONE = -1 };
enum { IN_SLOT, ADDRESSES, AND_INPUT, AND_OUTPUT };
enum { PLAN, AGREED, ALIKE, TENSOR, ADDRESS, FRAME_AT, LOCATE, ALLOCATE, PREPARE, DELIVER, DEFERRED, OBSERVERS, OPTIONS, KEPT };

typedef struct {
    PyObject ob_base;
    Poster *poster;       /* NULL if this is a message */
    Messenger *messenger; /* NULL if it is a collective */
    PyObject *kept[KEPT];
    bool is_in_place, gives, gets, counts, has_sites;
    int posts; /* the data; or the addresses of the inputs, with that of the shares: see far.py */
    int inputs, outputs;    /* the tensors of the lists; ONE if it is a tensor */
    uint64_t read, written; /* the bytes of each input and of each output */
    PyObject *depth;        /* how many frames above the caller of `call` the program's line may be */
    site_t sites[SITES];
    PyObject *own[OWN]; /* code of collshim and torch between */
    unsigned int found, passed;
} Repeat;

static PyObject *repeat_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    PyObject *carrier, *all[KEPT], *depth;
    int in_place, gives, gets, counts, has_sites, posts, inputs, outputs;
    unsigned long long read, written;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOOOOOOpppppiiKiKO", &carrier, &all[PLAN], &all[AGREED], &all[ALIKE], &all[TENSOR],
                          &all[ADDRESS], &all[FRAME_AT], &all[LOCATE], &all[ALLOCATE], &all[PREPARE], &all[DELIVER],
                          &all[DEFERRED], &all[OBSERVERS], &all[OPTIONS], &in_place, &gives, &gets, &counts, &has_sites, &posts, &inputs, &read, &outputs,
                          &written, &depth))
        return NULL;
    bool is_message = Py_TYPE(carrier) == (PyTypeObject *)messenger_type;
    if (!is_message && Py_TYPE(carrier) != (PyTypeObject *)poster_type)
        return PyErr_Format(PyExc_TypeError, "a Repeat needs a Poster or a Messenger");
    if (inputs > PARTS || outputs > PARTS) return PyErr_Format(PyExc_ValueError, "a list has more than %d tensors", PARTS);
    Repeat *self = (Repeat *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    self->messenger = is_message ? (Messenger *)kept(carrier) : NULL;
    self->poster = is_message ? NULL : (Poster *)kept(carrier);
    for (int index = 0; index < KEPT; index++) self->kept[index] = kept(all[index]);
    self->is_in_place = in_place, self->gives = gives, self->gets = gets, self->counts = counts, self->has_sites = has_sites, self->posts = posts;
    self->inputs = inputs, self->outputs = outputs, self->read = read, self->written = written, self->depth = kept(depth);
    return (PyObject *)self;
}

static void drop_site(site_t *site) {
    Py_CLEAR(site->code);
    Py_CLEAR(site->header);
    Py_CLEAR(site->last);
    Py_CLEAR(site->known);
    Py_CLEAR(site->agreed.headers);
}

static void repeat_dealloc(PyObject *own) {
    PyTypeObject *type = Py_TYPE(own);
    Repeat *self = (Repeat *)own;
    for (int index = 0; index < KEPT; index++) Py_XDECREF(self->kept[index]);
    for (int index = 0; index < SITES; index++) drop_site(&self->sites[index]);
    for (int index = 0; index < OWN; index++) Py_XDECREF(self->own[index]);
    Py_XDECREF(self->depth);
    Py_XDECREF((PyObject *)self->poster);
    Py_XDECREF((PyObject *)self->messenger);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(own);
    Py_DECREF(type);
}

static long number_of(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    long number = value == NULL ? -1 : PyLong_AsLong(value);
    Py_XDECREF(value);
    return number;
}

static bool is_own(const Repeat *self, PyObject *code) {
    for (int index = 0; index < OWN && self->own[index] != NULL; index++)
        if (self->own[index] == code) return true;
    return false;
}

/* Find the line that made the call among the known lines; NULL if it is not known, or with an exception set. */
static site_t *find_site(Repeat *self) {
    PyObject *frame = PyObject_CallFunctionObjArgs(self->kept[FRAME_AT], self->depth, NULL), *back;
    site_t *found = NULL;
    for (bool goes_on = true; frame != NULL && goes_on; frame = back) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        goes_on = is_own(self, code);
        long place = goes_on ? 0 : number_of(frame, lasti_name);
        for (int index = 0; !goes_on && found == NULL && index < SITES; index++)
            if (self->sites[index].code == code && self->sites[index].place == place) found = &self->sites[index];
        back = goes_on ? PyObject_GetAttr(frame, back_name) : NULL;
        Py_DECREF(code);
        Py_DECREF(frame);
        if (back == Py_None) Py_CLEAR(back); /* all of this thread is collshim's */
    }
    return found;
}

/* Let Python find the line, and keep it in place of the one found first; NULL with an exception. */
static site_t *learn_site(Repeat *self) {
    PyObject *code, *header, *last, *own;
    long place;
    PyObject *found = PyObject_CallFunctionObjArgs(self->kept[LOCATE], self->kept[PLAN], self->depth, NULL);
    if (found == NULL) return NULL;
    site_t *site = &self->sites[self->found % SITES];
    if (!PyArg_ParseTuple(found, "OlSOO!", &code, &place, &header, &last, &PyList_Type, &own)) site = NULL;
    for (Py_ssize_t index = 0; site != NULL && index < PyList_Size(own); index++) {
        PyObject *passed = PyList_GetItem(own, index), **room = &self->own[self->passed % OWN];
        if (is_own(self, passed)) continue;
        Py_XDECREF(*room);
        *room = kept(passed), self->passed++;
    }
    if (site != NULL) {
        drop_site(site);
        *site = (site_t){kept(code), kept(header), kept(last), NULL, {0}, place}, self->found++;
    }
    Py_DECREF(found);
    return site;
}

static site_t *site_of(Repeat *self) {
    site_t *found = self->has_sites ? find_site(self) : self->sites[0].code == NULL ? NULL : &self->sites[0];
    if (found != NULL) return found;
    return PyErr_Occurred() ? NULL : learn_site(self);
}

/* Read what agreed with a call from this line, unless it was read before; 0 if nothing has, -1 with an exception set. */
static int knows_agreed(const Repeat *self, site_t *site) {
    PyObject *agreed = value_of(self->kept[AGREED], site->header);
    if (agreed != NULL && agreed != site->known) {
        Py_CLEAR(site->agreed.headers);
        Py_CLEAR(site->known);
        if (read_agreed(agreed, &site->agreed)) site->known = kept(agreed);
    }
    bool is_known = agreed != NULL && agreed == site->known;
    Py_XDECREF(agreed);
    return PyErr_Occurred() ? -1 : is_known;
}

/* Where a call's tensors are, in order: the inputs, then the outputs unless they are the inputs. */
typedef struct {
    char *all[2 * PARTS];
    Py_ssize_t inputs, outputs;
    char *const *written;
} places_t;

/* Send the input, or receive into the output. */
static PyObject *pass_message(Repeat *self, PyObject *array, PyObject *out, const places_t *places) {
    site_t *site = site_of(self);
    if (site == NULL) return NULL;
    bool sends = self->messenger->sends;
    message_t message = {kept(site->header), kept(site->last), /* a signal's handler may make another call */
                         self->kept[PLAN], self->kept[PREPARE], array, out,
                         sends ? places->all[0] : places->written[0], sends ? self->read : self->written};
    PyObject *work = pass_alone(self->messenger, &message);
    Py_DECREF(message.header);
    Py_DECREF(message.last);
    return work;
}

static void give_data(const Repeat *self, const places_t *places, given_t *given) {
    if (!self->gives) return;
    if (self->inputs == ONE)
        given->data = places->all[0];
    else
        given->parts = places->all;
    given->nbytes = self->read * (uint64_t)places->inputs;
}

/* Post the addresses of the inputs, and then that of the memory in which the other ranks find shares, or 0. */
static void give_addresses(const Repeat *self, const places_t *places, const char **addresses, given_t *given) {
    Py_ssize_t count = self->gives ? places->inputs : 0;
    for (Py_ssize_t index = 0; index < count; index++) addresses[index] = places->all[index];
    addresses[count] = self->posts == AND_INPUT ? places->all[0] : self->posts == AND_OUTPUT ? places->written[0] : NULL;
    given->kind = FAR;
    given->data = (char *)addresses;
    given->nbytes = (uint64_t)(count + 1) * sizeof *addresses;
}

/* Make the collective, and wait for a slice; or, if the caller waits later, only if all ranks have posted it already. */
static PyObject *call_alone(Repeat *self, PyObject *array, PyObject *out, const places_t *places, double now, bool waits) {
    site_t *site = site_of(self);
    int knows = site == NULL ? -1 : knows_agreed(self, site);
    if (knows <= 0) return knows < 0 ? NULL : kept(Py_None);
    agreed_t agreed = {kept(site->agreed.headers), site->agreed.move}; /* a signal's handler may make another call */
    PyObject *known = kept(site->known);
    given_t given = {kept(site->header), kept(site->last), INLINE, NULL, NULL, 0};
    gets_t gets = {NULL, NULL, self->gets && self->counts ? out : Py_None};
    const char *addresses[PARTS + 1];
    if (self->posts == IN_SLOT)
        give_data(self, places, &given);
    else
        give_addresses(self, places, addresses, &given);
    if (self->gets && self->outputs == ONE) gets.out = places->written[0];
    if (self->gets && self->outputs != ONE) gets.outs = places->written;
    rest_t rest = {self->kept[PLAN], array, out, self->kept[PREPARE], now, waits ? self->poster->slice : 0};
    if (!waits && self->posts != IN_SLOT) rest.slice = NO_LOOK; /* a thread moves larger data while the program goes on */
    PyObject *work = start_alone(self->poster, &agreed, &given, &gets, &rest), *started = work;
    if (!waits && work != NULL && work != Py_None) {
        work = PyObject_CallFunctionObjArgs(self->kept[DELIVER], started, array, out, given.last, known, NULL);
        Py_DECREF(started);
    }
    Py_DECREF(known);
    Py_DECREF(agreed.headers);
    Py_DECREF(given.header);
    Py_DECREF(given.last);
    return work;
}

/* Whether an answer is the expected object; false with an exception set if there is no answer. */
static bool answers(PyObject *answer, PyObject *expected) {
    Py_XDECREF(answer);
    return answer == expected;
}

static Py_ssize_t tensors_in(int count) { return count == ONE ? 1 : count; }

/* Put the tensors of an argument into a tuple from a place on; return whether it has as many as expected. */
static bool add_tensors(const Repeat *self, PyObject *given, int count, PyObject *tensors, Py_ssize_t from) {
    if (given == Py_None) return count == 0;
    if (count != ONE && (!PyList_CheckExact(given) || PyList_Size(given) != count)) return false;
    for (int index = 0; index < tensors_in(count); index++) {
        PyObject *tensor = count == ONE ? kept(given) : item_of(given, index);
        if (tensor == NULL) return false;
        PyTuple_SetItem(tensors, from + index, tensor);
        if ((PyObject *)Py_TYPE(tensor) != self->kept[TENSOR]) return false;
        if (!answers(PyObject_GetAttr(tensor, is_nested_name), Py_False)) return false; /* it has no strides to compare */
    }
    return true;
}

/* Return the call's tensors if they are like the earlier ones; NULL if not, also with an exception set. */
static PyObject *fitting(const Repeat *self, PyObject *array, PyObject *out) {
    Py_ssize_t inputs = tensors_in(self->inputs), outputs = self->is_in_place ? 0 : tensors_in(self->outputs);
    if ((array == out) != self->is_in_place) return NULL;
    PyObject *tensors = PyTuple_New(inputs + outputs);
    if (tensors == NULL) return NULL;
    bool fits = add_tensors(self, array, self->inputs, tensors, 0);
    fits = fits && (self->is_in_place || add_tensors(self, out, self->outputs, tensors, inputs));
    if (fits && inputs + outputs > 0) fits = answers(PyObject_Call(self->kept[ALIKE], tensors, NULL), Py_True);
    if (!fits) Py_CLEAR(tensors);
    return tensors;
}

/* Return the output of a call, which is allocated if the caller passes none; NULL with an exception. */
static PyObject *output_for(const Repeat *self, PyObject *out) {
    bool is_absent = out == Py_None && self->kept[ALLOCATE] != Py_None;
    return is_absent ? PyObject_CallNoArgs(self->kept[ALLOCATE]) : kept(out);
}

static PyObject *repeat_fits(PyObject *own, PyObject *const *args, Py_ssize_t count) {
    PyObject *out = has_arguments(count, 2) ? output_for((Repeat *)own, args[1]) : NULL;
    if (out == NULL) return NULL;
    PyObject *tensors = fitting((Repeat *)own, args[0], out);
    Py_XDECREF(tensors);
    Py_DECREF(out);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_RuntimeError)) PyErr_Clear();
    return PyErr_Occurred() ? NULL : PyBool_FromLong(tensors != NULL);
}

static bool are_apart(const char *one, uint64_t its_bytes, const char *other, uint64_t others_bytes) {
    return one + its_bytes <= other || other + others_bytes <= one;
}

/* Find the tensors' memory; whether they have any, and no output shares it with another tensor. */
static bool find_places(const Repeat *self, PyObject *tensors, places_t *places) {
    Py_ssize_t count = PyTuple_Size(tensors);
    places->inputs = tensors_in(self->inputs);
    places->outputs = self->is_in_place ? 0 : count - places->inputs;
    places->written = self->is_in_place ? places->all : places->all + places->inputs;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *number = PyObject_CallFunctionObjArgs(self->kept[ADDRESS], PyTuple_GetItem(tensors, index), NULL);
        places->all[index] = number == NULL ? NULL : address(number);
        Py_XDECREF(number);
        if (places->all[index] == NULL) return false;
        for (Py_ssize_t before = 0; index >= places->inputs && before < index; before++) {
            uint64_t nbytes = before < places->inputs ? self->read : self->written;
            if (!are_apart(places->all[before], nbytes, places->all[index], self->written)) return false;
        }
    }
    return true;
}

/* Whether the options of the block of code, if there is one, do not search for NaN. */
static bool is_unsearched(PyObject *options_here) {
    PyObject *options = PyObject_CallNoArgs(options_here), *searches = NULL;
    bool is_plain = options == Py_None;
    if (options != NULL && !is_plain) searches = PyObject_GetAttr(options, find_nan_name), is_plain = searches == Py_False;
    Py_XDECREF(searches);
    Py_XDECREF(options);
    return is_plain;
}

/* Whether no observer watches the calls, no earlier call has failed, and this call is not late. */
static bool is_plain(const Repeat *self, double now) {
    PyObject *const *kept = self->kept;
    PyObject *seen = PyList_Size(kept[DEFERRED]) == 0 ? PyObject_GetAttr(kept[OBSERVERS], by_default_name) : NULL;
    bool is_unseen = seen != NULL && PyObject_IsTrue(seen) == 0;
    Py_XDECREF(seen);
    if (!is_unseen || !is_unsearched(kept[OPTIONS])) return false;
    if (self->poster == NULL) return !is_check_due(self->messenger, now);
    PyObject *group = self->poster->held[GROUP];
    if (now - number_in(group, last_post_name) > self->poster->slice || PyErr_Occurred()) return false;
    PyObject *current = PyFloat_FromDouble(now);
    bool is_set = current != NULL && PyObject_SetAttr(group, last_post_name, current) == 0;
    Py_XDECREF(current);
    return is_set;
}

/* Repeat the call with these tensors; return its work, or None, with nothing posted, if it needs a closer look. */
static PyObject *repeat_with(Repeat *self, PyObject *array, PyObject *out, bool waits) {
    PyObject *work = NULL, *tensors = fitting(self, array, out);
    double now = seconds_now();
    places_t places;
    bool is_known = tensors != NULL && find_places(self, tensors, &places);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_RuntimeError)) PyErr_Clear(); /* a tensor without strides or memory */
    const Poster *poster = self->poster;
    PyObject *begin = poster ? poster->held[AGREE] : self->messenger->used[LOCK];
    PyObject *end = poster ? poster->held[AGREE_END] : self->messenger->used[UNLOCK];
    if (is_known && is_plain(self, now) && did(begin)) {
        work = poster ? call_alone(self, array, out, &places, now, waits) : pass_message(self, array, out, &places);
        undo(end);
        Py_DECREF(tensors);
        return work;
    }
    Py_XDECREF(tensors);
    return PyErr_Occurred() ? NULL : kept(Py_None);
}

static PyObject *repeat_now(PyObject *own, PyObject *const *args, Py_ssize_t count, bool waits) {
    Repeat *self = (Repeat *)own;
    PyObject *out = has_arguments(count, 2) ? output_for(self, args[1]) : NULL;
    PyObject *work = out == NULL ? NULL : repeat_with(self, args[0], out, waits);
    Py_XDECREF(out);
    return work;
}

static PyObject *repeat_call(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    return repeat_now(self, args, count, true);
}

static PyObject *repeat_post(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    return repeat_now(self, args, count, false);
}

#endif
