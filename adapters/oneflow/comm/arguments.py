"""Validation of ``oneflow.comm``'s arguments, before anything is sent, and how outputs are rebound.

OneFlow's own checks are ``assert`` statements without a message. The errors here are AssertionErrors too, but show the
argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from collshim import world
from collshim.arrays import Array, as_output, as_torch, is_array
from collshim.calls.validation import refuse_kind
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, CollshimError, also, refusal
from collshim.oneflow.framework.tensor import plain


def world_communicator() -> Communicator:
    """Return the communicator of all ranks; the first use joins this rank's world."""
    return world.current().communicator


def argument_error(
    exception: type[Exception], collective: str, what: str, actual: object, expected: object
) -> CollshimError:
    """Return the error for a wrong argument: an ArgumentError that is also an ``exception``."""
    comm = world_communicator()
    return also(ArgumentError, exception)(refusal(collective, what, actual, expected, comm.rank, comm.size))


def require_tensor(collective: str, what: str, value: Array, exception: type[Exception] = AssertionError) -> None:
    """Refuse a value that is not an array, and a global tensor."""
    if not (isinstance(value, Tensor) or is_array(value)):
        raise argument_error(exception, collective, what, type(value), "a tensor")
    if getattr(value, "is_global", False):
        raise _global_error(collective, what)


def require_attribute(collective: str, what: str, value: object, attribute: str) -> None:
    """Refuse a global tensor, and a value that is not an array, if OneFlow reads ``attribute`` of it first."""
    if not (isinstance(value, Tensor) or is_array(value)):
        kind = type(value).__name__
        expected = f"a tensor ({kind!r} object has no attribute {attribute!r})"
        raise argument_error(AttributeError, collective, what, kind, expected)
    if getattr(value, "is_global", False):
        raise _global_error(collective, what)


def _global_error(collective: str, what: str) -> CollshimError:
    return argument_error(AssertionError, collective, what, "a global tensor", "a local one: call its to_local()")


def values(collective: str, what: str, value: Array) -> Tensor:
    """Return ``value``, detached, for reading."""
    require_tensor(collective, what, value)
    return readable(collective, what, value)


def storage(collective: str, what: str, value: Array) -> Tensor:
    """Return ``value``, detached and with the same memory, for writing."""
    require_tensor(collective, what, value)
    return writable(collective, what, value)


def readable(collective: str, what: str, value: Array) -> Tensor:
    """Return an array, detached, for reading."""
    return _detached(collective, what, value, as_torch)


def writable(collective: str, what: str, value: Array) -> Tensor:
    """Return an array, detached and with the same memory, for writing."""
    return _detached(collective, what, value, as_output)


def require_target(collective: str, what: str, value: Array) -> None:
    """Refuse, before anything is sent, a value that ``rebind`` can neither rebind nor write."""
    require_tensor(collective, what, value)
    if isinstance(value, Tensor):
        refuse_kind(world_communicator(), collective, value)
    else:
        storage(collective, what, value)


def require_no_leaf(collective: str, tensor: Array) -> None:
    """Refuse a leaf that requires a gradient, as OneFlow's reductions do."""
    if isinstance(tensor, Tensor) and tensor.is_leaf and tensor.requires_grad and torch.is_grad_enabled():
        expected = "a non-leaf: a leaf Tensor that requires grad is being used in an in-place operation"
        raise argument_error(RuntimeError, collective, "tensor", "a leaf that requires grad", expected)


def require_list(collective: str, what: str, value: object) -> list[Any]:
    """Refuse a value that is not a list with one entry per rank."""
    size = world_communicator().size
    if not isinstance(value, list):
        raise argument_error(AssertionError, collective, what, type(value), "a list")
    if len(value) != size:
        raise argument_error(AssertionError, collective, f"length of {what}", len(value), f"{size}, one entry per rank")
    return value


def require_rank(collective: str, what: str, value: object) -> None:
    """Refuse a value that is not an int; the engine refuses an int that is not a rank."""
    if not isinstance(value, int):
        raise argument_error(AssertionError, collective, what, f"{value!r} of {type(value)}", "an int, a rank")


def rebind(target: Array, source: Array) -> None:
    """Set ``target.data = source``, so that they share memory; write to ``target`` if it is not a torch tensor."""
    if isinstance(target, Tensor):
        target.data = plain(as_torch(source).detach())
    else:
        as_output(target).copy_(as_torch(source))


def _detached(collective: str, what: str, value: Array, convert: Callable[..., Tensor]) -> Tensor:
    """Return a detached tensor; add the function and the rank to the text of an error."""
    try:
        return cast(Tensor, plain(convert(value, what=what).detach()))
    except ArgumentError as error:
        comm = world_communicator()
        raise type(error)(f"{collective}: {error} (rank {comm.rank} of {comm.size})") from error
