"""``mindspore.parallel._auto_parallel_context``: the settings of parallelism as methods (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from collshim.mindspore.context import (
    get_auto_parallel_context,
    reset_auto_parallel_context,
    set_auto_parallel_context,
    was_set,
)

__all__ = ["auto_parallel_context"]


class _AutoParallelContext:
    """Methods for the settings: ``get_device_num()``, ``set_device_num(8)``, ``get_device_num_is_set()`` and so on."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        way, _, setting = name.partition("_")
        if way == "get" and setting.endswith("_is_set"):
            return partial(was_set, setting.removesuffix("_is_set"))
        if way == "get":
            return partial(get_auto_parallel_context, setting)
        if way != "set":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda value: set_auto_parallel_context(**{setting: value})

    def reset(self) -> None:
        """Reset the settings to their defaults."""
        reset_auto_parallel_context()


_CONTEXT = _AutoParallelContext()


def auto_parallel_context() -> _AutoParallelContext:
    """Return this rank's settings."""
    return _CONTEXT
