"""Values as JSON: what a rank was given, and what it held after a call.

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
# Of objects of these types these attributes are shown; of others the type says all.
SHOWN = {
    "PerReplica": ("values",),
    "Mirrored": ("values",),
    "IndexedSlices": ("values", "indices", "dense_shape"),
    "ReduceOp": ("name",),
    "CollectiveCommunication": ("name",),
}
WIDER = {"bfloat16": "float32"}  # NumPy has no such dtype; its values are held in this one


class Arrays(Protocol):
    """What is needed of a framework's arrays.

    Attributes:
        mutable: whether they can be written into, so that it matters what is one object, or one memory.
        marks: whether they tell that they are differentiable.
    """

    mutable: bool
    marks: bool

    def make(self, values: NDArray[Any], dtype: str, layout: str, grad: bool) -> Any:
        """An array of the framework's own kind, in fresh memory."""

    def kind(self, value: object) -> str | None:
        """One of KINDS, or None where ``value`` is no array."""
        ...

    def read(self, array: Any) -> tuple[str, NDArray[Any]]:
        """The name of the dtype and a copy of the values; values of a dtype in WIDER in the wider one."""
        ...

    def grad(self, array: Any) -> bool:
        """Whether ``array`` is differentiable."""
        ...

    def overlap(self, one: Any, other: Any) -> bool:
        """Whether two arrays have memory in common."""
        ...

    def dtype_name(self, value: object) -> str | None:
        """The name of the dtype that ``value`` is; None where it is none."""
        ...


def given(values: Any, dtype: str | None = None, *, layout: str = "", grad: bool = False, kind: str = "tensor") -> Tree:
    """The tree of an array to be given to a call."""
    array = np.asarray(values)
    tree = _array_tree(kind, dtype or array.dtype.name, array)
    return {**tree, **({"layout": layout} if layout else {}), **({"grad": True} if grad else {})}


def decoded(tree: Tree, arrays: Arrays) -> Any:
    """The value that ``tree`` is of, its arrays in fresh memory."""
    if isinstance(tree, list):
        return [decoded(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "tuple" in tree:
        return tuple(decoded(item, arrays) for item in tree["tuple"])
    if "dict" in tree:
        return {key: decoded(value, arrays) for key, value in tree["dict"]}
    dtype, values = array_of(tree)
    if "numpy" in tree:
        return laid_out(values, tree.get("layout", ""))
    return arrays.make(values, dtype, tree.get("layout", ""), tree.get("grad", False))


def array_of(tree: Tree) -> tuple[str, NDArray[Any]]:
    """The dtype's name, and the values, of an array's tree."""
    dtype, _, shape = next(tree[kind] for kind in KINDS if kind in tree).rstrip("]").partition("[")
    sizes = tuple(int(length) for length in shape.split(",") if length)
    if dtype == "string":
        return dtype, np.array(tree["values"], object).reshape(sizes)
    values = np.array([_number(value) for value in tree["values"]], WIDER.get(dtype, dtype))
    return dtype, values.reshape(sizes)


def is_array(tree: Tree) -> bool:
    """Whether ``tree`` is an array's."""
    return isinstance(tree, dict) and any(kind in tree for kind in KINDS)


def laid_out(values: NDArray[Any], layout: str) -> NDArray[Any]:
    """``values`` in fresh memory, laid out so; 0-d arrays have one layout only."""
    if layout == "transposed":
        return np.array(values.T, order="C").T
    if layout == "strided" and values.ndim:
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    return np.array(values, order="C")


def encoded(value: Any, arrays: Arrays) -> Tree:
    """The tree of ``value``."""
    kind = arrays.kind(value)
    if kind is not None:
        return _array_tree(kind, *arrays.read(value)) | ({"grad": True} if arrays.grad(value) else {})
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple | dict):
        return _container(value, arrays)
    return _object(value, arrays)


def leaves(value: Any, arrays: Arrays, path: str) -> Iterator[tuple[str, Any]]:
    """The arrays in ``value``, each with its path."""
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
        return {"dict": [[key, encoded(item, arrays)] for key, item in value.items()], **named}
    items = [encoded(item, arrays) for item in value]
    if type(value) is list:
        return items
    return {"tuple": items} | ({} if type(value) is tuple else {"name": type(value).__name__})


def _object(value: Any, arrays: Arrays) -> Tree:
    dtype = arrays.dtype_name(value)
    if dtype is not None:
        return {"object": "dtype", "name": dtype}
    name = type(value).__name__
    return {"object": name, **{part: encoded(getattr(value, part), arrays) for part in SHOWN.get(name, ())}}


def _array_tree(kind: str, dtype: str, values: NDArray[Any]) -> Tree:
    shape = ",".join(map(str, values.shape))
    return {kind: f"{dtype}[{shape}]", "values": [_plain(value) for value in values.reshape(-1)]}


def _plain(value: Any) -> Any:
    """A number that JSON has; text where it has none."""
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
