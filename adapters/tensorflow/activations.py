"""More functions of ``tf.nn``: activations, embeddings and losses. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arithmetic import pair, tensor
from collshim.tensorflow.arrays import concat
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.gathering import gather
from collshim.tensorflow.operands import fractions, numbers
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name


def _activation(
    function: Callable[[torch.Tensor], torch.Tensor], accepted: Callable[[torch.Tensor], torch.Tensor] = fractions
) -> Callable[..., Tensor]:
    @checked
    def compute(features: Any, name: str | None = None) -> Tensor:
        return adopt(function(accepted(tensor(features))))

    compute.__doc__ = f"torch's ``{getattr(function, '__name__', 'function')}``."
    return compute


def _selu(features: torch.Tensor) -> torch.Tensor:
    """Compute torch's ``selu``; its slope at 0 is that of positive numbers, as in TensorFlow."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * torch.where(features < 0, alpha * torch.expm1(features.clamp(max=0)), features)


relu6, elu = _activation(functional.relu6, numbers), _activation(functional.elu)
selu = _activation(_selu)
softsign, softplus = _activation(functional.softsign), _activation(functional.softplus)


@checked
def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """Return ``features * sigmoid(beta * features)``."""
    values = fractions(tensor(features))
    return adopt(values * torch.sigmoid(tensor(beta, values.dtype) * values))


swish = silu


@checked
def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Return positive numbers unchanged, and negative numbers times ``alpha``; integers are converted to float32."""
    values = numbers(tensor(features))
    if not values.is_floating_point():
        values = values.float()
    return adopt(functional.leaky_relu(values, float(alpha)))


@checked
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """Return the numbers times the normal distribution function at them, exact or approximated by tanh."""
    return adopt(functional.gelu(fractions(tensor(features)), approximate="tanh" if approximate else "none"))


@checked
def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Return half the sum of the squares."""
    return adopt(fractions(tensor(t)).square().sum() / 2)


@checked
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Add a vector to a tensor along its last axis, or along axis 1 if ``data_format`` begins with ``NC``.

    Raises:
        ValueError: ``data_format`` has a different form.
        InvalidArgumentError: the vector does not have the length of that axis.
    """
    values, shift = pair(value, bias, "BiasAdd")
    if data_format is not None and not (data_format.startswith("N") and "C" in (data_format[1:2], data_format[-1:])):
        raise ArgumentValueError(
            f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}"
        )
    axis = 1 if data_format is not None and data_format.startswith("NC") else values.dim() - 1
    if values.dim() < 2 or list(shift.shape) != [values.shape[axis]]:
        raise invalid_argument(
            f"BiasAdd: a bias of shape {list(shift.shape)} does not fit axis {axis} of shape {list(values.shape)}"
        )
    return adopt(values + shift.reshape(-1, *[1] * (values.dim() - 1 - axis)))


@checked
def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return a tensor with a random fraction of zeros, and the rest scaled up; torch draws the random numbers.

    Raises:
        ValueError: the tensor holds integers.
        InvalidArgumentError: ``rate`` is a number, and not from 0 to below 1. Tensors may be 1: all is zero then.
    """
    values, share = tensor(x), float(rate)
    if not values.is_floating_point():
        raise ArgumentValueError(f"`x.dtype` must be a floating point tensor. Received: {dtype_name(values.dtype)}")
    if not 0 <= share < 1 and not hasattr(rate, "_as_tensor") and not isinstance(rate, torch.Tensor):
        raise invalid_argument(f"rate must be a scalar tensor or a float in the range [0, 1), got {share:g}")
    shape = list(values.shape) if noise_shape is None else list(noise_shape)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return adopt(values * (torch.rand(shape, generator=generator) >= share) / (1 if share == 1 else 1 - share))


@checked
def embedding_lookup(params: Any, ids: Any, max_norm: float | None = None, name: str | None = None) -> Tensor:
    """Return the rows of a table at the indices ``ids``; ``max_norm`` limits each row's norm.

    A list of tensors is a table in parts: the rows of the first tensor, then those of the next, and so on.
    """
    in_parts = isinstance(params, list | tuple) and all(hasattr(part, "dtype") for part in params)
    rows = gather(concat(params, 0) if in_parts else params, ids)
    if max_norm is None:
        return rows
    lengths = torch.linalg.vector_norm(tensor(rows), dim=-1, keepdim=True)
    return adopt(tensor(rows) * max_norm / torch.clamp(lengths, min=max_norm))


@checked
def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Tensor:
    """Return the cross entropy of the sigmoid of each logit with its label."""
    found, wanted = pair(logits, labels)
    return adopt(functional.binary_cross_entropy_with_logits(found, wanted, reduction="none"))


name_functions(globals())
