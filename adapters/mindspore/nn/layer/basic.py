"""``Dense``, ``Flatten``, ``Dropout`` and ``Identity`` of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float, check_int, check_type
from collshim.mindspore.common.initializer import HeUniform, Uniform, initializer
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.common.seed import generator
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.layer.activation import get_activation
from collshim.mindspore.ops.primitive import Primitive

__all__ = ["Dense", "Dropout", "Flatten", "Identity"]


class Dense(Cell):
    """``activation(x @ weight.T + bias)``: ``(..., in_channels)`` becomes ``(..., out_channels)``.

    Args:
        in_channels: the length of the input's last axis.
        out_channels: the length of the output's last axis.
        weight_init: an initializer, its name, a number or a tensor for ``weight``, of shape
            ``(out_channels, in_channels)``. None: ``HeUniform(sqrt(5))``.
        bias_init: the same for ``bias``. None: uniform in ``(-1 / sqrt(in_channels), 1 / sqrt(in_channels))``.
        has_bias: whether there is a bias.
        activation: the name of an activation, a Cell or a primitive.
        dtype: the parameters' dtype.

    Raises:
        TypeError: a number of channels is not an int, ``has_bias`` is not a bool, or ``activation`` has the wrong type.
        ValueError: a number of channels is not positive, or an initial tensor has the wrong shape.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: Any = torch.float32,
    ) -> None:
        super().__init__()
        self.in_channels = check_int(in_channels, "in_channels", self.cls_name, least=1)
        self.out_channels = check_int(out_channels, "out_channels", self.cls_name, least=1)
        self.has_bias = check_bool(has_bias, "has_bias", self.cls_name)
        rule = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(rule, [out_channels, in_channels], dtype), name="weight")
        self.bias = None
        if has_bias:
            rule = Uniform(1 / math.sqrt(in_channels)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(rule, [out_channels], dtype), name="bias")
        self.activation = get_activation(activation, self.cls_name) if isinstance(activation, str) else activation
        if activation is not None and not isinstance(self.activation, Cell | Primitive):
            text = f"the 'activation' must be str or Cell or Primitive, but got {type(activation).__name__}"
            refuse(TypeError, f"For {self.cls_name!r}, {text}")

    def construct(self, x: Any) -> Any:
        """Return the outputs."""
        result = functional.linear(x, self.weight, self.bias)
        return result if self.activation is None else self.activation(result)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        text += f", has_bias={self.has_bias}" if self.has_bias else ""
        return text if self.activation is None else f"{text}, activation={self.activation}"


class Flatten(Cell):
    """Join the input's axes from ``start_dim`` to ``end_dim`` into one.

    Raises:
        ValueError: in a call, the input has no such axis.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x: Any) -> Any:
        """Return the input in the new shape."""
        rank = max(x.dim(), 1)
        if not all(-rank <= axis < rank for axis in (self.start_dim, self.end_dim)):
            refuse(
                ValueError, f"'start_dim' or 'end_dim' out of range: {self.start_dim}, {self.end_dim} of {rank} axes"
            )
        return torch.flatten(x, self.start_dim, self.end_dim)


class Dropout(Cell):
    """Set each element to zero with probability ``p``, and divide the others by ``1 - p``, if the Cell is training.

    Args:
        keep_prob: ``1 - p``, if ``p`` is None.
        p: the probability of zero, at least 0 and below 1.
        dtype: has no effect.

    Raises:
        TypeError: the probability is not a number.
        ValueError: the probability is out of range.
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = torch.float32) -> None:
        super().__init__()
        if p is None:
            check_float(keep_prob, "keep_prob", self.cls_name, 0.0, 1.0, "(]")
        else:
            check_float(float(check_type(p, "p", self.cls_name, float, int)), "p", self.cls_name, 0.0, 1.0, "[)")
        self.p, self.keep_prob = p, keep_prob

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        kept = self.keep_prob if self.p is None else 1 - self.p
        if not self.training or kept == 1:
            return x
        with torch.no_grad():
            mask = torch.empty(tuple(x.shape), dtype=x.dtype).bernoulli_(kept, generator=generator())
        return x * mask.to(x.device) / kept

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class Identity(Cell):
    """Return the input itself; the constructor ignores its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        """Return the input."""
        return input
