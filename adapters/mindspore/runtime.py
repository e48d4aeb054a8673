"""``mindspore.runtime`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import torch

from collshim.adapting.absent import saying

__all__ = ["synchronize"]


def synchronize() -> None:
    """Wait until this rank's computations are complete; on the CPU they always are."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


__getattr__ = saying(__name__)
