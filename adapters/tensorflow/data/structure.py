"""The components of a dataset's elements, in nested tuples and mappings. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collshim.tensorflow import structures
from collshim.tensorflow.composites import as_component


def map_components(function: Callable[..., Any], *elements: Any) -> Any:
    """Apply ``function`` to corresponding components of elements, in nested tuples and mappings; None stays None."""
    first = elements[0]
    if first is None:
        return None
    if isinstance(first, Mapping):
        return structures.mapping_like(
            first, {key: map_components(function, *[one[key] for one in elements]) for key in first}
        )
    if isinstance(first, tuple):
        return structures.like(first, [map_components(function, *parts) for parts in zip(*elements, strict=True)])
    return function(*elements)


def components(element: Any) -> list[Any]:
    """Return the components of an element, in order."""
    found: list[Any] = []
    map_components(found.append, element)
    return found


def as_element(value: Any) -> Any:
    """Convert the components of a function's result to tensors, a list of all components to a tuple."""
    return map_components(as_component, tuple(value) if isinstance(value, list) else value)
