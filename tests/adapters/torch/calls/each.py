"""Each collective of arrays once, on a rank of two: ``EACH[name](t, two, whole, group)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import collshim.torch.distributed as dist


def _on_root(parts: Any) -> Any:
    return parts if dist.get_rank() == 0 else None


EACH: dict[str, Callable[..., Any]] = {
    "all_reduce": lambda t, two, whole, group=None: dist.all_reduce(t, group=group),
    "reduce": lambda t, two, whole, group=None: dist.reduce(t, 0, group=group),
    "broadcast": lambda t, two, whole, group=None: dist.broadcast(t, 0, group),
    "all_gather": lambda t, two, whole, group=None: dist.all_gather(two, t, group),
    "all_gather_single": lambda t, two, whole, group=None: dist.all_gather_single(whole, t, group),
    "gather": lambda t, two, whole, group=None: dist.gather(t, _on_root(two), 0, group),
    "scatter": lambda t, two, whole, group=None: dist.scatter(t, _on_root(two), 0, group),
    "reduce_scatter": lambda t, two, whole, group=None: dist.reduce_scatter(t, two, group=group),
    "reduce_scatter_single": lambda t, two, whole, group=None: dist.reduce_scatter_single(two[0][:1], t, group=group),
    "all_to_all": lambda t, two, whole, group=None: dist.all_to_all(two, [t, t], group),
    "all_to_all_single": lambda t, two, whole, group=None: dist.all_to_all_single(two[0], t, group=group),
}
"""A tensor, a list of two like it, and one with the elements of two."""
