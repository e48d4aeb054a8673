"""``mindspore.ops.composite``: higher-order functions (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool
from collshim.mindspore.gradients import as_weights, differentiate
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
        ops: the function; None if the call passes it.
        reverse: whether the function is called with the last entries first; results keep the sequences' order.
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
    """Like ``Map``, but also applied to the entries of nested lists and tuples."""

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
    """Functions chosen by the types of their arguments: ``@graph.register("Number", "Tensor")`` adds one.

    Args:
        name: the graph's name.
        read_value: has no effect.
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        self.name = name
        self.entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that adds a function for arguments of these types.

        Raises:
            ValueError: there is no type of this name.
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
            TypeError: no function takes these arguments.
        """
        for names, fn in self.entries:
            if len(names) == len(args) and all(_KINDS[name](arg) for name, arg in zip(names, args, strict=True)):
                return fn(*args)
        kinds = ", ".join(type(arg).__name__ for arg in args)
        refuse(TypeError, f"The multitype function graph {self.name!r} has no function for ({kinds})")


class GradOperation:
    """The gradient of a function: ``GradOperation()(fn, weights)(*inputs)``.

    Args:
        get_all: whether the result is a tuple of all inputs' gradients, rather than the first input's gradient.
        get_by_list: whether the result is the gradients of ``weights``; with ``get_all``, a pair of both.
        sens_param: whether the last argument of a call is the output's gradient.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all = check_bool(get_all, "get_all", "GradOperation")
        self.get_by_list = check_bool(get_by_list, "get_by_list", "GradOperation")
        self.sens_param = check_bool(sens_param, "sens_param", "GradOperation")

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Return a function that returns the gradients of ``fn``; without ``weights``, of a Cell's trainable ones.

        Raises:
            TypeError: ``fn`` is not callable; or it has no ``trainable_params``, and ``weights`` is None.
        """
        if not callable(fn):
            refuse(TypeError, f"GradOperation: should get a function or a Cell, but got {type(fn).__name__}")
        if self.get_by_list and weights is None:
            of_cell = getattr(fn, "trainable_params", None)
            if of_cell is None:
                refuse(TypeError, "GradOperation: should get the weights, because the function is not a Cell")
            weights = of_cell()
        parameters = as_weights(weights) if self.get_by_list else ()
        positions = None if self.get_all else () if self.get_by_list else (0,)

        def differentiated(*args: Any, **kwargs: Any) -> Any:
            _, pairs = differentiate(fn, args, kwargs, positions, parameters, sens_param=self.sens_param)
            found = tuple(gradient for _, gradient in pairs)
            count = len(found) - len(parameters)
            of_inputs, of_weights = found[:count], found[count:]
            if not self.get_by_list:
                return of_inputs if self.get_all or not of_inputs else of_inputs[0]
            alone = of_weights[0] if isinstance(weights, torch.Tensor) else of_weights
            return (of_inputs, alone) if self.get_all else alone

        return differentiated


__getattr__ = saying(__name__)
