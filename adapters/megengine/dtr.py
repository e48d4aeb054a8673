"""``megengine.dtr``: memory is not rematerialized; the switches are accepted (MegEngine 1.13.0)."""

from __future__ import annotations

eviction_threshold: int | str = 0
evictee_minimum_size: int | str = 1024**2
enable_sqrt_sampling = False


def enable() -> None:
    """Do nothing: torch keeps what a backward needs."""


def disable() -> None:
    """Do nothing."""
