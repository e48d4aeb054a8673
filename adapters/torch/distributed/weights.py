"""``weights_only`` of the object collectives: objects are sent as ``torch.save`` writes them, without pickled classes.

torch has it from 2.14 on. Here it works with any torch, but the signatures show it only if the installed torch has it.
"""

from __future__ import annotations

import inspect
import io
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed

from collshim.errors import ArgumentTypeError, CollshimError, MismatchError, also

F = TypeVar("F", bound=Callable[..., Any])

_MARK = b"collshim weights_only\n"


def save(value: Any, weights_only: bool) -> Any:
    """Return an object in the form that is sent.

    Raises:
        AttributeError, TypeError, pickle.PicklingError: (also CollshimErrors) ``torch.save`` cannot save the object.
    """
    if not weights_only:
        return value
    buffer = io.BytesIO()
    buffer.write(_MARK)
    try:
        torch.save(value, buffer)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise also(ArgumentTypeError, type(error))(*error.args) from error
    return buffer.getvalue()


def load(copy: Any, weights_only: bool) -> Any:
    """Return the object from the form that was received.

    Raises:
        pickle.UnpicklingError: (also a CollshimError) it has a class that ``torch.load(weights_only=True)`` refuses.
        MismatchError: the ranks do not agree on ``weights_only``.
    """
    is_saved = isinstance(copy, bytes) and copy.startswith(_MARK)
    if is_saved is not weights_only:
        raise MismatchError(f"weights_only is {weights_only} here and {is_saved} on the rank that sent the object")
    if not weights_only:
        return copy
    try:
        return torch.load(io.BytesIO(copy[len(_MARK) :]), weights_only=True)
    except Exception as error:
        raise also(CollshimError, type(error))(*error.args) from error


def match_installed_signature(function: F) -> F:
    """Decorate a function to show ``weights_only`` only if its namesake in the installed torch has it."""
    signature = inspect.signature(function)
    theirs = inspect.signature(getattr(torch.distributed, function.__name__)).parameters
    kept = [one for name, one in signature.parameters.items() if name != "weights_only" or name in theirs]
    function.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return function
