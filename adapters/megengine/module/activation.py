"""Functions as modules (source: MegEngine 1.13.0, ``megengine.module.activation`` and its neighbours)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.megengine.functional import _layers
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter


class ReLU(Module):
    """See ``functional.relu``."""

    def forward(self, x: Any) -> Any:
        """0 for what is less."""
        return _layers.relu(x)


class Sigmoid(Module):
    """See ``functional.sigmoid``."""

    def forward(self, inputs: Any) -> Any:
        """1 / (1 + exp(-x))."""
        return _layers.sigmoid(inputs)


class SiLU(Module):
    """See ``functional.silu``."""

    def forward(self, inputs: Any) -> Any:
        """x * sigmoid(x)."""
        return _layers.silu(inputs)


class GELU(Module):
    """See ``functional.gelu``."""

    def forward(self, inputs: Any) -> Any:
        """``x`` times the normal distribution's share below it."""
        return _layers.gelu(inputs)


class LeakyReLU(Module):
    """See ``functional.leaky_relu``."""

    def __init__(self, negative_slope: float = 0.01, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.negative_slope = negative_slope

    def forward(self, inputs: Any) -> Any:
        """A share of what is less than 0."""
        return _layers.leaky_relu(inputs, self.negative_slope)


class PReLU(Module):
    """See ``functional.prelu``: with a parameter, or one of each channel, (1, C, 1, 1)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_parameters = num_parameters
        shape = (1, num_parameters, 1, 1) if num_parameters > 1 else (1,)
        self.weight = Parameter(np.full(shape, init, np.float32))

    def forward(self, inputs: Any) -> Any:
        """A share of what is less than 0."""
        return _layers.prelu(inputs, self.weight)


class Softmax(Module):
    """See ``functional.softmax``."""

    def __init__(self, axis: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def forward(self, inputs: Any) -> Any:
        """exp(inputs) divided by its sum."""
        return _layers.softmax(inputs, self.axis)

    def _module_info_string(self) -> str:
        return f"axis={self.axis}"


class Dropout(Module):
    """See ``functional.nn.dropout``; nothing in evaluation."""

    def __init__(self, drop_prob: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.drop_prob = drop_prob

    def forward(self, inputs: Any) -> Any:
        """Zeros by chance."""
        return _layers.dropout(inputs, self.drop_prob, self.training)

    def _module_info_string(self) -> str:
        return f"drop_prob={self.drop_prob}"


class Identity(Module):
    """What it is given."""

    def forward(self, x: Any) -> Any:
        """``x``."""
        return x
