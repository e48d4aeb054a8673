"""mypy and pyright know each module by its imported name, and torch as torch (hazard 4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.packaging.conftest import Run

MODULES_OF_MYPY = """
import json
from mypy.main import process_options
sources, _ = process_options([])
print(json.dumps([source.module for source in sources]))
"""


def test_mypy_reads_adapters_as_parts_of_collshim(python: Run, checkout: Path, frameworks: set[str]) -> None:
    done = python("-c", MODULES_OF_MYPY, cwd=checkout)
    assert done.returncode == 0, done.stderr
    modules = set(json.loads(done.stdout))
    assert {f"collshim.{name}" for name in frameworks | {"conformance", "demo"}} <= modules
    tops = {"collshim", "collshim_pytest", "compile_core", "conftest", "docs", "hatch_build", "tests"}
    assert {name.partition(".")[0] for name in modules} == tops


def test_pyright_reads_the_real_folders(settings: dict[str, Any]) -> None:
    assert {"collshim", "adapters", "conformance", "demo", "tests"} <= set(settings["tool"]["pyright"]["include"])
