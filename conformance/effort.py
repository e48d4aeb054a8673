"""How hard the suite tries.

COLLSHIM_PROFILE is dev (a few new cases each time), ci (the same few every time; the default) or thorough (many new
ones, every corner at every size); COLLSHIM_THOROUGH=1 is thorough too, for all tests.
"""

from __future__ import annotations

import os

DEFAULT = "ci"
PROFILE = "thorough" if os.environ.get("COLLSHIM_THOROUGH") == "1" else os.environ.get("COLLSHIM_PROFILE", DEFAULT)
THOROUGH = PROFILE == "thorough"
TRANSPORTS = ("threads", "processes")
SIZES = {"threads": (1, 2, 3, 4, 8), "processes": (1, 2, 3, 4)}  # of worlds
# Of the corners, one share is asked at each size; all in a thorough run.
SHARES = {"threads": 2, "processes": 4, "unchecked": 2}


def shares(transport: str) -> int:
    """Into how many parts the corners are dealt over the sizes of worlds."""
    return 1 if THOROUGH else SHARES[transport]
