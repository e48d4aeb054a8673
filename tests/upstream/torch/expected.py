"""``expected.toml``'s entries for the tests that do not pass, and a run's differences from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = Path(__file__).with_name("expected.toml")


def differences(outcomes: dict[str, str], ranks: int, on: str) -> list[str]:
    """Describe each test with an unexpected outcome, and each expectation without a test."""
    expected = _expected(ranks, on)
    unknown = [
        f"{name}: expected to be {expected[name]}, but there is no such test" for name in expected.keys() - outcomes
    ]
    found = {name: outcome.partition(":")[0] for name, outcome in outcomes.items()}
    wrong = [
        f"{name}: {outcome}, expected {expected.get(name, 'passed')}"
        for name, outcome in found.items()
        if outcome != expected.get(name, "passed")
    ]
    return sorted(unknown) + wrong


def _expected(ranks: int, on: str) -> dict[str, str]:
    with _FILE.open("rb") as file:
        entries: list[dict[str, Any]] = tomllib.load(file)["expected"]
    return {
        name: entry["outcome"]
        for entry in entries
        if ranks in entry["ranks"] and on in entry["on"]
        for name in entry["tests"]
    }
