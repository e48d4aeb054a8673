"""Functions as modules (source: MegEngine 1.13.0, ``megengine.module.activation``, ``dropout`` and ``identity``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.megengine.functional import _layers
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter


class ReLU(Module):
    """See ``functional.relu``."""

    def forward(self, x: Any) -> Any:
        """Return the greater of ``x`` and 0."""
        return _layers.relu(x)


class Sigmoid(Module):
    """See ``functional.sigmoid``."""

    def forward(self, inputs: Any) -> Any:
        """Return 1 / (1 + exp(-x))."""
        return _layers.sigmoid(inputs)


class SiLU(Module):
    """See ``functional.silu``."""

    def forward(self, inputs: Any) -> Any:
        """Return x * sigmoid(x)."""
        return _layers.silu(inputs)


class GELU(Module):
    """See ``functional.gelu``."""

    def forward(self, inputs: Any) -> Any:
        """Return ``x`` times the cumulative distribution function of the standard normal distribution at ``x``."""
        return _layers.gelu(inputs)


class LeakyReLU(Module):
    """See ``functional.leaky_relu``."""

    def __init__(self, negative_slope: float = 0.01, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.negative_slope = negative_slope

    def forward(self, inputs: Any) -> Any:
        """Multiply elements below 0 by ``negative_slope``."""
        return _layers.leaky_relu(inputs, self.negative_slope)


class PReLU(Module):
    """See ``functional.prelu``; with one parameter, or one per channel, (1, C, 1, 1)."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_parameters = num_parameters
        shape = (1, num_parameters, 1, 1) if num_parameters > 1 else (1,)
        self.weight = Parameter(np.full(shape, init, np.float32))

    def forward(self, inputs: Any) -> Any:
        """Multiply elements below 0 by the parameter."""
        return _layers.prelu(inputs, self.weight)


class Softmax(Module):
    """See ``functional.softmax``."""

    def __init__(self, axis: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def forward(self, inputs: Any) -> Any:
        """Return exp(inputs) divided by its sum."""
        return _layers.softmax(inputs, self.axis)

    def _module_info_string(self) -> str:
        return f"axis={self.axis}"


class Dropout(Module):
    """See ``functional.nn.dropout``; has no effect in evaluation mode."""

    def __init__(self, drop_prob: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.drop_prob = drop_prob

    def forward(self, inputs: Any) -> Any:
        """Zero random elements."""
        return _layers.dropout(inputs, self.drop_prob, self.training)

    def _module_info_string(self) -> str:
        return f"drop_prob={self.drop_prob}"


class Identity(Module):
    """A module that returns its input."""

    def forward(self, x: Any) -> Any:
        """Return ``x``."""
        return x
