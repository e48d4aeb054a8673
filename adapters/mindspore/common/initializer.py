"""``mindspore.common.initializer`` (source: MindSpore 2.10.0): rules for filling tensors.

Random numbers come from torch, with the seed of ``set_seed``.
"""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.common.seed import generator
from collshim.mindspore.tensor import Tensor

__all__ = [
    "Constant",
    "HeNormal",
    "HeUniform",
    "Identity",
    "Initializer",
    "Normal",
    "One",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "initializer",
]


class Initializer:
    """A rule that fills tensors: called with a shape and a dtype, it returns a torch tensor."""

    def __call__(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a new tensor."""
        values = torch.empty(shape, dtype=dtype if dtype.is_floating_point else torch.float32)
        return self.fill(values).to(dtype)

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        raise NotImplementedError(f"{type(self).__name__}.fill")


class Constant(Initializer):
    """Set all values to ``value``."""

    def __init__(self, value: float) -> None:
        self.value = value

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return values.fill_(self.value)


class Zero(Constant):
    """Set all values to 0."""

    def __init__(self) -> None:
        super().__init__(0)


class One(Constant):
    """Set all values to 1."""

    def __init__(self) -> None:
        super().__init__(1)


class Identity(Initializer):
    """Set the values on the diagonal of a matrix to 1, and all others to 0."""

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it; raise ValueError if it is no matrix."""
        if values.dim() != 2:
            refuse(ValueError, f"For Identity initializer, the shape must be that of a matrix, but got {values.shape}")
        return torch.nn.init.eye_(values)


class Normal(Initializer):
    """Draw values from a normal distribution."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        self.sigma, self.mean = sigma, mean

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return values.normal_(self.mean, self.sigma, generator=generator())


class TruncatedNormal(Normal):
    """Draw values from a normal distribution, truncated at ``a`` and ``b`` standard deviations from the mean."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(sigma, mean)
        self.a, self.b = a, b

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        low, high = self.mean + self.a * self.sigma, self.mean + self.b * self.sigma
        return torch.nn.init.trunc_normal_(values, self.mean, self.sigma, low, high, generator())


class Uniform(Initializer):
    """Draw values from a uniform distribution over (-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        self.scale = scale

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return values.uniform_(-self.scale, self.scale, generator=generator())


class XavierNormal(Initializer):
    """Glorot initialization with a normal distribution, for weights of shape (outputs, inputs, ...)."""

    def __init__(self, gain: float = 1) -> None:
        self.gain = gain

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return torch.nn.init.xavier_normal_(values, self.gain, generator())


class XavierUniform(Initializer):
    """Glorot initialization with a uniform distribution, for weights of shape (outputs, inputs, ...)."""

    def __init__(self, gain: float = 1) -> None:
        self.gain = gain

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return torch.nn.init.xavier_uniform_(values, self.gain, generator())


class HeUniform(Initializer):
    """He initialization with a uniform distribution, for weights of shape (outputs, inputs, ...)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        self.arguments: tuple[float, Any, Any] = (negative_slope, mode, nonlinearity)

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return torch.nn.init.kaiming_uniform_(values, *self.arguments, generator())


class HeNormal(HeUniform):
    """He initialization with a normal distribution, for weights of shape (outputs, inputs, ...)."""

    def fill(self, values: torch.Tensor) -> torch.Tensor:
        """Fill the tensor and return it."""
        return torch.nn.init.kaiming_normal_(values, *self.arguments, generator())


_NAMED: dict[str, type[Initializer]] = {
    "zeros": Zero,
    "zero": Zero,
    "ones": One,
    "one": One,
    "identity": Identity,
    "normal": Normal,
    "truncatednormal": TruncatedNormal,
    "uniform": Uniform,
    "xavier_normal": XavierNormal,
    "xaviernormal": XavierNormal,
    "xavier_uniform": XavierUniform,
    "xavieruniform": XavierUniform,
    "he_normal": HeNormal,
    "henormal": HeNormal,
    "he_uniform": HeUniform,
    "heuniform": HeUniform,
}


def initializer(init: Any, shape: Any = None, dtype: Any = torch.float32) -> Tensor:
    """Return a tensor filled by a rule, a rule's name or a number; or a copy, if ``init`` is a tensor.

    Raises:
        ValueError: no rule has this name, ``shape`` is missing, or ``init`` is a tensor of a different shape.
        TypeError: ``init`` is not a tensor, a rule, a name or a number.
    """
    if isinstance(init, torch.Tensor):
        wanted = (shape,) if isinstance(shape, int) else shape
        if wanted is not None and tuple(init.shape) != tuple(wanted):
            text = f"should be same as the argument 'shape', but got {list(init.shape)} and {list(wanted)}"
            refuse(ValueError, f"For 'initializer', the shape of the 'init' argument {text}")
        return Tensor(init, dtype)
    rule = _rule(init)
    if shape is None:
        refuse(ValueError, "For 'initializer', the 'shape' must be given, but got None")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        refuse(ValueError, f"For 'initializer', the 'shape' must be positive ints, but got {shape}")
    return Tensor(rule(sizes, torch_dtype(dtype)))


def _rule(init: Any) -> Initializer:
    if isinstance(init, Initializer):
        return init
    if isinstance(init, int | float):
        return Constant(init)
    if not isinstance(init, str):
        refuse(TypeError, f"For 'initializer', 'init' must be a name, a number or an Initializer, but got {type(init)}")
    if init.lower() not in _NAMED:
        refuse(ValueError, f"For 'initializer', the name must be one of {', '.join(_NAMED)}, but got {init!r}")
    return _NAMED[init.lower()]()
