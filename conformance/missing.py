"""What an adapter does not offer: a function is missing when its dotted path does not resolve.

A function that is there and raises NotImplementedError is not missing; it fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NoReturn

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.rank_context import MissingFunctionError, placed, resolve


@cache
def is_missing(path: str) -> bool:
    """Whether the dotted ``path`` does not resolve."""
    try:
        resolve(path)
    except MissingFunctionError:
        return True
    return False


def require(binding: Binding, prefix: str = "collshim.") -> None:
    """Go on with a test, or skip it where its function is missing."""
    path = placed(prefix, binding.path)
    if is_missing(path):
        skip([path])


def skip(paths: Iterable[str]) -> NoReturn:
    """Skip a test whose functions of these ``paths`` are missing; the summary counts it by them."""
    import pytest  # here, so that the rest of the suite is imported without it

    pytest.skip(f"missing: {', '.join(sorted(paths))}")
