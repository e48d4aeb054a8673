"""How tensors on several ranks relate to one tensor of a run on one rank.

The terms are those of ``spmd_types``: R (replicated: every rank has the whole tensor), V (varying: each rank has a
shard of it) and P (partial: the sum over the ranks is the tensor).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

_COARSE = 1e-4
"""The rounding error of a 16-bit dtype is larger than this."""

_SHARES = 64
"""The largest number of ranks for which ``shares`` computes weights."""


@dataclass(frozen=True)
class Tolerance:
    """How much two tensors may differ and still count as equal.

    Attributes:
        relative: the largest norm of a difference, relative to the tensor's norm.
        floor: the size up to which an element may be nothing but rounding errors.
    """

    relative: float
    floor: float = 0.0

    @classmethod
    def of(cls, dtype: torch.dtype, terms: int, scale: float = 0.0) -> Tolerance:
        """Return the tolerance for sums of ``terms`` numbers of a dtype, whose results are about as large as ``scale``.

        A sum of n terms in a different order differs by about sqrt(n) rounding errors. Eight such sums in a row are
        allowed for. Sums of 16-bit numbers are computed in 32 bits and rounded once.
        """
        eps = torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0
        relative = 8 * eps * (math.sqrt(max(terms, 1)) if eps < _COARSE else 1.0)
        return cls(relative, relative * scale / 8)

    def allowed(self, expected: Tensor) -> float:
        """Return the largest norm of a difference from ``expected``."""
        return self.relative * _norm(expected) + self.floor * math.sqrt(expected.numel())

    def alike(self, actual: Tensor, expected: Tensor) -> bool:
        """Return whether two tensors are equal up to rounding."""
        return actual.shape == expected.shape and _norm(actual - expected) <= self.allowed(expected)

    def is_zero(self, tensor: Tensor) -> bool:
        """Return whether a tensor is nothing but rounding errors."""
        return _norm(tensor) <= self.floor * math.sqrt(tensor.numel())


class Relation(NamedTuple):
    """How the ranks' tensors make up the tensor of the one-rank run.

    Attributes:
        axes: the type along each axis of the mesh: "R", "P", "V0" for shards of dimension 0, "I0" for shards of every
            n-th index of dimension 0, "U0" for shards of dimension 0 with rows in any order, "V" for rows in any order.
        factor: the ranks' tensors make up ``factor`` times the tensor.
        mesh: the sizes of the axes.
    """

    axes: tuple[str, ...]
    factor: float
    mesh: tuple[int, ...]

    @property
    def letter(self) -> str:
        """R, V or P; both letters if two axes differ."""
        letters = dict.fromkeys("V" if axis[0] in "IU" else axis[0] for axis in self.axes)
        if len(letters) > 1:
            letters.pop("R", None)
        return "".join(letters)

    @property
    def is_in_order(self) -> bool:
        """Whether the elements are in the same order as in the tensor."""
        return not any(axis == "V" or axis[0] in "IU" for axis in self.axes)


def as_float(tensor: Tensor) -> Tensor:
    """Return a tensor in double precision, or complex double."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def factor_of(actual: Tensor, expected: Tensor, tolerance: Tolerance) -> float | None:
    """Return c if ``actual`` is c times ``expected``; None if it is not a multiple.

    Both are in double precision. If both are nothing but rounding errors, c is 1.
    """
    if actual.shape != expected.shape:
        return None
    if tolerance.is_zero(expected):
        return 1.0 if tolerance.alike(actual, expected) else None
    if tolerance.alike(actual, expected):
        return 1.0
    one, other = expected.reshape(-1), actual.reshape(-1)
    factor = float((torch.vdot(one, other) / torch.vdot(one, one)).real)
    if not math.isfinite(factor) or abs(factor) * _norm(expected) <= tolerance.allowed(expected):
        return None
    rest = _norm(actual - factor * expected)
    return factor if rest <= max(1.0, abs(factor)) * tolerance.allowed(expected) else None


def relate(
    expected: Tensor, ranks: Sequence[Tensor], meshes: Sequence[Sequence[int]], tolerance: Tolerance
) -> Relation | None:
    """Return how the ranks' tensors make up ``expected``; None if there is no known relation.

    Args:
        expected: the tensor of the one-rank run.
        ranks: the tensors of the run on several ranks, by rank.
        meshes: possible arrangements of the ranks, each as the sizes of its axes, most likely first.
    """
    one, others = as_float(expected), [as_float(tensor) for tensor in ranks]
    found: Relation | None = None
    for mesh in meshes:
        for axes in product(_ways(one.dim()), repeat=len(mesh)):
            whole = _joined(others, mesh, axes, tolerance)
            factor = None if whole is None else factor_of(whole, one, tolerance)
            if factor is not None and (found is None or _is_simpler(factor, found.factor)):
                found = Relation(axes, factor, tuple(mesh))
                if abs(factor - 1) <= tolerance.relative:
                    return found
    return found or _permuted(one, others, tolerance) or _shuffled(one, others, tolerance)


def _permuted(expected: Tensor, ranks: Sequence[Tensor], tolerance: Tolerance) -> Relation | None:
    """Return the relation if the ranks' tensors together have the rows of ``expected``, in any order."""
    shapes = {tensor.shape[1:] for tensor in ranks if tensor.dim()}
    rows = sum(len(tensor) for tensor in ranks if tensor.dim())
    if shapes != {expected.shape[1:]} or rows != len(expected) or expected.is_complex() or rows < 2:
        return None
    factor = factor_of(_like(torch.cat(list(ranks)), expected), expected, tolerance)
    return None if factor is None else Relation(("V",), factor, (len(ranks),))


def _shuffled(expected: Tensor, ranks: Sequence[Tensor], tolerance: Tolerance) -> Relation | None:
    """Return the relation if each rank has its shard along a dimension, but with rows in any order.

    An ``all_to_all`` leaves tensors like this.
    """
    size, width = len(ranks), expected.shape[-1] if expected.dim() else 0
    is_alike = all(tensor.dim() and tensor.shape[-1] == width for tensor in ranks)
    if not is_alike or not width or expected.is_complex() or sum(map(Tensor.numel, ranks)) != expected.numel():
        return None
    for dim in range(expected.dim() - 1):
        parts = [part.reshape(-1, width) for part in expected.tensor_split(size, dim)]
        rows = [tensor.reshape(-1, width) for tensor in ranks]
        if all(part.shape == own.shape for part, own in zip(parts, rows, strict=True)):
            whole = torch.cat([_like(own, part) for part, own in zip(parts, rows, strict=True)])
            factor = factor_of(whole, torch.cat(parts), tolerance)
            if factor is not None:
                return Relation((f"U{dim}",), factor, (size,))
    return None


def _like(rows: Tensor, expected: Tensor) -> Tensor:
    """Return rows sorted into the order of the rows of ``expected``, if they are the same rows."""
    width = expected[0].numel() if len(expected) else 0
    weights = torch.linspace(1.0, 2.0, width, dtype=torch.float64).square() if width else torch.ones(0).double()
    ours, theirs = rows.reshape(len(rows), width) @ weights, expected.reshape(len(rows), width) @ weights
    in_order = torch.empty_like(rows)
    in_order[theirs.argsort()] = rows[ours.argsort()]
    return in_order


def _is_simpler(factor: float, other: float) -> bool:
    return abs(math.log(abs(factor))) < abs(math.log(abs(other))) - 1e-9


def _ways(dimensions: int) -> list[str]:
    return ["R", *(f"V{dim}" for dim in range(dimensions)), *(f"I{dim}" for dim in range(dimensions)), "P"]


def _joined(ranks: Sequence[Tensor], mesh: Sequence[int], axes: Sequence[str], tolerance: Tolerance) -> Tensor | None:
    """Join the ranks' tensors along the axes of the mesh, the last axis first; None if the shapes do not fit."""
    if not mesh:
        return ranks[0]
    count = len(ranks) // mesh[0]
    parts = list[Tensor]()
    for start in range(0, len(ranks), count):
        part = _joined(ranks[start : start + count], mesh[1:], axes[1:], tolerance)
        if part is None:
            return None
        parts.append(part)
    return _join(parts, axes[0], tolerance)


def _join(parts: Sequence[Tensor], axis: str, tolerance: Tolerance) -> Tensor | None:
    first = parts[0]
    if axis[0] in "RPI" and any(part.shape != first.shape for part in parts):
        return None
    if axis == "R":
        return first if all(tolerance.alike(part, first) for part in parts) else None
    if axis == "P":
        return reduce(torch.add, parts)
    dim = int(axis[1:])
    if any(part.dim() <= dim for part in parts):
        return None
    if axis[0] == "I":
        return torch.stack(list(parts), dim + 1).flatten(dim, dim + 1)
    shapes = {(*part.shape[:dim], *part.shape[dim + 1 :]) for part in parts}
    return torch.cat(list(parts), dim) if len(shapes) == 1 else None


def shares(expected: Tensor, ranks: Sequence[Tensor], tolerance: Tolerance) -> list[float] | None:
    """Return the weights with which the ranks' tensors add up to ``expected``; None if no or many weights do."""
    if len(ranks) > _SHARES or any(tensor.shape != expected.shape for tensor in ranks):
        return None
    one = as_float(expected).reshape(-1)
    columns = torch.stack([as_float(tensor).reshape(-1) for tensor in ranks], 1)
    if one.is_complex() or columns.is_complex() or one.numel() <= len(ranks):
        return None
    singular = torch.linalg.svdvals(columns)
    if float(singular[-1]) <= 1e3 * tolerance.relative * float(singular[0]):
        return None  # the ranks' tensors are linearly dependent, so that many weights fit
    weights = torch.linalg.lstsq(columns, one.unsqueeze(1)).solution.squeeze(1)
    fits = _norm(columns @ weights - one) <= 4 * tolerance.allowed(one)
    return [float(weight) for weight in weights] if fits else None


def meshes_of(size: int, axes: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Return arrangements of ``size`` ranks: the given axes, a line, and the rectangles."""
    known = [tuple(axes)] if axes else []
    rectangles = [(rows, size // rows) for rows in _divisors(size)]
    return list(dict.fromkeys([*known, (size,), *rectangles]))


def _divisors(size: int) -> Iterator[int]:
    return (rows for rows in range(2, size) if size % rows == 0)


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor)) if tensor.numel() else 0.0
