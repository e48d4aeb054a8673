"""The rule of each collective's gradient as a transition between two types of tensors, such as ``P→R``.

The types are those of ``spmd_types``: R, I, V and P; ``V*`` is V with a part only on the root. A type says how the
ranks' tensors belong together, and so does the type of their gradients: a tensor of type P has a gradient of type R,
and the reverse; the others have their own type. So the backward of ``A→B`` is the transition from the type of B's
gradient to that of A's, and everything below follows from ``_MOVES``. This module needs only the standard library and
NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from collshim.conformance import reference
from collshim.conformance.values import Part

Type: TypeAlias = Literal["R", "I", "V", "V*", "P"]
Flat: TypeAlias = "Sequence[Part | None]"
"""What each rank holds, in one dimension; parts for several ranks, or from several, lie end to end."""

OF_GRADIENT: dict[Type, Type] = {"R": "P", "P": "R", "I": "I", "V": "V", "V*": "V*"}
"""The type of the gradient of a tensor of each type."""


@dataclass(frozen=True)
class Transition:
    """The rule of one collective.

    Attributes:
        source, target: the types of the input and the result.
        factor: the factor of the result, and so of the gradient: "" for 1, "1/n", or "f", which the caller chooses.
        op: the reduction that each rank applies to the parts that it receives, if the transition only moves them; or
            "".
    """

    source: Type
    target: Type
    factor: Literal["", "1/n", "f"] = ""
    op: str = ""

    @property
    def text(self) -> str:
        """The transition as the pages show it."""
        more = f", times `{self.factor}`" if self.factor else ", then the op" if self.op else ""
        return f"`{self.source}→{self.target}`{more}"

    def forward(self, inputs: Flat, root: int, f: float) -> Flat:
        """Return every rank's result."""
        moved = self._moved(inputs, root)
        return [None if part is None else self._reduced(part, len(inputs)) * self._number(inputs, f) for part in moved]

    def backward(self, inputs: Flat, gradients: Flat, root: int, f: float) -> Flat:
        """Return the gradient of every rank's input; ``gradients`` are those of the results."""
        if self.op:
            moved = zip(self._moved(inputs, root), gradients, strict=True)
            gradients = [None if part is None else self._through_op(part, dy, len(inputs)) for part, dy in moved]
        back = _MOVES[OF_GRADIENT[self.target], OF_GRADIENT[self.source]](gradients, root)
        return [None if part is None else part * self._number(inputs, f) for part in back]

    def _moved(self, inputs: Flat, root: int) -> Flat:
        return _MOVES[self.source, self.target](inputs, root)

    def _number(self, inputs: Flat, f: float) -> float:
        return {"": 1.0, "1/n": 1.0 / len(inputs), "f": f}[self.factor]

    def _reduced(self, parts: Part, size: int) -> Part:
        return reference.all_reduce(np.split(parts, size), self.op)[0] if self.op else parts

    def _through_op(self, parts: Part, gradient: Part | None, size: int) -> Part:
        """Return the gradient of the parts that a rank reduces itself."""
        rows, result = parts.reshape(size, -1), self._reduced(parts, size)
        if self.op == "prod":
            slopes = np.stack([np.delete(rows, rank, axis=0).prod(axis=0) for rank in range(size)])
        else:
            slopes = (rows == result).astype(parts.dtype)
        return np.asarray(slopes * gradient).ravel()


def of(collective: str, reduce_op: str = "sum", rule: str = "sum") -> Transition:
    """Return the transition of a collective; ``rule`` is a spelling's."""
    if rule == "own":
        return Transition("R", "R")
    found = _TRANSITIONS[collective]
    if found.source != "P" or reduce_op == "sum":
        return found
    factors: dict[str, Literal["1/n", "f"]] = {"avg": "1/n", "premul_sum": "f"}
    if reduce_op in factors:
        return replace(found, factor=factors[reduce_op])
    return replace(found, source="V", op=reduce_op)


_TRANSITIONS = {
    "all_reduce": Transition("P", "R"),
    "reduce": Transition("P", "V*"),
    "reduce_scatter": Transition("P", "V"),
    "broadcast": Transition("V*", "R"),
    "all_gather": Transition("V", "R"),
    "gather": Transition("V", "V*"),
    "scatter": Transition("V*", "V"),
    "all_to_all": Transition("V", "V"),
    "ring": Transition("V", "V"),
}


def _all_present(parts: Flat) -> list[Part]:
    """Return the parts, none of which may be None."""
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        raise ValueError(f"{len(found)} of {len(parts)} ranks hold a part, should be all")
    return found


def _cut(parts: Flat) -> list[list[Part]]:
    return [np.split(part, len(parts)) for part in _all_present(parts)]


def _joined(rows: Sequence[Sequence[Part] | None]) -> Flat:
    return [None if row is None else np.concatenate(row) for row in rows]


def _same(parts: Flat, root: int) -> Flat:
    return parts


def _sum(parts: Flat, root: int) -> Flat:
    return reference.all_reduce(_all_present(parts))


def _all(parts: Flat, root: int) -> Flat:
    return _joined(reference.all_gather(_all_present(parts)))


def _to_the_root(parts: Flat, root: int) -> Flat:
    return _joined(reference.gather(_all_present(parts), root))


def _own(parts: Flat, root: int) -> Flat:
    return [row[rank] for rank, row in enumerate(_cut(parts))]


def _exchanged(parts: Flat, root: int) -> Flat:
    return _joined(reference.all_to_all(_cut(parts)))


def _from_the_root(parts: Flat, root: int) -> Flat:
    return reference.broadcast(parts, root)


def _dealt(parts: Flat, root: int) -> Flat:
    return np.split(_all_present([parts[root]])[0], len(parts))


_MOVES: dict[tuple[Type, Type], Callable[[Flat, int], Flat]] = {
    ("P", "R"): _sum,
    ("P", "I"): _sum,
    ("P", "V"): lambda parts, root: reference.reduce_scatter(_cut(parts)),
    ("P", "V*"): lambda parts, root: reference.reduce(_all_present(parts), root),
    ("P", "P"): _same,
    ("V", "R"): _all,
    ("V", "I"): _all,
    ("V", "V"): _exchanged,
    ("V", "V*"): _to_the_root,
    ("V*", "R"): _from_the_root,
    ("V*", "V"): _dealt,
    ("R", "R"): _same,
    ("I", "R"): _same,
    ("I", "V"): _own,
}
"""What each transition does to the ranks' tensors."""
