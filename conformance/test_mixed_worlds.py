"""Ranks of one world may each speak another framework's dialect: they meet in the same call and agree on values."""

from __future__ import annotations

from collections.abc import Sequence

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
from collshim.conformance.pool import Pools
from collshim.conformance.strategies import drawn

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated.*:FutureWarning")

# What every framework admits: the world, sums of floats along axis 0, arrays that have elements.
COMMON = Admits(dtypes=("float32",), layouts=("contiguous",), least_ndim=1, empty=False)


def dialects(case: Case) -> list[Binding]:
    """The bindings that can ask for ``case`` and are there."""
    return [binding for binding in bindings() if binding.supports(case) and not is_missing(binding)]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", (2, 4))
@pytest.mark.parametrize("collective", ("all_gather", "all_reduce", "all_to_all"))
@DRAWN
@given(data=st.data())
def test_each_rank_speaks_another_dialect(
    pools: Pools, collective: str, size: int, transport: str, data: st.DataObject
) -> None:
    case = data.draw(drawn(collective, COMMON, size))
    spoken: Sequence[Binding] = data.draw(st.tuples(*[st.sampled_from(dialects(case))] * size))
    check(spoken, case, pools.of(transport, size).run(spoken, case))
