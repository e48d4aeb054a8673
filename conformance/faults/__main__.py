"""``python -m collshim.conformance.faults`` is ``collshim faults``."""

from __future__ import annotations

import sys

from collshim.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["faults", *sys.argv[1:]]))
