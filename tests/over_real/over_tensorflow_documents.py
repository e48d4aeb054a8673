"""The stand-in for TensorFlow gives the output that TensorFlow's docstrings show, if TensorFlow does."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.over_real.doctested import __file__ as program
from tests.over_real.doctested import examples

NOT_HERE = ("no gradients of ragged tensors",)
"""What the stand-in has no gradients of, as its errors name it."""


def outcomes(folder: Path, *options: str) -> dict[str, str]:
    """Return the differences in each example of the installed TensorFlow's."""
    found = importlib.util.find_spec("tensorflow")
    assert found is not None
    assert found.origin is not None
    (folder / "examples.json").write_text(json.dumps(examples(Path(found.origin).parent)))
    command = [sys.executable, program, str(folder / "examples.json"), str(folder / "answers.json"), *options]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run(command, env=environment, cwd=folder, timeout=200, check=True, capture_output=True)
    told: dict[str, str] = json.loads((folder / "answers.json").read_text())
    return told


@pytest.mark.timeout(400)
def test_stand_in_matches_tensorflow_documents(tmp_path: Path) -> None:
    theirs, ours = outcomes(tmp_path), outcomes(tmp_path, "as")
    held = [name for name, otherwise in theirs.items() if not otherwise]
    assert len(held) > 30
    otherwise = {name: ours[name] for name in held if ours[name]}
    assert not {name: text for name, text in otherwise.items() if not any(word in text for word in NOT_HERE)}
