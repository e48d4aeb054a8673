"""Metrics of predictions (source: MegEngine 1.13.0, ``megengine.functional.metric``)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.megengine.core.tensor.values import Value, ints
from collshim.megengine.tensor import computes

__all__ = ["topk_accuracy"]


@computes
def topk_accuracy(logits: Value, target: Value, topk: Any = 1) -> Any:
    """Return the fraction of predictions whose label is among the ``topk`` greatest; a list if ``topk`` is one."""
    numbers = ints(topk)
    places = torch.topk(logits, max(numbers), dim=1).indices
    hits = places == target.long().unsqueeze(1)
    shares = [hits[:, :number].float().sum(1).mean() for number in numbers]
    return shares[0] if len(shares) == 1 else shares
