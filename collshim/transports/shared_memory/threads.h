/* Threads that come back from torch's C++ while the interpreter ends; part of `_core.c`.
 *
 * Before 3.14, Python ends such a thread by unwinding its stack. Parts of C++ do not allow that, and call std::terminate,
 * which aborts the process although the program has ended well. So at its end a process lets these threads wait. */
#ifndef COLLSHIM_THREADS_H
#define COLLSHIM_THREADS_H

#include <pthread.h>

typedef void (*terminate_t)(void);

static pthread_t ending_thread;
static terminate_t earlier_terminate;
static void *(*current_exception)(void);

/* End the process as before if an exception of C++ is the cause, or if this is the thread that ends the process. */
static void wait_for_the_end(void) {
    if (current_exception() != NULL || pthread_equal(pthread_self(), ending_thread)) earlier_terminate();
    for (;;) pause();
}

/* Let late threads wait, given the addresses of std::set_terminate and __cxa_current_exception_type. */
static PyObject *hold_late_threads(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    if (!has_arguments(count, 2)) return NULL;
    terminate_t (*set_terminate)(terminate_t) = (terminate_t(*)(terminate_t))(uintptr_t)integer(given[0]);
    void *(*current)(void) = (void *(*)(void))(uintptr_t)integer(given[1]);
    if (PyErr_Occurred()) return NULL;
    ending_thread = pthread_self();
    if (earlier_terminate == NULL) current_exception = current, earlier_terminate = set_terminate(wait_for_the_end);
    Py_RETURN_NONE;
}

#endif
