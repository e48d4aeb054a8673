"""The comparison of two runs' results: which cases fail now, which agree now, and which fail for another cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from collshim.conformance.report.causes import Difference, differences
from collshim.conformance.report.failures import laid_out, number
from collshim.conformance.report.results import FAIL, CaseResult, Function, Grid
from collshim.conformance.report.terminal import WORDS

_SHOWN = 1  # the cases of a function that are shown, unless all are


@dataclass(frozen=True)
class Change:
    """A case whose result changed.

    Attributes:
        framework, transport, function, case: which case.
        old, new: the outcome, or a failure's most important difference; "" if the case is not there.
    """

    framework: str
    transport: str
    function: str
    case: str
    old: str
    new: str


@dataclass
class Comparison:
    """The changes from one run to another; the first three are for the worse.

    Attributes:
        newly_failing: cases that fail now, and did not fail or did not exist before.
        worse_causes: cases that failed before, and now have a new cause.
        newly_missing: functions that are missing now, and were not before.
        newly_stale: cases and declarations known to fail that agree now, and did not before.
        newly_passing: cases that failed, and no longer do.
        other_causes: cases that still fail, but no longer for all of their causes.
        other_outcomes: cases that fail in neither run, with different outcomes.
        only_old, only_new: cases that do not fail and are in only one of the runs.
        same: the number of other cases.
    """

    newly_failing: list[Change] = field(default_factory=list)
    worse_causes: list[Change] = field(default_factory=list)
    newly_missing: list[str] = field(default_factory=list)
    newly_stale: list[str] = field(default_factory=list)
    newly_passing: list[Change] = field(default_factory=list)
    other_causes: list[Change] = field(default_factory=list)
    other_outcomes: list[Change] = field(default_factory=list)
    only_old: list[Change] = field(default_factory=list)
    only_new: list[Change] = field(default_factory=list)
    same: int = 0

    @property
    def is_worse(self) -> bool:
        """Whether something got worse."""
        return bool(self.newly_failing or self.worse_causes or self.newly_missing or self.newly_stale)

    def as_json(self) -> dict[str, Any]:
        """Return the comparison, as ``--json`` writes it."""
        return {"worse": self.is_worse, **asdict(self)}

    def lines(self, *, all_cases: bool = False) -> Iterator[str]:
        """Yield the verdict, the changes for the worse, and then the others."""
        yield f"{'worse' if self.is_worse else 'not worse'}: {', '.join(self._counts())}"
        for title, changes in _TITLES.items():
            yield from _listed(title, getattr(self, changes), all_cases)

    def _counts(self) -> Iterator[str]:
        for title, changes in _TITLES.items():
            if getattr(self, changes):
                yield f"{len(getattr(self, changes)):,} {title}"
        yield f"{self.same:,} the same"


_TITLES = {
    "newly failing": "newly_failing",
    "failing for a new cause": "worse_causes",
    "newly missing": "newly_missing",
    "newly agreeing, although known to fail": "newly_stale",
    "newly passing": "newly_passing",
    "failing for fewer causes": "other_causes",
    "not failing, with another outcome": "other_outcomes",
    "only in the old run": "only_old",
    "only in the new run": "only_new",
}

_Place = tuple[str, str, str, str]
_Results = Mapping[_Place, tuple[Function, CaseResult]]


def compare(old: Grid, new: Grid) -> Comparison:
    """Return the changes from the old results to the new ones."""
    found, before, after = Comparison(), _results(old), _results(new)
    for place in dict.fromkeys([*after, *before]):
        _add(found, place, before.get(place), after.get(place))
    known = _missing(old)
    found.newly_missing += [name for name in _missing(new) if name not in known]
    found.newly_stale += [line for line in new.stale if line not in old.stale]
    return found


def _add(
    found: Comparison,
    place: _Place,
    before: tuple[Function, CaseResult] | None,
    after: tuple[Function, CaseResult] | None,
) -> None:
    old, new = _causes(before), _causes(after)
    change = Change(*place, _described(before, old), _described(after, new))
    old_keys, new_keys = ([(one.kind, one.key) for one in several] for several in (old, new))
    if new and not old:
        found.newly_failing.append(change)
    elif set(new_keys) - set(old_keys):
        found.worse_causes.append(change)
    elif before is None or after is None:
        (found.only_new if before is None else found.only_old).append(change)
    elif old and not new:
        found.newly_passing.append(change)
    elif old_keys != new_keys:
        found.other_causes.append(change)
    elif change.old != change.new and not new:
        found.other_outcomes.append(change)
    else:
        found.same += 1


def _results(grid: Grid) -> dict[_Place, tuple[Function, CaseResult]]:
    return {
        (cell.framework, cell.transport, function.name, result.case): (function, result)
        for cell in grid.cells.values()
        for function in cell.functions.values()
        for result in (*function.cases, *function.recorded)
    }


def _missing(grid: Grid) -> list[str]:
    return list(dict.fromkeys(function.name for function in grid.functions if function.missing))


def _causes(result: tuple[Function, CaseResult] | None) -> list[Difference]:
    return differences(*result) if result and result[1].outcome == FAIL else []


def _described(result: tuple[Function, CaseResult] | None, causes: list[Difference]) -> str:
    if result is None:
        return ""
    return causes[0].line if causes else WORDS[result[1].outcome]


def _listed(title: str, changes: Sequence[Change | str], all_cases: bool) -> Iterator[str]:
    """Yield the changes by function: a few of each unless all are requested, and none that are in only one run."""
    if changes:
        yield ""
        yield f"{title}:"
    shown = len(changes) if all_cases else 0 if title.startswith("only") else _SHOWN
    by_function: dict[str, list[Change | str]] = {}
    for one in changes:
        by_function.setdefault(one if isinstance(one, str) else one.function, []).append(one)
    for name, several in by_function.items():
        for one in several[:shown]:
            yield from [f"  {one}"] if isinstance(one, str) else _change(one)
        left = len(several) - shown
        if left > 0:
            noun = "more case" if shown else "case"
            yield f"  {name}: {number(left, noun)}, listed by `--show cases`"


def _change(one: Change) -> Iterator[str]:
    yield f"  {one.function}: {one.case} ({one.transport})"
    for when, text in (("was", one.old), ("is", one.new)):
        first, *rest = laid_out(text) if text else ["not in the run"]
        yield f"    {when}: {first}"
        yield from (f"      {line}" for line in rest)
