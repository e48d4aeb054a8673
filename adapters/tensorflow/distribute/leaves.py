"""The leaves of a nest, as collectives take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.arrays import is_array
from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.tensorflow import structures
from collshim.tensorflow.constants import constant
from collshim.tensorflow.distribute.values import component
from collshim.tensorflow.indexed_slices import IndexedSlices


def leaf_of(value: Any, index: int) -> Any:
    """A leaf of a nest as collectives take it: the replica's component, and tensors for Python numbers.

    Raises:
        ArgumentValueError: neither an array, nor slices, nor a number.
    """
    leaf = component(value, index)
    if hasattr(leaf, "_as_tensor"):
        return leaf._as_tensor()
    if isinstance(leaf, IndexedSlices) or is_array(leaf):
        return leaf
    if isinstance(leaf, bool | int | float | complex):
        return constant(leaf)
    raise ArgumentValueError(
        f"Attempt to convert a value ({leaf!r}) with an unsupported type ({type(leaf)}) to a Tensor."
    )


def leaves_of(structure: Any, index: int) -> list[Any]:
    """The leaves of a nest as collectives take them."""
    return [leaf_of(leaf, index) for leaf in structures.flatten(structure)]


def refuse_slices(leaves: Sequence[Any], what: str) -> None:
    """Gathering has no meaning for slices; TensorFlow refuses them in these words."""
    if any(isinstance(leaf, IndexedSlices) for leaf in leaves):
        raise also(ArgumentError, NotImplementedError)(f"{what} does not support IndexedSlices")
