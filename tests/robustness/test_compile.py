"""``torch.compile`` around a collective: the graph breaks there, the numbers and gradients are those without it.

In processes of their own: Dynamo's import takes seconds and stays, and ranks that are threads would compile at once.
"""

from __future__ import annotations

import pytest

from tests.engine.worlds import on_ranks
from tests.robustness.plays import compiled


@pytest.mark.parametrize("name", compiled.FUNCTIONS)
def test_a_compiled_function_gives_what_the_function_does(name: str) -> None:
    assert on_ranks(compiled.compiled, 2, "processes", name, wait=60.0, within=110) == [(True, True, True)] * 2


def test_where_a_break_is_an_error_it_is_torchs_and_nobody_hangs() -> None:
    found = on_ranks(compiled.whole, 2, "processes", "returned", wait=60.0, within=110)
    assert [seen.raised[0] for seen in found] == ["Unsupported"] * 2, found
