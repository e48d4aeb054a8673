"""Tensors, functionals, modules, optimizers and gradients match the results of the real MegEngine 1.13.0."""

from __future__ import annotations

import json
from typing import Any

import pytest

import collshim.megengine as mge
from tests.adapters.megengine.observing import OBSERVED, PROGRAMS, describe, observe

pytestmark = pytest.mark.unranked

EXPRESSIONS: dict[str, Any] = json.loads((OBSERVED / "expressions.json").read_text())
RESULTS: dict[str, Any] = json.loads((OBSERVED / "programs.json").read_text())


def differs(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and "raises" in wanted:
        return not (isinstance(found, dict) and set(wanted["raises"]) <= set(found.get("raises", ())))
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) != len(wanted) or any(map(differs, found, wanted))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return set(found) != set(wanted) or any(differs(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, float) and isinstance(found, float):
        return abs(found - wanted) > 2e-4 * max(1.0, abs(wanted))
    return bool(found != wanted)


def test_expressions_match_megengine() -> None:
    found = {expression: observe("collshim.megengine", expression) for expression in EXPRESSIONS}
    assert len(found) > 150
    different = {key: (value, EXPRESSIONS[key]) for key, value in found.items() if differs(value, EXPRESSIONS[key])}
    assert different == {}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_match_megengine(name: str) -> None:
    found = json.loads(json.dumps(describe(PROGRAMS[name](mge))))
    assert not differs(found, RESULTS[name]), (found, RESULTS[name])
