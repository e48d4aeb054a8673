"""One call of a collective, described by a frozen ``Case``. A case prints as one line that can be pasted back.

    >>> case = Case("all_gather", size=3, shape=(2, 1), dtype="int32", seed=7)
    >>> case
    Case('all_gather', size=3, shape=(2, 1), dtype='int32', seed=7)
    >>> Case.parse(str(case)) == case
    True

The ranks' values follow from the case alone, so one line is enough for a report, and for a rank that runs under
another interpreter. This module needs only the standard library and NumPy.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from collshim.conformance.dtypes import computable
from collshim.conformance.values import REDUCTIONS, Part, Shape, numbers, objects

ONE_PART = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "ring")  # a rank has one array
PART_PER_RANK = ("scatter", "reduce_scatter", "all_to_all")  # a rank has one array for each rank
OBJECTS = ("all_gather_object", "gather_object", "broadcast_object", "scatter_object", "ring_object")
COLLECTIVES = (*ONE_PART, *PART_PER_RANK, *OBJECTS, "barrier")
ROOTED = ("reduce", "broadcast", "gather", "scatter", "gather_object", "broadcast_object", "scatter_object")
RINGS = ("ring", "ring_object")
LAYOUTS = ("contiguous", "transposed", "strided")

# Relative; for one rounding of a sum of a few real numbers of size 1 in a different order.
TOLERANCE = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13} | {
    "bfloat16": 5e-2
}


@dataclass(frozen=True, repr=False)
class Case:
    """One call of a collective, made by every rank of a group.

    Attributes:
        collective: the name, as in ``reference``.
        size: the number of ranks in the world.
        shape: the shape of one part: of a rank's array, or of each array if a rank has one per rank.
        dtype: the name of the dtype: one of NumPy's, or bfloat16.
        axis: the axis along which parts are joined.
        split_axis: the axis along which a rank's array is cut into one part per rank.
        lengths: None if all parts have ``shape``; else their lengths along ``axis``: one per rank, or, if a rank
            has one part per rank, ``lengths[sender][receiver]``.
        reduce_op: the reduction: sum, prod, min, max, avg, band, bor, bxor.
        root: the root's rank in the group, for collectives that have one.
        shift: the distance in ranks that each rank sends, in a ring.
        group: the global ranks in group order; None for all.
        seed: the seed of the values.
        layout: the layout of the arrays in memory; a 0-d or empty array is a ``shape``.
        kind: the kind of the arrays: torch or numpy.
        family: "exact" for numbers that need the dtype's full width and range (see ``extremes``) and whose
            reductions are all exact, so that answers compare bit for bit; "real" for normally distributed numbers,
            whose reductions have ``TOLERANCE``.
        gradient: whether each rank differentiates a loss, the sum of its result times ``values.weights``.
        fault: what is wrong with the call, as in ``bindings.invalid``; empty for a valid call.
        given: the values themselves, instead of ``seed`` and ``family``: all parts end to end, sender by sender; for
            a complex number the real and then the imaginary part.
    """

    collective: str
    size: int = 2
    shape: Shape = (2, 3)
    dtype: str = "float32"
    axis: int = 0
    split_axis: int = 0
    lengths: tuple[int, ...] | tuple[tuple[int, ...], ...] | None = None
    reduce_op: str = "sum"
    root: int = 0
    shift: int = 1
    group: tuple[int, ...] | None = None
    seed: int = 0
    layout: str = "contiguous"
    kind: str = "torch"
    family: str = "exact"
    gradient: bool = False
    fault: str = ""
    given: tuple[Any, ...] | None = None

    @classmethod
    def parse(cls, line: str) -> Case:
        """Return the case that was printed as ``line``, which may hold only literals; nothing is executed."""
        call = ast.parse(line.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or getattr(call.func, "id", None) != "Case":
            raise ValueError(f"the line is {line!r}, should be one that a Case prints as")
        keywords = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg is not None}
        return cls(*(ast.literal_eval(value) for value in call.args), **keywords)

    def __repr__(self) -> str:
        items = [item for item in fields(self)[1:] if getattr(self, item.name) != item.default]
        arguments = [repr(self.collective), *(f"{item.name}={_literal(getattr(self, item.name))}" for item in items)]
        return f"Case({', '.join(arguments)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the case for hypothesis."""
        printer.text(repr(self))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The global ranks of the group, in group order."""
        return tuple(range(self.size)) if self.group is None else self.group

    @property
    def tolerance(self) -> float:
        """The relative error that a value may have; 0 demands the same bits."""
        inexact = self.family == "real" and self.collective in REDUCTIONS
        return TOLERANCE.get(self.dtype, 0.0) if inexact else 0.0

    @property
    def root_rank(self) -> int:
        """The global rank of the root; a root outside the group is returned unchanged, for calls that name one."""
        return self.ranks[self.root] if self.root in range(len(self.ranks)) else self.root

    def part_shape(self, sender: int, receiver: int = 0) -> Shape:
        """Return the shape of the part that rank ``sender`` of the group has for rank ``receiver``."""
        if self.lengths is None:
            return self.shape
        length = self.lengths[sender]
        return _with(self.shape, self.axis, length[receiver] if isinstance(length, tuple) else length)

    def arrays(self) -> list[Part]:
        """Return the array of each rank of the group, if the collective takes one array per rank."""
        return [self.array_of(rank) for rank in range(len(self.ranks))]

    def array_of(self, rank: int) -> Part:
        """Return the array of ``rank``, in fresh memory of the case's layout."""
        return self.laid_out(self.values(1)[rank])

    def parts(self) -> list[list[Part]]:
        """Return the arrays of each rank, if it has one for each rank: ``parts[sender][receiver]``."""
        return [self.parts_of(rank) for rank in range(len(self.ranks))]

    def parts_of(self, rank: int) -> list[Part]:
        """Return the arrays of ``rank``, in fresh memory of the case's layout."""
        size = len(self.ranks)
        return [self.laid_out(part) for part in self.values(size)[rank * size : (rank + 1) * size]]

    def values(self, receivers: int) -> Sequence[Part]:
        """Return ``receivers`` parts for each sender, sender by sender; they are contiguous and read-only."""
        return _cached_values(self, receivers) if self.given is None else _values(self, receivers)

    def with_values(self, parts: Sequence[Part]) -> Case:
        """Return the same case with these values, sender by sender; they must have the shapes of the case's own."""
        flat = computable(np.concatenate([part.ravel() for part in parts]))
        if np.iscomplexobj(flat):
            flat = np.stack([np.real(flat), np.imag(flat)], axis=1).ravel()
        return replace(self, given=tuple(flat.tolist()))

    def objects(self) -> list[Any]:
        """Return a fresh object for each rank of the group, if each has one."""
        return objects(self, len(self.ranks))

    def object_parts(self) -> list[list[Any]]:
        """Return the objects of each rank, if it has one for each rank: ``[sender][receiver]``."""
        size = len(self.ranks)
        flat = objects(self, size * size)
        return [flat[rank * size : (rank + 1) * size] for rank in range(size)]

    def laid_out(self, part: Part) -> Part:
        """Copy the values into fresh memory of the case's layout; a 0-d array has only one layout."""
        if self.layout == "transposed":
            return np.array(part.T, order="C").T
        if self.layout == "strided" and part.ndim:
            wide = np.zeros((*part.shape[:-1], 2 * part.shape[-1]), part.dtype)
            wide[..., ::2] = part
            return wide[..., ::2]
        return np.array(part, order="C")


@lru_cache(maxsize=8)
def _cached_values(case: Case, receivers: int) -> Sequence[Part]:
    """Return the values and cache them: every rank, and the comparison of its answer, needs all parts.

    Explicit values are not cached, because a case with 0.0 among them equals one with -0.0.
    """
    return _values(case, receivers)


def _values(case: Case, receivers: int) -> Sequence[Part]:
    shapes = [case.part_shape(sender, receiver) for sender in range(len(case.ranks)) for receiver in range(receivers)]
    parts = numbers(case, shapes)
    for part in parts:
        part.setflags(write=False)
    return parts


def _literal(value: Any) -> str:
    """Print ``value`` as a literal, which inf is not."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' * (len(value) == 1)})"
    return repr(value).replace("inf", "1e999") if isinstance(value, float) else repr(value)


def _with(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])
