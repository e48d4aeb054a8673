"""``weights_only`` of the collectives of objects: what ``torch.save`` writes travels, and no class of the sender's.

Of torch 2.14 and newer; here with any torch, and shown in the signatures where the installed torch has it.
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
    """What is sent of an object.

    Raises:
        AttributeError, TypeError, pickle.PicklingError: (CollshimErrors too) ``torch.save``'s, where it cannot save it.
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
    """The object, of what was received.

    Raises:
        pickle.UnpicklingError: (a CollshimError too) it has what ``torch.load(weights_only=True)`` does not make.
        MismatchError: the ranks do not agree on ``weights_only``.
    """
    is_saved = isinstance(copy, bytes) and copy.startswith(_MARK)
    if is_saved is not weights_only:
        raise MismatchError(f"weights_only is {weights_only} here and {is_saved} on the rank that gave the object")
    if not weights_only:
        return copy
    try:
        return torch.load(io.BytesIO(copy[len(_MARK) :]), weights_only=True)
    except Exception as error:
        raise also(CollshimError, type(error))(*error.args) from error


def match_installed_signature(function: F) -> F:
    """The function, with the signature of its namesake in the installed torch."""
    signature = inspect.signature(function)
    theirs = inspect.signature(getattr(torch.distributed, function.__name__)).parameters
    kept = [one for name, one in signature.parameters.items() if name != "weights_only" or name in theirs]
    function.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return function
