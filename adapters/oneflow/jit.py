"""``oneflow.jit``: decorators that leave functions unchanged, as in OneFlow 0.9.0; and names of later releases."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """Return ``obj`` unchanged, with a warning: OneFlow compiles nothing here either."""
    warnings.warn("oneflow.jit.script leaves its argument unchanged", stacklevel=2)
    return obj


def ignore(drop: bool = False, **kwargs: Any) -> Callable[[T], T]:
    """Return a decorator that leaves a function unchanged, with a warning."""
    warnings.warn("oneflow.jit.ignore leaves its argument unchanged", stacklevel=2)
    return lambda function: function


def _script_if_tracing(function: T) -> T:  # pyright: ignore[reportUnusedFunction]
    return function


def is_scripting() -> bool:
    """Return False: code is never compiled here."""
    return False


def is_tracing() -> bool:
    """Return False: calls are not traced."""
    return False
