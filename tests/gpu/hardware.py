"""The GPU that the tests run on, why they are skipped where there is none, and how it is kept busy."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

DEVICE = torch.device("cuda")

LONG = 1_500_000_000
"""Clock ticks that ``busy`` takes: most of a second, in which a host that does not wait gets far ahead."""


def lacking() -> str:
    """What is missing for these tests here; empty where nothing is."""
    if not torch.cuda.is_available():
        return "torch sees no GPU here"
    return "" if torch.distributed.is_nccl_available() else "this torch was built without NCCL"


def require_gpu(*, cupy: bool = False) -> None:
    """Skip the module that says this where there is no GPU, or no CuPy for what needs it, with the reason."""
    reason = lacking() or ("CuPy is not installed" if cupy and find_spec("cupy") is None else "")
    if reason:
        pytest.skip(reason, allow_module_level=True)


def busy(ticks: int = LONG) -> torch.cuda.Event:
    """Keep the current stream busy; the event is over when it is free again."""
    torch.cuda._sleep(ticks)
    event = torch.cuda.Event()
    event.record()
    return event
