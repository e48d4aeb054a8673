"""``torch.compile`` around a collective: the graph breaks there, and numbers and gradients stay the same.

It runs in separate processes: Dynamo's import takes seconds and stays, and thread ranks would compile at once.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.engine.worlds import on_ranks
from tests.robustness.scenarios import compiled


@cache
def _found() -> list[compiled.Seen]:
    """Run in one world: each of its ranks imports Dynamo once."""
    return on_ranks(compiled.each, 2, "processes", wait=60.0, within=110)


@pytest.mark.parametrize("name", compiled.FUNCTIONS)
def test_compiled_function_matches_the_function(name: str) -> None:
    assert [seen.alike[name] for seen in _found()] == [(True, True, True)] * 2


def test_graph_break_error_is_torchs_and_nobody_hangs() -> None:
    assert [seen.whole.raised[0] for seen in _found()] == ["Unsupported"] * 2, _found()
