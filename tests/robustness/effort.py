"""The number of drawn bad calls: the same thousand every time, or with COLLSHIM_THOROUGH=1 ten thousand new ones.

Every function has as many as any other of its surface, so that none is left out.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from zlib import crc32

from hypothesis import HealthCheck, Phase, given, seed, settings

from collshim.conformance.effort import THOROUGH
from tests.robustness.drawing import TRANSPORTS, Bad, bad_calls, callable_badly
from tests.robustness.surfaces import SURFACES

CALLS = 10_000 if THOROUGH else 1_000
OF_EACH = -(-CALLS // (len(TRANSPORTS) * len(SURFACES)))

_FIRST = 1  # hypothesis's first example is the simplest, whatever the function
_SETTINGS = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate],  # they are already small when drawn
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
)


@cache
def draw_calls(surface: str, transport: str) -> tuple[Bad, ...]:
    """Return the bad calls through one surface, over one transport."""
    places = callable_badly(surface, transport)
    many = -(-OF_EACH // len(places))
    return tuple(bad for place in places for bad in _drawn(surface, place, transport, many))


def _drawn(surface: str, place: int, transport: str, many: int) -> list[Bad]:
    """Draw this many of one function; draws for one do not affect another."""
    found: list[Bad] = []

    @settings(_SETTINGS, max_examples=_FIRST + many)
    @given(bad=bad_calls(surface, place, transport))
    def collect(bad: Bad) -> None:
        found.append(bad)

    if not THOROUGH:
        collect = seed(crc32(f"{surface} {place} {transport}".encode()))(collect)
    collect()
    return found[_FIRST:]


def count_kinds(calls: tuple[Bad, ...]) -> Counter[str]:
    """Count the calls with one kind of mistake, by kind, and those with several."""
    return Counter(bad.respects[0] if len(bad.respects) == 1 else "several" for bad in calls)
