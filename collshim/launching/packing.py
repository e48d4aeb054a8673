"""Pack the function and the arguments of a rank's process as bytes."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType
from typing import Any

from collshim.errors import ArgumentTypeError, text_of

_UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError)
"""The exceptions that pickle raises, since it has no common class for them."""

_REMEDY = (
    'write the function into a module, or install cloudpickle (the extra "notebooks"), which sends local functions and '
    'lambdas too; ranks="threads" accepts any'
)


def pack(fn: Callable[..., Any], args: Sequence[Any]) -> bytes:
    """Pickle a function and its arguments; cloudpickle pickles the code of objects that ranks cannot import."""
    by_code, work = _cloudpickle(), (fn, tuple(args))
    if _is_of_a_session(fn):
        if hasattr(sys.modules["__main__"], "__file__"):  # the ranks would look for that file
            raise ArgumentTypeError(
                "launch: the program came from standard input, should be a file: the ranks import it"
            )
        if by_code is None:
            where = "the function is defined in a notebook or a session, which the ranks cannot import"
            raise ArgumentTypeError(f"launch: {where}: {_REMEDY}")
        return by_code(work)
    try:
        return pickle.dumps(work)
    except _UNPICKLABLE as error:
        if by_code is not None:
            with contextlib.suppress(*_UNPICKLABLE):
                return by_code(work)
        remedy = f": {_REMEDY}" if by_code is None else ""
        raise ArgumentTypeError(
            f"launch: {fn!r} or its arguments cannot be sent to another process ({text_of(error)}){remedy}"
        ) from error


def _is_of_a_session(fn: Callable[..., Any]) -> bool:
    """Return whether the function was defined in a notebook or a session, so that the ranks cannot import it."""
    while isinstance(fn, partial):
        fn = fn.func
    main = sys.modules["__main__"]
    has_file = os.path.isfile(getattr(main, "__file__", None) or "")
    return getattr(fn, "__module__", None) == "__main__" and main.__spec__ is None and not has_file


def _cloudpickle() -> Callable[[Any], bytes] | None:
    """Return a function like cloudpickle's ``dumps`` that keeps the files of code; None if it is not installed."""
    try:
        import cloudpickle  # type: ignore[import-untyped, unused-ignore]
    except ModuleNotFoundError:
        return None
    known: Any = cloudpickle.Pickler.dispatch_table

    def reduce_code(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
        make, values = known[CodeType](code)
        return _code_of_file, (code.co_filename, make, values)

    table = ChainMap({CodeType: reduce_code}, known)
    pickler: Any = type("Pickler", (cloudpickle.Pickler,), {"dispatch_table": table})

    def dumps(work: Any) -> bytes:
        file = io.BytesIO()
        pickler(file).dump(work)
        return file.getvalue()

    return dumps


def _code_of_file(path: str, make: Callable[..., CodeType], values: tuple[Any, ...]) -> CodeType:
    """Restore code with the name of its file, for tracebacks and sites: cloudpickle 3.1 sends ``<dynamic-code>``."""
    return make(*values).replace(co_filename=path)
