"""A rank of the real MindSpore whose collectives collshim carries, started by MindSpore's own launcher.

``FRAMEWORK --answer FOLDER``: make recorded calls (``conformance/recorder/jobs.py``).
``FRAMEWORK PREFIX ADDRESS``: answer cases (``conformance/foreign/rank.py``).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import collshim
from collshim.conformance.foreign.rank import main
from collshim.conformance.recorder.jobs import answer

SECONDS = 6.0
"""The limit of a wait inside collshim."""

if __name__ == "__main__":
    collshim.patch(sys.argv[1])
    import_module(sys.argv[1]).communication.init()  # this may wait longer: the ranks import it at different speeds
    with collshim.options(timeout=SECONDS):
        if sys.argv[2] == "--answer":
            answer(sys.argv[1], Path(sys.argv[3]))
        else:
            main(*sys.argv[1:])
