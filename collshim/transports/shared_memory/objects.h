/* Helpers for Python objects: interned names, references and calls; part of `_core.c`. */
#ifndef COLLSHIM_OBJECTS_H
#define COLLSHIM_OBJECTS_H

static PyObject *sequence_name, *last_name, *last_post_name, *headers_name, *movement_name, *one;
static PyObject *by_default_name, *is_nested_name, *back_name, *lasti_name, *find_nan_name;
static PyObject *last_check_name, *awaited_name;

static bool set_names(void) {
    struct {
        PyObject **name;
        const char *text;
    } all[] = {{&sequence_name, "sequence"}, {&last_name, "last"},           {&last_post_name, "last_post"},
               {&headers_name, "headers"},   {&movement_name, "movement"},   {&is_nested_name, "is_nested"},
               {&back_name, "f_back"},       {&by_default_name, "by_default"}, {&lasti_name, "f_lasti"},
               {&find_nan_name, "find_nan"}, {&last_check_name, "last_check"}, {&awaited_name, "awaited"}};
    for (size_t index = 0; index < sizeof all / sizeof *all; index++)
        if (*all[index].name == NULL && (*all[index].name = PyUnicode_InternFromString(all[index].text)) == NULL) return false;
    return one != NULL || (one = PyLong_FromLong(1)) != NULL;
}

static PyObject *kept(PyObject *object) {
    Py_XINCREF(object);
    return object;
}

/* Return a new reference to an item of a list, which other threads may change meanwhile if Python has no GIL. */
static PyObject *item_of(PyObject *list, Py_ssize_t index) {
#ifdef Py_GIL_DISABLED
    return PyList_GetItemRef(list, index);
#else
    return kept(PyList_GetItem(list, index));
#endif
}

/* Return a new reference to a dict's value, as `item_of` does; NULL if there is none, or with an exception set. */
static PyObject *value_of(PyObject *dict, PyObject *key) {
    PyObject *value;
#ifdef Py_GIL_DISABLED
    PyDict_GetItemRef(dict, key, &value);
#else
    value = kept(PyDict_GetItemWithError(dict, key));
#endif
    return value;
}

/* Call a function and ignore its result; return whether it succeeded. */
static bool did(PyObject *function) {
    PyObject *result = PyObject_CallNoArgs(function);
    Py_XDECREF(result);
    return result != NULL;
}

/* Call a function and ignore its result; keep the exception that is set, if there is one. */
static void undo(PyObject *function) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!did(function)) PyErr_WriteUnraisable(function);
    PyErr_Restore(type, value, traceback);
}

static double number_in(PyObject *object, PyObject *name) {
    PyObject *value = PyObject_GetAttr(object, name);
    double number = value == NULL ? -1 : PyFloat_AsDouble(value);
    Py_XDECREF(value);
    return number;
}

#endif
