"""The failures of a run by their cause: failures whose first lines differ only in numbers have the same cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from collshim.conformance.report.results import CaseResult, Function, Grid
from collshim.conformance.report.verdicts import GIVEN_UP

_NUMBERS = re.compile(r"\b0x[0-9a-f]+|[-+]?\b\d+(\.\d+)?(e[-+]?\d+)?j?|\b(nan|inf)\b")
_LISTS = re.compile(r"([\[(])#(, #)*,?([\])])")
_TOLERANCE = " within #"


class Cause(NamedTuple):
    """The common cause of several failures.

    Attributes:
        text: the first line of the difference, with # for numbers and [#] for lists of them.
        failures: the functions and cases, in the order of the grid.
    """

    text: str
    failures: Sequence[tuple[Function, CaseResult]]

    @property
    def functions(self) -> list[str]:
        """The names of the functions, without repetition."""
        return list(dict.fromkeys(function.name for function, _ in self.failures))


def causes(grid: Grid) -> list[Cause]:
    """Return the causes of a run's failures: those with most cases first, cases that were not asked last."""
    found: dict[str, list[tuple[Function, CaseResult]]] = {}
    for function, result in grid.failed:
        found.setdefault(_mask(result.why), []).append((function, result))
    return sorted((Cause(*item) for item in found.items()), key=lambda one: (one.text == GIVEN_UP, -len(one.failures)))


def _mask(why: str) -> str:
    first = why.strip().partition("\n")[0]
    return _LISTS.sub(r"\1#\3", _NUMBERS.sub("#", first)).removesuffix(_TOLERANCE)
