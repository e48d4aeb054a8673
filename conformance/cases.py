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
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Part: TypeAlias = NDArray[Any]
Shape: TypeAlias = "tuple[int, ...]"

ONE_PART = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "ring")  # a rank gives one array
PART_PER_RANK = ("scatter", "reduce_scatter", "all_to_all")  # a rank gives one array for each rank
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
LAYOUTS = ("contiguous", "transposed", "strided")

# Relative, for one rounding of a sum of a few numbers of size 1 in another order; real values only.
TOLERANCE = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}


@dataclass(frozen=True, repr=False)
class Case:
    """One call of a collective, made by every rank of a group.

    Attributes:
        collective: its name, as in ``reference``.
        size: how many ranks the world has.
        shape: of one part: of a rank's array, or of each of the arrays that it has one of per rank.
        dtype: NumPy's name of it.
        axis: along which parts are joined.
        split_axis: along which a rank's array is cut into one part per rank.
        lengths: None where all parts have ``shape``; else their lengths along ``axis``: one per rank, or,
            where a rank has one part per rank, ``lengths[giver][taker]``.
        reduce_op: of a reduction: sum, prod, min, max, avg.
        root: rank in the group, of the collectives that have one.
        group: global ranks in group order; None for all.
        seed: of the values.
        layout: of the arrays in memory; a 0-d or empty array is a ``shape``.
        kind: of the arrays: torch or numpy.
        family: "exact" for small integers, whatever the dtype, of which every reduction is exact, so that
            answers compare bit for bit; "real" for normally distributed numbers, whose reductions have
            ``TOLERANCE``.
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
    group: tuple[int, ...] | None = None
    seed: int = 0
    layout: str = "contiguous"
    kind: str = "torch"
    family: str = "exact"

    @classmethod
    def parse(cls, line: str) -> Case:
        """The case that was printed as ``line``; literals only, nothing is executed."""
        call = ast.parse(line.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or getattr(call.func, "id", None) != "Case":
            raise ValueError(f"the line is {line!r}, should be one that a Case prints as")
        given = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg is not None}
        return cls(*(ast.literal_eval(value) for value in call.args), **given)

    def __repr__(self) -> str:
        named = [item for item in fields(self)[1:] if getattr(self, item.name) != item.default]
        shown = [repr(self.collective), *(f"{item.name}={getattr(self, item.name)!r}" for item in named)]
        return f"Case({', '.join(shown)})"

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

    def part_shape(self, giver: int, taker: int = 0) -> Shape:
        """The shape of the part that rank ``giver`` of the group has for rank ``taker``."""
        if self.lengths is None:
            return self.shape
        length = self.lengths[giver]
        return _with(self.shape, self.axis, length[taker] if isinstance(length, tuple) else length)

    def arrays(self) -> list[Part]:
        """What each rank of the group gives, where that is one array: fresh, laid out as ``layout`` says."""
        return [self.laid_out(part) for part in self.values(1)]

    def parts(self) -> list[list[Part]]:
        """What each rank of the group gives, where that is one array per rank: ``parts[giver][taker]``."""
        size = len(self.ranks)
        flat = [self.laid_out(part) for part in self.values(size)]
        return [flat[rank * size : (rank + 1) * size] for rank in range(size)]

    def values(self, takers: int) -> list[Part]:
        """``takers`` parts for each giver, giver by giver, contiguous."""
        shapes = [self.part_shape(giver, taker) for giver in range(len(self.ranks)) for taker in range(takers)]
        return _drawn(self, shapes)

    def laid_out(self, part: Part) -> Part:
        """The same values in fresh memory of the case's layout; 0-d arrays have only one."""
        if self.layout == "transposed":
            return np.array(part.T, order="C").T
        if self.layout == "strided" and part.ndim:
            wide = np.zeros((*part.shape[:-1], 2 * part.shape[-1]), part.dtype)
            wide[..., ::2] = part
            return wide[..., ::2]
        return np.array(part, order="C")


def _drawn(case: Case, shapes: Sequence[Shape]) -> list[Part]:
    random = np.random.default_rng(case.seed)
    counts = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    if case.family == "real":
        whole = random.standard_normal(sum(counts))
    elif case.collective in REDUCTIONS:
        whole = _addends(random, sum(counts), case)
    else:
        whole = _labels(random, sum(counts), case.dtype)
    pieces = np.split(whole, np.cumsum(counts)[:-1])
    return [_typed(piece.reshape(shape), case.dtype) for piece, shape in zip(pieces, shapes, strict=True)]


def _addends(random: np.random.Generator, count: int, case: Case) -> Part:
    """Nonzero, and so small that sums and products of eight are exact in float16; averages are whole."""
    if case.dtype == "bool":
        return random.integers(0, 2, count)
    values = random.integers(1, 3 if case.reduce_op == "prod" else 10, count)
    if not case.dtype.startswith("uint"):
        values *= random.choice(np.array([-1, 1]), count)
    return values * len(case.ranks) if case.reduce_op == "avg" else values


def _labels(random: np.random.Generator, count: int, dtype: str) -> Part:
    """Consecutive numbers, so that an element in a wrong place shows, from a start that the seed picks."""
    if dtype == "bool":
        return random.integers(0, 2, count)
    span = 120 if dtype in ("int8", "uint8") else 2000
    return (random.integers(0, span) + np.arange(count)) % span


def _typed(values: Part, dtype: str) -> Part:
    typed = values.astype(dtype)
    return typed + np.array(1j, dtype) * typed[..., ::-1] if dtype.startswith("complex") and typed.ndim else typed


def _with(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])
