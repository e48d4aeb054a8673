"""``tf.nest``: nested structures. Source: TensorFlow 2.21, run on CPU, and dm-tree 0.1.10.

Structures are sequences except text and bytes, mappings, their views and objects of ``attrs``; a mapping's leaves are
in the order of its sorted keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow import structures
from collshim.tensorflow.composites import RaggedTensor, SparseTensor
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.structures import is_nested

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves in order; a leaf itself is returned in a list.

    Args:
        structure: a structure, or a leaf.
        expand_composites: whether ``IndexedSlices``, ragged and sparse tensors count as structures of their tensors,
            and distributed values of their components.

    Raises:
        TypeError: the keys of a mapping have no order.
    """
    leaves = structures.flatten(structure)
    return [part for leaf in leaves for part in _components(leaf)] if expand_composites else leaves


def _components(leaf: Any) -> list[Any]:
    if isinstance(leaf, IndexedSlices):
        return [part for part in (leaf.values, leaf.indices, leaf.dense_shape) if part is not None]
    if isinstance(leaf, RaggedTensor):
        return [leaf.values, leaf.row_splits]
    if isinstance(leaf, SparseTensor):
        return [leaf.indices, leaf.values, leaf.dense_shape]
    return list(leaf.values) if hasattr(leaf, "_shown") and not hasattr(leaf, "assign") else [leaf]


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Apply ``func`` to each leaf, or to the leaves of several structures at the same place, in the first's structure.

    Raises:
        TypeError: ``func`` cannot be called, a keyword is unknown, or the structures' types differ.
        ValueError: there is no structure, or the structures differ.
    """
    if not callable(func):
        raise ArgumentTypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ArgumentValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", False)
    if kwargs:
        raise ArgumentValueError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: {list(kwargs)}"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    columns = zip(*[structures.flatten(one) for one in structure], strict=True)
    return structures.pack_sequence_as(structure[0], [func(*leaves) for leaves in columns])


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """Return ``structure`` with its leaves replaced by ``flat_sequence``.

    Raises:
        TypeError: ``flat_sequence`` is not a sequence.
        ValueError: ``flat_sequence`` has more or fewer leaves.
    """
    if not is_nested(flat_sequence):
        kind = type(flat_sequence)
        raise ArgumentTypeError(
            f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found incompatible type `{kind}` "
            "instead."
        )
    leaves = list(flat_sequence)
    if expand_composites:
        leaves = _joined(structure, leaves)
    if not is_nested(structure):
        if len(leaves) != 1:
            raise ArgumentValueError(
                f"The target structure is of type `{type(structure)}`\n  {structure}\nHowever the input is a sequence "
                f"({type(flat_sequence)}) of length {len(leaves)}.\n  {flat_sequence}\nnest cannot guarantee that it "
                "is safe to map one to the other."
            )
        return leaves[0]
    atoms = len(structures.flatten(structure))
    if atoms != len(leaves):
        raise ArgumentValueError(
            f"Could not pack sequence. Structure had {atoms} atoms, but flat_sequence had {len(leaves)} items.  "
            f"Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return structures.pack_sequence_as(structure, leaves)


def _joined(structure: Any, parts: list[Any]) -> list[Any]:
    """Reassemble ``IndexedSlices``, ragged and sparse tensors from parts, if the number of parts fits the structure."""
    own = structures.flatten(structure)
    counts = [len(_components(leaf)) if type(leaf) in _MADE_OF_PARTS else 1 for leaf in own]
    if sum(counts) != len(parts):
        return parts
    rest = iter(parts)
    each = [[next(rest) for _ in range(count)] for count in counts]
    made = zip(own, each, strict=True)
    return [_MADE_OF_PARTS[type(leaf)](*found) if type(leaf) in _MADE_OF_PARTS else found[0] for leaf, found in made]


_MADE_OF_PARTS: dict[type, Callable[..., Any]] = {
    IndexedSlices: IndexedSlices,
    RaggedTensor: RaggedTensor.from_row_splits,
    SparseTensor: SparseTensor,
}
"""For each kind of tensor that consists of parts, a function that makes it from them."""


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise an error unless both have the same structure.

    Raises:
        ValueError: their numbers of elements or keys differ, or only one is a structure.
        TypeError: their types differ, and ``check_types`` is True.
    """
    found = _difference(nest1, nest2, check_types)
    if found is not None:
        kind, reason = found
        raise kind(
            f"The two structures don't have the same nested structure.\n\nFirst structure: {_text(nest1)}\n\n"
            f"Second structure: {_text(nest2)}\n\nMore specifically: {reason}\nEntire first structure:\n"
            f"{_dots(nest1)}\nEntire second structure:\n{_dots(nest2)}"
        )


def _difference(first: Any, second: Any, check_types: bool) -> tuple[type[Exception], str] | None:
    """Return the error for the first difference, and its description; None if there is no difference."""
    if is_nested(first) != is_nested(second):
        nested, other = (first, second) if is_nested(first) else (second, first)
        return (
            ArgumentValueError,
            f'Substructure "{_text(nested)}" is a sequence, while substructure "{_text(other)}" is not',
        )
    if not is_nested(first):
        return None
    if check_types and not _same_type(first, second):
        return ArgumentTypeError, (
            f"The two namedtuples don't have the same sequence type. First structure {_text(first)} has type "
            f"{type(first).__name__}, while second structure {_text(second)} has type {type(second).__name__}"
        )
    both_are_mappings = isinstance(first, Mapping) and isinstance(second, Mapping)
    if check_types and both_are_mappings and set(first) != set(second):
        return ArgumentValueError, (
            "The two dictionaries don't have the same set of keys. First structure has keys "
            f"{_text(list(first))}, while second structure has keys {_text(list(second))}"
        )
    one_has, other_has = structures.children_of(first), structures.children_of(second)
    if len(one_has) != len(other_has):
        return ArgumentValueError, (
            "The two structures don't have the same number of elements. "
            f"First structure: {_text(first)}. Second structure: {_text(second)}"
        )
    pairs = zip(one_has, other_has, strict=True)
    return next((found for one, two in pairs if (found := _difference(one, two, check_types)) is not None), None)


def _same_type(first: Any, second: Any) -> bool:
    if any(isinstance(first, kind) and isinstance(second, kind) for kind in (Mapping, list)):
        return True
    fields = [getattr(one, "_fields", None) for one in (first, second)]
    if None not in fields:
        return type(first).__name__ == type(second).__name__ and fields[0] == fields[1]
    return type(first) is type(second)


def _text(value: Any) -> str:
    return f"type={type(value).__name__} str={value}"


def _dots(structure: Any) -> str:
    """Return the structure with a dot for each leaf."""
    if not is_nested(structure):
        return "."
    return str(structures.map_structure(lambda _: _Dot(), structure))


class _Dot:
    def __repr__(self) -> str:
        return "."


__getattr__ = saying(__name__, "dm-tree has others")
