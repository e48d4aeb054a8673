"""``mindspore.parallel._utils`` (source: MindSpore 2.10.0): settings of parallelism that libraries read."""

from __future__ import annotations

from collshim.mindspore.communication.management import get_group_size, get_rank
from collshim.mindspore.context import get_auto_parallel_context, was_set

__all__ = ["_get_device_num", "_get_global_rank", "_get_gradients_mean", "_get_parallel_mode"]


def _get_parallel_mode() -> str:
    """Return the mode set by ``set_auto_parallel_context``."""
    return str(get_auto_parallel_context("parallel_mode"))


def _get_device_num() -> int:
    """Return the number of ranks: ``device_num`` if it was set, otherwise the world's size; 1 in "stand_alone"."""
    if _get_parallel_mode() == "stand_alone":
        return 1
    return int(get_auto_parallel_context("device_num")) if was_set("device_num") else get_group_size()


def _get_global_rank() -> int:
    """Return this rank: ``global_rank`` if it was set, otherwise the rank in the world; 0 in "stand_alone"."""
    if _get_parallel_mode() == "stand_alone":
        return 0
    return int(get_auto_parallel_context("global_rank")) if was_set("global_rank") else get_rank()


def _get_gradients_mean() -> bool:
    """Return whether gradients are averaged."""
    return bool(get_auto_parallel_context("gradients_mean"))
