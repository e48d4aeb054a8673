"""Every adapter answers as its framework was seen to answer: drawn cases, corner cases, refused cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collshim.conformance.bindings import bindings
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.comparison import check
from collshim.conformance.corners import corners, refusals
from collshim.conformance.effort import DRAWN, SIZES, TRANSPORTS
from collshim.conformance.missing import require
from collshim.conformance.patience import Patience
from collshim.conformance.pool import Pools
from collshim.conformance.strategies import cases

# torch 2.13 renamed two functions; the old names warn and work.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated.*:FutureWarning")

every_binding_and_size = pytest.mark.parametrize(
    ("binding", "size"),
    [
        pytest.param(binding, size, id=f"{binding.name}-{size}")
        for binding in bindings()
        for size in SIZES
        if size >= binding.admits.least_size
    ],
)
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@every_transport
@every_binding_and_size
@DRAWN
@given(data=st.data())
def test_drawn_cases_agree(
    pools: Pools, patience: Patience, binding: Binding, size: int, transport: str, data: st.DataObject
) -> None:
    require(binding)
    case = data.draw(cases(binding, size))
    check([binding] * size, case, patience.run(pools.of(transport, size), [binding] * size, case))


@every_transport
@every_binding_and_size
def test_corner_cases_agree(pools: Pools, binding: Binding, size: int, transport: str) -> None:
    require(binding)
    pool = pools.of(transport, size)
    for case in corners(binding, size):
        check([binding] * size, case, pool.run([binding] * size, case))


@every_transport
@pytest.mark.parametrize("binding", [one for one in bindings() if one.refused], ids=lambda one: one.name)
def test_what_the_framework_refuses_is_refused_alike(pools: Pools, binding: Binding, transport: str) -> None:
    require(binding)
    pool = pools.of(transport, 2)
    for case in refusals(binding, 2):
        check([binding] * 2, case, pool.run([binding] * 2, case))
    assert pool.run([binding] * 2, corners(binding, 2)[0]), "the ranks go on after a refusal"
