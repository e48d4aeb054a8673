"""Record what the scripts of this folder print on TensorFlow itself, with one replica.

python tests/adapters/tensorflow/tutorials/record.py    # with tensorflow-cpu==2.21.0 in its environment
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_LINE = ",\n  "
FOLDER = Path(__file__).parent
SCRIPTS = ("custom_training", "distributed_input", "keras_fit", "multi_worker_fit", "multi_worker_loop")


def printed(script: str) -> list[list[object]]:
    """Return the lines that a script prints."""
    quiet = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(FOLDER / f"{script}.py"), folder]
        done = subprocess.run(command, env=quiet, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def main() -> None:
    """Write the recording."""
    found = {script: printed(script) for script in SCRIPTS}
    lines = [
        f" {json.dumps(script)}: [\n  {_LINE.join(json.dumps(line) for line in several)}\n ]"
        for script, several in found.items()
    ]
    (FOLDER / "recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
