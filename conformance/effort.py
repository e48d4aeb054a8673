"""The amount of work that the suite does.

COLLSHIM_PROFILE is dev (a few new cases each time), ci (the same few cases every time; the default) or thorough (many
new cases, and every corner at every size). COLLSHIM_THOROUGH=1 also selects thorough, for all tests.
"""

from __future__ import annotations

import os

from collshim.launching.kinds import RANK_KINDS

DEFAULT = "ci"
PROFILE = "thorough" if os.environ.get("COLLSHIM_THOROUGH") == "1" else os.environ.get("COLLSHIM_PROFILE", DEFAULT)
THOROUGH = PROFILE == "thorough"
TRANSPORTS = RANK_KINDS
SIZES = {"threads": (1, 2, 3, 4, 8), "processes": (1, 2, 3, 4)}  # sizes of worlds
# One in this many of the corners runs at each size; all of them in a thorough run.
SHARES = {"threads": 2, "processes": 4, "unchecked": 2}


def shares(transport: str) -> int:
    """Return the number of shares that the corners are divided into, over the sizes of worlds."""
    return 1 if THOROUGH else SHARES[transport]
