"""``record.py`` runs by itself and repeats its earlier recordings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import collshim.conformance
from collshim.conformance.recorder import recordings
from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.catalogue import RECORDED, calls
from collshim.conformance.recorder.jobs import record

SCRIPT = Path(collshim.conformance.__file__).resolve().parent / "record.py"


def test_torch_is_recorded_again_as_before(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, str(SCRIPT), "torch", "--out", str(tmp_path), "--sizes", "2", "--only", "all_gather/1d"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.iterdir()
    (again,) = recordings.read(folder)
    before = {one.name: one for one in recordings.read(recordings.folders("torch")[0])}
    assert again == before["all_gather/1d@2"]


def test_recording_continues_after_a_call_ends_the_process() -> None:
    texts = {"before": "rank", "dies": "import os; os.abort()", "after": "size"}
    three = [Asked(f"f/{name}", text, ("torch.f",), 1, ({},)) for name, text in texts.items()]
    found = record("torch", three, sys.executable, SCRIPT, lambda line: None)
    assert [answers for _, answers in found] == [[{"returned": 0}], [{"ended": "died"}], [{"returned": 1}]]


@pytest.mark.parametrize("framework", RECORDED)
def test_every_recorded_call_is_still_asked(framework: str) -> None:
    asked = {(one.id, one.world, one.size): one.as_json() for one in calls(framework)}
    found = [one.asked for folder in recordings.folders(framework) for one in recordings.read(folder)]
    assert [one.id for one in found if asked.get((one.id, one.world, one.size)) != one.as_json()] == []
    assert len(found) == len(asked)
