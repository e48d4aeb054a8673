"""Validates the axes that parts are split or joined along, before anything is sent."""

from __future__ import annotations

from torch import Tensor

from collshim.communicator import Communicator
from collshim.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, also, refusal


def require_axis(collective: str, axis: int, tensor: Tensor, comm: Communicator, name: str = "axis") -> None:
    """Raise an error if ``tensor`` does not have this axis.

    Raises:
        IndexError: the axis is too large; MegEngine raises the same.
        RuntimeError, also IndexError: the axis is negative. MegEngine's ``all_gather`` and ``gather`` raise
            RuntimeError; its other collectives return wrong data.
    """
    if not isinstance(axis, int) or axis < 0:
        require_counted(collective, axis, comm, name, tensor)
    if axis >= tensor.dim():
        expected = f"below {tensor.dim()}"
        raise ArgumentIndexError(f"list index out of range: {_refused(collective, name, axis, expected, tensor, comm)}")


def require_counted(
    collective: str, axis: int, comm: Communicator, name: str = "axis", tensor: Tensor | None = None
) -> None:
    """Raise an error for an axis that no tensor has; a rank without an input can check this too."""
    if not isinstance(axis, int):
        raise ArgumentTypeError(_refused(collective, name, axis, "an int", tensor, comm))
    if axis < 0:
        expected = "counted from the front, MegEngine's collectives have no negative axes"
        raise also(ArgumentIndexError, RuntimeError)(_refused(collective, name, axis, expected, tensor, comm))


def require_concatenable(collective: str, axis: int, tensor: Tensor, comm: Communicator) -> None:
    """Raise the error of ``gather`` if ``tensor`` does not have this axis: AssertionError if it is too large."""
    if isinstance(axis, int) and axis >= tensor.dim():
        shape = tuple(tensor.shape)
        raise also(ArgumentIndexError, AssertionError)(
            f"your concat_axis exceeds the dim of the tensor, the tensor shape is {shape}"
        )
    require_axis(collective, axis, tensor, comm)


def require_divisible(collective: str, axis: int, tensor: Tensor, comm: Communicator, name: str = "axis") -> None:
    """Raise AssertionError if the axis cannot be split into one equal part per rank."""
    require_axis(collective, axis, tensor, comm, name)
    if tensor.shape[axis] % comm.size != 0:
        raise also(ArgumentValueError, AssertionError)(f"current axis: {axis} can't devided by group size")


def _refused(collective: str, name: str, axis: object, expected: str, tensor: Tensor | None, comm: Communicator) -> str:
    context = "" if tensor is None else f"inp of shape {tuple(tensor.shape)}"
    return refusal(collective, name, axis, expected, comm.rank, comm.size, context)
