"""What each framework is asked: one module per framework, with its ``CALLS``, function by function."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

from collshim.conformance.recorder.asked import Asked
from collshim.frameworks import FRAMEWORKS

RECORDED = tuple(name for name in FRAMEWORKS if (Path(__file__).parent / f"{name}.py").exists())
"""The frameworks that are asked: those that have a module here."""


@cache
def calls(framework: str) -> tuple[Asked, ...]:
    """Everything that a framework is asked.

    Raises:
        ValueError: two calls have one name.
    """
    found: tuple[Asked, ...] = tuple(import_module(f"{__name__}.{framework}").CALLS)
    names = Counter((one.id, one.world, one.size) for one in found)
    twice = sorted(str(name) for name, count in names.items() if count > 1)
    if twice:
        raise ValueError(f"names of calls are given twice: {', '.join(twice)}")
    return found
