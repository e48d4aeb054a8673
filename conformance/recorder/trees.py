"""Values as JSON: the inputs of a rank, and what it held after a call.

    {"tensor": "float32[2,3]", "values": [...]}     an array of the framework's own kind; "numpy" for NumPy's
    {"tuple": [...]}, {"dict": [[key, tree], ...]}  containers; a list is a list, a named tuple has a "name"
    {"object": "CommHandle", ...}                   anything else, by the name of its type

Given arrays may also have a "layout" (transposed, strided) and "grad" (true: requires a gradient). Floats are
written with as many digits as their dtype needs to be read back to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tree: TypeAlias = Any

KINDS = ("tensor", "numpy")
# The attributes to show of objects of these types; for other objects the type is enough.
SHOWN = {
    "PerReplica": ("values",),
    "Mirrored": ("values",),
    "IndexedSlices": ("values", "indices", "dense_shape"),
    "ReduceOp": ("name",),
    "CollectiveCommunication": ("name",),
}
WIDER = {"bfloat16": "float32"}  # NumPy has no bfloat16; its values are held in float32


class Arrays(Protocol):
    """The interface of a framework's arrays.

    Attributes:
        mutable: whether they can be written into, so that identity and shared memory matter.
        marks: whether they show that they are differentiable.
    """

    mutable: bool
    marks: bool

    def make(self, values: NDArray[Any], dtype: str, layout: str, grad: bool) -> Any:
        """Make an array of the framework's own kind, in fresh memory."""

    def kind(self, value: object) -> str | None:
        """Return one of KINDS, or None if ``value`` is not an array."""
        ...

    def read(self, array: Any) -> tuple[str, NDArray[Any]]:
        """Return the name of the dtype and a copy of the values; those of a dtype in WIDER are in the wider dtype."""
        ...

    def grad(self, array: Any) -> bool:
        """Return whether ``array`` is differentiable."""
        ...

    def overlap(self, one: Any, other: Any) -> bool:
        """Return whether two arrays share memory."""
        ...

    def dtype_name(self, value: object) -> str | None:
        """Return the name of ``value`` if it is a dtype; otherwise None."""
        ...


def given(values: Any, dtype: str | None = None, *, layout: str = "", grad: bool = False, kind: str = "tensor") -> Tree:
    """Return the tree of an input array."""
    array = np.asarray(values)
    tree = _array_tree(kind, dtype or array.dtype.name, array)
    return {**tree, **({"layout": layout} if layout else {}), **({"grad": True} if grad else {})}


def decode(tree: Tree, arrays: Arrays) -> Any:
    """Return the value of ``tree``, with its arrays in fresh memory."""
    if isinstance(tree, list):
        return [decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "tuple" in tree:
        return tuple(decode(item, arrays) for item in tree["tuple"])
    if "dict" in tree:
        return {key: decode(value, arrays) for key, value in tree["dict"]}
    dtype, values = array_of(tree)
    if "numpy" in tree:
        return laid_out(values, tree.get("layout", ""))
    return arrays.make(values, dtype, tree.get("layout", ""), tree.get("grad", False))


def array_of(tree: Tree) -> tuple[str, NDArray[Any]]:
    """Return the dtype's name and the values of an array's tree."""
    dtype, _, shape = next(tree[kind] for kind in KINDS if kind in tree).rstrip("]").partition("[")
    sizes = tuple(int(length) for length in shape.split(",") if length)
    if dtype == "string":
        return dtype, np.array(tree["values"], object).reshape(sizes)
    values = np.array([_number(value) for value in tree["values"]], WIDER.get(dtype, dtype))
    return dtype, values.reshape(sizes)


def is_array(tree: Tree) -> bool:
    """Return whether ``tree`` is the tree of an array."""
    return isinstance(tree, dict) and any(kind in tree for kind in KINDS)


def laid_out(values: NDArray[Any], layout: str) -> NDArray[Any]:
    """Copy ``values`` into fresh memory of this layout; 0-d arrays have only one layout."""
    if layout == "transposed":
        return np.array(values.T, order="C").T
    if layout == "strided" and values.ndim:
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    return np.array(values, order="C")


def encode(value: Any, arrays: Arrays) -> Tree:
    """Return the tree of ``value``."""
    kind = arrays.kind(value)
    if kind is not None:
        return _array_tree(kind, *arrays.read(value)) | ({"grad": True} if arrays.grad(value) else {})
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple | dict):
        return _container(value, arrays)
    return _object(value, arrays)


def leaves(value: Any, arrays: Arrays, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the arrays in ``value``, each with its path."""
    if arrays.kind(value) is not None:
        yield path, value
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, arrays, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, arrays, f"{path}[{key!r}]")


def _container(value: Any, arrays: Arrays) -> Tree:
    if isinstance(value, dict):
        named = {} if type(value) is dict else {"name": type(value).__name__}
        return {"dict": [[key, encode(item, arrays)] for key, item in value.items()], **named}
    items = [encode(item, arrays) for item in value]
    if type(value) is list:
        return items
    return {"tuple": items} | ({} if type(value) is tuple else {"name": type(value).__name__})


def _object(value: Any, arrays: Arrays) -> Tree:
    dtype = arrays.dtype_name(value)
    if dtype is not None:
        return {"object": "dtype", "name": dtype}
    name = type(value).__name__
    return {"object": name, **{part: encode(getattr(value, part), arrays) for part in SHOWN.get(name, ())}}


def _array_tree(kind: str, dtype: str, values: NDArray[Any]) -> Tree:
    shape = ",".join(map(str, values.shape))
    return {kind: f"{dtype}[{shape}]", "values": [_plain(value) for value in values.reshape(-1)]}


def _plain(value: Any) -> Any:
    """Return a number that JSON supports, or text for others."""
    if isinstance(value, np.floating):
        number = float(str(value))
        return int(number) if number.is_integer() and abs(number) < 1e15 and str(number) != "-0.0" else number
    if isinstance(value, np.complexfloating):
        return str(complex(value)).strip("()")
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def _number(value: Any) -> Any:
    return complex(value) if isinstance(value, str) else value
