"""TensorFlow's functions that clip tensors, by bounds or by their norms. Source: TensorFlow 2.21, run eagerly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.arithmetic import axes_of, maximum, minimum, tensor
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import checked
from collshim.tensorflow.tensor import Tensor, adopt


@checked
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Tensor:
    """Clip ``t`` to the range from ``clip_value_min`` to ``clip_value_max``."""
    value = tensor(t)
    return maximum(minimum(value, clip_value_max), clip_value_min)


@checked
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Return the tensor, scaled down so that its norm is at most ``clip_norm``."""
    values = tensor(t)
    length = torch.linalg.vector_norm(values, dim=axes_of(values, axes), keepdim=axes is not None)
    return adopt(values * clip_norm / torch.clamp(length, min=float(clip_norm)))


@checked
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scale tensors down so that their joint norm is at most ``clip_norm``; return them and the old norm."""
    _require_sequence(t_list)
    length = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    if not torch.isfinite(tensor(length)):
        return [None if one is None else adopt(torch.full_like(tensor(one), float("nan"))) for one in t_list], length
    scale = float(clip_norm) / torch.clamp(tensor(length), min=float(clip_norm))
    return [None if one is None else adopt(tensor(one) * scale) for one in t_list], length


@checked
def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Return the joint norm of all tensors; 0 if there are none.

    Raises:
        TypeError: ``t_list`` is not a sequence.
    """
    _require_sequence(t_list)
    parts = [torch.linalg.vector_norm(tensor(one)) for one in t_list if one is not None]
    return adopt(torch.linalg.vector_norm(torch.stack(parts)) if parts else torch.tensor(0.0))


def _require_sequence(t_list: Any) -> None:
    if isinstance(t_list, str) or not isinstance(t_list, Sequence):
        raise ArgumentTypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
