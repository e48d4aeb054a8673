"""Record what the tutorials' programs give on the real MegEngine, on one rank.

    python -m tests.adapters.megengine.tutorials.recording

runs them with this Python, which has MegEngine 1.13.0 and NumPy 1.23.5, and writes ``observed/tutorials.json`` anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.adapters.megengine.tutorials import files

HERE = Path(__file__).parent
RECORDED = HERE.parent / "observed" / "tutorials.json"
NAMES = ("digits", "photographs")


def give(command: list[str], name: str, ranks: int, folder: Path) -> Any:
    """Run a program and return what it prints in its last line."""
    files.write(folder)
    words = [*command, str(HERE / f"{name}.py"), str(folder), str(ranks)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Record every program."""
    found = {}
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = give([sys.executable], name, 1, Path(folder))
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
