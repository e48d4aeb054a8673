"""Drawn bad calls, through every adapter and the engine, over both transports: each is an error, none does harm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.robustness.drawing import TRANSPORTS, Bad
from tests.robustness.effort import CALLS, count_kinds, draw_calls
from tests.robustness.pool import Pool
from tests.robustness.surfaces import SURFACES
from tests.robustness.verdict import verdict

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings are not errors here; threads share the filters

EACH = [(transport, surface) for transport in TRANSPORTS for surface in SURFACES]
BEARABLE = 5
"""Failures after which a test gives up: each may have cost a deadline, and new ranks."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("transport", "surface"), EACH)
def test_bad_calls_fail_and_next_calls_work(
    transport: str, surface: str, pools: dict[str, Pool], record_property: Callable[[str, object], None]
) -> None:
    record_property("bad calls", dict(count_kinds(draw_calls(surface, transport))))
    wrong: list[str] = []
    for bad in draw_calls(surface, transport):
        wrong += _asked(pools[transport], bad)
        if len(wrong) == BEARABLE:
            break
    assert not wrong, "\n".join(wrong)


def _asked(pool: Pool, bad: Bad) -> list[str]:
    try:
        found = verdict(bad, pool.ask(bad))
    except RuntimeError as error:
        return [f"{bad}: {error}"]
    if found:
        pool.discard()
    return [f"{bad}: {found}"] if found else []


def test_enough_bad_calls_are_drawn() -> None:
    assert sum(len(draw_calls(surface, transport)) for transport, surface in EACH) >= CALLS


@pytest.mark.parametrize(("transport", "surface"), EACH)
def test_every_function_has_bad_calls(transport: str, surface: str) -> None:
    called = {bad.spelled.path for bad in draw_calls(surface, transport)}
    assert [one.path for one in SURFACES[surface].spellings if one.path not in called] == []


def test_drawn_bad_calls_are_distinct() -> None:
    calls = [(transport, bad) for transport, surface in EACH for bad in draw_calls(surface, transport)]
    assert len({repr(call) for call in calls}) > 0.9 * len(calls)


def test_half_are_simple_and_through_an_adapter() -> None:
    calls = [bad for transport, surface in EACH for bad in draw_calls(surface, transport)]
    simple = [bad for bad in calls if len(bad.respects) == 1 and bad.surface != "communicator"]
    assert 2 * len(simple) >= len(calls)


@pytest.mark.parametrize(("transport", "surface"), EACH)
def test_every_surface_has_several_kinds_of_mistakes(transport: str, surface: str) -> None:
    found = {bad.respects[0] for bad in draw_calls(surface, transport) if len(bad.respects) == 1}
    assert {"type", "disagreement"} < found
    assert len(found) >= 4
