"""Where this rank's random numbers come from."""

from __future__ import annotations

import threading

import torch


class _Source(threading.local):
    """Each rank's own, also where ranks are threads."""

    def __init__(self) -> None:
        self.generator = torch.Generator()
        self.generator.seed()


_source = _Source()


def generator() -> torch.Generator:
    """This rank's."""
    return _source.generator


def seed(seed: int) -> None:
    """Begin this rank's numbers at a place that the seed names."""
    _source.generator.manual_seed(int(seed))
