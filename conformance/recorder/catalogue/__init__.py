"""The calls that are recorded from each framework: modules with their ``CALLS``, function by function."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import import_module

from collshim.conformance.recorder.asked import Asked

_MODULES = {
    "mindspore": ("mindspore_comm", "mindspore_inplace"),
    "oneflow": ("oneflow_reductions", "oneflow_moves"),
    "tensorflow": ("tensorflow",),
    "torch": ("torch_reductions", "torch_moves", "torch_groups"),
}
RECORDED = tuple(_MODULES)
"""The frameworks that are recorded."""


@cache
def calls(framework: str) -> tuple[Asked, ...]:
    """Return every call of a framework.

    Raises:
        ValueError: two calls have the same name.
    """
    modules = [import_module(f"{__name__}.{name}") for name in _MODULES[framework]]
    found: tuple[Asked, ...] = tuple(asked for module in modules for asked in module.CALLS)
    names = Counter((one.id, one.world, one.size) for one in found)
    twice = sorted(str(name) for name, count in names.items() if count > 1)
    if twice:
        raise ValueError(f"two calls have the same name: {', '.join(twice)}")
    return found
