"""`collshim.torch` is the adapter and `torch` is torch, whichever is imported first (hazards 1 and 7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collshim.frameworks import FRAMEWORKS
from tests.packaging.conftest import Run

pytestmark = pytest.mark.processes

PACKAGES = ("conformance", "demo", *FRAMEWORKS)

IMPORT_ALL = f"""
import importlib, json
modules = {{package: importlib.import_module("collshim." + package) for package in {PACKAGES}}}
print(json.dumps({{package: [module.__name__, module.__file__] for package, module in modules.items()}}))
"""

IMPORT_TORCH_IN_EVERY_WAY = """
from collshim import torch as adapter
import torch
import collshim.torch
from collshim import torch as again
import sys
assert adapter is again is collshim.torch is sys.modules["collshim.torch"]
assert torch is sys.modules["torch"] is not adapter
print(adapter.__name__, torch.__name__, torch.Tensor.__name__)
"""

NAMES_BOUND_BY_COLLSHIM = """
import collshim
print(sorted(name for name in FRAMEWORKS if name in vars(collshim)))
"""


@pytest.fixture(params=["checkout", pytest.param("installed", marks=pytest.mark.slow)])
def home(request: pytest.FixtureRequest) -> Path:
    """Return the folder that collshim is imported from."""
    place: Path = request.getfixturevalue(request.param)
    return place


def test_every_package_is_imported_under_its_name(python: Run, home: Path) -> None:
    done = python("-c", IMPORT_ALL, path=home)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {package: name for package, (name, _) in found.items()} == {
        package: f"collshim.{package}" for package in PACKAGES
    }
    assert all(Path(file).is_relative_to(home) for _, file in found.values())


def test_torch_and_the_adapter_keep_their_names(python: Run, home: Path) -> None:
    done = python("-c", IMPORT_TORCH_IN_EVERY_WAY, path=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["collshim.torch", "torch", "Tensor"]


def test_importing_collshim_binds_no_frameworks_name(python: Run, root: Path, frameworks: set[str]) -> None:
    done = python("-c", f"FRAMEWORKS = {frameworks | {'cupy'}}" + NAMES_BOUND_BY_COLLSHIM, path=root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[]"]


@pytest.mark.parametrize("folder", ["conformance", "demo"])
def test_root_folder_cannot_be_imported_by_its_name(python: Run, root: Path, folder: str) -> None:
    done = python("-c", f"import {folder}", path=root)
    assert done.returncode != 0
    assert f"imported as '{folder}', should be 'collshim.{folder}'" in done.stderr


def test_wheel_command_can_be_called(python: Run, installed: Path) -> None:
    done = python("-c", "from collshim.__main__ import main; print(callable(main))", path=installed)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
