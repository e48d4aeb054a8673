"""Record the real MindSpore's numbers: ``python -m tests.adapters.mindspore.beside_real.record`` with MindSpore 2.10.0.

It needs an environment with MindSpore, ``msrun`` in PATH, and nothing of collshim, and writes ``recorded.npz`` beside
this file: for each case all its numbers in a row, and a text in JSON that says what they are.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.adapters.mindspore.beside_real import datasets, layers

RECORDED = Path(__file__).with_name("recorded.npz")
SCRIPTS = Path(__file__).parents[1] / "tutorials"
TUTORIALS = ("functional", "model")
ALONE = (*TUTORIALS, "quickstart")
IMAGES = (40, 8)
"""The number of images for training and for evaluation."""

Case = tuple[list[Any], np.ndarray[Any, Any]]


def packed(arrays: dict[str, Any]) -> Case:
    """Return what arrays are, by name, and all their numbers in a row."""
    known, numbers = [], []
    for name, value in sorted(arrays.items()):
        array = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
        texts = array.tolist() if array.dtype.kind == "U" else None
        known.append([name, "text" if texts else array.dtype.name, list(array.shape), texts])
        numbers.append(np.zeros(0) if texts else array.astype(np.float64).reshape(-1))
    return known, np.concatenate([np.zeros(0), *numbers])


def results(folder: Path, ranks: int) -> dict[str, Case]:
    """Return what the ranks of the tutorials wrote: everything of one rank, and of more only the losses."""
    found: dict[str, Case] = {}
    for tutorial in ALONE if ranks == 1 else TUTORIALS:
        for rank in range(ranks):
            name = f"{tutorial}-{rank}-of-{ranks}"
            arrays = dict(np.load(folder / f"{name}.npz"))
            chosen = arrays if ranks == 1 else {key: arrays[key] for key in ("losses", "metrics") if key in arrays}
            found[name] = packed(chosen)
    return found


def _run_tutorials() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for ranks in (1, 2):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            datasets.write_mnist(folder, *IMAGES)
            for port, tutorial in enumerate(TUTORIALS, 8118 + 10 * ranks):
                count = ["--worker_num", str(ranks), "--local_worker_num", str(ranks), "--master_port", str(port)]
                command = [
                    "msrun",
                    *count,
                    "--join",
                    "True",
                    "--log_dir",
                    f"{name}/logs",
                    str(SCRIPTS / f"{tutorial}.py"),
                ]
                subprocess.run(command, env={**os.environ, "TUTORIAL_DATA": name}, check=True, cwd=name)
            if ranks == 1:
                command = [sys.executable, str(SCRIPTS / "quickstart.py")]
                subprocess.run(command, env={**os.environ, "TUTORIAL_DATA": name}, check=True, cwd=name)
            found |= results(folder, ranks)
    return found


def main(ms: Any) -> None:
    """Write the file."""
    cases = {name: packed(function(ms)) for name, function in (*layers.cases(), *datasets.cases())}
    cases |= _run_tutorials()
    known = json.dumps({name: case[0] for name, case in cases.items()})
    arrays: dict[str, Any] = {"known": np.array(known), **{name: case[1] for name, case in cases.items()}}
    np.savez_compressed(RECORDED, **arrays)


if __name__ == "__main__":
    mindspore: Any = importlib.import_module("mindspore")
    importlib.import_module("mindspore.dataset")
    if mindspore.__version__ != "2.10.0":
        raise SystemExit(f"this is MindSpore {mindspore.__version__}; the recordings are those of 2.10.0")
    main(mindspore)
