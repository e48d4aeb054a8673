"""The functions that an adapter lacks. A function is missing if its dotted path does not resolve.

A function that exists and raises NotImplementedError is not missing; it fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NoReturn

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.rank_context import MissingFunctionError, placed, resolve


@cache
def is_missing(path: str) -> bool:
    """Return whether the dotted ``path`` does not resolve."""
    try:
        resolve(path)
    except MissingFunctionError:
        return True
    return False


def require(binding: Binding, prefix: str = "collshim.") -> None:
    """Skip the test if the binding's function is missing."""
    path = placed(prefix, binding.path)
    if is_missing(path):
        skip([path])


def skip(paths: Iterable[str]) -> NoReturn:
    """Skip a test whose functions at these ``paths`` are missing; the summary counts it for each of them."""
    import pytest  # imported here, so that the rest of the suite does not need it

    pytest.skip(f"missing: {', '.join(sorted(paths))}")
