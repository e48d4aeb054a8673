"""The gradients of the reference match finite differences of the sum of all ranks' losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from collshim.conformance import gradients, reference
from collshim.conformance.bindings.answers import leaves
from collshim.conformance.bindings.differentiation import Weighing, expected_gradient
from collshim.conformance.cases import PART_PER_RANK, Case
from collshim.conformance.values import REDUCTIONS, Part, weights

COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all")
CASES = [
    Case(collective, size=3, shape=(2,), dtype="float64", family="real", root=1, reduce_op=op, seed=4)
    for collective in COLLECTIVES
    for op in (("sum", "avg", "min", "max", "prod") if collective in REDUCTIONS else ("sum",))
]
STEP = 1e-6


def weighed(case: Case) -> list[Any]:
    """Return a weight for each number that a rank holds."""
    return [None if held is None else _weights(held, rank) for rank, held in enumerate(reference.of(case))]


def _weights(held: Any, rank: int) -> Any:
    parts = [weights(part.shape, rank + 3 * place, "float64") for place, part in enumerate(leaves(held))]
    return parts if isinstance(held, list) else parts[0]


def total_loss(case: Case) -> float:
    """Return the sum of all ranks' losses."""
    held = [leaf for leaf in leaves(reference.of(case)) if leaf is not None]
    factors = [leaf for leaf in leaves(weighed(case)) if leaf is not None]
    return float(sum((part * factor).sum() for part, factor in zip(held, factors, strict=True)))


def slopes(case: Case) -> Part:
    """Measure the growth of the sum of all losses with each input number."""
    flat = np.concatenate([part.ravel() for part in case.values(3 if case.collective in PART_PER_RANK else 1)])
    found = [
        (total_loss(replace(case, given=tuple(up))) - total_loss(replace(case, given=tuple(down)))) / (2 * STEP)
        for up, down in ((_moved(flat, place, STEP), _moved(flat, place, -STEP)) for place in range(len(flat)))
    ]
    return np.array(found)


def _moved(flat: Part, place: int, by: float) -> list[float]:
    moved = flat.copy()
    moved[place] += by
    return [float(one) for one in moved]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.collective}-{case.reduce_op}")
def test_gradients_are_slopes_of_the_summed_loss(case: Case) -> None:
    found = gradients.of(case, weighed(case))
    blank = case.parts() if case.collective in PART_PER_RANK else case.arrays()
    filled = [
        np.zeros_like(part) if one is None else one
        for rank, held in enumerate(blank)
        for part, one in zip(leaves(held), _listed(found[rank], len(leaves(held))), strict=True)
    ]
    assert_allclose(np.concatenate([part.ravel() for part in filled]), slopes(case), rtol=1e-4, atol=1e-6)


def _listed(found: Any, count: int) -> list[Any]:
    return [None] * count if found is None else leaves(found)


def test_tied_rank_gets_the_whole_gradient() -> None:
    case = Case("all_reduce", size=2, shape=(1,), reduce_op="max", given=(5.0, 5.0))
    assert [one.tolist() for one in gradients.of(case, [np.array([1.0]), np.array([2.0])])] == [[3.0], [3.0]]


def test_weights_replace_every_result() -> None:
    case = Case("all_gather", shape=(2,))
    held: Any = Weighing().all_gather(case.arrays())
    assert [[part.tolist() for part in parts] for parts in held] == [
        [[12291, 12297], [12300, 12306]],
        [[12294, 12300], [12303, 12309]],
    ]
    assert_array_equal(Weighing().concatenated(held[0]), [12291, 12297, 12300, 12306])


def test_gradient_of_an_unused_rank_is_none_or_zeros() -> None:
    case = Case("broadcast", shape=(2,))
    form = lambda case, rank: case.arrays()[rank]  # noqa: E731
    assert expected_gradient(case, 1, "sum", "none", form) is None
    assert_array_equal(expected_gradient(case, 1, "sum", "zeros", form), [0, 0])
    assert_array_equal(expected_gradient(case, 0, "sum", "none", form), [24585, 24597])
    assert_array_equal(expected_gradient(case, 1, "own", "none", form), [12294, 12300])
