"""PyTorch: ``import collshim.torch as torch`` is torch with ``torch.distributed`` over collshim.

``collshim.torch.distributed`` is collshim's; every other name is torch's own object, the same that ``import torch``
gives. Torch's submodules are reached as attributes (``collshim.torch.nn.functional``), not by an import of that path.
"""

from __future__ import annotations

from typing import Any

import torch as _torch

from collshim.torch import distributed as distributed


def __getattr__(name: str) -> Any:
    return getattr(_torch, name)


def __dir__() -> list[str]:
    return sorted({*dir(_torch), "distributed"})
