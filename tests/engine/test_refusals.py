"""Invalid calls are refused before anything is sent: the rank calls again, and its peers never notice."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from tests.engine.scenarios.refusals import REFUSALS, SIZE, scenario
from tests.engine.worlds import CHECKED, Outcome, compare, outcomes, values_of

pytestmark = pytest.mark.threads


def _names(transport: str) -> list[str]:
    return [name for name, refusal in REFUSALS.items() if transport not in CHECKED or not refusal.unchecked_alone]


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    return outcomes({name: partial(scenario, name) for name in _names(transport)}, SIZE, transport)


def _refused(transport: str, name: str) -> Any:
    found = values_of(_found(transport), name)[0]
    return found[0] if isinstance(found, tuple) else Outcome(None, ("nothing",), found)


def test_refusal_has_the_right_class(transport: str) -> None:
    refusals = {name: _refused(transport, name) for name in _names(transport)}
    compare(
        (name, (refusal.raised[:1], "ArgumentError" in refusal.raised), ((REFUSALS[name].kind,), True))
        for name, refusal in refusals.items()
    )


def test_refusal_shows_received_expected_and_rank(transport: str) -> None:
    texts = {name: _refused(transport, name).text for name in _names(transport)}
    words = {name: (*REFUSALS[name].words, "rank 0 of 2") for name in texts}
    silent = [f"{name}: {text}" for name, text in texts.items() if any(word not in text for word in words[name])]
    assert not silent, "\n".join(silent)


def test_calls_after_a_refusal_are_right(transport: str) -> None:
    values = {name: values_of(_found(transport), name) for name in _names(transport)}
    right = [([[0], [1]], [2.0], 1), ([[0], [1]], [4.0], 0)]
    compare((name, [rank[1:] for rank in ranks], right) for name, ranks in values.items())


def test_uncaught_refusal_is_reported_to_peers() -> None:
    def fn() -> Any:
        comm = collshim.current().communicator
        return comm.all_reduce(np.ones(3), "mean" if comm.rank == 1 else "sum").wait()

    with pytest.raises(collshim.RankError, match="rank 1 of 3 failed: ArgumentValueError: all_reduce: reduce op"):
        collshim.launch(fn, 3, timeout=200)


def test_refused_memory_is_untouched() -> None:
    def fn() -> Any:
        out, comm = torch.full((4,), 7.0), collshim.current().communicator
        with pytest.raises(collshim.ArgumentValueError):
            comm.all_reduce(torch.ones(3), out=out)
        return out.tolist()

    assert collshim.launch(fn, 1, timeout=200) == [[7.0] * 4]
