"""The limits of a binding: what the real framework's convention admits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from collshim.conformance.reference import BITWISE

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = (*FLOATS, "bfloat16", *COMPLEX)
DIFFERENTIATED = ("float32", "float64")


@dataclass(frozen=True, kw_only=True)
class Admits:
    """The limits within which cases are drawn, as the real framework's convention sets them.

    Attributes:
        dtypes, reduce_ops, kinds, layouts: the admitted names, as in ``Case``.
        groups: None if only the world is admitted; "sorted" if a group's ranks must be sorted; otherwise "ordered".
        axes, split_axes: whether parts may be joined, or cut, along any axis, not only 0.
        ragged: whether parts may be unequal along ``axis``.
        least_ndim: 1 if 0-d parts are not admitted.
        empty: whether an array may have no elements.
        integer_avg: whether integers may be averaged.
        roots: whether any rank of the group may be the root, not only the first.
        gradient: whether the results of arrays that require a gradient may be differentiated.
        least_size: 2 if a world of a single rank is not admitted.
    """

    dtypes: tuple[str, ...]
    reduce_ops: tuple[str, ...] = ("sum",)
    kinds: tuple[str, ...] = ("torch", "numpy")
    layouts: tuple[str, ...] = ("contiguous", "transposed", "strided")
    groups: Literal[None, "sorted", "ordered"] = None
    axes: bool = False
    split_axes: bool = False
    ragged: bool = False
    least_ndim: int = 0
    empty: bool = True
    integer_avg: bool = False
    roots: bool = True
    gradient: bool = False
    least_size: int = 1

    def case(self, case: Any) -> bool:
        """Return whether ``case`` lies within the limits."""
        there = not case.fault and case.size >= self.least_size and self._array(case) and self._shape(case)
        return there and self._group(case) and self._reduction(case) and self._differentiable(case)

    def _array(self, case: Any) -> bool:
        there = case.dtype in self.dtypes and case.kind in self.kinds and case.layout in self.layouts
        return there and (case.dtype, case.kind) != ("bfloat16", "numpy")

    def _shape(self, case: Any) -> bool:
        ndim = len(case.shape)
        axis_fits = 0 <= case.axis < max(ndim, 1) and (self.axes or case.axis == 0)
        split_fits = 0 <= case.split_axis < max(ndim, 1) and (self.split_axes or case.split_axis == 0)
        return ndim >= self.least_ndim and axis_fits and split_fits and self._lengths(case)

    def _lengths(self, case: Any) -> bool:
        lengths = np.array([] if case.lengths is None else case.lengths)
        fits = case.lengths is None or (self.ragged and len(case.shape) > 0)
        return fits and (self.empty or (0 not in case.shape and 0 not in lengths))

    def _group(self, case: Any) -> bool:
        if case.root not in range(len(case.ranks) if self.roots else 1):
            return False
        if case.group is None or self.groups is None:
            return case.group is None
        return self.groups == "ordered" or list(case.group) == sorted(case.group)

    def _reduction(self, case: Any) -> bool:
        """Return whether the reduction is admitted, and is defined for numbers of this kind."""
        op, inexact = case.reduce_op, case.dtype in INEXACT
        if op not in self.reduce_ops or not (inexact or case.family == "exact"):
            return False
        if inexact:
            return op not in BITWISE and (case.dtype not in COMPLEX or op in ("sum", "avg"))
        return op != "avg" or (self.integer_avg and case.dtype != "bool")

    def _differentiable(self, case: Any) -> bool:
        if not case.gradient:
            return True
        return self.gradient and case.kind == "torch" and case.dtype in DIFFERENTIATED and case.family == "exact"
