"""Nested structures: what counts as a structure, its leaves in order, and the same structure around other leaves.

Sequences but text and bytes, mappings, their views and objects of the ``attrs`` package are structures, everything else
is a leaf. Leaves of a mapping come in the order of its sorted keys, so that replicas agree whatever order each filled
its dict in; the result is of the mapping's own class with its own order of keys. Source: TensorFlow 2.21, ``tf.nest``,
and dm-tree 0.1.10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from typing import Any

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.tensor_shape import TensorShape


def is_nested(value: object) -> bool:
    """Whether ``value`` is a structure."""
    if isinstance(value, list | tuple | Mapping):
        return not isinstance(value, TensorShape)
    nested = isinstance(value, Sequence | MappingView) and not isinstance(value, str | bytes)
    return nested or _is_attrs(value)


def _is_attrs(value: object) -> bool:
    return hasattr(type(value), "__attrs_attrs__")


def flatten(structure: Any) -> list[Any]:
    """The leaves in order; a leaf alone gives a list of one."""
    if not is_nested(structure):
        return [structure]
    return [leaf for child in children_of(structure) for leaf in flatten(child)]


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """``flat_sequence`` in the place of ``structure``'s leaves."""
    leaves = iter(flat_sequence)
    result = _packed(structure, leaves)
    if next(leaves, leaves) is not leaves:
        raise ArgumentValueError("pack_sequence_as: flat_sequence has more leaves than the structure")
    return result


def map_structure(function: Callable[[Any], Any], structure: Any) -> Any:
    """``function`` applied to each leaf."""
    return pack_sequence_as(structure, [function(leaf) for leaf in flatten(structure)])


def like(structure: Any, children: Iterable[Any]) -> Any:
    """A structure of ``structure``'s class; a mapping takes its children in order of sorted keys. Views are lists then.

    What is wrapped in a proxy, as the ``wrapt`` package makes them, is wrapped in one again.
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
    """Whether a structure only stands for another one: an object that says of itself to be of the other's class."""
    return hasattr(structure, "__wrapped__") and not issubclass(type(structure), list | tuple | Mapping)


def sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    """The keys in the order that replicas agree on.

    Raises:
        ArgumentTypeError: the keys have no order among each other.
    """
    try:
        return sorted(mapping)
    except TypeError as error:
        raise ArgumentTypeError(f"nest only supports dicts with sortable keys, got {list(mapping)}") from error


def children_of(structure: Any) -> list[Any]:
    """What it holds, in the order that replicas agree on."""
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
    """``values`` in a mapping of the class of ``mapping`` and with its order of keys."""
    if is_proxy(mapping):
        proxy: Any = type(mapping)
        wrapped: Any = mapping
        return proxy(mapping_like(wrapped.__wrapped__, values))
    items = {key: values[key] for key in mapping}
    if isinstance(mapping, defaultdict):
        return type(mapping)(mapping.default_factory, items)
    kind: Any = type(mapping)
    return kind(items)
