"""``megengine.config``: switches of MegEngine's kernels, which have no effect here (source: MegEngine 1.13.0)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from collshim.adapting.absent import saying

__all__ = [
    "async_level",
    "benchmark_kernel",
    "benchmark_with_subprocess",
    "deterministic_kernel",
    "disable_memory_forwarding",
]

benchmark_kernel = False
deterministic_kernel = False
benchmark_with_subprocess = False
async_level = 2
disable_memory_forwarding = False
_compute_mode = "default"
_bn_format = "dim_1c11"
_auto_format_convert = False


@contextmanager
def _override(
    benchmark_kernel: bool | None = None,
    deterministic_kernel: bool | None = None,
    async_level: int | None = None,
    compute_mode: str | None = None,
) -> Iterator[None]:
    """Set switches inside the block; None leaves a switch unchanged."""
    given: dict[str, Any] = {"benchmark_kernel": benchmark_kernel, "deterministic_kernel": deterministic_kernel}
    given |= {"async_level": async_level, "_compute_mode": compute_mode}
    switches = globals()
    earlier = {name: switches[name] for name in given}
    switches.update({name: value for name, value in given.items() if value is not None})
    try:
        yield
    finally:
        switches.update(earlier)


__getattr__ = saying(__name__)
