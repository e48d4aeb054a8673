"""How hard the suite tries: the same few cases every time, or with COLLSHIM_THOROUGH=1 many new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("COLLSHIM_THOROUGH") == "1"
TRANSPORTS = ("threads", "processes")
SIZES = {"threads": (1, 2, 3, 4, 8), "processes": (1, 2, 3, 4)}  # of worlds
SHARES = {"threads": 2, "processes": 4}  # of the corners, one is asked at each size; all in a thorough run

# No deadline: the ranks have one. Not too slow: the ranks' start counts towards the first example. Function-scoped:
# a test's patience is meant to last for all its examples.
DRAWN = settings(
    max_examples=120 if THOROUGH else 12,
    derandomize=not THOROUGH,
    print_blob=THOROUGH,
    deadline=None,
    database=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture),
)


def shares(transport: str) -> int:
    """Into how many parts the corners are dealt over the sizes of worlds."""
    return 1 if THOROUGH else SHARES[transport]
