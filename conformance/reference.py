"""Each collective as a pure function: parts by rank in, parts by rank out.

An adapter must agree with it once its spelling is translated. ``parts[r]`` is rank ``r``'s input and ``result[r]`` what
rank ``r`` holds afterwards; None means that a rank has no array. Ranks are numbered in the communicator's order. Inputs
are not changed, results share no memory with inputs, and the dtype never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as fold
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.dtypes import computable, name_of, typed

Part: TypeAlias = NDArray[Any]

FOLDS: dict[str, Callable[[Part, Part], Part]] = {
    "sum": np.add,
    "avg": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
REDUCE_OPS = tuple(FOLDS)
BITWISE = ("band", "bor", "bxor")


def all_reduce(parts: Sequence[Part], op: str = "sum") -> list[Part]:
    """Every rank holds the reduction of all ranks' parts."""
    return [_reduce(parts, op) for _ in parts]


def reduce(parts: Sequence[Part], root: int = 0, op: str = "sum") -> list[Part | None]:
    """The root holds the reduction of all ranks' parts, the others nothing."""
    return [_reduce(parts, op) if rank == root else None for rank in range(len(parts))]


def broadcast(parts: Sequence[Part | None], root: int = 0) -> list[Part]:
    """Every rank holds the root's part; the parts of the others are ignored."""
    part = parts[root]
    if part is None:
        raise ValueError(f"broadcast: the part of root {root} is None, should be an array")
    return [part.copy() for _ in parts]


def all_gather(parts: Sequence[Part]) -> list[list[Part]]:
    """Every rank holds all ranks' parts, in rank order; the parts may differ in shape."""
    return [[part.copy() for part in parts] for _ in parts]


def gather(parts: Sequence[Part], root: int = 0) -> list[list[Part] | None]:
    """The root holds all ranks' parts, in rank order, the others nothing."""
    return [[part.copy() for part in parts] if rank == root else None for rank in range(len(parts))]


def scatter(parts: Sequence[Sequence[Part] | None], root: int = 0) -> list[Part]:
    """Rank r holds the r-th of the root's parts; the parts of the others are ignored."""
    root_parts = parts[root]
    if root_parts is None:
        raise ValueError(f"scatter: the parts of root {root} are None, should be one array per rank")
    return [part.copy() for part in root_parts]


def reduce_scatter(parts: Sequence[Sequence[Part]], op: str = "sum") -> list[Part]:
    """Rank r holds the reduction of every rank's r-th part."""
    return [_reduce([row[rank] for row in parts], op) for rank in range(len(parts))]


def all_to_all(parts: Sequence[Sequence[Part]]) -> list[list[Part]]:
    """Rank r holds every rank's r-th part, in rank order; the parts may differ in shape."""
    return [[row[rank].copy() for row in parts] for rank in range(len(parts))]


def ring(parts: Sequence[Part], shift: int = 1) -> list[Part]:
    """Every rank sends its part ``shift`` ranks on, and holds the part from ``shift`` ranks behind."""
    return [parts[(rank - shift) % len(parts)].copy() for rank in range(len(parts))]


def of(case: Any) -> list[Any]:
    """Return what each rank of a case's group holds, by the case's collective, reduction, root and shift."""
    if case.collective in ("scatter", "reduce_scatter", "all_to_all"):
        return list(_OF_PARTS[case.collective](case, case.parts()))
    return list(_OF_ARRAYS[case.collective](case, case.arrays()))


_OF_ARRAYS: dict[str, Callable[[Any, list[Part]], list[Any]]] = {
    "all_reduce": lambda case, arrays: list(all_reduce(arrays, case.reduce_op)),
    "reduce": lambda case, arrays: list(reduce(arrays, case.root, case.reduce_op)),
    "broadcast": lambda case, arrays: list(broadcast(arrays, case.root)),
    "all_gather": lambda case, arrays: list(all_gather(arrays)),
    "gather": lambda case, arrays: list(gather(arrays, case.root)),
    "ring": lambda case, arrays: list(ring(arrays, case.shift)),
}
_OF_PARTS: dict[str, Callable[[Any, list[list[Part]]], list[Any]]] = {
    "scatter": lambda case, parts: list(scatter(parts, case.root)),
    "reduce_scatter": lambda case, parts: list(reduce_scatter(parts, case.reduce_op)),
    "all_to_all": lambda case, parts: list(all_to_all(parts)),
}


def stacked(parts: Sequence[Part]) -> Part:
    """Stack equal parts into one array ``(size, *shape)``."""
    return np.stack(parts)


def concatenated(parts: Sequence[Part], axis: int = 0) -> Part:
    """Join parts end to end along ``axis``; 0-d parts are joined to ``(size,)``."""
    return np.stack(parts) if parts[0].ndim == 0 else np.concatenate(parts, axis=axis)


def split(array: Part, size: int, axis: int = 0) -> list[Part]:
    """Cut ``array`` into ``size`` equal parts along ``axis``."""
    return [part.copy() for part in np.split(array, size, axis=axis)]


def _reduce(parts: Sequence[Part], op: str) -> Part:
    """Fold in rank order; round to the parts' dtype at each step, as a rank would, but bfloat16 only at the end."""
    numbers = [computable(part) for part in parts]
    total = np.asarray(fold(FOLDS[op], numbers)).astype(numbers[0].dtype)
    return typed(_divide(total, len(parts)) if op == "avg" else total, name_of(parts[0].dtype))


def _divide(total: Part, size: int) -> Part:
    if np.issubdtype(total.dtype, np.integer):
        if (total % size).any():
            raise ValueError(f"avg: the sums are {total.tolist()}, should be multiples of {size}: conventions differ")
        return np.asarray(total // size)
    return np.asarray(total / total.dtype.type(size)).astype(total.dtype)
