"""The gradient of each collective as a pure function: the derivative of the sum of all ranks' losses.

``weights[r]`` is the derivative of rank ``r``'s loss with respect to its result, in the result's form, or None if it
holds no result. A function returns the derivative of the sum of all losses with respect to each rank's input, in the
input's form, or None for a rank whose input is ignored. This module needs only the standard library and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collshim.conformance import reference
from collshim.conformance.values import Part

Gradients = list[Any]


def of(case: Any, weights: Sequence[Any]) -> Gradients:
    """Return the gradient that each rank of the group should find for its input; ``weights`` are by rank."""
    return _RULES[case.collective](case, list(weights))


def _all_reduce(case: Any, weights: Gradients) -> Gradients:
    return _through_reduction(case, case.arrays(), np.sum(weights, axis=0, dtype=case.dtype))


def _reduce(case: Any, weights: Gradients) -> Gradients:
    return _through_reduction(case, case.arrays(), weights[case.root])


def _reduce_scatter(case: Any, weights: Gradients) -> Gradients:
    ranks = range(len(weights))
    columns = [[parts[receiver] for parts in case.parts()] for receiver in ranks]
    gradients = [_through_reduction(case, column, weights[receiver]) for receiver, column in enumerate(columns)]
    return [[gradients[receiver][sender] for receiver in ranks] for sender in ranks]


def _broadcast(case: Any, weights: Gradients) -> Gradients:
    total = np.sum(weights, axis=0, dtype=case.dtype)
    return [total if rank == case.root else None for rank in range(len(weights))]


def _all_gather(case: Any, weights: Gradients) -> Gradients:
    return [sum(weight[sender] for weight in weights) for sender in range(len(weights))]


def _gather(case: Any, weights: Gradients) -> Gradients:
    return list(weights[case.root])


def _scatter(case: Any, weights: Gradients) -> Gradients:
    return [weights if rank == case.root else None for rank in range(len(weights))]


def _all_to_all(case: Any, weights: Gradients) -> Gradients:
    ranks = range(len(weights))
    return [[weights[receiver][sender] for receiver in ranks] for sender in ranks]


def _through_reduction(case: Any, parts: Sequence[Part], total: Part) -> list[Part]:
    """Differentiate one reduction of ``parts``; ``total`` is the derivative of the sum of all losses by its result."""
    result = reference.all_reduce(parts, case.reduce_op)[0]
    if case.reduce_op in ("min", "max"):
        return [total * (part == result) for part in parts]
    if case.reduce_op == "prod":
        return [total * np.prod(_others(parts, rank), axis=0, dtype=result.dtype) for rank in range(len(parts))]
    return [np.asarray(total / total.dtype.type(len(parts)) if case.reduce_op == "avg" else total) for _ in parts]


def _others(parts: Sequence[Part], rank: int) -> list[Part]:
    return [np.ones_like(part) if other == rank else part for other, part in enumerate(parts)]


_RULES: dict[str, Callable[[Any, Gradients], Gradients]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "gather": _gather,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
}
