"""The soak program, for some seconds: it reports every minute, and detects growth."""

from __future__ import annotations

import pytest

from collshim.launching.kinds import RANK_KINDS
from tests.robustness.soak import Minute, growth, soak

SHORT = 5.0
"""Seconds of a minute."""

SETTLED = Minute(2.0, 100, 0, 30, 5, 10, 900, 40)


@pytest.mark.slow
@pytest.mark.parametrize("transport", RANK_KINDS)
def test_mixed_calls_leave_no_key_descriptor_or_thread(
    transport: str,
) -> None:
    grown = soak(transport, 3, 4 * SHORT / 60, length=SHORT)
    assert [text for text in grown if "MiB" not in text] == []  # memory has not settled after some seconds


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resident": 111}, "0.0 MiB after 0.0 MiB"),
        ({"descriptors": 31}, "31 descriptors after 30"),
        ({"threads": 6}, "6 threads after 5"),
        ({"keys": 11}, "11 keys after 10"),
    ],
)
def test_growth_after_the_second_minute_is_reported(change: dict[str, int], text: str) -> None:
    assert growth([SETTLED, SETTLED._replace(minute=3.0, **change)]) == [text]


def test_early_growth_and_small_memory_growth_are_ignored() -> None:
    first = SETTLED._replace(minute=1.0, resident=1, descriptors=1)
    assert growth([first, SETTLED, SETTLED._replace(minute=3.0, resident=110)]) == []
