"""What is asked of a collective: a frozen ``Case``, which prints as one line that can be pasted back.

    >>> case = Case("all_gather", size=3, shape=(2, 1), dtype="int32", seed=7)
    >>> case
    Case('all_gather', size=3, shape=(2, 1), dtype='int32', seed=7)
    >>> Case.parse(str(case)) == case
    True

The ranks' values follow from the case alone, so a line is all that a report has to show, and all that a rank
under another interpreter has to be sent. Standard library and NumPy only.
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

ONE_PART = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "ring")  # a rank gives one array
PART_PER_RANK = ("scatter", "reduce_scatter", "all_to_all")  # a rank gives one array for each rank
OBJECTS = ("all_gather_object", "gather_object", "broadcast_object", "scatter_object", "ring_object")
COLLECTIVES = (*ONE_PART, *PART_PER_RANK, *OBJECTS, "barrier")
ROOTED = ("reduce", "broadcast", "gather", "scatter", "gather_object", "broadcast_object", "scatter_object")
RINGS = ("ring", "ring_object")
LAYOUTS = ("contiguous", "transposed", "strided")

# Relative, for one rounding of a sum of a few numbers of size 1 in another order; real values only.
TOLERANCE = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13} | {
    "bfloat16": 5e-2
}


@dataclass(frozen=True, repr=False)
class Case:
    """One call of a collective, made by every rank of a group.

    Attributes:
        collective: its name, as in ``reference``.
        size: how many ranks the world has.
        shape: of one part: of a rank's array, or of each of the arrays that it has one of per rank.
        dtype: its name: NumPy's, or bfloat16.
        axis: along which parts are joined.
        split_axis: along which a rank's array is cut into one part per rank.
        lengths: None where all parts have ``shape``; else their lengths along ``axis``: one per rank, or,
            where a rank has one part per rank, ``lengths[giver][taker]``.
        reduce_op: of a reduction: sum, prod, min, max, avg, band, bor, bxor.
        root: rank in the group, of the collectives that have one.
        shift: how many ranks on each rank sends, in a ring.
        group: global ranks in group order; None for all.
        seed: of the values.
        layout: of the arrays in memory; a 0-d or empty array is a ``shape``.
        kind: of the arrays: torch or numpy.
        family: "exact" for numbers that need all of the dtype's width and range, see ``extremes``, and of which
            every reduction is exact, so that answers compare bit for bit; "real" for normally distributed numbers,
            whose reductions have ``TOLERANCE``.
        gradient: whether each rank differentiates a loss, the sum of its result times ``values.weights``.
        fault: what is wrong with the call, as in ``bindings.invalid``; empty where nothing is.
        given: the values themselves, in place of ``seed`` and ``family``: all parts end to end, giver by giver; of a
            complex number the real and the imaginary part.
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
        """The case that was printed as ``line``; literals only, nothing is executed."""
        call = ast.parse(line.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or getattr(call.func, "id", None) != "Case":
            raise ValueError(f"the line is {line!r}, should be one that a Case prints as")
        keywords = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg is not None}
        return cls(*(ast.literal_eval(value) for value in call.args), **keywords)

    def __repr__(self) -> str:
        items = [item for item in fields(self)[1:] if getattr(self, item.name) != item.default]
        arguments = [repr(self.collective), *(f"{item.name}={_printed(getattr(self, item.name))}" for item in items)]
        return f"Case({', '.join(arguments)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis prints it."""
        printer.text(repr(self))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The global ranks that take part, in group order."""
        return tuple(range(self.size)) if self.group is None else self.group

    @property
    def tolerance(self) -> float:
        """By how much, relatively, a value may be off; 0 demands the same bits."""
        inexact = self.family == "real" and self.collective in REDUCTIONS
        return TOLERANCE.get(self.dtype, 0.0) if inexact else 0.0

    @property
    def root_rank(self) -> int:
        """The global rank of the root; a root outside the group as it is, for calls that name one."""
        return self.ranks[self.root] if self.root in range(len(self.ranks)) else self.root

    def part_shape(self, giver: int, taker: int = 0) -> Shape:
        """The shape of the part that rank ``giver`` of the group has for rank ``taker``."""
        if self.lengths is None:
            return self.shape
        length = self.lengths[giver]
        return _with(self.shape, self.axis, length[taker] if isinstance(length, tuple) else length)

    def arrays(self) -> list[Part]:
        """What each rank of the group gives, where that is one array."""
        return [self.array_of(rank) for rank in range(len(self.ranks))]

    def array_of(self, rank: int) -> Part:
        """What one of them gives: fresh, laid out as ``layout`` says."""
        return self.laid_out(self.values(1)[rank])

    def parts(self) -> list[list[Part]]:
        """What each rank of the group gives, where that is one array per rank: ``parts[giver][taker]``."""
        return [self.parts_of(rank) for rank in range(len(self.ranks))]

    def parts_of(self, rank: int) -> list[Part]:
        """What one of them gives: fresh, laid out as ``layout`` says."""
        size = len(self.ranks)
        return [self.laid_out(part) for part in self.values(size)[rank * size : (rank + 1) * size]]

    def values(self, takers: int) -> Sequence[Part]:
        """``takers`` parts for each giver, giver by giver, contiguous and read-only."""
        return _kept_values(self, takers) if self.given is None else _values(self, takers)

    def giving(self, parts: Sequence[Part]) -> Case:
        """The same case with these values, giver by giver; they have the shapes of the case's own."""
        flat = computable(np.concatenate([part.ravel() for part in parts]))
        if np.iscomplexobj(flat):
            flat = np.stack([np.real(flat), np.imag(flat)], axis=1).ravel()
        return replace(self, given=tuple(flat.tolist()))

    def objects(self) -> list[Any]:
        """What each rank of the group gives, where that is one object: fresh."""
        return objects(self, len(self.ranks))

    def object_parts(self) -> list[list[Any]]:
        """What each rank of the group gives, where that is one object per rank: ``[giver][taker]``."""
        size = len(self.ranks)
        flat = objects(self, size * size)
        return [flat[rank * size : (rank + 1) * size] for rank in range(size)]

    def laid_out(self, part: Part) -> Part:
        """The same values in fresh memory of the case's layout; 0-d arrays have only one."""
        if self.layout == "transposed":
            return np.array(part.T, order="C").T
        if self.layout == "strided" and part.ndim:
            wide = np.zeros((*part.shape[:-1], 2 * part.shape[-1]), part.dtype)
            wide[..., ::2] = part
            return wide[..., ::2]
        return np.array(part, order="C")


@lru_cache(maxsize=8)
def _kept_values(case: Case, takers: int) -> Sequence[Part]:
    """Kept, since every rank and the comparison of its answer ask for the parts of all.

    Not of given values: a case with 0.0 among them equals one with -0.0.
    """
    return _values(case, takers)


def _values(case: Case, takers: int) -> Sequence[Part]:
    shapes = [case.part_shape(giver, taker) for giver in range(len(case.ranks)) for taker in range(takers)]
    parts = numbers(case, shapes)
    for part in parts:
        part.setflags(write=False)
    return parts


def _printed(value: Any) -> str:
    """A literal, which inf is not."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_printed, value))}{',' * (len(value) == 1)})"
    return repr(value).replace("inf", "1e999") if isinstance(value, float) else repr(value)


def _with(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])
