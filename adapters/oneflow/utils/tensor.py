"""``oneflow.utils.tensor``: conversions between torch's tensors and OneFlow's."""

from __future__ import annotations

from typing import Any

import torch

from collshim.oneflow.framework.tensor import Tensor, adopt, plain


def from_torch(torch_tensor: torch.Tensor) -> Any:
    """Return a ``flow.Tensor`` with the memory of ``torch_tensor``, without its gradient."""
    return adopt(plain(torch_tensor).detach())


def to_torch(flow_tensor: Tensor) -> torch.Tensor:
    """Return a ``torch.Tensor`` with the memory of ``flow_tensor``, without its gradient."""
    detached: torch.Tensor = plain(flow_tensor.detach())
    return detached
