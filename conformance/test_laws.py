"""Laws between collectives, and between adapters: each step may use another dialect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from collshim.conformance.bindings.answers import Answer, Seen, leaves
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.comparison import check
from collshim.conformance.effort import THOROUGH, TRANSPORTS
from collshim.conformance.mixed import COMMON, dialects
from collshim.conformance.patience import Patience
from collshim.conformance.pool import Pool, Pools
from collshim.conformance.strategies import DRAWN, drawn
from collshim.conformance.values import Part
from collshim.frameworks import FRAMEWORKS

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")

every_transport = pytest.mark.parametrize("transport", TRANSPORTS)
Ask = Callable[[Case], list[Any]]


def flat(binding: Binding, answer: Any) -> Part:
    """Return the numbers that a rank holds as one row, whatever their form."""
    assert isinstance(answer, Answer)
    arrays = [leaf.values.ravel() for leaf in leaves(binding.held(answer)) if isinstance(leaf, Seen)]
    return np.concatenate(arrays) if arrays else np.empty(0)


def asking(pool: Pool, framework: str) -> Ask:
    """Return a function that asks a case of ``pool`` through ``framework``, checks it, and returns the results."""

    def ask(case: Case) -> list[Any]:
        binding = next(one for one in dialects(case) if one.framework.name == framework)
        answers = pool.run([binding] * case.size, case)
        check([binding] * case.size, case, answers)
        return [flat(binding, answer) for answer in answers]

    return ask


def reduce_scatter_then_all_gather_is_all_reduce(first: Ask, second: Ask, size: int) -> None:
    scattered = Case("reduce_scatter", size=size, shape=(3,))
    gathered = second(Case("all_gather", size=size, shape=(3,)).with_values(first(scattered)))
    whole = Case("all_reduce", size=size, shape=(3 * size,))
    assert_array_equal(gathered, first(whole.with_values([np.concatenate(parts) for parts in scattered.parts()])))


def reduce_then_broadcast_is_all_reduce(first: Ask, second: Ask, size: int) -> None:
    case = Case("reduce", size=size)
    spread = second(Case("broadcast", size=size).with_values([first(case)[0]] * size))
    assert_array_equal(spread, second(replace(case, collective="all_reduce")))


def gather_then_broadcast_is_all_gather(first: Ask, second: Ask, size: int) -> None:
    case = Case("gather", size=size, shape=(3,))
    spread = second(Case("broadcast", size=size, shape=(3 * size,)).with_values([first(case)[0]] * size))
    assert_array_equal(spread, second(replace(case, collective="all_gather")))


def scatter_then_gather_is_the_identity(first: Ask, second: Ask, size: int) -> None:
    case = Case("scatter", size=size)
    gathered = second(Case("gather", size=size).with_values(first(case)))
    assert_array_equal(gathered[0], np.concatenate([part.ravel() for part in case.parts()[0]]))


def all_to_all_twice_is_the_identity(first: Ask, second: Ask, size: int) -> None:
    case = Case("all_to_all", size=size)
    back = second(case.with_values(first(case)))
    assert_array_equal(back, [np.concatenate([part.ravel() for part in parts]) for parts in case.parts()])


def all_to_all_of_copies_is_all_gather(first: Ask, second: Ask, size: int) -> None:
    case = Case("all_gather", size=size)
    copies = Case("all_to_all", size=size).with_values([part for part in case.arrays() for _ in range(size)])
    assert_array_equal(first(case), second(copies))


def reduce_scatter_is_all_to_all_and_a_sum(first: Ask, second: Ask, size: int) -> None:
    case = Case("reduce_scatter", size=size)
    moved = second(replace(case, collective="all_to_all").with_values([part for row in case.parts() for part in row]))
    assert_array_equal(first(case), [row.reshape(size, -1).sum(0) for row in moved])


def a_ring_on_and_back_is_the_identity(first: Ask, second: Ask, size: int) -> None:
    case = Case("ring", size=size)
    back = second(replace(case, shift=size - 1).with_values(first(case)))
    assert_array_equal(back, [array.ravel() for array in case.arrays()])


LAWS: list[tuple[Callable[[Ask, Ask, int], None], set[str], set[str]]] = [
    (reduce_scatter_then_all_gather_is_all_reduce, {"reduce_scatter", "all_reduce"}, {"all_gather"}),
    (reduce_then_broadcast_is_all_reduce, {"reduce"}, {"broadcast", "all_reduce"}),
    (gather_then_broadcast_is_all_gather, {"gather"}, {"broadcast", "all_gather"}),
    (scatter_then_gather_is_the_identity, {"scatter"}, {"gather"}),
    (all_to_all_twice_is_the_identity, {"all_to_all"}, {"all_to_all"}),
    (all_to_all_of_copies_is_all_gather, {"all_gather"}, {"all_to_all"}),
    (reduce_scatter_is_all_to_all_and_a_sum, {"reduce_scatter"}, {"all_to_all"}),
    (a_ring_on_and_back_is_the_identity, {"ring"}, {"ring"}),
]


def speakers(collectives: set[str], size: int) -> list[str]:
    """Return the frameworks that have all of ``collectives``."""
    have = [{one.framework.name for one in dialects(Case(name, size=size))} for name in collectives]
    return [framework for framework in FRAMEWORKS if all(framework in names for names in have)]


@every_transport
@pytest.mark.parametrize(("law", "first", "second"), LAWS, ids=lambda one: getattr(one, "__name__", ""))
def test_law_holds(
    pools: Pools, law: Callable[[Ask, Ask, int], None], first: set[str], second: set[str], transport: str
) -> None:
    for size in (2, 3, 4) if THOROUGH else (2, 3):
        spoken = list(product(speakers(first, size), speakers(second, size)))
        assert len(spoken) > 3
        for one, other in spoken:
            pool = pools.of(transport, size)
            law(asking(pool, one), asking(pool, other), size)


@every_transport
@pytest.mark.parametrize("framework", ["torch", "mindspore", "megengine"])
def test_permuting_the_ranks_permutes_the_results(pools: Pools, framework: str, transport: str) -> None:
    order = (2, 0, 1)
    ask = asking(pools.of(transport, 3), framework)
    case = Case("all_gather", size=3, shape=(2,))
    turned = replace(case, group=order).with_values([case.arrays()[rank] for rank in order])
    plain = ask(case)[0].reshape(3, 2)
    assert_array_equal(ask(turned), [plain[list(order)].ravel()] * 3)


@every_transport
@pytest.mark.parametrize(
    "collective", ["all_gather", "all_reduce", "all_to_all", "reduce_scatter", "reduce", "broadcast", "gather", "ring"]
)
@DRAWN
@given(data=st.data())
def test_all_dialects_give_the_same_numbers(
    pools: Pools, patience: Patience, collective: str, transport: str, data: st.DataObject
) -> None:
    """Results agree bit for bit, even sums of real numbers: a transport adds in the same order for every caller."""
    case = data.draw(drawn(collective, COMMON, data.draw(st.sampled_from((2, 3, 4)))))
    holders = range(case.size) if collective not in ("reduce", "gather") else [case.root]
    found: dict[str, list[bytes]] = {}
    for binding in dialects(case):
        answers = patience.run(pools.of(transport, case.size), [binding] * case.size, case)
        check([binding] * case.size, case, answers)
        found[binding.name] = [flat(binding, answers[rank]).tobytes() for rank in holders]
    assert len(found) > 3
    different = [name for name, held in found.items() if held != next(iter(found.values()))]
    assert not different, f"{collective}: {different} differ from {next(iter(found))} for {case}"
