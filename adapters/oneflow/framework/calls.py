"""Calls of torch's functions on global tensors, which can be repeated with other tensors instead of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, cast

import torch

from collshim import world
from collshim.errors import ArgumentError, also
from collshim.oneflow.framework.layouts import ALONG, FILLING, JOINS, LOSSES, PARTIAL, REDUCING
from collshim.oneflow.framework.tensor import Tensor, plain
from collshim.oneflow.global_tensors import placement as Placement


def is_global(value: Any) -> bool:
    """Return whether a value is a global tensor."""
    return isinstance(value, Tensor) and value.is_global


def globals_in(values: Sequence[Any]) -> list[Any]:
    """Return the global tensors among values, including those in lists; refuse a mixture with OneFlow's local ones."""
    flat = [each for value in values for each in (value if isinstance(value, list | tuple) else (value,))]
    found = [each for each in flat if is_global(each)]
    if found and any(isinstance(each, Tensor) and not each.is_global and each.dim() for each in flat):
        _refuse_mixture()
    placements = [each.placement for each in found if each.dim()]  # a number may be anywhere, such as a gradient's norm
    for other in placements[1:]:
        if not placements[0].is_at(other):
            _refuse_places(placements[0], other)
    return found


def _refuse_mixture() -> NoReturn:
    text = "Got input tensors with inconsistent attributes! attributes of inputs is: global, local"
    raise also(ArgumentError, RuntimeError)(f"{text}; call to_global of the local one{world.place()}")


def _refuse_places(first: Placement, other: Placement) -> NoReturn:
    text = "Expected all tensors to be on the same placement, but found at least two placements"
    raise also(ArgumentError, RuntimeError)(f"{text}, {first} and {other}; call to_global of one{world.place()}")


_ENDING_SUMS = {
    *("clamp_", "clamp_min_", "clamp_max_", "clip_", "relu_", "floor_", "erfinv_", "masked_fill_", "dropout_"),
    *("uniform_", "normal_"),
}
_ADDITIONS = {"add_", "sub_", "__iadd__", "__isub__"}


def require_sum_after(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse a write in place into a tensor that is a sum, if the result would not be the sum of the ranks' results."""
    written = args[0] if args else named.get("tensor")
    if not is_global(written) or PARTIAL not in cast(Any, written)._layouts:
        return
    name = _name_of(func) + ("_" if named.get("inplace") else "")
    operand = args[1] if len(args) > 1 else named.get("other")
    adds_number = name in _ADDITIONS and not isinstance(operand, torch.Tensor)
    writes_masked = name == "__setitem__" and _is_mask(operand)
    if name in _ENDING_SUMS or adds_number or writes_masked:
        text = f"{name} cannot change a partial_sum in place; call to_global with another sbp first"
        raise also(ArgumentError, RuntimeError)(text + world.place())


class Call:
    """A call of a torch function, which can be repeated with other tensors instead of the global ones.

    Attributes:
        name: the function's name.
        is_loss: whether it is a loss.
        counts_whole: whether its result is not the sum of its results for the parts of a sum, as for a loss, or for a
            tensor filled with a number.
    """

    def __init__(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], index: int | None
    ) -> None:
        self._func, self._args, self._kwargs, self._index = func, args, kwargs, index
        self.name = "masked_select" if _is_masked(func, args) else _name_of(func)
        self.is_loss = self.name in LOSSES
        self.counts_whole = self.is_loss or self.name in FILLING or (self.name == "where" and not _all_global(args))

    @property
    def along(self) -> int | None:
        """The axis of a function that computes along one, by default the last; None for other functions."""
        place = ALONG.get(self.name)
        if place is None:
            return None
        axis = self._kwargs.get("dim", self._args[place] if len(self._args) > place else -1)
        return axis if isinstance(axis, int) else -1

    def with_owners(self, owners: torch.Tensor, reduce: Callable[..., Any]) -> torch.Tensor:
        """Return the result for the elements' owners; a reduction is that of ``reduce``."""
        if self.name not in REDUCING:
            found = globals_in([*self._args, *self._kwargs.values()])
            others = [owners] * len(found) if self.name in JOINS else [owners, *map(plain, found[1:])]
            return cast(torch.Tensor, plain(self.result(iter(others))))
        axes = self._kwargs.get("dim", self._args[1] if len(self._args) > 1 else None)
        keep = bool(self._kwargs.get("keepdim", self._args[2] if len(self._args) > 2 else False))
        every = list(range(owners.dim())) if axes is None or axes == () else axes
        return cast(torch.Tensor, reduce(owners, every, keepdim=keep))

    def result(self, instead: Iterator[Any], **changed: Any) -> Any:
        """Return the result for other tensors instead of the global ones, in the same order.

        ``changed`` replaces keyword arguments.
        """

        def exchanged(value: Any) -> Any:
            if isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value):
                return type(value)([exchanged(each) for each in value])
            return next(instead) if is_global(value) else value

        args = [exchanged(arg) for arg in self._args]
        named = {name: exchanged(value) for name, value in self._kwargs.items()}
        result = self._func(*args, **{**named, **changed})
        return result if self._index is None else result[self._index]


def _all_global(values: Sequence[Any]) -> bool:
    return all(map(is_global, values))


def _is_masked(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Return whether the function takes the elements at which a boolean tensor is true."""
    return func is torch.Tensor.__getitem__ and _is_mask(args[1])


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype is torch.bool


def _name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function, or of the attribute, such as ``T``, that it returns."""
    name = getattr(func, "__name__", "")
    return getattr(getattr(func, "__self__", None), "__name__", name) if name == "__get__" else name
