"""``mindspore.nn.Cell`` (source: MindSpore 2.10.0): a computation with parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch

from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.context import require_own_parallelism
from collshim.mindspore.tensor import Tensor, settle, wrap

__all__ = ["Cell"]


class Cell:
    """A computation: a call returns ``construct``'s result; if there is a ``bprop``, it computes the gradients.

    ``bprop(*inputs, out, dout)`` returns a gradient for each input. Parameters and Cells that are set as attributes
    belong to it.

    Args:
        auto_prefix: accepted, like ``flags``.
    """

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        self.training = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return ``construct``'s result."""
        require_own_parallelism()
        bprop = getattr(self, "bprop", None)
        if bprop is None:
            return self.construct(*args, **kwargs)
        return wrap(_WithGradient.apply(self, bprop, *args))  # type: ignore[no-untyped-call]

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result, in a derived class."""
        raise AttributeError(f"For {type(self).__name__!r}, the method 'construct' is not defined.")

    def _members(self, kind: type) -> Iterator[tuple[str, Any]]:
        for name, value in vars(self).items():
            entries = enumerate(value) if isinstance(value, list | tuple) else [("", value)]
            for index, entry in entries:
                if isinstance(entry, kind):
                    yield (name if index == "" else f"{name}.{index}"), entry

    def cells(self) -> list[Cell]:
        """Return the Cells in it, one level down."""
        return [cell for _, cell in self._members(Cell)]

    def cells_and_names(self, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """Yield itself and all Cells in it, by path."""
        yield name_prefix, self
        for name, cell in self._members(Cell):
            yield from cell.cells_and_names(f"{name_prefix}.{name}" if name_prefix else name)

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield all parameters, each once, by path; without ``expand`` only its own."""
        seen = set[int]()
        for path, cell in self.cells_and_names(name_prefix):
            for name, parameter in cell._members(Parameter):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter
            if not expand:
                return

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield all parameters."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Return all parameters, by name."""
        return OrderedDict(self.parameters_and_names(expand=recurse))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the parameters that require a gradient, and name each by its path."""
        found = []
        for path, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = path
            if parameter.requires_grad:
                found.append(parameter)
        return found

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the parameters that require no gradient."""
        return [parameter for parameter in self.get_parameters(recurse) if not parameter.requires_grad]

    def insert_param_to_cell(self, param_name: str, param: Parameter, check_name_contain_dot: bool = True) -> None:
        """Set a parameter as an attribute."""
        setattr(self, param_name, param)

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Set a Cell as an attribute."""
        setattr(self, child_name, child_cell)

    def set_train(self, mode: bool = True) -> Cell:
        """Set ``training`` of it and all Cells in it."""
        for _, cell in self.cells_and_names():
            cell.training = mode
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Do nothing: ``value_and_grad`` selects the gradients."""
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: Cells are not compiled."""

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Do nothing: shapes are those of the call."""

    def to_float(self, dst_type: torch.dtype) -> Cell:
        """Convert its parameters to this dtype."""
        for parameter in self.get_parameters():
            with torch.no_grad():
                parameter.data = parameter.data.to(dst_type)
        return self


class _WithGradient(torch.autograd.Function):
    """A Cell's result, with the gradient of its ``bprop``."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, bprop: Callable[..., Any], *inputs: Any) -> Any:
        ctx.bprop, ctx.inputs = bprop, tuple(map(_detach, inputs))
        result = cell.construct(*ctx.inputs)
        ctx.outputs = tuple(map(_detach, result)) if isinstance(result, tuple) else _detach(result)
        if any(result is given for given in ctx.inputs):
            result = cast(Tensor, result).view_as(cast(Tensor, result))
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        received = tuple(wrap(gradient) for gradient in gradients)
        with torch.no_grad():
            found = ctx.bprop(*ctx.inputs, ctx.outputs, received if isinstance(ctx.outputs, tuple) else received[0])
        each = found if isinstance(found, tuple | list) else (found,)
        pairs = zip(each, ctx.inputs, strict=True)
        own = (gradient if isinstance(given, torch.Tensor) else None for gradient, given in pairs)
        return None, None, *own


def _detach(value: Any) -> Any:
    settle(value)
    return cast(Tensor, wrap(value.detach())) if isinstance(value, torch.Tensor) else value
