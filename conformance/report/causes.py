"""Groups a run's failures by cause: wrong values first, and dtypes and forms of one function together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from collshim.conformance.cases import Case
from collshim.conformance.report.results import CaseResult, Function, Grid
from collshim.conformance.report.verdicts import BESIDE, GIVEN_UP

# The kinds of differences, the most important first.
VALUES, FORM, EXCEPTION, RETURNED, MEMORY, REFUSAL, OTHER, UNASKED = range(8)

_BEFORE_RANK = re.compile(r"\n(?=rank \d+: )")
_RANK = re.compile(r"^rank \d+: ")
_OF_RANK = re.compile(r" \(rank \d+ of \d+\)$")
_EXCERPT = re.compile(r": expected .+, got ")
_FORM = re.compile(r"^the (dtype|shape|kind|length|type|names) (of|in) ")
_RAISED = re.compile(r"^the (?:(?:class|text) of the )?exception is (.+), should be (.+)$")
_LOST = re.compile(r"NoAnswer|ProcessEnded|DeadlineError")
_VARYING = re.compile(
    r"\b(0x[0-9a-f]+|nan|inf|torch\.\w+|\d[\w.]*"
    r"|(bool|u?int|float|bfloat|complex)\d*|Bool|Byte|Char|Short|Int|Long|Half|Float|Double|BFloat16|Complex\w+)\b"
)
_USUAL = {field.name: field.default for field in fields(Case)}
_VALUES_SHOWN = 4
_TEXT = 100  # the first characters of an exception's text, which failures of one cause have in common
_PARAMETERS = ("dtype", "reduce_op", "layout", "kind", "family", "gradient", "fault", "shape", "size", "root", "shift")


class Difference(NamedTuple):
    """A difference in a case: its kind, the line that reports it, and what differences of the same cause share."""

    kind: int
    line: str
    key: tuple[str, ...]


class Failure(NamedTuple):
    """A failed case of a function, with a difference."""

    function: Function
    result: CaseResult
    line: str


class Cause(NamedTuple):
    """The common cause of several failures.

    Attributes:
        kind: the kind of the differences.
        text: what is wrong, in words; values are in the failures' lines.
        only: the parameters that distinguish the failures from other cases; "" if there are none.
        failures: the functions and cases, the simplest one first.
    """

    kind: int
    text: str
    only: str
    failures: Sequence[Failure]

    @property
    def functions(self) -> list[str]:
        """The names of the functions, without repetition."""
        return list(dict.fromkeys(failure.function.name for failure in self.failures))


def causes(grid: Grid) -> list[Cause]:
    """Return the causes of a run's failures: by kind, those with most cases first; a case may have several."""
    found: dict[tuple[int, tuple[str, ...]], list[Failure]] = {}
    for function, result in grid.failed:
        for one in differences(function, result):
            found.setdefault((one.kind, one.key), []).append(Failure(function, result, one.line))
    several = [_cause(grid, kind, failures) for (kind, _), failures in found.items()]
    return sorted(several, key=lambda cause: (cause.kind, -len(cause.failures)))


def differences(function: Function, result: CaseResult) -> list[Difference]:
    """Return one difference of each kind in a failed case, the most important kind first.

    If a rank fails, the others may hang, so a hang counts only if there is no other exception.
    """
    every = [_difference(function, line) for line in lines(result)]
    every.sort(key=lambda one: (one.kind, one.kind == EXCEPTION and _LOST.search(one.line) is not None))
    return list({one.kind: one for one in reversed(every)}.values())[::-1]


def lines(result: CaseResult) -> list[str]:
    """Return the lines of the differences that no known deviation explains."""
    text = result.why.partition("\nTraceback")[0].partition(f"\n{BESIDE}")[0].strip()
    if not text.startswith("rank "):
        return text.split("\n") if text else ["differs"]
    return [" ".join(line.split("\n")) for line in _BEFORE_RANK.split(text)]  # an exception's text spans lines


def simplest(failures: Sequence[Failure]) -> list[Failure]:
    """Sort failures: plain functions before their other forms, cases with few parameters before others."""
    return sorted(
        failures, key=lambda one: ("[" in one.function.name, one.result.case.count("="), len(one.result.case))
    )


def path(function: Function) -> str:
    """Return the path of the function, without its form."""
    return function.name.partition("[")[0]


def _difference(function: Function, line: str) -> Difference:
    text = _OF_RANK.sub("", _RANK.sub("", line))
    form, raised = _FORM.match(text), _RAISED.match(text)
    what, _, expected = text.rpartition(", should be ")
    if text == GIVEN_UP:
        return Difference(UNASKED, line, ())
    if raised:
        kind = EXCEPTION if raised[2] == "none" else REFUSAL
        return Difference(kind, line, (_VARYING.sub("#", raised[1])[:_TEXT], raised[2]))
    if form:
        return Difference(FORM, line, (path(function), form[1]))
    if text.startswith("that "):
        return Difference(MEMORY, line, (text,))
    if expected == "a handle" or (what.startswith("returned is ") and expected == "None"):
        return Difference(RETURNED, line, (re.sub(r"[\d(),]+", "#", text),))
    if not expected:
        return Difference(OTHER, line, (_VARYING.sub("#", text),))
    return Difference(VALUES, line, (path(function),))


def _cause(grid: Grid, kind: int, failures: Sequence[Failure]) -> Cause:
    ordered = simplest(failures)
    return Cause(kind, _words(kind, ordered[0]), _only(grid, failures), ordered)


def _words(kind: int, first: Failure) -> str:
    text = _OF_RANK.sub("", _RANK.sub("", first.line))
    if kind == VALUES:
        return f"wrong values of {path(first.function)}"
    if kind == FORM:
        form = _FORM.match(text)
        return f"wrong {form[1] if form else 'form'} of {path(first.function)}: {text}"
    return _EXCERPT.split(text)[0]


def _only(grid: Grid, failures: Sequence[Failure]) -> str:
    """Return the parameters that distinguish these failures from the functions' other cases.

    These are those whose usual value only other cases have; and the dtype, if it is the usual one and others agree.
    """
    names = {failure.function.name for failure in failures}
    failed = {failure.result.case for failure in failures}
    every = {result.case for function in grid.functions if function.name in names for result in function.cases}
    bad, good = (list(_parsed(several)) for several in (failed & every, every - failed))
    if not bad or not good:
        return ""
    parts = []
    for name in _PARAMETERS:
        values = dict.fromkeys(getattr(case, name) for case in bad)
        others = {getattr(case, name) for case in good}
        is_unusual = _USUAL[name] in others - set(values) and len(values) <= _VALUES_SHOWN
        if is_unusual or (name == "dtype" and [*values] == [_USUAL[name]] and len(others) > _VALUES_SHOWN):
            parts.append(f"{name}={' or '.join(map(repr, values))}")
    return ", ".join(parts)


def _parsed(several: set[str]) -> Iterator[Any]:
    for line in sorted(several):
        if line.startswith("Case("):
            yield Case.parse(line)
