"""How hard the suite tries: the same few cases every time, or with COLLSHIM_THOROUGH=1 many new ones."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("COLLSHIM_THOROUGH") == "1"
TRANSPORTS = ("threads", "processes")
SIZES = {"threads": (1, 2, 3, 4, 8), "processes": (1, 2, 3, 4)}  # of worlds
SHARES = {"threads": 2, "processes": 4}  # of the corners, one is asked at each size; all in a thorough run


def shares(transport: str) -> int:
    """Into how many parts the corners are dealt over the sizes of worlds."""
    return 1 if THOROUGH else SHARES[transport]
