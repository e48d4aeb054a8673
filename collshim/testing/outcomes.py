"""How a test ended on each rank, and which rank's outcome decides the test's."""

from __future__ import annotations

import unittest
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from collshim.errors import is_consequence, text_of

PASSED, FAILED, SKIPPED, XFAILED, UNKNOWN = "passed", "failed", "skipped", "xfailed", "did not end"
ENDED_ALL, REJECTED = "ended the session", "gave up the example"

_KINDS = {
    pytest.exit.Exception: ENDED_ALL,
    pytest.skip.Exception: SKIPPED,
    unittest.SkipTest: SKIPPED,
    pytest.xfail.Exception: XFAILED,
}
_OF_HYPOTHESIS = ("UnsatisfiedAssumption", "StopTest")
"""The exceptions that Hypothesis raises to reject an example. Listed by name, because few runs import Hypothesis."""

_LONGEST_LINE = 200


@dataclass
class Outcome:
    """The end of a test on one rank.

    Attributes:
        kind: one of the constants of this module, such as "passed".
        text: the error in one line.
        error: the exception.
        shown: the traceback as pytest shows it, if the rank is a process.
        place: the file and the line of a skip, if the rank is a process.
        output: the text that the rank wrote to its standard output and error.
        log: the text that the rank logged.
        warned: the warnings that it issued, pickled, if the rank is a process.
    """

    kind: str
    text: str = ""
    error: BaseException | None = None
    shown: Any = None
    place: tuple[str, int] | None = None
    output: str = ""
    log: str = ""
    warned: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, error: BaseException | None) -> Outcome:
        """Return the outcome of a rank that raised ``error``, or that passed if it is None."""
        if error is None:
            return cls(PASSED)
        if type(error).__name__ in _OF_HYPOTHESIS and type(error).__module__ == "hypothesis.errors":
            return cls(REJECTED, _line_of(error), error)
        kind = next((kind for type_, kind in _KINDS.items() if isinstance(error, type_)), FAILED)
        return cls(kind, _line_of(error), error)

    @property
    def is_cause(self) -> bool:
        """Whether the rank failed by itself, and not because another rank did."""
        return self.kind == UNKNOWN or (self.kind == FAILED and not is_consequence(self.text))

    @property
    def place_in_order(self) -> int:
        """A sort key: the outcome with the lowest key decides how the test ended."""
        if self.is_cause:
            return 2
        return {ENDED_ALL: 0, REJECTED: 1, XFAILED: 3, SKIPPED: 4, FAILED: 5}.get(self.kind, 6)


def _line_of(error: BaseException) -> str:
    lines = text_of(error).splitlines() or [""]
    text = f"{type(error).__name__}: {lines[0]}" if lines[0] else type(error).__name__
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 3]}..."


def cause(outcomes: Sequence[Outcome]) -> int | None:
    """Return the rank whose outcome decides the test's, the cause rather than a consequence; None if all passed."""
    rank = min(range(len(outcomes)), key=lambda rank: (outcomes[rank].place_in_order, rank))
    return None if outcomes[rank].kind == PASSED else rank


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
    """Return the error text if some ranks skipped a test and others did not; "" if all did the same."""
    skipped = [rank for rank, outcome in enumerate(outcomes) if outcome.kind == SKIPPED]
    if not skipped or len(skipped) == len(outcomes):
        return ""
    names = ", ".join(map(str, skipped))
    return f"rank {names} of {len(outcomes)} skipped the test, should be all ranks or none"
