"""Checks of the functions and numbers that a dataset's methods take. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.data.structure import components
from collshim.tensorflow.tensor import dtype_name


def call(function: Callable[..., Any], element: Any) -> Any:
    """Call a function with a tuple's components as arguments; a mapping is one argument."""
    if isinstance(element, tuple) and not isinstance(element, Mapping):
        return function(*element)
    return function(element)


def require_function(function: Any) -> Any:
    """Return a function.

    Raises:
        ValueError: it is something else.
    """
    if not callable(function):
        raise ArgumentValueError(f"A dataset's function must be a callable, but got {function!r} ({type(function)})")
    return function


def whole(number: Any) -> int:
    """Return an integer.

    Raises:
        TypeError: the number is not whole.
    """
    if isinstance(number, float) or getattr(getattr(number, "dtype", None), "kind", "") == "f":
        raise ArgumentTypeError(f"Cannot convert {number} to EagerTensor of dtype int64")
    return int(number)


def holds(predicate: Callable[..., Any], element: Any) -> bool:
    """Return what a predicate returns for an element.

    Raises:
        ValueError: it does not return one boolean.
    """
    found = call(predicate, element)
    of_tensor = isinstance(found, torch.Tensor) and found.dtype is torch.bool and found.numel() == 1
    if not of_tensor and type(found).__name__ not in ("bool", "bool_"):
        raise ArgumentValueError(f"Invalid `predicate`. It must return a boolean scalar, but returned {found!r}.")
    return bool(found)


def joined(first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
    """Yield the elements of one dataset, followed by those of another.

    Raises:
        TypeError: their components have other dtypes.
    """
    kinds: list[Any] = []
    for elements in (first, second):
        for number, element in enumerate(elements):
            if not number:
                own = [getattr(part, "dtype", None) for part in components(element)]
                kinds = kinds or own
                if own != kinds:
                    raise ArgumentTypeError(f"Incompatible dataset elements: {_names(kinds)} vs. {_names(own)}")
            yield element


def _names(kinds: list[Any]) -> list[str]:
    return [dtype_name(kind) if isinstance(kind, torch.dtype) else str(kind) for kind in kinds]
