"""``mindspore.ops.composite``: functions of functions (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool
from collshim.mindspore.gradients import value_and_grad
from collshim.mindspore.ops.function import clip_by_global_norm, clip_by_value

__all__ = [
    "GradOperation",
    "HyperMap",
    "Map",
    "MultitypeFuncGraph",
    "clip_by_global_norm",
    "clip_by_value",
]


class Map:
    """A function applied to the entries of sequences: ``Map()(fn, *sequences)`` or ``Map(fn)(*sequences)``.

    Args:
        ops: the function; None lets the call pass it.
        reverse: whether the last entries come first; results keep the sequences' order.
    """

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Return a tuple of the results."""
        fn, sequences = (args[0], args[1:]) if self.ops is None else (self.ops, args)
        rows = list(zip(*sequences, strict=True))
        results = [self._one(fn, row) for row in (reversed(rows) if self.reverse else rows)]
        return tuple(reversed(results) if self.reverse else results)

    def _one(self, fn: Callable[..., Any], row: tuple[Any, ...]) -> Any:
        return fn(*row)


class HyperMap(Map):
    """The same, and entries that are lists or tuples are gone through too."""

    def _one(self, fn: Callable[..., Any], row: tuple[Any, ...]) -> Any:
        if all(isinstance(entry, list | tuple) for entry in row):
            return tuple(self._one(fn, inner) for inner in zip(*row, strict=True))
        return fn(*row)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, torch.Tensor),
    "Number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "Bool": lambda value: isinstance(value, bool),
    "Int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "Float": lambda value: isinstance(value, float),
    "String": lambda value: isinstance(value, str),
    "Tuple": lambda value: isinstance(value, tuple),
    "List": lambda value: isinstance(value, list),
    "None": lambda value: value is None,
    "Function": callable,
}
_KINDS |= dict.fromkeys(("Int32", "Int64"), _KINDS["Int"]) | dict.fromkeys(("Float32", "Float64"), _KINDS["Float"])


class MultitypeFuncGraph:
    """Functions by the kinds of their arguments: ``@graph.register("Number", "Tensor")`` adds one.

    Args:
        name: its name.
        read_value: accepted.
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that adds a function for arguments of these kinds.

        Raises:
            ValueError: a kind is none of these.
        """
        for name in type_names:
            if name not in _KINDS:
                refuse(
                    ValueError, f"{self.name}: a kind of argument must be one of {', '.join(_KINDS)}, but got {name!r}"
                )

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((type_names, fn))
            return fn

        return add

    def __call__(self, *args: Any) -> Any:
        """Return the result of the first function that takes these arguments.

        Raises:
            TypeError: there is none.
        """
        for names, fn in self.entries:
            if len(names) == len(args) and all(_KINDS[name](arg) for name, arg in zip(names, args, strict=True)):
                return fn(*args)
        kinds = ", ".join(type(arg).__name__ for arg in args)
        refuse(TypeError, f"The multitype function graph {self.name!r} has no function for ({kinds})")


class GradOperation:
    """The gradient of a function: ``GradOperation()(fn, weights)(*inputs)``.

    Args:
        get_all: whether it is a tuple of all inputs' gradients, and not the first one's.
        get_by_list: whether it is that of ``weights``; with ``get_all`` a pair of both.
        sens_param: whether the last argument of a call is the gradient of the output.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all = check_bool(get_all, "get_all", "GradOperation")
        self.get_by_list = check_bool(get_by_list, "get_by_list", "GradOperation")
        self.sens_param = check_bool(sens_param, "sens_param", "GradOperation")

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Return the function that returns the gradients."""
        if self.get_by_list and weights is None:
            weights = fn.trainable_params()  # type: ignore[attr-defined]  # a Cell

        def differentiated(*args: Any) -> Any:
            inputs = args[:-1] if self.sens_param else args
            positions: Any = tuple(range(len(inputs))) if self.get_all else None if self.get_by_list else 0
            both = value_and_grad(fn, positions, weights if self.get_by_list else None, sens_param=self.sens_param)
            return both(*args)[1]

        return differentiated


__getattr__ = saying(__name__)
