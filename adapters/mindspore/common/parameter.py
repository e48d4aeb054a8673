"""``mindspore.Parameter`` (source: MindSpore 2.10.0): a tensor that a Cell owns and that is trained."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import register_kind
from collshim.mindspore.common.dtype import dtype_name
from collshim.mindspore.common.initializer import initializer
from collshim.mindspore.tensor import Tensor, settle, wrap

__all__ = ["Parameter", "ParameterTuple"]
_UNNAMED = "Parameter#"
_NUMBERS = itertools.count()


class Parameter(Tensor):  # type: ignore[metaclass]  # mypy thinks that torch's metaclass differs
    """A named copy of a tensor, whose gradient ``value_and_grad`` returns.

    Args:
        default_input: a tensor, an array, a number or a list.
        name: the parameter's name. None uses a numbered name until a Cell takes the parameter and names it after the
            attribute.
        requires_grad: whether it is one of the Cell's ``trainable_params``.
        layerwise_parallel: whether data parallelism skips its gradient.
        parallel_optimizer: stored, without effect.
    """

    _name: str
    _comm_fusion = 1
    sliced = False
    cache_enable = False
    is_init = False
    inited_param: Parameter | None = None
    layerwise_parallel: bool
    parallel_optimizer: bool

    def __new__(  # noqa: D102
        cls,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> Parameter:
        for option, value in (("requires_grad", requires_grad), ("layerwise_parallel", layerwise_parallel)):
            if not isinstance(value, bool):
                refuse(TypeError, f"The argument `{option}` must be bool type, but got {value!r}")
        made = cast(Parameter, super().__new__(cls, default_input, _dtype_of_number(default_input)))
        made.name = name
        made.layerwise_parallel = layerwise_parallel
        made.parallel_optimizer = parallel_optimizer
        made.requires_grad_(requires_grad and (made.is_floating_point() or made.is_complex()))
        return made

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self._name

    @name.setter
    def name(self, value: str | None) -> None:
        if not isinstance(value, str | None):
            text = "The type of the Parameter's name should be 'string' or 'None', but got "
            refuse(ValueError, f"{text}{type(value)}")
        self._name = (value or "").strip() or f"{_UNNAMED}{next(_NUMBERS)}"

    @property
    def comm_fusion(self) -> int:
        """The number of the fusion group in which MindSpore sends its gradient; stored, without effect.

        Raises:
            TypeError: the new value is not an int.
            ValueError: the new value is negative.
        """
        return self._comm_fusion

    @comm_fusion.setter
    def comm_fusion(self, value: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            refuse(TypeError, f"The input value must be int, but got {type(value).__name__!r}")
        if value < 0:
            refuse(ValueError, f"The input value must be int and must >= 0, but got '{value}' with type 'int'.")
        self._comm_fusion = value

    @property
    def is_unnamed(self) -> bool:
        """Whether the parameter still has a numbered name."""
        return self._name.startswith(_UNNAMED)

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Copy ``data``, cast to the parameter's dtype, into it; the parameter takes its shape."""
        settle(self)
        value = Tensor(data).astype(self.dtype)
        with torch.no_grad():
            if value.shape != self.shape:
                self.data = value
            self.copy_(value)
        return self

    def value(self) -> Tensor:
        """Return the parameter's values as a tensor, through which gradients flow."""
        return cast(Tensor, torch.Tensor.clone(self))

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # torch's is untyped
        shape, dtype = tuple(self.shape), dtype_name(self.dtype)
        return f"Parameter (name={self.name}, shape={shape}, dtype={dtype}, requires_grad={self.requires_grad})"

    def _duplicate(self) -> Parameter:
        return Parameter(self, self.name, self.requires_grad, self.layerwise_parallel)

    def clone(self, init: Any = "same", *, memory_format: Any = None) -> Any:
        """Return a new parameter of the same name, with the same values or an initializer's."""
        made = self._duplicate()
        if not isinstance(init, str) or init != "same":
            made.set_data(initializer(init, self.shape, self.dtype))
        return made


def _dtype_of_number(value: Any) -> torch.dtype | None:
    """Return the dtype of a parameter made from a number, which is short; None if ``value`` is anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return torch.int32 if isinstance(value, int) else torch.float32


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of parameters.

    Raises:
        TypeError: an entry is not a Parameter.
        ValueError: two parameters have the same name.
    """

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:  # noqa: D102
        parameters = tuple(iterable)
        named = dict[str, Parameter]()
        for parameter in parameters:
            if not isinstance(parameter, Parameter):
                raise TypeError(f"ParameterTuple input should be Parameter collection, but got {type(parameter)}")
            if named.setdefault(parameter.name, parameter) is not parameter:
                text = f"The value {parameter} , its name {parameter.name!r} already exists."
                refuse(ValueError, f"{text} Please set a unique name for the parameter.")
        return super().__new__(cls, parameters)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Return new parameters, named ``prefix.`` and the old name, with the same values or an initializer's."""
        made = [parameter.clone(init) for parameter in self]
        for parameter in made:
            parameter.name = f"{prefix}.{parameter.name}"
        return ParameterTuple(made)


register_kind(Parameter, wrap)
