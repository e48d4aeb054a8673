"""``megengine.dtr``: tensors are not recomputed to save memory; switches have no effect (source: MegEngine 1.13.0)."""

from __future__ import annotations

eviction_threshold: int | str = 0
evictee_minimum_size: int | str = 1024**2
enable_sqrt_sampling = False


def enable() -> None:
    """Do nothing: torch keeps the tensors that a backward pass needs."""


def disable() -> None:
    """Do nothing."""
