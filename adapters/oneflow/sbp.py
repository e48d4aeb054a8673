"""``oneflow.sbp``: layouts of global tensors on ranks, one for each dimension of ranks."""

from __future__ import annotations

from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.oneflow.global_tensors import sbp

broadcast = sbp("broadcast")
partial_sum = sbp("partial_sum")
_MAXIMUM = 6


def split(dim: int | None = None, *, axis: int | None = None) -> sbp:
    """Return the layout that splits along dimension ``dim``, also called ``axis``.

    Raises:
        TypeError: there is neither ``dim`` nor ``axis``.
        AssertionError: ``dim`` is not an int.
        RuntimeError: ``dim`` is negative or greater than 5.
    """
    along = axis if dim is None else dim
    if along is None:
        raise ArgumentTypeError("split_sbp() missing 1 required argument: 'dim'.")
    if not isinstance(along, int):
        raise also(ArgumentValueError, AssertionError)(f"sbp.split: dim is {along!r}, should be an int")
    if along < 0:
        raise also(ArgumentValueError, RuntimeError)(f"Split axis must not be negative, but got {along}!")
    if along >= _MAXIMUM:
        raise also(ArgumentValueError, RuntimeError)(f"split: axis {along} is too large, should be below {_MAXIMUM}")
    return sbp.of(int(along))


__all__ = ["broadcast", "partial_sum", "sbp", "split"]
