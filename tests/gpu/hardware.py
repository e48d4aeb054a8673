"""The tests' GPU, the reason to skip them without one, and a way to keep it busy."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

DEVICE = torch.device("cuda")

LONG = 1_500_000_000
"""Clock ticks of ``busy``: most of a second, in which a host that does not wait gets far ahead."""


def lacking() -> str:
    """Describe the tests' missing requirement; return an empty string if there is none."""
    if not torch.cuda.is_available():
        return "torch sees no GPU here"
    return "" if torch.distributed.is_nccl_available() else "this torch was built without NCCL"


def require_gpu(*, cupy: bool = False) -> None:
    """Skip the calling module, with the reason, without a GPU, or without CuPy if it needs that."""
    reason = lacking() or ("CuPy is not installed" if cupy and find_spec("cupy") is None else "")
    if reason:
        pytest.skip(reason, allow_module_level=True)


def busy(ticks: int = LONG) -> torch.cuda.Event:
    """Keep the current stream busy; the event completes when it is free again."""
    torch.cuda._sleep(ticks)
    event = torch.cuda.Event()
    event.record()
    return event
