"""Record what OneFlow's guide gives on the real OneFlow, on one rank.

    python -m tests.adapters.oneflow.tutorials.recording

runs it with this Python, which has OneFlow 0.9.0 and NumPy 1.23.5, and writes ``guide.json`` anew. LD_LIBRARY_PATH
names the folders of the CUDA libraries that OneFlow looks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).with_name("guide.py")
RECORDED = Path(__file__).with_name("guide.json")


def give(command: Sequence[str], folder: Path) -> Any:
    """Run the program and return what rank 0 prints in the last line."""
    done = subprocess.run(
        [*command, str(GUIDE), str(folder)], capture_output=True, text=True, timeout=200, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    last = next(line for line in reversed(done.stdout.splitlines()) if "losses" in line)
    return json.loads(last[last.index("{") :])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        RECORDED.write_text(json.dumps(give([sys.executable], Path(own)), indent=1) + "\n")
