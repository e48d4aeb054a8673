"""Names that programs import from MegEngine's runtime (``megengine.core._imperative_rt.core2``): waits, switches."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.megengine.distributed._batch import group_end, group_start
from collshim.megengine.tensor import Tensor

__all__ = ["Tensor", "close", "full_sync", "get_option", "group_end", "group_start", "set_option", "sync"]

_options: dict[str, Any] = {"async_level": 2}


def sync() -> None:
    """Wait until a GPU's computations have finished; the CPU's are finished already."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


full_sync = sync


def close() -> None:
    """Do nothing: there is nothing to close."""


def get_option(key: str) -> Any:
    """Return the value passed to ``set_option``; by default 0, or 2 for "async_level"."""
    return _options.get(key, 0)


def set_option(key: str, value: Any) -> None:
    """Store the value of a switch, which has no effect here."""
    _options[key] = value


__getattr__ = saying(__name__, "operators are functions of megengine.functional")
