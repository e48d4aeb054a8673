"""How a test ended on each rank, and which of the failures is the cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from collshim.errors import is_consequence, text_of

PASSED, FAILED, SKIPPED, XFAILED, UNKNOWN = "passed", "failed", "skipped", "xfailed", "did not end"

_LONGEST_LINE = 200


@dataclass
class Outcome:
    """The end of a test on one rank.

    Attributes:
        kind: "passed" and so on.
        text: the error in one line.
        error: the exception, if the rank is a thread of this process.
        shown: the traceback as pytest shows it, if the rank is a process.
        output: what the rank wrote to its standard output and error.
    """

    kind: str
    text: str = ""
    error: BaseException | None = None
    shown: Any = None
    output: str = ""

    @classmethod
    def of(cls, error: BaseException | None) -> Outcome:
        """Return the outcome of a rank that raised, or did not."""
        if error is None:
            return cls(PASSED)
        kinds = {pytest.skip.Exception: SKIPPED, pytest.xfail.Exception: XFAILED}
        kind = next((kind for type_, kind in kinds.items() if isinstance(error, type_)), FAILED)
        return cls(kind, _line_of(error), error)

    @property
    def is_cause(self) -> bool:
        """Whether the rank failed by itself, and not because another rank did."""
        return self.kind == UNKNOWN or (self.kind == FAILED and not is_consequence(self.text))


def _line_of(error: BaseException) -> str:
    lines = text_of(error).splitlines() or [""]
    text = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 3]}..."


def cause(outcomes: Sequence[Outcome]) -> int | None:
    """Return the rank whose failure to show: the first that is not the consequence of another; None if none failed."""
    failed = [rank for rank, outcome in enumerate(outcomes) if outcome.kind in (FAILED, UNKNOWN)]
    causes = [rank for rank in failed if outcomes[rank].is_cause]
    return next(iter(causes or failed), None)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each rank."""
    shown = cause(outcomes)
    lines = []
    for rank, outcome in enumerate(outcomes):
        mark = ">" if rank == shown else " "
        after = f": {outcome.text}" if outcome.text else ""
        lines.append(f"{mark} rank {rank} {outcome.kind}{after}")
    return "\n".join(lines)


def unlike(outcomes: Sequence[Outcome]) -> str:
    """Say that some ranks skipped a test and others did not; empty if all did the same."""
    skipped = [rank for rank, outcome in enumerate(outcomes) if outcome.kind == SKIPPED]
    if not skipped or len(skipped) == len(outcomes):
        return ""
    names = ", ".join(map(str, skipped))
    return f"rank {names} of {len(outcomes)} skipped the test, should be all ranks or none"
