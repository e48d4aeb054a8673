"""What an adapter does not offer: a function is missing when its dotted path does not resolve.

A function that is there and raises NotImplementedError is not missing; it fails.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.places import MissingFunctionError, placed, resolve

MISSING: Counter[str] = Counter()  # by dotted path: how many tests were not run


@cache
def is_missing(path: str) -> bool:
    """Whether the dotted ``path`` does not resolve."""
    try:
        resolve(path)
    except MissingFunctionError:
        return True
    return False


def require(binding: Binding, prefix: str = "collshim.") -> None:
    """Go on with a test, or count its function as missing and skip it."""
    import pytest  # here, so that the rest of the suite is imported without it

    path = placed(prefix, binding.path)
    if is_missing(path):
        MISSING[path] += 1
        pytest.skip(f"missing: {path}")
