"""``mindspore.parallel._utils`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.mindspore.context import get_auto_parallel_context

__all__ = ["_get_parallel_mode"]


def _get_parallel_mode() -> str:
    """Return the mode of ``set_auto_parallel_context``; libraries use this name."""
    return str(get_auto_parallel_context("parallel_mode"))
