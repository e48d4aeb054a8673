"""Batch normalization of global tensors: as in OneFlow 0.9.0, each rank normalizes its own rows."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from collshim.oneflow.framework import parts
from collshim.oneflow.framework.layouts import BROADCAST
from collshim.oneflow.framework.tensor import plain


def batch_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Return torch's ``batch_norm`` of each rank's rows of a global tensor, and update the statistics with this rank's.

    So the running statistics differ between the ranks. If the input is ``broadcast``, all ranks have all rows.
    """
    own, pieces = _rows(input) if training else (0, [plain(input)])
    mean, var, weight, bias = map(plain, (running_mean, running_var, weight, bias))
    return torch.cat(
        [
            functional.batch_norm(
                piece,
                mean if index == own else None,
                var if index == own else None,
                weight=weight,
                bias=bias,
                training=training,
                momentum=momentum,
                eps=eps,
            )
            for index, piece in enumerate(pieces)
        ]
    )


def _rows(input: Any) -> tuple[int | None, list[torch.Tensor]]:
    """Return all ranks' rows, and the index of this rank's; None if it is not in the placement."""
    place = input.placement
    dims = [dim for dim, each in enumerate(input.sbp) if each.layout != BROADCAST]
    counts = [place.ranks.shape[dim] for dim in dims]
    index, position = 0, parts.position(place)
    for dim, count in zip(dims, counts, strict=True):
        index = index * count + (position[dim] if position else 0)
    return index if position else None, list(plain(input).tensor_split(math.prod(counts)))
