"""This rank's random number generator."""

from __future__ import annotations

import threading

import torch


class _Source(threading.local):
    """The generator of one rank; ranks that are threads have separate generators."""

    def __init__(self) -> None:
        self.generator = torch.Generator()
        self.generator.seed()


_source = _Source()


def generator() -> torch.Generator:
    """Return this rank's generator."""
    return _source.generator


def seed(seed: int) -> None:
    """Seed this rank's generator."""
    _source.generator.manual_seed(int(seed))
