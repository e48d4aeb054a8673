"""Nested structures: which objects are structures, their leaves in order, and structures with other leaves.

Structures are sequences except text and bytes, mappings, their views and objects of the ``attrs`` package; everything
else is a leaf. Leaves of a mapping are in the order of its sorted keys, so that replicas agree even if they filled
their dicts in different orders; the result has the mapping's class and its own order of keys. Source: TensorFlow 2.21,
``tf.nest``, and dm-tree 0.1.10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from typing import Any

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.tensor_shape import TensorShape


def is_nested(value: object) -> bool:
    """Return whether ``value`` is a structure."""
    if isinstance(value, list | tuple | Mapping):
        return not isinstance(value, TensorShape)
    nested = isinstance(value, Sequence | MappingView) and not isinstance(value, str | bytes)
    return nested or _is_attrs(value)


def _is_attrs(value: object) -> bool:
    return hasattr(type(value), "__attrs_attrs__")


def flatten(structure: Any) -> list[Any]:
    """Return the leaves in order; a leaf itself is returned in a list."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in children_of(structure) for leaf in flatten(child)]


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """Return ``structure`` with its leaves replaced by ``flat_sequence``."""
    leaves = iter(flat_sequence)
    result = _packed(structure, leaves)
    if next(leaves, leaves) is not leaves:
        raise ArgumentValueError("pack_sequence_as: flat_sequence has more leaves than the structure")
    return result


def map_structure(function: Callable[[Any], Any], structure: Any) -> Any:
    """Apply ``function`` to each leaf."""
    return pack_sequence_as(structure, [function(leaf) for leaf in flatten(structure)])


def like(structure: Any, children: Iterable[Any]) -> Any:
    """Return a structure of ``structure``'s class, or a list for a view; a mapping's children are in sorted-key order.

    For a proxy, such as those of the ``wrapt`` package, the result is wrapped in a proxy again.
    """
    if is_proxy(structure):
        proxy: Any = type(structure)
        return proxy(like(structure.__wrapped__, children))
    if isinstance(structure, Mapping):
        return mapping_like(structure, dict(zip(sorted_keys(structure), children, strict=True)))
    if _is_attrs(structure) or (isinstance(structure, tuple) and hasattr(structure, "_fields")):
        return type(structure)(*children)
    return list(children) if isinstance(structure, MappingView | range) else type(structure)(children)


def is_proxy(structure: object) -> bool:
    """Return whether a structure is a proxy: an object that claims to be of another object's class."""
    return hasattr(structure, "__wrapped__") and not issubclass(type(structure), list | tuple | Mapping)


def sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    """Return the keys in the order that replicas agree on.

    Raises:
        ArgumentTypeError: the keys cannot be sorted.
    """
    try:
        return sorted(mapping)
    except TypeError as error:
        raise ArgumentTypeError(f"nest only supports dicts with sortable keys, got {list(mapping)}") from error


def children_of(structure: Any) -> list[Any]:
    """Return a structure's children, in the order that replicas agree on."""
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted_keys(structure)]
    if _is_attrs(structure):
        return [getattr(structure, attribute.name) for attribute in type(structure).__attrs_attrs__]
    return list(structure)


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if is_nested(structure):
        return like(structure, [_packed(child, leaves) for child in children_of(structure)])
    try:
        return next(leaves)
    except StopIteration:
        raise ArgumentValueError("pack_sequence_as: flat_sequence has fewer leaves than the structure") from None


def mapping_like(mapping: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """Return ``values`` in a mapping of the class of ``mapping``, with its order of keys."""
    if is_proxy(mapping):
        proxy: Any = type(mapping)
        wrapped: Any = mapping
        return proxy(mapping_like(wrapped.__wrapped__, values))
    items = {key: values[key] for key in mapping}
    if isinstance(mapping, defaultdict):
        return type(mapping)(mapping.default_factory, items)
    kind: Any = type(mapping)
    return kind(items)
