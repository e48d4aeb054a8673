"""Scripts with the calls of TensorFlow's tutorials print the same numbers as on TensorFlow 2.21 with one replica.

``tutorials/record.py`` recorded those; each script runs unchanged, by ``collshim run --as tensorflow``.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.robustness.scripts import run_command

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]"),
]

FOLDER = Path(__file__).parent / "tutorials"
RECORDED = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))
SLOW = pytest.mark.slow
REPLICAS = [pytest.param(1, marks=SLOW), 2, pytest.param(4, marks=SLOW)]
WORKERS = [pytest.param(1, marks=SLOW), 2, pytest.param(4, marks=SLOW)]


def require_recorded(script: str, *arguments: Any) -> None:
    done = run_command(FOLDER, "run", "--no-prefix", "--as", "tensorflow", *arguments)
    assert done.code == 0, done.errors
    found = [json.loads(line) for line in done.out.splitlines() if line.startswith("[")]
    assert [name for name, *_ in found] == [name for name, *_ in RECORDED[script]]
    for (name, *numbers), (_, *wanted) in zip(found, RECORDED[script], strict=True):
        assert numbers == pytest.approx(wanted, rel=2e-5, abs=1e-5), name


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("script", ["custom_training", "distributed_input", "keras_fit"])
def test_tutorial_on_mirrored_replicas(script: str, replicas: int, tmp_path: Path) -> None:
    require_recorded(script, "-n", 1, "--device", "cpu", "--devices", replicas, f"{script}.py", tmp_path)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("script", ["multi_worker_fit", "multi_worker_loop"])
def test_tutorial_on_workers(script: str, workers: int, tmp_path: Path) -> None:
    require_recorded(script, "-n", workers, f"{script}.py", tmp_path)
