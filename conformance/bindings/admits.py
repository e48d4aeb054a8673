"""The limits of a binding: what the real framework's convention admits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")


@dataclass(frozen=True, kw_only=True)
class Admits:
    """What the real framework's convention admits: the limits within which cases are drawn.

    Attributes:
        dtypes, reduce_ops, kinds, layouts: by name, as in ``Case``.
        groups: None where there is the world only; "sorted" where a group's ranks are; else "ordered".
        axes, split_axes: whether parts are joined, or cut, along any axis, not 0 only.
        ragged: whether parts may be unequal along ``axis``.
        least_ndim: 1 where 0-d parts are not admitted.
        empty: whether an array may have no elements.
        integer_avg: whether integers may be averaged.
        least_size: 2 where there is no world of a single rank.
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
    least_size: int = 1

    def case(self, case: Any) -> bool:
        """Whether ``case`` lies within the limits."""
        there = case.size >= self.least_size and self._array(case) and self._shape(case)
        return there and self._group(case) and self._reduction(case)

    def _array(self, case: Any) -> bool:
        return case.dtype in self.dtypes and case.kind in self.kinds and case.layout in self.layouts

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
        if case.group is None or self.groups is None:
            return case.group is None
        return self.groups == "ordered" or list(case.group) == sorted(case.group)

    def _reduction(self, case: Any) -> bool:
        inexact = case.dtype in (*FLOATS, *COMPLEX)
        averages = inexact or self.integer_avg or case.reduce_op != "avg"
        means_something = averages and (inexact or case.family == "exact")
        ordered = case.dtype not in COMPLEX or case.reduce_op in ("sum", "avg")
        return case.reduce_op in self.reduce_ops and means_something and ordered
