"""Releases whose gradients depend on the number of ranks are named; those that mend it raise no alarm.

They are downloaded: ``make upstream-invariance``, which ``make thorough`` runs too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not os.environ.get("COLLSHIM_THOROUGH"), reason="downloads releases: make upstream-invariance"),
]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CASES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))


def folder_of(*packages: str) -> Path:
    """Return the folder into which releases were installed, without what they depend on; skip if that fails."""
    folder = ROOT / ".venv-upstream-invariance" / "-".join(package.replace("==", "-") for package in packages)
    if not folder.exists():
        part = folder.parent / f"{folder.name}.part"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(part), *packages]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            pytest.skip(f"{' '.join(packages)} cannot be installed: {done.stderr.strip()[-200:]}")
        part.rename(folder)
    return folder


def facts_of(name: str, case: dict[str, Any], release: str) -> dict[str, Any]:
    """Return what the command says of a release."""
    folder = folder_of(f"{case['package']}=={release}", *case["installs"])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))}
    words = ["invariance", f"{HERE / name}.py:step", "--ranks", "1,2,4", "--json"]
    command = [sys.executable, "-m", "collshim", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, env=environment)
    assert done.stdout, done.stderr[-2000:]
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.mark.parametrize("name", CASES)
def test_wrong_release_is_named(name: str) -> None:
    case = CASES[name]
    facts = facts_of(name, case, case["wrong"])
    kinds = [{one["name"]: one["kind"] for one in run["parameters"]} for run in facts["runs"]]
    assert facts["code"] == 1
    assert [{run[parameter] for parameter in case["parameters"]} for run in kinds] == [{case["factor"]}] * 2
    assert facts["culprits"][0]["line"].endswith(case["named"])


@pytest.mark.parametrize("name", CASES)
def test_mended_release_raises_no_alarm(name: str) -> None:
    case = CASES[name]
    facts = facts_of(name, case, case["right"])
    assert (facts["code"], facts["verdict"]) == (0, facts["verdict"])
