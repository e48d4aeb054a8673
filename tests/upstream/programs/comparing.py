"""The outcome of a program over gloo and over collshim, and its differences from ``expected.toml``."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.upstream.programs.listing import Column, Program, plain
from tests.upstream.programs.ranks import FIGURES
from tests.upstream.programs.running import RunResult

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = Path(__file__).with_name("expected.toml")

PASSES, DIFFERS, FAILS, REFUSED = "passes", "differs", "fails", "refused"
BEYOND, BOTH = "passes, gloo fails", "both fail"
AT_TIMES = "passes, gloo at times"

_CLOSE = 1e-5
"""The relative difference that another order of a sum explains; figures with a "tolerance" have another one."""


@dataclass(frozen=True)
class Expected:
    """An entry of ``expected.toml``: an outcome other than ``PASSES``, and the reason.

    Attributes:
        outcome: one of those that ``outcome`` returns; or "refused": it fails, with the error in ``says``; or
            "passes, gloo at times": it passes, and a race decides whether it does so over gloo.
        says: a pattern in the output of a run that fails.
        columns: the titles of the columns that it is about.
    """

    outcome: str
    programs: tuple[str, ...]
    why: str
    says: str = ""
    columns: tuple[str, ...] = ("2 ranks", "4 ranks")


def outcome(gloo: RunResult, collshim: RunResult) -> str:
    """Compare the two runs."""
    over_gloo, over_collshim = gloo.passed, collshim.passed
    if not over_gloo:
        return BEYOND if over_collshim else BOTH
    if not over_collshim:
        return FAILS
    return PASSES if _same(_figures(gloo), _figures(collshim)) else DIFFERS


def describe(ran: RunResult) -> str:
    """Return how a run ended, with its last error."""
    if ran.status is None:
        return "missed its deadline"
    if ran.left:
        return f"left {ran.left} processes"
    errors = re.findall(r"^(?:\[rank\d+\]: )?([\w.]*(?:Error|Exception)\b: .*)$", ran.output, re.MULTILINE)
    return f"exit status {ran.status}" + (f": {errors[0]}" if ran.status and errors else "")


def expected() -> list[Expected]:
    """Return the entries of ``expected.toml``."""
    with _FILE.open("rb") as file:
        entries: list[dict[str, Any]] = tomllib.load(file).get("expected", [])
    return [Expected(**{key: plain(value) for key, value in entry.items()}) for entry in entries]


def reason(program: Program, column: Column) -> Expected:
    """Return the expectation of a program in a column."""
    for entry in expected():
        if program.name in entry.programs and column.title in entry.columns:
            return entry
    return Expected(PASSES, (program.name,), "")


def is_to_pass_over_gloo(program: Program, column: Column) -> bool:
    """Return whether the expected outcome is one of a program that passes over gloo."""
    return reason(program, column).outcome not in (BEYOND, BOTH, AT_TIMES)


def unknown(programs: list[Program]) -> list[str]:
    """Describe the expectations of programs that do not exist."""
    names = {program.name for program in programs}
    return [
        f"{name}: in expected.toml, but not a program"
        for entry in expected()
        for name in entry.programs
        if name not in names
    ]


def classify(program: Program, column: Column, found: str, collshim: RunResult) -> str:
    """Return the expected name of an outcome, if that says more than the outcome itself."""
    entry = reason(program, column)
    if entry.outcome == AT_TIMES and found in (PASSES, BEYOND):
        return AT_TIMES
    if (found, entry.outcome) == (FAILS, REFUSED) and collshim.status is not None:
        return REFUSED if re.search(entry.says, collshim.output) else FAILS
    return found


def difference(program: Program, column: Column, found: str, gloo: RunResult, collshim: RunResult) -> str | None:
    """Describe how a result differs from the expected one; None if it does not."""
    entry = reason(program, column)
    if found != entry.outcome:
        ends = f"gloo: {describe(gloo)}; collshim: {describe(collshim)}"
        return f"{program.name}, {column.title}: {found}, expected: {entry.outcome} ({ends})"
    if entry.says and not re.search(entry.says, gloo.output if found in (BEYOND, BOTH) else collshim.output):
        return f"{program.name}, {column.title}: {found} as expected, but its output does not have {entry.says!r}"
    return None


def _figures(ran: RunResult) -> list[Any]:
    return [json.loads(line.removeprefix(FIGURES)) for line in ran.figures]


def _same(left: Any, right: Any, close: float = _CLOSE) -> bool:
    """Return whether figures are equal; numbers may differ in their last digits."""
    if isinstance(left, dict) and isinstance(right, dict):
        close = left.get("tolerance", close)
        return left.keys() == right.keys() and all(_same(left[key], right[key], close) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(_same(*pair, close) for pair in zip(left, right, strict=True))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=close, abs_tol=1e-7) or (math.isnan(left) and math.isnan(right))
    return bool(left == right)
