"""Keep threads that are still in torch's C++ at the end of the process from aborting it: make them wait instead.

A thread can wait in C++ for an answer from a rank or a store that has stopped. If it returns while the interpreter
ends, Python before 3.14 ends it by ``pthread_exit``, and C++ aborts the process ("terminate called without an active
exception"). Only the compiled core can prevent that: see ``threads.h``.
"""

from __future__ import annotations

import ctypes

from collshim.transports.shared_memory import core

_LIBRARY = "libstdc++.so.6"


def hold_late_threads() -> None:
    """Make threads that return from C++ from now on wait for the end of the process, which has begun."""
    if core.hold_late_threads is None:
        return
    try:
        library = ctypes.CDLL(_LIBRARY)  # torch has loaded it
        functions = library._ZSt13set_terminatePFvvE, library.__cxa_current_exception_type
    except (OSError, AttributeError):  # torch was built with a different library, whose threads end as Python ends them
        return
    core.hold_late_threads(*(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions))
