"""Layers, losses, optimizers, datasets and two trainings beside the numbers recorded with the real MindSpore 2.10.0."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.mindspore as ms
from tests.adapters.mindspore.beside_real import datasets, layers
from tests.adapters.mindspore.beside_real.record import ALONE, IMAGES, RECORDED, SCRIPTS, TUTORIALS, packed, results
from tests.adapters.packages import run_python

NUMBERS = np.load(RECORDED)
KNOWN: dict[str, Any] = json.loads(str(NUMBERS["known"]))


def difference(name: str, case: Any) -> str:
    """Say how a case differs from the recorded one; "" if it does not."""
    known, numbers = case
    if known != KNOWN[name]:
        return f"{name}: {[pair for pair in zip(known, KNOWN[name], strict=False) if pair[0] != pair[1]][:3]}"
    if np.allclose(numbers, NUMBERS[name], rtol=1e-4, atol=1e-5):
        return ""
    return f"{name}: greatest difference {np.abs(numbers - NUMBERS[name]).max()}"


def differences(cases: Callable[[], Any]) -> list[str]:
    found = [difference(name, packed(function(ms))) for name, function in cases()]
    assert len(found) > 80
    return [each for each in found if each]


@pytest.mark.unranked
def test_layers_losses_and_optimizers_match_mindspore() -> None:
    assert differences(layers.cases) == []


@pytest.mark.unranked
def test_datasets_match_mindspore() -> None:
    assert differences(datasets.cases) == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small files in MNIST's form, which the tutorials read."""
    datasets.write_mnist(tmp_path, *IMAGES)
    monkeypatch.setenv("TUTORIAL_DATA", str(tmp_path))
    return tmp_path


def train(tutorial: str, size: int) -> None:
    """Run a tutorial's script on ranks that are threads."""
    script = SCRIPTS / f"{tutorial}.py"
    code = compile(script.read_text(), script, "exec")
    with collshim.stand_in("mindspore"):
        collshim.launch(lambda: exec(code, {"__name__": "tutorial"}), size, timeout=200)


@pytest.mark.threads
@pytest.mark.parametrize("size", [1, 2])
def test_tutorials_match_mindspore(folder: Path, size: int) -> None:
    for tutorial in ALONE if size == 1 else TUTORIALS:
        train(tutorial, size)
    assert [text for name, case in results(folder, size).items() if (text := difference(name, case))] == []


@pytest.mark.threads
@pytest.mark.parametrize("tutorial", ["functional", "model"])
def test_four_ranks_end_with_the_weights_of_one(folder: Path, tutorial: str, monkeypatch: pytest.MonkeyPatch) -> None:
    train(tutorial, 1)
    monkeypatch.setenv("TUTORIAL_STRAY", "1")  # other initial weights on ranks 1 to 3 of "model"
    train(tutorial, 4)
    one = np.load(folder / f"{tutorial}-0-of-1.npz")
    names = set(one.files) - {"losses", "metrics", "files"}
    for rank in range(4):
        own = np.load(folder / f"{tutorial}-{rank}-of-4.npz")
        assert [name for name in names if not np.allclose(own[name], one[name], rtol=1e-4, atol=1e-6)] == []


@pytest.mark.processes
def test_tutorial_runs_under_its_own_import(folder: Path) -> None:
    run_python("-m", "collshim", "run", "--as", "mindspore", "-n", "2", str(SCRIPTS / "functional.py"))
    assert (folder / "functional-1-of-2.npz").is_file()
