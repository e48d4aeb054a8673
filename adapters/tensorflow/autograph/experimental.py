"""``tf.autograph.experimental``: hints to a compiler, without effect. Source: TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.adapting.absent import saying

__all__ = ["do_not_convert", "set_loop_options"]


def do_not_convert(func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the function unchanged, or a decorator that returns functions unchanged."""
    return do_not_convert if func is None else func


def set_loop_options(
    parallel_iterations: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Do nothing: loops run as they are written."""


__getattr__ = saying(__name__)
