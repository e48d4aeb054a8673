"""PyTorch: ``import collshim.torch as torch`` is torch with ``torch.distributed`` over collshim.

``collshim.torch.distributed`` is collshim's. Every other name is torch's own object, including submodules
(``import collshim.torch.nn.functional as F``).
"""

from __future__ import annotations

from typing import Any

import torch as _torch

from collshim.adapting import fall_through as _fall_through
from collshim.torch import cuda as cuda
from collshim.torch import distributed as distributed
from collshim.torch import pretending as _pretending

_fall_through.install(__name__, "torch")

_for_libraries = _pretending.replace
"""Replaces functions in torch itself when a stand-in begins; returns the function that restores them."""


def __getattr__(name: str) -> Any:
    return getattr(_torch, name)


def __dir__() -> list[str]:
    return sorted({*dir(_torch), "cuda", "distributed"})
