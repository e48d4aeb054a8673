"""``oneflow.jit``: decorators that leave functions as they are, as in OneFlow 0.9.0; and names of later releases."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """``obj`` itself, with a warning: OneFlow compiles nothing here either."""
    warnings.warn("oneflow.jit.script leaves what it is given as it is", stacklevel=2)
    return obj


def ignore(drop: bool = False, **kwargs: Any) -> Callable[[T], T]:
    """A decorator that leaves a function as it is, with a warning."""
    warnings.warn("oneflow.jit.ignore leaves what it is given as it is", stacklevel=2)
    return lambda function: function


def _script_if_tracing(function: T) -> T:  # pyright: ignore[reportUnusedFunction]
    return function


def is_scripting() -> bool:
    """Whether a compiler runs this: none does."""
    return False


def is_tracing() -> bool:
    """Whether calls are recorded: they are not."""
    return False
