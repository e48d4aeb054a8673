"""How many bad calls are drawn: the same thousand every time, or with COLLSHIM_THOROUGH=1 ten thousand new ones.

Every function has as many as any other of its surface, so that none is left out.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from hypothesis import HealthCheck, Phase, given, settings

from collshim.conformance.effort import THOROUGH
from tests.robustness.drawing import TRANSPORTS, Bad, bad_calls
from tests.robustness.surfaces import SURFACES

CALLS = 10_000 if THOROUGH else 1_000
OF_EACH = -(-CALLS // (len(TRANSPORTS) * len(SURFACES)))

_FIRST = 1  # hypothesis's first is the plainest of all, whatever the function
_DRAWN = settings(
    derandomize=not THOROUGH,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # they are small as they are drawn
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
)


@cache
def drawn(surface: str, transport: str) -> tuple[Bad, ...]:
    """The bad calls through one surface, over one transport."""
    rounds: list[tuple[Bad, ...]] = []
    many = -(-OF_EACH // len(SURFACES[surface].spellings))

    @settings(_DRAWN, max_examples=_FIRST + many)
    @given(calls=bad_calls(surface, transport))
    def collect(calls: tuple[Bad, ...]) -> None:
        rounds.append(calls)

    collect()
    return tuple(bad for calls in rounds[_FIRST:] for bad in calls)


def counted(calls: tuple[Bad, ...]) -> Counter[str]:
    """How many are wrong in one respect, by it, and how many in several."""
    return Counter(bad.respects[0] if len(bad.respects) == 1 else "several" for bad in calls)
