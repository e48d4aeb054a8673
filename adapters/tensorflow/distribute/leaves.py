"""The leaves of a nest, in the form for collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collshim.arrays import is_array
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.tensorflow import structures
from collshim.tensorflow.constants import constant
from collshim.tensorflow.distribute.values import component
from collshim.tensorflow.errors import InvalidArgumentError
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.string_tensor import holds_text


def leaf_of(value: Any, index: int) -> Any:
    """Return a leaf in the form for collectives: the replica's component, with numbers and NumPy's arrays as tensors.

    Raises:
        ArgumentValueError: the leaf is neither an array, nor slices, nor a number.
    """
    leaf = component(value, index)
    if hasattr(leaf, "_as_tensor"):
        return leaf._as_tensor()
    if isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic):
        return constant(leaf)
    if isinstance(leaf, IndexedSlices) or is_array(leaf):
        return leaf
    if holds_text(leaf) and not isinstance(leaf, str | bytes):
        raise also(ArgumentTypeError, InvalidArgumentError)(
            None,
            None,
            "tensors of tf.string stay in their replica: Value for attr 'T' of string is not in the list of "
            "allowed values",
        )
    raise ArgumentValueError(
        f"Attempt to convert a value ({leaf!r}) with an unsupported type ({type(leaf)}) to a Tensor."
    )


def leaves_of(structure: Any, index: int) -> list[Any]:
    """Return the leaves of a nest in the form for collectives."""
    return [leaf_of(leaf, index) for leaf in structures.flatten(structure)]


def refuse_slices(leaves: Sequence[Any], what: str) -> None:
    """Refuse slices, which cannot be gathered, in TensorFlow's words."""
    if any(isinstance(leaf, IndexedSlices) for leaf in leaves):
        raise also(ArgumentError, NotImplementedError)(f"{what} does not support IndexedSlices")
