"""The notebook of docs/examples: its cells, executed, give the outputs that it shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "examples" / "ranks_in_a_notebook.ipynb"
EXECUTE = "import sys; from nbclient.cli import main; sys.exit(main())"

Outputs = list[list[dict[str, Any]]]


def outputs(notebook: Path) -> Outputs:
    """Return the outputs of each cell with code."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    folder = tmp_path_factory.mktemp("notebook")
    copy = folder / NOTEBOOK.name
    copy.write_bytes(NOTEBOOK.read_bytes())
    own = {"PYTHONPATH": str(ROOT), "JUPYTER_RUNTIME_DIR": str(folder), "IPYTHONDIR": str(folder)}
    command = [sys.executable, "-c", EXECUTE, "--inplace", "--timeout=100", str(copy)]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return outputs(copy)


def test_cells_give_the_outputs_that_are_shown(executed: Outputs) -> None:
    assert executed == outputs(NOTEBOOK)


def test_errors_name_cells(executed: Outputs) -> None:
    assert "rank 2: all_reduce(shape (4,), float32, op sum) at cell 2 line 4\n" in "".join(executed[1][0]["text"])
