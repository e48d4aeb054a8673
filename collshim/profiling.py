"""Ranges of torch's profiler: one as a call is posted, and one while the program waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from torch.profiler import record_function

from collshim.arrays import Arrays
from collshim.work import Work


def in_range(name: str, start: Callable[[], Work[Any]]) -> Work[Any]:
    """Start a call in a range of this name; a wait for it will be in a range ``NAME.wait``.

    If the call is over when it is posted, the first range is all of it.
    """
    with record_function(name):
        work = start()
    if not work.was_over:
        own = ref(work)  # a strong reference from itself would keep a work that the program drops

        def complete(timeout: float | None) -> Arrays:
            posted: Any = own()  # its caller has it
            vars(posted).pop("_complete", None)
            with record_function(f"{name}.wait"):
                return posted._complete(timeout)

        vars(work)["_complete"] = complete
    return work
