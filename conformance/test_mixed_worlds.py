"""Ranks of one world may each speak another framework's dialect: they meet in the same call and agree on values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.admits import Admits
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import Case
from collshim.conformance.comparison import check
from collshim.conformance.effort import DRAWN, TRANSPORTS
from collshim.conformance.missing import is_missing
from collshim.conformance.patience import Patience
from collshim.conformance.pool import Pools
from collshim.conformance.strategies import drawn

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated.*:FutureWarning")

# What every framework admits: the world, sums of floats along axis 0, arrays that have elements.
COMMON = Admits(dtypes=("float32",), layouts=("contiguous",), least_ndim=1, empty=False)


def dialects(case: Case) -> list[Binding]:
    """The bindings that ask for ``case`` in one collective and are there."""
    able = [binding for binding in bindings() if binding.posts == 1 and binding.supports(case)]
    return [binding for binding in able if not is_missing(f"collshim.{binding.path}")]


every_collective = pytest.mark.parametrize("collective", ["all_gather", "all_reduce", "all_to_all"])
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@every_transport
@every_collective
def test_every_two_dialects_meet(pools: Pools, collective: str, transport: str) -> None:
    case = Case(collective)
    for pair in product(dialects(case), repeat=2):
        check(pair, case, pools.of(transport, 2).run(pair, case))


@every_transport
@pytest.mark.parametrize("size", [3, 4])
@every_collective
@DRAWN
@given(data=st.data())
def test_each_rank_may_speak_another_dialect(
    pools: Pools, patience: Patience, collective: str, size: int, transport: str, data: st.DataObject
) -> None:
    case = data.draw(drawn(collective, COMMON, size))
    spoken: Sequence[Binding] = data.draw(st.tuples(*[st.sampled_from(dialects(case))] * size))
    check(spoken, case, patience.run(pools.of(transport, size), spoken, case))
