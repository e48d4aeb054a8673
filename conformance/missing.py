"""What an adapter does not offer: a function is missing when its dotted path does not resolve.

A function that is there and raises NotImplementedError is not missing; it fails.
"""

from __future__ import annotations

from collections import Counter

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.places import MissingFunctionError, resolve

MISSING: Counter[str] = Counter()  # by dotted path: how many tests could not be run


def is_missing(binding: Binding, prefix: str = "collshim.") -> bool:
    """Whether ``binding``'s function does not resolve under ``prefix``; counts it where it does not."""
    try:
        resolve(prefix + binding.path)
    except MissingFunctionError:
        MISSING[prefix + binding.path] += 1
        return True
    return False
