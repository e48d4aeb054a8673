"""The core of shared memory: the compiled ``_core``, or ``ring`` and ``pipes``, which do the same in Python.

``COLLSHIM_CORE=python`` chooses ``ring`` and ``pipes``. With ``COLLSHIM_CORE=compiled`` it is an error if ``_core`` is
missing.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any

from collshim.errors import ArgumentValueError

_PACKAGE = "collshim.transports.shared_memory"
_IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
_OF_RUNS = ("compiled", "python")
_OF_BUILDS = ("require", "skip")
"""The values of ``COLLSHIM_CORE`` during a build, which have no meaning here."""


def find() -> tuple[Any, str]:
    """Return the module of the form that ``COLLSHIM_CORE`` selects, or None if neither can run here; and a description.

    Raises:
        ImportError: it selects the compiled form, which is missing.
        ArgumentValueError: it has an unknown value.
    """
    asked = os.environ.get("COLLSHIM_CORE", "")
    if asked not in ("", *_OF_RUNS, *_OF_BUILDS):
        raise ArgumentValueError(f"COLLSHIM_CORE is {asked!r}, should be one of {_OF_RUNS}")
    reason = "COLLSHIM_CORE is 'python'"
    if asked != "python":
        try:
            return _compiled(), "compiled"
        except ImportError as error:
            reason = _reason(error)
            if asked == "compiled":
                raise ImportError(f"COLLSHIM_CORE is 'compiled', but {reason}") from error
    if not _keeps_order():
        needed = f"pure Python needs 64-bit Linux on x86-64, not {sys.platform} on {platform.machine()}"
        return None, f"none ({reason}; {needed})"
    return import_module(f"{_PACKAGE}.ring"), f"pure Python ({reason})"


def _compiled() -> Any:
    """Import ``_core``.

    Raises:
        ImportError: it is missing, or was compiled for another kind of Python.
    """
    name = f"{_PACKAGE}._core"
    spec = PathFinder.find_spec(name, [os.path.dirname(__file__)])
    if _IS_FREE_THREADED and spec is not None and str(spec.origin).endswith(".abi3.so"):
        raise ImportError("it was compiled for Pythons with a GIL, and this one is free-threaded")
    return import_module(name)


def _reason(error: ImportError) -> str:
    is_absent = isinstance(error, ModuleNotFoundError)
    return "the extension was not built" if is_absent else f"the extension cannot be loaded: {error}"


def _keeps_order() -> bool:
    """Return whether ``ring`` can run here: see there for the order of stores and loads."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


_module, _description = find()
Ring: Any = getattr(_module, "Ring", None)
"""The class of a rank's end of a group's slots; None if neither form can run here."""
Pipes: Any = getattr(_module, "Pipes", None)
"""The class of a rank's ends of a group's pipes."""
Poster: Any = getattr(_module, "Poster", None)
Messenger: Any = getattr(_module, "Messenger", None)
Repeat: Any = getattr(_module, "Repeat", None)
"""The classes that make calls in one step; None without the compiled form."""
read_far: Callable[[int, int, int, int], bool] | None = getattr(_module, "read_far", None)
"""Reads the memory of another process; None if neither form can run here."""
hold_late_threads: Callable[[int, int], None] | None = getattr(_module, "hold_late_threads", None)
"""See ``late_threads``; None without the compiled form."""


def description() -> str:
    """Return which form is in use, and why."""
    return _description
