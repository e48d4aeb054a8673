"""The whole trainings of docs/porting.md: each prints the losses on the page, and computes what its port does."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

DOCS = Path(__file__).resolve().parents[2] / "docs"
ORIGINALS = ("mindspore", "oneflow", "tensorflow", "megengine")
FUNCTIONS = {"megengine": "step"}


def _shown() -> list[float]:
    text = re.search(r"```text\n(\[[\d., ]+\])\n```", (DOCS / "porting.md").read_text(encoding="utf-8"))
    assert text is not None
    return [float(number) for number in ast.literal_eval(text[1])]


def _run(folder: Path, *words: str) -> str:
    for path in (DOCS / "examples").glob("port_*.py"):
        shutil.copy(path, folder)
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("framework", ["torch", *ORIGINALS])
def test_training_prints_the_losses_of_the_page(framework: str, tmp_path: Path) -> None:
    script = f"port_{framework}.py"
    ranks = () if framework == "megengine" else ("-m", "collshim", "run", "-n", "2", "--no-prefix")
    printed = _run(tmp_path, *ranks, script).splitlines()
    assert ast.literal_eval(printed[0]) == pytest.approx(_shown(), abs=2e-5)


@pytest.mark.parametrize(
    "framework", [pytest.param(name, marks=pytest.mark.slow) if name != "mindspore" else name for name in ORIGINALS]
)
def test_port_computes_what_the_original_does(framework: str, tmp_path: Path) -> None:
    original = f"port_{framework}.py:{FUNCTIONS.get(framework, 'train')}"
    words = ("-m", "collshim", "invariance", "port_torch.py:train", "--against", original)
    text = " ".join(_run(tmp_path, *words).split())
    shown = f"port_torch.py:train computes what {original} does, on 1 and 2 ranks: the losses and 4 gradients."
    assert text.startswith(shown)
    assert "port_torch.py:train computes what port_mindspore.py:train does" in (DOCS / "porting.md").read_text()
