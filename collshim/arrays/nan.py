"""Finds NaN in a rank's input to a reduction (``options(find_nan=True)``)."""

from __future__ import annotations

import torch
from torch import Tensor

from collshim.layout import Parts


def nan_in(parts: Parts) -> str:
    """Return how many elements are NaN and the index of the first one; empty if none is."""
    if isinstance(parts, Tensor):
        return _text(parts, "its input")
    texts = [_text(part, f"input[{rank}]") for rank, part in enumerate(parts)]
    return "; ".join(text for text in texts if text)


def _text(tensor: Tensor, what: str) -> str:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return ""
    found = torch.isnan(tensor if tensor.itemsize > 1 else tensor.float())
    count = int(found.sum())
    if count == 0:
        return ""
    first = tuple(torch.nonzero(found)[0].tolist())
    return f"{count} of {tensor.numel()} elements of {what}, the first at {first}"
